"""Files of questions: LoCoMo and LongMemEval as they are published. The content of a file shows which of them it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from evaluation import Asked, Dataset, Passage, UnknownDataset
from memctl.domain.support import patterns

_MINUTE_US = 60_000_000


_SESSION = patterns.compile(r"session_(\d+)")
_TURN = patterns.compile(r"D\d+:\d+")


def load(path: Path) -> list[Dataset]:
    """The data sets of a file, of a folder's files otherwise. Raises: UnknownDataset, OSError."""
    if path.is_dir():
        return [dataset for file in sorted(path.glob("*.json")) for dataset in load(file)]
    content = path.read_bytes()
    try:
        return [_of(path.stem, orjson.loads(content))]
    except (ValueError, KeyError, TypeError, AttributeError) as why:
        raise UnknownDataset(path=str(path)) from why


def _of(name: str, content: Any) -> Dataset:
    if isinstance(content, list) and content and "conversation" in content[0]:
        return _locomo(name, content)
    if isinstance(content, list) and content and "haystack_sessions" in content[0]:
        return _longmemeval(name, content)
    raise ValueError("neither LoCoMo nor LongMemEval")


def _locomo(name: str, samples: list[dict[str, Any]]) -> Dataset:
    """LoCoMo (Maharana et al., 2024): turns of two people's sessions; evidence names turns. Category 5 asks for what
    was not said, so it has no answer. No question has a date: all are asked after everything was said."""
    passages: list[Passage] = []
    questions: list[Asked] = []
    for number, sample in enumerate(samples):
        scope, talk = str(sample.get("sample_id", number)), sample["conversation"]
        before = ""
        last = 0
        numbers = sorted(int(m[1]) for key in talk if (m := _SESSION.fullmatch(key)))
        for session in numbers:
            at = micros_of(talk.get(f"session_{session}_date_time", "")) or last
            before = ""
            for turn in talk[f"session_{session}"]:
                id = f"{scope}/{turn['dia_id']}"
                picture = turn.get("blip_caption") or ""
                said = f"{turn['speaker']}: {turn.get('text') or ''}" + (f" [shows {picture}]" if picture else "")
                passages.append(
                    Passage(id=id, text=said, scope=scope, session=f"{scope}/{session}", at=at, before=before)
                )
                before, at = id, at + _MINUTE_US
            last = at
        known = {each.id for each in passages}
        for place, asked in enumerate(sample["qa"]):
            named = _TURN.findall(" ".join(map(str, asked.get("evidence") or ())))
            gold = frozenset(f"{scope}/{id}" for id in named) & known
            adversarial = str(asked.get("category")) == "5"
            if gold or adversarial:
                questions.append(
                    Asked(
                        id=f"{scope}/{place}",
                        query=asked["question"],
                        gold=frozenset() if adversarial else gold,
                        scope=scope,
                        kind=f"category {asked.get('category')}",
                    )
                )
    return Dataset(name=name, passages=passages, questions=questions)


def _longmemeval(name: str, samples: list[dict[str, Any]]) -> Dataset:
    """LongMemEval (Wu et al., 2024): each question has a haystack of its own; turns marked `has_answer` answer it."""
    passages: list[Passage] = []
    questions: list[Asked] = []
    for sample in samples:
        scope = sample["question_id"]
        gold: set[str] = set()
        ids = sample.get("haystack_session_ids") or range(len(sample["haystack_sessions"]))
        dates = sample.get("haystack_dates") or [""] * len(sample["haystack_sessions"])
        for session, date, turns in zip(ids, dates, sample["haystack_sessions"], strict=True):
            at, before = micros_of(date), ""
            for place, turn in enumerate(turns):
                id = f"{scope}/{session}/{place}"
                if turn.get("has_answer"):
                    gold.add(id)
                passages.append(
                    Passage(
                        id=id, text=turn["content"], scope=scope, session=f"{scope}/{session}",
                        at=at + place * _MINUTE_US, before=before,
                    )
                )  # fmt: skip
                before = id
        abstains = scope.endswith("_abs")
        if gold or abstains:
            questions.append(
                Asked(
                    id=scope, query=sample["question"], gold=frozenset() if abstains else frozenset(gold), scope=scope,
                    now=date_of(sample.get("question_date")), kind=sample.get("question_type") or "",
                )
            )  # fmt: skip
    return Dataset(name=name, passages=passages, questions=questions)


_FORMATS = ("%Y/%m/%d (%a) %H:%M", "%Y/%m/%d", "%I:%M %p on %d %B, %Y", "%Y-%m-%d")


def date_of(said: str | None) -> datetime | None:
    """A moment in a form that these files write it in; None where it is in none of them."""
    for form in _FORMATS:
        try:
            return datetime.strptime(said or "", form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def micros_of(said: str) -> int:
    """Such a moment in microseconds; 0 where it is in none of these forms."""
    at = date_of(said)
    return (at - _EPOCH) // timedelta(microseconds=1) if at else 0


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
