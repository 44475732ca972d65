"""A fold that made no progress, tried again apart: in a process that the kernel ends after so much processor time.

What such a process folds is not kept. It is to know whether the fold ends, and else which event or source it is that
it does not end with.
"""

import math
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from memctl.domain.events.event import Event, Position
from memctl.domain.events.skipping import remaining
from memctl.infra.database import Connection
from memctl.infra.embedded.launch import die_with_parent
from memctl.infra.log.read import StreamKey, read_streams
from memctl.infra.readmodels import generations
from memctl.infra.readmodels.dead_letters import DeadLetter, Fault, LeftOut, NoProgress, Target, place_of, skips
from memctl.infra.readmodels.rows import RowKey
from memctl.projections import layers
from memctl.projections.stream_state import fold_stream
from memctl.workers.folding.poison import fault_of, first_fault, is_content_fault, keys_of, stream_fault
from memctl.workers.folding.row_inputs import RowInputs
from memctl.workers.folding.sources import Register, upstream_of
from memctl.workers.watchdog import frames

TRIAL_CPU_S = 20
"""Whole seconds of processor time that a fold may take apart: over twenty times what it may among others."""

SEARCH_CPU_S = 3
"""The same where it is known that it does not end, and which of its events is at fault is looked for."""

DEAREST_EVENT_S = 0.05
"""What each event of a stream adds to both: the dearest output of 16,000 characters that was found takes a fifth."""

FOLDED, RAISES, NO_MEMORY = 96, 97, 98
"""Exit codes of a trial; any other is the doing of what it tried."""

BLOCKED_S, ATTEMPTS = 10.0, 3
"""Seconds in which a trial that waits uses no processor time, for it to be held by a lock that another thread had when
it was forked (RE2 has some). Then it is forked again: so many times, for a fold that waits by itself never ends."""


MOST_MORE = 4 << 30
"""Bytes that a trial may take beside what it was forked with: what wants for more ends only itself."""


def stream_s(seconds: int, events: int) -> int:
    """Whole seconds of processor time for a stream of so many events."""
    return math.ceil(seconds + DEAREST_EVENT_S * events)


def tried(fold: Callable[[], object], cpu_s: int) -> None:
    """Fold in a process of its own. Raises: NoProgress where it had to be ended, was by what it folds, or wants for
    memory; else whatever `fold` raises."""
    for left in reversed(range(ATTEMPTS)):
        written, parent = frames.file(), os.getpid()
        try:
            child = os.fork()
            if child == 0:
                die_with_parent(signal.SIGKILL, parent)
                _alone(fold, cpu_s, written)
            blocked = not _ends(child)
            if blocked:
                frames.asked(child, signal.SIGUSR2, written)
                os.kill(child, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if code not in (FOLDED, RAISES) and not (blocked and left):
                raise NoProgress(cpu_s, _place(code, frames.read(written)))
        finally:
            os.close(written)
        if code >= 0:
            break
    if code == RAISES:
        fold()  # it ends, by raising


def _place(code: int, written: str) -> str:
    if code == NO_MEMORY:
        return written
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return frames.place(frames.of_thread(written, 0)) or how


def _ends(child: int) -> bool:
    """Wait until a process ends, which the kernel sees to. Whether it did before it only waited for `BLOCKED_S`; one
    that a busy machine gives no time, or no memory, does not wait, and may take as long as it takes."""
    ended = os.pidfd_open(child)
    try:
        used, since = "", time.monotonic()
        while not select.select([ended], [], [], 0.5)[0]:
            state, *figures = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            now = " ".join(figures[10:12])  # processor time as user and as system
            if now != used or state in "RD":
                used, since = now, time.monotonic()
            elif time.monotonic() - since > BLOCKED_S:
                return False
        return True
    finally:
        os.close(ended)


def _alone(fold: Callable[[], object], cpu_s: int, written: int) -> None:
    """Never returns: nothing of the process that it was forked from may be ended by it, connections least of all."""
    code = RAISES
    try:
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGXCPU):
            signal.signal(each, signal.SIG_DFL)
        os.nice(10)  # others go on meanwhile
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        frames.written_on(signal.SIGXCPU, written, ends=True)
        frames.written_on(signal.SIGUSR2, written)
        frames.written_at_a_crash(written)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + MOST_MORE, held + MOST_MORE))
        fold()
        code = FOLDED
    except MemoryError as problem:
        os.write(written, f"MemoryError at {place_of(problem)}".encode())
        code = NO_MEMORY
    finally:
        os._exit(code)


