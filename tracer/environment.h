// The environment a traced program starts with: the user's own, with ours added. Nothing the user set is lost.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace attntrace {

class ChildEnvironment {
 public:
  static ChildEnvironment OfThisProcess();

  void Set(absl::string_view name, absl::string_view value);
  void Unset(absl::string_view name);
  // An empty string where it is not set.
  std::string Get(absl::string_view name) const;

  const std::vector<std::string>& entries() const { return entries_; }  // NAME=value

 private:
  std::vector<std::string> entries_;
};

// LD_PRELOAD with `ours` in front, behind the sanitizers' runtimes, which must come first. `current` may hold an attntrace
// preload already, of this or of another installation: it is replaced, never listed twice.
std::string MergePreload(absl::string_view current, absl::string_view ours);

// Whether LD_PRELOAD lists a preload of ours.
bool ListsOurPreload(absl::string_view current);

// The dynamic linker splits LD_PRELOAD at blanks and colons, and nothing can quote them.
bool CanBePreloaded(absl::string_view path);

}  // namespace attntrace
