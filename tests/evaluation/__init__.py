"""Evaluation: questions whose answers are known, asked of memctl's own pipeline."""

from __future__ import annotations

from datetime import datetime

import msgspec

from memctl.domain.support.errors import MemctlError


class UnknownDataset(MemctlError):
    """{path} is no file of questions that memctl knows."""

    exit_code = 2
    hint = "LoCoMo and LongMemEval files can be read."
    path: str


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to be found. `at` in microseconds (0: not known); `before` is the passage before it in its session.

    `scope` is what a question is asked of: questions see the passages of their own scope only.
    """

    id: str
    text: str
    scope: str = ""
    session: str = ""
    at: int = 0
    before: str = ""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One question. `gold` are the passages that answer it, none where nothing does; `kind` is the data's own name for
    what sort of question it is."""

    id: str
    query: str
    gold: frozenset[str]
    scope: str = ""
    now: datetime | None = None
    kind: str = ""


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """Passages and questions."""

    name: str
    passages: list[Passage]
    questions: list[Asked]
