"""The wheel, installed into an empty environment and an empty home: does everything that it needs come with it?

`make test-wheel` runs this; the suite does not, since installing takes minutes. Each documented way is tried, and what
it installed is used; uv and pipx are those beside the Python that runs this, or on the path.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from documents import ROOT

LOCK = ROOT / "requirements.lock"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from what git knows, so that nothing of this checkout's own helps it."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    run([sys.executable, "-m", "build", "--wheel", "--outdir", str(out), str(source)], os.environ)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="session", params=["venv", "uv", "pipx"])
def installed(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`memctl`, installed in one of the documented ways; into an environment, with the very versions of the lock."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "venv":
        run([sys.executable, "-m", "venv", str(folder)], os.environ)
        run([str(folder / "bin" / "pip"), "install", "--quiet", "--no-deps", str(wheel)], os.environ)
        run([str(folder / "bin" / "pip"), "install", "--quiet", "--require-hashes", "-r", str(LOCK)], os.environ)
        return folder / "bin" / "memctl"
    program = shutil.which(request.param, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if program is None:
        pytest.skip(f"{request.param} is not on this machine")
    arguments = ["tool", "install"] if request.param == "uv" else ["install"]
    environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data"),
                   "UV_TOOL_BIN_DIR": str(folder / "bin"), "PIPX_BIN_DIR": str(folder / "bin")}  # fmt: skip
    run([program, *arguments, "--python", sys.executable, str(wheel)], environment)
    return folder / "bin" / "memctl"


def run(command: list[str], environment: Any, code: int = 0, cwd: Path | None = None) -> str:
    ended = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, timeout=900, check=False)
    assert ended.returncode == code, f"{command}: exit {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


@pytest.fixture
def home(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """An empty home, and an environment that knows nothing else of this machine."""
    return tmp_path, {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "MEMCTL_EMBEDDER": "none"}


def test_the_wheel_holds_every_module_and_every_file_that_is_no_code(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name.removeprefix("memctl/") for name in archive.namelist()}
    rooms = ("domain", "projections", "infra", "workers", "api", "cli")
    tracked = subprocess.run(["git", "ls-files", "-z", *rooms], cwd=ROOT, capture_output=True, check=True)
    wanted = {name for name in tracked.stdout.decode().split("\0") if name}
    assert wanted - held == {"infra/first_run.sh"}, "what only a checkout needs, or package-data that is missing"


def test_it_starts_reads_finds_and_shows_in_an_empty_home(installed: Path, home: tuple[Path, dict[str, str]]) -> None:
    folder, environment = home

    def memctl(*arguments: str) -> str:
        return run([str(installed), *arguments], environment, cwd=folder)

    assert memctl("--version").startswith("memctl, version ")
    try:
        memctl("up")
        account = json.loads(memctl("ingest", "--example", "--wait", "--json"))
        assert account["events"]["new"] == 30
        hits = json.loads(memctl("search", "csv export of monthly totals", "--json"))
        assert "CSV export" in hits[0]["text"]
        assert json.loads(memctl("status", "--json"))["well"]
        assert json.loads(memctl("verify", "--json"))
        memctl("install", "claude-code", "--yes")
        assert "memctl" in (folder / ".claude" / "settings.json").read_text()
        assert json.loads(memctl("doctor", "--json"))["ok"]
    finally:
        memctl("down")
    left = [path for path in folder.iterdir() if path.name not in (".local", ".claude", ".claude.json", ".cache")]
    assert left == []


def test_it_runs_by_uvx_and_then_has_no_client_call_what_stands_in_its_cache(wheel: Path, tmp_path: Path) -> None:
    uvx = shutil.which("uvx", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if uvx is None:
        pytest.skip("uvx is not on this machine")
    command = [uvx, "--python", sys.executable, "--from", str(wheel), "memctl"]
    environment = {**os.environ, "HOME": str(tmp_path)}
    assert run([*command, "--version"], environment).startswith("memctl, version ")
    run([*command, "install", "claude-code", "--yes"], environment, code=1)
    assert not (tmp_path / ".claude").exists()
