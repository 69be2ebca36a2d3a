#include "report/spool_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace attntrace {
namespace {

using spool::kFileBytes;

// Counters are read from a private copy: nothing else stores to it, so relaxed is all it takes.
template <typename T>
T Value(const std::atomic<T>& value) {
  return value.load(std::memory_order_relaxed);
}

absl::Status CheckHeader(const std::string& path, const spool::Header& header, size_t bytes) {
  if (bytes < sizeof header.magic || std::memcmp(header.magic, spool::kMagic, sizeof header.magic) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a spool of attntrace"));
  }
  if (bytes < offsetof(spool::Header, pid)) {
    return absl::DataLossError(absl::StrCat(path, ": a spool cut short after ", bytes, " bytes, in its header"));
  }
  if (header.version != spool::kVersion || header.header_bytes != spool::kHeaderBytes) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": made by another version of attntrace (spool version ",
                                                      header.version, ", this one reads ", spool::kVersion,
                                                      "): read it with that one"));
  }
  if (bytes < spool::kHeaderBytes) {
    return absl::DataLossError(absl::StrCat(path, ": a spool cut short after ", bytes, " bytes, in its header"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<size_t> Spool::Load(const std::string& path, size_t bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  absl::Cleanup close_fd = [fd] { close(fd); };
  struct stat facts;
  if (fstat(fd, &facts) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  if (!S_ISREG(facts.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, ": not a file, so not a spool"));

  path_ = path;
  words_ = std::make_unique<uint64_t[]>(bytes / sizeof(uint64_t));
  char* into = reinterpret_cast<char*>(words_.get());
  size_t have = 0;
  while (have < bytes) {
    const ssize_t got = read(fd, into + have, bytes - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  if (absl::Status status = CheckHeader(path, header(), have); !status.ok()) return status;
  return have;
}

absl::StatusOr<Spool> Spool::Open(const std::string& path) {
  Spool spool;
  const absl::StatusOr<size_t> have = spool.Load(path, kFileBytes);
  if (!have.ok()) return have.status();
  spool.missing_bytes_ = kFileBytes - *have;
  spool.ScanLog();
  return spool;
}

absl::StatusOr<SpoolIdentity> PeekSpool(const std::string& path) {
  Spool spool;
  const absl::StatusOr<size_t> have = spool.Load(path, spool::kHeaderBytes);
  if (!have.ok()) return have.status();
  return SpoolIdentity{spool.header().start_realtime_ns, spool.header().start_ticks, spool.header().pid};
}

void Spool::ScanLog() {
  size_t offset = spool::kLogOffset;
  while (offset + sizeof(spool::RecordHeader) <= kFileBytes) {
    const auto* record = At<spool::RecordHeader>(offset);
    const size_t bytes = Value(record->bytes);
    if (bytes == 0) break;  // the end, or a record that was being written
    const auto kind = static_cast<uint16_t>(record->kind);
    const bool sane = bytes % 8 == 0 && bytes >= sizeof *record && bytes <= kFileBytes - offset &&
                      record->payload_bytes <= bytes - sizeof *record && kind >= 1 &&
                      kind <= static_cast<uint16_t>(spool::RecordKind::kLast);
    if (!sane) {
      // Where the next record begins is not known any more. log_bytes is only a hint of how much that leaves out.
      const uint64_t end = spool::kLogOffset + std::min<uint64_t>(Value(header().log_bytes), spool::kLogBytes);
      damaged_bytes_ = end > offset ? end - offset : bytes % spool::kLogBytes + 1;
      break;
    }
    records_.push_back(
        {record->kind, record->id, absl::string_view(reinterpret_cast<const char*>(record + 1), record->payload_bytes)});
    offset += bytes;
  }
}

uint64_t Spool::counter(Counter which) const { return Value(header().counters[static_cast<size_t>(which)]); }

const spool::VariantCounters& Spool::counters(uint32_t slot) const {
  return At<spool::VariantCounters>(spool::kCountersOffset)[std::min(slot, spool::kMaxVariants - 1)];
}

std::vector<const spool::Event*> Spool::Events() const {
  std::vector<const spool::Event*> events;
  const auto* ring = At<spool::Event>(spool::kRingOffset);
  for (uint32_t i = 0; i < spool::kRingEvents; ++i) {
    const uint64_t sequence = Value(ring[i].sequence);
    if (sequence != 0 && (sequence - 1) % spool::kRingEvents == i) events.push_back(&ring[i]);
  }
  std::sort(events.begin(), events.end(),
            [](const spool::Event* a, const spool::Event* b) { return Value(a->sequence) < Value(b->sequence); });
  return events;
}

}  // namespace attntrace
