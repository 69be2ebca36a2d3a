// Text in columns: what a terminal shows of UTF-8, measured and cut. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace attntrace {

// Columns that UTF-8 text takes: one a code point, which holds for all that a report is made of but wide scripts.
int DisplayWidth(absl::string_view text);

// Control characters become '?': a file name cannot move the reader's cursor.
std::string Printable(absl::string_view text);

// Filled up with blanks to `width` columns, on the right or on the left; longer text stays as it is.
std::string PadRight(absl::string_view text, int width);
std::string PadLeft(absl::string_view text, int width);

// Cut to `width` columns with an ellipsis, keeping the start or the end.
std::string KeepStart(absl::string_view text, int width);
std::string KeepEnd(absl::string_view text, int width);

// Of a path, whole folders are dropped from the front: "…/examples/train.py:25".
std::string KeepPathEnd(absl::string_view path, int width);

// Breaks at blanks into lines of at most `width` columns; a longer word has a line of its own. A number stays with its unit. At
// least one line.
std::vector<std::string> Wrap(absl::string_view text, int width);

// "0-3, 5" for sorted numbers.
std::string Ranges(const std::vector<int32_t>& sorted);

// "1 process", "2 processes".
std::string Count(uint64_t count, absl::string_view one, absl::string_view many);

// Colour on a terminal that wants it; otherwise the text as it is. Pad before painting: an escape takes no column.
class Paint {
 public:
  explicit Paint(bool color) : color_(color) {}
  std::string Bold(absl::string_view text) const { return With("1", text); }
  std::string Dim(absl::string_view text) const { return With("2", text); }
  std::string Severity(absl::string_view severity, absl::string_view text) const;

 private:
  std::string With(absl::string_view code, absl::string_view text) const;
  bool color_;
};

}  // namespace attntrace
