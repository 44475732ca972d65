"""The published rules of vendors, halved by the hash of their file's name, and as memctl ships them.

Rules and numbers of memctl's are written with the first half at hand; the second is for reporting. Run as a program,
this writes `infra/redaction/shapes/kingfisher/rules.json` anew.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SHIPPED = Path(__file__).parents[1] / "infra" / "redaction" / "shapes" / "kingfisher" / "rules.json"


def first_half(file: str) -> bool:
    """Whether rules were written with that file at hand."""
    return int(hashlib.sha256(file.encode()).hexdigest(), 16) % 2 == 0


def published_rules(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each rule, with the name of its file."""
    import yaml

    for file in sorted(folder.glob("*.yml")):
        for rule in yaml.safe_load(file.read_text(encoding="utf-8"))["rules"]:
            yield file.name, rule


def as_shipped(rule: dict[str, Any]) -> dict[str, Any] | None:
    """A rule as it is shipped: what finds, without what asks the vendor. None for what is public, and for patterns
    that are not of the dialect."""
    from memctl.domain.support import patterns
    from memctl.infra.redaction.rules import Rule

    if rule.get("visible") is False:
        return None
    try:
        compiled = Rule(id=rule["id"], marker="", pattern=rule["pattern"]).compiled()
        if compiled.search(b"") is not None:
            return None
    except patterns.BadPattern:
        return None
    kept = {name: rule[name] for name in ("name", "id", "pattern") if name in rule}
    if "min_entropy" in rule:
        kept["entropy"] = float(rule["min_entropy"])
    return kept


def main() -> None:
    """Write the shipped rules, one a line."""
    from published import FOLDER, lacking

    folder = FOLDER / "secrets-kingfisher" / "rules"
    if not folder.is_dir():
        sys.exit(lacking(folder))
    rules = [(file, rule, as_shipped(rule)) for file, rule in published_rules(folder)]
    lines = [json.dumps({"file": file, **kept}, sort_keys=True) for file, _, kept in rules if kept]
    SHIPPED.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    print(f"{len(lines)} of {len(rules)} rules")


if __name__ == "__main__":
    main()
