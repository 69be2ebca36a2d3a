// Reads one spool (tracer/spool/format.h) without trusting a byte of it: the writer may have been killed, may still be writing,
// or may not have been attntrace at all.
//
// The file is copied into private memory at Open, so what was checked cannot change while it is used. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tracer/spool/format.h"

namespace attntrace {

struct SpoolRecord {
  spool::RecordKind kind;
  uint32_t id;
  absl::string_view payload;  // 8-byte aligned, without padding

  // The payload's leading struct, or null where the payload is too short for one.
  template <typename T>
  const T* As() const {
    static_assert(alignof(T) <= 8);
    return payload.size() < sizeof(T) ? nullptr : reinterpret_cast<const T*>(payload.data());
  }
};

struct SpoolIdentity {
  uint64_t start_realtime_ns;
  uint64_t start_ticks;  // with the pid, one process: its programs that followed one another by exec share both
  int32_t pid;
};

// The header alone; errors as of Spool::Open.
absl::StatusOr<SpoolIdentity> PeekSpool(const std::string& path);

class Spool {
 public:
  // Errors: NotFound or PermissionDenied (cannot be opened), InvalidArgument (not a spool), FailedPrecondition (a spool of
  // another version), DataLoss (shorter than its header). A file cut short behind the header is read as far as it goes.
  static absl::StatusOr<Spool> Open(const std::string& path);

  const spool::Header& header() const { return *At<spool::Header>(0); }
  uint64_t counter(Counter which) const;
  const spool::VariantCounters& counters(uint32_t slot) const;  // slot < kMaxVariants

  // Definition records, in the order they were written.
  absl::Span<const SpoolRecord> records() const { return records_; }
  // Events whose sequence fits their place, oldest first. A torn one is left out.
  std::vector<const spool::Event*> Events() const;

  const std::string& path() const { return path_; }
  uint64_t missing_bytes() const { return missing_bytes_; }  // file shorter than it should be by this
  uint64_t damaged_bytes() const { return damaged_bytes_; }  // of the log, behind a record that makes no sense

 private:
  friend absl::StatusOr<SpoolIdentity> PeekSpool(const std::string& path);
  Spool() = default;
  // Reads up to `bytes` of the file and checks the header; returns how many there were.
  absl::StatusOr<size_t> Load(const std::string& path, size_t bytes);
  void ScanLog();
  template <typename T>
  const T* At(size_t offset) const {
    return reinterpret_cast<const T*>(reinterpret_cast<const char*>(words_.get()) + offset);
  }

  std::string path_;
  std::unique_ptr<uint64_t[]> words_;  // zero behind the end of a short file
  std::vector<SpoolRecord> records_;
  uint64_t missing_bytes_ = 0, damaged_bytes_ = 0;
};

}  // namespace attntrace
