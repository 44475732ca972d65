"""Logs tell what went wrong and where, and not a word of what was said."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.support.errors import MemctlError
from memctl.infra import logs

SAID = "the customer's unannounced merger"


class Broken(MemctlError):
    """The shard is broken."""


@pytest.fixture
def root() -> Iterator[None]:
    """The root logger as it was, afterwards."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = before


def written(form: logs.Form, *arguments: object, exc_info: BaseException | None = None) -> str:
    out = io.StringIO()
    logs.set_up("info", form, out)
    logging.getLogger("memctl.test").error(*arguments, exc_info=exc_info)  # type: ignore[arg-type]
    return out.getvalue()


def raised() -> ValueError:
    """An exception that quotes what was said, and was caused by one that does too."""
    try:
        try:
            int(SAID)
        except ValueError as why:
            raise ValueError(f"cannot fold {SAID!r}") from why
    except ValueError as problem:
        return problem


both_forms = pytest.mark.parametrize("form", ["text", "json"])


@both_forms
@pytest.mark.usefixtures("root")
def test_what_an_exception_quotes_is_not_written(form: logs.Form) -> None:
    for given_to_log in (("it failed",), ("it failed: %s", raised()), (raised(),)):
        told = written(form, *given_to_log, exc_info=raised())
        assert SAID not in told
        assert "ValueError" in told
        assert "test_logs.py" in told


@both_forms
@pytest.mark.usefixtures("root")
def test_memctls_own_words_and_the_systems_are_written(form: logs.Form) -> None:
    assert "The shard is broken" in written(form, "stopped: %s", Broken())
    assert "No space left on device" in written(form, "stopped: %s", OSError(28, "No space left on device", SAID))
    assert "22P05" in written(form, "stopped: %s", psycopg.errors.UntranslatableCharacter(SAID))


@pytest.mark.usefixtures("root")
def test_json_is_one_object_a_line_with_the_causes() -> None:
    told = written("json", "delivery %s\nis odd: %d", "비밀", 3, exc_info=raised())
    (line,) = told.splitlines()
    entry = json.loads(line)
    assert entry["message"] == "delivery 비밀\nis odd: 3"
    assert (entry["level"], entry["logger"]) == ("error", "memctl.test")
    assert entry["time"].endswith("Z")
    assert [each["message"] for each in entry["error"]] == ["ValueError", "ValueError"]
    assert all("test_logs.py" in each["frames"][-1] for each in entry["error"])


@pytest.mark.usefixtures("root")
def test_an_exception_that_causes_itself_ends() -> None:
    problem = ValueError("x")
    problem.__cause__ = problem
    assert written("text", "odd", exc_info=problem).count("ValueError") == 1


@given(st.text(max_size=40), st.integers())
def test_a_line_of_json_is_read_back_as_it_was(text: str, number: int) -> None:
    record = logging.LogRecord("memctl.x", logging.INFO, "f", 1, "%s and %d", (text, number), None)
    assert json.loads(logs.Json().format(record))["message"] == f"{text} and {number}"


@both_forms
@pytest.mark.usefixtures("root")
def test_the_latest_errors_are_found_again_in_what_was_written(form: logs.Form, tmp_path: Path) -> None:
    with open(tmp_path / "worker.log", "w", encoding="utf-8") as out:
        logs.set_up("info", form, out)
        log = logging.getLogger("memctl.worker")
        log.warning("only a warning")
        for number in range(5):
            log.error("it failed, %d", number, exc_info=raised())
    (tmp_path / "door.log").write_bytes(b"\xff torn {\n")
    now = datetime.now(UTC)
    found = logs.latest_errors(tmp_path, now - timedelta(minutes=1), 3)
    assert [program for _, program, _ in found] == ["worker"] * 3
    assert {what for _, _, what in found} <= {f"it failed, {number}" for number in range(5)}
    assert logs.latest_errors(tmp_path, now + timedelta(minutes=1), 3) == []
    assert logs.latest_errors(tmp_path / "nowhere", now, 3) == []
