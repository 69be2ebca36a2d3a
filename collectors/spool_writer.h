// Writes this process's spool (tracer/spool/format.h). Inside the traced process: no exception leaves, nothing blocks.
//
// One writer a process. Counters and events may be written from any thread without a lock. Definitions are appended under a lock
// of the writer's own; never call Append*/Intern while holding it, and never take the GIL from inside.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tracer/spool/format.h"

namespace attntrace {

class SpoolWriter {
 public:
  // Creates <directory>/<pid>-<start ticks>-<n>.spool and maps it. False, with a reason, where that cannot be done.
  bool Create(const char* directory, std::string* reason) noexcept;

  // In a forked child: private memory takes the place of the parent's mapping, at the same address, with its definitions and with
  // counters at zero. Allocates nothing but that memory.
  void DetachAfterFork() noexcept;
  // Later, where the child turns out to call attention: a file of its own takes the place of that memory. Without one (a full
  // disk) the child runs on and its calls go unseen.
  void CreateAfterFork() noexcept;
  void Lock() noexcept { mutex_.lock(); }
  void Unlock() noexcept { mutex_.unlock(); }

  bool ok() const noexcept { return header_ != nullptr; }
  spool::Header& header() noexcept { return *header_; }
  spool::VariantCounters& counters(uint32_t slot) noexcept { return counters_[slot]; }

  void Add(Counter counter, uint64_t n = 1) noexcept {
    header_->counters[static_cast<size_t>(counter)].fetch_add(n, std::memory_order_relaxed);
  }

  spool::StringId Intern(std::string_view text) noexcept;
  // Appends a record; `tail` follows the payload. False when the log is full (counted).
  bool Append(spool::RecordKind kind, uint32_t id, const void* payload, size_t bytes, const void* tail = nullptr,
              size_t tail_bytes = 0) noexcept;
  template <typename Def>
  bool Append(spool::RecordKind kind, uint32_t id, const Def& def) noexcept {
    return Append(kind, id, &def, sizeof(def));
  }
  // A new variant slot, or kMaxVariants when there is none left (counted).
  uint32_t NewSlot() noexcept;

  void Environment(std::string_view key, std::string_view value) noexcept;
  void Note(std::string_view code, std::string_view text) noexcept;
  void PushEvent(const spool::Event& event) noexcept;  // `sequence` is filled in here

  uint64_t SinceStart() const noexcept;  // ns, monotonic

 private:
  int CreateFile(std::string* reason) noexcept;
  void Point(void* base) noexcept;
  void FillHeader() noexcept;

  std::string directory_;
  spool::Header* header_ = nullptr;
  spool::VariantCounters* counters_ = nullptr;
  spool::Event* ring_ = nullptr;
  char* log_ = nullptr;
  uint64_t start_ns_ = 0;
  std::mutex mutex_;  // guards the log and strings_
  std::unordered_map<std::string, spool::StringId> strings_;
};

uint64_t MonotonicNs() noexcept;

// The process's writer. Leaked on purpose: threads may still run when destructors do.
SpoolWriter& Spool() noexcept;

}  // namespace attntrace
