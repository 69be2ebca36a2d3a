#include "tracer/preload/version.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracer/preload/libraries.h"
#include "tracer/spool/names.h"

namespace attntrace::preload {
namespace {

// A function of libc10, in all versions from 2.6 on, whose mangled name holds a std::string: in the new ABI, and in the old.
constexpr char kNewAbi[] = "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
constexpr char kOldAbi[] = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs";

// Both files are a few hundred bytes with the version near the top.
bool ReadHead(const char* path, char* text, size_t size) noexcept {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  ssize_t length = read(file, text, size - 1);
  close(file);
  if (length <= 0) return false;
  text[length] = '\0';
  return true;
}

bool CopyUntil(const char* from, const char* stops, char* to, size_t size) noexcept {
  size_t length = strcspn(from, stops);
  if (length == 0 || length >= size) return false;
  memcpy(to, from, length);
  to[length] = '\0';
  return true;
}

bool ReadBeside(const char* library, char* version, size_t size) noexcept {
  // <root>/lib/libtorch_cpu.so
  const char* slash = strrchr(library, '/');
  if (slash == nullptr) return false;
  int folder = static_cast<int>(slash - library);
  char path[PATH_MAX + 32];
  char text[1024];
  snprintf(path, sizeof(path), "%.*s/../version.py", folder, library);
  if (ReadHead(path, text, sizeof(text))) {
    constexpr char kAssignment[] = "\n__version__ = '";
    const char* found = strstr(text, kAssignment);
    if (found != nullptr && CopyUntil(found + sizeof(kAssignment) - 1, "'\n", version, size)) return true;
  }
  snprintf(path, sizeof(path), "%.*s/../build-version", folder, library);
  return ReadHead(path, text, sizeof(text)) && CopyUntil(text, " \t\r\n", version, size);
}

bool HasOldAbi() noexcept {
  char path[PATH_MAX];
  if (!FindLibrary("libc10", path, sizeof(path))) return false;
  void* c10 = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (c10 == nullptr) return false;
  bool old = dlsym(c10, kNewAbi) == nullptr && dlsym(c10, kOldAbi) != nullptr;
  dlclose(c10);
  return old;
}

}  // namespace

bool ReadTorchVersion(const char* torch_library, char* version, size_t size) noexcept {
  if (ReadBeside(torch_library, version, size)) return true;
  // A library reached through a link has its companions where the link points.
  char real[PATH_MAX];
  return realpath(torch_library, real) != nullptr && ReadBeside(real, version, size);
}

void AgentFolder(const char* version, char* folder, size_t size) noexcept {
  snprintf(folder, size, "%s%.*s%s", names::kAgentFolderPrefix, static_cast<int>(strcspn(version, "+")), version,
           HasOldAbi() ? names::kOldAbiSuffix : "");
}

}  // namespace attntrace::preload
