#include "report/decode/kernels.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "tracer/spool/kernel_names.h"

namespace attntrace {
namespace {

const char* NameOf(KernelKind kind) {
  switch (kind) {
    case KernelKind::kFused:
      return "fused";
    case KernelKind::kPart:
      return "part";
    case KernelKind::kDense:
      return "dense";
    case KernelKind::kLinear:
      return "linear";
    case KernelKind::kOther:
      break;
  }
  return "other";
}

std::string Demangled(const std::string& name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? text : name;
  free(text);
  return result;
}

}  // namespace

void FillKernels(const Definitions& definitions, uint32_t slot, const spool::VariantCounters& counters, Variant* variant) {
  variant->set_kernel_launches(counters.kernel_launches.load(std::memory_order_relaxed));
  variant->set_kernel_calls(counters.kernel_instances.load(std::memory_order_relaxed));
  variant->set_replayed_calls(counters.replayed_calls.load(std::memory_order_relaxed));
  variant->set_replayed_kernels(counters.replayed_kernels.load(std::memory_order_relaxed));
  variant->set_device_ns(counters.device_ns.load(std::memory_order_relaxed));
  variant->set_timed_launches(counters.timed_launches.load(std::memory_order_relaxed));
  const auto records = definitions.Kernels(slot);
  uint32_t newest = 0;
  for (const spool::KernelDef* def : records) newest = std::max(newest, def->list);
  for (const spool::KernelDef* def : records) {
    if (def->list != newest) continue;
    const std::string name = definitions.String(def->name);
    const KernelFacts facts = FactsOfKernel(name);
    Kernel* const kernel = variant->add_kernels();
    kernel->set_name(Demangled(name));
    kernel->set_launches(def->launches);
    kernel->set_kind(NameOf(facts.kind));
    kernel->set_library(facts.library);
  }
}

}  // namespace attntrace
