#include "tracer/options.h"

#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/unit/catch.h"

namespace attntrace {
namespace {

TEST_CASE("ATTNTRACE_OPTIONS sets values, and a later one wins") {
  OptionValues options;
  REQUIRE(options.SetAll("output=a.attn:force:error-exitcode=3:quiet=0:output=b.attn").ok());
  CHECK(options.Text("output") == "b.attn");
  CHECK(options.Flag("force"));
  CHECK_FALSE(options.Flag("quiet"));
  CHECK(options.IsSet("quiet"));
  CHECK_FALSE(options.IsSet("verbose"));
  CHECK(options.Number("error-exitcode") == 3);
  CHECK(options.Text("color") == "auto");
}

TEST_CASE("a backslash makes a separator plain, empty parts do not count") {
  OptionValues options;
  REQUIRE(options.SetAll("::output=a\\:b=c\\\\d:").ok());
  CHECK(options.Text("output") == "a:b=c\\d");
  REQUIRE(options.SetAll("").ok());
}

TEST_CASE("an unknown key is an error that names the near ones") {
  OptionValues options;
  const absl::Status status = options.SetAll("quite=1");
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(absl::StrContains(status.message(), "unknown option quite, did you mean quiet?"));
  CHECK(absl::StrContains(options.SetAll("zzzzzzz=1").message(), "ATTNTRACE_OPTIONS=help=1"));
}

TEST_CASE("a value that the table does not allow is an error") {
  OptionValues options;
  for (const char* text : {"force=perhaps", "color=red", "error-exitcode=256", "error-exitcode=-1", "error-exitcode=2x",
                           "error-exitcode", "output=", "output", "=1"}) {
    INFO(text);
    CHECK_FALSE(options.SetAll(text).ok());
  }
  CHECK(options.set().empty());
}

TEST_CASE("only what the agent reads is passed on") {
  OptionValues options;
  std::string expected;
  for (const OptionSpec& spec : OptionTable()) {
    if (spec.kind != OptionKind::kNumber) continue;
    REQUIRE(options.Set(spec.key, std::to_string(spec.maximum)).ok());
    if (spec.reader == OptionReader::kLauncher) continue;
    if (!expected.empty()) expected += ':';
    expected += std::string(spec.key) + "=" + std::to_string(spec.maximum);
  }
  REQUIRE(options.Set("quiet", "1").ok());
  // Order is that of the keys' names, not of the table.
  const std::string told = options.ForAgent();
  const std::set<std::string> got = absl::StrSplit(told, ':'), wanted = absl::StrSplit(expected, ':');
  CHECK(got == wanted);
}

TEST_CASE("help has every key, and the table is sound") {
  std::string help = OptionHelp();
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(help, '\n'))) CHECK(line.size() <= 100);
  absl::RemoveExtraAsciiWhitespace(&help);
  std::set<std::string> keys;
  std::set<char> letters;
  for (const OptionSpec& spec : OptionTable()) {
    INFO(std::string(spec.key));
    CHECK(keys.insert(std::string(spec.key)).second);
    if (spec.letter != 0) CHECK(letters.insert(spec.letter).second);
    CHECK(absl::StrContains(help, std::string(" ") + std::string(spec.key) + "="));
    CHECK(absl::StrContains(help, spec.help));
    OptionValues values;
    if (!spec.standard.empty()) CHECK(values.Set(spec.key, spec.standard).ok());
  }
}

}  // namespace
}  // namespace attntrace
