"""How good memctl's rules are, measured on real data: one table with targets and figures, and JSON.

Each module of `measures` is one measure: a docstring, and a function `measure(data)` that yields `Figure`s, or raises
`Missing`. A new one is found by its being there. It is no test: it is read, not passed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
import time
from pathlib import Path

import measures
from figures import Figure, Missing
from sessions import FOLDER, Data


def main() -> None:
    known = [module.name for module in pkgutil.iter_modules(measures.__path__)]
    parser = argparse.ArgumentParser(
        prog="make eval", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="MEASURE", help=f"of {', '.join(known)}; all where none is named")
    parser.add_argument("--data", type=Path, default=FOLDER, help=f"the folder of published data ({FOLDER})")
    parser.add_argument("--sessions", type=Path, help="a folder of transcripts, in place of the data's own")
    parser.add_argument("--json", type=Path, help="write the figures here")
    given = parser.parse_args()
    if unknown := set(given.names) - set(known):
        parser.error(f"there is no measure {', '.join(sorted(unknown))}")
    data = Data(given.data, given.sessions)
    told: dict[str, object] = {}
    for name in given.names or known:
        began = time.monotonic()
        try:
            figures = list(importlib.import_module(f"measures.{name}").measure(data))
        except Missing as why:
            print(f"{name}: left out, {why}")
            continue
        seconds = round(time.monotonic() - began, 1)
        print(f"{name} ({seconds} s)")
        for figure in figures:
            verdict = {True: "reached", False: "missed", None: ""}[figure.reached]
            print(f"  {figure.name:<54} {_target(figure):>7} {figure.value:>6.3f} of {figure.of:<5} {verdict}".rstrip())
        told[name] = {"seconds": seconds, "figures": [{**f._asdict(), "reached": f.reached} for f in figures]}
        sys.stdout.flush()
    if given.json:
        given.json.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")


def _target(figure: Figure) -> str:
    return "" if figure.target is None else f"{'≤' if figure.at_most else '≥'} {figure.target:g}"


if __name__ == "__main__":
    main()
