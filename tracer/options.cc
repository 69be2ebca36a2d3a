#include "tracer/options.h"

#include <charconv>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tracer/near_names.h"
#include "tracer/spool/names.h"

namespace attntrace {
namespace {

using K = OptionKind;
using R = OptionReader;

constexpr size_t kHelpColumn = 28, kHelpWidth = 100;

// An entry is here only if something acts on it.
constexpr OptionSpec kTable[] = {
    {"output", 'o', K::kText, "FILE", "", 0, 0, R::kLauncher,
     "report file, or a folder for it; %h is the host, %p the process id, %r the rank, %% a percent sign "
     "(standard: attntrace-<script>.<pid>[.rank<N>].attn here)"},
    {"force", 'f', K::kFlag, "", "0", 0, 0, R::kLauncher, "overwrite the report file"},
    {"quiet", 'q', K::kFlag, "", "0", 0, 0, R::kLauncher, "of the summary print only the SUMMARY line"},
    {"verbose", 'v', K::kFlag, "", "0", 0, 0, R::kLauncher, "more detail in the summary, and what the launcher set up"},
    {"color", 0, K::kChoice, "auto|always|never", "auto", 0, 0, R::kLauncher,
     "colour in the summary; auto: on a terminal, unless NO_COLOR is set"},
    {"error-exitcode", 0, K::kNumber, "N", "0", 0, 255, R::kLauncher,
     "exit code where the program succeeded and there are warnings or errors; 0: the program's own"},
    {"keep-spool", 0, K::kFlag, "", "0", 0, 0, R::kLauncher, "keep the folder of raw spools beside the report"},
    {"stack-depth", 0, K::kNumber, "N", "64", 1, 128, R::kAgent, "frames kept of a call path"},
    {"max-shapes", 0, K::kNumber, "N", "64", 1, 1024, R::kAgent,
     "distinct shapes of one call path that are counted apart; further ones are counted together"},
    {"kernel-calls", 0, K::kNumber, "N", "3", 0, 100, R::kAgent,
     "CUDA: calls of each kind whose kernels are named; 0: CUPTI is left alone"},
    {"watch-launches", 0, K::kFlag, "", "0", 0, 0, R::kAgent,
     "CUDA: watch every kernel launch of the run (about 0.7 us each), not only while new kinds of call appear"},
    {"gpu-time", 0, K::kFlag, "", "0", 0, 0, R::kAgent,
     "CUDA: take the time that attention takes on the device, from CUPTI's records of every kernel; implies watch-launches, "
     "and stands "
     "back for a profiler"},
    {"reference", 0, K::kChoice, "after|inline|off", "after", 0, 0, R::kBoth,
     "after: when the program has ended, calls that store scores are run again beside fused kernels on the same shapes, and "
     "what would free a kernel is tried; inline: in the program, between its operators, without what needs Python or random "
     "numbers"},
    {"reference-budget", 0, K::kNumber, "SECONDS", "20", 0, 86400, R::kBoth,
     "time for all reference runs, the largest saving first; 0: as long as it takes"},
    {"reference-memory", 0, K::kNumber, "PERCENT", "50", 1, 100, R::kBoth,
     "of the free memory that a reference run may need"},
    {"help", 'h', K::kFlag, "", "0", 0, 0, R::kLauncher, "list the settings and exit"},
};

absl::Status Normalize(const OptionSpec& spec, absl::string_view value, std::string& out) {
  const auto refuse = [&](absl::string_view wanted) {
    return absl::InvalidArgumentError(absl::StrCat(spec.key, "=", value, ": ", wanted));
  };
  switch (spec.kind) {
    case K::kText:
      if (value.empty()) return refuse("a value is missing");
      out = std::string(value);
      return absl::OkStatus();
    case K::kFlag:
      for (absl::string_view yes : {"", "1", "true", "yes", "on"}) {
        if (value == yes) return out = "1", absl::OkStatus();
      }
      for (absl::string_view no : {"0", "false", "no", "off"}) {
        if (value == no) return out = "0", absl::OkStatus();
      }
      return refuse("takes 1 or 0");
    case K::kNumber: {
      long number = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (error != std::errc() || end != value.data() + value.size() || number < spec.minimum || number > spec.maximum) {
        return refuse(absl::StrCat("takes a number from ", spec.minimum, " to ", spec.maximum));
      }
      out = absl::StrCat(number);
      return absl::OkStatus();
    }
    case K::kChoice:
      for (absl::string_view word : absl::StrSplit(spec.value, '|')) {
        if (value == word) return out = std::string(value), absl::OkStatus();
      }
      return refuse(absl::StrCat("takes ", spec.value));
  }
  return absl::InternalError("an option of no kind");
}

}  // namespace

std::span<const OptionSpec> OptionTable() { return kTable; }

const OptionSpec* FindOption(absl::string_view key) {
  for (const OptionSpec& spec : kTable) {
    if (spec.key == key) return &spec;
  }
  return nullptr;
}

absl::Status OptionValues::Set(absl::string_view key, absl::string_view value) {
  const OptionSpec* spec = FindOption(key);
  if (spec == nullptr) {
    std::vector<absl::string_view> known;
    for (const OptionSpec& one : kTable) known.push_back(one.key);
    const std::string near = DidYouMean(key, known);
    return absl::InvalidArgumentError(absl::StrCat(
        "unknown option ", key, near, near.empty() ? absl::StrCat("; ", names::kOptions, "=help=1 lists them") : ""));
  }
  std::string text;
  if (absl::Status status = Normalize(*spec, value, text); !status.ok()) return status;
  values_[std::string(key)] = text;
  return absl::OkStatus();
}

absl::Status OptionValues::SetAll(absl::string_view text) {
  std::string key, value;
  bool in_value = false;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || text[i] == ':') {
      if (!key.empty() || in_value) {
        const OptionSpec* spec = FindOption(key);
        if (spec != nullptr && spec->kind != K::kFlag && !in_value) {
          return absl::InvalidArgumentError(
              absl::StrCat(names::kOptions, ": ", key, " needs a value: ", key, "=", spec->value));
        }
        if (absl::Status status = Set(key, value); !status.ok()) {
          return absl::InvalidArgumentError(absl::StrCat(names::kOptions, ": ", status.message()));
        }
      }
      key.clear(), value.clear(), in_value = false;
    } else if (text[i] == '=' && !in_value) {
      in_value = true;
    } else {
      if (text[i] == '\\' && i + 1 < text.size()) ++i;
      (in_value ? value : key) += text[i];
    }
  }
  return absl::OkStatus();
}

