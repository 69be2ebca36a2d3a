"""docs/usage.md shows what the command itself prints. `docs_test.py --update` writes it anew."""

import os
import sys

from harness import Case, main

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "usage.md")
BEGIN, END = "<!-- attntrace --help -->\n```\n", "```\n<!-- end -->\n"


def parts():
    with open(PAGE) as file:
        before, rest = file.read().split(BEGIN)
    shown, after = rest.split(END)
    return before, shown, after


class Docs(Case):
    def test_usage_page_shows_the_help_of_today(self):
        self.maxDiff = None
        self.assertEqual(parts()[1], self.run_it("--help").stdout, "tests/cli/docs_test.py --update")


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        case = Case()
        case.setUp()
        before, _, after = parts()
        text = before + BEGIN + case.run_it("--help").stdout + END + after
        with open(PAGE, "w") as file:
            file.write(text)
        case.doCleanups()
    else:
        main()
