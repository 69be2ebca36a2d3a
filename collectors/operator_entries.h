// Where in libtorch_cpu the entries of operators are: at::_ops::<operator>::call and ::redispatch, each of which runs one
// operator and no other.
#pragma once

namespace attntrace {

// Whether `address` lies in an entry of the operator that events call `event_name` ("aten::add"). The first question reads
// libtorch's symbol table, some 20 ms; any thread.
bool MakesOnly(const void* address, const char* event_name);

// Whether `address` lies in libtorch_cpu.
bool IsOfTorch(const void* address) noexcept;

}  // namespace attntrace
