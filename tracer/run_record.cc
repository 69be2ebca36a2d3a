#include "tracer/run_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tracer/process_info.h"
#include "tracer/spool/names.h"

namespace attntrace {
namespace {

using Json = nlohmann::json;

// Arguments and paths are bytes, JSON is UTF-8: a text that is not UTF-8 is stored as {"bytes": [numbers]}.

bool IsUtf8(const std::string& text) {
  try {
    return Json(text).dump(), true;
  } catch (const Json::exception&) {
    return false;
  }
}

Json Bytes(const std::string& text) {
  if (IsUtf8(text)) return text;
  Json bytes = Json::array();
  for (unsigned char c : text) bytes.push_back(c);
  return Json{{"bytes", bytes}};
}

std::string FromBytes(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  std::string text;
  for (const Json& byte : json.at("bytes")) text += static_cast<char>(byte.get<int>());
  return text;
}

bool WriteText(const std::string& path, const std::string& text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const bool whole = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                     ftruncate(file, static_cast<off_t>(text.size())) == 0;
  const int error = errno;
  close(file);
  errno = error;
  return whole;
}

}  // namespace

std::string RunRecordToJson(const RunRecord& record) {
  Json command = Json::array();
  for (const std::string& word : record.command) command.push_back(Bytes(word));
  const Json json = {{"attntrace", ATTNTRACE_VERSION},
                     {"command", command},
                     {"host", Bytes(record.host)},
                     {"directory", Bytes(record.directory)},
                     {"start_unix_ns", record.start_unix_ns},
                     {"duration_ns", record.duration_ns},
                     {"launcher_pid", record.launcher_pid},
                     {"launcher_start_ticks", record.launcher_start_ticks},
                     {"report", Bytes(record.report)},
                     {"kept", record.kept},
                     {"ended", record.ended},
                     {"exit_code", record.exit_code},
                     {"signal", record.signal}};
  return json.dump(2) + "\n";
}

absl::StatusOr<RunRecord> RunRecordFromJson(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    RunRecord record;
    for (const Json& word : json.at("command")) record.command.push_back(FromBytes(word));
    record.host = FromBytes(json.at("host"));
    record.directory = FromBytes(json.at("directory"));
    json.at("start_unix_ns").get_to(record.start_unix_ns);
    json.at("duration_ns").get_to(record.duration_ns);
    json.at("launcher_pid").get_to(record.launcher_pid);
    json.at("launcher_start_ticks").get_to(record.launcher_start_ticks);
    record.report = FromBytes(json.at("report"));
    json.at("kept").get_to(record.kept);
    json.at("ended").get_to(record.ended);
    json.at("exit_code").get_to(record.exit_code);
    json.at("signal").get_to(record.signal);
    return record;
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat(names::kRunFile, ": ", error.what()));
  }
}

absl::Status WriteRunRecord(const std::string& folder, const RunRecord& record) {
  // Replaced as a whole: a launcher killed in mid-write must not leave a folder that recover cannot read.
  const std::string path = absl::StrCat(folder, "/", names::kRunFile);
  const std::string fresh = path + ".new";
  const std::string text = RunRecordToJson(record);
  if (WriteText(fresh, text) && std::rename(fresh.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const int error = errno;
  std::remove(fresh.c_str());
  // On a full disk the file's own block can still be written.
  if (error == ENOSPC && std::filesystem::exists(path) && WriteText(path, text)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", std::strerror(error)));
}

absl::StatusOr<RunRecord> ReadRunRecord(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", names::kRunFile);
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  absl::StatusOr<RunRecord> record = RunRecordFromJson(text);
  if (!record.ok()) return absl::DataLossError(absl::StrCat(folder, "/", record.status().message()));
  return record;
}

bool LauncherRuns(const RunRecord& record) {
  return record.host != HostName() || IsAlive(record.launcher_pid, record.launcher_start_ticks);
}

RunFacts FactsOf(const RunRecord& record) {
  RunFacts facts;
  facts.command = record.command;
  facts.host = record.host;
  facts.directory = record.directory;
  facts.start_unix_ns = record.start_unix_ns;
  facts.duration_ns = record.duration_ns;
  facts.ended = record.ended;
  facts.exit_code = record.exit_code;
  facts.signal = record.signal;
  return facts;
}

}  // namespace attntrace
