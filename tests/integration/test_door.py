"""The door: real processes, a real Postgres, and one that is away or stuck."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from events import NOON
from forking import Forked
from histories import EXAMPLE, drained
from knocking import NOWHERE, Client, Place, ask, delivery, kept, said
from processes import memctl
from waiting import until

from memctl.api.reading.caller import OWNER
from memctl.api.reading.places import projects_of
from memctl.api.reading.reader import reader_of
from memctl.api.write import hang_watch, transcripts
from memctl.api.write.committer import AT_ONCE
from memctl.api.write.door import STOP_WITHIN_S
from memctl.api.write.ingest_writer import IngestWriter
from memctl.infra.database import DatabaseUnavailable, connect
from memctl.infra.hook import MAX_PAYLOAD
from memctl.infra.hooks.spool import Delivery, spool
from memctl.infra.log import checkpoints
from memctl.infra.readmodels import generations
from memctl.infra.settings import Settings

BIG = 8_000_000


@pytest.fixture
def shards() -> int:
    return 1


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@contextmanager
def stuck(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    """A Postgres in which nobody can append, until the block is left."""
    with psycopg.connect(database_url) as connection:
        connection.execute("LOCK TABLE memctl.events IN ACCESS EXCLUSIVE MODE")
        yield connection
        connection.rollback()


def somebody_waits_for_a_lock(database_url: str) -> bool:
    query = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with psycopg.connect(database_url) as connection:
        return connection.execute(query).fetchone() is not None


def test_a_delivery_is_kept_once_however_often_it_comes(place: Place, database_url: str) -> None:
    with place.open(database_url), closing(Client(place.door)) as client:
        one = delivery(1)
        for new in (1, 0):
            client.send(one)
            assert client.answer() == {"ok": True, "new": new, "duplicate": 1 - new}
    assert kept(database_url) == 1


def test_an_empty_line_is_answered_and_deliveries_may_follow(place: Place, database_url: str) -> None:
    with place.open(database_url), closing(Client(place.door)) as client:
        client.socket.sendall(b"\n")
        assert client.answer() == {
            "ok": True,
            "steps": {},
            "unread": [],
            "unread_count": 0,
            "empty": [],
            "empty_count": 0,
        }
        client.send(delivery(1))
        assert client.answer()["new"] == 1


def test_a_conversation_of_thousands_of_messages_is_kept_in_transactions_of_some(
    place: Place, database_url: str
) -> None:
    messages = [{"role": "user", "content": f"message {number}"} for number in range(2 * AT_ONCE + 1)]
    payload = json.dumps({"hook_event_name": "Stop", "session_id": "s1", "cwd": "/x", "messages": messages}).encode()
    with place.open(database_url):
        one = delivery(1, payload)
        for new in (len(messages), 0):
            done = ask(place.door, one)
            assert done == {"ok": True, "new": new, "duplicate": len(messages) - new}
    with psycopg.connect(database_url) as connection:
        at_once = connection.execute("SELECT count(*) FROM memctl.events GROUP BY xmin::text ORDER BY 1").fetchall()
    assert at_once == [(1,), (AT_ONCE,), (AT_ONCE,)]


def test_a_conversation_that_is_handed_over_again_and_again_is_kept_once(place: Place, database_url: str) -> None:
    messages = [{"role": role, "content": f"{role} {turn}"} for turn in range(5) for role in ("user", "assistant")]
    with place.open(database_url):
        for turn in range(5):
            said = {"hook_event_name": "Stop", "session_id": "s1", "cwd": "/x", "messages": messages[: 2 * turn + 2]}
            done = ask(place.door, delivery(turn, json.dumps(said).encode(), at=NOON + turn))
            assert done == {"ok": True, "new": 2, "duplicate": 2 * turn}
    assert kept(database_url) == len(messages)


def test_of_a_conversation_whose_client_left_out_its_beginning_only_what_is_new_is_kept(
    place: Place, database_url: str
) -> None:
    """Else what was forgotten of it would come back under other names."""
    said = ["begin", "yes", "the ledger", "yes", "an end", "later"]
    handed = [said[:5], said[2:], [*said[2:], "yes"], ["changed", *said[1:]]]
    with place.open(database_url):
        for number, (texts, new) in enumerate(zip(handed, (5, 1, 0, 1), strict=True)):
            messages = [{"role": "user", "content": text} for text in texts]
            payload = {"hook_event_name": "Stop", "session_id": "s1", "cwd": "/x", "messages": messages}
            done = ask(place.door, delivery(number, json.dumps(payload).encode(), at=NOON + number))
            assert (done["new"], done["duplicate"]) == (new, len(texts) - new)


@pytest.mark.parametrize("payload", [b"", b"\n"])
def test_an_empty_delivery_is_no_trouble(payload: bytes, place: Place, database_url: str) -> None:
    with place.open(database_url), closing(Client(place.door)) as client:
        client.send(delivery(1, payload))
        assert client.answer() == {"ok": True, "new": 0, "duplicate": 0, "ignored": "empty"}
        client.socket.sendall(b"\n")
        assert client.answer()["empty_count"] == 0


def test_what_holds_nothing_to_keep_is_counted_and_named(place: Place, database_url: str) -> None:
    with place.open(database_url), closing(Client(place.door)) as client:
        for number in range(1, 70):
            client.send(delivery(number, b"[]"))
            assert client.answer()["bad"]
        client.socket.sendall(b"\n")
        answer = client.answer()
        assert (answer["empty_count"], len(answer["empty"])) == (69, 3)
        assert f"{69:032x}" in answer["empty"][0]


LOOPING = """
from memctl.api.write import hang_watch
from memctl.api.write.door import run_door
from memctl.api.write.ingest_writer import IngestWriter
from memctl.infra.settings import load_settings

