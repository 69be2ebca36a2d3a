#include "report/decode/symbolise.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

extern char** environ;

namespace attntrace {
namespace {

// Of all objects of a report together: the summary is to stand a second after the program's end.
constexpr uint64_t kTimeLimitNs = 600'000'000;

uint64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Reads until the end or until the time is over.
std::string ReadUntil(int fd, uint64_t deadline_ns) {
  std::string output;
  char buffer[1 << 16];
  while (true) {
    const uint64_t now = NowNs();
    if (now >= deadline_ns) return output;
    pollfd ready{fd, POLLIN, 0};
    const int count = poll(&ready, 1, static_cast<int>((deadline_ns - now) / 1'000'000) + 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return output;
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return output;
    output.append(buffer, static_cast<size_t>(got));
  }
}

// Standard output of a program found in PATH; empty where it cannot be run.
std::string Run(const std::vector<std::string>& words, uint64_t deadline_ns) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  std::string output;
  if (error == 0) {
    output = ReadUntil(out[0], deadline_ns);
    kill(pid, SIGKILL);  // one that is done has closed its output and cannot be hurt any more
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  close(out[0]);
  return output;
}

}  // namespace

void Symboliser::Announce(const std::string& object, uint64_t offset) {
  const auto known = known_.find(object);
  if (known != known_.end() && known->second.contains(offset)) return;
  waiting_[object].push_back(offset);
}

const Symboliser::Line* Symboliser::Lookup(const std::string& object, uint64_t offset) {
  if (waiting_.contains(object)) Resolve(object);
  const auto lines = known_.find(object);
  if (lines == known_.end()) return nullptr;
  const auto line = lines->second.find(offset);
  return line == lines->second.end() || (line->second.file.empty() && line->second.function.empty()) ? nullptr : &line->second;
}

void Symboliser::Resolve(const std::string& object) {
  std::vector<uint64_t> offsets = std::move(waiting_[object]);
  waiting_.erase(object);
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  constexpr size_t kMostAtOnce = 4096;  // well below what an argument list may hold
  if (offsets.size() > kMostAtOnce) offsets.resize(kMostAtOnce);

  auto& lines = known_[object];
  for (uint64_t offset : offsets) lines[offset];  // asked once, whatever comes of it
  if (object.empty() || object[0] != '/' || access(object.c_str(), R_OK) != 0 || spent_ns_ >= kTimeLimitNs) return;

  std::vector<std::string> words = {"addr2line", "-C", "-f", "-e", object};
  // A return address is one behind the call; the line is that of the call.
  for (uint64_t offset : offsets) words.push_back(absl::StrCat("0x", absl::Hex(offset > 0 ? offset - 1 : 0)));
  const uint64_t start = NowNs();
  const std::string output = Run(words, start + kTimeLimitNs - spent_ns_);
  spent_ns_ += NowNs() - start;

  // Two lines an address: the function, then file:line, with "??" and 0 for what is unknown.
  const std::vector<absl::string_view> rows = absl::StrSplit(output, '\n');
  for (size_t i = 0; i < offsets.size() && 2 * i + 1 < rows.size(); ++i) {
    Line& line = lines[offsets[i]];
    if (rows[2 * i] != "??") line.function = std::string(rows[2 * i]);
    absl::string_view place = rows[2 * i + 1];
    place = place.substr(0, place.find(" (discriminator"));
    const size_t colon = place.rfind(':');
    if (colon == absl::string_view::npos || absl::StartsWith(place, "??")) continue;
    line.file = std::string(place.substr(0, colon));
    if (!absl::SimpleAtoi(place.substr(colon + 1), &line.line)) line.line = 0;
  }
}

}  // namespace attntrace
