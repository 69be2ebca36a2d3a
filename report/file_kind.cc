#include "report/file_kind.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/report.pb.h"
#include "tracer/spool/format.h"

namespace attntrace {
namespace {

bool IsText(absl::string_view bytes) {
  const absl::string_view start = bytes.substr(0, 512);
  return std::all_of(start.begin(), start.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 || byte == '\n' || byte == '\r' || byte == '\t' || byte == 0x1B;
  });
}

}  // namespace

std::string DescribeForeignFile(absl::string_view bytes, const std::string& path) {
  struct Kind {
    absl::string_view start;
    absl::string_view what;
  };
  static constexpr Kind kKinds[] = {
      {"\x1f\x8b", "compressed by gzip: unpack it with gunzip first"},
      {"\x28\xb5\x2f\xfd", "compressed by zstd: unpack it with unzstd first"},
      {"\xfd"
       "7zXZ",
       "compressed by xz: unpack it with unxz first"},
      {"BZh", "compressed by bzip2: unpack it with bunzip2 first"},
      {"PK\x03\x04", "a zip archive: unpack it first"},
      {"\x7f"
       "ELF",
       "a program, not a report: attntrace -- PROGRAM traces it"},
  };
  if (bytes.empty()) return "empty, so not a report; if the run was interrupted, see attntrace recover";
  if (absl::StartsWith(bytes, absl::string_view(spool::kMagic, sizeof spool::kMagic))) {
    return absl::StrCat("a spool, not a report: attntrace dump ", path,
                        " shows it, attntrace recover on its folder makes the report");
  }
  for (const Kind& kind : kKinds) {
    if (absl::StartsWith(bytes, kind.start)) return std::string(kind.what);
  }
  // Every report begins with its first field, format_version, as a varint: a byte that no text begins with.
  constexpr char kFirstTag = Report::kFormatVersionFieldNumber << 3;
  if (bytes.front() == kFirstTag) return {};
  if (absl::StartsWith(bytes, "{")) return "JSON, not a report; the report is the file that ends in .attn";
  if (IsText(bytes)) return "text, not a report; the report is the file that ends in .attn";
  return "not a report of attntrace";
}

}  // namespace attntrace
