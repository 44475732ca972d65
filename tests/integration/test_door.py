"""The door and the hooks that knock: real processes, a real Postgres, and one that is away or stuck."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from data_dirs import used
from histories import EXAMPLE, drained
from processes import memctl
from waiting import seconds, until

from memctl.api.door import STOP_WITHIN_S
from memctl.api.places import projects_of
from memctl.api.reader import reader_of
from memctl.domain.observations import CONTEXT_BLOCK_OPEN
from memctl.infra import generations
from memctl.infra import hook as hooks
from memctl.infra.database import connect
from memctl.infra.hook import MAX_PAYLOAD
from memctl.infra.spool import Delivery, refusals, spool

NOWHERE = "postgresql://u@127.0.0.1:1/none"
BIG = 8_000_000


def said(text: str = "hello there", *, session: str = "s1", cwd: str = "/x") -> bytes:
    payload = {"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": cwd, "prompt": text}
    return json.dumps(payload).encode()


def delivery(
    number: int, payload: bytes | None = None, *, at: int | None = None, agent: str = "claude-code"
) -> Delivery:
    now = time.time_ns() // 1000
    return Delivery(f"{number:032x}", now if at is None else at, agent, "", said() if payload is None else payload)


class Client:
    """One connection to a door."""

    def __init__(self, door: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(30)
        self.socket.connect(str(door))
        self._answers = self.socket.makefile("rb")

    def send(self, delivery: Delivery) -> None:
        self.socket.sendall(delivery.encode())

    def answer(self) -> dict[str, Any]:
        return dict(json.loads(self._answers.readline()))

    def close(self) -> None:
        self._answers.close()
        self.socket.close()


def ask(door: Path, delivery: Delivery) -> dict[str, Any]:
    with closing(Client(door)) as client:
        client.send(delivery)
        return client.answer()


class Place:
    """A data directory with a door's socket, and what the door's log says."""

    def __init__(self, folder: Path) -> None:
        self.data = used(folder / "memory")
        self.spool = self.data / "spool"
        self.door = folder / "door.sock"
        self.log_file = folder / "door.log"
        self.environment = {
            "MEMCTL_DATA_DIR": str(self.data),
            "MEMCTL_DOOR_SOCKET": str(self.door),
            "XDG_CONFIG_HOME": str(folder / "config"),
        }

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def names(self) -> list[str]:
        return sorted(os.listdir(self.spool))

    @contextmanager
    def open(self, database_url: str) -> Iterator[subprocess.Popen[bytes]]:
        """A door in a process of its own, once it listens."""
        environment = {**self.environment, "MEMCTL_DATABASE_URL": database_url}
        with memctl("door", environment=environment, log=self.log_file) as process:
            until(lambda: process.poll() is not None or self.answers())
            assert process.poll() is None, self.log
            yield process

    def answers(self) -> bool:
        try:
            Client(self.door).close()
        except OSError:
            return False
        return True


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


def kept(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT count(*) FROM memctl.events").fetchone()
        assert row is not None
        return int(row[0])


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
        until(lambda: len(place.names()) == 3)
        spool(place.spool, delivery(6))  # the drain is alive after all that
        until(lambda: kept(database_url) == 4)
    assert [name.rpartition(".")[2] for name in place.names()] == ["damaged", "delivery", "refused"]
    assert place.log.count("x.delivery cannot be drained") == 1


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
        projects = projects_of(reader_of(connection, "default"))
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
        assert "bad" in ask(place.door, delivery(11, agent="somebody"))
        answer = ask(place.door, delivery(12, at=10**18))
        assert (answer["ok"], answer["retry"]) == (False, False)
    assert f"{10:032x}" in place.log
    assert f"{11:032x}" in place.log
    assert "not JSON" in place.log
    assert "year 9999" in place.log
    assert "secret word" not in place.log


def hook(
    folder: Path, *python: str, payload: bytes | None = None, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """`memctl ingest --stdin` as a client runs it, in `folder`, which is the user's home as well."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("MEMCTL_", "XDG_", "PYTHON"))
    }
    return subprocess.run(
        [sys.executable, *python, "-m", "memctl.cli", "ingest", "--stdin"],
        cwd=folder,
        env={**inherited, "HOME": str(folder), **environment},
        input=said() if payload is None else payload,
        capture_output=True,
        timeout=60,
        check=True,
    )


