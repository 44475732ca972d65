"""Hooks, measured as whole processes: time, memory, what is kept when the service dies under them, what they leave.

    python tests/bench/hooks.py [FOLDER] [--only times,parallel,killed,day,recall] [--hooks 10000] [--json FILE]

Every part has a memctl of its own (`memctl up` in a temporary folder), and every hook is the command line that
`memctl install` writes. `times` alternates the sides within one run, so that what else the machine does falls on all.
`recall` asks among many memories, with the query's embedding (`search.fill` writes them). FOLDER holds transcripts of
Claude Code for the last two (default: the published ones, tests/published.py). `killed` may be run in pieces, each with
a --seed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import search
from engine import family_of, process_parents, pss_mb, show

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import published  # noqa: E402
from evaluation.metrics import percentile  # noqa: E402
from hook_payloads import Sent, sent_for  # noqa: E402
from transcript_files import format_of  # noqa: E402

from memctl.infra.hooks import clients  # noqa: E402
from memctl.infra.hooks.spool import Delivery, spooled  # noqa: E402
from memctl.infra.readmodels import generations  # noqa: E402
from memctl.infra.readmodels import rows as readmodels  # noqa: E402
from memctl.infra.transcripts.claude import Claude  # noqa: E402
from memctl.infra.transcripts.files import discover  # noqa: E402
from memctl.projections.kernel import projections  # noqa: E402

TURNS = 60
"""How often each side is measured."""

ASKED = 200
"""Hooks that ask among many memories."""

AT_ONCE = 1_000
INDEX_WAIT_S = 900
"""For the graph index of the memories that are asked among, and for rest; how far it came is printed."""

KILLED = ("door", "postgres", "worker", "api", "valkey")

ONLY_HOOKS_TELL = {
    "sessions": ("started_at", "last_at", "ended_at", "end_reason", "starts", "model"),
    "working_memory": ("started_at", "updated_at", "ended_at"),
    "stats": ("sessions_opened",),
    "locations": ("first_seen", "last_seen", "evidence"),
}
"""Left out where a day is compared; see tests/unit/test_day_replayed.py."""

CONSOLIDATED = {"consolidation_log", "consolidated", "reflections", "memories", "vector_points"}
"""Read models that show what a round of consolidation recorded. One runs when the clock says so."""


class Memory:
    """One memctl that runs in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.data = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMCTL_")}
        self.environment = {**kept, "MEMCTL_DATA_DIR": str(folder), "MEMCTL_BENCH": str(folder)}

    def __call__(self, *arguments: str, check: bool = True) -> Any:
        line = [sys.executable, "-m", "memctl.cli", *arguments]
        done = subprocess.run(line, env=self.environment, capture_output=True, check=False)
        if check and done.returncode:
            sys.exit(f"memctl {' '.join(arguments)} failed:\n{done.stdout.decode()}{done.stderr.decode()}")
        return json.loads(done.stdout) if "--json" in arguments else None

    @property
    def config(self) -> dict[str, str]:
        found: dict[str, str] = self("config", "--json")
        return found

    def hook(self, event: str = "PostToolUse") -> list[str]:
        return shlex.split(clients.command(clients.CLIENTS["claude-code"], event, self.data))

    def pids(self) -> dict[str, int]:
        return {each["name"]: each["pid"] for each in self("status", "--json", check=False)["programs"] if each["pid"]}

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.config["database_url"], autocommit=True)


@contextmanager
def memory() -> Iterator[Memory]:
    with tempfile.TemporaryDirectory(prefix="memctl-bench-") as folder:
        one = Memory(Path(folder) / "data")
        try:
            one("up")
            yield one
        finally:
            one("down")


