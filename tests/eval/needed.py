"""Ask memory at the prompts of later sessions, and see whether what it says is what their work then came to need.

    python tests/eval/needed.py split SESSIONS TO          # the first 70 % of each project, and the rest
    MEMCTL_DATA_DIR=… python tests/eval/needed.py ask REST  # a memctl that has read the first part is asked by the rest
    MEMCTL_DATA_DIR=… python tests/eval/needed.py label ALL # what search finds at each prompt of all, for `calibrate`

No reader judges: a prompt's need is known afterwards. Memory held something of it where an earlier session changed a
file that this turn then changed, or met an error that this turn then met; files that more than a fifth of the project's
memories name say nothing. What was injected meets the need where it names such a file or comes from a memory of it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from figures import share
from sessions import FOLDER, Data

from memctl.api.assist.prompts import CONSIDERED, asks_by_itself, files_in_play, query_of
from memctl.api.assist.recall import recall
from memctl.api.reading import models
from memctl.api.reading.caller import OWNER
from memctl.api.reading.pages import several
from memctl.api.reading.places import places_of
from memctl.api.reading.reader import Reader, Readers
from memctl.api.search.engine import Engine, Question
from memctl.domain.events.facts import Answered, CommandRan, ErrorOccurred, Fact, FileChanged, Prompted
from memctl.domain.language.documents import named
from memctl.domain.retrieval.calibration import sort_of
from memctl.domain.support.mentions import values_in
from memctl.infra.embedders import embedders_of
from memctl.infra.settings import load_settings
from memctl.projections.working_memory import WorkingMemory, working_memory

FIRST, COMMON = 0.7, 0.2
"""The share of a project's sessions that is memory, and of its memories from which on a file says nothing."""


FEW, LEAST_SCORE = 4, 0.03
"""Memories that may name a value that is hardly named, and the score from which on a result is labelled."""


class Asked(NamedTuple):
    """A prompt, and what its turn came to touch: names of files with the folder they lie in, signatures of errors."""

    stream: str
    at: int
    location: str
    text: str
    files: frozenset[str]
    errors: frozenset[str]
    session: WorkingMemory | None
    """What was known of the session by then."""
    began: int
    values: frozenset[str]
    """Names and addresses that the turn came to write, run or say."""


def split(source: Path, to: Path) -> None:
    """Copy the transcripts of each project by when they begin."""
    for project in sorted(each for each in source.iterdir() if each.is_dir()):
        files = sorted((began(each), each) for each in project.rglob("*.json*") if began(each))
        for number, (_, file) in enumerate(files):
            part = to / ("memory" if number < int(len(files) * FIRST) else "rest") / file.relative_to(source)
            part.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, part)


def began(file: Path) -> str:
    _, _, rest = file.read_text(errors="replace").partition('"timestamp":')
    return rest.lstrip()[1:25]


def prompts(data: Data) -> Iterator[Asked]:
    for stream, facts in data.facts.items():
        last: list[tuple[Prompted, list[Fact], WorkingMemory | None]] = []
        row: WorkingMemory | None = None
        for fact in sorted(facts, key=lambda each: each.occurred_at):
            if isinstance(fact, Prompted):
                last.append((fact, [], row))
            elif last and isinstance(fact, FileChanged | ErrorOccurred | CommandRan | Answered):
                last[-1][1].append(fact)
            if isinstance(fact, tuple(working_memory.facts)):
                row = working_memory(row, [fact])
        for prompt, after, session in last:
            yield Asked(
                stream, int(prompt.occurred_at), prompt.location, prompt.text,
                frozenset(named(each.path) for each in after if isinstance(each, FileChanged)),
                frozenset(each.signature for each in after if isinstance(each, ErrorOccurred)), session,
                int(last[0][0].occurred_at), frozenset(value for each in after for value in values_in(_text(each))),
            )  # fmt: skip


def _text(fact: Fact) -> str:
    match fact:
        case FileChanged():
            return fact.after
        case CommandRan():
            return fact.command
        case Answered():
            return fact.text
    return ""


