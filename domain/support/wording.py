"""What is worded alike on a terminal, in the viewer and for agents."""

from __future__ import annotations


def span(seconds: float | None) -> str:
    """A duration as people say it: `40 s`, `12 min`, `3 h`, `2 d`; empty where it is not known."""
    if seconds is None:
        return ""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def size(count: int) -> str:
    """Bytes as people say it: `1.2 MB`."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def fix_and_why(approach: str, description: str) -> tuple[str, str]:
    """A solution as it is shown: what was done, and why it helps. Often the first is only the beginning of the second,
    which is then shown whole, and once."""
    if description.startswith(approach[:40].rstrip("…")):
        return description, ""
    return approach, description
