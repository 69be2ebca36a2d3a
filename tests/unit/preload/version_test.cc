#include "tracer/preload/version.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/catch.h"

namespace attntrace::preload {
namespace {

namespace fs = std::filesystem;

// <root>/lib/libtorch_cpu.so, empty, and what else a test puts beside it.
class TorchFolder {
 public:
  TorchFolder() {
    std::string pattern = (fs::temp_directory_path() / "attntrace-version-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    fs::create_directory(root_ / "lib");
    Write("lib/libtorch_cpu.so", "");
  }
  ~TorchFolder() { fs::remove_all(root_); }

  void Write(const char* name, const std::string& text) { std::ofstream(root_ / name) << text; }
  fs::path root() const { return root_; }
  fs::path library() const { return root_ / "lib" / "libtorch_cpu.so"; }

 private:
  fs::path root_;
};

std::string VersionOf(const fs::path& library) {
  char version[64] = "untouched";
  return ReadTorchVersion(library.c_str(), version, sizeof(version)) ? version : "";
}

TEST_CASE("version: a wheel's version.py") {
  TorchFolder torch;
  torch.Write(
      "version.py",
      "from typing import Optional\n\n__all__ = ['__version__', 'debug']\n__version__ = '2.11.0+cu130'\ndebug = False\n");
  REQUIRE(VersionOf(torch.library()) == "2.11.0+cu130");
}

TEST_CASE("version: a LibTorch archive's build-version") {
  TorchFolder torch;
  torch.Write("build-version", "2.6.0+cpu\n");
  REQUIRE(VersionOf(torch.library()) == "2.6.0+cpu");
}

TEST_CASE("version: companions of a library behind a link") {
  TorchFolder torch;
  torch.Write("build-version", "2.15.0\n");
  TorchFolder elsewhere;
  fs::remove(elsewhere.library());
  fs::create_symlink(torch.library(), elsewhere.library());
  REQUIRE(VersionOf(elsewhere.library()) == "2.15.0");
}

TEST_CASE("version: nothing is made up") {
  TorchFolder torch;
  REQUIRE(VersionOf(torch.library()).empty());
  torch.Write("version.py", "__version__ = ''\n");
  torch.Write("build-version", "\n");
  REQUIRE(VersionOf(torch.library()).empty());
  torch.Write("build-version", std::string(500, '9'));
  REQUIRE(VersionOf(torch.library()).empty());
  REQUIRE(VersionOf("libtorch_cpu.so").empty());
}

TEST_CASE("version: the agent's folder drops the local part") {
  char folder[64];
  AgentFolder("2.11.0+cu130", folder, sizeof(folder));
  REQUIRE(std::string(folder) == "torch-2.11.0");
  AgentFolder("2.15.0.dev20260101", folder, sizeof(folder));
  REQUIRE(std::string(folder) == "torch-2.15.0.dev20260101");
}

}  // namespace
}  // namespace attntrace::preload
