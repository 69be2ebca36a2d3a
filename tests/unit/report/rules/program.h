// Small reports for the tests of the rules: a program's frames and call paths, and variants in Protobuf's text format.
#pragma once

#include <string>
#include <vector>

#include "report/report.pb.h"
#include "tests/unit/catch.h"

namespace attntrace::testing {

#if CATCH_VERSION_MAJOR >= 3
inline auto Contains(const std::string& text) { return Catch::Matchers::ContainsSubstring(text); }
#else
using Catch::Matchers::Contains;
#endif

// Numbers for Variant.call_path in every Program. The flex paths are what PyTorch 2.11 shows.
enum Path : uint32_t {
  kUserCall = 1,        // train.py:88 calls the operator
  kSdpaInLlama,         // train.py:88 -> LlamaAttention -> sdpa_attention_forward
  kEagerInLlama,        // train.py:88 -> LlamaAttention -> eager_attention_forward
  kMultiheadAttention,  // train.py:88 -> nn.MultiheadAttention
  kSdpaRecomputed,      // train.py:95 (backward) -> LlamaAttention -> sdpa_attention_forward
  kFlex,                // train.py:88 -> flex_attention
  kFlexGivenUp,         // train.py:88 -> Dynamo's wrapper -> flex_attention
  kFlexInVendor,        // train.py:88 -> vendor/attention.py:41 -> flex_attention
  kFlexBelowBreak,      // train.py:88 -> Dynamo's wrapper -> vendor/attention.py:41 -> flex_attention
  kFlexOtherBackend,    // train.py:88 -> Dynamo's wrapper -> flex_attention, compiled
  kFlexInRegion,        // train.py:88 -> Dynamo's wrapper -> vendor/attention.py:41, compiled with flex_attention inlined
};

using Shape = std::vector<int64_t>;

class Program {
 public:
  Program();

  // A variant from text, with an id of its own, contiguous q, k and v where shapes are given, and `forward` if it is not 0.
  Variant& Add(const std::string& text, const Shape& q = {}, const Shape& k = {}, const Shape& v = {});
  // A backward of `forward`: same call path, backend and module.
  Variant& AddBackward(const Variant& forward, uint64_t count, int64_t peak_bytes);
  // More of the report, as text.
  Program& Merge(const std::string& text);

  // The findings, all rules run; of one rule where a name is given.
  std::vector<Finding> Findings(const std::string& rule = "");

  Report report;
};

// A Transformers attention module, as the field `module` of a variant.
std::string LlamaModule(const std::string& selection, const std::string& mask, const std::string& more = "");

Tensor MakeTensor(const std::string& role, const Shape& sizes, const std::string& dtype = "float32");

// -1 where there is no such evidence.
int64_t EvidenceOf(const Finding& finding, const std::string& name);
std::string EvidenceText(const Finding& finding, const std::string& name);
// The advices' codes, one a line.
std::string Codes(const Finding& finding);

}  // namespace attntrace::testing
