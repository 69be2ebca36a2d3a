#include "collectors/mask.h"

#include <ATen/ops/from_blob.h>
#include <ATen/record_function.h>
#include <ATen/core/grad_mode.h>

#include <cstdlib>
#include <memory>
#include <vector>

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
void ReadPlane(const Value* data, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride, Agreement* agreement) {
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

// The mask's own elements, without what it is broadcast to; only where they lie side by side, so that the device makes no copy first.
MaskContent ReadCopied(const at::Tensor& mask) {
  std::vector<int64_t> sizes = mask.sizes().vec();
  int64_t elements = 1;
  for (int64_t d = mask.dim() - 1; d >= 0; --d) {
    if (mask.stride(d) == 0) sizes[static_cast<size_t>(d)] = 1;
    if (sizes[static_cast<size_t>(d)] == 1) continue;
    if (mask.stride(d) != elements) return MaskContent::kUnread;
    elements *= sizes[static_cast<size_t>(d)];
  }
  if (elements > kMaxCopiedElements) return MaskContent::kUnread;
  const at::DisableRecordFunctionGuard quiet;
  const at::NoGradGuard no_grad;
  // Memory of our own, so that no allocator of the program's reports it.
  const std::unique_ptr<void, void (*)(void*)> memory(malloc(static_cast<size_t>(elements) * mask.element_size()), free);
  if (memory == nullptr) return MaskContent::kUnread;
  at::Tensor copy = at::from_blob(memory.get(), sizes, at::TensorOptions(mask.scalar_type()).device(at::kCPU));
  copy.copy_(mask.as_strided(sizes, copy.strides()));
  return ReadMask(copy.expand(mask.sizes()));
}

}  // namespace

MaskContent ReadMask(const at::Tensor& mask) noexcept {
  try {
    if (mask.is_cuda() && !mask.is_nested() && mask.layout() == at::kStrided && mask.dim() >= 2 && mask.numel() != 0 &&
        !mask.is_neg()) {
      return ReadCopied(mask);
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

}  // namespace attntrace
