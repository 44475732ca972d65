"""What memctl's processes write to their logs: a line for people, or a JSON object a line for collectors.

Neither holds what was said. An exception that is not memctl's own may quote what was being handled (a parser the
text, a server the row), so of such only the class and the places in the code are written, never the words.
"""

import json
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TextIO

from memctl.domain.support import patterns
from memctl.domain.support.errors import MemctlError
from memctl.infra.files import opened

Form = Literal["text", "json"]

FRAMES = 12
"""The innermost ones of a traceback."""

_LOUD = ("httpx", "httpcore", "uvicorn", "alembic.runtime.plugins")
"""Libraries that log each request, or each part of theirs."""


def set_up(level: str, form: Form, to: TextIO | None = None) -> None:
    """Write all logs of this process, to standard error unless `to` is given."""
    handler = logging.StreamHandler(to or sys.stderr)
    handler.setFormatter(Json() if form == "json" else Lines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _LOUD:
        logging.getLogger(name).setLevel(logging.WARNING)


def message_of(problem: BaseException) -> str:
    """What may be written of an exception: memctl's own words, else its class and what the system calls it."""
    if isinstance(problem, MemctlError):
        return str(problem)
    if isinstance(problem, OSError) and problem.strerror:
        return f"{type(problem).__name__}: {problem.strerror}"
    state = getattr(problem, "sqlstate", None)
    return f"{type(problem).__name__} ({state})" if state else type(problem).__name__


class Lines(logging.Formatter):
    """`2026-03-02 09:00:01,123 memctl.door WARNING nothing can be kept for now: …`"""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).isoformat(" ", "milliseconds").replace(".", ",")
        head = f"{at} {record.name} {record.levelname} {_message(record)}"
        return "\n  ".join([head, *(line for problem in _raised(record) for line in _lines_of(problem))])


class Json(logging.Formatter):
    """`{"time": "2026-03-02T09:00:01.123Z", "level": "warning", "logger": "memctl.door", "message": …, "pid": …}`

    Where an exception was logged, also `error`: from the outermost to what caused it, each with `message` and `frames`.
    """

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            "pid": record.process,
        }
        if problems := [{"message": message_of(each), "frames": _frames(each)} for each in _raised(record)]:
            entry["error"] = problems
        return json.dumps(entry, ensure_ascii=False)


def _message(record: logging.LogRecord) -> str:
    """The record's words, with exceptions among them as `message_of` shows them."""
    if isinstance(record.msg, BaseException):
        return message_of(record.msg)
    message, given = str(record.msg), record.args
    if not given:
        return message
    if isinstance(given, Mapping):
        return message % {name: _shown(value) for name, value in given.items()}
    return message % tuple(map(_shown, given))


def _shown(value: object) -> object:
    return message_of(value) if isinstance(value, BaseException) else value


def _raised(record: logging.LogRecord) -> Iterator[BaseException]:
    """The exception that was logged, and what led to it."""
    problem = record.exc_info[1] if record.exc_info else None
    seen: set[int] = set()
    while problem is not None and id(problem) not in seen:
        seen.add(id(problem))
        yield problem
        problem = problem.__cause__ or (None if problem.__suppress_context__ else problem.__context__)


def _lines_of(problem: BaseException) -> Iterator[str]:
    yield message_of(problem)
    yield from (f"  at {frame}" for frame in _frames(problem))


def _frames(problem: BaseException) -> list[str]:
    """Where it was raised, the outermost of the last frames first."""
    stack = traceback.extract_tb(problem.__traceback__)[-FRAMES:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in stack]


def latest_errors(folder: Path, since: datetime, most: int) -> list[tuple[datetime, str, str]]:
    """The latest errors in the logs of a folder since a moment, newest first: when, of which program, what."""
    found = []
    for path in folder.glob("*.log"):
        for line in _last_lines(path):
            if (error := _error_in(line)) and error[0] >= since:
                found.append((error[0], path.stem, error[1]))
    return sorted(found, reverse=True)[:most]


_LINE = patterns.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} \S+ (?:ERROR|CRITICAL) (.*)")
_TAIL = 64 << 10
"""Bytes of a log that are looked through."""


def _last_lines(path: Path) -> list[str]:
    try:
        with opened(path) as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            return file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def _error_in(line: str) -> tuple[datetime, str] | None:
    if found := _LINE.match(line):
        return datetime.fromisoformat(found[1]).astimezone(), found[2]
    if line.startswith("{") and ('"error"' in line or '"critical"' in line):
        try:
            entry = json.loads(line)
            if entry["level"] in ("error", "critical"):
                return datetime.fromisoformat(entry["time"]), entry["message"]
        except (ValueError, KeyError, TypeError):
            return None
    return None