def tool_use(number: int, session: str = "bench", *, hides: bool = False) -> bytes:
    """A payload of a tool's use, 1.5 KB of output; of a command that hides a failure memory is asked."""
    payload = {
        "session_id": session,
        "cwd": "/home/dana/shop",
        "hook_event_name": "PostToolUse",
        "permission_mode": "default",
        "tool_name": "Bash",
        "tool_use_id": f"toolu_{session}_{number}",
        "tool_input": {"command": f"make target-{number}{' | tail' * hides}", "description": "Build it"},
        "tool_response": {
            "stdout": f"{'error: ' * hides}line of output {number}\n" * 60,
            "stderr": "",
            "interrupted": False,
        },
    }
    return json.dumps(payload).encode()


def run(line: Sequence[str], payload: bytes, environment: dict[str, str]) -> tuple[float, int, bytes]:
    """Seconds of a whole process, its exit code, and what it printed."""
    read, write = os.pipe()
    said = tempfile.TemporaryFile()  # noqa: SIM115
    began = time.perf_counter()
    actions = [(os.POSIX_SPAWN_DUP2, read, 0), *((os.POSIX_SPAWN_DUP2, said.fileno(), to) for to in (1, 2))]
    pid = os.posix_spawn(line[0], line, environment, file_actions=[*actions, (os.POSIX_SPAWN_CLOSE, write)])
    os.close(read)
    with suppress(BrokenPipeError):
        os.write(write, payload)
    os.close(write)
    _, status = os.waitpid(pid, 0)
    seconds = time.perf_counter() - began
    said.seek(0)
    return seconds, os.waitstatus_to_exitcode(status), said.read()


def resident(line: Sequence[str], payload: bytes, environment: dict[str, str]) -> float:
    """The largest resident size of a whole process, in MB. Started by a small one: Linux counts what a process was
    before it became another program."""
    small = "import os, sys; pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ); print(os.wait4(pid, 0)[2][2])"
    asked = [sys.executable, "-I", "-S", "-c", small, *line]
    done = subprocess.run(asked, input=payload, env=environment, capture_output=True, check=True)
    return round(int(done.stdout.split()[-1]) * 1024 / 1e6, 1)


def measure_times() -> dict[str, Any]:
    with memory() as one:
        numbers = itertools.count()
        plain = [sys.executable, "-c", "pass"]
        bare = {**one.environment, "MEMCTL_DATA_DIR": "/nonexistent"}
        command = [str(Path(sys.executable).with_name("memctl")), "ingest", "--stdin"]
        nowhere = shlex.split(clients.command(clients.CLIENTS["claude-code"], "Stop", one.data.parent / "down"))
        recall = one.hook("SessionStart")
        sides: dict[str, Callable[[], tuple[list[str], bytes]]] = {
            "python -c pass": lambda: (plain, b""),
            "python -I -S -c pass": lambda: ([plain[0], "-I", "-S", *plain[1:]], b""),
            "hook as installed, service up": lambda: (one.hook(), tool_use(next(numbers))),
            "hook as installed, service down": lambda: (nowhere, tool_use(next(numbers))),
            "hook of a failure that a pipe hid, service up": lambda: (one.hook(), tool_use(next(numbers), hides=True)),
            "memctl ingest --stdin, service up": lambda: (command, tool_use(next(numbers))),
            "hook that asks (SessionStart), service up": lambda: (recall, started(next(numbers))),
        }
        figures = _times(sides, {name: bare if "down" in name else one.environment for name in sides})
        with under_load(one):
            loaded = {name: sides[name] for name in sides if name == "python -c pass" or "service up" in name}
            figures |= {
                f"{name}, 500 events/s besides": value
                for name, value in _times(loaded, dict.fromkeys(loaded, one.environment)).items()
            }
        for name in ("python -c pass", "hook as installed, service up", "hook as installed, service down"):
            figures[f"resident: {name} (MB)"] = resident(*sides[name](), bare if "down" in name else one.environment)
        figures["waiting in the spool"] = len(spooled(one.data / "spool"))
        figures |= {f"resident: {name} (MB)": size for name, size in proportional(one).items()}
    return figures


