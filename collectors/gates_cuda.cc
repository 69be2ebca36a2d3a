#include "collectors/gates_cuda.h"

#include <ATen/core/grad_mode.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/record_function.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <algorithm>
#include <string>

#include "collectors/mapped.h"

namespace attntrace {
namespace {

using Params = sdp::sdp_params;
using Ask = bool (*)(const Params&, bool debug);

struct CudaBackend {
  Backend backend;
  Ask ask;
};

const std::vector<CudaBackend>& Backends() {
  static const auto* const backends = [] {
    auto* const found = new std::vector<CudaBackend>;
    void* const library = MappedLibrary("libtorch_cuda");
    const auto look = [&](Backend backend, const char* name) {
      if (void* const ask = library != nullptr ? dlsym(library, name) : nullptr) found->push_back({backend, reinterpret_cast<Ask>(ask)});
    };
    look(Backend::kFlash, "_ZN3sdp23can_use_flash_attentionERKNS_10sdp_paramsEb");
    look(Backend::kEfficient, "_ZN3sdp31can_use_mem_efficient_attentionERKNS_10sdp_paramsEb");
    look(Backend::kCudnn, "_ZN3sdp23can_use_cudnn_attentionERKNS_10sdp_paramsEb");
    return found;
  }();
  return *backends;
}

class Listener final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    if (!text.empty()) text += ' ';
    text += warning.msg();
  }
  std::string text;
};

struct Answer {
  bool takes = false, failed = false;
  std::string text;
};

Answer AskOnce(const CudaBackend& backend, const Params& params) noexcept {
  Answer answer;
  Listener listener;
  const c10::WarningUtils::WarningHandlerGuard handler(&listener);
  const c10::WarningUtils::WarnAlways always(true);
  try {
    answer.takes = backend.ask(params, true);
  } catch (...) {  // a check that cannot be asked about such inputs
    answer.failed = true;
  }
  answer.text = listener.text;
  return answer;
}

// A CUDA tensor of these sizes, contiguous, whose memory is claimed and not there.
at::Tensor Shape(const at::Tensor& like, at::IntArrayRef sizes, at::ScalarType dtype, bool requires_grad) {
  int64_t elements = 1;
  for (const int64_t size : sizes) elements *= size;
  c10::DataPtr nowhere(reinterpret_cast<void*>(uintptr_t{1} << 20), like.device());
  c10::Storage storage(c10::Storage::use_byte_size_t(), static_cast<size_t>(elements) * c10::elementSize(dtype), std::move(nowhere),
                       nullptr, false);
  at::Tensor tensor =
      at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CUDA), c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  if (requires_grad) tensor.set_requires_grad(true);
  return tensor;
}

at::Tensor Resized(const at::Tensor& like, std::vector<int64_t> sizes) {
  return Shape(like, sizes, like.scalar_type(), like.requires_grad());
}

template <typename Change>
bool ForEach(Params* params, Change change) {
  bool changed = false;
  for (at::Tensor* const tensor : {&params->query, &params->key, &params->value}) {
    std::vector<int64_t> sizes = tensor->sizes().vec();
    if (!change(&sizes)) continue;
    *tensor = Resized(*tensor, sizes);
    changed = true;
  }
  return changed;
}

bool Widen(Params* params, int64_t width) {
  return ForEach(params, [width](std::vector<int64_t>* sizes) {
    if (sizes->empty() || sizes->back() == width) return false;
    sizes->back() = width;
    return true;
  });
}

