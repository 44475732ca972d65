"""By which rules a process folds: those it loaded. It notices when others are asked for, and ends."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from histories import digests, example
from waiting import until

from memctl.api.checks.doctor import _schema
from memctl.api.checks.health import health, troubles
from memctl.api.reading.caller import OWNER
from memctl.api.reading.reader import reader_of
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.log.migrate import NewerSchema
from memctl.infra.readmodels import fingerprint as rules
from memctl.infra.readmodels import fleet
from memctl.infra.settings import Settings, load_settings
from memctl.workers.folding.drain import Drainer
from memctl.workers.runtime import worker as run

ROOT = Path(__file__).parents[2]

DECIDES_NO_ROW = {
    "infra", "workers",  # the packages
    "infra.database", "infra.readmodels.generations", "infra.readmodels.rebuilds",  # who folds, and when
    "infra.readmodels.fleet",
    "infra.readmodels.fingerprint", "infra.readmodels.processor_work", "infra.readmodels",
    "infra.log", "infra.log.mark", "infra.log.migrate", "infra.embedded", "infra.embedded.launch",
    "workers.folding", "workers.rebuild", "workers.folding.drain", "workers.folding.refold",
    "workers.folding.long_sessions", "workers.folding.costly_streams",
    # that a fold never ends, not where
    "workers.watchdog.frames", "workers.watchdog.guard", "workers.watchdog.progress_board", "workers.rebuild.stuck",
    "workers.rebuild.profile",  # what time it takes
}  # fmt: skip
"""What the modules that fold import, and the fingerprint leaves out: a change of it leads to the same rows."""


def test_whatever_decides_a_row_is_in_the_fingerprint() -> None:
    """A new module of the engine is either in its list, or in the one above."""
    found, waiting = set(), ["workers.folding.stage1", "workers.folding.stage2", "workers.rebuild.build"]
    while waiting:
        name = waiting.pop()
        file = ROOT.joinpath(*name.split(".")).with_suffix(".py")
        if name in found or not name.startswith(("workers", "infra")):
            continue
        found.add(name)
        if name in DECIDES_NO_ROW or not file.exists():
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("memctl."):
                module = node.module.removeprefix("memctl.")
                inner = [f"{module}.{alias.name}" for alias in node.names]
                files = [name for name in inner if ROOT.joinpath(*name.split(".")).with_suffix(".py").exists()]
                waiting += files or [module]
    assert found - DECIDES_NO_ROW == set(rules.ENGINE)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files of memctl, as another installation."""
    for room in ("domain", "projections", "infra", "workers"):
        shutil.copytree(ROOT / room, tmp_path / "memctl" / room, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


class Installed:
    """A process of that installation, which has loaded its rules, and tells its fingerprint when asked."""

    CODE = """
import memctl.workers.folding.stage2
from memctl.infra.readmodels import fingerprint as rules
print("loaded", flush=True)
for _ in iter(input, "end"):
    try:
        print(rules.fingerprint(), flush=True)
    except rules.RulesChanged as problem:
        print(problem, flush=True)
"""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", self.CODE], cwd=folder, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._asked, self._told = self._process.stdin, self._process.stdout
        assert self._told.readline() == "loaded\n"

    def fingerprint(self) -> str:
        self._asked.write("\n")
        self._asked.flush()
        return self._told.readline().strip()

    def __enter__(self) -> Installed:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate("end\n")


def edit(folder: Path, file: str) -> None:
    path = folder / "memctl" / file
    path.write_text(path.read_text(encoding="utf-8") + "\n# another rule\n", encoding="utf-8")


def test_a_fingerprint_is_of_what_was_loaded_or_there_is_none(copy: Path) -> None:
    with Installed(copy) as early, Installed(copy) as late:
        first = early.fingerprint()
        assert first == rules.fingerprint()  # of a path's files, not of the path
        edit(copy, "domain/failures/signatures.py")
        assert early.fingerprint() == first  # told before, and it still folds by them
        assert late.fingerprint() == "memctl's files have changed since this process started."
    with Installed(copy) as today:
        second = today.fingerprint()
    assert len(second) == 32
    assert second != first


@pytest.mark.parametrize(
    "file", ["workers/folding/stage2.py", "infra/log/read.py", "projections/memories.py", "domain/events/recalls.py"]
)
def test_a_change_of_what_decides_a_row_changes_the_fingerprint(copy: Path, file: str) -> None:
    edit(copy, file)
    with Installed(copy) as process:
        found = process.fingerprint()
    assert len(found) == 32
    assert found != rules.fingerprint()


def test_a_rule_that_no_fold_imports_changes_nothing(copy: Path) -> None:
    edit(copy, "domain/retrieval/ranking.py")
    edit(copy, "workers/runtime/sweeper.py")
    with Installed(copy) as process:
        assert process.fingerprint() == rules.fingerprint()


# --- a fleet of one version and several images ---


def other_rules(url: str) -> Connection:
    """A worker of the live rules, which are not this process's. Ends when its connection is closed."""
    with connect(url) as log, pytest.MonkeyPatch.context() as there:
        there.setattr(fleet.rules, "fingerprint", lambda: OTHERS)
        log.execute("UPDATE memctl.generations SET fingerprint = %s", [OTHERS])
        worker = connect(url, name="memctl worker")
        fleet.join(worker)
        return worker


OTHERS = "f" * 32


def test_a_worker_whose_image_differs_waits_while_one_of_the_live_rules_lives(
    database_url: str, log: Connection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looks: list[str] = []
    rest = run.time.sleep

    def pause(seconds: float) -> None:
        looks.append(str(fleet.waiting(log)))
        if len(looks) == 3:
            leader.close()
            with monkeypatch.context() as meanwhile:  # `until` sleeps, too
                meanwhile.setattr(run.time, "sleep", rest)
                until(lambda: not fleet.leads(log), "the end of the other worker")

    monkeypatch.setattr(run.time, "sleep", pause)
    leader, drainer = other_rules(database_url), Drainer(database_url)
    run._wait_for_others(drainer)
    assert looks[:3] == ["['here']"] * 3
    assert len(looks) == 4, "it is seen at two looks that none is there"
    assert [message for message in caplog.messages if "this one waits" in message] == caplog.messages
    assert log.execute("SELECT count(*) FROM memctl.rebuilds").fetchone() == (0,)
    drainer.close()


def test_status_and_doctor_say_who_waits_and_what_to_do(database_url: str, log: Connection, settings: Settings) -> None:
    leader, drainer = other_rules(database_url), Drainer(database_url)
    assert drainer.connection
    (trouble,) = (each for each in troubles(health(reader_of(log, "default", OWNER))) if each.kind == "fleet")
    assert (trouble.needs, "here wait" in trouble.what, "same image" in trouble.do) == (True, True, True)
    (found,) = (each for each in _schema(settings, log) if each.name == "rules")
    assert "waits for their end" in str(found.found)
    leader.close()
    drainer.close()
    until(lambda: not fleet.waiting(log), "nobody who waits")


def test_a_newer_memctl_waits_for_nobody(database_url: str, log: Connection) -> None:
    leader = other_rules(database_url)
    assert fleet.differs(log)
    assert fleet.leads(log)
    log.execute("UPDATE memctl.generations SET made_by = '0.0.1'")
    assert not fleet.differs(log)
    leader.close()


def test_workers_of_one_image_wait_for_nobody(database_url: str, log: Connection) -> None:
    drainer = Drainer(database_url)
    assert drainer.connection
    assert not fleet.differs(log)
    assert not fleet.leads(log)
    assert fleet.waiting(log) == []
    drainer.close()


# --- a worker that runs while others upgrade ---


@pytest.fixture
def shards() -> int:
    return 1


def ended(database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> str:
    """What a worker's watch says as it ends the process."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(run.os, "kill", lambda pid, number: sent.append((pid, number)))
    monkeypatch.setattr(run, "REBUILD_PAUSE_S", 0.0)
    run._watch(load_settings(database_url=database_url), threading.Event())
    assert sent == [(os.getpid(), signal.SIGTERM)]
    return caplog.messages[-1]


def test_a_worker_folds_nothing_in_a_schema_that_was_upgraded_under_it_and_ends(
    database_url: str, log: Connection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    drainer = Drainer(database_url)
    append(log, 1, example())
    assert drainer.drain(1, 0)
    before = digests(log)
    log.execute("UPDATE memctl.schema_version SET version_num = '9999'")
    append(log, 1, example(1))
    with pytest.raises(NewerSchema, match="9999"):
        drainer.drain(1, 0)
    assert not drainer.attempt(1, 0)
    drainer.close()
    assert digests(log) == before
    assert "newer version of memctl: its schema is 9999: this worker ends" in ended(database_url, monkeypatch, caplog)


def test_a_worker_ends_where_a_newer_memctl_made_the_rows(
    database_url: str, log: Connection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log.execute("UPDATE memctl.generations SET fingerprint = 'of tomorrow', made_by = '999.0'")
    assert "made by a newer memctl: this worker ends" in ended(database_url, monkeypatch, caplog)


def test_a_worker_ends_once_its_files_have_changed(
    database_url: str, log: Connection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rules, "_at_start", {**rules._at_start, "domain/failures/signatures.py": (0, 0, 0)})
    assert run.why_end(log, True, False) == ""  # an installation may be under way: it looks once more
    assert "files have changed since it started: this worker ends" in ended(database_url, monkeypatch, caplog)


def test_a_worker_whose_rows_another_memctl_replaced_ends(log: Connection) -> None:
    assert run.why_end(log, True, False) == ""
    log.execute("UPDATE memctl.generations SET fingerprint = 'of another'")
    assert run.why_end(log, False, False) == ""  # at first it rebuilds them
    assert run.why_end(log, True, False) == "the read models were made by another memctl"