def record(self, events, kept=IngestWriter.record):
    while any("endless" in str(event.payload) for event in events):
        pass
    return kept(self, events)

hang_watch.HUNG_AFTER_S, hang_watch.LOOKS_EVERY_S = 0.5, 0.05
IngestWriter.record = record
run_door(load_settings())
"""
"""A door that one delivery holds for ever."""


LOOKING = """
from memctl.api.write import hang_watch
from memctl.api.write.door import run_door
from memctl.infra.hooks import payloads
from memctl.infra.settings import load_settings

def is_expanded(prompt, *others, kept=payloads.is_expanded):
    while "endless" in prompt:
        pass
    return kept(prompt, *others)

hang_watch.HUNG_AFTER_S, hang_watch.LOOKS_EVERY_S = 0.5, 0.05
payloads.is_expanded = is_expanded
run_door(load_settings())
"""
"""A door that the files of a checkout hold for ever, as it looks whose word a prompt is."""


def test_a_prompt_whose_checkout_holds_a_door_is_kept_as_the_clients_word(place: Place, database_url: str) -> None:
    for number, text in enumerate(("before it", "endless", "behind it"), 1):
        spool(place.spool, delivery(number, said(text), at=time.time_ns() // 1000 + number))
    for _ in range(2):  # among others, and alone
        with looping_door(LOOKING, place, database_url) as first:
            assert first.wait(60) == hang_watch.EXIT
    with looping_door(LOOKING, place, database_url) as last:
        until(lambda: not any(name.endswith(".delivery") for name in place.names()))
        last.terminate()
        assert last.wait(30) == 0
    assert [name for name in place.names() if name.endswith(".refused")] == []
    with psycopg.connect(database_url) as connection:
        said_by = connection.execute("SELECT payload->>'text', actor FROM memctl.events ORDER BY occurred_at")
        assert said_by.fetchall() == [("before it", "user"), ("endless", "system"), ("behind it", "user")]


def test_a_delivery_that_holds_a_door_is_set_aside_by_the_ones_after_it(place: Place, database_url: str) -> None:
    for number, text in enumerate(("before it", "endless", "behind it"), 1):
        spool(place.spool, delivery(number, said(text), at=time.time_ns() // 1000 + number))
    for _ in range(3):  # among others, alone, and without a look at files
        with looping_door(LOOPING, place, database_url) as first:
            assert first.wait(60) == hang_watch.EXIT
        assert sum(name.endswith(".delivery") for name in place.names()) == 3
    with looping_door(LOOPING, place, database_url) as last:
        until(lambda: not any(name.endswith(".delivery") for name in place.names()))
        last.terminate()
        assert last.wait(30) == 0
    [aside] = [name for name in place.names() if name.endswith(".refused")]
    assert f"{2:032x}" in aside
    assert kept(database_url) == 2


READING = """
from memctl.api.write import hang_watch
from memctl.api.write.door import run_door
from memctl.api.write.ingest_writer import IngestWriter
from memctl.infra.settings import load_settings
from memctl.infra.transcripts.claude import Claude

def looping(kept):
    def loops(self, what, *others):
        while "endless" in str(what):
            pass
        return kept(self, what, *others)
    return loops

