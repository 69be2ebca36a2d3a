// backend-error: a backend that was pinned or chosen refused or failed.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/rules/gates.h"
#include "report/rules/incidents.h"
#include "report/rules/rules.h"
#include "report/rules/selection.h"
#include "report/rules/support.h"

namespace attntrace {
namespace {

using namespace rules;

bool IsDisabled(const Gate& gate) {
  return absl::StrContains(gate.text(), "disabled") || absl::StrContains(gate.text(), "not set");
}

// The incident that carries tensors and gates, as a variant: what gates.h reads of a call.
Variant AsVariant(const Failure& failure) {
  Variant variant;
  for (const Incident* incident : failure.incidents) {
    if (incident->tensors().empty()) continue;
    variant.set_operator_(incident->operator_());
    *variant.mutable_tensors() = incident->tensors();
    *variant.mutable_gates() = incident->gates();
    *variant.mutable_module() = incident->module();
    variant.set_causal(incident->causal());
    variant.set_gqa(incident->gqa());
    variant.set_dropout_p(incident->dropout_p());
    break;
  }
  return variant;
}

void JudgeRefused(const Report& report, const Failure& failure, Finding* finding) {
  const Variant variant = AsVariant(failure);
  std::vector<std::string> words, open;
  for (const Refusal& refusal : RefusalsOf(variant)) {
    if (refusal.kind != GateKind::kDisabled) words.push_back(InWords(refusal, variant));
  }
  std::vector<std::string> refused, disabled;
  for (const Gate& gate : variant.gates()) (IsDisabled(gate) ? disabled : refused).push_back(gate.backend());
  for (const std::string& name : disabled) {
    const bool otherwise = std::find(refused.begin(), refused.end(), name) != refused.end();
    if (!otherwise && std::find(open.begin(), open.end(), name) == open.end()) open.push_back(name);
  }
  std::string why = "scaled_dot_product_attention had no kernel that is both allowed and able";
  std::string pinned;
  for (const Incident* incident : failure.incidents) {
    if (pinned.empty()) pinned = incident->pinned_at();
  }
  if (!pinned.empty()) absl::StrAppend(&why, "; the backends were pinned at ", pinned.substr(pinned.rfind('/') + 1));
  absl::StrAppend(&why, words.empty() ? "." : absl::StrCat(". ", absl::StrJoin(words, ". "), "."));
  finding->set_why(why);
  for (const Refusal& refusal : RefusalsOf(variant)) {
    if (refusal.kind != GateKind::kDisabled && refusal.kind != GateKind::kUnavailable) {
      Advise(refusal, variant, finding);
    }
  }
  if (!open.empty()) {
    AddText(finding, "would take it", JoinWords(open));
    AddAdvice(finding, absl::StrCat("or allow ", JoinWords(open), " beside it: nothing but the pin keeps ",
                                    open.size() == 1 ? "it" : "them", " from these inputs"));
  }
  AddAdvice(finding, "or allow math, which takes everything and stores the scores", "sdpa_kernel([..., SDPBackend.MATH])");
}

// The name that was asked for: of the layer, or of a whole model, as Transformers' words quote it.
std::string AskedName(const Incident& incident) {
  constexpr char kQuoted[] = "attn_implementation=\"";
  const std::string& message = incident.message();
  const size_t start = message.find(kQuoted);
  if (start == std::string::npos) return incident.module().selection().empty() ? message : incident.module().selection();
  const std::string rest = message.substr(start + sizeof(kQuoted) - 1);
  return rest.substr(0, rest.find('"'));
}

void JudgeUnsupported(const Report& report, const Incident& incident, Finding* finding) {
  finding->set_title("the model's class does not support the selected attention implementation");
  finding->set_why(absl::StrCat("Transformers refused to make the model: ", InWords(incident)));
  AddRegistered(report, MaskOf(incident), finding);
  AddAdvice(finding, "ask for none: Transformers selects sdpa where the class supports it, and eager where it does not");
}

void JudgeUnknownName(const Report& report, const Incident& incident, Finding* finding) {
  const PassedMask mask = MaskOf(incident);
  finding->set_title("the selected attention implementation is not registered");
  finding->set_why(absl::StrCat(LayerOf(report, incident), " asks for \"", AskedName(incident),
                                "\", which ALL_ATTENTION_FUNCTIONS does not have."));
  AddRegistered(report, mask, finding);
  AdviseSelection(report, mask, "select one that is registered, or register this one before the first call", finding);
}

void JudgeFlex(const Incident& incident, Finding* finding) {
  const std::string& message = incident.message();
  const bool backward =
      absl::StrContains(message, "does not support backward") || absl::StrContains(message, "only supports inference");
  if (!backward) {
    finding->set_title("flex_attention's kernel does not take this call");
    finding->set_why(absl::StrCat("Compiling flex_attention raised ", InWords(incident)));
    if (absl::StrContains(message, "embedding dimension")) {
      AddAdvice(finding, "pad the heads to 16, the smallest that the kernel takes, and keep the scale",
                "flex_attention(*(F.pad(x, (0, 16 - D)) for x in (q, k, v)), scale=D**-0.5)[..., :D]");
    }
    AddAdvice(finding, "change what the message names, or select sdpa", "attn_implementation=\"sdpa\"");
    return;
  }
  finding->set_title("flex_attention has no backward on a CPU");
  const auto inputs = incident.facts().find("flex.requires_grad");
  finding->set_why(
      inputs == incident.facts().end()
          ? "flex_attention computes inference only on a CPU, and refused inputs that require a gradient, or to return "
            "the log-sum-exp."
          : absl::StrCat("flex_attention computes inference only on a CPU, and refused inputs that require a gradient: ",
                         inputs->second, "."));
  AddAdvice(finding, "on a CPU select sdpa for training", "attn_implementation=\"sdpa\"");
  AddAdvice(finding, "or run the forward alone", "with torch.no_grad(): ...");
}

void JudgeLimit(const Incident& incident, Finding* finding) {
  const auto fact = [&](const char* name) {
    const auto at = incident.facts().find(name);
    return at == incident.facts().end() ? std::string() : at->second;
  };
  std::string guard = fact("dynamo.guard"), function = fact("dynamo.recompiled");
  const std::string& message = incident.message();
  if (const size_t stance = message.find("guard failure(s):"); stance != std::string::npos) {  // with the guards behind it
    guard = message.substr(std::min(message.size(), message.find("- ", stance)));
    if (const size_t colon = guard.find(": "); colon != std::string::npos) guard = guard.substr(colon + 2);
    guard = guard.substr(0, guard.find('\n'));
    finding->set_title("a recompile was needed, and Dynamo was told to fail there");
    finding->set_why(
        "torch.compiler.set_stance(\"fail_on_recompile\") turns it into an error; otherwise the next few are compiled, until "
        "the recompile limit.");
  } else {
    finding->set_title("the recompile limit was reached, and Dynamo was told to fail there");
    finding->set_why(
        absl::StrCat(function.empty() ? "" : absl::StrCat("Dynamo compiled ", function, " anew until its limit. "),
                     "fullgraph=True, or torch._dynamo.config.fail_on_recompile_limit_hit, turns the limit into an error. ",
                     InWords(incident), "."));
  }
  if (!guard.empty()) {
    finding->set_why(absl::StrCat(finding->why(), " The guard that kept failing: ", guard, "."));
    AddText(finding, "guard", guard);
  }
  if (!function.empty()) AddText(finding, "recompiled", function);
  AddAdvice(
      finding,
      "keep what it is guarded on the same from call to call: lengths, mask_mod and score_mod objects, requires_grad; or let "
      "lengths vary",
      "torch.compile(flex_attention, dynamic=True)");
  if (absl::StartsWith(message, "Detected recompile")) {
    AddAdvice(finding, "or leave the stance at its default around this call", "torch.compiler.set_stance(\"default\")");
  } else {
    AddAdvice(finding, "or raise the limit", "torch._dynamo.config.recompile_limit = 64");
  }
}

void JudgeLaunch(const Report& report, const Incident& incident, Finding* finding) {
  const LargeGrid grid = BeyondGrid(report);
  std::string who;
  if (grid.variant != nullptr) {
    finding->add_variants(grid.variant->id());
    finding->set_phase(grid.variant->phase());
    who = absl::StrCat("The attention at ", Place(CallSite(report, *grid.variant)), " (", grid.variant->backend(), ")");
  } else {
    who = absl::StrCat("The attention at ", Place(CallSite(report, *grid.incident)), " (", grid.incident->operator_(), ")");
  }
  finding->set_title("a grid was asked for that CUDA does not take");
  const Frame* surfaced = CallSite(report, incident);
  finding->set_why(absl::StrCat(
      who, " has a batch of ", grid.batch, grid.batch > kMostBlocks ? "" : absl::StrCat(", ", grid.blocks, " with its heads"),
      ", and a grid's second and third axis end at ", kMostBlocks, ". Launches are asynchronous: the error surfaced ",
      surfaced == nullptr ? "later" : absl::StrCat("at ", Place(surfaced)), ", as ", InWords(incident), "."));
  AddCount(finding, "batch", grid.batch);
  AddCount(finding, "most blocks", kMostBlocks);
  AddAdvice(finding, "split the batch",
            "torch.cat([attend(*part) for part in zip(q.split(32768), k.split(32768), v.split(32768))])");
}

}  // namespace

void CheckBackendError(const Report& report, std::vector<Finding>* findings) {
  for (const Failure& failure : FindFailures(report)) {
    Finding finding = Describe(report, failure);
    switch (failure.fault) {
      case Fault::kRefused:
        JudgeRefused(report, failure, &finding);
        break;
      case Fault::kUnknownName:
        JudgeUnknownName(report, failure.first(), &finding);
        break;
      case Fault::kUnsupported:
        JudgeUnsupported(report, failure.first(), &finding);
        break;
      case Fault::kNoFlexBackward:
        JudgeFlex(failure.first(), &finding);
        break;
      case Fault::kRecompileLimit:
        JudgeLimit(failure.first(), &finding);
        break;
      case Fault::kLaunch:
        JudgeLaunch(report, failure.first(), &finding);
        break;
      case Fault::kOther:
        finding.set_why(absl::StrCat(LayerOf(report, failure.first()), ": its attention raised ", InWords(failure.first())));
        AddAdvice(&finding, "read the exception's own words; `attntrace report --format json` has its whole call path");
        break;
      default:
        continue;
    }
    if (!failure.fatal) finding.set_why(absl::StrCat(finding.why(), " The program caught it and went on."));
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
