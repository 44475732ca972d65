"""Has recheck judge each pattern of `library_patterns.json`: by which power of a text's length may it take time?

    make patterns

recheck (npm) is a static checker of JavaScript's patterns. A pattern of `re` is put into that syntax by what Python's
own parser reads in it. A verdict other than the one on the list fails; so does one that is worse than linear.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LIST = Path(__file__).parent / "library_patterns.json"
LINEAR = ("safe", "linear")
CHECKER = ROOT / ".scratch" / "recheck"
_CATEGORIES = {"SPACE": r"\s", "NOT_SPACE": r"\S", "DIGIT": r"\d", "NOT_DIGIT": r"\D", "WORD": r"\w", "NOT_WORD": r"\W"}
_PLACES = {
    "BEGINNING": "^",
    "BEGINNING_STRING": "^",
    "END": "$",
    "END_STRING": "$",
    "BOUNDARY": r"\b",
    "NON_BOUNDARY": r"\B",
}
_ASK = """
const { checkSync } = require("recheck");
const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
const say = ([source, flags]) => {
  const { status, complexity } = checkSync(source, flags, { timeout: 60000 });
  if (!complexity) return status;
  return complexity.type + (complexity.type === "polynomial" ? ` of degree ${complexity.degree}` : "");
};
console.log(JSON.stringify(asked.map(say)));
"""


def in_javascript(pattern: str, flags: int, place: str) -> tuple[str, str]:
    """A pattern of `re` and its flags, as JavaScript writes them; `place` is where in a text it is looked for."""
    parsed = re._parser.parse(pattern, flags & ~re.UNICODE)  # type: ignore[attr-defined]
    source = {"start": "^(?:%s)", "whole": "^(?:%s)$"}.get(place, "%s") % _each(parsed)
    known = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}
    return source, "".join(each for flag, each in known.items() if parsed.state.flags & flag)


def _each(parsed: Any) -> str:
    return "".join(_one(str(kind), given) for kind, given in parsed)


def _character(code: int) -> str:
    return chr(code) if chr(code).isalnum() else f"\\u{code:04x}"


def _one(kind: str, given: Any) -> str:
    match kind:
        case "LITERAL":
            return _character(given)
        case "NOT_LITERAL":
            return f"[^{_character(given)}]"
        case "ANY":
            return "."
        case "AT":
            return _PLACES[str(given).removeprefix("AT_")]
        case "IN":
            return "[" + "".join(_of_class(str(each), value) for each, value in given) + "]"
        case "BRANCH":
            return "(?:" + "|".join(map(_each, given[1])) + ")"
        case "SUBPATTERN":
            return f"({'?:' if given[0] is None else ''}{_each(given[-1])})"
        case "MAX_REPEAT" | "MIN_REPEAT":
            least, most, repeated = given
            count = f"{{{least},{'' if str(most) == 'MAXREPEAT' else most}}}"
            return f"(?:{_each(repeated)}){count}{'?' if kind == 'MIN_REPEAT' else ''}"
        case "ASSERT" | "ASSERT_NOT":
            behind, asserted = given
            return f"(?{'<' if behind < 0 else ''}{'=' if kind == 'ASSERT' else '!'}{_each(asserted)})"
    raise ValueError(f"{kind} is of no use to recheck")


def _of_class(kind: str, given: Any) -> str:
    if kind == "NEGATE":
        return "^"
    if kind == "RANGE":
        return f"{_character(given[0])}-{_character(given[1])}"
    return _character(given) if kind == "LITERAL" else _CATEGORIES[str(given).removeprefix("CATEGORY_")]


def judged(patterns: list[tuple[str, int, str]]) -> list[str]:
    """What recheck says of each: safe, linear, polynomial of a degree, exponential."""
    asked = json.dumps([in_javascript(*each) for each in patterns])
    done = subprocess.run(
        ["node", "-e", _ASK], cwd=CHECKER, input=asked, capture_output=True, text=True, check=True, timeout=1_800
    )
    said: list[str] = json.loads(done.stdout)
    return said


def main() -> int:
    listed = json.loads(LIST.read_text())
    wrong = 0
    for entry, verdict in zip(
        listed, judged([(each["pattern"], each["flags"], each["place"]) for each in listed]), strict=True
    ):
        well = verdict == entry["verdict"] and verdict in LINEAR
        wrong += not well
        print(f"{'ok  ' if well else 'BAD '} {verdict:<24} {entry['module']}: {entry['pattern'][:60]!r}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
