#include <sys/stat.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "report/decode/stages.h"

namespace attntrace {
namespace {

constexpr uint32_t kMostLines = 200;  // above a call: further away is another function

struct Source {
  std::vector<std::string> lines;  // as they are, but for tabs
};

Source Load(const std::string& file, uint64_t newest_unix_ns) {
  constexpr off_t kLargest = 4 << 20;
  struct stat facts;
  Source source;
  // A FIFO would block, a device never end.
  if (file.empty() || file[0] != '/' || stat(file.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return source;
  const uint64_t changed =
      static_cast<uint64_t>(facts.st_mtim.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(facts.st_mtim.tv_nsec);
  if (facts.st_size > kLargest || (newest_unix_ns != 0 && changed > newest_unix_ns)) return source;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) source.lines.push_back(absl::StrReplaceAll(line, {{"\t", "        "}}));
  return source;
}

bool Pins(absl::string_view line) {
  return (absl::StartsWith(line, "with ") || absl::StartsWith(line, "@") || absl::StartsWith(line, "async with ")) &&
         absl::StrContains(line, "sdpa_kernel(");
}

// Upwards from the line: a `with` of less indentation than everything below it, or a decorator of the function around it.
uint32_t FindAbove(const Source& source, uint32_t from) {
  if (from == 0 || from > source.lines.size()) return 0;
  size_t indentation = source.lines[from - 1].find_first_not_of(' ');
  bool decorators = false;  // right above a def that encloses the line
  for (uint32_t line = from - 1; line > 0 && from - line < kMostLines; --line) {
    const std::string& whole = source.lines[line - 1];
    const absl::string_view text = absl::StripAsciiWhitespace(whole);
    if (text.empty() || text[0] == '#') continue;
    const size_t here = whole.find_first_not_of(' ');
    if (decorators) {
      if (text[0] != '@') return 0;
      if (Pins(text)) return line;
      continue;
    }
    if (here >= indentation) continue;
    indentation = here;
    if (Pins(text)) return line;
    decorators = absl::StartsWith(text, "def ") || absl::StartsWith(text, "async def ");
  }
  return 0;
}

}  // namespace

std::string FindPin(const Report& report, const CallPath& path, uint64_t newest_unix_ns) {
  for (const uint32_t index : path.frames()) {
    const Frame& frame = report.frames(static_cast<int>(index));
    if (frame.native() || frame.line() == 0 || frame.owner() == "torch" || frame.owner() == "python") continue;
    const uint32_t line = FindAbove(Load(frame.file(), newest_unix_ns), frame.line());
    if (line != 0) return absl::StrCat(frame.file(), ":", line);
  }
  return "";
}

}  // namespace attntrace
