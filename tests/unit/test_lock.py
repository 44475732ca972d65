"""requirements.lock names a version for everything that pyproject.toml asks for, with hashes."""

from __future__ import annotations

import re
import tomllib

from documents import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PINNED = {
    canonicalize_name(name): version for name, version in re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", LOCK, re.MULTILINE)
}


def test_every_dependency_is_pinned_to_a_version_that_is_allowed() -> None:
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    for each in map(Requirement, asked):
        version = PINNED.get(canonicalize_name(each.name))
        assert version is not None, f"{each.name} is not pinned: run `make lock`"
        assert each.specifier.contains(version), f"{each} does not allow {version}: run `make lock`"


def test_every_pin_has_hashes_and_no_address() -> None:
    pins = re.split(r"^(?=\S+==)", LOCK, flags=re.MULTILINE)[1:]
    assert len(pins) >= len(PINNED) > 40
    for pin in pins:
        assert "--hash=sha256:" in pin
    assert "://" not in LOCK
