"""A hook's way in: one payload from standard input to the ingest door, or into the spool, and out.

Standard library only, and as little of it as can be, because a client waits for this at every turn: no json, pathlib,
typing or contextlib on the way that is usually taken. It runs as part of `memctl`, and as a plain file (`python -I -S
hook.py ingest --stdin`), which leaves out all that an environment adds to the start of an interpreter.

A delivery is a header line (JSON: `v`, `id`, `at` in microseconds since 1970, `agent`, `event`, `started`, the `space`
where one is meant, `size` in bytes) and then the payload, byte for byte as it came. `started` says how the client was
started, which no payload can say for itself. The same bytes travel over the door's socket and lie in the spool
(`memctl.infra.hooks.spool`).
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False  # as typing has it
if TYPE_CHECKING:
    import _socket

VERSION = 2
"""Of a delivery. The first had no `started` in its header."""

MAX_PAYLOAD = 64 * 1024 * 1024
MOST_FILES = 10_000
MOST_BYTES = 512 * 1024 * 1024
"""The spool is full with either; what was set aside counts, for it takes the same room."""

PATIENCE_S = 1.0
"""How long the door may take in all. The shortest time that a client gives its hooks is 1.5 s, at a session's end."""

SHELL_VARIABLES = {
    "CLAUDECODE": "claude-code", "CLAUDE_CODE": "claude-code", "AI_AGENT": "claude-code", "GEMINI_CLI": "gemini-cli",
    "CURSOR_AGENT": "cursor", "OPENCODE": "opencode", "AGENT": "opencode", "CODEX_SANDBOX": "",
    "CODEX_SANDBOX_NETWORK_DISABLED": "", "CODEX_CI": "", "CODEX_THREAD_ID": "", "COPILOT_CLI": "", "QWEN_CODE": "",
    "CLINE_ACTIVE": "", "AUGMENT_AGENT": "", "GOOSE_TERMINAL": "", "ANTIGRAVITY_AGENT": "", "PI_CODING_AGENT": "",
    "TRAE_AI_SHELL_ID": "",
}  # fmt: skip
"""Environment variables that clients set in the shells in which an agent runs commands. The value is the client whose
hooks have the variable as well, or may."""

ENTRYPOINT_VARIABLE = "CLAUDE_CODE_ENTRYPOINT"
"""The environment variable in which Claude Code says how it was started. All that it starts inherits it."""

HOOK_VARIABLE = "CLAUDE_PROJECT_DIR"
"""The environment variable that Claude Code, Gemini CLI and Cursor set for hooks alone. OpenCode's plugin is known by
what it hands over."""

AGENTS_SHELL = "agents-shell"
_LONGEST_STARTED = 64
"""Characters of the word for how a client was started."""

ACKNOWLEDGED = b'{"ok": true'
"""How the door's answer begins once a delivery is durable."""

RECALL_PATIENCE_S = 2.0
"""How long an answer may take from when it was asked for, which is before the delivery is durable."""

TOOL_PATIENCE_S = 0.5
"""How long it may take where nothing is delivered and a tool waits: an answer there is a lookup by key."""

MOST_ASKED = 1 << 20
"""Bytes of a payload that memory is asked about."""

FAILURE_WORDS = (b"rror", b"ail", b"FAIL")
"""One of these stands in the output of a command that fails, whatever its exit code says."""

SILENCE_S = 5.0
"""How long nothing may come on a standard input that stays open; then what came is the payload."""

MOST_SETTINGS, MOST_OFF_FILE, MOST_PLACE_FILE = 1 << 18, 1 << 22, 1 << 12
"""Bytes of a file of settings, of `off.json`, and of a file that names a place. Longer ones take longer than a hook
may."""

LONGEST_SPACE = 64
"""Characters of a space's name."""

MOST_ANSWERED = 1 << 20
"""Bytes of an answer: no client takes as much as a tenth of this."""

DOOR_FILE, API_FILE = "door", "api"
"""In the folder of the running instance, as plain text: where its door listens; its API's socket, and its token."""

