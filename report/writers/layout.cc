#include "report/writers/layout.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace attntrace {
namespace {

bool Continues(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

constexpr char kEllipsis[] = "…";

bool IsUnit(absl::string_view word) {
  word = word.substr(0, word.find_last_not_of(".,;:)") + 1);
  for (absl::string_view unit : {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "ns", "us", "ms", "s"}) {
    if (word == unit) return true;
  }
  return false;
}

// Words, and numbers with their units.
std::vector<std::string> Pieces(absl::string_view text) {
  std::vector<std::string> pieces;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!pieces.empty() && IsUnit(word) && absl::ascii_isdigit(static_cast<unsigned char>(pieces.back().back()))) {
      absl::StrAppend(&pieces.back(), " ", word);
    } else {
      pieces.emplace_back(word);
    }
  }
  return pieces;
}

}  // namespace

int DisplayWidth(absl::string_view text) {
  int width = 0;
  for (char byte : text) width += !Continues(byte);
  return width;
}

std::string Printable(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<uint8_t>(text[i + 1]) < 0xA0;  // U+0080 to U+009F
    if (byte < 0x20 || byte == 0x7F || c1) {
      out += '?';
      i += c1;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string PadRight(absl::string_view text, int width) {
  const int blanks = width - DisplayWidth(text);
  return absl::StrCat(text, std::string(blanks > 0 ? static_cast<size_t>(blanks) : 0, ' '));
}

std::string PadLeft(absl::string_view text, int width) {
  const int blanks = width - DisplayWidth(text);
  return absl::StrCat(std::string(blanks > 0 ? static_cast<size_t>(blanks) : 0, ' '), text);
}

std::string KeepStart(absl::string_view text, int width) {
  if (DisplayWidth(text) <= width || width < 1) return std::string(text);
  size_t end = 0;
  for (int columns = 0; end < text.size(); ++end) {
    if (!Continues(text[end]) && ++columns == width) break;
  }
  return absl::StrCat(text.substr(0, end), kEllipsis);
}

std::string KeepEnd(absl::string_view text, int width) {
  if (DisplayWidth(text) <= width || width < 1) return std::string(text);
  size_t start = text.size();
  for (int columns = 1; columns < width && start > 0;) {
    if (!Continues(text[--start])) ++columns;
  }
  return absl::StrCat(kEllipsis, text.substr(start));
}

std::string KeepPathEnd(absl::string_view path, int width) {
  if (DisplayWidth(path) <= width) return std::string(path);
  for (size_t slash = path.find('/', 1); slash != absl::string_view::npos; slash = path.find('/', slash + 1)) {
    if (1 + DisplayWidth(path.substr(slash)) <= width) return absl::StrCat(kEllipsis, path.substr(slash));
  }
  return KeepEnd(path, width);
}

std::vector<std::string> Wrap(absl::string_view text, int width) {
  std::vector<std::string> lines(1);
  for (const std::string& word : Pieces(text)) {
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (DisplayWidth(line) + 1 + DisplayWidth(word) <= width) {
      absl::StrAppend(&line, " ", word);
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

std::string Ranges(const std::vector<int32_t>& sorted) {
  std::string out;
  for (size_t i = 0; i < sorted.size();) {
    size_t end = i;
    while (end + 1 < sorted.size() && sorted[end + 1] - sorted[end] == 1) ++end;
    absl::StrAppend(&out, out.empty() ? "" : ", ", sorted[i]);
    if (end > i) absl::StrAppend(&out, "-", sorted[end]);
    i = end + 1;
  }
  return out;
}

std::string Count(uint64_t count, absl::string_view one, absl::string_view many) {
  return absl::StrCat(count, " ", count == 1 ? one : many);
}

std::string Paint::Severity(absl::string_view severity, absl::string_view text) const {
  return With(severity == "error" ? "1;31" : severity == "warning" ? "1;33" : "1;36", text);
}

std::string Paint::With(absl::string_view code, absl::string_view text) const {
  return color_ ? absl::StrCat("\x1B[", code, "m", text, "\x1B[0m") : std::string(text);
}

}  // namespace attntrace
