"""A question that never ends: who asked is answered in time, others are not held up, and its work is ended."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from apis import Api, problem_of, serving
from asked import Remembered, remembered
from dripping import dripping
from waiting import until

from memctl.api.server.serve import CONNECTIONS

DEADLINE_S = 2.0

LOOPS = f"""
import re, sys, time
from memctl.api.reading import deadline
from memctl.api.server import deadlines
from memctl.api.search.engine import Engine
deadline.QUESTION_S, deadlines.UNENDED_S, deadlines.SILENT_S = {DEADLINE_S}, 2.0, 4.0
sys.setswitchinterval(0.0005)  # else seven that loop hold the interpreter for 35 ms before another has its turn
found = Engine.search
def search(self, reader, question, *more, **others):
    while "for ever" in question.query:
        pass
    while "never mind what" in question.query:
        try:
            time.sleep(0.01)
        except BaseException:
            pass
    if "asks postgres" in question.query:
        reader.connection.execute("SELECT pg_sleep(60)")
    if "nobody else" in question.query:
        re.match("(a|a)*$", "a" * 64 + "b")  # holds the interpreter
    return found(self, reader, question, *more, **others)
Engine.search = search
"""


@pytest.fixture(scope="module")
def memory(postgres_server: str, migrated_template: str, vectors: tuple[str, str]) -> Iterator[Remembered]:
    with remembered(postgres_server, migrated_template, vectors) as found:
        yield found


@pytest.fixture(scope="module")
def whole(memory: Remembered, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with serving(tmp_path_factory.mktemp("whole"), memory) as found:
        until(lambda: not problems_of(found), "all that a search goes by")
        yield found


def problems_of(api: Api) -> list[str]:
    """What searches do without: at first, the embedder is being loaded."""
    found: list[str] = json.loads(api.ask("/v1/search?q=timeout")[2])["degraded"]
    return found


@pytest.fixture
def api(memory: Remembered, tmp_path: Path) -> Iterator[Api]:
    with serving(tmp_path, memory, embedder="none", first=LOOPS) as found:
        yield found


def test_a_vector_store_that_drips_leaves_the_answer_to_the_words(memory: Remembered, tmp_path: Path) -> None:
    with dripping() as url, serving(tmp_path, replace(memory, qdrant_url=url), embedder="none") as api:
        until(lambda: not any("loaded" in each for each in problems_of(api)), "the vector store's client")
        status, _, body = api.ask("/v1/search?q=simplified+the+coastline")
    answer = json.loads(body)
    assert status == 200
    assert answer["results"]
    assert any("vector store" in each for each in answer["degraded"])


def test_a_question_without_an_end_is_refused_in_time_and_holds_up_no_other(api: Api) -> None:
    for _ in range(3):  # each of them would keep its connection and its thread for good
        with ThreadPoolExecutor(CONNECTIONS) as asking:
            began = time.monotonic()
            endless = [asking.submit(api.ask, "/v1/search?q=for+ever") for _ in range(CONNECTIONS - 1)]
            others = []
            while not all(each.done() for each in endless):
                asked = time.monotonic()
                assert api.ask("/v1/search?q=timeout")[0] == 200
                others.append(time.monotonic() - asked)
            assert {problem_of(each.result())["detail"] for each in endless} == {f"no answer within {DEADLINE_S:.0f} s"}
            assert time.monotonic() - began < 3 * DEADLINE_S
            assert max(others) < DEADLINE_S
    until(lambda: api.ask("/v1/stats")[0] == 200, "a free connection")
    assert api.process.poll() is None


def test_a_statement_that_never_ends_is_ended_with_its_question(api: Api) -> None:
    with ThreadPoolExecutor(CONNECTIONS) as asking:
        slow = [asking.submit(api.ask, "/v1/search?q=asks+postgres") for _ in range(CONNECTIONS)]
        assert {each.result()[0] for each in slow} == {503}
        # Not before 15 s were over, had the statements been left alone.
        began = time.monotonic()
        until(lambda: api.ask("/v1/search?q=timeout")[0] == 200, "a free connection")
        assert time.monotonic() - began < 3 * DEADLINE_S
    assert api.process.poll() is None


def test_what_waits_for_a_thread_or_takes_long_to_write_ends_no_process(memory: Remembered, tmp_path: Path) -> None:
    slow = """
import time
from memctl.api.http import forget
from memctl.api.server import deadlines
deadlines.UNENDED_S = 1.0
preview = forget.preview_of
forget.preview_of = lambda *given: time.sleep(4.0) or preview(*given)
"""
    headers = {"Content-Type": "application/json"}
    wanted = json.dumps({"match": "timeout"}).encode()
    with serving(tmp_path, memory, embedder="none", first=LOOPS + slow) as api, ThreadPoolExecutor(60) as asking:
        forgets = [
            asking.submit(api.ask, "/v1/forget/preview", method="POST", body=wanted, headers=headers) for _ in range(4)
        ]
        while not all(each.done() for each in forgets):
            assert api.ask("/v1/search?q=timeout")[0] == 200
        assert {each.result()[0] for each in forgets} <= {200, 404}
        assert api.process.poll() is None


@pytest.mark.parametrize(
    ("asked", "frame"), [("never mind what", "in search"), ("nobody else", "in search")], ids=["thread", "interpreter"]
)
def test_what_cannot_be_ended_ends_the_process_with_its_frames(api: Api, asked: str, frame: str) -> None:
    with ThreadPoolExecutor(1) as asking:
        answer = asking.submit(api.ask, f"/v1/search?q={asked.replace(' ', '+')}")
        assert api.process.wait(30) == 1
        assert frame in api.log.read_text()
        if asked == "never mind what":
            assert problem_of(answer.result())["status"] == 503
        else:
            with pytest.raises(OSError, match="Remote end closed"):
                answer.result()


BUILT = "        cythoning pkg/a.pyx to pkg/a.c\n"
NINE_LINES = f"          Traceback (most recent call last):\n{BUILT * 7}        text without a colon\n"
"""What once held a search for as long as anybody waited."""

ODD = {
    "nine lines": NINE_LINES,
    "nine lines, often": NINE_LINES * 600,
    "slashes": "/a" * 100_000,
    "combining marks": "a" + "\u0301" * 100_000,
    "names": "a_" * 100_000,
    "brackets": "[(" * 100_000,
    "tracebacks": 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n' * 3_000,
    "blanks": " " * 199_999 + "a",
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize(("path", "field"), [("/v1/search", "q"), ("/v1/bugs", "text")])
def test_odd_texts_are_searched_for_within_a_second(whole: Api, name: str, path: str, field: str) -> None:
    body = json.dumps({field: ODD[name][:200_000]}, ensure_ascii=False).encode()

    def ask() -> None:
        answer = whole.ask(path, method="POST", body=body, headers={"Content-Type": "application/json"})
        assert answer[0] == 200

    until(lambda: _processor_s(whole.process.pid, ask) <= 1.0, "an answer for a second's work")


def _processor_s(pid: int, act: Callable[[], object]) -> float:
    """Seconds of processor time that a process takes meanwhile. A busy machine takes longer by the clock alone."""

    def so_far() -> int:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()
        return int(fields[11]) + int(fields[12])

    before = so_far()
    act()
    return (so_far() - before) / os.sysconf("SC_CLK_TCK")
