"""The hook as a client runs it: what was said is kept, and the agent notices nothing, whatever fails."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import psycopg
import pytest
from knocking import NOWHERE, Place, ask, delivery, kept, said
from waiting import seconds, until

from memctl.domain.events.observations import CONTEXT_BLOCK_OPEN
from memctl.infra import hook as hooks
from memctl.infra.hook import MAX_PAYLOAD
from memctl.infra.hooks.agent_shell import AGENTS_VARIABLES
from memctl.infra.hooks.spool import refusals


@pytest.fixture
def shards() -> int:
    return 1


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


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


CLAUDES_HOOK = {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli", "CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": "/w"}


def started_in(folder: Path, variables: Mapping[str, str], agent: str, shell: str = '"$@"; exit $?') -> str:
    """How the hook says that its client was started, which runs it with these variables, as clients do, in a shell."""
    unset = {name: value for name, value in os.environ.items() if name not in (*AGENTS_VARIABLES, hooks.HOOK_VARIABLE)}
    command = [sys.executable, "-I", "-S", hooks.__file__, "ingest", "--stdin", "--agent", agent]
    subprocess.run(
        ["sh", "-c", shell, "sh", *command, "--data-dir", str(folder / "memory")],
        env={**unset, "HOME": str(folder), **variables}, input=said(), check=True, timeout=60,
    )  # fmt: skip
    [path] = (folder / "memory" / "spool").iterdir()
    head, _, payload = path.read_bytes().partition(b"\n")
    assert payload == said()
    started: str = json.loads(head)["started"]
    return started


@pytest.mark.parametrize(
    ("variables", "agent", "started"),
    [
        ({"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}, "claude-code", "sdk-cli"),
        ({"CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDECODE": "1"}, "claude-code", "agents-shell"),
        (CLAUDES_HOOK, "claude-code", "sdk-cli"),
        ({**CLAUDES_HOOK, "CLAUDE_CODE_ENTRYPOINT": "cli"}, "claude-code", "cli"),
        ({**CLAUDES_HOOK, "CLAUDE_CODE_ENTRYPOINT": 'cli"x'}, "claude-code", 'cli"x'),
        ({**CLAUDES_HOOK, "CLAUDE_CODE_ENTRYPOINT": "cli" * 40}, "claude-code", ("cli" * 40)[:64]),
        ({**CLAUDES_HOOK, "AI_AGENT": "claude-code_2-1-330_harness"}, "claude-code", "sdk-cli"),
        ({**CLAUDES_HOOK, "AI_AGENT": "claude-code_2-1-330_agent"}, "claude-code", "agents-shell"),
        (
            {**CLAUDES_HOOK, "AI_AGENT": "claude-code/2.1.330/agent", "CLAUDE_CODE_ENTRYPOINT": "cli"}, "claude-code",
            "agents-shell",
        ),
        ({"GEMINI_CLI": "1", "CLAUDE_PROJECT_DIR": "/w"}, "gemini-cli", ""),
        ({"CURSOR_AGENT": "1", "CLAUDE_PROJECT_DIR": "/w"}, "cursor", ""),
        ({}, "codex", ""),
        # OpenCode has them of itself, and so has what its plugin starts.
        ({"OPENCODE": "1", "AGENT": "1"}, "claude-code", "agents-shell"),
        # A client that another's agent started.
        ({**CLAUDES_HOOK, "OPENCODE": "1", "AGENT": "1"}, "claude-code", "agents-shell"),
        ({**CLAUDES_HOOK, "CODEX_SANDBOX": "seatbelt"}, "claude-code", "agents-shell"),
        ({**CLAUDES_HOOK, "CLAUDE_CODE_ENTRYPOINT": "cli"}, "gemini-cli", "agents-shell"),
        ({"CLAUDECODE": "1"}, "codex", "agents-shell"),
    ],
)  # fmt: skip
def test_a_hook_says_that_a_program_asks(tmp_path: Path, variables: dict[str, str], agent: str, started: str) -> None:
    assert started_in(tmp_path, variables, agent) == started


@pytest.mark.parametrize("name", hooks.SHELL_VARIABLES)
def test_what_an_agents_shell_hands_a_hook_is_an_agents_word(tmp_path: Path, name: str) -> None:
    agent = "codex" if hooks.SHELL_VARIABLES[name] != "codex" else "claude-code"
    assert started_in(tmp_path, {name: "1"}, agent) == "agents-shell"


def test_opencodes_plugin_hands_over_what_is_typed_though_opencode_sets_what_its_shells_have(tmp_path: Path) -> None:
    opencode = 'OPENCODE=1 AGENT=1 "$@"; exit $?'
    assert started_in(tmp_path, {}, "opencode", opencode) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows how the process around was started")
@pytest.mark.parametrize(
    ("variables", "agent", "command"),
    [
        ({"CLAUDECODE": "1"}, "claude-code", 'CLAUDE_PROJECT_DIR=/w "$@"; exit $?'),
        ({"CLAUDECODE": "1"}, "claude-code", 'unset CLAUDECODE; "$@"; exit $?'),
        ({"OPENCODE": "1", "AGENT": "1"}, "opencode", '"$@"; exit $?'),
    ],
)
def test_what_an_agents_shell_puts_before_the_command_makes_no_hook_of_it(
    tmp_path: Path, variables: dict[str, str], agent: str, command: str
) -> None:
    assert started_in(tmp_path, variables, agent, command) == "agents-shell"


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
        assert place.names() == []
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


@pytest.mark.parametrize(
    ("off", "payload", "waits"),
    [
        ({"everywhere": ["save"]}, said(), False),
        ({"everywhere": ["recall"]}, said(), True),
        ({"sessions": {"s1": ["save"]}}, said(), False),
        ({"sessions": {"s2": ["save"], "s1": ["recall"]}}, said(), True),
        ({"projects": {"/x/shop": ["save", "recall"]}}, said(cwd="/x/shop/../shop/api/"), False),
        ({"projects": {"/x/shop": ["save"]}}, said(cwd="/x/shopping"), True),
        ({"projects": {"/x": ["save"]}}, b'{"workspace_roots": ["/x"], "session_id": ["s"]}', False),
        ({"sessions": {"s1": ["save"]}}, b'{"session_id": "s1", "workspace_roots": 5}', False),
        ({"sessions": {"s1": ["save"]}}, b"no JSON", True),
        ({"sessions": []}, said(), False),
        ("{", said(), False),
    ],
)
def test_what_is_said_while_saving_is_off_and_memctl_is_down_does_not_wait_in_the_spool(
    off: object, payload: bytes, waits: bool, tmp_path: Path
) -> None:
    (tmp_path / hooks.OFF_FILE).write_text(off if isinstance(off, str) else json.dumps(off))
    command = [sys.executable, "-I", "-S", hooks.__file__, "ingest", "--stdin"]
    done = subprocess.run(
        command, env={"MEMCTL_DATA_DIR": str(tmp_path)}, input=payload, capture_output=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == (b"", b"")
    assert (tmp_path / "spool").exists() is waits


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
    ("arguments", "code"),
    [(["search"], 2), (["search", "--recall"], 0), (["save"], 0), (["session-end"], 0), (["ingest", "--stdin"], 0)],
)
def test_where_nothing_is_handed_over_nothing_is_delivered_and_a_bare_search_says_how(
    arguments: list[str], code: int, tmp_path: Path
) -> None:
    memory = tmp_path / "memory"
    done = subprocess.run(
        [sys.executable, "-m", "memctl.cli", *arguments], env={**os.environ, "MEMCTL_DATA_DIR": str(memory)},
        stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stdout, (memory / "spool").exists()) == (code, b"", False)
    assert (b'memctl search "how are tests run"' in done.stderr) is (code == 2)


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


@pytest.mark.parametrize("file", ["memory/run/door", "memory/run/api", "memctl/config.toml"])
@pytest.mark.parametrize("made", ["mkfifo", "truncate -s 500000"])
def test_a_hook_reads_no_pipe_and_no_long_file(tmp_path: Path, file: str, made: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    subprocess.run([*made.split(), file], cwd=tmp_path, check=True)
    (tmp_path / "memory").mkdir(exist_ok=True)
    environment = {"MEMCTL_DATA_DIR": str(tmp_path / "memory"), "XDG_CONFIG_HOME": str(tmp_path)}
    command = [sys.executable, "-I", "-S", hooks.__file__, "ingest", "--stdin", "--recall"]
    subprocess.run(command, env=environment, input=said(), capture_output=True, timeout=60, check=True)
    assert len(list((tmp_path / "memory" / "spool").glob("*.delivery"))) == 1


def test_a_hook_keeps_what_came_on_an_input_that_nobody_closes(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", hooks.__file__, "ingest", "--stdin"]
    process = subprocess.Popen(command, env={"MEMCTL_DATA_DIR": str(tmp_path)}, stdin=subprocess.PIPE)
    assert process.stdin is not None
    with process.stdin as given:
        given.write(said())
        given.flush()
        assert process.wait(60) == 0
    [path] = (tmp_path / "spool").iterdir()
    assert path.read_bytes().endswith(b"\n" + said())


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


HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


@pytest.mark.parametrize(
    ("first", "then", "every_s"),
    [(b"", b"", 60.0), (HEAD, b"", 60.0), (b"H", b"T", 0.001), (HEAD, b"x" * (1 << 16), 0.0)],
    ids=["silent", "begins", "trickles", "floods"],
)
@pytest.mark.parametrize("stands_for", ["api", "door"])
def test_a_hook_ends_in_time_and_says_nothing_whatever_it_is_answered(
    tmp_path: Path, stands_for: str, first: bytes, then: bytes, every_s: float
) -> None:
    ended, run = threading.Event(), tmp_path / "memory" / "run"
    run.mkdir(parents=True)

    def answers(client: socket.socket) -> None:
        with closing(client), contextlib.suppress(OSError):
            client.sendall(first)
            while not ended.wait(every_s):
                client.sendall(then)

    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as listener, ThreadPoolExecutor(20) as pool:
        listener.bind(str(tmp_path / "listens.sock"))
        listener.listen()
        listener.settimeout(30)
        told = {"MEMCTL_DATA_DIR": str(tmp_path / "memory")}
        if stands_for == "api":
            (run / hooks.API_FILE).write_text(f"{tmp_path}/listens.sock token")
        else:
            told["MEMCTL_DOOR_SOCKET"] = f"{tmp_path}/listens.sock"
        prompt = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "why?"}).encode()
        command = [sys.executable, "-I", "-S", hooks.__file__, "search"]

        def asks() -> float:
            def run_hook() -> None:
                done = subprocess.run(
                    command, env={"PATH": "", **told}, input=prompt, capture_output=True, timeout=30, check=True
                )
                assert (done.stdout, done.stderr) == (b"", b"")

            asking = pool.submit(seconds, run_hook)
            pool.submit(answers, listener.accept()[0])
            return asking.result(60)

        # The door and memory are asked side by side, so what waits for one of them waits no longer.
        try:
            until(lambda: asks() < 1.5 * hooks.RECALL_PATIENCE_S, "a hook that waits for its patience alone")
        finally:
            ended.set()
    assert list((tmp_path / "memory" / "spool").glob("*.delivery")), "what was said waits on the disk"


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
            words = said(f"these are words number {number}")
            done = subprocess.run(
                command, env=place.environment, input=words, capture_output=True, timeout=60, check=True
            )
            said_something.append(done.stdout + done.stderr)

    telling = [threading.Thread(target=tell) for _ in range(3)]
    for thread in telling:
        thread.start()

    def told(enough: int) -> bool:
        """Whether so many are kept, or nobody tells any more."""
        return not any(thread.is_alive() for thread in telling) or kept(database_url) >= enough

    while any(thread.is_alive() for thread in telling):
        enough = kept(database_url) + 6
        with place.open(database_url):  # killed on leaving
            until(partial(told, enough))
    with place.open(database_url):
        until(lambda: not place.spool.exists() or not place.names())
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT count(*), count(DISTINCT payload->>'text') FROM memctl.events").fetchone()
    assert row == (hooks_run, hooks_run)
    assert set(said_something) == {b""}
