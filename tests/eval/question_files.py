"""Files of questions that only measurements here read: longmemeval-lite, and tldr pages in two languages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
from evaluation import Asked, Dataset, Passage, UnknownDataset, loaders
from evaluation.loaders import date_of, micros_of


def load(path: Path) -> list[Dataset]:
    """The data sets of a file: those as published, and these two."""
    try:
        if path.suffix == ".jsonl":
            rows = [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
            return list(tldr(path.stem, rows))
        content = orjson.loads(path.read_bytes())
        if isinstance(content, dict) and {"queries", "passages"} <= content.keys():
            return [lite(path.stem, content)]
    except (ValueError, KeyError, TypeError, AttributeError) as why:
        raise UnknownDataset(path=str(path)) from why
    return loaders.load(path)


def lite(name: str, content: dict[str, Any]) -> Dataset:
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
                id=id, text=text, session=session, at=micros_of(each.get("date") or ""), before=before.get(session, "")
            )
        )
        before[session] = id
    questions = [
        Asked(
            id=each["question_id"], query=each["question"], now=date_of(each.get("question_date")),
            gold=frozenset(each.get("gold") or relevant.get(each["question_id"], ())),
            kind=each.get("question_type") or "",
        )
        for each in content["queries"]
        if each.get("question")
    ]  # fmt: skip
    return Dataset(name=name, passages=passages, questions=questions)


def tldr(name: str, rows: list[dict[str, Any]]) -> Iterator[Dataset]:
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


def split(questions: Iterable[Asked], half: str) -> list[Asked]:
    """The tuning half (`tune`) or the reporting half (`report`) of questions, by the hash of their id; or `all`."""

    def tunes(asked: Asked) -> bool:
        return hashlib.sha256(asked.id.encode()).digest()[0] % 2 == 0

    return [each for each in questions if half == "all" or tunes(each) == (half == "tune")]
