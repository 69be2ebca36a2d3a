#include "report/reference/findings.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/protocol.h"
#include "report/text_units.h"

namespace attntrace {
namespace {

uint64_t Time(const ReferenceRun& run) { return run.forward_ns() + run.backward_ns(); }

bool Names(const Finding& finding, const ReferenceRun& run) {
  return std::any_of(run.variants().begin(), run.variants().end(), [&](uint32_t id) {
    return std::find(finding.variants().begin(), finding.variants().end(), id) != finding.variants().end();
  });
}

using Runs = std::vector<const ReferenceRun*>;

// The same figure is not held twice: what was shown is the run of the case that stores most.
const ReferenceRun* Heaviest(const Runs& runs) {
  const ReferenceRun* most = nullptr;
  for (const ReferenceRun* run : runs) {
    if (run->purpose() != "observed" || run->status() != "ok") continue;
    if (most == nullptr || run->total_peak_bytes() > most->total_peak_bytes()) most = run;
  }
  return most;
}

bool SameCase(const ReferenceRun& a, const ReferenceRun& b) {
  return std::equal(a.variants().begin(), a.variants().end(), b.variants().begin(), b.variants().end());
}

// A fused kernel that gives the same result; a library's before our own, then the least memory, then the least time.
const ReferenceRun* BestFused(const Runs& runs, const ReferenceRun& observed) {
  const ReferenceRun* best = nullptr;
  const auto key = [](const ReferenceRun& run) { return std::tuple(run.path() == "tiled", run.total_peak_bytes(), Time(run)); };
  for (const ReferenceRun* run : runs) {
    if (run->purpose() == "observed" || run->status() != "ok" || run->alters_result() || !SameCase(*run, observed)) continue;
    if (best == nullptr || key(*run) < key(*best)) best = run;
  }
  return best;
}

int64_t SavedOverLayers(const Finding& finding, const ReferenceRun& observed, const ReferenceRun& fused) {
  const int64_t layers = std::max(1, finding.layers_size());
  const int64_t once = observed.total_peak_bytes() - fused.total_peak_bytes();
  return once + (layers - 1) * (observed.kept_bytes() - fused.kept_bytes());
}

void MarkAdvice(const ReferenceRun& run, const std::string& change, Finding* finding) {
  Advice* marked = nullptr;
  for (Advice& advice : *finding->mutable_advice()) {
    if (advice.change() == change && advice.proof() != "proven") marked = &advice;
    if (marked != nullptr) break;
  }
  if (marked == nullptr) {
    // `allow` on a call that nothing refused is the switch that the rule speaks of already.
    std::vector<std::string> texts;
    for (const std::string& name : run.changes()) {
      if (const reference::ChangeInfo* const info = reference::FindChange(name)) texts.push_back(info->text);
    }
    marked = finding->add_advice();
    marked->set_text(absl::StrJoin(texts, "; "));
    marked->set_by_reference(true);
    marked->set_change(change);
  }
  marked->set_proof("proven");
  marked->set_peak_bytes(run.total_peak_bytes());
  marked->set_time_ns(Time(run));
  marked->set_alters_result(run.alters_result());
  marked->set_backend(run.backend());
}

int64_t BytesOfInputs(const Variant& variant) {
  int64_t bytes = 0;
  for (const Tensor& tensor : variant.tensors()) {
    if (tensor.role() == "mask") continue;
    int64_t size = tensor.dtype() == "float64" ? 8 : tensor.dtype() == "float32" ? 4 : 2;
    for (const int64_t dim : tensor.sizes()) size *= dim;
    bytes += size;
  }
  return bytes;
}

// A block mask or a score_mod that the reference could not make anew.
void LeftOut(const Variant& variant, std::string* note) {
  if (variant.backend() != "flex-dense") return;
  if (variant.score_mod()) absl::StrAppend(note, "run without the program's score_mod");
  if (variant.mask_kind() != "block-mask") return;
  if (variant.mask_content() == "plain-causal" || variant.mask_content() == "all-true") return;
  absl::StrAppend(
      note, note->empty() ? "" : "; ", "run without the program's block mask, ",
      variant.mask_content() == "unread" || variant.mask_content().empty() ? "which was not read" : "which is not causal",
      ": compiled, a mask that hides whole blocks takes less time than this says");
}

void AddNotes(const Report& report, const Runs& runs, Finding* finding) {
  for (const ReferenceRun* run : runs) {
    std::string note;
    if (run->status() == "skipped" || run->status() == "error" || run->status() == "oom") {
      note = absl::StrCat(run->purpose() == "observed" ? "the path taken, " : "", run->path(), ": ", run->status(),
                          run->words().empty() ? "" : ", ", run->words());
    } else if (run->status() == "ok" && run->purpose() == "observed") {
      for (const Variant& variant : report.variants()) {
        if (variant.id() == run->variants(0)) LeftOut(variant, &note);
        if (variant.id() != run->variants(0) && variant.forward() != run->variants(0)) continue;
        const bool backward = variant.phase() == "backward";
        const int64_t here = backward ? run->backward_peak_bytes() : run->forward_peak_bytes();
        const int64_t difference = std::abs(here - variant.peak_bytes());
        // In the program a backward by hand frees what came in on its way (the gradient, copies of q, k, v); here they are
        // held.
        const int64_t held = backward && run->path() == "eager" ? BytesOfInputs(variant) : 0;
        const auto agrees = [&](int64_t apart) { return apart * 10 <= variant.peak_bytes() || apart <= held + (64 << 10); };
        if (variant.peak_bytes() == 0 || agrees(difference)) continue;
        absl::StrAppend(&note, note.empty() ? "" : "; ", backward ? "backward" : "forward", " took ",
                        FormatBytes(variant.peak_bytes()), " in the program");
        if (run->workspace_bytes() > 0 && agrees(std::abs(here + run->workspace_bytes() - variant.peak_bytes()))) {
          absl::StrAppend(&note, ", ", FormatBytes(run->workspace_bytes()),
                          " of it cuBLAS's workspace, which a thread's first product makes and keeps");
        } else {
          absl::StrAppend(&note, " and ", FormatBytes(here), " as ", run->path(), " in the reference");
        }
      }
    }
    if (!note.empty() && std::find(finding->reference_notes().begin(), finding->reference_notes().end(), note) ==
                             finding->reference_notes().end()) {
      finding->add_reference_notes(note);
    }
  }
}

void Clear(Finding* finding) {
  finding->clear_observed_peak_bytes();
  finding->clear_fused_peak_bytes();
  finding->clear_fused_backend();
  finding->clear_peak_ratio();
  finding->clear_time_ratio();
  finding->clear_saved_bytes_all_layers();
  finding->clear_measured_on();
  finding->clear_measured_in_program();
  finding->clear_reference_notes();
  auto* const advice = finding->mutable_advice();
  for (int i = advice->size() - 1; i >= 0; --i) {
    Advice& one = advice->at(i);
    if (one.by_reference()) {
      advice->erase(advice->begin() + i);
      continue;
    }
    if (one.proof() != "proven") continue;
    one.set_proof("unproven");
    one.clear_peak_bytes(), one.clear_time_ns(), one.clear_alters_result(), one.clear_backend();
  }
}

void Apply(const Report& report, Finding* finding) {
  Clear(finding);
  Runs runs;
  for (const ReferenceRun& run : report.reference_runs()) {
    if (Names(*finding, run)) runs.push_back(&run);
  }
  AddNotes(report, runs, finding);
  const ReferenceRun* const observed = Heaviest(runs);
  if (observed == nullptr) return;
  finding->set_observed_peak_bytes(observed->total_peak_bytes());
  finding->set_measured_on(observed->device());
  finding->set_measured_in_program(observed->in_program());
  if (const ReferenceRun* const fused = BestFused(runs, *observed)) {
    finding->set_fused_peak_bytes(fused->total_peak_bytes());
    finding->set_fused_backend(fused->backend());
    if (fused->total_peak_bytes() > 0) {
      finding->set_peak_ratio(static_cast<double>(observed->total_peak_bytes()) /
                              static_cast<double>(fused->total_peak_bytes()));
    }
    if (Time(*fused) > 0) finding->set_time_ratio(static_cast<double>(Time(*observed)) / static_cast<double>(Time(*fused)));
    finding->set_saved_bytes_all_layers(SavedOverLayers(*finding, *observed, *fused));
  }
  for (const ReferenceRun* run : runs) {
    if (run->purpose() != "change" || run->status() != "ok" || !SameCase(*run, *observed)) continue;
    if (run->total_peak_bytes() >= observed->total_peak_bytes()) continue;  // frees a kernel and saves nothing
    MarkAdvice(*run, run->changes(run->changes_size() - 1), finding);
  }
}

}  // namespace

void ApplyReference(Report* report) {
  std::vector<Finding> changed(report->findings().begin(), report->findings().end());
  for (Finding& finding : changed) Apply(*report, &finding);
  for (int i = 0; i < report->findings_size(); ++i) *report->mutable_findings(i) = std::move(changed[static_cast<size_t>(i)]);
}

}  // namespace attntrace