DOWN_FILE = "noticed-down"
"""This file is there once a session was shown that nobody listens. The door deletes it when it listens again."""

FULL_FILE = "noticed-full"
"""This file is there once a session was shown that the spool is full. Whoever gets a delivery through deletes it."""

OFF_FILE = "off.json"
COUNTER = "refused"


VERBS = {
    "ingest": "",
    "session-start": "SessionStart",
    "search": "UserPromptSubmit",
    "save": "Stop",
    "session-end": "SessionEnd",
}
"""What a hook may call, and the hook it stands for where the payload names none."""

ANSWERED_VERBS = ("session-start", "search")


def run(arguments: list[str]) -> bool:
    """Do what `memctl ingest --stdin` and the other verbs of hooks do with these arguments, and end the process with 0.

    False, with nothing done, where they ask for anything else, as `memctl search` does where nothing is handed to it.
    Arguments that are not known are passed over: a client's settings may have been written for another version.
    memctl's own settings are not loaded: that costs more than the delivery, and a mistake in one of them would lose
    what was said.
    """
    options = _options(arguments)
    if options is None:
        return False
    try:
        if not _deliver(options) and arguments == ["search"]:
            return False
    except BaseException:  # an agent waits, and can do nothing about it; `memctl status` shows what is in the spool
        pass
    os._exit(0)  # what an interpreter does at its end takes as long as all this


def _options(arguments: list[str]) -> dict[str, str] | None:
    """The options of a hook's call, by name; None where the arguments ask for something else."""
    verb = arguments[0] if arguments else ""
    if verb not in VERBS or (verb == "ingest" and "--stdin" not in arguments):
        return None
    named = {"--agent": "claude-code", "--event": VERBS[verb], "--data-dir": "", "--session-id": "", "--cwd": ""}
    named["--stdin"] = ""
    if verb in ANSWERED_VERBS:
        named["--recall"] = "--recall"
    rest = iter(arguments[1:])
    for argument in rest:
        name, equals, value = argument.partition("=")
        if argument in ("--recall", "--recall-only", "--stdin"):
            named[argument] = argument
        elif name in named:
            named[name] = value if equals else next(rest, "")
        elif verb == "search" or (verb != "ingest" and argument in ("-h", "--help")):
            return None  # a question of a person's or a script's
    if verb != "ingest" and not named["--session-id"] and os.isatty(0):
        return None
    return named


def _switched_off() -> str:
    """What `MEMCTL_OFF` switches off for this run: `save`, `recall`, or (any other word but 0 and no) both."""
    word = os.environ.get("MEMCTL_OFF", "").strip().lower()
    return "" if word in ("", "0", "no", "false") else word if word in ("save", "recall") else "both"


def _deliver(options: dict[str, str]) -> bool:
    """Whether there was anything to deliver."""
    off = _switched_off()
    if off == "both":
        return True
    payload, agent = _read_payload(options), options["--agent"]
    if not payload.strip():
        return False
    identifier, at = os.urandom(16).hex(), time.time_ns() // 1000
    head = header(identifier, at, agent, options["--event"], len(payload), space_meant(), _started(agent))
    delivery = head + payload
    user = user_settings()
    data_dir = options["--data-dir"] or data_directory(user)
    door = _door(data_dir, user)
    # Memory looks while the door makes the delivery durable.
    recalls = ("--recall" in options or "--recall-only" in options) and off != "recall" and _may_recall(payload)
    pending = _request_recall(data_dir, options, identifier, payload) if recalls else None
    if "--recall-only" in options:  # the tool has not run: what it did is delivered when it has
        os.write(1, _recall_answer(pending))
        return True
    waits = off != "save" and (len(payload) > MAX_PAYLOAD or not _through_door(door, delivery))
    # The door would drop it; by the time that the spool is drained, saving may be on.
    if waits and _saving_is_off(data_dir, payload):
        off, waits = "save", False
    lost = waits and not _spooled(data_dir + "/spool", identifier, at, delivery)
    if off != "save" and not lost:
        _clear_full_notice(data_dir)
    if recalls:
        answer = _recall_answer(pending)
        os.write(1, answer or (_outage_notice(data_dir, door, options, payload, lost) if waits else b""))
    return True


