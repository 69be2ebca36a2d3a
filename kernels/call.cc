#include "kernels/call.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "kernels/surroundings.h"

namespace attntrace::reference {
namespace {

at::ScalarType ScalarTypeOf(const std::string& name) {
  static const std::pair<const char*, at::ScalarType> kTypes[] = {{"float32", at::kFloat},
                                                                  {"float64", at::kDouble},
                                                                  {"float16", at::kHalf},
                                                                  {"bfloat16", at::kBFloat16},
                                                                  {"bool", at::kBool}};
  for (const auto& [known, type] : kTypes) {
    if (name == known) return type;
  }
  TORCH_CHECK(false, "a reference run has no tensors of dtype ", name);
}

// Sorted by stride, each dimension must step over all that the faster ones span.
bool Overlaps(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 1) dims.emplace_back(strides[i], sizes[i]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t span = 1;
  for (const auto& [stride, size] : dims) {
    if (stride < span) return true;
    span += stride * (size - 1);
  }
  return false;
}

// `fill` gets a tensor of the shape without its expanded dimensions.
template <typename Fill>
at::Tensor Make(const TensorSpec& spec, at::Device device, Fill fill) {
  std::vector<int64_t> sizes = spec.sizes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (spec.strides[i] == 0 && sizes[i] > 1) sizes[i] = 1;
  }
  TORCH_CHECK(!Overlaps(sizes, spec.strides), "a reference run has no tensors whose elements overlap");
  const auto options = at::TensorOptions().dtype(ScalarTypeOf(spec.dtype)).device(device);
  at::Tensor tensor = at::empty_strided(sizes, spec.strides, options);
  fill(tensor);
  if (sizes != spec.sizes) tensor = tensor.expand(spec.sizes);
  if (spec.requires_grad && tensor.is_floating_point()) tensor.requires_grad_(true);
  return tensor;
}

// True where a query may look at a key.
at::Tensor Visible(const at::Tensor& mask, const std::string& content) {
  const auto options = at::TensorOptions().dtype(at::kBool).device(mask.device());
  if (content == "all-true") return at::ones(mask.sizes(), options);
  const bool causal = content == "plain-causal" || content == "causal-padding";
  const bool padding = content == "padding" || content == "causal-padding";
  at::Tensor visible = causal || padding
                           ? at::ones(mask.sizes(), options)
                           : at::rand(mask.sizes(), OwnGenerator(mask.device()), options.dtype(at::kFloat)) < 0.75;
  if (causal && mask.dim() >= 2) visible = visible.tril();
  if (padding && mask.dim() >= 1) {
    const int64_t columns = mask.size(-1);
    visible.narrow(-1, columns - columns / 4, columns / 4).fill_(false);
  }
  if (!causal && !padding && mask.dim() >= 2) visible.diagonal(0, -2, -1).fill_(true);
  return visible;
}

void FillMask(const at::Tensor& mask, const std::string& content) {
  if (mask.scalar_type() == at::kBool) {
    mask.copy_(Visible(mask, content));
  } else if (content == "other" || content == "unread") {
    mask.normal_(0, 1, OwnGenerator(mask.device()));
  } else {
    mask.zero_();
    mask.masked_fill_(Visible(mask, content).logical_not(), -INFINITY);
  }
}

}  // namespace

at::Generator OwnGenerator(at::Device device) {
  static std::mutex mutex;
  static std::map<std::pair<int, int>, at::Generator> own;
  const std::lock_guard<std::mutex> lock(mutex);
  at::Generator& generator = own[{static_cast<int>(device.type()), device.index()}];
  if (!generator.defined()) {
    at::Generator programs = at::globalContext().defaultGenerator(device);
    const std::lock_guard<std::mutex> drawing(programs.mutex());
    generator = programs.clone();
  }
  return generator;
}

at::Device DeviceOf(const Request& request) { return at::Device(request.device); }

TensorCall MakeCall(const Request& request) {
  const at::Device device = DeviceOf(request);
  const auto random = [&](const at::Tensor& tensor) { tensor.normal_(0, 1, OwnGenerator(device)); };
  TensorCall call;
  call.q = Make(request.q, device, random);
  call.k = Make(request.k, device, random);
  call.v = Make(request.v, device, random);
  if (request.mask)
    call.mask = Make(*request.mask, device, [&](const at::Tensor& mask) { FillMask(mask, request.mask_content); });
  call.dropout = request.dropout;
  call.causal = request.causal;
  call.gqa = request.gqa;
  call.scale = request.scale;
  call.seed = request.id + 1;
  return call;
}

int64_t Scores(const TensorCall& call) {
  int64_t scores = call.q.size(-2) * call.k.size(-2);
  for (int64_t i = 0; i < call.q.dim() - 2; ++i) scores *= call.q.size(i);
  return scores;
}

}  // namespace attntrace::reference