def test_a_hook_keeps_what_was_said_whatever_is_wrong_with_the_settings(tmp_path: Path) -> None:
    (tmp_path / ".memctl.toml").write_text('database_url = "x"\n')
    done = hook(tmp_path, MEMCTL_STAGE1_SHARDS="many", MEMCTL_DATA_DIR=str(tmp_path / "memory"))
    assert (done.stdout, done.stderr) == (b"", b"")
    [path] = (tmp_path / "memory" / "spool").iterdir()
    assert path.read_bytes().endswith(b"\n" + said())


@pytest.mark.skipif(sys.platform != "linux", reason="the folders are those of Linux")
def test_a_hook_finds_the_data_directory_where_the_settings_do(tmp_path: Path) -> None:
    hook(tmp_path)
    assert len(list((tmp_path / ".local/share/memctl/spool").iterdir())) == 1
    hook(tmp_path, XDG_DATA_HOME=str(tmp_path / "xdg"))
    assert len(list((tmp_path / "xdg/memctl/spool").iterdir())) == 1
    config = tmp_path / ".config" / "memctl" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('data_dir = "~/named"\nspace = [1, 2]\n')
    hook(tmp_path)
    assert len(list((tmp_path / "named/spool").iterdir())) == 1
    config.write_text("data_dir = \n")
    hook(tmp_path)
    assert len(list((tmp_path / ".local/share/memctl/spool").iterdir())) == 2


def test_a_hook_finds_the_door(tmp_path: Path, place: Place, database_url: str) -> None:
    run = place.data / "run"
    (run / "sockets").mkdir(parents=True)
    usual = run / "sockets" / "door.sock"
    with place.open(database_url):
        until(lambda: ask(place.door, delivery(1))["ok"])  # from here on it answers within a hook's patience
        hook(tmp_path, MEMCTL_DATA_DIR=str(place.data), MEMCTL_DOOR_SOCKET=str(place.door))
        (run / "door").write_text(f"{place.door}\n")
        hook(tmp_path, MEMCTL_DATA_DIR=str(place.data))
        (run / "door").unlink()
        usual.symlink_to(place.door)
        hook(tmp_path, MEMCTL_DATA_DIR=str(place.data))
        assert not place.spool.exists()
    assert kept(database_url) == 4


def test_a_hook_spools_what_the_door_has_no_room_for_or_cannot_keep(tmp_path: Path, place: Place) -> None:
    with place.open(NOWHERE):
        hook(tmp_path, **place.environment)
        assert len(list(place.spool.glob("*.delivery"))) == 1


def test_a_payload_longer_than_any_is_counted_and_not_kept(tmp_path: Path) -> None:
    hook(tmp_path, payload=bytes(MAX_PAYLOAD + 1), MEMCTL_DATA_DIR=str(tmp_path / "memory"))
    told = refusals(tmp_path / "memory" / "spool")
    assert told is not None
    assert told.deliveries == 1
    assert os.listdir(tmp_path / "memory" / "spool") == ["refused"]


def test_a_hook_that_runs_as_a_plain_file_imports_next_to_nothing(tmp_path: Path, place: Place) -> None:
    command = [sys.executable, "-I", "-S", "-X", "importtime", hooks.__file__, "ingest"]
    done = subprocess.run(
        [*command, "--stdin"], env=place.environment, input=said(), capture_output=True, timeout=60, check=True
    )
    imported = {line.rpartition(b"|")[2].strip().decode() for line in done.stderr.splitlines()}
    assert not imported & {"json", "re", "typing", "pathlib", "socket", "contextlib", "site", "memctl"}
    assert len(list(place.spool.glob("*.delivery"))) == 1