hang_watch.HUNG_AFTER_S, hang_watch.LOOKS_EVERY_S = 0.5, 0.05
OF.NAME = looping(OF.NAME)
run_door(load_settings())
"""
"""A door that one line of a transcript holds for ever, as it is read, redacted or written."""


@pytest.mark.parametrize("loops", ["Claude.read", "IngestWriter.prepare", "IngestWriter.write_rest"])
def test_a_line_that_holds_the_reader_of_transcripts_is_passed_over_by_the_doors_after_it(
    place: Place, database_url: str, tmp_path: Path, loops: str
) -> None:
    lines = EXAMPLE.read_text().splitlines(keepends=True)[:10]
    line = {
        **json.loads(lines[0]),
        "type": "user",
        "uuid": "u-endless",
        "message": {"role": "user", "content": "endless"},
    }
    transcript = tmp_path / "a.jsonl"
    transcript.write_text("".join([*lines[:5], json.dumps(line) + "\n", *lines[5:]]))
    other = tmp_path / "b.jsonl"
    other.write_text("".join(lines).replace("11111111", "99999999"))
    of, _, name = loops.partition(".")
    script = READING.replace("OF", of).replace("NAME", name)
    for number in range(2):  # among other lines, and alone
        with looping_door(script, place, database_url) as first:
            until(place.answers)
            assert ask(place.door, named(number, "Stop", transcript))["ok"]
            assert first.wait(60) == hang_watch.EXIT
    with looping_door(script, place, database_url) as last:
        until(place.answers)
        assert ask(place.door, named(3, "Stop", transcript))["ok"]
        until(lambda: read_to_its_end(database_url, transcript))
        assert ask(place.door, named(4, "Stop", other))["ok"]
        until(lambda: read_to_its_end(database_url, other))
        with closing(Client(place.door)) as client:
            client.socket.sendall(b"\n")
            assert [f"{transcript}#6" in each for each in client.answer()["unread"]] == [True]
        last.terminate()
        assert last.wait(30) == 0
    assert json.loads((place.spool / hang_watch.FILE).read_text()) == {"alone": [], "aside": [f"{transcript}#6"]}


@contextmanager
def looping_door(script: str, place: Place, database_url: str) -> Iterator[Forked]:
    environment = {**place.environment, "MEMCTL_DATABASE_URL": database_url}
    with memctl(environment=environment, log=place.log_file, script=("-c", script)) as process:
        yield process


def read_to_its_end(database_url: str, transcript: Path) -> bool:
    with connect(database_url) as connection:
        at = checkpoints.load_all(connection, 1).get(checkpoints.name_of(transcript))
    return at is not None and at.offset == transcript.stat().st_size


def test_a_client_that_has_no_more_to_say_still_gets_its_answer(place: Place, database_url: str) -> None:
    with place.open(database_url), closing(Client(place.door)) as client:
        client.send(delivery(1))
        client.socket.shutdown(socket.SHUT_WR)
        assert client.answer()["ok"]


def test_what_is_off_is_taken_and_not_kept(place: Place, database_url: str, tmp_path: Path) -> None:
    (tmp_path / ".memctl.toml").write_text("save = false\n")
    off = {"everywhere": [], "sessions": {"hush": ["save"], "deaf": ["recall"]}, "projects": {}}
    (place.data / "off.json").write_text(json.dumps(off))
    with place.open(database_url):
        for number, payload in enumerate((said(session="hush"), said(cwd=str(tmp_path / "src")))):
            answer = ask(place.door, delivery(number, payload))
            assert answer == {"ok": True, "new": 0, "duplicate": 0, "ignored": "off"}
        assert ask(place.door, delivery(9, said(session="deaf")))["new"] == 1
    assert kept(database_url) == 1


def test_what_waits_since_before_saving_went_off_is_kept(place: Place, database_url: str) -> None:
    now = time.time_ns() // 1000
    for number, at in ((1, now - 1), (2, now + 1)):
        spool(place.spool, delivery(number, said(session=f"s{number}"), at=at))
    (place.data / "off.json").write_text(json.dumps({"everywhere": ["save"], "since": {"": now}}))
    with place.open(database_url):
        until(lambda: not place.names())
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT session_id FROM memctl.events").fetchall() == [("s1",)]


def test_what_a_transcript_told_while_saving_was_off_is_not_read_once_it_is_on(
    tmp_path: Path, place: Place, database_url: str
) -> None:
    lines = EXAMPLE.read_text().splitlines(keepends=True)
    transcript = tmp_path / "a.jsonl"
    transcript.write_text("".join(lines[:10]))
    (place.data / "off.json").write_text(json.dumps({"everywhere": ["save"]}))

    def read_up_to_its_end() -> bool:
        with connect(database_url) as connection:
            at = checkpoints.load_all(connection, 1).get(checkpoints.name_of(transcript))
        return at is not None and at.offset == transcript.stat().st_size

    with place.open(database_url):
        assert ask(place.door, named(1, "SessionStart", transcript))["ignored"] == "off"
        until(read_up_to_its_end, "the transcript to be passed over")
        (place.data / "off.json").unlink()
        numbers = iter(range(100, 10_000))
        until(lambda: "ignored" not in ask(place.door, delivery(next(numbers))), "saving")
        with transcript.open("a") as file:
            file.write("".join(lines[10:]))
        assert ask(place.door, named(2, "Stop", transcript))["ok"]
        until(read_up_to_its_end)
    told = {uuid for uuid in (json.loads(line).get("uuid") for line in lines[:10]) if uuid}
    with psycopg.connect(database_url) as connection:
        kept_of = connection.execute("SELECT payload->>'line' FROM memctl.events WHERE payload->>'line' <> ''")
        found = {line.partition("#")[0] for (line,) in kept_of}
    assert told
    assert found
    assert not found & told


def test_what_waits_for_a_stuck_postgres_is_bounded_and_left_behind_makes_room(place: Place, database_url: str) -> None:
    with place.open(database_url) as door, ExitStack() as clients:
        assert ask(place.door, delivery(1))["ok"]
        with stuck(database_url):
            waiting = []
            for number in range(2, 2 + MAX_PAYLOAD // BIG):
                client = clients.enter_context(closing(Client(place.door)))
                client.send(delivery(number, said("x" * (BIG - 200))))
                waiting.append(client)
            late = clients.enter_context(closing(Client(place.door)))
            for number in range(100, 130):
                late.send(delivery(number, said("y" * BIG)))
                assert late.answer() == {"ok": False, "retry": True, "why": "busy"}
            assert door.poll() is None
            status = Path(f"/proc/{door.pid}/status").read_text()
            assert int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) < 300_000
            # The first may be on its way to Postgres; the others are nobody's any more.
            for client in waiting:
                client.close()
            late.send(delivery(200, said("z" * BIG)))
            until(lambda: somebody_waits_for_a_lock(database_url))
        assert late.answer()["ok"]


def test_a_door_says_for_how_long_it_is_at_one_delivery(place: Place, database_url: str) -> None:
    def steps() -> dict[str, float]:
        with closing(Client(place.door)) as client:
            client.socket.sendall(b"\n")
            found: dict[str, float] = client.answer()["steps"]
            return found

    with place.open(database_url):
        named = {"hook_event_name": "Stop", "session_id": "s1", "cwd": "/x", "transcript_path": str(EXAMPLE)}
        assert ask(place.door, delivery(1, json.dumps(named).encode()))["ok"]
        until(lambda: told_by(database_url, "transcript") > 0)
        with stuck(database_url), closing(Client(place.door)) as client:
            client.send(delivery(2))
            until(lambda: steps().get("a delivery", 0.0) > 0.2)
        until(lambda: not steps())


def test_a_postgres_that_is_away_is_tried_once_for_a_group_and_not_for_each_delivery(place: Place) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        tries, held = [], threading.Event()

        def refuse() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                tries.append(1)
                held.wait(20)  # the first try hangs until all deliveries wait
                connection.close()

        thread = threading.Thread(target=refuse)
        thread.start()
        url = f"postgresql://u@127.0.0.1:{listener.getsockname()[1]}/x?sslmode=disable&gssencmode=disable"
        try:
            with place.open(url), ExitStack() as stack:
                clients = [stack.enter_context(closing(Client(place.door))) for _ in range(100)]
                for number, client in enumerate(clients):
                    client.send(delivery(number))
                until(lambda: len(tries) == 1)
                held.set()
                for client in clients:
                    answer = client.answer()
                    assert (answer["ok"], answer["retry"]) == (False, True)
            assert len(tries) <= 10
        finally:
            held.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(20)
    assert place.log.count("nothing can be kept for now") == 1


def test_a_bad_one_in_a_group_is_refused_and_the_others_are_kept(place: Place, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:  # stands for whatever Postgres does not take
        connection.execute(
            "ALTER TABLE memctl.events ADD CONSTRAINT no_secrets CHECK (session_id <> 'refused') NOT VALID"
        )
    bad = said("a word nobody may read").replace(b'"s1"', b'"refused"')
    with place.open(database_url), ExitStack() as stack:
        assert ask(place.door, delivery(1000))["ok"]
        clients = [stack.enter_context(closing(Client(place.door))) for _ in range(20)]
        with stuck(database_url):
            for number, client in enumerate(clients):
                client.send(delivery(number, bad if number == 7 else None))
            until(lambda: somebody_waits_for_a_lock(database_url))
        answers = [client.answer() for client in clients]
    assert [number for number, answer in enumerate(answers) if not answer["ok"]] == [7]
    assert answers[7]["retry"] is False
    assert kept(database_url) == 20
    assert f"{7:032x}" in place.log
    assert "nobody may read" not in place.log


def test_what_cannot_be_drained_holds_nothing_up(place: Place, database_url: str) -> None:
    spool(place.spool, delivery(1, at=-(10**18)))
    (place.spool / "00000000000000000000-x.delivery").mkdir()
    os.mkfifo(place.spool / "00000000000000000001-y.delivery")
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "ALTER TABLE memctl.events ADD CONSTRAINT no_secrets CHECK (session_id <> 'refused') NOT VALID"
        )
    spool(place.spool, delivery(2, said().replace(b'"s1"', b'"refused"'), at=5))
    unfinished = place.spool / ".old.part"
    unfinished.touch()
    os.utime(unfinished, (0, 0))
    for number in range(3, 6):
        spool(place.spool, delivery(number))
    with place.open(database_url):
        until(lambda: kept(database_url) == 3)
        until(lambda: len(place.names()) == 4)
        spool(place.spool, delivery(6))  # the drain is alive after all that
        until(lambda: kept(database_url) == 4 and len(place.names()) == 4)
    assert [name.rpartition(".")[2] for name in place.names()] == ["damaged", "damaged", "damaged", "refused"]
    assert place.log.count("x.delivery is damaged") == place.log.count("y.delivery is damaged") == 1


def test_what_a_newer_memctls_hook_left_waits_for_a_door_that_knows_it(place: Place, database_url: str) -> None:
    newer = delivery(1).encode().replace(b'{"v": 2,', b'{"v": 3, "new": [],')
    place.spool.mkdir()
    (place.spool / "00000000000000000000-newer.delivery").write_bytes(newer)
    with place.open(database_url), closing(Client(place.door)) as client:
        client.socket.sendall(newer)
        assert client.answer()["ok"] is False  # so that its hook spools it
        spool(place.spool, delivery(2))
        until(lambda: kept(database_url) == 1)
        spool(place.spool, delivery(3))
        # The drain has been through twice. What is kept leaves the spool a moment later.
        until(lambda: kept(database_url) == 2 and len(place.names()) == 1)
    assert place.names() == ["00000000000000000000-newer.delivery"]
    assert place.log.count("newer.delivery cannot be drained") == 1


def test_what_waits_in_the_spool_stays_while_postgres_is_away_and_is_kept_when_it_is_back(
    place: Place, database_url: str
) -> None:
    for number in range(3):
        spool(place.spool, delivery(number))
    with place.open(NOWHERE):
        until(lambda: "nothing can be kept for now" in place.log)
        for number in (7, 8):  # by then the door has done with what was in the spool, too
            assert ask(place.door, delivery(number))["retry"]
        assert [name.endswith(".delivery") for name in place.names()] == [True] * 3
    with place.open(database_url):
        until(lambda: not place.names())
    assert kept(database_url) == 3


def test_sessions_in_a_repository_and_in_its_worktree_are_of_one_project(
    tmp_path: Path, place: Place, database_url: str
) -> None:
    git, worktree, subfolder = (tmp_path / each for each in ("shop/.git", "elsewhere", "shop/web"))
    (git / "worktrees" / "two").mkdir(parents=True)
    (git / "config").write_text('[remote "origin"]\n\turl = git@github.com:acme/shop.git\n')
    (git / "worktrees" / "two" / "commondir").write_text("../..\n")
    (git / "worktrees" / "two" / "gitdir").write_text(f"{worktree}/.git\n")
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    for name in ("objects", "refs"):
        (git / name).mkdir()
    worktree.mkdir()
    (worktree / ".git").write_text(f"gitdir: {git}/worktrees/two\n")
    subfolder.mkdir()
    with place.open(database_url):
        for number, folder in enumerate((worktree, subfolder, tmp_path)):
            told = said().replace(b'"s1"', b'"s%d"' % number).replace(b'"/x"', json.dumps(str(folder)).encode())
            assert ask(place.door, delivery(number, told))["ok"]
    with connect(database_url) as connection:
        generations.ensure_live(connection, 1)
        drained(database_url)
        projects = projects_of(reader_of(connection, "default", OWNER))
    shop = projects.one("github.com/acme/shop")
    assert set(shop.locations) == {str(worktree), str(subfolder)}
    assert projects.of(str(tmp_path)) not in (None, shop)


def test_a_second_door_says_so_and_leaves_the_first_ones_socket(place: Place, database_url: str) -> None:
    with place.open(database_url):
        environment = {**place.environment, "MEMCTL_DATABASE_URL": database_url}
        second = place.log_file.with_name("second.log")
        with memctl("door", environment=environment, log=second) as process:
            assert process.wait(30) == 1
        assert "a door runs there already" in second.read_text()
        assert "hint:" in second.read_text()
        assert "Traceback" not in second.read_text()
        assert ask(place.door, delivery(1))["ok"]


def test_a_door_leaves_a_socket_that_is_not_its_own(place: Place, database_url: str) -> None:
    with place.open(database_url) as process:
        place.door.unlink()
        with closing(socket.socket(socket.AF_UNIX)) as other:
            other.bind(str(place.door))
            process.send_signal(signal.SIGTERM)
            assert process.wait(15) == 0
            assert place.door.is_socket()


def test_a_socket_that_a_killed_door_left_behind_is_replaced(place: Place, database_url: str) -> None:
    with place.open(database_url) as process:
        process.kill()
        process.wait(15)
    assert place.door.is_socket()
    with place.open(database_url):
        assert ask(place.door, delivery(1))["ok"]


def test_a_door_that_cannot_listen_says_why(place: Place) -> None:
    place.door = place.door.parent / ("d" * 120)
    environment = {**place.environment, "MEMCTL_DATABASE_URL": NOWHERE, "MEMCTL_DOOR_SOCKET": str(place.door)}
    with memctl("door", environment=environment, log=place.log_file) as process:
        assert process.wait(30) == 1
    assert re.search(r"error: .* cannot open at .*path too long", place.log)
    assert "Traceback" not in place.log


def test_what_is_under_way_is_answered_when_the_door_is_told_to_stop(place: Place, database_url: str) -> None:
    with place.open(database_url) as process, ExitStack() as stack:
        assert ask(place.door, delivery(0))["ok"]
        idle, waiting, sending = (stack.enter_context(closing(Client(place.door))) for _ in range(3))
        with stuck(database_url):
            waiting.send(delivery(1))
            until(lambda: somebody_waits_for_a_lock(database_url))
            rest = delivery(2).encode()
            sending.socket.sendall(rest[:-5])
            process.send_signal(signal.SIGTERM)
            until(lambda: not place.answers())
            assert process.poll() is None
            sending.socket.sendall(rest[-5:])
        assert waiting.answer()["ok"]
        assert sending.answer()["ok"]
        assert idle.socket.recv(1) == b""
        assert process.wait(15) == 0
    assert not place.door.exists()
    assert kept(database_url) == 3
    assert "Traceback" not in place.log


def test_a_door_whose_postgres_is_stuck_ends_in_time(place: Place, database_url: str) -> None:
    with place.open(database_url) as process:
        assert ask(place.door, delivery(0))["ok"]
        with stuck(database_url), closing(Client(place.door)) as client:
            client.send(delivery(1))
            until(lambda: somebody_waits_for_a_lock(database_url))
            process.send_signal(signal.SIGTERM)
            assert process.wait(STOP_WITHIN_S + 30) == 0  # by itself, with Postgres stuck as before


def test_what_holds_nothing_to_keep_is_in_the_log_without_its_words(place: Place, database_url: str) -> None:
    with place.open(database_url):
        assert "bad" in ask(place.door, delivery(10, b"a secret word"))
        assert "bad" in ask(place.door, delivery(11, agent="somebody unheard of"))
        answer = ask(place.door, delivery(12, at=10**18))
        assert (answer["ok"], answer["retry"]) == (False, False)
    assert f"{10:032x}" in place.log
    assert f"{11:032x}" in place.log
    assert "not JSON" in place.log
    assert "year 9999" in place.log
    assert "secret word" not in place.log
    assert "unheard of" not in place.log


def test_of_a_transcript_that_cannot_be_read_no_name_is_in_the_log(
    settings: Settings,
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name in ("SOON_S", "SETTLED_S"):
        monkeypatch.setattr(transcripts, name, 0.01)
    (named := tmp_path / "2026-01-02-quartz.jsonl").write_text('{"torn\n' + EXAMPLE.read_text())
    reader = transcripts.TranscriptReader(settings)
    with reading(reader):
        reader.read(str(named))
        until(lambda: told_by(database_url, "transcript") > 0)
    assert [record.levelname for record in caplog.records if "of a transcript" in record.message] == ["WARNING"]
    assert "quartz" not in caplog.text


def named(number: int, event: str, transcript: Path, session: str = "s1") -> Delivery:
    payload = {"hook_event_name": event, "session_id": session, "cwd": "/x", "transcript_path": str(transcript)}
    return delivery(number, json.dumps(payload).encode())


def test_one_door_takes_what_is_meant_for_each_space_and_the_transcripts_with_it(
    place: Place, database_url: str
) -> None:
    def in_space(name: str) -> dict[str, int]:
        with psycopg.connect(database_url) as connection:
            rows = connection.execute(
                "SELECT starts_with(dedupe_key, 'transcript'), count(*) FROM memctl.events"
                " JOIN memctl.spaces USING (space_id) WHERE name = %s GROUP BY 1",
                [name],
            )
            return {"transcript" if read else "hook": count for read, count in rows}

    same = delivery(3)._replace(space="lab")
    with place.open(database_url):
        assert ask(place.door, named(2, "Stop", EXAMPLE, "of-lab")._replace(space="lab"))["ok"]
        assert [ask(place.door, each)["new"] for each in (delivery(1), same, same)] == [1, 1, 0]
        refused = ask(place.door, delivery(4)._replace(space="no/space"))
        assert (refused["ok"], refused["retry"]) == (False, False)
        until(lambda: in_space("lab").get("transcript", 0) > 20, "the transcript")
    assert in_space("default") == {"hook": 1}
    assert in_space("lab")["hook"] == 1


def test_a_transcript_that_a_hook_names_is_read_from_where_it_was_left(
    tmp_path: Path, place: Place, database_url: str
) -> None:
    lines = EXAMPLE.read_text().splitlines(keepends=True)
    transcript = tmp_path / "project" / "a.jsonl"
    transcript.parent.mkdir()
    transcript.write_text("".join(lines[:10]))
    subagent = tmp_path / "project" / "a" / "subagents" / "agent-1.jsonl"
    with place.open(database_url):
        assert ask(place.door, named(1, "PostToolUse", transcript))["ok"]  # in the middle of a turn: nothing to read
        assert ask(place.door, named(2, "Stop", transcript))["ok"]
        until(lambda: told_by(database_url, "transcript") > 0)
        first = told_by(database_url, "transcript")
        with transcript.open("a") as file:
            file.write("".join(lines[10:]))
        subagent.parent.mkdir(parents=True)
        subagent.write_text("".join(lines).replace("3f6f1d52", "77777777"))
        assert ask(place.door, named(3, "PreCompact", transcript))["ok"]
        until(lambda: told_by(database_url, "transcript") > 2 * first and of_session(database_url, "77777777") > 0)
        whole = told_by(database_url, "transcript")
        assert ask(place.door, named(4, "Stop", transcript))["ok"]
        assert ask(place.door, named(5, "Stop", tmp_path / "none.jsonl"))["ok"]
        assert ask(place.door, named(6, "Stop", tmp_path / "project"))["ok"]
    with place.open(database_url):
        ask(place.door, named(7, "SessionStart", tmp_path / "project" / "b.jsonl", "s2"))
    assert told_by(database_url, "transcript") == whole


def test_a_session_that_ended_without_a_word_is_read_when_the_next_one_begins(
    tmp_path: Path, place: Place, database_url: str
) -> None:
    lines = EXAMPLE.read_text().splitlines(keepends=True)
    known, unknown = tmp_path / "known.jsonl", tmp_path / "unknown.jsonl"
    known.write_text("".join(lines[:10]))
    unknown.write_text("".join(lines).replace("3f6f1d52", "77777777"))
    with place.open(database_url):
        assert ask(place.door, named(1, "Stop", known))["ok"]
        until(lambda: told_by(database_url, "transcript") > 0)
        first = told_by(database_url, "transcript")
    known.write_text("".join(lines))
    with place.open(database_url):
        assert ask(place.door, named(2, "SessionStart", tmp_path / "new.jsonl", "s2"))["ok"]
        until(lambda: told_by(database_url, "transcript") > first)
    assert of_session(database_url, "77777777") == 0


def test_a_transcript_that_could_not_be_kept_is_read_again_though_nobody_names_it(
    settings: Settings, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SOON_S", "SETTLED_S", "AGAIN_S"):
        monkeypatch.setattr(transcripts, name, 0.01)
    attempts: list[DatabaseUnavailable | None] = [None] + 5 * [DatabaseUnavailable()]

    def away_at_first(settings: Settings) -> IngestWriter:
        if problem := attempts.pop():
            raise problem
        return IngestWriter(settings)

    reader = transcripts.TranscriptReader(settings, away_at_first)
    with reading(reader):
        reader.read(str(EXAMPLE))
        until(lambda: told_by(database_url, "transcript") > 0)
    assert not attempts


def test_a_reader_of_transcripts_says_what_it_could_not_read_until_it_has(
    settings: Settings, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "SOON_S", 0.01)
    monkeypatch.setattr(transcripts, "SETTLED_S", 600.0)
    problems: list[Exception] = [ValueError("of what was said")]

    def fails_once(settings: Settings) -> IngestWriter:
        if problems:
            raise problems.pop()
        return IngestWriter(settings)

    reader = transcripts.TranscriptReader(settings, fails_once)
    with reading(reader):
        reader.read(str(EXAMPLE))
        until(lambda: reader.unread == {str(EXAMPLE): "ValueError"})
        reader.read(str(EXAMPLE))
        until(lambda: reader.unread == {} and told_by(database_url, "transcript") > 0)


def test_a_reader_of_transcripts_says_since_when_it_is_at_one(
    settings: Settings, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "SOON_S", 0.01)
    opens = threading.Event()

    def waits(settings: Settings) -> IngestWriter:
        opens.wait(60)
        return IngestWriter(settings)

    reader = transcripts.TranscriptReader(settings, waits)
    with reading(reader):
        assert reader.at_since is None
        reader.read(str(EXAMPLE))
        until(lambda: reader.at_since is not None)
        opens.set()
        until(lambda: reader.at_since is None and told_by(database_url, "transcript") > 0)


def test_of_many_transcripts_that_could_not_be_kept_one_is_tried_after_each_pause(
    settings: Settings, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "SOON_S", 0.01)
    monkeypatch.setattr(transcripts, "SETTLED_S", 0.02)
    monkeypatch.setattr(transcripts, "AGAIN_S", 0.1)
    attempts: list[float] = []

    def away_at_first(settings: Settings) -> IngestWriter:
        attempts.append(time.monotonic())
        if len(attempts) < 4:
            raise DatabaseUnavailable
        return IngestWriter(settings)

    reader = transcripts.TranscriptReader(settings, away_at_first)
    for number in range(5):
        reader.read(str(shutil.copy(EXAMPLE, tmp_path / f"{number}.jsonl")))
    with reading(reader):
        until(lambda: known_files(database_url) == 5)
    assert len(attempts) == 4
    for n, least in enumerate((0.1, 0.2, 0.4)):
        assert attempts[n + 1] - attempts[n] >= least


def test_a_name_that_no_file_can_have_puts_off_no_transcript(
    settings: Settings, database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("SOON_S", "SETTLED_S"):
        monkeypatch.setattr(transcripts, name, 0.01)
    reader = transcripts.TranscriptReader(settings)
    reader.read(f"/{'x' * 300}.jsonl")
    reader.read(str(EXAMPLE))
    with reading(reader):
        until(lambda: told_by(database_url, "transcript") > 0)
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []


def test_a_long_transcript_lets_others_have_their_turn(
    settings: Settings, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"SOON_S": 0.01, "SETTLED_S": 600.0, "TURN_S": 0.05}.items():
        monkeypatch.setattr(transcripts, name, value)
    long, short = tmp_path / "long.jsonl", tmp_path / "short.jsonl"
    line = {"type": "user", "cwd": "/x", "timestamp": "2026-01-02T03:04:05.000Z"}
    said = {"role": "user", "content": "please mend the parser of ledgers"}
    for path, count in ((long, 3_000), (short, 3)):
        lines = ({**line, "uuid": f"{path.stem}{n}", "sessionId": path.stem, "message": said} for n in range(count))
        path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    reader = transcripts.TranscriptReader(settings)
    reader.read(str(long))
    reader.read(str(short))
    with reading(reader):
        until(lambda: of_session(database_url, "long") == 3_000 and of_session(database_url, "short") == 3)
    with psycopg.connect(database_url) as connection:
        query = "SELECT max(position) < (SELECT max(position) FROM memctl.events WHERE session_id = 'long')"
        assert connection.execute(f"{query} FROM memctl.events WHERE session_id = 'short'").fetchone() == (True,)


@contextmanager
def reading(reader: transcripts.TranscriptReader) -> Iterator[None]:
    reader.start()
    try:
        yield
    finally:
        reader.stop()
        reader.join(30)


def known_files(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT count(*) FROM memctl.checkpoints").fetchone()
        assert row is not None
        return int(row[0])


def of_session(database_url: str, beginning: str) -> int:
    with psycopg.connect(database_url) as connection:
        query = "SELECT count(*) FROM memctl.events WHERE starts_with(session_id, %s)"
        row = connection.execute(query, [beginning]).fetchone()
        assert row is not None
        return int(row[0])


def told_by(database_url: str, via: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM memctl.events WHERE coalesce(payload->>'via', 'transcript') = %s", [via]
        ).fetchone()
        assert row is not None
        return int(row[0])
