"""What the contribution guide tells a newcomer to write works as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
READ_MODEL, STATEMENT, QUESTION = map(textwrap.dedent, BLOCKS)

TRY = """
import sys
sys.path.insert(0, "tests")
import data_dirs
data_dirs.compile_once()
from events import as_read
from histories import example
from memctl.domain.session.stream_facts import derive
from memctl.domain.events.facts import TaskClosed
from memctl.projections import kernel

registered = {p.name: p for p in kernel.projections()}
if "task_endings" not in registered:  # whoever followed the guide has it there
    exec(compile(sys.stdin.read(), "task_endings.py", "exec"), {"__name__": "memctl.projections.task_endings"})
    sys.modules["memctl.projections.task_endings"] = type(sys)("task_endings")
mine = kernel._register["task_endings"]
events = [as_read(new, n + 1) for n, new in enumerate(e for k in range(3) for e in example(k, day=k + 2))]
rows = {}
for stream in {event.stream for event in events}:
    for fact in derive(stream, [event for event in events if event.stream == stream]).drain():
        if type(fact) in mine.facts:
            for key in mine.keys(fact):
                rows[key] = mine.fold(rows.get(key), fact)
print(rows)
"""


def test_the_guides_read_model_folds() -> None:
    source = READ_MODEL
    asked = [sys.executable, "-c", TRY]
    ended = subprocess.run(asked, input=source, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "TaskEndings(location='/home/dana/ledger'" in ended.stdout


ASKED = """
import sys
from memctl.api.reading.questions import questions
from memctl.projections import kernel

read_model, question = sys.stdin.read().split("# --- question ---")
registered = {p.name for p in kernel.projections()}
if "task_endings" not in registered:
    module = sys.modules["memctl.projections.task_endings"] = type(sys)("memctl.projections.task_endings")
    exec(compile(read_model, "task_endings.py", "exec"), module.__dict__)
module = sys.modules["memctl.api.queries.task_endings"] = type(sys)("memctl.api.queries.task_endings")
if "/task-endings" not in {each.path for each in questions()}:  # whoever followed the guide has it there
    questions.cache_clear()
    exec(compile(question, "task_endings.py", "exec"), module.__dict__)
(mine,) = [each for each in questions() if each.path == "/task-endings"]
print([each.name for each in mine.parameters], mine.answer)
"""


def test_the_guides_question_is_declared() -> None:
    asked = [sys.executable, "-c", ASKED]
    source = f"{READ_MODEL}# --- question ---{QUESTION}"
    ended = subprocess.run(asked, input=source, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "['reader', 'places', 'limit', 'cursor']" in ended.stdout


JOINS = """
import memctl.projections
memctl.projections.__path__.append({folder!r})
"""


def test_the_guides_read_model_is_found_by_being_there_and_keeps_every_law(tmp_path: Path) -> None:
    """The tests that go through all read models, with that one more, and no other file changed."""
    folder = tmp_path / "projections"
    folder.mkdir()
    (folder / "task_endings.py").write_text(READ_MODEL, encoding="utf-8")
    (tmp_path / "joins.py").write_text(JOINS.format(folder=str(folder)), encoding="utf-8")
    (laws,) = re.findall(r"`pytest -n 0 (-k [^`]*)`", GUIDE)
    asked = [sys.executable, "-m", "pytest", "-q", "-p", "joins", "-p", "no:cacheprovider", *shlex.split(laws)]
    ended = subprocess.run(
        asked, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert ended.returncode == 0, ended.stdout
    assert re.search(r"\d+ passed, \d+ deselected", ended.stdout)


DECIDES = """
import sys
name = "memctl.domain.projects.place_purpose"
sys.modules[name] = module = type(sys)(name)
exec(compile(sys.stdin.read(), "place_purpose.py", "exec"), vars(module))
from memctl.domain.events.command import commands, read_command
from memctl.domain.events.event import event_types
asked = read_command(commands()["describe-place"], b'{"text": "invoices", "location": "/home/dana/ledger"}')
print(asked.stream, asked.decide(()), event_types()["place.described"].name)
"""


def test_the_guides_command_is_found_and_decides_the_guides_event() -> None:
    asked = [sys.executable, "-c", DECIDES]
    ended = subprocess.run(asked, input=STATEMENT, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "places//home/dana/ledger PlaceDescribed(text='invoices') place.described\n"


def test_the_guide_names_files_and_targets_that_exist() -> None:
    made = {"projections/task_endings.py", "api/queries/task_endings.py", "domain/projects/place_purpose.py"}
    for path in set(re.findall(r"`((?:domain|projections|infra|workers|api|cli|tests|docs)/[\w./-]+)`", GUIDE)) - made:
        assert (ROOT / path).exists(), path
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`make ([\w-]+)", GUIDE):
        assert f"\n{target}:" in makefile, target


def test_what_the_guide_names_is_there() -> None:
    """Files and words of code in backticks, but for those that it has its reader write."""
    files = [
        name
        for name in re.findall(r"`([a-z_]+/[a-z_/]+\.(?:py|html))`", GUIDE)
        if "task_endings" not in name and "place_purpose" not in name
    ]
    assert len(files) > 10
    assert not [name for name in files if not (ROOT / name).is_file()]
    code = "".join(path.read_text() for folder in ("domain", "projections", "infra", "workers", "api", "cli", "tests")
                   for kind in ("*.py", "*.html") for path in (ROOT / folder).rglob(kind))  # fmt: skip
    own = {name for block in BLOCKS for name in re.findall(r"\w+", block)}
    named = {name for name in re.findall(r"`([a-z][a-z_]{3,})`", GUIDE) if name not in own}
    assert not [name for name in named if not re.search(rf"\b{name}\b", code)]


def test_what_the_guide_says_to_add_one_of_is_what_that_file_has_others_of() -> None:
    found = re.findall(r"one `(\w+)\(…\)`[^.`]*(?:`\w+`[^.`]*)?`([\w/]+\.py)`", GUIDE)
    assert found
    for name, file in found:
        assert re.search(rf"(?<!def )(?<!class )\b{name}\(", (ROOT / file).read_text()), f"{file} has no {name}(…)"