def _may_recall(payload: bytes) -> bool:
    """Whether memory may have something to say. After a tool that went well it has, only if a command's output shows a
    failure: a pipe hides the exit code."""
    went_well = b'"PostToolUse"' in payload
    shows = b'"Bash"' in payload and any(word in payload for word in FAILURE_WORDS)
    return len(payload) <= MOST_ASKED and (shows or not went_well)


def _read_payload(options: dict[str, str]) -> bytes:
    """What the options say, or else what stands on standard input."""
    if options["--session-id"] and not options["--stdin"]:
        return f'{{"session_id": {_quote(options["--session-id"])}, "cwd": {_quote(options["--cwd"])}}}'.encode()
    return _read_stdin(MAX_PAYLOAD + 1)


def _read_stdin(most: int) -> bytes:
    """What stands on standard input up to its end, to `most` bytes, or until nothing more comes for `SILENCE_S`.

    Raises: TimeoutError where nothing at all came by then.
    """
    import _signal  # type: ignore[import-not-found]  # what `signal` is made of: importing that takes five milliseconds

    def silence(*_: object) -> None:
        raise TimeoutError

    _signal.signal(_signal.SIGALRM, silence)
    pieces, size = [], 0
    try:
        while size < most:
            _signal.setitimer(_signal.ITIMER_REAL, SILENCE_S)
            piece = os.read(0, min(1 << 20, most - size))
            if not piece:
                break
            pieces.append(piece)
            size += len(piece)
        _signal.setitimer(_signal.ITIMER_REAL, 0)
    except TimeoutError:
        if not pieces:
            raise
    return b"".join(pieces)


