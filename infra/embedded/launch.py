"""Become another program that ends when its parent ends, and that may not run as root.

`python -m memctl.infra.embedded.launch [--record FILE] [--leads] -- PROGRAM ARG…`

The process stays the same one through it all, so what the parent waits for and what the record names is the program.
Imports the standard library only: it runs before each program of the embedded default.
"""

import argparse
import contextlib
import ctypes
import os
import pwd
import signal
import sys
from pathlib import Path
from typing import NoReturn

from memctl.infra.process import Process

PARENT = "MEMCTL_PARENT_PID"
"""Environment variable in which a parent names itself to its children. Without it, a child could not know that its
parent died before the child asked for a signal."""

_CLONE_NEWUSER = 0x10000000
_PR_SET_PDEATHSIG, _PR_SET_KEEPCAPS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 1, 8, 47, 2
_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP = 28, 1 << 2
_CAP_DAC_OVERRIDE = 1
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def become(argv: list[str], *, record: Path | None = None, dies: signal.Signals | None = signal.SIGTERM) -> NoReturn:
    """Replace this process by `argv`, which gets the signal `dies` when its parent ends (None: it outlives it)."""
    if record is not None:
        this = Process.of(os.getpid())
        assert this is not None
        this.record(record)
    if dies is not None:
        die_with_parent(dies, int(os.environ.pop(PARENT, 0)) or os.getppid())
    os.execvp(argv[0], argv)  # noqa: S606 - no shell is meant


def die_with_parent(by: signal.Signals, parent: int) -> None:
    """Get the signal `by` when `parent` ends. The kernel forgets this when the user changes: call it last."""
    _prctl(_PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:  # it ended before the kernel knew that we want the signal
        sys.exit(f"the parent process {parent} is gone")


def needs_other_user() -> bool:
    """Whether Postgres would refuse this user: it refuses root, and a user without an entry in the user database."""
    return os.geteuid() == 0 or not _known(os.geteuid())


def leave_root(owner: int) -> None:
    """Stop being root in the eyes of the program that follows, keeping root's access to files.

    `owner`: uid that owns the program's files. Where it is ours, a user namespace shows us as an ordinary user while
    to the files we stay who we are. Where it is another one's (see `owner_of_cluster`), become that user and keep
    the right to pass through folders that are closed to it. Raises OSError where the kernel allows neither.
    """
    if owner == os.geteuid():
        _enter_user_namespace()
    else:
        _become_user(owner)


def owner_of_cluster() -> int:
    """The uid that must own the files of a program that may not be root. Raises OSError where no way is open.

    Ours, where the kernel grants user namespaces (tried in a child); in containers that refuse them, an ordinary user.
    """
    child = os.fork()
    if child == 0:
        try:
            _enter_user_namespace()
        except BaseException:
            os._exit(1)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        return os.geteuid()
    if os.geteuid() == 0:
        return _ordinary_user()
    raise PermissionError("no user namespace is granted, and this user has no entry in the user database")


def _enter_user_namespace() -> None:
    outer_user, outer_group = os.geteuid(), os.getegid()
    user = outer_user if outer_user != 0 and _known(outer_user) else _ordinary_user()
    _call("unshare", _CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {outer_user} 1")
    Path("/proc/self/gid_map").write_text(f"{outer_group or user} {outer_group} 1")


def _become_user(user: int) -> None:
    with contextlib.suppress(OSError):
        # Without it access(2), by which initdb looks for its neighbours, ignores the right we keep. It takes another
        # right that some containers withhold; then only programs in closed folders are out of reach.
        _prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP)
    _prctl(_PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    group = pwd.getpwuid(user).pw_gid
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)
    bit = 1 << _CAP_DAC_OVERRIDE
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)  # effective, permitted, inheritable; then the upper halves
    _call("capset", header, sets)
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_OVERRIDE)


def _ordinary_user() -> int:
    """An unprivileged uid that the user database knows: initdb looks its own user up."""
    entries = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall() if entry.pw_uid != 0}
    for name in ("nobody", "postgres", "daemon"):
        if name in entries:
            return entries[name]
    if not entries:
        raise PermissionError("the user database knows no user but root")
    return min(entries.values())


def _known(user: int) -> bool:
    try:
        pwd.getpwuid(user)
    except KeyError:
        return False
    return True


def _prctl(option: int, second: int, third: int = 0) -> None:
    _call("prctl", option, *(ctypes.c_ulong(value) for value in (second, third, 0, 0)))


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def lead(argv: list[str], record: Path) -> NoReturn:
    """Become `argv` in the background, outliving whoever started us; children learn its pid from PARENT."""
    if os.fork() != 0:
        os._exit(0)
    os.setsid()
    os.umask(0o077)
    os.environ[PARENT] = str(os.getpid())
    become(argv, record=record, dies=None)


def main(arguments: list[str]) -> NoReturn:
    cut = arguments.index("--")
    options = argparse.ArgumentParser(prog="launch")
    options.add_argument("--record", type=Path, help="file that shall name the process")
    options.add_argument("--leads", action="store_true", help="go to the background and outlive the parent")
    chosen = options.parse_args(arguments[:cut])
    if chosen.leads and chosen.record is None:
        options.error("--leads needs --record")
    program = arguments[cut + 1 :]
    if chosen.leads:
        lead(program, chosen.record)
    become(program, record=chosen.record)


if __name__ == "__main__":
    main(sys.argv[1:])
