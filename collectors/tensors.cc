#include "collectors/tensors.h"

#include <ATen/NestedTensorImpl.h>

#include <algorithm>

namespace attntrace {

TensorKind KindOf(const at::Tensor& tensor) noexcept {
  if (!tensor.defined()) return TensorKind::kNone;
  const c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
  const c10::DispatchKeySet keys = impl->key_set();
  // Before anything else: sizes() of such a tensor may call into Python.
  if (keys.has(c10::DispatchKey::Python)) {
    return TensorKind::kWrapper;
  }
  if (keys.has_any(c10::DispatchKeySet({c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper,
                                        c10::DispatchKey::Functionalize}))) {
    return TensorKind::kWrapper;
  }
  if (keys.has_backend(c10::BackendComponent::MetaBit)) return TensorKind::kFake;
  if (tensor.is_nested()) return TensorKind::kNested;
  return TensorKind::kPlain;
}

TensorKind KindOf(const c10::IValue& value) noexcept {
  return value.isTensor() ? KindOf(value.toTensor()) : TensorKind::kNone;
}

Dtype DtypeOf(c10::ScalarType type) noexcept {
  switch (type) {
    case c10::ScalarType::Float:
      return Dtype::kFloat32;
    case c10::ScalarType::Double:
      return Dtype::kFloat64;
    case c10::ScalarType::Half:
      return Dtype::kFloat16;
    case c10::ScalarType::BFloat16:
      return Dtype::kBFloat16;
    case c10::ScalarType::Bool:
      return Dtype::kBool;
    case c10::ScalarType::Char:
      return Dtype::kInt8;
    case c10::ScalarType::Byte:
      return Dtype::kUInt8;
    case c10::ScalarType::Short:
      return Dtype::kInt16;
    case c10::ScalarType::Int:
      return Dtype::kInt32;
    case c10::ScalarType::Long:
      return Dtype::kInt64;
    case c10::ScalarType::ComplexFloat:
      return Dtype::kComplex64;
    case c10::ScalarType::ComplexDouble:
      return Dtype::kComplex128;
    case c10::ScalarType::Float8_e5m2:
    case c10::ScalarType::Float8_e4m3fn:
      return Dtype::kFloat8;
    default:
      return Dtype::kUnknown;
  }
}

spool::TensorDef Describe(const at::Tensor& tensor) noexcept {
  spool::TensorDef def{};
  def.present = 1;
  def.dtype = DtypeOf(tensor.scalar_type());
  const c10::Device device = tensor.device();
  def.device = device.is_cpu() ? DeviceKind::kCpu : device.is_cuda() ? DeviceKind::kCuda : DeviceKind::kOther;
  def.device_index = device.index();
  def.requires_grad = tensor.requires_grad() ? 1 : 0;
  if (tensor.is_nested()) {
    def.nested = 1;
    def.rank = static_cast<uint8_t>(tensor.dim());
    const at::native::NestedTensorImpl* const nested = at::native::get_nested_tensor_impl(tensor);
    def.sizes[0] = nested->opt_size(0).value_or(0);  // components
    return def;
  }
  const c10::IntArrayRef sizes = tensor.sizes();
  const c10::IntArrayRef strides = tensor.strides();
  def.rank = static_cast<uint8_t>(std::min<size_t>(sizes.size(), 255));
  const size_t skip = sizes.size() > spool::kMaxDims ? sizes.size() - spool::kMaxDims : 0;
  for (size_t i = skip; i < sizes.size(); ++i) {
    def.sizes[i - skip] = sizes[i];
    def.strides[i - skip] = strides[i];
  }
  return def;
}

const void* StorageOf(const at::Tensor& tensor) noexcept {
  const c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
  return impl->has_storage() ? impl->unsafe_storage().unsafeGetStorageImpl()->data() : nullptr;
}

int64_t LongestComponent(const at::Tensor& tensor) noexcept {
  const at::Tensor& sizes = at::native::get_nested_tensor_impl(tensor)->get_nested_sizes();  // on the CPU, a row a component
  if (!sizes.defined() || sizes.dim() != 2 || sizes.size(1) == 0 || !sizes.is_contiguous()) return 0;
  const auto* const data = static_cast<const int64_t*>(sizes.const_data_ptr());
  int64_t longest = 0;
  for (int64_t i = 0; i < sizes.size(0); ++i) longest = std::max(longest, data[i * sizes.size(1)]);
  return longest;
}

uint64_t BytesOf(const spool::TensorDef& tensor) noexcept {
  uint64_t elements = 1;
  for (int i = 0; i < std::min<int>(tensor.rank, spool::kMaxDims); ++i) {
    if (tensor.strides[i] != 0) elements *= static_cast<uint64_t>(tensor.sizes[i]);
  }
  return elements * BytesOf(tensor.dtype);
}

}  // namespace attntrace
