"""Draw our own findings of errors and fixes, to be read one by one: `python tests/eval/findings.py [COUNT]`.

The draw is by a hash of the finding's id, so it stays the same for findings that stay, whatever else a rule changes.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

from sessions import FOLDER, Data

from memctl.domain.events.facts import ErrorOccurred, ErrorResolved

SEED = 1


def drawn(data: Data, count: int, seed: int = SEED) -> list[tuple[ErrorOccurred, ErrorResolved]]:
    """So many findings, in the order of the draw."""
    pairs = []
    for facts in data.facts.values():
        errors = {fact.id: fact for fact in facts if isinstance(fact, ErrorOccurred)}
        pairs += [(errors[fact.error], fact) for fact in facts if isinstance(fact, ErrorResolved)]
    return sorted(pairs, key=lambda pair: hashlib.sha256(f"{seed}:{pair[1].id}".encode()).digest())[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=60)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--sessions", type=Path)
    given = parser.parse_args()
    for number, (error, fix) in enumerate(drawn(Data(given.data, given.sessions), given.count, given.seed), 1):
        print(f"{number}. {fix.session_id} {error.location} {fix.duration_us / 1e6:.0f} s")
        print(f"   error  {'/'.join(error.error_types)}: {error.message[:200]!r} {error.frames[:2]} {error.files[:2]}")
        print(f"   failed {error.command[:160]!r}")
        print(f"   passed {fix.command[:160]!r}")
        print(f"   fix    {fix.approach}")
        for edit in fix.edits[:5]:
            print(f"          {edit.path[-50:]}: {edit.before[:120]!r} => {edit.after[:120]!r}")
        print(f"   why    {fix.explanation[:400]}\n")


if __name__ == "__main__":
    main()
