// Composes a spool in memory, as collectors/ would write it, and puts it into a file: the reader's tests need no traced
// process.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/report/temporary_folder.h"
#include "tracer/spool/format.h"

namespace attntrace::testing {

class SpoolBuilder {
 public:
  explicit SpoolBuilder(int pid = 4711) : words_(spool::kFileBytes / sizeof(uint64_t)) {
    spool::Header& h = header();
    std::memcpy(h.magic, spool::kMagic, sizeof h.magic);
    h.version = spool::kVersion;
    h.header_bytes = spool::kHeaderBytes;
    h.pid = pid;
    h.parent_pid = 1;
    h.start_ticks = 0;  // of no living process
    h.rank = h.local_rank = h.world_size = -1;
    h.start_realtime_ns = 1'000'000'000;
    h.state = spool::State::kCleanExit;
  }

  spool::Header& header() { return *reinterpret_cast<spool::Header*>(bytes()); }
  char* bytes() { return reinterpret_cast<char*>(words_.data()); }
  size_t used() const { return offset_; }  // bytes up to the end of the log

  void Count(Counter which, uint64_t value) { header().counters[static_cast<size_t>(which)] = value; }
  spool::VariantCounters& Counters(uint32_t slot) {
    return reinterpret_cast<spool::VariantCounters*>(bytes() + spool::kCountersOffset)[slot];
  }

  void Record(spool::RecordKind kind, uint32_t id, const void* payload, size_t size) {
    const size_t whole = sizeof(spool::RecordHeader) + (size + 7) / 8 * 8;
    auto* record = reinterpret_cast<spool::RecordHeader*>(bytes() + offset_);
    std::memcpy(static_cast<void*>(record + 1), payload, size);
    record->kind = kind;
    record->id = id;
    record->payload_bytes = static_cast<uint32_t>(size);
    record->bytes = static_cast<uint32_t>(whole);
    offset_ += whole;
    header().log_bytes = offset_ - spool::kLogOffset;
  }
  template <typename T>
  void Record(spool::RecordKind kind, uint32_t id, const T& payload) {
    Record(kind, id, &payload, sizeof payload);
  }

  spool::StringId String(const std::string& text) {
    if (text.empty()) return 0;
    const auto [at, fresh] = strings_.try_emplace(text, static_cast<uint32_t>(strings_.size()) + 1);
    if (fresh) Record(spool::RecordKind::kString, at->second, text.data(), text.size());
    return at->second;
  }

  uint32_t Python(const std::string& file, int line, const std::string& function, const std::string& module) {
    const spool::FrameDef def{spool::FrameKind::kPython, String(file), String(function), String(module), line, 0, 0};
    Record(spool::RecordKind::kFrame, ++frames_, def);
    return frames_;
  }
  uint32_t Native(const std::string& object, uint64_t offset, const std::string& function = "") {
    const spool::FrameDef def{spool::FrameKind::kNative, String(object), String(function), 0, 0, 0, offset};
    Record(spool::RecordKind::kFrame, ++frames_, def);
    return frames_;
  }

  uint32_t Path(const std::vector<uint32_t>& frames, uint32_t flags = 0) {  // innermost first
    std::vector<uint32_t> payload = {static_cast<uint32_t>(frames.size()), flags};
    payload.insert(payload.end(), frames.begin(), frames.end());
    Record(spool::RecordKind::kPath, ++paths_, payload.data(), payload.size() * sizeof(uint32_t));
    return paths_;
  }

  uint32_t Module(spool::ModuleDef def) {
    Record(spool::RecordKind::kModule, ++modules_, def);
    return modules_;
  }
  uint32_t Module(const std::string& class_name, const std::string& class_module) {
    spool::ModuleDef def{};
    def.class_name = String(class_name);
    def.class_module = String(class_module);
    return Module(def);
  }

