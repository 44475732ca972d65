"""The unit tests on every other Python of this machine that memctl supports, and on all of them what real sessions
fold to.

`make test` runs the unit tests on the Python that this runs on. Interpreters are looked for on the PATH, in /usr/bin
and where pyenv keeps its own. Each gets an environment of its own below `.scratch/pythons`. Ends with 1 where tests
fail or two Pythons fold other facts.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import shared

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = ROOT / ".scratch" / "pythons"
OLDEST = (3, 11)
READ = ("house", "linear_time", "docs", "contributing", "reference", "deploy", "lock", "bench", "evaluation")
ALIKE = [f"tests/unit/test_{name}.py" for name in READ]
"""What reads the source and the documents, the tools beside the product, and how long RE2 takes: no Python differs in
that."""
LONG = (
    "test_patterns.py::test_no_pattern_takes_longer_than_its_text",
    "test_redaction.py::test_megabytes_of_secrets_are_searched_as_far_as_they_are_kept",
    "test_redaction.py::test_of_secrets_that_shrink_no_piece_is_kept_at_any_edge",
    "test_redaction.py::test_of_a_value_without_an_end_nothing_is_kept",
    "test_redaction.py::test_a_long_name_that_holds_a_secret_gives_way_to_a_digest_in_time",
    "test_redaction.py::test_what_a_rule_of_memctls_own_must_not_take_is_left",
    "test_redaction.py::test_vendors_shapes_are_shipped_as_published_and_find_what_they_are_for",
    "test_redaction.py::test_no_text_takes_long",
    "test_day_replayed.py::test_a_day_of_real_sessions_replayed_as_hooks_changes_nothing",
    "test_row_sizes.py::test_a_row_stays_within_its_limit_when_all_that_goes_to_it_is_as_long_as_can_be",
)
"""The same of megabytes, and of rules that RE2 and Hyperscan go by."""
VERSION = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
FACTS = """
import hashlib, os, sys
sys.path[:0] = ["tests", "tests/eval"]
import msgspec, published
from memctl.domain.session.stream_facts import derive
from memctl.infra.transcripts.files import discover
from sessions import Data
facts = []
if published.SESSIONS.exists():
    with published.sessions() as folder:
        for number, path in enumerate(sorted(discover([folder]))):
            if "MEMCTL_TEST_SOAK" not in os.environ and number % 4 != int(sys.argv[1]):
                path.unlink()
        streams = Data(published.FOLDER, folder).streams
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


def tested(python: Path) -> subprocess.CompletedProcess[str]:
    """The unit tests there. In one process: a second one would only import and collect everything once more."""
    left_out = [*(f"--ignore={path}" for path in ALIKE), *(f"--deselect=tests/unit/{each}" for each in LONG)]
    few = "--hypothesis-profile=few"
    tests = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", few, "tests/unit", *left_out]
    return subprocess.run(tests, cwd=ROOT, capture_output=True, text=True, check=False)


def folded(python: Path, part: int) -> subprocess.CompletedProcess[str]:
    """What that quarter of the sessions folds to there, or all of them where MEMCTL_TEST_SOAK is set."""
    return subprocess.run([python, "-c", FACTS, str(part)], cwd=ROOT, capture_output=True, text=True, check=False)


def main() -> None:
    """Run everything on each, three at a time: each is one process, and some wait."""
    own = ".".join(map(str, sys.version_info[:3]))
    shared.folder()  # what Hyperscan compiles serves all of them
    tests, facts = {}, {}
    part = random.randrange(4)
    with ThreadPoolExecutor(3) as pool:
        for version, python in interpreters().items():
            inside = Path(sys.executable) if version == own else environment(version, python)
            if version != own:
                tests[version] = pool.submit(tested, inside)
            facts[version] = pool.submit(folded, inside, part)
        failed = False
        for version, asked in facts.items():
            for each in (tests[version], asked) if version in tests else (asked,):
                done = each.result()
                print(f"Python {version}: {done.stdout.strip()}{done.stderr if done.returncode else ''}", flush=True)
                failed |= done.returncode != 0
    if len({asked.result().stdout for asked in facts.values()}) > 1:
        print("two Pythons fold other facts")
        failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
