#include "tracer/preload/libraries.h"

#include <link.h>
#include <string.h>

#include <atomic>

namespace attntrace::preload {
namespace {

std::atomic<unsigned long long> g_seen_adds{0};

struct Search {
  const char* stem;
  size_t stem_length;
  char* path;
  size_t size;
};

// Stops at the first entry: every entry carries the same counter.
int ReadAdds(dl_phdr_info* info, size_t, void* data) noexcept {
  *static_cast<unsigned long long*>(data) = info->dlpi_adds;
  return 1;
}

int Match(dl_phdr_info* info, size_t, void* data) noexcept {
  auto* search = static_cast<Search*>(data);
  const char* path = info->dlpi_name;
  if (path == nullptr) return 0;
  const char* slash = strrchr(path, '/');
  const char* file = slash == nullptr ? path : slash + 1;
  if (strncmp(file, search->stem, search->stem_length) != 0) return 0;
  const char* rest = file + search->stem_length;
  if (strncmp(rest, ".so", 3) != 0 || (rest[3] != '\0' && rest[3] != '.')) return 0;
  size_t length = strlen(path);
  if (length >= search->size) return 0;
  memcpy(search->path, path, length + 1);
  return 1;
}

}  // namespace

bool LibrariesWereAdded() noexcept {
  unsigned long long adds = 0;
  dl_iterate_phdr(ReadAdds, &adds);
  return g_seen_adds.exchange(adds, std::memory_order_relaxed) != adds;
}

bool FindLibrary(const char* stem, char* path, size_t size) noexcept {
  Search search{stem, strlen(stem), path, size};
  return dl_iterate_phdr(Match, &search) == 1;
}

}  // namespace attntrace::preload
