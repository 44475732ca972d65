"""What the seeds promise, row by row, counted in both published sets: `make coverage` writes docs/coverage.md.

The rows stand in coverage.txt, the counts of the last measurement in tests/data/coverage.json. Each set is read by an
embedded memctl of its own without an embedder, and its processors have looked for work once. `--page` writes the page
of what stands there and measures nothing; `--rows` prints every row with its counts.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

REGISTER = Path(__file__).with_name("coverage.txt")
COUNTS = ROOT / "tests" / "data" / "coverage.json"
PAGE = ROOT / "docs" / "coverage.md"

Counts = dict[str, list[int]]
"""By what is counted, the rows that have it: in set 1, and in set 2."""


class Row(NamedTuple):
    """One promise. `counted` is empty where transcripts cannot show it; `decision` is 0 but for what is left out."""

    group: str
    asks: str
    counted: str
    check: str
    verdict: str
    why: str
    decision: int


def register() -> list[Row]:
    """Every row. Raises: ValueError for a line that is none."""
    rows, group = [], ""
    for line in REGISTER.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            group = line[3:]
        elif line and not line.startswith("#"):
            asks, counted, check, said = line.split(" | ")
            verdict, _, why = said.partition(": ")
            verdict, _, decision = verdict.partition(" ")
            rows.append(Row(group, asks, counted.strip("-"), check, verdict, why, int(decision or 0)))
    return rows


def having(row: Any, path: str) -> bool:
    """Whether a row has a field, or one of what it holds has: not empty, not 0, not False; or that value."""
    path, _, value = path.partition("=")
    found = [row]
    for name in path.split("."):
        within = (getattr(each, name) for each in found)
        found = [one for each in within for one in (each if isinstance(each, (tuple, list)) else (each,))]
    return any(str(each) == value for each in found) if value else any(found)


def counted(database: str, names: Iterable[str]) -> dict[str, int]:
    """How many live rows of that database have each of these, and how many there are of each read model."""
    from memctl.infra.database import connect
    from memctl.infra.readmodels import generations, rows
    from memctl.projections.kernel import projections

    paths: dict[str, list[str]] = defaultdict(list)
    for name in names:
        model, _, path = name.partition(".")
        paths[model].append(path)
    found: dict[str, int] = {}
    with connect(database, name="coverage") as connection:
        live = generations.live(connection)
        for p in projections():
            table = rows.table(p.name, live.stage1 if p.stage == 1 else live.stage2)
            stored = connection.execute(f"SELECT row FROM {table}", binary=True).fetchall()  # type: ignore[arg-type]
            every = [rows.decode_row(p, data) for (data,) in stored]
            found[p.name] = len(every)
            for path in filter(None, paths[p.name]):
                found[f"{p.name}.{path}"] = sum(having(each, path) for each in every)
    return found


def measured(wanted: list[Row]) -> Counts:
    """The counts in both sets. Raises: FileNotFoundError where one is not on this machine."""
    from folded import SETS, folded
    from published import FOLDER

    counts: Counts = defaultdict(list)
    for name in SETS:
        with folded(FOLDER / f"{name}.tar.xz") as memctl:
            memctl("maintain")
            database = json.loads(memctl("config", "--json"))["database_url"]
            for what, count in counted(database, {row.counted for row in wanted if row.counted}).items():
                counts[what].append(count)
    return dict(sorted(counts.items()))


def page(rows: list[Row], counts: Counts) -> str:
    """The page, as Markdown."""
    verdicts = Counter(row.verdict for row in rows)
    return "\n".join(_lines(rows, counts, verdicts)).rstrip("\n") + "\n"


def _lines(rows: list[Row], counts: Counts, verdicts: Counter[str]) -> Iterator[str]:
    yield "<!-- Written by `make coverage`. -->\n\n# What the designs asked for\n"
    yield (
        "Five designs of a memory for agents stood at the beginning (000 three tiers, 001 a module, 002 a plugin,\n"
        f"003 ReasoningBank, 004 a redesign). What they promise has {len(rows)} rows in `tests/eval/coverage.txt`,\n"
        "each with what counts it, and a command or test that shows it (`make coverage HOW=--rows`). Counted are 150\n"
        "sessions that rules were fitted to (set 1) and 96 that none was (set 2), without a language model.\n"
    )
    names = {"works": "works", "thin": "thin", "out": "left out", "missing": "missing"}
    yield ", ".join(f"**{verdicts[key]} {name}**" for key, name in names.items()) + ".\n"
    yield "Works, thin, left out, by part:\n"
    for group in dict.fromkeys(row.group for row in rows):
        found = Counter(row.verdict for row in rows if row.group == group)
        yield f"- {group}: {found['works']}, {found['thin']}, {found['out']}"
    yield "\n## Rows of each read model\n"
    yield "In set 1 and set 2; what processors record varies. What has none needs a person, hooks, or `--git`.\n"
    models = [name for name in counts if "." not in name]
    yield "; ".join(f"`{name}` {_of(counts[name])}" for name in models) + ".\n"
    yield "## Thin\n\nIt works, and these sessions hardly show it.\n"
    for row in (row for row in rows if row.verdict == "thin"):
        model = row.counted.partition(".")[0]
        yield f"- {row.asks} ({_of(counts[row.counted])} of {_of(counts[model])}): {row.why}"
    yield "\n## Left out\n"
    for decision in sorted({row.decision for row in rows if row.verdict == "out"}):
        (file,) = (ROOT / "docs" / "decisions").glob(f"{decision:04}-*.md")
        left = "; ".join(row.asks for row in rows if row.decision == decision)
        yield f"- By [decision {decision}](decisions/{file.name}): {left}."


def _of(pair: list[int]) -> str:
    return ", ".join(f"{each:,}" for each in pair)


def main(words: list[str]) -> int:
    rows = register()
    if "--rows" in words:
        counts = json.loads(COUNTS.read_text())
        for row in rows:
            print(f"{row.group[:3]}  {row.verdict:<5}  {row.asks}  [{_of(counts.get(row.counted, []))}]  {row.check}")
        return 0
    if "--page" not in words:
        COUNTS.write_text(json.dumps(measured(rows), indent=0) + "\n")
    PAGE.write_text(page(rows, json.loads(COUNTS.read_text())), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
