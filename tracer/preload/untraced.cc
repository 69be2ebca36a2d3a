#include "tracer/preload/untraced.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tracer/preload/settings.h"
#include "tracer/spool/names.h"

namespace attntrace::preload {
namespace {

// One write, so that lines of several processes do not mix. A line that cannot be written is lost: nothing waits for it.
void WriteLine(int file, char* line, size_t size, int length) noexcept {
  if (length < 0) return;
  size_t end = static_cast<size_t>(length) < size ? static_cast<size_t>(length) : size - 1;
  for (size_t i = 0; i + 1 < end; ++i) {
    if (line[i] == '\n') line[i] = ' ';
  }
  line[end - 1] = '\n';
  [[maybe_unused]] ssize_t written = write(file, line, end);
}

}  // namespace

void RecordUntraced(const char* reason) noexcept {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof(path), "%s/%d%s", GetSettings().spool_directory, static_cast<int>(getpid()), names::kUntracedSuffix);
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return;
  char line[2048];
  WriteLine(file, line, sizeof(line), snprintf(line, sizeof(line), "%s\n", reason));
  close(file);
}

void SayUntraced(const char* topic, const char* reason, const char* next) noexcept {
  RecordUntraced(reason);
  char path[PATH_MAX + 128];
  snprintf(path, sizeof(path), "%s/%s%s", GetSettings().spool_directory, topic, names::kSaidSuffix);
  int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return;
  close(file);
  char line[4096];
  WriteLine(STDERR_FILENO, line, sizeof(line),
            snprintf(line, sizeof(line), "attntrace: %s; the program runs untraced%s%s\n", reason,
                     next[0] == '\0' ? "" : ". Next: ", next));
}

}  // namespace attntrace::preload
