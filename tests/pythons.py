"""The unit tests on every other Python of this machine that memctl supports, and on all of them what real sessions
fold to.

`make test` runs the unit tests on the Python that this runs on. Interpreters are looked for on the PATH, in /usr/bin
and where pyenv keeps its own. Each gets an environment of its own below `.scratch/pythons`. Ends with 1 where tests
fail or two Pythons fold other facts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = ROOT / ".scratch" / "pythons"
OLDEST = (3, 11)
ALIKE = [f"tests/unit/test_{name}.py" for name in ("house", "linear_time", "docs", "contributing", "reference")]
"""What reads the source and the documents, and how long RE2 takes: no Python differs in that."""
LONG = (
    "test_patterns.py::test_no_pattern_takes_longer_than_its_text",
    "test_redaction.py::test_megabytes_of_secrets_are_searched_as_far_as_they_are_kept",
    "test_redaction.py::test_of_secrets_that_shrink_no_piece_is_kept_at_any_edge",
)
"""The same of megabytes."""
VERSION = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
FACTS = """
import hashlib, sys
sys.path[:0] = ["tests", "tests/eval"]
import msgspec, published
from collections import defaultdict
from events import as_read
from memctl.domain.session.fold import derive
from sessions import Data
data = Data(published.FOLDER)
streams = defaultdict(list)
for number, event in enumerate(data.events if data.has_sessions else ()):
    streams[event.stream].append(as_read(event, number + 1))
folded = (fact for stream, events in streams.items() for fact in derive(stream, events).drain())
facts = sorted(map(msgspec.json.encode, folded))
print(len(facts), "facts", hashlib.sha256(b"".join(facts)).hexdigest()[:16])
"""


def interpreters() -> dict[str, Path]:
    """Supported Pythons by version."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    folders += [Path("/usr/bin"), *sorted(Path.home().glob(".pyenv/versions/*/bin"))]
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.glob("python3.*")) if folder.is_dir() else ():
            if not path.name.removeprefix("python3.").isdecimal():
                continue
            asked = subprocess.run([path, "-c", VERSION], capture_output=True, text=True, check=False)
            version = asked.stdout.strip()
            if asked.returncode == 0 and tuple(map(int, version.split(".")[:2])) >= OLDEST:
                found.setdefault(version, path)
    return dict(sorted(found.items()))


def environment(version: str, python: Path) -> Path:
    """The interpreter of an environment with memctl and what its tests need."""
    folder = ENVIRONMENTS / version
    uv = [sys.executable, "-m", "uv"]
    if not folder.exists():
        subprocess.run([*uv, "venv", "--quiet", "--python", python, folder], check=True)
    inside = folder / "bin" / "python"
    subprocess.run([*uv, "pip", "install", "--quiet", "--python", inside, "-e", f"{ROOT}[dev]"], check=True)
    return inside


def main() -> None:
    """Run everything on each."""
    failed, facts = False, set()
    own = ".".join(map(str, sys.version_info[:3]))
    for version, python in interpreters().items():
        inside = environment(version, python)
        if version != own:
            print(f"Python {version}", flush=True)
            left_out = [*(f"--ignore={path}" for path in ALIKE), *(f"--deselect=tests/unit/{each}" for each in LONG)]
            tests = [inside, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "tests/unit", *left_out]
            failed |= subprocess.run(tests, cwd=ROOT, check=False).returncode != 0
        folded = subprocess.run(
            [inside, "-c", FACTS], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()
        print(f"Python {version}: {folded}", flush=True)
        facts.add(folded)
    if len(facts) > 1:
        print("two Pythons fold other facts")
    sys.exit(failed or len(facts) > 1)


if __name__ == "__main__":
    main()
