"""What waits on this disk, or was set aside there, is forgotten with what it says, and with nothing else."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from data_dirs import used
from events import NOON, prompt
from forgetting import PHRASE, forgotten
from histories import drained

from memctl.domain.events.erasure import NothingToForget
from memctl.infra.database import Connection, connect
from memctl.infra.hooks.spool import Delivery
from memctl.infra.log import checkpoints
from memctl.infra.log.append import append
from memctl.infra.log.spaces import space_id
from memctl.infra.readmodels import generations
from memctl.infra.settings import Settings, load_settings
from memctl.infra.transcripts.reading import Checkpoint


@pytest.fixture
def settings(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    monkeypatch.setenv("MEMCTL_DATABASE_URL", database_url)
    monkeypatch.setenv("MEMCTL_DATA_DIR", str(used(tmp_path / "data")))
    return load_settings()


@pytest.fixture
def log(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as connection:
        generations.ensure_live(connection, 2)
        yield connection


def left(settings: Settings, name: str, said: str, space: str = "", at: int = NOON) -> Path:
    """A hook's delivery on this disk, for a space."""
    folder = settings.data_dir / "spool"
    folder.mkdir(parents=True, exist_ok=True)
    payload = {"hook_event_name": "UserPromptSubmit", "session_id": "c", "cwd": "/x", "prompt": said}
    delivery = Delivery(f"{len(name):032x}", at, "claude-code", "", json.dumps(payload).encode(), space=space)
    file = folder / name
    file.write_bytes(delivery.encode())
    return file


@pytest.mark.parametrize("name", ["set-aside.refused", "torn.damaged", "waits.delivery"])
def test_what_only_a_file_on_this_disk_says_is_forgotten_too(
    settings: Settings, log: Connection, database_url: str, name: str
) -> None:
    append(log, 1, [prompt(1, "to be kept")])
    drained(database_url)
    file = left(settings, name, f"Remember {PHRASE}.")
    with contextlib.suppress(NothingToForget):  # must not come out: that there is nothing, while the file says it
        forgotten(settings, log, match=PHRASE)
    assert not file.exists() or PHRASE not in file.read_text()  # must not come out: PHRASE, not even redacted


@pytest.mark.parametrize("name", ["waits.delivery", "set-aside.refused"])
@pytest.mark.parametrize("by", ["match", "before", "session", "project"])
def test_forgetting_in_one_space_takes_nothing_that_is_meant_for_another(
    settings: Settings, log: Connection, database_url: str, by: str, name: str
) -> None:
    """A waiting delivery is nowhere else: a key that erases in its own space would lose another's for good."""
    append(log, 1, [prompt(1, PHRASE, session="c", at=-10)])
    drained(database_url)
    another = left(settings, name, PHRASE, space="others", at=NOON - 9_000_000)
    asked = {
        "match": PHRASE, "before": datetime.fromtimestamp(NOON / 1e6 - 1, UTC), "session": "c",
        "project": "/home/dana/ledger",
    }  # fmt: skip
    done = forgotten(settings, log, **{by: asked[by]})
    assert done.events
    assert another.exists()  # must not come out: that the file of the other space is gone


def test_a_receipt_says_nothing_of_what_another_space_holds(
    settings: Settings, log: Connection, database_url: str
) -> None:
    """Who erases in one space chooses the phrase, says it there, and reads in the receipt whether another holds it."""
    checkpoints.save(log, space_id(log, "others"), {Path("/home/eve/project-acquire-zq7vkx19mw/s.jsonl"): Checkpoint()})
    append(log, 1, [prompt(1, "project-acquire-zq7vkx19mw")])
    drained(database_url)
    done = forgotten(settings, log, match="project-acquire-zq7vkx19mw")
    assert [each for each in done.stays if "checkpoints" in each] == []  # must not come out: that a path has the words


def test_what_waits_for_another_space_holds_no_receipt_open(
    settings: Settings, log: Connection, database_url: str
) -> None:
    append(log, 1, [prompt(1, "the zq7vkx19mw of dana")])
    drained(database_url)
    left(settings, "waits.delivery", "a zq7vkx19mw of eve", space="others")
    assert forgotten(settings, log, session="s1").events == 1  # must not come out: where another's delivery lies
