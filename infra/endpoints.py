"""What the running instance answers on. Other processes read it from one file, which only its owner may read."""

import json
from pathlib import Path

from memctl.domain.support.errors import MemctlError
from memctl.infra.data_dir import Folders, write_private
from memctl.infra.files import read_file
from memctl.infra.process import Process

Endpoints = dict[str, str]
"""Values of settings, by the setting's name: database_url, redis_url, qdrant_url, qdrant_api_key, api_url, api_token,
api_socket, door_socket. Those that were configured to be elsewhere are missing."""


class NotRunning(MemctlError):
    """memctl is not running: {name} is not set, and no instance runs in {data_dir}."""

    def __init__(self, name: str, data_dir: Path, server: str = "") -> None:
        """`server`: the API that this machine asks instead."""
        here = f"run `memctl up`, or set MEMCTL_{name.upper()}"
        there = f"this machine asks {server}: do it on that server; hooks here need `memctl relay`"
        super().__init__(name=name, data_dir=data_dir, server=server, hint=there if server else here)


def read_endpoints(folders: Folders) -> Endpoints:
    """Endpoints of the instance that runs; empty where none does, whatever an earlier one left behind."""
    supervisor = Process.recorded(folders.supervisor_record)
    if supervisor is None or not supervisor.lives():
        return {}
    try:
        known = json.loads(read_file(folders.endpoints))
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(name): str(value) for name, value in known.items()} if isinstance(known, dict) else {}


def write_endpoints(folders: Folders, endpoints: Endpoints) -> None:
    write_private(folders.door_file, endpoints.get("door_socket", "") + "\n")
    asked = "\n".join(endpoints.get(name, "") for name in ("api_socket", "api_token"))
    write_private(folders.api_file, asked + "\n")
    write_private(folders.endpoints, json.dumps(endpoints, indent=2, sort_keys=True) + "\n")
