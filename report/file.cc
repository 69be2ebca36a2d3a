#include "report/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/base/internal/endian.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "report/file_kind.h"
#include "report/format.h"

namespace attntrace {
namespace {

// file_bytes comes last in the file and holds the size of all before it.
constexpr size_t kTailBytes = 9;
constexpr char kTailTag = static_cast<char>(Report::kFileBytesFieldNumber << 3 | 1);  // wire type fixed64

absl::Status Failure(int error, const std::string& path, size_t bytes) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(absl::StrCat("no room for the report (", bytes, " bytes) at ", path, ": ",
                                                       strerror(error),
                                                       "; nothing was left there; choose another place with -o"));
    case ENOENT:
      return absl::NotFoundError(
          absl::StrCat("cannot write ", path, ": its folder does not exist; make it, or choose another place with -o"));
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(
          absl::StrCat("cannot write ", path, ": ", strerror(error), "; choose another place with -o"));
    default:
      return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", path));
  }
}

// 0 or an errno.
int WriteAll(int fd, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = write(fd, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno;
    done += static_cast<size_t>(wrote);
  }
  return 0;
}

int WriteInPlace(const std::string& path, const std::string& bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = WriteAll(fd, bytes);
  return close(fd) != 0 && error == 0 ? errno : error;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// The new name lasts through a power cut only once its folder does. Not every file system can: then it stays as good as it is.
void SyncFolder(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)fsync(fd);
  close(fd);
}

// Moves without replacing. renameat2 is not on every file system (NFS); link needs hard links (not on FAT): one of them works.
int MoveToFree(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno == EEXIST) return EEXIST;
  if (link(from.c_str(), to.c_str()) == 0) {
    unlink(from.c_str());
    return 0;
  }
  return errno;
}

int WriteBeside(const std::string& path, const std::string& bytes, bool force) {
  const std::string folder = FolderOf(path);
  std::string name = folder + "/.attntrace-XXXXXX.tmp";
  const int fd = mkostemps(name.data(), 4, O_CLOEXEC);
  if (fd < 0) return errno;
  absl::Cleanup remove_temporary = [&name] { unlink(name.c_str()); };
  const mode_t mask = umask(0);
  umask(mask);
  int error = fchmod(fd, 0666 & ~mask) != 0 ? errno : WriteAll(fd, bytes);
  if (error == 0 && fsync(fd) != 0 && errno != EINVAL) error = errno;
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0) error = force ? (rename(name.c_str(), path.c_str()) != 0 ? errno : 0) : MoveToFree(name, path);
  if (error != 0) return error;
  std::move(remove_temporary).Cancel();
  SyncFolder(folder);
  return 0;
}

absl::Status WrongFile(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

absl::StatusOr<std::string> ReadWhole(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  absl::Cleanup close_fd = [fd] { close(fd); };
  struct stat facts;
  if (fstat(fd, &facts) == 0 && S_ISDIR(facts.st_mode)) {
    return WrongFile(path, "a folder, not a report; for one of spools: attntrace recover " + path);
  }
  constexpr size_t kLargest = size_t{1} << 30;
  std::string bytes;
  char buffer[1 << 16];
  while (bytes.size() <= kLargest) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
    if (got == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(got));
  }
  return WrongFile(path, "larger than any report of attntrace");
}

bool EndsAsWritten(const std::string& bytes) {
  if (bytes.size() < kTailBytes) return false;
  const char* tail = bytes.data() + bytes.size() - kTailBytes;
  return tail[0] == kTailTag && absl::little_endian::Load64(tail + 1) == bytes.size() - kTailBytes;
}

}  // namespace

absl::Status WriteReportFile(const Report& report, const std::string& path, bool force) {
  Report copy = report;
  copy.clear_file_bytes();
  std::string bytes;
  if (!copy.SerializeToString(&bytes))
    return absl::InternalError(absl::StrCat("the report is too large to be written to ", path));
  char tail[kTailBytes] = {kTailTag};
  absl::little_endian::Store64(tail + 1, bytes.size());
  bytes.append(tail, kTailBytes);

  struct stat facts;
  const bool exists = stat(path.c_str(), &facts) == 0;
  int error;
  if (exists && S_ISDIR(facts.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": it is a folder; name a file in it with -o"));
  } else if (exists && !S_ISREG(facts.st_mode)) {
    error = WriteInPlace(path, bytes);
  } else {
    error = exists && !force ? EEXIST : WriteBeside(path, bytes, force);
  }
  if (error == 0) return absl::OkStatus();
  if (error == EEXIST) {
    return absl::AlreadyExistsError(absl::StrCat(path, " exists: -f overwrites it, -o chooses another name"));
  }
  return Failure(error, path, bytes.size());
}

absl::StatusOr<Report> ReadReportFile(const std::string& path) {
  const absl::StatusOr<std::string> bytes = ReadWhole(path);
  if (!bytes.ok()) return bytes.status();
  if (const std::string foreign = DescribeForeignFile(*bytes, path); !foreign.empty()) return WrongFile(path, foreign);
  Report report;
  const bool parsed = report.ParseFromString(*bytes);
  if (!EndsAsWritten(*bytes) || !parsed) {
    return absl::DataLossError(absl::StrCat(path, ": a report that is cut short or damaged (", bytes->size(),
                                            " bytes): copy it again, or make it anew from its spools with attntrace recover"));
  }
  report.clear_file_bytes();
  if (report.format_version() > kReportFormatVersion) {
    BlindSpot* spot = report.add_blind_spots();
    spot->set_code("newer-format");
    spot->set_text(absl::StrCat("the report was made by a newer attntrace (", report.producer(), ", format ",
                                report.format_version(), "; this one knows ", kReportFormatVersion,
                                "): what it added is kept but not shown"));
    spot->set_count(1);
  }
  return report;
}

}  // namespace attntrace