@pytest.mark.parametrize("arguments", [["--new-option", "x"], ["--agent"], ["--agent=codex", "--event", "Stop"]])
def test_a_hook_keeps_what_was_said_whatever_it_is_called_with(tmp_path: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-I", "-S", hooks.__file__, "ingest", "--stdin", *arguments]
    done = subprocess.run(
        command, env={"MEMCTL_DATA_DIR": str(tmp_path)}, input=said(), capture_output=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == (b"", b"")
    [path] = (tmp_path / "spool").iterdir()
    assert path.read_bytes().endswith(b"\n" + said())


@pytest.mark.parametrize(
    "before",
    [
        "exec <&-",
        "mkdir gone && cd gone && rmdir ../gone && export MEMCTL_DATA_DIR=here",
        "mkdir memory && touch memory/spool",
        "mkdir -p memory/spool && chmod 500 memory/spool && ulimit -f 0",
    ],
    ids=["no standard input", "no working directory", "no folder for the spool", "no room on disk"],
)
def test_a_hook_ends_well_and_says_nothing_whatever_fails(tmp_path: Path, before: str) -> None:
    command = [sys.executable, "-I", "-S", hooks.__file__, "ingest", "--stdin", "--recall"]
    done = subprocess.run(
        ["/bin/sh", "-c", f'{before} && exec "$@"', "sh", *command],
        cwd=tmp_path, env={"MEMCTL_DATA_DIR": str(tmp_path / "memory")}, input=said(), capture_output=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_hook_waits_for_a_door_that_does_not_answer_only_for_its_patience(tmp_path: Path) -> None:
    path = tmp_path / "door.sock"
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as listener:
        listener.bind(str(path))
        listener.listen()
        spool = tmp_path / "memory" / "spool"

        def waits() -> float:
            before = len(list(spool.iterdir())) if spool.exists() else 0
            took = seconds(
                lambda: hook(tmp_path, MEMCTL_DATA_DIR=str(tmp_path / "memory"), MEMCTL_DOOR_SOCKET=str(path))
            )
            assert took >= hooks.PATIENCE_S
            assert len(list(spool.iterdir())) == before + 1
            return took

        until(lambda: waits() < 1.5 * hooks.PATIENCE_S, "a hook that waits for its patience alone")


def test_that_nobody_listens_is_said_once_at_the_start_of_a_session(place: Place, database_url: str) -> None:
    begins = {"hook_event_name": "SessionStart", "session_id": "s1", "cwd": "/x", "source": "startup"}

    def told(payload: bytes, *options: str) -> bytes:
        command = [sys.executable, "-I", "-S", hooks.__file__, "ingest", "--stdin", "--recall", *options]
        done = subprocess.run(
            command, env=place.environment, input=payload, capture_output=True, timeout=60, check=True
        )
        assert done.stderr == b""
        return done.stdout

    start = json.dumps(begins).encode()
    assert told(start) == b"", "memctl never ran here"
    run = place.data / "run"
    run.mkdir()
    assert told(said("the word SessionStart")) == b""
    answer = json.loads(told(start))["hookSpecificOutput"]
    assert answer["hookEventName"] == "SessionStart"
    assert answer["additionalContext"].startswith(CONTEXT_BLOCK_OPEN)
    assert "`memctl up`" in answer["additionalContext"]
    assert told(start) == b""
    with place.open(database_url):
        until(lambda: not (run / hooks.DOWN_FILE).exists())
        assert told(start) == b""
    (place.data / hooks.OFF_FILE).write_text("{}")
    assert told(start) == b""
    (place.data / hooks.OFF_FILE).unlink()
    place.spool.joinpath("huge.delivery").touch()
    os.truncate(place.spool / "huge.delivery", hooks.MOST_BYTES)
    cursor = json.dumps({**begins, "hook_event_name": "sessionStart"}).encode()
    (run / hooks.DOWN_FILE).touch()
    for _ in range(2):
        assert "not kept" in json.loads(told(cursor, "--agent", "cursor"))["additional_context"]
        assert told(cursor, "--agent", "cursor") == b"", "it is said once"
        os.truncate(place.spool / "huge.delivery", 0)
        assert told(cursor, "--agent", "cursor") == b"", "that nobody listens was said"
        os.truncate(place.spool / "huge.delivery", hooks.MOST_BYTES)


def test_hooks_lose_and_double_nothing_while_their_door_is_killed_again_and_again(
    place: Place, database_url: str
) -> None:
    hooks_run, numbers, said_something = 48, iter(range(48)), []

    def tell() -> None:
        for number in numbers:  # an iterator hands each number to one thread
            command = [sys.executable, "-I", "-S", hooks.__file__, "ingest", "--stdin"]
            given = {"env": place.environment, "input": said(f"these are words number {number}")}
            done = subprocess.run(command, capture_output=True, timeout=60, check=True, **given)  # type: ignore[call-overload]
            said_something.append(done.stdout + done.stderr)

    telling = [threading.Thread(target=tell) for _ in range(3)]
    for thread in telling:
        thread.start()
    while any(thread.is_alive() for thread in telling):
        enough = kept(database_url) + 6
        with place.open(database_url):  # killed on leaving
            until(lambda e=enough: kept(database_url) >= e or not any(thread.is_alive() for thread in telling))  # type: ignore[misc]
    with place.open(database_url):
        until(lambda: not place.spool.exists() or not place.names())
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT count(*), count(DISTINCT payload->>'text') FROM memctl.events").fetchone()
    assert row == (hooks_run, hooks_run)
    assert set(said_something) == {b""}


def named(number: int, event: str, transcript: Path, session: str = "s1") -> Delivery:
    payload = {"hook_event_name": event, "session_id": session, "cwd": "/x", "transcript_path": str(transcript)}
    return delivery(number, json.dumps(payload).encode())


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
