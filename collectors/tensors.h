// PyTorch's tensors as the spool's PODs. Needs no GIL; never calls into Python.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "tracer/spool/format.h"

namespace attntrace {

// What an event's tensor is to a tracer.
enum class TensorKind : uint8_t {
  kNone,     // not a tensor, or undefined
  kPlain,    // its sizes and storage may be read
  kNested,   // strided nested: no sizes
  kWrapper,  // subclass (FakeTensor, DTensor), functorch level, functionalisation: where it runs, another event follows
  kFake,     // meta: nothing runs
};

TensorKind KindOf(const c10::IValue& value) noexcept;
TensorKind KindOf(const at::Tensor& tensor) noexcept;

// For kPlain and kNested.
spool::TensorDef Describe(const at::Tensor& tensor) noexcept;

Dtype DtypeOf(c10::ScalarType type) noexcept;

// Start of the tensor's storage: what the allocator reported. Null where it has none. For kPlain.
const void* StorageOf(const at::Tensor& tensor) noexcept;

// Rows of the longest component of a kNested tensor of rank 3: what padding makes of every component. 0 where it has none.
int64_t LongestComponent(const at::Tensor& tensor) noexcept;

uint64_t BytesOf(const spool::TensorDef& tensor) noexcept;  // elements x width, broadcast dimensions (stride 0) counted once

}  // namespace attntrace