  // A forward of SDPA, float32 (2, 4, 128, 16), in a path; the caller changes what it wants.
  spool::VariantDef Sdpa(uint32_t path, Backend backend, PathKind kind) {
    spool::VariantDef def{};
    def.path = path;
    def.op = String("aten::scaled_dot_product_attention");
    def.kernel_op = String("aten::_scaled_dot_product_flash_attention_for_cpu");
    def.phase = Phase::kForward;
    def.backend = backend;
    def.path_kind = kind;
    spool::TensorDef tensor{};
    tensor.present = 1;
    tensor.dtype = Dtype::kFloat32;
    tensor.device = DeviceKind::kCpu;
    tensor.rank = 4;
    const int64_t sizes[] = {2, 4, 128, 16}, strides[] = {8192, 2048, 16, 1};
    std::copy(std::begin(sizes), std::end(sizes), tensor.sizes);
    std::copy(std::begin(strides), std::end(strides), tensor.strides);
    def.q = def.k = def.v = tensor;
    return def;
  }

  uint32_t Variant(const spool::VariantDef& def, uint64_t calls, int64_t peak_bytes = 0) {
    const uint32_t slot = variants_++;
    Record(spool::RecordKind::kVariant, slot, def);
    header().variants_used = variants_;
    spool::VariantCounters& counters = Counters(slot);
    counters.calls = calls;
    counters.peak_bytes = peak_bytes;
    counters.first_ns = 1000 * (slot + 1);
    counters.last_ns = 2000 * (slot + 1);
    const Counter phase = def.phase == Phase::kForward    ? Counter::kForwardCalls
                          : def.phase == Phase::kBackward ? Counter::kBackwardCalls
                                                          : Counter::kRecomputeCalls;
    header().counters[static_cast<size_t>(phase)] += calls;
    return slot;
  }
  // The backward of a slot, by the same path.
  uint32_t Backward(uint32_t forward_slot, spool::VariantDef def, uint64_t calls, int64_t peak_bytes = 0) {
    def.phase = Phase::kBackward;
    def.forward_slot = forward_slot + 1;
    return Variant(def, calls, peak_bytes);
  }

  void Layer(uint32_t slot, int32_t layer) { Record(spool::RecordKind::kLayer, slot, spool::LayerDef{layer, 0}); }
  void Gate(uint32_t slot, Backend backend, uint16_t order, const std::string& text, bool ours = false) {
    const spool::StringId id = String(text);
    Record(spool::RecordKind::kGate, slot, spool::GateDef{backend, ours, order, id});
  }
  void Environment(const std::string& key, const std::string& value) {
    const spool::StringId key_id = String(key), value_id = String(value);
    Record(spool::RecordKind::kEnvironment, 0, spool::EnvironmentDef{key_id, value_id});
  }
  void Note(const std::string& code, const std::string& text) {
    const spool::StringId code_id = String(code), text_id = String(text);
    Record(spool::RecordKind::kNote, 0, spool::NoteDef{code_id, text_id});
  }
  uint32_t Thread(uint64_t tid, const std::string& name) {
    const spool::StringId id = String(name);
    Record(spool::RecordKind::kThread, ++threads_, spool::ThreadDef{tid, id});
    return threads_;
  }

  void Event(uint64_t sequence, uint32_t slot, uint64_t end_ns, int32_t layer = -1) {
    auto& event = reinterpret_cast<spool::Event*>(bytes() + spool::kRingOffset)[(sequence - 1) % spool::kRingEvents];
    event.end_ns = end_ns;
    event.slot = slot;
    event.layer = layer;
    event.sequence = sequence;
    header().next_event = sequence;
  }

  // Into a file of `folder`; `size` bytes of it where given.
  std::string Write(const TemporaryFolder& folder, const std::string& name, size_t size = spool::kFileBytes) {
    const std::string path = folder.path() + "/" + name;
    std::ofstream(path, std::ios::binary).write(bytes(), static_cast<std::streamsize>(size));
    return path;
  }

 private:
  std::vector<uint64_t> words_;
  size_t offset_ = spool::kLogOffset;
  std::map<std::string, uint32_t> strings_;
  uint32_t frames_ = 0, paths_ = 0, modules_ = 0, variants_ = 0, threads_ = 0;
};

}  // namespace attntrace::testing
