// attntrace dump FILE
#include "report/dump.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "report/file.h"
#include "tracer/arguments.h"
#include "tracer/command.h"
#include "tracer/spool/format.h"
#include "tracer/spool_folder.h"

namespace attntrace {
namespace {

bool IsSpool(const std::string& path) {
  char magic[sizeof spool::kMagic] = {};
  std::ifstream file(path, std::ios::binary);
  file.read(magic, sizeof magic);
  return std::memcmp(magic, spool::kMagic, sizeof magic) == 0;
}

absl::Status DumpFile(const std::string& path) {
  if (IsSpool(path)) return DumpSpool(path, stdout);
  const absl::StatusOr<Report> report = ReadReportFile(path);
  return report.ok() ? DumpReport(*report, stdout) : report.status();
}

}  // namespace

absl::StatusOr<int> DumpCommand(const CommandLine& line) {
  std::string path;
  CLI::App app("Prints a spool, all spools of a folder, or a report as plain text, one record a line.", "attntrace dump");
  app.add_option("FILE", path, "spool file, spool folder or report file")->required();
  const absl::StatusOr<bool> go_on = ParseArguments(app, line.arguments);
  if (!go_on.ok()) return go_on.status();
  if (!*go_on) return 0;

  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    if (absl::Status status = DumpFile(path); !status.ok()) return status;
    return 0;
  }
  const absl::StatusOr<SpoolFolder> folder = ReadSpoolFolder(path);
  if (!folder.ok()) return folder.status();
  if (folder->spools.empty()) return absl::NotFoundError(absl::StrCat(path, " holds no spool"));
  for (const std::string& spool : folder->spools) {
    std::printf("# %s\n", spool.c_str());
    if (absl::Status status = DumpSpool(spool, stdout); !status.ok()) return status;
  }
  return 0;
}

}  // namespace attntrace
