#include "report/kernel_label.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace attntrace {
namespace {

constexpr size_t kLongest = 64;

// Up to its template arguments, its parameters or its own end, without namespaces.
absl::string_view Base(absl::string_view name) {
  name = name.substr(0, name.find_first_of("<(,>"));
  if (const size_t scope = name.rfind("::"); scope != absl::string_view::npos) name.remove_prefix(scope + 2);
  return absl::StripAsciiWhitespace(name);
}

bool OnlyLaunches(absl::string_view base) {
  return base == "device_kernel" || base == "Kernel" || base == "Kernel2" || absl::StartsWith(base, "enable_sm");
}

}  // namespace

std::string ShortKernelName(absl::string_view demangled) {
  const std::string plain = absl::StrReplaceAll(demangled, {{"(anonymous namespace)::", ""}, {"<unnamed>::", ""}});
  absl::string_view rest = absl::StripPrefix(plain, "void ");
  absl::string_view base = Base(rest);
  for (size_t arguments; OnlyLaunches(base) && (arguments = rest.find('<')) != absl::string_view::npos; base = Base(rest)) {
    rest.remove_prefix(arguments + 1);
  }
  std::string text(base.empty() ? absl::string_view(plain) : base);
  if (text.size() > kLongest) text = absl::StrCat(text.substr(0, kLongest - 3), "...");
  return text;
}

std::string KernelList(const Variant& variant) {
  std::vector<std::pair<std::string, uint64_t>> list;
  for (const Kernel& kernel : variant.kernels()) {
    std::string name = ShortKernelName(kernel.name());
    const auto known = std::find_if(list.begin(), list.end(), [&](const auto& one) { return one.first == name; });
    if (known != list.end()) {
      known->second += kernel.launches();
    } else {
      list.emplace_back(std::move(name), kernel.launches());
    }
  }
  return absl::StrJoin(list, ", ", [](std::string* out, const auto& one) {
    absl::StrAppend(out, one.first, one.second > 1 ? absl::StrCat(" x", one.second) : "");
  });
}

}  // namespace attntrace
