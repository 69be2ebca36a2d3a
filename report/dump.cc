#include "report/dump.h"

#include <google/protobuf/text_format.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/spool_reader.h"

namespace attntrace {
namespace {

using spool::RecordKind;

absl::Status Finish(FILE* out) {
  if (std::fflush(out) != 0 || std::ferror(out)) return absl::UnknownError("cannot write the dump");
  return absl::OkStatus();
}

template <typename T>
T Value(const std::atomic<T>& value) {
  return value.load(std::memory_order_relaxed);
}

std::string Tensor(const char* role, const spool::TensorDef& tensor) {
  if (!tensor.present) return {};
  const size_t dims = std::min<size_t>(tensor.rank, spool::kMaxDims);
  return absl::StrCat(" ", role, "=", NameOf(tensor.dtype), "[", absl::StrJoin(tensor.sizes, tensor.sizes + dims, ","), "]/[",
                      absl::StrJoin(tensor.strides, tensor.strides + dims, ","), "]@", NameOf(tensor.device), ":",
                      int{tensor.device_index}, tensor.requires_grad ? "+grad" : "", tensor.nested ? "+nested" : "");
}

std::string Variant(const spool::VariantDef& v) {
  return absl::StrCat("path=", v.path, " module=", v.module, " thread=", v.thread, " forward_slot=", v.forward_slot,
                      " op=", v.op, " kernel_op=", v.kernel_op, " no_path_reason=", v.no_path_reason, " flags=0x",
                      absl::Hex(v.flags), " phase=", NameOf(v.phase), " backend=", NameOf(v.backend),
                      " kind=", NameOf(v.path_kind), " mask=", NameOf(v.mask_kind), "/", NameOf(v.mask_content), "/",
                      v.mask_bytes, " dropout=", v.dropout_p, " scale=", v.scale, Tensor("q", v.q), Tensor("k", v.k),
                      Tensor("v", v.v), Tensor("mask", v.mask));
}

template <typename T, typename Function>
std::string Describe(const SpoolRecord& record, Function describe) {
  const T* def = record.As<T>();
  return def == nullptr ? absl::StrCat("short payload of ", record.payload.size(), " bytes") : describe(*def);
}

std::string Payload(const SpoolRecord& record) {
  switch (record.kind) {
    case RecordKind::kString:
      return absl::StrCat("string \"", absl::Utf8SafeCEscape(record.payload), "\"");
    case RecordKind::kFrame:
      return absl::StrCat("frame ", Describe<spool::FrameDef>(record, [](const spool::FrameDef& f) {
                            return absl::StrCat(f.kind == spool::FrameKind::kNative ? "native" : "python", " file=", f.file,
                                                " line=", f.line, " function=", f.function, " module=", f.module, " offset=0x",
                                                absl::Hex(f.offset));
                          }));
    case RecordKind::kPath:
      return absl::StrCat("path ", Describe<spool::PathDef>(record, [&](const spool::PathDef& p) {
                            const auto* ids = reinterpret_cast<const uint32_t*>(&p + 1);
                            const size_t count = std::min<size_t>(p.frames, (record.payload.size() - sizeof p) / sizeof *ids);
                            return absl::StrCat("flags=", p.flags, " frames=", absl::StrJoin(ids, ids + count, ","));
                          }));
    case RecordKind::kModule:
      return absl::StrCat(
          "module ", Describe<spool::ModuleDef>(record, [](const spool::ModuleDef& m) {
            return absl::StrCat(
                "class=", m.class_name, " class_module=", m.class_module, " config=", m.config_class,
                " selection=", m.selection, " state=", static_cast<int>(m.selection_state), " function=", m.function,
                " is_causal=", static_cast<int>(m.is_causal), " training=", static_cast<int>(m.training),
                " output_attentions=", m.output_attentions, " model=", m.model_class, " attention_mask=", m.attention_mask,
                " model_selection=", m.model_selection, " no_sdpa=", m.no_sdpa_class, " requested=", m.requested, "/",
                m.requested_by, " part=", m.part, "/", m.part_config, " built_path=", m.built_path);
          }));
    case RecordKind::kVariant:
      return absl::StrCat("variant ", Describe<spool::VariantDef>(record, Variant));
    case RecordKind::kLayer:
      return absl::StrCat("layer ", Describe<spool::LayerDef>(record, [](const spool::LayerDef& l) {
                            return absl::StrCat("layer=", l.layer, " name=", l.name);
                          }));
    case RecordKind::kGate:
      return absl::StrCat("gate ", Describe<spool::GateDef>(record, [](const spool::GateDef& g) {
                            return absl::StrCat("backend=", NameOf(g.backend), " ours=", int{g.ours}, " order=", g.order,
                                                " text=", g.text);
                          }));
    case RecordKind::kEnvironment:
      return absl::StrCat("environment ", Describe<spool::EnvironmentDef>(record, [](const spool::EnvironmentDef& e) {
                            return absl::StrCat("key=", e.key, " value=", e.value);
                          }));
    case RecordKind::kThread:
      return absl::StrCat("thread ", Describe<spool::ThreadDef>(record, [](const spool::ThreadDef& t) {
                            return absl::StrCat("tid=", t.tid, " name=", t.name);
                          }));
    case RecordKind::kKernel:
      return absl::StrCat("kernel ", Describe<spool::KernelDef>(record, [](const spool::KernelDef& k) {
                            return absl::StrCat("name=", k.name, " launches=", k.launches, " list=", k.list);
                          }));
    case RecordKind::kIncident:
      return absl::StrCat("incident ", Describe<spool::IncidentDef>(record, [](const spool::IncidentDef& i) {
                            return absl::StrCat(NameOf(i.kind), " path=", i.path, " module=", i.module, " layer=", i.layer,
                                                " thread=", i.thread, " leads_to=", i.leads_to, " type=", i.type,
                                                " message=", i.message, " op=", i.op, " no_path_reason=", i.no_path_reason,
                                                " flags=0x", absl::Hex(i.flags), " create_path=", i.create_path,
                                                " dropout=", i.dropout_p, " bytes=", i.bytes, Tensor("q", i.q),
                                                Tensor("k", i.k), Tensor("v", i.v), Tensor("mask", i.mask));
                          }));
    case RecordKind::kIncidentGate:
      return absl::StrCat("incident gate ", Describe<spool::GateDef>(record, [](const spool::GateDef& g) {
                            return absl::StrCat("backend=", NameOf(g.backend), " ours=", int{g.ours}, " order=", g.order,
                                                " text=", g.text);
                          }));
    case RecordKind::kFact:
      return absl::StrCat("fact ", Describe<spool::FactDef>(record, [](const spool::FactDef& f) {
                            return absl::StrCat("key=", f.key, " value=", f.value);
                          }));
    case RecordKind::kReference:
      return absl::StrCat("reference ", Describe<spool::ReferenceDef>(record, [&](const spool::ReferenceDef& r) {
                            return absl::StrCat("\"", absl::Utf8SafeCEscape(record.payload.substr(sizeof r, r.bytes)), "\"");
                          }));
    case RecordKind::kNote:
      return absl::StrCat("note ", Describe<spool::NoteDef>(record, [](const spool::NoteDef& n) {
                            return absl::StrCat("code=", n.code, " text=", n.text);
                          }));
  }
  return "unknown";
}

void DumpHeader(const Spool& spool, FILE* out) {
  const spool::Header& h = spool.header();
  absl::FPrintF(out,
                "header version=%u pid=%d parent=%d start_ticks=%u rank=%d local_rank=%d world_size=%d forked_from=%d "
                "start_realtime_ns=%u last_event_ns=%u state=%u variants_used=%u log_bytes=%u next_event=%u\n",
                h.version, h.pid, h.parent_pid, h.start_ticks, h.rank, h.local_rank, h.world_size, h.forked_from,
                h.start_realtime_ns, Value(h.last_event_monotonic_ns), static_cast<uint32_t>(Value(h.state)),
                Value(h.variants_used), Value(h.log_bytes), Value(h.next_event));
  for (size_t i = 0; i < static_cast<size_t>(Counter::kCount); ++i) {
    absl::FPrintF(out, "counter %s=%u\n", NameOf(static_cast<Counter>(i)), spool.counter(static_cast<Counter>(i)));
  }
  for (int i = 0; i < spool::kMaxDevices; ++i) {
    const spool::DeviceTotals& d = h.devices[i];
    if (Value(d.allocated_bytes) == 0 && Value(d.peak_bytes) == 0) continue;
    absl::FPrintF(out, "device cuda:%d live=%d peak=%d allocated=%u attributed=%u reserved=%d other=%d all=%d cupti=%d\n", i,
                  Value(d.live_bytes), Value(d.peak_bytes), Value(d.allocated_bytes), Value(d.attributed_bytes),
                  Value(d.reserved_bytes), Value(d.other_bytes), Value(d.device_bytes), Value(d.cupti_bytes));
  }
}

void DumpCounters(const Spool& spool, FILE* out) {
  for (uint32_t slot = 0; slot < spool::kMaxVariants; ++slot) {
    const spool::VariantCounters& c = spool.counters(slot);
    if (Value(c.calls) == 0) continue;
    absl::FPrintF(
        out,
        "counters slot=%u calls=%u peak=%d last_peak=%d kept=%d allocated=%u score=%d host_ns=%u first_ns=%u last_ns=%u "
        "seq_kv=%d..%d device_ns=%u timed=%u\n",
        slot, Value(c.calls), Value(c.peak_bytes), Value(c.last_peak_bytes), Value(c.kept_bytes), Value(c.allocated_bytes),
        Value(c.score_bytes), Value(c.host_ns), Value(c.first_ns), Value(c.last_ns), Value(c.min_seq_kv), Value(c.max_seq_kv),
        Value(c.device_ns), Value(c.timed_launches));
  }
}

}  // namespace

absl::Status DumpSpool(const std::string& path, FILE* out) {
  const absl::StatusOr<Spool> spool = Spool::Open(path);
  if (!spool.ok()) return spool.status();
  DumpHeader(*spool, out);
  for (const SpoolRecord& record : spool->records()) {
    absl::FPrintF(out, "record %u %s\n", record.id, Payload(record));
  }
  DumpCounters(*spool, out);
  for (const spool::Event* e : spool->Events()) {
    absl::FPrintF(out, "event %u end_ns=%u slot=%u thread=%u peak=%d live=%d host_ns=%u layer=%d\n", Value(e->sequence),
                  e->end_ns, e->slot, e->thread, e->peak_bytes, e->live_bytes, e->host_ns, e->layer);
  }
  if (spool->missing_bytes() > 0) absl::FPrintF(out, "truncated missing_bytes=%u\n", spool->missing_bytes());
  if (spool->damaged_bytes() > 0) absl::FPrintF(out, "damaged lost_bytes=%u\n", spool->damaged_bytes());
  return Finish(out);
}

// Every message one level below the report is one line: its field's name, then Protobuf's text form.
absl::Status DumpReport(const Report& report, FILE* out) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  printer.SetUseUtf8StringEscaping(true);
  const auto* reflection = report.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(report, &fields);
  for (const auto* field : fields) {
    const int count = field->is_repeated() ? reflection->FieldSize(report, field) : 1;
    for (int i = 0; i < count; ++i) {
      std::string text;
      printer.PrintFieldValueToString(report, field, field->is_repeated() ? i : -1, &text);
      while (!text.empty() && text.back() == ' ') text.pop_back();
      const std::string name = field->is_repeated() ? absl::StrCat(field->name(), "[", i, "]") : field->name();
      absl::FPrintF(out, "%s %s\n", name, text);
    }
  }
  return Finish(out);
}

}  // namespace attntrace
