#include "kernels/free_memory.h"

#include <dlfcn.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace attntrace::reference {
namespace {

// The first number of a file; -1 where there is none ("max").
int64_t Number(const std::string& path) {
  std::ifstream file(path);
  int64_t number = -1;
  return file >> number ? number : -1;
}

int64_t Available() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    int64_t kib = 0;
    if (word == "MemAvailable:" && file >> kib) return kib * 1024;
  }
  return INT64_MAX;
}

// What is left in a group and in every group above it; pages of files that can be dropped count as used, which errs on the safe
// side.
int64_t LeftInGroups(const std::string& root, std::string group, const char* limit_name, const char* usage_name) {
  int64_t left = INT64_MAX;
  for (;;) {
    const int64_t limit = Number(root + group + limit_name), used = Number(root + group + usage_name);
    if (limit > 0 && used >= 0) left = std::min(left, std::max<int64_t>(0, limit - used));
    if (group.empty() || group == "/") return left;
    group.resize(group.rfind('/'));
  }
}

int64_t LeftInControlGroups() {
  std::ifstream file("/proc/self/cgroup");
  int64_t left = INT64_MAX;
  for (std::string line; std::getline(file, line);) {
    const size_t controllers = line.find(':'), path = line.find(':', controllers + 1);
    if (controllers == std::string::npos || path == std::string::npos) continue;
    const std::string names = line.substr(controllers + 1, path - controllers - 1), group = line.substr(path + 1);
    if (names.empty()) {
      left = std::min(left, LeftInGroups("/sys/fs/cgroup", group, "/memory.max", "/memory.current"));
    } else if (names.find("memory") != std::string::npos) {
      left = std::min(left, LeftInGroups("/sys/fs/cgroup/memory", group, "/memory.limit_in_bytes", "/memory.usage_in_bytes"));
    }
  }
  return left;
}

}  // namespace

int64_t FreeMainMemory() { return std::min(Available(), LeftInControlGroups()); }

int64_t FreeDeviceMemory() {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return -1;
  const auto ask = reinterpret_cast<int (*)(size_t*, size_t*)>(dlsym(driver, "cuMemGetInfo_v2"));
  size_t free = 0, total = 0;
  const bool answered = ask != nullptr && ask(&free, &total) == 0;
  dlclose(driver);
  return answered ? static_cast<int64_t>(free) : -1;
}

}  // namespace attntrace::reference
