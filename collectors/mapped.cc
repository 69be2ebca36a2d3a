#include "collectors/mapped.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>

#include <cstring>

namespace attntrace {
namespace {

struct Search {
  const char* stem;
  size_t length;
  char path[PATH_MAX];
};

int Match(dl_phdr_info* info, size_t, void* data) noexcept {
  auto* const search = static_cast<Search*>(data);
  const char* const path = info->dlpi_name;
  if (path == nullptr) return 0;
  const char* const slash = strrchr(path, '/');
  const char* const file = slash == nullptr ? path : slash + 1;
  if (strncmp(file, search->stem, search->length) != 0) return 0;
  const char* const rest = file + search->length;
  if (strncmp(rest, ".so", 3) != 0 || (rest[3] != 0 && rest[3] != '.')) return 0;
  if (strlen(path) >= sizeof(search->path)) return 0;
  strcpy(search->path, path);
  return 1;
}

}  // namespace

bool IsMapped(const char* stem) noexcept {
  Search search{stem, strlen(stem), ""};
  return dl_iterate_phdr(Match, &search) == 1;
}

void* MappedLibrary(const char* stem) noexcept {
  Search search{stem, strlen(stem), ""};
  return dl_iterate_phdr(Match, &search) == 1 ? dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
}

}  // namespace attntrace
