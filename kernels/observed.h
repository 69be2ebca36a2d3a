// Which backend a piece of code ran on this thread: the operators that SDPA calls are watched, not predicted.
#pragma once

#include <ATen/record_function.h>

#include <string>

namespace attntrace::reference {

class Observed {
 public:
  Observed();
  ~Observed();
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;

  // Empty where no attention operator ran.
  const std::string& backend() const;

 private:
  at::CallbackHandle handle_;
};

}  // namespace attntrace::reference
