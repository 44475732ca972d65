"""Backups and exports that only the holder of a key can read: files of the `age` format, by the extra `memctl[age]`.

A recipient (`age1…`) is public and seals; its identity, a file that `age-keygen` writes, opens. What is sealed lies on
the disk unsealed for as long as that takes, readable by its owner alone. Format: age-encryption.org/v1.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memctl.domain.support.errors import MemctlError
from memctl.infra.data_dir import open_private

if TYPE_CHECKING:
    from types import ModuleType

SEALED = ".age"
"""How the name of a sealed file ends."""


UNSEALED = "unsealed-"
"""How the names of folders begin that hold what is not sealed."""


class NoAge(MemctlError):
    """This memctl cannot read or write files of age."""

    hint = "install `memctl[age]`"


class NotOpened(MemctlError):
    """{file} is not opened by {key}: {why}"""

    exit_code = 2
    hint = "`--identity` names the file with the key that `age-keygen` wrote"
    file: str
    key: str
    why: str


class BadRecipient(MemctlError):
    """{given!r} is no recipient of age."""

    exit_code = 2
    hint = "it begins with `age1`; `age-keygen` shows it beside the key that it wrote"
    given: str


def seal(file: Path, sealed: Path, recipient: str) -> None:
    """Write a file as one that the recipient alone can read. Raises: NoAge, BadRecipient, OSError."""
    to = recipient_of(recipient)
    with open(file, "rb") as plain, open_private(sealed) as out:
        _age().encrypt_io(plain, out, [to])


def recipient_of(given: str) -> Any:
    """Whom a file is sealed for. Raises: NoAge, BadRecipient."""
    try:
        return _age().x25519.Recipient.from_str(given)
    except _age().RecipientError as why:
        raise BadRecipient(given=given) from why


@contextlib.contextmanager
def unsealed(file: Path, identity: Path | None, beside: Path) -> Iterator[Path]:
    """The file itself, or what a sealed one holds, in a file in that folder that goes again.

    Raises: NoAge, NotOpened, OSError.
    """
    if file.suffix != SEALED:
        yield file
        return
    keys = _identities(file, identity)
    with plain_in(beside) as folder:
        plain = folder / file.stem
        try:
            with open(file, "rb") as read, open_private(plain) as out:
                _age().decrypt_io(read, out, keys)
        except (OSError, _age().DecryptError) as why:  # age reports a body that was cut or changed as an OSError
            raise NotOpened(file=str(file), key=str(identity), why=str(why)) from why
        yield plain


@contextlib.contextmanager
def plain_in(data_dir: Path) -> Iterator[Path]:
    """A folder of ours alone for what is not sealed yet, or any more; it goes again. It is locked meanwhile: who is
    killed leaves one behind that nobody holds, which `clear` removes."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=UNSEALED, dir=data_dir))
        with contextlib.ExitStack() as ends:
            ends.callback(shutil.rmtree, folder, ignore_errors=True)
            if ends.enter_context(_held(folder)):
                yield folder
                return  # else it was taken for one that was left behind, before it was locked


def plain_folders(data_dir: Path) -> Iterator[tuple[Path, bool]]:
    """The folders that hold what is not sealed, each with whether some process is at work in it."""
    for folder in sorted(data_dir.glob(f"{UNSEALED}*")):
        with _held(folder) as ours:
            yield folder, not ours


def clear(data_dir: Path) -> list[Path]:
    """Remove the folders that were left behind, as by a crash. Returns those that are in use, which stay."""
    in_use = []
    for folder, held in plain_folders(data_dir):
        if held:
            in_use.append(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return in_use


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[bool]:
    """Lock a folder for as long as it is looked at or worked in; False where somebody else has it, or removed it."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder.exists() and os.fstat(handle).st_ino == folder.stat().st_ino
    except BlockingIOError:
        yield False
    finally:
        os.close(handle)


def _identities(file: Path, identity: Path | None) -> list[Any]:
    if identity is None:
        raise NotOpened(file=str(file), key="nothing", why="no key was named")
    lines = [line.strip() for line in identity.read_text("utf-8", "replace").splitlines()]
    try:
        return [_age().x25519.Identity.from_str(line) for line in lines if line.startswith("AGE-SECRET-KEY-")]
    except _age().IdentityError as why:
        raise NotOpened(file=str(file), key=str(identity), why=str(why)) from why


def _age() -> ModuleType:
    try:
        import pyrage
    except ImportError as why:
        raise NoAge from why
    module: ModuleType = pyrage
    return module
