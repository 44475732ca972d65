"""Files of questions: LoCoMo and LongMemEval as they are published, longmemeval-lite, and tldr pages in two languages.

The content of a file shows which of them it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from memctl.api.evaluation import Asked, Dataset, Passage, UnknownDataset
from memctl.domain.support import patterns

_MINUTE_US = 60_000_000


_SESSION = patterns.compile(r"session_(\d+)")
_TURN = patterns.compile(r"D\d+:\d+")


def load(path: Path) -> list[Dataset]:
    """The data sets of a file, of a folder's files otherwise. Raises: UnknownDataset, OSError."""
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if each.suffix in (".json", ".jsonl"))
        return [dataset for file in files for dataset in load(file)]
    content = path.read_bytes()
    try:
        if path.suffix == ".jsonl":
            rows = [orjson.loads(line) for line in content.splitlines() if line.strip()]
            return list(_tldr(path.stem, rows))
        return list(_of(path.stem, orjson.loads(content)))
    except (ValueError, KeyError, TypeError, AttributeError) as why:
        raise UnknownDataset(path=str(path)) from why


def _of(name: str, content: Any) -> Iterator[Dataset]:
    if isinstance(content, dict) and {"queries", "passages"} <= content.keys():
        yield _lite(name, content)
    elif isinstance(content, list) and content and "conversation" in content[0]:
        yield _locomo(name, content)
    elif isinstance(content, list) and content and "haystack_sessions" in content[0]:
        yield _longmemeval(name, content)
    else:
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
            at = _micros(talk.get(f"session_{session}_date_time", "")) or last
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
            at, before = _micros(date), ""
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
                    now=_date(sample.get("question_date")), kind=sample.get("question_type") or "",
                )
            )  # fmt: skip
    return Dataset(name=name, passages=passages, questions=questions)


def _lite(name: str, content: dict[str, Any]) -> Dataset:
    """longmemeval-lite: one index for all questions. Golds stand with the question, or apart under `qrels`."""
    relevant = content.get("qrels", {})
    passages: list[Passage] = []
    before: dict[str, str] = {}
    for each in content["passages"]:
        id = each["id"]
        session = each.get("session_id") or id.rpartition("_")[0]
        text = each.get("text") or each.get("text_preview") or ""
        passages.append(
            Passage(
                id=id, text=text, session=session, at=_micros(each.get("date") or ""), before=before.get(session, "")
            )
        )
        before[session] = id
    questions = [
        Asked(
            id=each["question_id"], query=each["question"], now=_date(each.get("question_date")),
            gold=frozenset(each.get("gold") or relevant.get(each["question_id"], ())),
            kind=each.get("question_type") or "",
        )
        for each in content["queries"]
        if each.get("question")
    ]  # fmt: skip
    return Dataset(name=name, passages=passages, questions=questions, tuned="evidence" in name)


def _tldr(name: str, rows: list[dict[str, Any]]) -> Iterator[Dataset]:
    """Pages of commands in Korean and English: what a Korean page says the command does, its name taken out, is asked
    of the English pages, and of the Korean ones."""
    asked = {row["path"]: _said(row["ko"], Path(row["path"]).stem) for row in rows}
    for language, title in (("en", "Korean to English"), ("ko", "Korean to Korean")):
        yield Dataset(
            name=f"{name}, {title}",
            passages=[Passage(id=row["path"], text=row[language]) for row in rows],
            questions=[Asked(id=path, query=query, gold=frozenset((path,))) for path, query in asked.items() if query],
        )


def _said(page: str, command: str) -> str:
    lines = (line[2:] for line in page.splitlines() if line.startswith("> "))
    first = next((line for line in lines if "<http" not in line), "")
    return " ".join(first.replace(f"`{command}`", " ").replace(command, " ").split())


_FORMATS = ("%Y/%m/%d (%a) %H:%M", "%Y/%m/%d", "%I:%M %p on %d %B, %Y", "%Y-%m-%d")


def _date(said: str | None) -> datetime | None:
    for form in _FORMATS:
        try:
            return datetime.strptime(said or "", form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def _micros(said: str) -> int:
    at = _date(said)
    return (at - _EPOCH) // timedelta(microseconds=1) if at else 0


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def split(questions: Iterable[Asked], half: str) -> list[Asked]:
    """The tuning half (`tune`) or the reporting half (`report`) of questions, by the hash of their id; or `all`."""
    import hashlib

    def tunes(asked: Asked) -> bool:
        return hashlib.sha256(asked.id.encode()).digest()[0] % 2 == 0

    return [each for each in questions if half == "all" or tunes(each) == (half == "tune")]
