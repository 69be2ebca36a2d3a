#include "tracer/report_name.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tracer/spool/names.h"

namespace attntrace {
namespace {

int RankOfEnvironment() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const char* text = std::getenv(name);
    int rank = 0;
    if (text == nullptr) continue;
    const auto [end, error] = std::from_chars(text, text + std::strlen(text), rank);
    if (error == std::errc() && *end == '\0' && rank >= 0) return rank;
  }
  return -1;
}

std::string BaseName(absl::string_view path) { return std::filesystem::path(std::string(path)).filename().string(); }

// Programs whose -m names a Python module: python, python3.11, torchrun, accelerate.
bool TakesModule(absl::string_view program) {
  const std::string name = BaseName(program);
  return absl::StartsWith(name, "python") || absl::StartsWith(name, "pypy") || name == "torchrun" || name == "accelerate";
}

std::string Plain(absl::string_view text) {
  std::string plain;
  for (char c : text) plain += std::isalnum(static_cast<unsigned char>(c)) || std::strchr("._-", c) != nullptr ? c : '_';
  return plain.substr(0, 100);  // a file name has 255 bytes
}

}  // namespace

NameFacts CurrentNameFacts() {
  NameFacts facts;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  facts.host = host;
  facts.pid = getpid();
  facts.rank = RankOfEnvironment();
  return facts;
}

std::string ProgramTitle(const std::vector<std::string>& command) {
  for (size_t i = 1; i < command.size(); ++i) {
    if (command[i].size() > 3 && absl::EndsWith(command[i], ".py") && command[i][0] != '-') {
      return Plain(absl::StripSuffix(BaseName(command[i]), ".py"));
    }
  }
  bool takes_module = false;
  for (size_t i = 0; i + 1 < command.size(); ++i) {
    takes_module |= TakesModule(command[i]);
    if (takes_module && (command[i] == "-m" || command[i] == "--module")) return Plain(command[i + 1]);
  }
  return command.empty() ? "program" : Plain(absl::StripSuffix(BaseName(command[0]), ".py"));
}

std::string StandardReportName(const std::vector<std::string>& command, const NameFacts& facts) {
  return absl::StrCat("attntrace-", ProgramTitle(command), ".", facts.pid,
                      facts.rank >= 0 ? absl::StrCat(".rank", facts.rank) : "", names::kReportSuffix);
}

absl::StatusOr<std::string> ExpandPattern(absl::string_view pattern, const NameFacts& facts) {
  std::string text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      text += pattern[i];
      continue;
    }
    switch (++i < pattern.size() ? pattern[i] : '\0') {
      case 'h':
        text += Plain(facts.host);
        break;
      case 'p':
        absl::StrAppend(&text, facts.pid);
        break;
      case 'r':
        absl::StrAppend(&text, facts.rank < 0 ? 0 : facts.rank);
        break;
      case '%':
        text += '%';
        break;
      default:
        return absl::InvalidArgumentError(
            absl::StrCat("output ", pattern, ": after % stands h (host), p (process id), r (rank) or %"));
    }
  }
  return text;
}

absl::StatusOr<std::string> ReportPath(absl::string_view pattern, const std::vector<std::string>& command,
                                       const NameFacts& facts) {
  if (pattern.empty()) return StandardReportName(command, facts);
  absl::StatusOr<std::string> path = ExpandPattern(pattern, facts);
  if (!path.ok()) return path;
  std::error_code ignored;
  if (absl::EndsWith(*path, "/") || std::filesystem::is_directory(*path, ignored)) {
    return (std::filesystem::path(*path) / StandardReportName(command, facts)).string();
  }
  return path;
}

absl::Status CheckReportPath(const std::string& path, bool force) {
  struct stat found;
  if (stat(path.c_str(), &found) == 0) {
    // A device or a pipe would be replaced by the final rename.
    if (!S_ISREG(found.st_mode))
      return absl::AlreadyExistsError(absl::StrCat(path, " is not a plain file: name another with -o"));
    if (!force) return absl::AlreadyExistsError(absl::StrCat(path, " exists: overwrite it with -f, or name another with -o"));
  }
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", folder, ": ", std::strerror(errno)));
  }
  if (std::filesystem::path(path).filename().string().size() > 255) {
    return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", std::strerror(ENAMETOOLONG)));
  }
  return absl::OkStatus();
}

std::string SpoolFolderFor(const std::string& report_path) {
  return absl::StrCat(absl::StripSuffix(report_path, names::kReportSuffix), names::kSpoolFolderSuffix);
}

}  // namespace attntrace
