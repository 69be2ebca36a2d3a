#include "collectors/spool_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tracer/spool/names.h"

namespace attntrace {
namespace {

using namespace spool;

uint64_t RealtimeNs() noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t StartTicks() noexcept {  // field 22; the command's name may hold spaces, so count from its closing bracket
  char text[1024];
  const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t got = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (got <= 0) return 0;
  text[got] = 0;
  const char* at = strrchr(text, ')');
  for (int field = 2; at != nullptr && field < 22; ++field) {
    at = strchr(at + 1, ' ');
  }
  return at != nullptr ? strtoull(at + 1, nullptr, 10) : 0;
}

int32_t EnvironmentInt(const char* name) noexcept {
  const char* text = getenv(name);
  if (text == nullptr || *text == 0) return -1;
  return static_cast<int32_t>(strtol(text, nullptr, 10));
}

size_t RoundUp(size_t bytes) noexcept { return (bytes + 7) & ~size_t{7}; }

}  // namespace

uint64_t MonotonicNs() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

SpoolWriter& Spool() noexcept {
  static SpoolWriter* const writer = new SpoolWriter;
  return *writer;
}

uint64_t SpoolWriter::SinceStart() const noexcept { return MonotonicNs() - start_ns_; }

int SpoolWriter::CreateFile(std::string* reason) noexcept {
  int fd = -1;
  std::string path;
  for (int n = 0; fd < 0 && n < 100; ++n) {
    path = directory_ + "/" + std::to_string(getpid()) + "-" + std::to_string(StartTicks()) + "-" + std::to_string(n) +
           names::kSpoolSuffix;
    fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST) break;
  }
  if (fd < 0) {
    *reason = std::string("cannot create a spool in ") + directory_ + ": " + strerror(errno);
    return -1;
  }
  // Blocks are reserved now: on a full disk that is an error here, where a store into a hole would be a SIGBUS in the host.
  if (const int error = posix_fallocate(fd, 0, kFileBytes); error != 0) {
    *reason =
        "cannot reserve " + std::to_string(kFileBytes >> 20) + " MiB for the spool in " + directory_ + ": " + strerror(error);
    close(fd);
    unlink(path.c_str());  // what stays would be taken for a damaged spool
    return -1;
  }
  return fd;
}

void SpoolWriter::Point(void* base) noexcept {
  char* const bytes = static_cast<char*>(base);
  header_ = reinterpret_cast<Header*>(bytes);
  counters_ = reinterpret_cast<VariantCounters*>(bytes + kCountersOffset);
  ring_ = reinterpret_cast<Event*>(bytes + kRingOffset);
  log_ = bytes + kLogOffset;
}

void SpoolWriter::FillHeader() noexcept {
  Header& h = *header_;
  memcpy(h.magic, kMagic, sizeof(kMagic));
  h.version = kVersion;
  h.header_bytes = kHeaderBytes;
  h.pid = getpid();
  h.parent_pid = getppid();
  h.start_ticks = StartTicks();
  h.rank = EnvironmentInt("RANK");
  h.local_rank = EnvironmentInt("LOCAL_RANK");
  h.world_size = EnvironmentInt("WORLD_SIZE");
  h.start_realtime_ns = RealtimeNs();
  h.start_monotonic_ns = start_ns_ = MonotonicNs();
  h.state.store(State::kActive, std::memory_order_relaxed);
}

bool SpoolWriter::Create(const char* directory, std::string* reason) noexcept {
  directory_ = directory;
  const int fd = CreateFile(reason);
  if (fd < 0) return false;
  void* const base = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (base == MAP_FAILED) {
    *reason = std::string("cannot map the spool in ") + directory_ + ": " + strerror(errno);
    return false;
  }
  Point(base);
  FillHeader();
  return true;
}

void SpoolWriter::DetachAfterFork() noexcept {
  const uint64_t used = header_->log_bytes.load(std::memory_order_acquire);
  const uint32_t variants = header_->variants_used.load(std::memory_order_relaxed);
  const int32_t parent = header_->pid;
  void* const fresh = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return;  // then the child adds to its parent's counters: wrong by a little, and alive
  memcpy(static_cast<char*>(fresh) + kLogOffset, log_, used);
  // Moving the pages puts them at the old address in one step; pointers that threads keep stay good.
  if (mremap(fresh, kFileBytes, kFileBytes, MREMAP_MAYMOVE | MREMAP_FIXED, header_) == MAP_FAILED) return;
  FillHeader();
  header_->forked_from = parent;
  header_->log_bytes.store(used, std::memory_order_release);
  header_->variants_used.store(variants, std::memory_order_release);
  Add(Counter::kForks);
}