// One cause removed each. False where the inputs have none of it.
using Remove = bool (*)(Params*);
constexpr Remove kRemovals[] = {
    [](Params* p) { return p->dropout != 0 ? (p->dropout = 0, true) : false; },
    [](Params* p) {
      if (!p->attn_mask.has_value() || !p->attn_mask->requires_grad()) return false;
      p->attn_mask = p->attn_mask->detach();
      return true;
    },
    [](Params* p) { return p->attn_mask.has_value() ? (p->attn_mask = std::nullopt, true) : false; },
    [](Params* p) { return p->is_causal ? (p->is_causal = false, true) : false; },
    [](Params* p) {
      return ForEach(p, [](std::vector<int64_t>* sizes) {
        if (sizes->size() != 3) return false;
        sizes->insert(sizes->begin(), 1);
        return true;
      });
    },
    [](Params* p) {  // the strides that a copy would have
      const bool strided = !p->query.is_contiguous() || !p->key.is_contiguous() || !p->value.is_contiguous();
      for (at::Tensor* const t : {&p->query, &p->key, &p->value}) *t = Resized(*t, t->sizes().vec());
      return strided;
    },
    [](Params* p) {
      if (p->query.scalar_type() == at::kBFloat16 && p->key.scalar_type() == at::kBFloat16 && p->value.scalar_type() == at::kBFloat16) {
        return false;
      }
      for (at::Tensor* const t : {&p->query, &p->key, &p->value}) *t = Shape(*t, t->sizes(), at::kBFloat16, t->requires_grad());
      return true;
    },
    [](Params* p) {  // keys and values repeated to as many heads as there are queries
      if (p->query.dim() != 4 || p->key.dim() != 4 || p->value.dim() != 4 || p->query.size(1) == p->key.size(1)) return false;
      for (at::Tensor* const t : {&p->key, &p->value}) *t = Resized(*t, {t->size(0), p->query.size(1), t->size(2), t->size(3)});
      p->enable_gqa = false;
      return true;
    },
    [](Params* p) {
      const int64_t widest = std::max({p->query.size(-1), p->key.size(-1), p->value.size(-1)});
      return Widen(p, (widest + 7) / 8 * 8);
    },
    [](Params* p) { return p->query.size(-1) > 256 && Widen(p, 256); },
    [](Params* p) { return p->query.size(-1) > 128 && Widen(p, 128); },
    [](Params* p) {
      return ForEach(p, [](std::vector<int64_t>* sizes) {
        if (sizes->size() < 2 || (*sizes)[sizes->size() - 2] != 0) return false;
        (*sizes)[sizes->size() - 2] = 64;
        return true;
      });
    },
    [](Params* p) {
      const bool grad = p->query.requires_grad() || p->key.requires_grad() || p->value.requires_grad();
      for (at::Tensor* const t : {&p->query, &p->key, &p->value}) *t = Shape(*t, t->sizes(), t->scalar_type(), false);
      return grad;
    },
};

void TakeOf(const CudaBackend& backend, Params params, bool plain, std::vector<GateText>* gates) {
  constexpr int kMost = 12;
  Answer answer = AskOnce(backend, params);
  for (int i = 0; i < kMost && !answer.takes && !answer.failed; ++i) {
    const bool ours = answer.text.empty();
    gates->push_back({backend.backend, ours, ours ? std::string("The backend refuses these inputs without a word.") : answer.text});
    if (!plain) return;
    bool helped = false;
    for (const Remove remove : kRemovals) {
      Params fewer = params;
      if (!remove(&fewer)) continue;
      const Answer next = AskOnce(backend, fewer);
      if (next.failed || (!next.takes && next.text == answer.text)) continue;
      params = fewer;
      answer = next;
      helped = true;
      break;
    }
    if (!helped) return;
  }
}

bool IsPlain(const at::Tensor& tensor) { return !tensor.is_nested() && tensor.layout() == at::kStrided; }

}  // namespace

void TakeCudaGates(const SdpaInputs& inputs, std::vector<GateText>* gates) {
  const at::DisableRecordFunctionGuard quiet;
  const at::NoGradGuard no_grad;
  const Params params{inputs.q, inputs.k, inputs.v, inputs.mask, inputs.dropout_p, inputs.causal, inputs.gqa};
  const bool plain = IsPlain(inputs.q) && IsPlain(inputs.k) && IsPlain(inputs.v);
  for (const CudaBackend& backend : Backends()) TakeOf(backend, params, plain, gates);
}

}  // namespace attntrace
