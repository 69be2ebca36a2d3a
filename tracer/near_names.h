// "Did you mean": the names nearest to a mistyped one. For every closed list that a user types a word of.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace attntrace {

// Single-character edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`.
size_t EditDistance(absl::string_view a, absl::string_view b);

// Names of `known` within a third of `word`'s length (at least 2) or that begin with it, nearest first, at most three.
std::vector<std::string> NearNames(absl::string_view word, const std::vector<absl::string_view>& known);

// ", did you mean a, b or c?", or an empty string.
std::string DidYouMean(absl::string_view word, const std::vector<absl::string_view>& known);

}  // namespace attntrace