def label(reader: Reader, engine: Engine, sessions: Path) -> list[list[Any]]:
    """Of the best of each sort that search finds at each prompt in what came before its session: project, sort, score,
    that of its best rival, how many files in play it is about, whether the prompt asked by itself, whether it bears.

    It bears where it is of a file that the turn then changed, of an error that it then met, or names two of the values
    that the turn came to and did not begin with, which hardly another memory names.
    """
    found: list[list[Any]] = []
    held: dict[tuple[str, ...], Held] = {}
    for asked in prompts(Data(FOLDER, sessions)):
        places = places_of(reader, None, asked.location)
        query = query_of(asked.text, asked.session)
        if places.project is None or places.locations is None or not query or not (asked.files or asked.errors):
            continue
        if places.locations not in held:
            held[places.locations] = Held(reader, places.locations)
        known = held[places.locations]
        in_play = files_in_play(asked.text, asked.session)
        question = Question(
            query=query, places=places, now=datetime.fromtimestamp(asked.at / 1e6, UTC), limit=CONSIDERED,
            in_play=in_play, settled=True, before=asked.began,
        )  # fmt: skip
        results = engine.search(reader, question).results
        rows = several(reader, models.memories, [each.id for each in results])
        values = {each for each in asked.values if each not in query and 0 < known.values[each] <= FEW}
        sorts: set[str] = set()
        for each in sorted(results, key=lambda each: -each.score):
            row = rows.get(each.id)
            if row is None or each.score < LEAST_SCORE:
                continue
            sort = sort_of(row.kind, answered=row.kind != "turn" or "\n→ " in row.text)
            if sort in sorts:
                continue
            sorts.add(sort)
            rival = max(
                (other.score for other in results if other.id != each.id and other.id in rows
                 and not set(rows[other.id].sessions) & set(row.sessions)), default=0.0,
            )  # fmt: skip
            names = {named(path) for path in row.files}
            bears = bool(asked.files & known.files & names or asked.errors & set(row.signatures)) or (
                len(values & set(values_in(row.text))) >= 2
            )
            play = len(names & set(map(named, in_play)))
            alone = asks_by_itself(asked.text)
            found.append([places.project, sort, round(each.score, 3), round(rival, 3), play, alone, bears])
    return found


class Held:
    """What the memories of a project name."""

    def __init__(self, reader: Reader, locations: tuple[str, ...]) -> None:
        rows = reader.connection.execute(
            f"SELECT row::text FROM memctl.memories_g{reader.live.stage2} WHERE row->>'location' = ANY(%s)",
            [list(locations)],
        ).fetchall()  # fmt: skip
        sessions: dict[str, set[str]] = defaultdict(set)
        self.errors: set[str] = set()
        self.values: Counter[str] = Counter()
        every: set[str] = set()
        for row in (json.loads(each) for (each,) in rows):
            every.update(row["sessions"])
            self.values.update(set(values_in(row["text"])))
            for path in row["files"] if row["kind"] in ("turn", "episode", "document") else ():
                sessions[named(path)].update(row["sessions"])
            self.errors.update(row["signatures"])
        most = max(len(every) * COMMON, 2)
        self.files = {name for name, of in sessions.items() if len(of) <= most}


def ask(reader: Reader, engine: Engine, rest: Path, verbose: bool) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    held: dict[tuple[str, ...], Held] = {}
    tokens = 0
    for asked in prompts(Data(FOLDER, rest)):
        places = places_of(reader, None, asked.location)
        if places.project is None or places.locations is None:
            continue
        if places.locations not in held:
            held[places.locations] = Held(reader, places.locations)
        known = held[places.locations]
        files, errors = asked.files & known.files, asked.errors & known.errors
        session = asked.stream.split("/", 2)[2]
        payload: Any = {"prompt": asked.text, "session_id": session, "cwd": asked.location}
        now = datetime.fromtimestamp(asked.at / 1e6, UTC)
        said = recall(reader, engine, "UserPromptSubmit", payload, asked.stream, places, now, asked.session)
        tokens += said.tokens
        rows = several(reader, models.memories, [each.id for each in said.memories])
        of = {named(path) for row in rows.values() for path in row.files}
        by_name = {name for name in files if name.split("/")[-1] in said.text}
        met = bool(files & of or by_name or errors & {each for row in rows.values() for each in row.signatures})
        work, need = bool(asked.files or asked.errors), bool(files or errors)
        counts.update(
            asked=1, worked=work, needed=need, spoken=bool(said.text), spoken_of_needed=need and bool(said.text),
            met=need and met, in_vain=bool(said.text) and work and not met,
        )  # fmt: skip
        if verbose:
            shown = {"at": str(now), "of": places.project, "asked": asked.text[:700], "need": sorted(files)}
            print(json.dumps({**shown, "errors": len(errors), "met": met, "said": said.text}, ensure_ascii=False))
    return {
        **counts, "tokens a block": round(tokens / max(counts["spoken"], 1)),
        "met of needed": share(counts["met"], counts["needed"]),
        "met of spoken at needed": share(counts["met"], counts["spoken_of_needed"]),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("split", "ask", "label"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("to", type=Path, nargs="?")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    if given.what == "split":
        split(given.folder, given.to)
        return
    settings = load_settings()
    if settings.database_url is None:
        parser.error("no memctl runs here: `memctl up`, then `memctl ingest` the first part")
    readers = Readers(settings.database_url, settings.space)
    engine = Engine(settings.qdrant_url, settings.qdrant_api_key, embedders_of(settings))
    engine.warm_up(readers)
    try:
        if given.what == "label":
            labels = readers.read(lambda reader: label(reader, engine, given.folder), OWNER)
            print("[\n" + ",\n".join(json.dumps(each) for each in labels) + "\n]")
            return
        figures = readers.read(lambda reader: ask(reader, engine, given.folder, given.verbose), OWNER)
        json.dump(figures, sys.stdout, indent=1)
        print()
    finally:
        engine.close()
        readers.close()


if __name__ == "__main__":
    main()