def _read_file(path: str, most: int) -> bytes:
    """A file's bytes. Raises: OSError, also where it is no plain file, or has more than `most`."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # to open a pipe would wait for somebody who writes
    try:
        if os.fstat(handle).st_mode & 0o170000 != 0o100000:
            raise OSError(f"{path} is no file")
        text = b""
        while len(text) <= most and (more := os.read(handle, most + 1 - len(text))):
            text += more
    finally:
        os.close(handle)
    if len(text) > most:
        raise OSError(f"{path} is too long")
    return text


def _started(client: str) -> str:
    """How the client was started, as Claude Code says it of itself; or that an agent's shell runs this.

    Nothing that a program may have handed over is the user's word (`memctl.infra.transcripts.claude.is_unattended`).
    """
    return AGENTS_SHELL if _in_agents_shell(client) else os.environ.get(ENTRYPOINT_VARIABLE, "")[:_LONGEST_STARTED]


def _in_agents_shell(client: str) -> bool:
    """Whether an agent's command runs this, or a client that an agent started, and not a client of the user's."""
    agents = os.environ.get("AI_AGENT", "")
    # Claude Code says of each process whose it is: its own (`…_harness`) or its agent's (`…_agent`).
    if agents[:11] == "claude-code" and agents[-5:] == "agent":
        return True
    if any(os.environ.get(name) and SHELL_VARIABLES[name] != client for name in SHELL_VARIABLES):
        return True
    named = client == "opencode" or os.environ.get(HOOK_VARIABLE)
    return (not named and any(os.environ.get(name) for name in SHELL_VARIABLES)) or _in_agents_process()


def _in_agents_process() -> bool:
    """Whether the process around this one was started as an agent's shell is, whatever stands before the command. Only
    Linux shows that."""
    try:
        around = _read_file(f"/proc/{os.getppid()}/environ", MOST_ASKED).split(b"\0")
    except OSError:
        return False
    names = {variable.partition(b"=")[0].decode("ascii", "replace") for variable in around}
    return HOOK_VARIABLE not in names and any(name in names for name in SHELL_VARIABLES)


def space_meant() -> str:
    """The space that `MEMCTL_SPACE` names; empty for that of the door."""
    word = os.environ.get("MEMCTL_SPACE", "")
    return word if is_space(word) else ""


def is_space(word: str) -> bool:
    """Whether a space may be called so."""
    return len(word) <= LONGEST_SPACE and word.isascii() and word[:1].isalnum() and not word.strip(_OF_NAMES)


_OF_NAMES = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"


def header(identifier: str, at: int, agent: str, event: str, size: int, space: str = "", started: str = "") -> bytes:
    """The line before a payload of `size` bytes; `at` in microseconds since 1970."""
    meant = f'"space": "{space}", ' if space else ""
    return (
        f'{{"v": {VERSION}, "id": "{identifier}", "at": {at}, "agent": {_quote(agent)}, "event": {_quote(event)},'
        f' "started": {_quote(started)}, {meant}"size": {size}}}\n'
    ).encode()


def _quote(text: str) -> str:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    import json

    return json.dumps(text)


def _through_door(door: str, delivery: bytes) -> bool:
    """Whether the door (`memctl.api.write.door`) has it: only then is there nothing left to do."""
    import _socket

    deadline = time.monotonic() + PATIENCE_S
    try:
        client = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        client.settimeout(PATIENCE_S)
        client.connect(door)
        client.settimeout(max(0.01, deadline - time.monotonic()))
        client.sendall(delivery)
        answer = b""
        while b"\n" not in answer:
            more = _receive(client, deadline)
            if not more:
                return False
            answer += more
        return answer.startswith(ACKNOWLEDGED)
    except OSError:  # whatever kept it out, the spool takes it
        return False


def _request_recall(
    data_dir: str, options: dict[str, str], identifier: str, payload: bytes
) -> tuple[_socket.socket, bytes, float] | None:
    """Ask the API (`memctl.api.http.hooks`) what memory has to inject at this hook, without waiting for anything.

    Returns the connection on which it answers, what is still to be sent on it, and until when it may take; None where
    memory is not there.
    """
    import _socket

    only = "--recall-only" in options
    deadline = time.monotonic() + (TOOL_PATIENCE_S if only else RECALL_PATIENCE_S)
    agent, event = options["--agent"], options["--event"]
    if not (agent + event).replace("-", "").isalnum():
        return None
    try:
        path, token = _read_file(f"{data_dir}/run/{API_FILE}", MOST_PLACE_FILE).decode().split()
        client = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        client.setblocking(False)
        client.connect(path)
        meant = f"Memctl-Space: {space}\r\n" if (space := space_meant()) else ""
        head = (
            f"POST /v1/hooks/{agent}?event={event} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
            f"Memctl-Delivery: {'' if only else identifier}\r\nContent-Length: {len(payload)}\r\n"
            f"{meant}Connection: close\r\n\r\n"
        )
        request = head.encode() + payload
        return client, request[client.send(request) :], deadline
    except (OSError, ValueError):
        return None


def _recall_answer(asked: tuple[_socket.socket, bytes, float] | None) -> bytes:
    """What memory injects, in the client's own form; nothing where it has nothing, takes too long, or was not asked."""
    if asked is None:
        return b""
    (client, unsent, deadline), answer = asked, b""
    try:
        client.settimeout(max(0.01, deadline - time.monotonic()))
        if unsent:  # who has answered may have hung up, and to send even nothing there fails
            client.sendall(unsent)
        while len(answer) <= MOST_ANSWERED and (more := _receive(client, deadline)):
            answer += more
    except OSError:
        return b""
    head_, _, body = answer.partition(b"\r\n\r\n")
    return body if head_.startswith(b"HTTP/1.1 200 ") and body.endswith(b"}") else b""


