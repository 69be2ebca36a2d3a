#include "tracer/near_names.h"

#include "tests/unit/catch.h"

namespace attntrace {
namespace {

TEST_CASE("edit distance counts single edits, a swap as one") {
  CHECK(EditDistance("", "abc") == 3);
  CHECK(EditDistance("report", "report") == 0);
  CHECK(EditDistance("reprot", "report") == 1);
  CHECK(EditDistance("kitten", "sitting") == 3);
}

TEST_CASE("near names come nearest first and unlike ones not at all") {
  const std::vector<absl::string_view> known = {"output", "force", "quiet", "color", "keep-spool"};
  CHECK(NearNames("colour", known) == std::vector<std::string>{"color"});
  CHECK(NearNames("keep", known) == std::vector<std::string>{"keep-spool"});
  CHECK(NearNames("keepspool", known) == std::vector<std::string>{"keep-spool"});
  CHECK(NearNames("zzzzzz", known).empty());
  CHECK(NearNames("x", known).empty());
  CHECK(NearNames("", known).empty());
}

TEST_CASE("the question names them all") {
  CHECK(DidYouMean("ab", {"ac", "ad"}) == ", did you mean ac or ad?");
  CHECK(DidYouMean("quite", {"quiet"}) == ", did you mean quiet?");
  CHECK(DidYouMean("nothing", {"quiet"}).empty());
}

}  // namespace
}  // namespace attntrace
