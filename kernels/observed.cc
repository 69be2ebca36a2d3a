#include "kernels/observed.h"

#include <cstring>

namespace attntrace::reference {
namespace {

thread_local std::string t_backend;

constexpr struct {
  const char* in_name;
  const char* backend;
} kOperators[] = {{"_flash_attention", "flash"},
                  {"_efficient_attention", "efficient"},
                  {"_cudnn_attention", "cudnn"},
                  {"_fused_attention_overrideable", "overrideable"},
                  {"_scaled_dot_product_attention_math", "math"}};

std::unique_ptr<at::ObserverContext> Enter(const at::RecordFunction& function) {
  const char* const name = function.name();
  if (std::strstr(name, "backward") != nullptr) return nullptr;
  for (const auto& known : kOperators) {
    if (t_backend.empty() && std::strstr(name, known.in_name) != nullptr) t_backend = known.backend;
  }
  return nullptr;
}

}  // namespace

Observed::Observed() {
  t_backend.clear();
  handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(Enter).scopes({at::RecordScope::FUNCTION}));
}
Observed::~Observed() { at::removeCallback(handle_); }

const std::string& Observed::backend() const { return t_backend; }

}  // namespace attntrace::reference
