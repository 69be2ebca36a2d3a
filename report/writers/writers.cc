#include "report/writers/writers.h"

#include "report/writers/formats.h"

namespace attntrace {

absl::Span<const Writer> AllWriters() {
  static constexpr Writer kWriters[] = {
      {"text", "for people: the verdict, the findings, every call site", WriteText},
      {"json", "for programs: Protobuf's JSON of report.proto", WriteJson},
  };
  return kWriters;
}

const Writer* FindWriter(absl::string_view name) {
  for (const Writer& writer : AllWriters()) {
    if (name == writer.name) return &writer;
  }
  return nullptr;
}

}  // namespace attntrace
