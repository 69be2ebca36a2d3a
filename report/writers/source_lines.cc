#include "report/writers/source_lines.h"

#include <sys/stat.h>

#include <fstream>

#include "absl/strings/ascii.h"
#include "report/decode/text.h"
#include "report/writers/layout.h"

namespace attntrace {

std::string SourceLines::Line(const std::string& file, uint32_t line) {
  const auto [at, fresh] = files_.try_emplace(file);
  if (fresh) at->second = Load(file);
  return line == 0 || line > at->second.size() ? std::string() : at->second[line - 1];
}

std::vector<std::string> SourceLines::Load(const std::string& file) const {
  constexpr off_t kLargest = 4 << 20;
  struct stat facts;
  // A FIFO would block, a device never end.
  if (file.empty() || file[0] != '/' || stat(file.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  const uint64_t changed =
      static_cast<uint64_t>(facts.st_mtim.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(facts.st_mtim.tv_nsec);
  if (facts.st_size > kLargest || (newest_unix_ns_ != 0 && changed > newest_unix_ns_)) return {};
  std::vector<std::string> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    for (char& c : line) c = c == '\t' ? ' ' : c;
    lines.push_back(Printable(CleanUtf8(std::string(absl::StripAsciiWhitespace(line)))));
  }
  return lines;
}

}  // namespace attntrace
