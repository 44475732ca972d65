"""Plain questions, as somebody asks who was not there: is the answer shown, first, among three, and called likely?

The questions were written by reading sessions before memory was asked (`tests/data/plain_questions.json`, or the file
that MEMCTL_EVAL_QUESTIONS names). They are asked of the memctl that MEMCTL_DATA_DIR names, which has read the
sessions and embedded them. What is shown has to hold the answer: the right session with another passage does not
count as answered, and is counted by itself. What a question asks in other words is asked too, and counted apart.
MEMCTL_EVAL_VERBOSE=1 prints what was missed. MEMCTL_EVAL_LABELS names a file to write what `make calibrate` fits the
label on: the odds of what each question finds, in its project and in others, with whether it answers.
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
from memctl.api.reading.places import Places, projects_of
from memctl.api.reading.reader import Reader, Readers
from memctl.api.reading.views import Found
from memctl.api.search.engine import Engine, Question
from memctl.infra.embedders import embedders_of
from memctl.infra.settings import load_settings

QUESTIONS = Path(__file__).parents[2] / "data" / "plain_questions.json"
FIRST, LIKELY, ASKED, UNKNOWN = 0.8, 0.85, 0.85, 0.9
"""Targets, as shares of the questions."""

VERBOSE, LABELS = bool(os.environ.get("MEMCTL_EVAL_VERBOSE")), os.environ.get("MEMCTL_EVAL_LABELS", "")

THREE, LOOKED_AT = 3, 5
"""Results among which an answer is in reach, and results that are asked for."""


def measure(data: Data) -> Iterator[Figure]:
    file = Path(os.environ.get("MEMCTL_EVAL_QUESTIONS") or QUESTIONS)
    settings = load_settings()
    if settings.database_url is None:
        raise Missing("no memctl that has read the sessions runs here (MEMCTL_DATA_DIR)")
    readers = Readers(settings.database_url, settings.space)
    engine = Engine(settings.qdrant_url, settings.qdrant_api_key, embedders_of(settings))
    engine.warm_up(readers)
    try:
        yield from readers.read(lambda reader: list(_figures(reader, engine, json.loads(file.read_text()))), OWNER)
    finally:
        engine.close()
        readers.close()


def _figures(reader: Reader, engine: Engine, asked: dict[str, Any]) -> Iterator[Figure]:
    now, questions = datetime.now(UTC), asked["questions"]
    yield from _answered(reader, engine, questions, now, "answer shown")
    others = [each | {"question": text} for each in questions for text in each.get("others", ())]
    if others:
        yield from _answered(reader, engine, others, now, "in other words")
    silent = 0
    for each in asked["unknown"]:
        likely = [
            result for result in _found(reader, engine, each["project"], each["question"], now) if _likely(result)
        ]
        silent += not likely
        if likely and VERBOSE:
            print(f"? {each['question']}\n    {likely[0].score} {likely[0].kind} {likely[0].passage[:200]}")
    yield Figure("never happened: nothing known", silent / len(asked["unknown"]), len(asked["unknown"]), UNKNOWN)
    elsewhere = [
        (project, each["question"])
        for each in (*questions, *others)
        for project in sorted({other["project"] for other in questions} - {each["project"]})
    ]
    silent = sum(not any(map(_likely, _found(reader, engine, *each, now))) for each in elsewhere)
    yield Figure("asked of another project: nothing known", silent / len(elsewhere), len(elsewhere), UNKNOWN)
    if LABELS:
        _label(reader, engine, [*questions, *others], asked["unknown"], elsewhere, now)


def _answered(
    reader: Reader, engine: Engine, questions: Sequence[dict[str, Any]], now: datetime, name: str
) -> Iterator[Figure]:
    counts = dict.fromkeys(("first", "three", "likely", "session first", "session in three", "ask", "ask first"), 0)
    for each in questions:
        text, holds = each["question"], each["holds"]
        found = _found(reader, engine, each["project"], text, now)
        right = [_shows(result, holds) for result in found]
        of_session = [any(e.source.session in each["session"] for e in result.evidence) for result in found]
        said = answer(reader, engine, each["kind"], text, _places(reader, each["project"]), now)
        answers = [_shows(result, holds) for result in said.results]
        counts["first"] += any(right[:1])
        counts["three"] += any(right[:THREE])
        counts["likely"] += any(r and _likely(result) for r, result in zip(right, found, strict=True))
        counts["session first"] += any(of_session[:1])
        counts["session in three"] += any(of_session[:THREE])
        counts["ask"] += any(answers)
        counts["ask first"] += any(answers[:1])
        if VERBOSE:
            _print(text, found, right, of_session, answers)
    for figure, target in (
        ("first", FIRST), ("three", 0.95), ("likely", LIKELY), ("session first", None), ("session in three", None),
        ("ask", ASKED), ("ask first", None),
    ):  # fmt: skip
        yield Figure(f"{name}: {figure}", counts[figure] / len(questions), len(questions), target)


def _places(reader: Reader, project: str) -> Places:
    """All checkouts of a project: those of several developers, which share no git, are projects of their own."""
    found = projects_of(reader).named(project)
    return Places(project, "asked", tuple(at for each in found for at in each.locations))


def _found(reader: Reader, engine: Engine, project: str, text: str, now: datetime) -> list[Found]:
    places = _places(reader, project)
    asked = Question(query=text, places=places, now=now, limit=LOOKED_AT, on_request=True, explain=True)
    return engine.search(reader, asked).results


def _likely(result: Found) -> bool:
    return result.class_ != "none"


def _label(
    reader: Reader, engine: Engine, questions: Sequence[dict[str, Any]], unknown: Sequence[dict[str, Any]],
    elsewhere: Sequence[tuple[str, str]], now: datetime,
) -> None:  # fmt: skip
    asked = [(each["project"], each["question"], each["holds"]) for each in questions]
    asked += [(each["project"], each["question"], None) for each in unknown]
    asked += [(project, text, None) for project, text in elsewhere]
    labelled = []
    for project, text, holds in asked:
        found = _found(reader, engine, project, text, now)
        odds = [round(result.explain["parts"]["odds"], 3) for result in found if "odds" in result.explain["parts"]]
        answers = [holds is not None and _shows(result, holds) for result in found][: len(odds)]
        labelled.append({"project": project, "known": holds is not None, "odds": odds, "answers": answers})
    lines = ",\n".join(json.dumps(each) for each in labelled)
    Path(LABELS).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


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
