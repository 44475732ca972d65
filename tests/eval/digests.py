"""The digest of each read model over the published sessions, beside those on record: `make digests`.

An embedded memctl of its own reads each set of sessions, without an embedder, and is rebuilt. What reads and folds is
meant to be changed freely; whether it still makes the same rows is said here. `RECORD=1` writes down those of today.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from folded import SETS, folded
from published import FOLDER

UNASKED = {"MEMCTL_PROCESSORS__CONSOLIDATE": "false", "MEMCTL_PROCESSORS__REFLECT": "false"}
"""Whether a round falls into the run would go by how busy the machine is, and with it what is remembered."""

ON_RECORD = Path(__file__).parents[1] / "data" / "digests.json"


def digests(archive: Path) -> dict[str, str]:
    """By read model: how many rows and their digest, live and rebuilt alike. Raises: CalledProcessError."""
    with folded(archive) as memctl:
        found = json.loads(memctl("replay", "--all", "--verify", "--json"))
    return {name: f"{each['rows']} {each['digest_live']}" for name, each in sorted(found["read_models"].items())}


def main() -> int:
    """Say what differs from what is on record; 1 where something does."""
    recorded = json.loads(ON_RECORD.read_text()) if ON_RECORD.exists() else {}
    differing = 0
    os.environ.update(UNASKED)
    for name in SETS:
        archive = FOLDER / f"{name}.tar.xz"
        if not archive.exists():
            print(f"{name}: not on this machine")
            continue
        found, before = digests(archive), recorded.get(name, {})
        if os.environ.get("RECORD"):
            recorded[name] = found
            continue
        changed = sorted(each for each in found.keys() | before.keys() if found.get(each) != before.get(each))
        print(f"{name}: {len(found) - len(changed)} read models as recorded; differing: {', '.join(changed) or 'none'}")
        differing += len(changed)
    if os.environ.get("RECORD"):
        ON_RECORD.write_text(json.dumps(recorded, indent=1) + "\n")
    return min(differing, 1)


if __name__ == "__main__":
    raise SystemExit(main())
