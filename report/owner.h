// Who owns a frame of a call path: "user", "torch", "python", "system", or the top-level package. Pure functions of names, so
// that a report made on another machine says the same.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace attntrace {

inline constexpr char kOwnerUser[] = "user";
inline constexpr char kOwnerTorch[] = "torch";
inline constexpr char kOwnerPython[] = "python";
inline constexpr char kOwnerSystem[] = "system";

// True for the owners that a call site is never in: PyTorch, the interpreter, the C library.
bool IsPlumbing(absl::string_view owner);

// The folders that hold the user's own code in one process: those of its scripts (every file that ran as __main__ and is no
// launcher of an installed package), or the working directory where no script is known (pytest, a module run with -m).
class UserTree {
 public:
  explicit UserTree(std::string working_directory) : working_directory_(std::move(working_directory)) {}

  // A file whose frames had __name__ "__main__" (or "__mp_main__", multiprocessing's name for it).
  void AddScript(absl::string_view file);
  bool Contains(absl::string_view file) const;

 private:
  std::string working_directory_;
  std::vector<std::string> folders_;
};

// A Python frame: co_filename and the module's __name__.
std::string PythonOwner(absl::string_view file, absl::string_view module, const UserTree& tree);

// A native frame: path of the mapped object.
std::string NativeOwner(absl::string_view object);

// A file as its package would name it: "models/llama/modeling_llama.py" for one inside site-packages/transformers (the
// package's own folder left out), else relative to `directory` where it is inside, else unchanged.
std::string ShortPath(absl::string_view file, absl::string_view module, absl::string_view owner, absl::string_view directory);

}  // namespace attntrace
