#include "collectors/python_tensors.h"

#include <ATen/PythonTorchFunctionTLS.h>

#include "collectors/flex_facts.h"

namespace attntrace {
namespace {

using python::Object;
using python::OwnAttribute;
using python::Py;
using python::Ref;

// A mode of the program's does not see what we ask a tensor.
class NoTorchFunction {
 public:
  NoTorchFunction() noexcept { Tls::set_disabled_state(at::impl::TorchFunctionDisabledState::ALL_DISABLED); }
  ~NoTorchFunction() { Tls::set_disabled_state(former_); }
  NoTorchFunction(const NoTorchFunction&) = delete;
  NoTorchFunction& operator=(const NoTorchFunction&) = delete;

 private:
  using Tls = at::impl::PythonTorchFunctionTLS;
  at::impl::TorchFunctionDisabledState former_ = Tls::get_disabled_state();
};

}  // namespace

at::Tensor TensorOf(Object* object) {
  Object* const torch = python::LoadedModule("torch");
  Object* const plain = torch != nullptr ? OwnAttribute(torch, "Tensor") : nullptr;
  if (object == nullptr || plain == nullptr || python::TypeOf(object) != plain) return {};
  const NoTorchFunction quiet;
  const Ref address(Py().PyObject_GetAttrString(object, "_cdata"));
  if (!address || python::TypeOf(address.get()) != Py().long_type) {
    Py().PyErr_Clear();
    return {};
  }
  auto* const impl = reinterpret_cast<c10::TensorImpl*>(Py().PyLong_AsLong(address.get()));
  return at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(impl));
}

void ReadRefusedInputs(Object* flex_frame, VariantFacts* facts) {
  std::string names;
  for (const char* const name : {"query", "key", "value"}) {
    const Ref argument = LocalNamed(flex_frame, name);
    const at::Tensor tensor = argument ? TensorOf(argument.get()) : at::Tensor();
    if (tensor.defined() && tensor.requires_grad()) names += (names.empty() ? "" : ", ") + std::string(name);
  }
  if (!names.empty()) facts->emplace_back("flex.requires_grad", names);
}

}  // namespace attntrace