void SpoolWriter::CreateAfterFork() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string reason;
  const int fd = CreateFile(&reason);
  if (fd < 0) return;
  // Written, then mapped over: what the memory holds by then is what the file holds.
  const char* const bytes = reinterpret_cast<const char*>(header_);
  bool written = true;
  for (size_t at = 0; written && at < kFileBytes;) {
    const ssize_t n = pwrite(fd, bytes + at, kFileBytes - at, static_cast<off_t>(at));
    written = n > 0;
    at += written ? static_cast<size_t>(n) : 0;
  }
  if (written) mmap(header_, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  close(fd);
}

bool SpoolWriter::Append(RecordKind kind, uint32_t id, const void* payload, size_t bytes, const void* tail,
                         size_t tail_bytes) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const size_t total = RoundUp(sizeof(RecordHeader) + bytes + tail_bytes);
  const uint64_t at = header_->log_bytes.load(std::memory_order_relaxed);
  if (at + total + sizeof(RecordHeader) > kLogBytes) {  // room for the zero that ends the log
    Add(Counter::kDefinitionsDropped);
    return false;
  }
  auto* const record = reinterpret_cast<RecordHeader*>(log_ + at);
  record->kind = kind;
  record->id = id;
  record->payload_bytes = static_cast<uint32_t>(bytes + tail_bytes);
  char* const body = log_ + at + sizeof(RecordHeader);
  memcpy(body, payload, bytes);
  if (tail_bytes != 0) memcpy(body + bytes, tail, tail_bytes);
  record->bytes.store(static_cast<uint32_t>(total), std::memory_order_release);
  header_->log_bytes.store(at + total, std::memory_order_release);
  return true;
}

StringId SpoolWriter::Intern(std::string_view text) noexcept {
  if (text.empty()) return 0;
  constexpr size_t kLongest = 16384;
  if (text.size() > kLongest) text = text.substr(0, kLongest);
  StringId id = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [at, fresh] = strings_.try_emplace(std::string(text), static_cast<StringId>(strings_.size() + 1));
    id = at->second;
    if (!fresh) return id;
  }
  // Another thread may use the id before this record is there; a reader takes ids in any order.
  return Append(RecordKind::kString, id, text.data(), text.size()) ? id : 0;
}

uint32_t SpoolWriter::NewSlot() noexcept {
  uint32_t slot = header_->variants_used.load(std::memory_order_relaxed);
  do {
    if (slot >= kMaxVariants) {
      Add(Counter::kVariantsDropped);
      return kMaxVariants;
    }
  } while (!header_->variants_used.compare_exchange_weak(slot, slot + 1, std::memory_order_relaxed));
  return slot;
}

void SpoolWriter::Environment(std::string_view key, std::string_view value) noexcept {
  Append(RecordKind::kEnvironment, 0, EnvironmentDef{Intern(key), Intern(value)});
}

void SpoolWriter::Note(std::string_view code, std::string_view text) noexcept {
  Append(RecordKind::kNote, 0, NoteDef{Intern(code), Intern(text)});
}

void SpoolWriter::PushEvent(const Event& event) noexcept {
  const uint64_t index = header_->next_event.fetch_add(1, std::memory_order_relaxed);
  Event& at = ring_[index % kRingEvents];
  at.sequence.store(0, std::memory_order_relaxed);  // torn until the last store
  std::atomic_thread_fence(std::memory_order_release);
  at.end_ns = event.end_ns;
  at.slot = event.slot;
  at.thread = event.thread;
  at.peak_bytes = event.peak_bytes;
  at.live_bytes = event.live_bytes;
  at.host_ns = event.host_ns;
  at.layer = event.layer;
  at.sequence.store(index + 1, std::memory_order_release);
  header_->last_event_monotonic_ns.store(event.end_ns, std::memory_order_relaxed);
}

}  // namespace attntrace