std::string OptionValues::Text(absl::string_view key) const {
  if (auto found = values_.find(std::string(key)); found != values_.end()) return found->second;
  const OptionSpec* spec = FindOption(key);
  return spec == nullptr ? std::string() : std::string(spec->standard);
}

long OptionValues::Number(absl::string_view key) const {
  const std::string text = Text(key);
  long number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string OptionValues::ForAgent() const {
  std::string text;
  for (const auto& [key, value] : values_) {
    if (FindOption(key)->reader != R::kLauncher) absl::StrAppend(&text, text.empty() ? "" : ":", key, "=", value);
  }
  return text;
}

std::string OptionHelp() {
  std::string text = absl::StrCat("Settings: --key on the command line, which wins, or ", names::kOptions,
                                  "=key=value:key=value.\nThose marked * are read inside the traced program.\n");
  for (const OptionSpec& spec : kTable) {
    const std::string name = absl::StrCat(spec.key, "=", spec.kind == K::kFlag ? absl::string_view("0|1") : spec.value);
    const bool has_standard = spec.kind == K::kNumber || spec.kind == K::kChoice;
    const std::string help = absl::StrCat(spec.help, has_standard ? absl::StrCat(" (standard: ", spec.standard, ")") : "");
    char start[64];
    std::snprintf(start, sizeof start, "  %c %-24s", spec.reader != R::kLauncher ? '*' : ' ', name.c_str());
    text += start;
    size_t column = kHelpColumn;
    for (absl::string_view word : absl::StrSplit(help, ' ')) {
      if (column > kHelpColumn && column + 1 + word.size() > kHelpWidth) {
        absl::StrAppend(&text, "\n", std::string(kHelpColumn, ' '));
        column = kHelpColumn;
      }
      absl::StrAppend(&text, " ", word);
      column += 1 + word.size();
    }
    text += '\n';
  }
  return text;
}

}  // namespace attntrace
