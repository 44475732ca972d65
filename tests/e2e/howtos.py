"""The how-tos, done to the letter: each page in a home of its own, in which the example was read.

A shell runs every line of a page's blocks, in order, then every command that its text names and no line has run. What
stands for something of the reader's (a disk, a server, an id) is named below, and what is not run, with why.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyrage
import pytest
from apis import free_port
from commandline import Memctl, terminal
from documents import ROOT, Block, in_order
from waiting import until

from memctl.infra.data_dir import Folders
from memctl.infra.endpoints import read_endpoints

PAGES = sorted((ROOT / "docs" / "how-to").glob("*.md"))

NOT_RUN = {
    "git pull": "the checkout is the one that is tested",
    "pip install": "`make test-wheel` installs in every way that a page names",
    "pipx install": "the same",
    "uvx": "the same",
    "python3 -m venv": "the same",
    "memctl-venv/bin/pip": "the same",
    "systemctl": "needs a login that systemd knows of",
    "memctl space create research": "needs another server; `make fleet` has three",
    "memctl space move": "the same",
    "MEMCTL_DATABASE_URL=$MEMCTL_DATABASES__EAST": "the same",
}
"""What lines begin with that are not run, and why."""

NOTHING_FOUND = 3
"""The exit code of what found nothing of what it was asked for: the example has no rule of code, nothing old, ..."""

GOES_ON = ("worker", "serve", "door", "relay", "ingest --follow")
"""What ends when it is told to, with exit code 0."""

REFUSED = {
    "judge": "no model is configured",
    "replay --rollback": "nothing was replayed yet",
    "dlq drop": "the example has no dead letter",
}
"""What ends with exit code 1, and why it may."""

STAND_FOR = {
    "keys revoke": "keys list",
    "restore": "restore --help",
    "export FILE": "export all.jsonl",
    "export --team .memory": "export --team .memory --project ledger",
    "import FILE --mine": "import all.jsonl --mine",
    "mcp": "mcp --help",
    "reject ID --why TEXT": "reject 52770c96 --why 'it was an experiment'",
    "note TEXT": "note 'Releases are tagged by hand.'",
    "verify-knowledge ID": "verify-knowledge 52770c96 --yes",
    "rate ID 0": "rate 60fc0f64 0",
    "pin ID": "pin 60fc0f64",
    "resolve ID --reject": "resolve 885e13dd --reject",
    "project join PATH": "project join --help",
    "project merge": "project merge ledger shop",
    "project split": "project split shop",
    "dlq show ID": "dlq show 1",
    "dlq drop ID --reason TEXT": "dlq drop 1 --reason 'it was an experiment'",
    "forget --match -": "forget --match - --yes <<< 'a phrase that nobody said'",
    "forget --scrub": "forget --scrub --match 'a phrase that nobody said' --yes",
}
"""What a page's text says, and what is run for it."""


class Reader:
    """Somebody who does what a page says."""

    def __init__(self, memctl: Memctl) -> None:
        self.memctl = memctl
        self.disk = memctl.home / "disk"
        self.disk.mkdir()
        self.stands_for = {"/mnt/disk": str(self.disk), "age1…": str(pyrage.x25519.Identity.generate().to_public())}
        self.going_on: list[tuple[str, subprocess.Popen[bytes]]] = []
        for folder in ("shell", "old-sessions", ".claude"):
            (memctl.home / folder).mkdir()

    def does(self, line: str) -> None:
        """Run a line as the reader would, in the shell that the lines before it left behind."""
        for name, here in self.stands_for.items():
            line = line.replace(name, here)
        if kept := sorted(self.disk.glob("*.zip")):
            line = re.sub(r"\S+\.memctl\.zip", str(kept[-1]), line)
        command = line.partition("memctl ")[2]
        if command.startswith(GOES_ON):
            self.going_on.append((command, self._begun(line)))
            return
        with terminal(b"y\n" * 5) as typed:
            done = subprocess.run(
                ["bash", "-c", f"{line}\nended=$?\nexport -p > shell/exported\nexit $ended"],
                cwd=self.memctl.home, env=self.environment(), stdin=typed, capture_output=True,
                timeout=300, check=False,
            )  # fmt: skip
        told = f"$ {line}\nexit {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}"
        good = (0, NOTHING_FOUND, 1) if command.startswith(tuple(REFUSED)) else (0, NOTHING_FOUND)
        assert done.returncode in good, told
        assert b"Traceback" not in done.stderr, told

    def environment(self) -> dict[str, str]:
        return {
            **self.memctl.environment,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "DISK": str(self.disk),
            "BASH_ENV": str(self.memctl.home / "shell" / "exported"),
        }

    def _begun(self, line: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {line}"], cwd=self.memctl.home, env=self.environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        until(lambda: process.poll() is not None or _hears_that_it_is_to_end(process.pid), line)
        assert process.poll() is None, f"{line}: {process.communicate()[1].decode()}"
        return process

    def ends_what_goes_on(self) -> None:
        for line, process in self.going_on:
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=60)
            assert process.returncode == 0, f"{line}: exit {process.returncode}\n{said.decode()}"


