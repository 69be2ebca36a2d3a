#include "tracer/arguments.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "tracer/near_names.h"
#include "tracer/spool/names.h"

namespace attntrace {

void AddOptions(CLI::App& app, const std::vector<absl::string_view>& keys, OptionValues* values, absl::Status* failure) {
  for (const OptionSpec& spec : OptionTable()) {
    if (spec.key == "help") continue;  // CLI11 has its own
    if (!keys.empty() && std::find(keys.begin(), keys.end(), spec.key) == keys.end()) continue;
    const std::string flags =
        absl::StrCat(spec.letter ? absl::StrCat("-", std::string(1, spec.letter), ",") : "", "--", spec.key);
    const auto set = [key = spec.key, values, failure](const std::string& value) {
      if (absl::Status status = values->Set(key, value); !status.ok() && failure->ok()) *failure = status;
    };
    if (spec.kind == OptionKind::kFlag) {
      app.add_flag_callback(
          flags, [set] { set("1"); }, std::string(spec.help));
    } else {
      app.add_option_function<std::string>(flags, set, std::string(spec.help))->type_name(std::string(spec.value));
    }
  }
}

absl::StatusOr<bool> ParseArguments(CLI::App& app, std::vector<std::string> arguments, const absl::Status* failure) {
  const auto more = absl::StrCat("; see ", app.get_name(), " --help");
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::ExtrasError&) {
    std::vector<std::string> known;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    for (const std::string& word : app.remaining()) {
      const std::string near = DidYouMean(word, std::vector<absl::string_view>(known.begin(), known.end()));
      return absl::InvalidArgumentError(absl::StrCat("unknown argument ", word, near.empty() ? more : near));
    }
    return absl::InvalidArgumentError(absl::StrCat("too many arguments", more));
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(absl::StrCat(error.what(), more));
  }
  if (failure != nullptr && !failure->ok()) return *failure;
  return true;
}

absl::Status SetFromEnvironment(OptionValues& values) {
  const char* text = std::getenv(names::kOptions);
  return text == nullptr ? absl::OkStatus() : values.SetAll(text);
}

}  // namespace attntrace
