"""Build a release into `dist`: wheel, source archive, checksums and notes, from the last commit and nothing else.

Built twice, and refused where the wheels differ in a byte: whoever builds the tag gets the same one. Exit code 1, with
what to do, where the tree is not clean or the changelog has no section for the version. `make release` runs this.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

from documents import ROOT

DIST = ROOT / "dist"


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def notes(version: str) -> str:
    """The changelog's section of a version; before its release that is the unreleased one."""
    _, *sections = (ROOT / "CHANGELOG.md").read_text().split("\n## ")
    found = [each for each in sections if each.split(":")[0].split(" ")[0].strip() in (version, "Unreleased")]
    if not found:
        sys.exit(f"CHANGELOG.md has no section for {version}: add `## {version}`")
    return found[0].partition("\n")[2].strip() + "\n"


def built(folder: Path) -> dict[str, bytes]:
    """The files of one build out of the last commit."""
    source, out = folder / "source", folder / "out"
    source.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", "HEAD"))) as committed:
        if hasattr(tarfile, "data_filter"):  # Python 3.11.2 has none
            committed.extraction_filter = tarfile.data_filter
        committed.extractall(source)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct").decode().strip()}
    command = [sys.executable, "-m", "build", "--outdir", str(out), str(source)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def main() -> None:
    if changed := git("status", "--porcelain").decode():
        sys.exit(f"commit or put aside what is not committed:\n{changed}")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    said = notes(version)
    with tempfile.TemporaryDirectory() as folder:
        files, again = built(Path(folder) / "one"), built(Path(folder) / "two")
    if unlike := [name for name, data in files.items() if name.endswith(".whl") and data != again.get(name)]:
        sys.exit(f"two builds differ: {', '.join(unlike)}")
    DIST.mkdir(exist_ok=True)
    files["NOTES.md"] = said.encode()
    files["SHA256SUMS"] = "".join(
        f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items()
    ).encode()
    for name, data in files.items():
        (DIST / name).write_bytes(data)
        print(f"{len(data):>10,}  dist/{name}")
    print(f"Tag it: git tag -a v{version} -F dist/NOTES.md")


if __name__ == "__main__":
    main()