def proportional(one: Memory) -> dict[str, int]:
    """Proportional set size of each program of the service with its children, and of all of it, in MB."""
    parents = process_parents()
    pids = one.pids()
    sizes = {name: pss_mb(family_of(pid, parents)) for name, pid in pids.items()}
    return {**sizes, "everything": pss_mb({each for pid in pids.values() for each in family_of(pid, parents)})}


def started(number: int) -> bytes:
    payload = {"session_id": f"asking-{number}", "cwd": "/home/dana/shop", "hook_event_name": "SessionStart"}
    return json.dumps({**payload, "source": "startup"}).encode()


def prompted(number: int, prompt: str) -> bytes:
    """A prompt in one of the projects of `search.fill`."""
    payload = {"session_id": f"asking-{number}", "cwd": f"/work/p{number % search.PROJECTS}", "prompt": prompt}
    return json.dumps({**payload, "hook_event_name": "UserPromptSubmit"}).encode()


def _times(
    sides: dict[str, Callable[[], tuple[list[str], bytes]]], environments: dict[str, dict[str, str]]
) -> dict[str, Any]:
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(TURNS):
        for name, side in sides.items():
            line, payload = side()
            seconds, code, said = run(line, payload, environments[name])
            if code or said:
                sys.exit(f"{name}: exit code {code}, said {said[:500]!r}")
            taken[name].append(seconds)
    medians = {name: sorted(each)[len(each) // 2] for name, each in taken.items()}
    return {
        name: {
            "median (ms)": round(medians[name] * 1000, 1),
            "p95 (ms)": round(sorted(each)[len(each) * 95 // 100] * 1000, 1),
            "times python -c pass": round(medians[name] / medians["python -c pass"], 2),
        }
        for name, each in taken.items()
    }


@contextmanager
def under_load(one: Memory) -> Iterator[None]:
    """500 events a second through the door besides: 250 uses of tools, each a call and its outcome."""
    door, stop = one.config["door_socket"], threading.Event()

    def press() -> None:
        with Line(door) as line:
            for number in itertools.count():
                if stop.wait(0.02):
                    return
                for each in range(5):
                    line.deliver(
                        Delivery(os.urandom(16).hex(), _now(), "claude-code", "", tool_use(number, f"p{each}"))
                    )

    pressing = threading.Thread(target=press)
    pressing.start()
    try:
        yield
    finally:
        stop.set()
        pressing.join()


class Line:
    """One connection to a door."""

    def __init__(self, door: str) -> None:
        import socket

        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(door)
        self._answers = self._socket.makefile("rb")

    def deliver(self, delivery: Delivery) -> dict[str, Any]:
        self._socket.sendall(delivery.encode())
        answer: dict[str, Any] = json.loads(self._answers.readline())
        return answer

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self._answers.close()
        self._socket.close()


def measure_parallel() -> dict[str, Any]:
    """A thousand hooks at once, as a thousand processes."""
    with memory() as one:
        line, running = one.hook(), []
        began = time.perf_counter()
        for number in range(AT_ONCE):
            with tempfile.TemporaryFile() as payload:  # a hook that is started long before its input gives up
                payload.write(tool_use(number))
                payload.seek(0)
                running.append(
                    subprocess.Popen(
                        line, env=one.environment, stdin=payload, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
                    )
                )
        said = [process.stdout.read() for process in running if process.stdout is not None]
        codes = {process.wait() for process in running}
        seconds = time.perf_counter() - began
        wait_for_spool(one)
        return {
            "hooks": AT_ONCE,
            "seconds": round(seconds, 1),
            "exit codes": sorted(codes),
            "said anything": sum(map(bool, said)),
            **kept(one, AT_ONCE),
        }


def measure_killed(hooks: int, seed: int) -> dict[str, Any]:
    """Hooks, eight at a time, while a program of the service is killed now and then."""
    with memory() as one:
        luck, line = random.Random(seed), one.hook()
        numbers, lock = itertools.count(), threading.Lock()
        codes: set[int] = set()
        said = 0
        taken: list[float] = []

        def work() -> None:
            nonlocal said
            while True:
                with lock:
                    number = next(numbers)
                if number >= hooks:
                    return
                seconds, code, words = run(line, tool_use(number), one.environment)
                with lock:
                    taken.append(seconds)
                    codes.add(code)
                    said += bool(words)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        kills: dict[str, int] = dict.fromkeys(KILLED, 0)
        bag: list[str] = []
        while any(thread.is_alive() for thread in threads):
            time.sleep(luck.uniform(0.5, 4.0))
            bag = bag or luck.sample(KILLED, len(KILLED))  # all are met, however short the run
            name = bag.pop()
            if pid := one.pids().get(name):
                os.kill(pid, signal.SIGKILL)
                kills[name] += 1
        spooled_then = len(spooled(one.data / "spool"))
        wait_for_spool(one)
        taken.sort()
        return {
            "hooks": hooks,
            "killed -9": kills,
            "exit codes": sorted(codes),
            "said anything": said,
            "longest hook (ms)": round(taken[-1] * 1000),
            "p95 (ms)": round(taken[len(taken) * 95 // 100] * 1000),
            "waited in the spool at the end": spooled_then,
            **kept(one, hooks),
        }


def wait_for_spool(one: Memory) -> None:
    deadline = time.monotonic() + 180
    while spooled(one.data / "spool"):
        if time.monotonic() > deadline:
            sys.exit("the spool was not drained in three minutes")
        time.sleep(0.5)
    time.sleep(3.0)  # the door may have a delivery in hand still


def kept(one: Memory, payloads: int) -> dict[str, Any]:
    """Events by their tool uses, and processes of hooks that are still there."""
    with one.connect() as connection:
        row = connection.execute(
            "SELECT count(*), count(DISTINCT payload->>'call') FROM memctl.events WHERE type = 'tool.returned'"
        ).fetchone()
    assert row is not None
    left = [
        int(pid)
        for pid in os.listdir("/proc")
        if pid.isdigit() and b"infra/hook.py" in _read(f"/proc/{pid}/cmdline") and str(one.data).encode() in
        _read(f"/proc/{pid}/environ")
    ]  # fmt: skip
    return {
        "lost": payloads - row[1],
        "doubled": row[0] - row[1],
        "refused": one("status", "--json", check=False).get("refused", 0),
        "processes left": len(left),
    }


def measure_day(folder: Path | None) -> dict[str, Any]:
    """Real sessions told by hooks and read by the door as hooks name them, against the transcripts alone."""
    with published.sessions(folder) as sessions:
        paths = [path for path in sorted(discover([sessions])) if isinstance(format_of(path), Claude)]
        sent = sent_for(paths)
        named = sorted({Path(each.payload["transcript_path"]) for each in sent})
        with memory() as alone:
            alone("ingest", *map(str, paths), "--wait", "--json")
            expected = digests(alone)
        with memory() as day:
            deliver(day, sent)
            settled(day, named)
            # A copy of a session under another name is no hook's transcript, but hooks told what it tells.
            day("ingest", *map(str, paths), "--wait", "--json")
            found = digests(day)
    differ = [name for name in expected if expected[name] != found[name]]
    consolidated = CONSOLIDATED if "consolidation_log" in differ else set()
    return {
        "transcripts": len(paths),
        "hooks": len(sent),
        "read models that differ": [name for name in differ if name not in consolidated],
        "that differ as one of the two was consolidated meanwhile": [name for name in differ if name in consolidated],
        "read models that are equal": sum(expected[name] == found[name] for name in expected),
        "left out, as only hooks tell it": {name: ", ".join(fields) for name, fields in ONLY_HOOKS_TELL.items()},
    }


def measure_recall(folder: Path | None, memories: int) -> dict[str, Any]:
    """Prompts told by hooks as whole processes, each answered from among so many memories, its embedding included."""
    with memory() as one, published.sessions(folder) as found:
        one("ingest", str(found), "--wait", "--json")
        settings = one.config
        titles = search.fill(settings, memories)
        line, bare = one.hook("UserPromptSubmit"), [sys.executable, "-c", "pass"]
        taken: dict[str, list[float]] = {"python -c pass": [], "hook that asks at a prompt": []}
        said = 0
        for number in range(search.PROJECTS):  # a project that memory does not know is told nothing
            run(line, prompted(number, "Let us go on with the parser."), one.environment)
        deadline = time.monotonic() + INDEX_WAIT_S
        while (search.indexed_share(settings) < 0.8 or not at_rest(one)) and time.monotonic() < deadline:
            time.sleep(2.0)
        rested = at_rest(one)
        for number, title in enumerate(random.Random(5).choices(titles, k=ASKED + 10)):
            asked = prompted(search.PROJECTS + number, title)
            for name, command, given in (("python -c pass", bare, b""), ("hook that asks at a prompt", line, asked)):
                seconds, code, words = run(command, given, one.environment)
                if code:
                    sys.exit(f"{name}: exit code {code}, said {words[:500]!r}")
                taken[name].append(seconds)
                said += bool(words)
        return {
            "memories": memories,
            "answered": f"{said} of {ASKED + 10}",
            "graph index covers": round(search.indexed_share(settings), 2),
            "before that, all was embedded, and no processor at work": rested,
            **{
                name: {
                    "median (ms)": round(percentile(each[10:], 0.50) * 1000, 1),
                    "p95 (ms)": round(percentile(each[10:], 0.95) * 1000, 1),
                }
                for name, each in taken.items()
            },
            **{f"resident: {name} (MB)": size for name, size in proportional(one).items()},
        }


def at_rest(one: Memory) -> bool:
    """Whether all is folded, written and embedded, and no processor is at work: as a machine is most of the time."""
    told = one("status", "--json", check=False)
    left = (told["log"]["lag"], *told["vectors"].values(), *(each["working"] for each in told["processors"]))
    return not any(left)


def deliver(day: Memory, sent: Sequence[Sent]) -> None:
    """As the hooks would, with the times at which they ran."""
    with Line(day.config["door_socket"]) as line:
        for each in sent:
            payload = json.dumps(each.payload).encode()
            answer = line.deliver(Delivery(os.urandom(16).hex(), each.at, "claude-code", "", payload))
            if not answer["ok"]:
                sys.exit(f"the door refused a delivery: {answer}")


def settled(day: Memory, paths: Sequence[Path]) -> None:
    """Wait until the door has read the transcripts, and all is folded: then an ingest of them has nothing to do."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        with day.connect() as connection:
            row = connection.execute("SELECT count(*) FROM memctl.checkpoints").fetchone()
        if row is not None and row[0] >= len(paths):
            break
        time.sleep(1.0)
    time.sleep(4.0)
    account = day("ingest", *map(str, paths), "--wait", "--json")
    if account["events"]["new"]:
        sys.exit(f"the door had not read everything: {account['events']}")


def digests(one: Memory) -> dict[str, str]:
    with one.connect() as connection:
        live = generations.live(connection)
        found = {}
        for p in projections():
            table = readmodels.table(p.name, live.stage1 if p.stage == 1 else live.stage2)
            without = ",".join(ONLY_HOOKS_TELL.get(p.name, ()))
            query = f"SELECT space_id, key, row - '{{{without}}}'::text[] AS row FROM {table}"
            found[p.name] = readmodels.digest_of(connection, query).hex  # type: ignore[arg-type]
    return found


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _now() -> int:
    return time.time_ns() // 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--only", default="times,parallel,killed,day,recall")
    parser.add_argument("--hooks", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=7, help="of what is killed, and when")
    parser.add_argument("--memories", type=int, default=100_000, help="among which hooks ask")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # what was started is to be stopped
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "times": measure_times,
        "parallel": measure_parallel,
        "killed": lambda: measure_killed(given.hooks, given.seed),
        "day": lambda: measure_day(given.folder),
        "recall": lambda: measure_recall(given.folder, given.memories),
    }
    figures = {name: parts[name]() for name in given.only.split(",")}
    show(figures)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
