"""Ingest of transcripts into a real log: every line accounted for, twice is once, prefixes and order do not matter."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from histories import EXAMPLE, digests, real_sessions

from memctl.api.commands import Intake
from memctl.api.ingest import Account, ingest
from memctl.domain.event import Position
from memctl.infra.database import connect
from memctl.infra.log.mark import move_mark
from memctl.infra.log.read import read_range
from memctl.infra.settings import load_settings
from memctl.workers.drain import Drainer, catch_up
from memctl.workers.replay import replay


@pytest.fixture
def intake(database_url: str, tmp_path: Path) -> Iterator[Intake]:
    with Intake(load_settings(database_url=database_url, data_dir=tmp_path / "data")) as intake:
        yield intake


@pytest.fixture(scope="module")
def real() -> Iterator[Path]:
    with real_sessions() as folder:
        yield folder


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "one.jsonl").write_bytes(EXAMPLE.read_bytes())
    return folder


def adds_up(account: Account) -> bool:
    """Every line counts once: it gave events, was ignored, is blank, or is bad altogether."""
    beside_events = len(account.bad) - (
        account.lines - account.with_events - sum(account.ignored.values()) - account.blank
    )
    return 0 <= beside_events <= len(account.bad)


def types(intake: Intake) -> list[str]:
    return [e.type for e in read_range(intake.connection, Position(0), move_mark(intake.connection), limit=1_000_000)]


def folded(intake: Intake, database_url: str) -> dict[str, tuple[int, str]]:
    catch_up(Drainer(database_url))
    return digests(intake.connection)


def test_every_line_is_accounted_for(intake: Intake, sessions: Path) -> None:
    account = ingest(intake, [sessions])
    assert account.files == 1
    assert account.lines == len(EXAMPLE.read_text().splitlines())
    assert adds_up(account)
    assert account.bad == []
    assert account.new == sum(account.types.values()) == len(types(intake))


def test_reading_again_adds_nothing(intake: Intake, sessions: Path) -> None:
    first = ingest(intake, [sessions])
    second = ingest(intake, [sessions])
    assert (second.new, second.lines, second.unchanged) == (0, 0, 1)
    whole = ingest(intake, [sessions], again=True)
    assert (whole.new, whole.duplicate, whole.variant) == (0, first.new, 0)


def test_the_same_session_under_another_name_adds_nothing(intake: Intake, sessions: Path) -> None:
    first = ingest(intake, [sessions])
    (sessions / "two.jsonl").write_bytes(EXAMPLE.read_bytes())
    assert ingest(intake, [sessions]).duplicate == first.new


def test_a_file_that_grows_is_read_on_from_where_it_was_left(intake: Intake, sessions: Path) -> None:
    whole = EXAMPLE.read_bytes()
    file = sessions / "one.jsonl"
    lines = events = 0
    for size in (3000, 9000, 9001, 15_000, len(whole)):  # in the middle of lines
        file.write_bytes(whole[:size])
        account = ingest(intake, [file])
        lines += account.lines
        events += account.new
        assert account.duplicate <= 3  # of one line whose newline was not there yet
    assert lines in range(whole.count(b"\n"), whole.count(b"\n") + 2)
    assert ingest(intake, [file], again=True).duplicate == events


def test_a_last_line_without_its_newline_is_kept_and_not_doubled(intake: Intake, sessions: Path) -> None:
    file = sessions / "one.jsonl"
    whole = EXAMPLE.read_bytes()
    file.write_bytes(whole.rstrip(b"\n"))
    first = ingest(intake, [file])
    file.write_bytes(whole)
    second = ingest(intake, [file])
    assert second.new == 0
    assert first.new == ingest(intake, [file], again=True).duplicate


def test_a_file_rewritten_in_place_is_read_from_its_start(intake: Intake, sessions: Path) -> None:
    ingest(intake, [sessions])
    changed = EXAMPLE.read_text().replace("Invoice totals", "Invoice sums")
    (sessions / "one.jsonl").write_text(changed)
    account = ingest(intake, [sessions])
    assert account.variant == 1
    assert account.lines == len(changed.splitlines())


def test_what_cannot_be_read_is_named_with_file_line_and_reason(intake: Intake, sessions: Path) -> None:
    file = sessions / "one.jsonl"
    good = EXAMPLE.read_text().splitlines()
    file.write_text("\n".join([good[0], "{not json", "", good[1], "[1, 2]", "\x00\x01", good[2]]) + "\n")
    account = ingest(intake, [file])
    assert [(bad.line, Path(bad.file).name) for bad in account.bad] == [(n, "one.jsonl") for n in (2, 5, 6)]
    assert all(bad.why for bad in account.bad)
    assert (account.lines, account.with_events, account.blank) == (7, 3, 1)


def test_a_line_of_two_objects_run_together_gives_both(intake: Intake, sessions: Path) -> None:
    file = sessions / "one.jsonl"
    good = EXAMPLE.read_text().splitlines()
    file.write_text("\n".join([good[0], good[1] + good[2], good[3]]) + "\n")
    account = ingest(intake, [file])
    assert account.new == 4
    assert account.lines == 3


def test_secrets_and_private_parts_never_reach_the_log(intake: Intake, sessions: Path) -> None:
    key = "AKIA" + "QYLPMN5HHHFPZAM2"
    line = json.loads(EXAMPLE.read_text().splitlines()[0])
    line["message"]["content"] = f"use {key} for the bucket <private>my diary</private> please"
    (sessions / "one.jsonl").write_text(json.dumps(line) + "\n")
    account = ingest(intake, [sessions])
    stored = str(intake.connection.execute("SELECT payload, dedupe_key, location FROM memctl.events").fetchall())
    assert key not in stored
    assert "diary" not in stored
    assert "for the bucket" in stored
    assert sum(account.redacted.values()) == 2


def test_stopping_in_the_middle_loses_nothing(intake: Intake, sessions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memctl.api.ingest.BATCH", 5)
    read = 0

    def stop_soon(path: Path, size: int) -> None:
        nonlocal read
        read += 1
        if read == 17:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest(intake, [sessions], progress=stop_soon)
    ingest(intake, [sessions])
    account = ingest(intake, [sessions], again=True)
    assert account.new == account.variant == 0
    assert account.duplicate == len(types(intake))


def test_all_real_sessions_are_read_and_every_line_is_accounted_for(intake: Intake, real: Path) -> None:
    account = ingest(intake, [real])
    counted = sum(path.read_bytes().count(b"\n") for path in real.rglob("*.jsonl"))
    assert account.files == 150
    assert abs(account.lines - counted) <= account.files  # a last line need not end in a newline
    assert adds_up(account)
    assert account.new > 18_000
    again = ingest(intake, [real], again=True)
    assert (again.new, again.variant) == (0, 0)


def test_real_sessions_in_another_order_and_in_growing_prefixes_end_in_the_same_rows(
    intake: Intake, database_url: str, postgres_server: str, migrated_template: str, real: Path, tmp_path: Path
) -> None:
    import servers

    luck = random.Random(5)
    files = luck.sample(sorted(path for path in real.rglob("*.jsonl") if path.stat().st_size < 400_000), 16)
    ingest(intake, files)
    expected = folded(intake, database_url)
    assert expected["memories"][0] > 10

    with servers.fresh_database(postgres_server, template=migrated_template) as other:
        settings = load_settings(database_url=other, data_dir=tmp_path / "other")
        with Intake(settings) as growing:
            luck.shuffle(files)
            for share in (0.3, 0.6, 1.0):
                for number, file in enumerate(files):
                    data = file.read_bytes()
                    copy = tmp_path / f"{number}.jsonl"
                    copy.write_bytes(data[: int(len(data) * share)])
                    ingest(growing, [copy])
                folded(growing, other)
            assert digests(growing.connection) == expected
        assert replay(other, None, verify=True).equal


def test_ingest_from_two_processes_at_once_keeps_each_event_once(
    intake: Intake, database_url: str, sessions: Path, tmp_path: Path
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def go(number: int) -> Account:
        with Intake(load_settings(database_url=database_url, data_dir=tmp_path / "data")) as mine:
            return ingest(mine, [sessions], again=True)

    with ThreadPoolExecutor(4) as pool:
        accounts = list(pool.map(go, range(4)))
    with connect(database_url) as connection:
        stored = connection.execute("SELECT count(*) FROM memctl.events").fetchone()
    assert stored == (sum(account.new for account in accounts),)
    assert all(account.new + account.duplicate == stored[0] for account in accounts)
