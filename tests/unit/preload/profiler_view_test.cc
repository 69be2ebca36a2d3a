#include "tracer/preload/profiler_view.h"

#include <random>
#include <unordered_map>

#include "tests/unit/catch.h"

namespace attntrace::preload {
namespace {

// PyTorch's ProfiledCPUMemoryReporter, as it behaves while a profiler is on: the oracle.
class Reporter {
 public:
  ProfilerReport New(void* pointer, size_t bytes) {
    sizes_[pointer] = bytes;
    allocated_ += bytes;
    return {true, static_cast<int64_t>(bytes), allocated_};
  }
  ProfilerReport Delete(void* pointer) {
    auto found = sizes_.find(pointer);
    if (found == sizes_.end()) return {};
    size_t bytes = found->second;
    allocated_ -= bytes;
    sizes_.erase(found);
    return {true, -static_cast<int64_t>(bytes), allocated_};
  }

 private:
  std::unordered_map<void*, size_t> sizes_;
  size_t allocated_ = 0;
};

void* Address(uintptr_t n) { return reinterpret_cast<void*>((n + 1) * 64); }

TEST_CASE("profiler view: the profiler is told what PyTorch alone would tell it") {
  Reporter reporter;
  std::mt19937 random(1);
  // More addresses than the table starts with, so that it grows; few enough that blocks come again and go again.
  std::uniform_int_distribution<uintptr_t> address(0, 9999);
  size_t told = 0;
  for (int step = 0; step < 400000; ++step) {
    void* pointer = Address(address(random));
    // A size that the traced allocator knows and the untraced one does not must never come through.
    bool freed = random() % 2 == 0;
    size_t bytes = 1 + random() % 1000;
    ProfilerReport wanted = freed ? reporter.Delete(pointer) : reporter.New(pointer, bytes);
    ProfilerReport seen = AsProfilerSees(pointer, freed ? -static_cast<int64_t>(7777) : static_cast<int64_t>(bytes), 123456789);
    REQUIRE(seen.wanted == wanted.wanted);
    if (!wanted.wanted) continue;
    ++told;
    REQUIRE(seen.bytes == wanted.bytes);
    REQUIRE(seen.total_allocated == wanted.total_allocated);
  }
  REQUIRE(told > 200000);
}

TEST_CASE("profiler view: a report without a pointer passes as it is") {
  ProfilerReport seen = AsProfilerSees(nullptr, -5, 10);
  REQUIRE(seen.wanted);
  REQUIRE(seen.bytes == -5);
  REQUIRE(seen.total_allocated == 10);
}

}  // namespace
}  // namespace attntrace::preload
