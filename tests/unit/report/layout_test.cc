#include "report/writers/layout.h"

#include "report/decode/text.h"
#include "tests/unit/catch.h"

namespace attntrace {
namespace {

TEST_CASE("text is measured and cut by what a terminal shows") {
  CHECK(DisplayWidth("a·b") == 3);
  CHECK(PadRight("é", 3) == "é  ");
  CHECK(PadLeft("12", 4) == "  12");
  CHECK(PadLeft("12345", 4) == "12345");
  CHECK(KeepEnd("modeling_qwen3.py:212", 8) == "….py:212");
  CHECK(KeepStart("naïve text", 6) == "naïve…");
  CHECK(KeepEnd("short", 8) == "short");
  CHECK(Wrap("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(Wrap("scores of 2 MiB, 12 of them", 12) == std::vector<std::string>{"scores of", "2 MiB, 12 of", "them"});
  CHECK(KeepPathEnd("/home/ada/examples/train.py:25", 24) == "…/examples/train.py:25");
  CHECK(KeepPathEnd("/home/ada/train.py:25", 24) == "/home/ada/train.py:25");
  CHECK(KeepPathEnd("/home/a_very_long_name.py:25", 12) == "…_name.py:25");
  CHECK(Wrap("unbreakable", 4) == std::vector<std::string>{"unbreakable"});
  CHECK(Wrap("", 4) == std::vector<std::string>{""});
  CHECK(Ranges({0, 1, 2, 5, 7, 8}) == "0-2, 5, 7-8");
  CHECK(Ranges({}) == "");
  CHECK(Printable("a\x1B[31mb\nc\xC2\x9B") == "a?[31mb?c?");
}

TEST_CASE("bytes that are not UTF-8 are replaced one by one") {
  CHECK(CleanUtf8("grün") == "grün");
  CHECK(CleanUtf8("\xF0\x9F\x98\x80") == "\xF0\x9F\x98\x80");
  CHECK(CleanUtf8("\xFF") == "\xEF\xBF\xBD");
  CHECK(CleanUtf8("a\xC3") == "a\xEF\xBF\xBD");
  CHECK(CleanUtf8("\xC0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(CleanUtf8("\xF4\x90\x80\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace attntrace
