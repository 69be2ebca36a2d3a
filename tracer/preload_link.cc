#include "tracer/preload_link.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tracer/environment.h"
#include "tracer/spool/names.h"
#include "tracer/spool_folder.h"

namespace attntrace {

PreloadLink::PreloadLink(const std::string& library) : path_(library) {
  if (library.empty()) {
    error_ = absl::StrCat(names::kPreloadLibrary, " is not installed beside this program");
    return;
  }
  if (CanBePreloaded(library)) return;
  path_.clear();
  const std::string root = TemporaryFolder();
  std::string folder = absl::StrCat(CanBePreloaded(root) ? root : "/tmp", "/attntrace-XXXXXX");
  if (mkdtemp(folder.data()) == nullptr) {
    error_ = absl::StrCat("the blank or colon in ", library, " needs a link in ", folder, ": ", std::strerror(errno));
    return;
  }
  folder_ = folder;
  path_ = absl::StrCat(folder, "/", names::kPreloadLibrary);
  if (symlink(library.c_str(), path_.c_str()) != 0) {
    error_ = absl::StrCat(path_, ": ", std::strerror(errno));
    path_.clear();
  }
}

PreloadLink::~PreloadLink() {
  if (folder_.empty()) return;
  unlink(absl::StrCat(folder_, "/", names::kPreloadLibrary).c_str());
  rmdir(folder_.c_str());
}

}  // namespace attntrace