def never_ending(connection: Connection, letters: Sequence[DeadLetter]) -> dict[Target, Fault]:
    """Those of the letters whose folds do not end, with the event or source that is at fault.

    What raises, as it did before, is none of them. Takes no lease: others go on meanwhile.
    """
    found: dict[Target, Fault] = {}
    for letter in letters:
        if letter.fault.error != NoProgress.__name__:
            continue
        try:
            fault = _of_stream(connection, letter) if not letter.target.projection else _of_row(connection, letter)
        except Exception as problem:
            if not is_content_fault(problem):
                raise
            continue
        if fault is not None:
            found[letter.target] = fault
    return found


def _of_stream(connection: Connection, letter: DeadLetter) -> Fault | None:
    key: StreamKey = (letter.target.space_id, letter.target.key or "")
    shard = generations.shard_of(key[1], generations.shards(connection, letter.generation))
    found = generations.offsets(connection, letter.generation)
    upto = next(offset.reach for offset in found if offset.shard == shard).of(key[0])
    return _endless_in(key, remaining(read_streams(connection, [key], upto).get(key, [])))


def of_stream(letter: DeadLetter, known: Sequence[Event]) -> DeadLetter | None:
    """A stream's letter after one more trial of these events; None where their fold ends, or raises."""
    try:
        fault = _endless_in((letter.target.space_id, letter.target.key or ""), known)
    except Exception as problem:
        if not is_content_fault(problem):
            raise
        return None
    return None if fault is None else msgspec.structs.replace(letter, fault=fault, attempts=letter.attempts + 1)


def _endless_in(key: StreamKey, known: Sequence[Event]) -> Fault | None:
    try:
        tried(partial(fold_stream, key[1], known), stream_s(TRIAL_CPU_S, len(known)))
    except NoProgress:
        return endless_event(key, known)
    return None


def endless_event(key: StreamKey, events: Sequence[Event]) -> Fault:
    """The event of a stream with which its fold does not end, as is known. Raises: AssertionError where it does."""

    def trial(some: Sequence[Event]) -> None:
        tried(partial(fold_stream, key[1], some), stream_s(SEARCH_CPU_S, len(some)))

    return stream_fault(key, events, trial)


def _of_row(connection: Connection, letter: DeadLetter) -> Fault | None:
    register, target = Register(), letter.target
    p = register.by_name[target.projection]
    facts_of = generations.live(connection).stage1
    name = str(target.source) if target.key is None else target.key
    shard = layers.shard_of(target.projection, name, generations.shards(connection, letter.generation))
    found = generations.offsets(connection, letter.generation)
    upto = next(offset.reach for offset in found if offset.shard == shard).of(target.space_id)
    inputs = RowInputs(connection, letter.generation, facts_of, upto, register)
    if target.key is None:
        return _of_routing(connection, letter, upto)
    key: RowKey = (target.space_id, target.key)
    sources = inputs.of(p, {key}).get(key, [])

    def trial(count: int, cpu_s: int = 0) -> None:
        def fold() -> None:
            row = None
            for _, item in sources[:count]:
                row = p(row, item, key[1])
            if row is not None:
                p.check(row)

        tried(fold, cpu_s or SEARCH_CPU_S)

    try:
        trial(len(sources), TRIAL_CPU_S)
    except NoProgress:
        index, problem = first_fault(len(sources), trial)
        source, item = sources[index]
        upstream = upstream_of(register, p, source, item)
        return fault_of(target, source, upto, problem, upstream, len(sources) - index - 1)
    return None


def _of_routing(connection: Connection, letter: DeadLetter, upto: Position) -> Fault | None:
    register, fault, target = Register(), letter.fault, letter.target
    p, source = register.by_name[target.projection], (target.space_id, fault.source)
    facts_of = generations.live(connection).stage1
    inputs = RowInputs(connection, letter.generation, facts_of, upto, register)
    item = inputs.source(source, fault.upstream, fault.upstream_key)
    if item is None:
        return None
    try:
        tried(lambda: keys_of(p, source, item, LeftOut(skips(connection, upto))), TRIAL_CPU_S)
    except NoProgress as problem:
        upstream = None if fault.upstream is None else (fault.upstream, fault.upstream_key or "")
        return fault_of(target, source, upto, problem, upstream)
    return None
