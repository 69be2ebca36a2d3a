#include "tracer/environment.h"

#include "tests/unit/catch.h"

namespace attntrace {
namespace {

constexpr char kOurs[] = "/opt/a/lib/attntrace/libattntrace_preload.so";

TEST_CASE("our preload goes in front and the user's stay") {
  CHECK(MergePreload("", kOurs) == kOurs);
  CHECK(MergePreload("/usr/lib/libjemalloc.so:libx.so", kOurs) == std::string(kOurs) + ":/usr/lib/libjemalloc.so:libx.so");
  CHECK(MergePreload("liba.so libb.so", kOurs) == std::string(kOurs) + ":liba.so:libb.so");
}

TEST_CASE("sanitizer runtimes stay first") {
  CHECK(MergePreload("/usr/lib/libx.so:/usr/lib/libasan.so.8", kOurs) ==
        std::string("/usr/lib/libasan.so.8:") + kOurs + ":/usr/lib/libx.so");
  CHECK(MergePreload("libclang_rt.asan-x86_64.so", kOurs) == std::string("libclang_rt.asan-x86_64.so:") + kOurs);
  CHECK(MergePreload("libasanother.so", kOurs) == std::string(kOurs) + ":libasanother.so");
}

TEST_CASE("ours is listed once, whatever installation was there before") {
  CHECK(MergePreload(kOurs, kOurs) == kOurs);
  CHECK(MergePreload(std::string("libx.so:/old/libattntrace_preload.so:") + kOurs, kOurs) == std::string(kOurs) + ":libx.so");
  CHECK(ListsOurPreload("libx.so /old/libattntrace_preload.so"));
  CHECK_FALSE(ListsOurPreload("libx.so:/old/notlibattntrace_preload.so"));
  CHECK_FALSE(ListsOurPreload(""));
}

TEST_CASE("a path with a separator cannot be preloaded") {
  CHECK(CanBePreloaded(kOurs));
  CHECK_FALSE(CanBePreloaded("/a b/x.so"));
  CHECK_FALSE(CanBePreloaded("/a:b/x.so"));
}

TEST_CASE("variables are replaced whole") {
  setenv("ATTNTRACE_TEST_A", "1", 1);
  setenv("ATTNTRACE_TEST_AB", "2", 1);
  ChildEnvironment environment = ChildEnvironment::OfThisProcess();
  environment.Set("ATTNTRACE_TEST_A", "3=4");
  CHECK(environment.Get("ATTNTRACE_TEST_A") == "3=4");
  CHECK(environment.Get("ATTNTRACE_TEST_AB") == "2");
  environment.Unset("ATTNTRACE_TEST_A");
  CHECK(environment.Get("ATTNTRACE_TEST_A").empty());
  CHECK(environment.Get("ATTNTRACE_TEST_AB") == "2");
  unsetenv("ATTNTRACE_TEST_A");
  unsetenv("ATTNTRACE_TEST_AB");
}

}  // namespace
}  // namespace attntrace
