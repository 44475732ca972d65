"""Plain questions, as somebody asks who was not there: is the answer shown, first, among three, and called likely?

The questions were written by reading sessions before memory was asked (`tests/data/plain_questions.json`, or the file
that MEMCTL_EVAL_QUESTIONS names). They are asked of the memctl that MEMCTL_DATA_DIR names, which has read the
sessions and embedded them. What is shown has to hold the answer: the right session with another passage does not
count as answered, and is counted by itself. MEMCTL_EVAL_VERBOSE=1 prints what was missed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from figures import Figure, Missing
from sessions import Data

from memctl.api.assist.guidance import answer
from memctl.api.reading.caller import OWNER
from memctl.api.reading.places import places_of
from memctl.api.reading.reader import Reader, Readers
from memctl.api.reading.views import Found
from memctl.api.search.engine import Engine, Question
from memctl.infra.embedders import embedders_of
from memctl.infra.settings import load_settings

QUESTIONS = Path(__file__).parents[2] / "data" / "plain_questions.json"
FIRST, LIKELY, ASKED, UNKNOWN = 0.8, 0.85, 0.85, 0.9
"""Targets, as shares of the questions."""

THREE, LOOKED_AT = 3, 5
"""Results among which an answer is in reach, and results that are asked for."""


def measure(data: Data) -> Iterator[Figure]:
    file = Path(os.environ.get("MEMCTL_EVAL_QUESTIONS") or QUESTIONS)
    settings = load_settings()
    if settings.database_url is None:
        raise Missing("no memctl that has read the sessions runs here (MEMCTL_DATA_DIR)")
    readers = Readers(settings.database_url, settings.space)
    engine = Engine(settings.qdrant_url, settings.qdrant_api_key, embedders_of(settings), settings.space)
    engine.warm_up(readers)
    try:
        yield from readers.read(lambda reader: list(_figures(reader, engine, json.loads(file.read_text()))), OWNER)
    finally:
        engine.close()
        readers.close()


def _figures(reader: Reader, engine: Engine, asked: dict[str, Any]) -> Iterator[Figure]:
    now, verbose = datetime.now(UTC), bool(os.environ.get("MEMCTL_EVAL_VERBOSE"))
    counts = dict.fromkeys(("first", "three", "likely", "session first", "session in three", "ask", "ask first"), 0)
    for each in asked["questions"]:
        places, text, holds = places_of(reader, each["project"]), each["question"], each["holds"]
        found = engine.search(reader, Question(query=text, places=places, now=now, limit=LOOKED_AT, asked=True)).results
        right = [_shows(result, holds) for result in found]
        of_session = [any(e.source.session in each["session"] for e in result.evidence) for result in found]
        said = answer(reader, engine, each["kind"], text, places, now)
        answers = [_shows(result, holds) for result in said.results]
        counts["first"] += any(right[:1])
        counts["three"] += any(right[:THREE])
        counts["likely"] += any(r and result.class_ != "none" for r, result in zip(right, found, strict=True))
        counts["session first"] += any(of_session[:1])
        counts["session in three"] += any(of_session[:THREE])
        counts["ask"] += any(answers)
        counts["ask first"] += any(answers[:1])
        if verbose:
            _print(text, found, right, of_session, answers)
    number = len(asked["questions"])
    for name, target in (
        ("first", FIRST), ("three", 0.95), ("likely", LIKELY), ("session first", None), ("session in three", None),
        ("ask", ASKED), ("ask first", None),
    ):  # fmt: skip
        yield Figure(f"answer shown: {name}", counts[name] / number, number, target)
    silent = 0
    for each in asked["unknown"]:
        places = places_of(reader, each["project"])
        found = engine.search(reader, Question(query=each["question"], places=places, now=now, asked=True)).results
        likely = [result for result in found if result.class_ != "none"]
        silent += not likely
        if verbose and likely:
            print(f"? {each['question']}\n    {likely[0].score} {likely[0].kind} {likely[0].passage[:200]}")
    yield Figure("never happened: nothing known", silent / len(asked["unknown"]), len(asked["unknown"]), UNKNOWN)


def _shows(result: Found, holds: Sequence[Sequence[str]]) -> bool:
    """Whether what a person is shown of a result holds the answer."""
    shown = " ".join(f"{result.title}\n{result.passage or result.text}".lower().replace("`", "").split())
    return all(any(one.lower() in shown for one in choices) for choices in holds)


def _print(text: str, found: Sequence[Found], right: list[bool], of_session: list[bool], answers: list[bool]) -> None:
    ok = "" if any(right[:1]) else "MISSED "
    print(f"{ok}{text}  (ask: {answers})")
    for result, shows, same in zip(found, right, of_session, strict=True):
        mark = ("+" if shows else "-") + ("s" if same else " ")
        passage = " ".join((result.passage or result.text).split())
        print(f"  {mark} {result.score:.2f} {result.class_:9} {result.kind:8} {result.title[:60]} || {passage[:320]}")