def _hears_that_it_is_to_end(pid: int) -> bool:
    with contextlib.suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_text()
        caught = re.search(r"^SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        return "/memctl\0" in command and caught is not None and bool(int(caught[1], 16) >> (signal.SIGTERM - 1) & 1)
    return False


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    memctl = Memctl(tmp_path)
    reader = Reader(memctl)
    try:
        memctl("up")
        memctl("ingest", "--example", "--wait")
        yield reader
    finally:
        for _, process in reader.going_on:
            process.kill()
        for folder in (memctl.data, *(memctl.home / name for name in ("restored", "older", "elsewhere"))):
            memctl("down", "--data-dir", str(folder))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_how_to_says_can_be_done(reader: Reader, page: Path) -> None:
    with free_port() as port:
        if page.stem == "use-servers-of-your-own":
            has_servers(reader, port)
        if page.stem == "serve-a-team":
            is_a_team(reader, port)
        follow(reader, page)


def follow(reader: Reader, page: Path) -> None:
    lines = [line for each in in_order(page) if isinstance(each, Block) for line in each]
    for each in in_order(page):
        if isinstance(each, Block):
            for line in each:
                if not line.startswith(tuple(NOT_RUN)):
                    reader.does(line)
            reader.ends_what_goes_on()
        elif not any(f"memctl {_fixed(each)}" in line for line in lines):
            reader.does(f"memctl {STAND_FOR.get(each, each)}")
    reader.ends_what_goes_on()


def _fixed(command: str) -> str:
    """A command up to the first word that stands for the reader's own."""
    return re.split(r" [A-Z]{2,}\b", command)[0]


def has_servers(reader: Reader, port: int) -> None:
    """Let the servers that the page names be those that run here, and what it starts run on another machine."""
    memctl, told = reader.memctl, read_endpoints(Folders(reader.memctl.data))
    reader.stands_for |= {
        "postgresql://memctl@db.example/memctl": f"'{told['database_url']}'",
        "rediss://queue.example:6379/0": f"'{told['redis_url']}'",
        "https://vectors.example:6333": told["qdrant_url"],
        "https://memory.example": f"http://127.0.0.1:{port}",
        "memctl relay": "env -u MEMCTL_API_TOKEN MEMCTL_DATA_DIR=$HOME/person memctl relay",
    }
    key = memctl.home / ".config" / "memctl" / "key"
    key.parent.mkdir(parents=True)
    key.touch(0o600)
    key.write_text("a-key-as-memctl-keys-add-prints-it")
    memctl.environment |= {
        "MEMCTL_DATA_DIR": str(memctl.home / "elsewhere"),
        "MEMCTL_QDRANT_API_KEY": told["qdrant_api_key"],
        "MEMCTL_API_URL": f"http://127.0.0.1:{port}",
        "MEMCTL_API_TOKEN": "the token of everything, thirty-two letters",
    }


def is_a_team(reader: Reader, port: int) -> None:
    """Let one machine be all of a team's, without a proxy, and the owner be its member."""
    memctl = reader.memctl
    reader.stands_for |= {
        "https://memory.example": f"http://127.0.0.1:{port}",
        "127.0.0.1:8760": f"127.0.0.1:{port}",
        "memctl relay": "env -u MEMCTL_API_LISTEN MEMCTL_DATA_DIR=$HOME/person memctl relay",
    }
    key = memctl.home / ".config" / "memctl" / "key"
    key.parent.mkdir(parents=True)
    key.touch(0o600)
    key.write_text(read_endpoints(Folders(memctl.data))["api_token"])


def test_what_is_said_to_be_left_out_or_replaced_still_stands_on_a_page() -> None:
    told = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [words for words in (*NOT_RUN, *STAND_FOR, *GOES_ON) if words not in told] == []