def _receive(client: _socket.socket, deadline: float) -> bytes:
    """What came, if only a byte, before the deadline. Raises: TimeoutError, however steadily bytes trickle in."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    client.settimeout(left)
    return client.recv(1 << 16)


def _saving_is_off(data_dir: str, payload: bytes) -> bool:
    """Whether saving was switched off here by `memctl off`, as `memctl.infra.hooks.capture_policy` reads it: also where
    that file cannot be read. Every name that a client has for a session and a place is looked at."""
    try:
        text = _read_file(f"{data_dir}/{OFF_FILE}", MOST_OFF_FILE)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    import json

    try:
        off = json.loads(text)
        if "save" in off.get("everywhere", ()):
            return True
        sessions = {name for name, what in off.get("sessions", {}).items() if "save" in what}
        projects = [path for path, what in off.get("projects", {}).items() if "save" in what]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return True
    if not sessions and not projects:
        return False
    named, places = _sessions_and_places(payload)
    inside = [os.path.normpath(place) + "/" for place in places if isinstance(place, str) and place]
    return any(isinstance(name, str) and name in sessions for name in named) or any(
        place.startswith(path.rstrip("/") + "/") for place in inside for path in projects
    )


def _sessions_and_places(payload: bytes) -> tuple[list[object], list[object]]:
    """What a delivery gives under every name that a client has for a session, and for a place; nothing where it is no
    JSON object: the API says what is wrong with it."""
    import json

    try:
        delivered = json.loads(payload)
        roots = delivered.get("workspace_roots")
        places = [delivered.get("cwd"), *(roots if isinstance(roots, list) else ())]
        return [delivered.get("session_id"), delivered.get("conversation_id")], places
    except (ValueError, AttributeError, TypeError, RecursionError):
        return [], []


def _outage_notice(data_dir: str, door: str, options: dict[str, str], payload: bytes, lost: bool) -> bytes:
    """At a session's start, and once for as long as it lasts: that nobody listens, or that the spool is full too.

    In the client's own form (`memctl.infra.hooks.dialects`). Nothing where memctl never ran, or is off.
    """
    if b"essionStart" not in payload and options["--event"] != "SessionStart":
        return b""
    import _socket
    import json

    named = json.loads(payload).get("hook_event_name")
    if (named or options["--event"]) not in ("SessionStart", "sessionStart") or os.path.exists(
        f"{data_dir}/{OFF_FILE}"
    ):
        return b""
    try:
        client = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        client.settimeout(PATIENCE_S)
        client.connect(door)
        down = False
    except (TimeoutError, BlockingIOError):
        down = False  # it is there, and has much to do
    except OSError:
        down = True
    try:
        if down or lost:
            said = FULL_FILE if lost else DOWN_FILE
            os.close(os.open(f"{data_dir}/run/{said}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        return b""
    if lost:
        notice = "memctl has no room in its spool: what is said here is not kept until it has (`memctl status`)."
    elif down:
        notice = "memctl is not running: what is said here waits on this disk, and is kept once it runs (`memctl up`)."
    else:
        return b""
    text = f"<memctl-context>\n{notice}\n</memctl-context>"
    if not named:
        return json.dumps({"context": text}).encode()
    if options["--agent"] == "cursor":
        return json.dumps({"additional_context": text}).encode()
    return json.dumps({"hookSpecificOutput": {"hookEventName": named, "additionalContext": text}}).encode()


def _clear_full_notice(data_dir: str) -> None:
    """Let the next session be shown again when the spool is full."""
    try:
        os.unlink(f"{data_dir}/run/{FULL_FILE}")
    except OSError:  # as good as always: it was not
        pass


def _spooled(folder: str, identifier: str, at: int, delivery: bytes) -> bool:
    """Whether the spool took it."""
    try:
        return spool_delivery(folder, identifier, at, delivery) is not None
    except OSError:
        return False


def spool_delivery(folder: str, identifier: str, at: int, delivery: bytes) -> str | None:
    """Put a delivery into the spool: written whole, synced, then named. Returns the file's path.

    None where it is longer than any may be or the spool is full: then only the refusal is counted. Hooks that come at
    the same moment may each find the last free place. Raises: OSError, counted too where that is possible.
    """
    for each in (os.path.dirname(folder), folder):  # makedirs gives its mode to the last one only
        os.makedirs(each, mode=0o700, exist_ok=True)
    try:
        if len(delivery) - delivery.index(b"\n") - 1 > MAX_PAYLOAD or not has_room(folder, len(delivery)):
            _count_refusal(folder)
            return None
        return _write(folder, f"{folder}/.{identifier}.part", f"{folder}/{at:020d}-{identifier}.delivery", delivery)
    except OSError:
        try:
            _count_refusal(folder)
        except OSError:
            pass
        raise


def has_room(folder: str, size: int) -> bool:
    """Whether a spool takes another delivery of `size` bytes. Raises: OSError where there is no such folder."""
    files = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == COUNTER:
                continue
            files += 1
            try:
                size += entry.stat(follow_symlinks=False).st_size
            except FileNotFoundError:  # drained meanwhile
                pass
    return files < MOST_FILES and size <= MOST_BYTES


def _write(folder: str, unfinished: str, final: str, data: bytes) -> str:
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.rename(unfinished, final)
    except OSError:
        try:
            os.unlink(unfinished)
        except FileNotFoundError:
            pass
        raise
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return final


def make_counter(folder: str) -> None:
    """Take the room that counting needs while there is some: a disk that is full has none for a new file."""
    _add_refusals(folder, 0)


def _count_refusal(folder: str) -> None:
    _add_refusals(folder, 1)


def _add_refusals(folder: str, more: int) -> None:
    import fcntl

    # Not blocking, nor does a lock: what bears the name may be a pipe, and who holds it may never let go.
    handle = os.open(f"{folder}/{COUNTER}", os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600)
    try:
        for left in range(49, -1, -1):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not left:
                    raise
                time.sleep(0.002)
        refused, last_at = read_counter(os.read(handle, 256))
        # Padded to one length, so that rewriting it in place needs no room on a disk that has none.
        text = f'{{"count": {refused + more}, "last_at": {time.time_ns() // 1000 if more else last_at}}}'
        os.pwrite(handle, f"{text:<79}\n".encode(), 0)
    finally:
        os.close(handle)


def read_counter(data: bytes) -> tuple[int, int]:
    """How many deliveries found no room, and when the last did, in microseconds since 1970."""
    import json

    try:
        found = json.loads(data)
        return int(found["count"]), int(found["last_at"])
    except (ValueError, KeyError, TypeError):  # new, or torn: from here on the count is a lower bound
        return 0, 0


def _door(data_dir: str, user: dict[str, object]) -> str:
    """Where the door listens, as far as anyone said. A file left behind by an instance that is gone costs nothing:
    nobody answers there."""
    if named := _configured_path("door_socket", user):
        return named
    try:
        return _read_file(f"{data_dir}/run/{DOOR_FILE}", MOST_PLACE_FILE).decode().strip()
    except (OSError, ValueError):
        return f"{data_dir}/run/sockets/door.sock"


def data_directory(user: dict[str, object]) -> str:
    """The data directory of a hook that is given no other."""
    return _configured_path("data_dir", user) or _user_folder("XDG_DATA_HOME", "~/.local/share")


def _configured_path(name: str, user: dict[str, object]) -> str:
    """A path that the environment or else the user's `config.toml` names."""
    value = os.environ.get(f"MEMCTL_{name.upper()}") or user.get(name)
    return os.path.abspath(os.path.expanduser(value)) if value and isinstance(value, str) else ""


def user_settings() -> dict[str, object]:
    """What the user's own configuration says; nothing where it cannot be read, or holds nothing for a hook."""
    folder = _user_folder("XDG_CONFIG_HOME", "~/.config")
    try:
        text = _read_file(folder + "/config.toml", MOST_SETTINGS)
        if b"data_dir" not in text and b"door_socket" not in text:
            return {}
        import tomllib

        return tomllib.loads(text.decode())
    except (OSError, ValueError, RecursionError):
        return {}


def _user_folder(variable: str, otherwise: str) -> str:
    """memctl's folder below a base folder of the XDG specification, or of a Mac; as platformdirs says."""
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/memctl")
    named = os.environ.get(variable, "")
    return (named if os.path.isabs(named) else os.path.expanduser(otherwise)) + "/memctl"


if __name__ == "__main__":
    run(sys.argv[1:])
