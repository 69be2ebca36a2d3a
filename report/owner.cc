#include "report/owner.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace attntrace {
namespace {

// What comes behind the last site-packages/ or dist-packages/, or nothing.
absl::string_view InstalledPart(absl::string_view file) {
  for (absl::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const size_t at = file.rfind(folder);
    if (at != absl::string_view::npos) return file.substr(at + folder.size());
  }
  return {};
}

absl::string_view FirstOf(absl::string_view text, char separator) { return text.substr(0, text.find(separator)); }

absl::string_view BaseName(absl::string_view path) { return path.substr(path.rfind('/') + 1); }

// Packages that are PyTorch's own machinery: what they put in a call path says nothing about who asked for attention.
bool IsTorchPackage(absl::string_view package) {
  return package == "torch" || package == "triton" || package == "functorch" || package == "torchgen";
}

std::string PackageOwner(absl::string_view package) {
  package = absl::StripSuffix(package, ".py");
  return IsTorchPackage(package) ? kOwnerTorch : std::string(package);
}

bool IsStandardLibrary(absl::string_view file) {
  for (absl::string_view folder : {"/lib/python", "/lib64/python", "/Lib/python"}) {
    const size_t at = file.find(folder);
    if (at == absl::string_view::npos) continue;
    const absl::string_view version = FirstOf(file.substr(at + folder.size()), '/');
    if (!version.empty() && version.find_first_not_of("0123456789.t") == absl::string_view::npos) return true;
    if (absl::EndsWith(version, ".zip")) return true;
  }
  return false;
}

// "pytest", "torchrun", "accelerate": a command that pip put into an environment's bin.
bool IsInstalledCommand(absl::string_view file) {
  const size_t slash = file.rfind('/');
  return slash != absl::string_view::npos && absl::EndsWith(file.substr(0, slash), "/bin") && !absl::EndsWith(file, ".py");
}

bool IsMain(absl::string_view module) { return module == "__main__" || module == "__mp_main__"; }

// Code without a file: "<string>" of -c or exec, "<stdin>", "<frozen importlib._bootstrap>", "<eval_with_key>.12" of torch.fx.
std::string UnnamedOwner(absl::string_view file, absl::string_view module) {
  if (absl::StartsWith(file, "<frozen")) return kOwnerPython;
  if (absl::StartsWith(file, "<eval_with_key") || absl::StartsWith(file, "<torch")) return kOwnerTorch;
  const absl::string_view package = FirstOf(module, '.');
  if (IsTorchPackage(package)) return kOwnerTorch;
  if (absl::StartsWith(file, "<attrs") || absl::StartsWith(file, "<__array_function__")) return kOwnerPython;
  return kOwnerUser;
}

}  // namespace

bool IsPlumbing(absl::string_view owner) { return owner == kOwnerTorch || owner == kOwnerPython || owner == kOwnerSystem; }

void UserTree::AddScript(absl::string_view file) {
  if (!InstalledPart(file).empty() || IsStandardLibrary(file) || IsInstalledCommand(file) || absl::StartsWith(file, "<"))
    return;
  const size_t slash = file.rfind('/');
  std::string folder;
  if (slash == absl::string_view::npos) {
    folder = working_directory_;
  } else if (file[0] == '/') {
    folder = std::string(file.substr(0, slash));
  } else {
    folder = absl::StrCat(working_directory_, "/", file.substr(0, slash));
  }
  if (std::find(folders_.begin(), folders_.end(), folder) == folders_.end()) folders_.push_back(std::move(folder));
}

bool UserTree::Contains(absl::string_view file) const {
  if (file.empty() || file[0] != '/') return true;  // relative to where the user stands
  const auto inside = [&](absl::string_view folder) {
    folder = absl::StripSuffix(folder, "/");
    return absl::StartsWith(file, folder) && file.size() > folder.size() && file[folder.size()] == '/';
  };
  if (folders_.empty()) return !working_directory_.empty() && inside(working_directory_);
  return std::any_of(folders_.begin(), folders_.end(), inside);
}

std::string PythonOwner(absl::string_view file, absl::string_view module, const UserTree& tree) {
  if (file.empty() && module.empty()) return kOwnerUser;
  if (absl::StartsWith(file, "<")) return UnnamedOwner(file, module);
  const absl::string_view installed = InstalledPart(file);
  if (!installed.empty()) return PackageOwner(FirstOf(installed, '/'));
  if (IsStandardLibrary(file) || IsInstalledCommand(file)) return kOwnerPython;
  if (absl::StrContains(file, "/torchinductor_") || absl::StrContains(file, "/.triton/cache/")) return kOwnerTorch;
  if (absl::StrContains(file, "/ipykernel_")) return kOwnerUser;  // a notebook's cell
  const absl::string_view package = FirstOf(module, '.');
  if (package == "torch" || package == "triton") return kOwnerTorch;  // built from source, in place
  if (package.empty() || IsMain(package) || tree.Contains(file)) return kOwnerUser;
  return PackageOwner(package);  // an editable install, or a folder on PYTHONPATH
}

std::string NativeOwner(absl::string_view object) {
  const absl::string_view name = BaseName(object);
  for (absl::string_view prefix : {"libtorch", "libc10", "libcaffe2", "_C.cpython", "libshm", "libfbgemm", "libaoti"}) {
    if (absl::StartsWith(name, prefix)) return kOwnerTorch;
  }
  if (absl::StartsWith(name, "libpython") || absl::StartsWith(name, "python")) return kOwnerPython;
  for (absl::string_view prefix :
       {"libc.",    "libc-",    "libm.",  "libm-",        "libdl",  "librt",     "libpthread", "libstdc++",
        "libgcc_s", "libgomp",  "libomp", "libiomp",      "libmkl", "libcuda",   "libcud",     "libcublas",
        "libnccl",  "ld-linux", "ld-",    "libattntrace", "[vdso]", "linux-vdso"}) {
    if (absl::StartsWith(name, prefix)) return kOwnerSystem;
  }
  const absl::string_view installed = InstalledPart(object);
  if (!installed.empty()) return PackageOwner(FirstOf(FirstOf(installed, '/'), '.'));
  if (IsStandardLibrary(object)) return kOwnerPython;
  return kOwnerUser;
}

std::string ShortPath(absl::string_view file, absl::string_view module, absl::string_view owner, absl::string_view directory) {
  if (!file.empty() && file[0] != '/') return std::string(file);
  absl::string_view installed = InstalledPart(file);
  if (!installed.empty()) {
    absl::ConsumePrefix(&installed, absl::StrCat(owner, "/"));
    return std::string(installed);
  }
  absl::string_view inside = file;
  directory = absl::StripSuffix(directory, "/");
  if (!directory.empty() && absl::ConsumePrefix(&inside, directory) && absl::ConsumePrefix(&inside, "/")) {
    return std::string(inside);
  }
  // An editable install: the folder named as the package is where its own names begin.
  if (owner != kOwnerUser && FirstOf(module, '.') == owner) {
    const std::string folder = absl::StrCat("/", owner, "/");
    const size_t at = file.rfind(folder);
    if (at != absl::string_view::npos) return std::string(file.substr(at + folder.size()));
  }
  return std::string(file);
}

}  // namespace attntrace
