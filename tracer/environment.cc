#include "tracer/environment.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tracer/spool/names.h"

namespace attntrace {
namespace {

bool IsEntryOf(const std::string& entry, absl::string_view name) {
  return entry.size() > name.size() && entry[name.size()] == '=' && absl::string_view(entry).substr(0, name.size()) == name;
}

absl::string_view BaseName(absl::string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsOurs(absl::string_view entry) { return BaseName(entry) == names::kPreloadLibrary; }

// Their runtimes refuse to start, or miss allocations, when another library comes before them.
bool IsSanitizer(absl::string_view entry) {
  const absl::string_view name = BaseName(entry);
  for (absl::string_view start : {"libasan.so", "libtsan.so", "liblsan.so", "libubsan.so", "libhwasan.so", "libclang_rt."}) {
    if (name.substr(0, start.size()) == start) return true;
  }
  return false;
}

std::vector<std::string> Entries(absl::string_view current) {
  return absl::StrSplit(current, absl::ByAnyChar(" :"), absl::SkipEmpty());
}

}  // namespace

ChildEnvironment ChildEnvironment::OfThisProcess() {
  ChildEnvironment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.entries_.emplace_back(*entry);
  return environment;
}

void ChildEnvironment::Set(absl::string_view name, absl::string_view value) {
  Unset(name);
  entries_.push_back(absl::StrCat(name, "=", value));
}

void ChildEnvironment::Unset(absl::string_view name) {
  std::erase_if(entries_, [&](const std::string& entry) { return IsEntryOf(entry, name); });
}

std::string ChildEnvironment::Get(absl::string_view name) const {
  for (const std::string& entry : entries_) {
    if (IsEntryOf(entry, name)) return entry.substr(name.size() + 1);
  }
  return "";
}

std::string MergePreload(absl::string_view current, absl::string_view ours) {
  std::vector<std::string> first, rest;
  for (std::string& entry : Entries(current)) {
    if (!IsOurs(entry)) (IsSanitizer(entry) ? first : rest).push_back(std::move(entry));
  }
  first.emplace_back(ours);
  first.insert(first.end(), rest.begin(), rest.end());
  return absl::StrJoin(first, ":");
}

bool ListsOurPreload(absl::string_view current) {
  const std::vector<std::string> entries = Entries(current);
  return std::any_of(entries.begin(), entries.end(), IsOurs);
}

bool CanBePreloaded(absl::string_view path) { return path.find_first_of(" :") == absl::string_view::npos; }

}  // namespace attntrace
