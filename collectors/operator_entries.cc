#include "collectors/operator_entries.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace attntrace {
namespace {

constexpr char kPrefix[] = "_ZN2at4_ops";  // at::_ops::

struct Entry {
  uintptr_t begin, end;
  const char* name;  // the operator's in a mangled name: "10add_Tensor4callE..."
};

struct Torch {
  uintptr_t begin = 0, end = 0;
  std::vector<Entry> entries;  // ascending
};

// The dynamic section counts its symbols only by way of the hash table's last chain.
size_t SymbolCount(const uint32_t* hash) noexcept {
  const uint32_t buckets = hash[0], first = hash[1], words = hash[2];
  const uint32_t* const bucket = hash + 4 + words * (sizeof(uintptr_t) / sizeof(uint32_t));
  const uint32_t* const chain = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t i = 0; i < buckets; ++i) last = std::max(last, bucket[i]);
  if (last < first) return 0;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

void ReadEntries(uintptr_t base, const ElfW(Dyn) * dynamic, std::vector<Entry>* entries) {
  const ElfW(Sym)* symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* hash = nullptr;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {  // the loader has put addresses in place of offsets
    const auto* const at = reinterpret_cast<const void*>(dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_SYMTAB) symbols = static_cast<const ElfW(Sym)*>(at);
    if (dynamic->d_tag == DT_STRTAB) strings = static_cast<const char*>(at);
    if (dynamic->d_tag == DT_GNU_HASH) hash = static_cast<const uint32_t*>(at);
  }
  if (symbols == nullptr || strings == nullptr || hash == nullptr) return;
  const size_t count = SymbolCount(hash);
  for (size_t i = 0; i < count; ++i) {
    const ElfW(Sym)& symbol = symbols[i];
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0 || (symbol.st_info & 0xf) != STT_FUNC) continue;
    const char* const name = strings + symbol.st_name;
    if (strncmp(name, kPrefix, sizeof(kPrefix) - 1) != 0) continue;
    entries->push_back({base + symbol.st_value, base + symbol.st_value + symbol.st_size, name + sizeof(kPrefix) - 1});
  }
  std::sort(entries->begin(), entries->end(), [](const Entry& a, const Entry& b) { return a.begin < b.begin; });
}

struct Found {
  Torch* torch;
  bool with_entries;
};

int Visit(dl_phdr_info* info, size_t, void* data) {
  const char* const slash = info->dlpi_name == nullptr ? nullptr : strrchr(info->dlpi_name, '/');
  if (slash == nullptr || strncmp(slash + 1, "libtorch_cpu.so", 15) != 0) return 0;
  auto* const found = static_cast<Found*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD) {
      if (found->torch->begin == 0) found->torch->begin = begin;
      found->torch->end = begin + header.p_memsz;
    }
    if (header.p_type == PT_DYNAMIC && found->with_entries) {
      ReadEntries(info->dlpi_addr, reinterpret_cast<const ElfW(Dyn)*>(begin), &found->torch->entries);
    }
  }
  return 1;
}

const Torch& Range() noexcept {
  static const Torch torch = [] {
    Torch found;
    Found into{&found, false};
    dl_iterate_phdr(Visit, &into);
    return found;
  }();
  return torch;
}

const Torch& Entries() {
  static const Torch* const torch = [] {
    auto* const found = new Torch;
    Found into{found, true};
    dl_iterate_phdr(Visit, &into);
    return found;
  }();
  return *torch;
}

}  // namespace

bool MakesOnly(const void* address, const char* event_name) {
  const std::vector<Entry>& entries = Entries().entries;
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto next = std::upper_bound(entries.begin(), entries.end(), at, [](uintptr_t a, const Entry& e) { return a < e.begin; });
  if (next == entries.begin() || at > (--next)->end) return false;  // a return address may be one past the last instruction
  const char* mangled = next->name;
  while (*mangled >= '0' && *mangled <= '9') ++mangled;
  // "add_Tensor" for the overload Tensor of aten::add, "add__Tensor" for aten::add_, "add" where there is no overload.
  const char* const colons = strstr(event_name, "::");
  if (colons == nullptr) return false;
  const size_t length = strlen(colons + 2);
  if (strncmp(mangled, colons + 2, length) != 0) return false;
  const char* const rest = mangled + length;
  return *rest == '_' || strncmp(rest, "4call", 5) == 0 || strncmp(rest, "10redispatch", 12) == 0;
}

bool IsOfTorch(const void* address) noexcept {
  const auto at = reinterpret_cast<uintptr_t>(address);
  return at >= Range().begin && at < Range().end;
}

}  // namespace attntrace
