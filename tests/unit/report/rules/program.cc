#include "tests/unit/report/rules/program.h"

#include <google/protobuf/text_format.h>

#include <stdexcept>

#include "report/rules/rules.h"

namespace attntrace::testing {
namespace {

// In the order of Path; frames innermost first.
constexpr char kPlaces[] = R"(
  frames { file: "/home/u/train.py" line: 88 function: "step" module: "__main__" owner: "user" }
  frames { file: "/v/transformers/models/llama/modeling_llama.py" line: 280 function: "LlamaAttention.forward"
           module: "transformers.models.llama.modeling_llama" owner: "transformers" }
  frames { file: "/v/transformers/integrations/sdpa_attention.py" line: 92 function: "sdpa_attention_forward"
           module: "transformers.integrations.sdpa_attention" owner: "transformers" }
  frames { file: "/v/transformers/models/llama/modeling_llama.py" line: 200 function: "eager_attention_forward"
           module: "transformers.models.llama.modeling_llama" owner: "transformers" }
  frames { file: "/v/torch/nn/modules/activation.py" line: 1500 function: "MultiheadAttention.forward"
           module: "torch.nn.modules.activation" owner: "torch" }
  frames { file: "/v/torch/nn/functional.py" line: 6400 function: "multi_head_attention_forward"
           module: "torch.nn.functional" owner: "torch" }
  frames { file: "/home/u/train.py" line: 95 function: "step" module: "__main__" owner: "user" }
  frames { file: "/v/torch/nn/attention/flex_attention.py" line: 1700 function: "flex_attention"
           module: "torch.nn.attention.flex_attention" owner: "torch" }
  frames { file: "/v/torch/_dynamo/eval_frame.py" line: 800 function: "compile_wrapper"
           module: "torch._dynamo.eval_frame" owner: "torch" }
  frames { file: "/v/vendor/attention.py" line: 41 function: "attention_forward" module: "vendor.attention" owner: "vendor" }
  frames { file: "/v/torch/nn/attention/flex_attention.py" line: 1720 function: "flex_attention.<locals>._flex_attention_hop_wrapper"
           module: "torch.nn.attention.flex_attention" owner: "torch" }
  frames { file: "<eval_with_key>.5" line: 12 function: "forward" owner: "torch" }
  call_paths { frames: 0 call_site: 0 user: 0 }
  call_paths { frames: [2, 1, 0] call_site: 0 user: 2 }
  call_paths { frames: [3, 1, 0] call_site: 0 user: 2 }
  call_paths { frames: [5, 4, 0] call_site: 2 user: 2 }
  call_paths { frames: [2, 1, 6] call_site: 0 user: 2 }
  call_paths { frames: [11, 10, 8, 7, 0] call_site: 4 user: 4 }
  call_paths { frames: [11, 10, 8, 7, 8, 0] call_site: 5 user: 5 }
  call_paths { frames: [11, 10, 8, 7, 9, 0] call_site: 4 user: 5 }
  call_paths { frames: [11, 10, 8, 7, 9, 8, 0] call_site: 4 user: 6 }
  call_paths { frames: [11, 8, 7, 8, 0] call_site: 4 user: 4 }
  call_paths { frames: [11, 8, 9, 8, 0] call_site: 2 user: 4 }
)";

template <typename Message>
void Parse(const std::string& text, Message* message) {
  google::protobuf::TextFormat::Parser parser;
  if (!parser.MergeFromString(text, message)) throw std::invalid_argument("not a message: " + text);
}

}  // namespace

Tensor MakeTensor(const std::string& role, const Shape& sizes, const std::string& dtype) {
  Tensor tensor;
  tensor.set_role(role);
  tensor.set_dtype(dtype);
  tensor.set_device("cpu");
  tensor.set_layout("strided");
  tensor.mutable_sizes()->Add(sizes.begin(), sizes.end());
  Shape strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  tensor.mutable_strides()->Add(strides.begin(), strides.end());
  return tensor;
}

Program::Program() {
  Parse(kPlaces, &report);
  Parse("processes { pid: 7 devices { device: 'cpu' peak_bytes: 1000 } }", &report);
}

Variant& Program::Add(const std::string& text, const Shape& q, const Shape& k, const Shape& v) {
  Variant& variant = *report.add_variants();
  Parse(text, &variant);
  if (variant.id() == 0) variant.set_id(static_cast<uint32_t>(report.variants_size()));
  if (variant.phase().empty()) variant.set_phase("forward");
  if (variant.mask_kind().empty()) variant.set_mask_kind("none");
  if (!q.empty()) *variant.add_tensors() = MakeTensor("q", q);
  if (!k.empty()) *variant.add_tensors() = MakeTensor("k", k);
  if (!v.empty()) *variant.add_tensors() = MakeTensor("v", v);
  return variant;
}

Variant& Program::AddBackward(const Variant& forward, uint64_t count, int64_t peak_bytes) {
  Variant backward = forward;
  backward.set_forward(forward.id());
  backward.set_phase("backward");
  backward.set_count(count);
  backward.set_peak_bytes(peak_bytes);
  backward.clear_gates();
  backward.set_id(static_cast<uint32_t>(report.variants_size() + 1));
  return *report.add_variants() = backward;
}

Program& Program::Merge(const std::string& text) {
  Parse(text, &report);
  return *this;
}

std::vector<Finding> Program::Findings(const std::string& rule) {
  RunRules(&report);
  std::vector<Finding> findings;
  for (const Finding& finding : report.findings()) {
    if (rule.empty() || finding.rule() == rule) findings.push_back(finding);
  }
  return findings;
}

std::string LlamaModule(const std::string& selection, const std::string& mask, const std::string& more) {
  return "module { class_name: 'LlamaAttention' class_module: 'transformers.models.llama.modeling_llama' config_class: "
         "'LlamaConfig' "
         "is_causal: 'yes' training: 'yes' attention_mask: '" +
         mask + "' " +
         (selection.empty() ? "selection_state: 'unset'" : "selection_state: 'set' selection: '" + selection + "'") + " " +
         more + " } ";
}

int64_t EvidenceOf(const Finding& finding, const std::string& name) {
  for (const Evidence& evidence : finding.evidence()) {
    if (evidence.name() == name) return evidence.value();
  }
  return -1;
}

std::string EvidenceText(const Finding& finding, const std::string& name) {
  for (const Evidence& evidence : finding.evidence()) {
    if (evidence.name() == name) return evidence.text();
  }
  return "";
}

std::string Codes(const Finding& finding) {
  std::string codes;
  for (const Advice& advice : finding.advice()) {
    if (!advice.code().empty()) codes += advice.code() + "\n";
  }
  return codes;
}

}  // namespace attntrace::testing
