#include "collectors/mask.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdlib>
#include <vector>

#include "collectors/tensors.h"

namespace attntrace {
namespace {

enum class Cell : uint8_t { kOff, kOn, kBias };

Cell CellOf(bool value) noexcept { return value ? Cell::kOn : Cell::kOff; }
template <typename Float>
Cell CellOf(Float value) noexcept {
  const auto number = static_cast<float>(value);
  if (number == 0.0f) return Cell::kOn;
  return number <= -1e4f ? Cell::kOff : Cell::kBias;  // float16's lowest value is -65504
}

// What all planes seen so far agree with.
struct Agreement {
  bool all_true = true, causal = true, padding = true, causal_padding = true;
  bool Any() const noexcept { return all_true || causal || padding || causal_padding; }
};

template <typename Value>
void ReadPlane(const Value* data, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
               Agreement* agreement) {
  std::vector<uint8_t> keys(static_cast<size_t>(columns), 0);  // whether any query attends to the key
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const Cell cell = CellOf(data[i * row_stride + j * column_stride]);
      if (cell == Cell::kBias) {
        *agreement = {false, false, false, false};
        return;
      }
      if (cell == Cell::kOn) keys[static_cast<size_t>(j)] = 1;
    }
  }
  for (int64_t i = 0; i < rows && agreement->Any(); ++i) {
    // A query that may see nothing is left alone by some libraries and opened to every key by others; it decides nothing.
    bool sees_a_key = false;
    for (int64_t j = 0; j <= i && j < columns; ++j) sees_a_key = sees_a_key || keys[static_cast<size_t>(j)] != 0;
    for (int64_t j = 0; j < columns; ++j) {
      const bool on = CellOf(data[i * row_stride + j * column_stride]) == Cell::kOn;
      const bool key = keys[static_cast<size_t>(j)] != 0;
      agreement->all_true = agreement->all_true && on;
      agreement->causal = agreement->causal && on == (j <= i);
      agreement->padding = agreement->padding && on == key;
      agreement->causal_padding = agreement->causal_padding && (!sees_a_key || on == (j <= i && key));
    }
  }
}

template <typename Value>
MaskContent Read(const at::Tensor& mask) {
  const int64_t rank = mask.dim();
  const int64_t rows = mask.size(-2), columns = mask.size(-1);
  const auto* const data = static_cast<const Value*>(mask.const_data_ptr());
  int64_t planes = 1;
  for (int64_t d = 0; d < rank - 2; ++d) planes *= mask.stride(d) == 0 ? 1 : mask.size(d);
  Agreement agreement;
  for (int64_t plane = 0; plane < planes && agreement.Any(); ++plane) {
    int64_t offset = 0, rest = plane;
    for (int64_t d = rank - 3; d >= 0; --d) {
      if (mask.stride(d) == 0) continue;
      offset += rest % mask.size(d) * mask.stride(d);
      rest /= mask.size(d);
    }
    ReadPlane(data + offset, rows, columns, mask.stride(-2), mask.stride(-1), &agreement);
  }
  if (agreement.all_true) return MaskContent::kAllTrue;
  if (agreement.causal) return MaskContent::kPlainCausal;
  if (agreement.padding) return MaskContent::kPadding;
  return agreement.causal_padding ? MaskContent::kCausalPadding : MaskContent::kOther;
}

// The tensor's own elements on the host, without what it is broadcast to; only where they lie side by side, so that the device
// makes no copy first. Undefined where they do not, or are too many.
at::Tensor CopyToHost(const at::Tensor& tensor) {
  std::vector<int64_t> sizes = tensor.sizes().vec();
  int64_t elements = 1;
  for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
    if (tensor.stride(d) == 0) sizes[static_cast<size_t>(d)] = 1;
    if (sizes[static_cast<size_t>(d)] == 1) continue;
    if (tensor.stride(d) != elements) return {};
    elements *= sizes[static_cast<size_t>(d)];
  }
  if (elements > kMaxCopiedElements) return {};
  const at::DisableRecordFunctionGuard quiet;
  const at::NoGradGuard no_grad;
  // A mode that stands between this thread's operators and their kernels is the program's.
  const c10::impl::ExcludeDispatchKeyGuard past_modes(
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot, c10::DispatchKey::PythonDispatcher,
                           c10::DispatchKey::FuncTorchDynamicLayerFrontMode, c10::DispatchKey::FuncTorchDynamicLayerBackMode}));
  // Memory of our own, so that no allocator of the program's reports it.
  void* const memory = malloc(static_cast<size_t>(elements) * tensor.element_size());
  if (memory == nullptr) return {};
  at::Tensor copy = at::from_blob(memory, sizes, free, at::TensorOptions(tensor.scalar_type()).device(at::kCPU));
  copy.copy_(tensor.as_strided(sizes, copy.strides()));
  return copy.expand(tensor.sizes());
}

template <typename Value>
int64_t Sum(const Value* data, at::IntArrayRef sizes, at::IntArrayRef strides) noexcept {
  if (sizes.empty()) return *data;
  int64_t sum = 0;
  for (int64_t i = 0; i < sizes[0]; ++i) sum += Sum(data + i * strides[0], sizes.slice(1), strides.slice(1));
  return sum;
}

}  // namespace

MaskContent ReadMask(const at::Tensor& mask) noexcept {
  try {
    if (mask.is_cuda() && !mask.is_nested() && mask.layout() == at::kStrided && mask.dim() >= 2 && mask.numel() != 0 &&
        !mask.is_neg()) {
      const at::Tensor copy = CopyToHost(mask);
      return copy.defined() ? ReadMask(copy) : MaskContent::kUnread;
    }
    if (!mask.is_cpu() || mask.is_nested() || mask.layout() != at::kStrided || mask.dim() < 2 || mask.numel() == 0 ||
        mask.numel() > kMaxMaskElements || mask.is_neg()) {
      return MaskContent::kUnread;
    }
    switch (mask.scalar_type()) {
      case at::kBool:
        return Read<bool>(mask);
      case at::kFloat:
        return Read<float>(mask);
      case at::kDouble:
        return Read<double>(mask);
      case at::kHalf:
        return Read<at::Half>(mask);
      case at::kBFloat16:
        return Read<at::BFloat16>(mask);
      default:
        return MaskContent::kUnread;
    }
  } catch (...) {
    return MaskContent::kUnread;
  }
}

bool SumCounts(const at::Tensor& counts, int64_t* sum) noexcept {
  try {
    if (KindOf(counts) != TensorKind::kPlain || counts.layout() != at::kStrided || counts.numel() == 0 ||
        counts.numel() > kMaxCopiedElements || (!counts.is_cpu() && !counts.is_cuda())) {
      return false;
    }
    const at::Tensor here = counts.is_cuda() ? CopyToHost(counts) : counts;
    if (!here.defined()) return false;
    if (here.scalar_type() == at::kInt) {
      *sum = Sum(static_cast<const int32_t*>(here.const_data_ptr()), here.sizes(), here.strides());
    } else if (here.scalar_type() == at::kLong) {
      *sum = Sum(static_cast<const int64_t*>(here.const_data_ptr()), here.sizes(), here.strides());
    } else {
      return false;
    }
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace attntrace
