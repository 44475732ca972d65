"""Whether anything of what was erased can still be found: in any table, the vector store, the spool or a log file.

Two things are looked for: the ids of what was erased, which no row may name any more, and words that were said in it
and that neither another event nor memctl's own rules say. Whoever erases draws the words beforehand (`words_of`).
"""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import psycopg
from psycopg import sql

from memctl.domain.events.event import Payload
from memctl.domain.events.observations import Observation
from memctl.domain.support import patterns
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection
from memctl.infra.log.mark import last_position
from memctl.infra.readmodels import fingerprint as rules
from memctl.infra.readmodels import generations
from memctl.infra.redaction.scanner import scanner
from memctl.infra.vectors import QdrantClient
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors.outbox import collection_of, stored_id
from memctl.workers.erasure import on_disk
from memctl.workers.erasure.look import Look

MOST_WORDS, MOST_IDS, MOST_POINTS = 200, 500, 1000
"""How much is looked for at most; the longest words and the first ids."""

MOST_FORMS = 50
"""Words that are looked for in every form of writing."""

POSITIONS = 20_000
"""Positions of the log that are read at once, from the newest on, until every word was met."""

_WORD = patterns.compile(r"[^\W_]{6,}")
LONGEST = 40
"""Of a longer word its beginning is looked for."""

_ID = patterns.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME = patterns.compile(r"([a-z_]{1,40}:)?([0-9a-f]{16}|[0-9a-f]{32})")
"""Digests by which memctl names what it makes of events: what an error (`error:…`), a task or a text is called."""

_BY_CHANCE = patterns.compile(r"[0-9a-f]{6,15}")
"""Words that may also stand in the midst of a time, a digest or an id, which have nothing to do with them."""

BLOCK = 1 << 20
_OVERLAP = 512
"""Bytes that are looked at twice, since a word may lie across the end of a block; no word or id is as long."""


class StillThere(MemctlError):
    """What was erased can still be found: {where}."""

    hint = "nothing of it is given out by its id; say the same again, and look at `memctl verify`"
    where: str


class Probe(msgspec.Struct, frozen=True):
    """What is looked for."""

    ids: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    points: tuple[str, ...] = ()


def words_of(payloads: Iterable[Payload], text: str = "") -> tuple[str, ...]:
    """Words to look for: those with digits before others, longer before shorter.

    What is recorded about rows names them, and these names no event says: other events may give the same rows. A word
    like them in the midst of others is somebody's.
    """
    found: set[str] = set()
    for payload in payloads:
        names = not isinstance(payload, Observation)
        for said in _strings(msgspec.to_builtins(payload)):
            if _ID.fullmatch(said):
                continue  # what it names may stay; ids of what was erased are looked for as such
            if not (names and _NAME.fullmatch(said)):
                found.update(_words(said[:20_000]))
    ranked = sorted(found, key=lambda word: (not any(map(str.isdecimal, word)), -len(word), word))
    return tuple(dict.fromkeys([*_words(text), *ranked]))[:MOST_WORDS]


def _words(said: str) -> Iterator[str]:
    return (word[:LONGEST].lower() for word in _WORD.findall(said))


def found_in(connection: Connection, look: Look, probe: Probe, qdrant: QdrantClient | None) -> list[str]:
    """Where something of it is still found, in words that do not repeat it; empty where it is gone.

    In log files, words only: they name an event that could not be folded by its id, which says nothing of it.
    """
    space_id, distinctive = look.space_id, tuple(filter(_is_distinctive, probe.words))
    tables = _in_tables(connection, look, probe)
    files = _in_files(on_disk.files_of(look), (*probe.ids, *distinctive))
    files |= _in_files(sorted((look.data_dir / "log").rglob("*")) if look.owner else (), distinctive)
    words = set().union(*tables.values(), *files.values()) & set(probe.words)
    innocent = _said_elsewhere(connection, look, words)
    seen = {
        f"the table {table}": _but_by_chance(connection, look, table, hits - innocent) for table, hits in tables.items()
    }
    seen |= {look.called(file): hits for file, hits in files.items()}
    places = [f"{len(left)} ids and words in {where}" for where, hits in seen.items() if (left := hits - innocent)]
    if qdrant is not None and probe.points:
        from memctl.infra.vectors import store

        live = generations.live(connection).stage2
        wanted = _undesired(connection, space_id, live, probe.points)
        present = {
            point
            for model in (vector_models.models(connection).written if wanted else ())
            for point in store.retrieve_present(qdrant, collection_of(connection, live, model.name), wanted)
        }
        if present:
            places.append(f"{len(present)} points of the vector store")
    return places


def that_say_most(words: Iterable[str]) -> list[str]:
    """Those of the words that say most."""
    return [each for each in words if _is_distinctive(each) and not _BY_CHANCE.fullmatch(each)][:MOST_FORMS]


def unsaid(connection: Connection, look: Look, words: Collection[str]) -> list[str]:
    """Those of the words that nothing else says."""
    return sorted(set(words) - _said_elsewhere(connection, look, words))


def _is_distinctive(word: str) -> bool:
    """Not what a server says of itself, as the `00000000` that a dump of bytes begins with."""
    return len(word) >= 8 and len(set(word)) > 3 and any(map(str.isdecimal, word))


def _undesired(connection: Connection, space_id: int, generation: int, points: Collection[str]) -> list[str]:
    """Ids in the store of those of the points that should not be in it."""
    rows = connection.execute(
        sql.SQL(
            "SELECT k FROM unnest(%s::text[]) AS k WHERE NOT EXISTS"
            " (SELECT FROM memctl.vector_points_g{} p WHERE p.space_id = %s AND p.key = k)"
        ).format(sql.SQL(str(generation))),
        [list(points)[:MOST_POINTS], space_id],
    )
    return [stored_id((space_id, row[0])) for row in rows]


def _in_tables(connection: Connection, look: Look, probe: Probe) -> dict[str, set[str]]:
    """What of it stands in which table. What another space holds may name an id by itself, as an import does."""
    found: dict[str, set[str]] = {}
    own, others = look_for((*probe.ids, *probe.words)), look_for(probe.words)
    for table in _tables(connection):
        for rows, sought in ((look.rows(connection, table), own), (look.others_rows(), others)):
            if rows is None:
                continue
            query = sql.SQL("SELECT t.* FROM memctl.{} t WHERE {}").format(sql.Identifier(table), rows)
            with contextlib.suppress(psycopg.errors.UndefinedTable):  # of a look at the past that has just ended
                if hits := sought(_copied(connection, query)):
                    found.setdefault(table, set()).update(hits)
    return found


def _but_by_chance(connection: Connection, look: Look, table: str, hits: set[str]) -> set[str]:
    """The hits without those that stand there by chance, and that no text in the table holds as a word of its own."""
    doubtful = {hit for hit in hits if _BY_CHANCE.fullmatch(hit)}
    if not doubtful:
        return hits
    word = patterns.Pattern(rf"(?<![^\W_])(?:{'|'.join(sorted(doubtful))})(?![^\W_])", patterns.I)
    query = sql.SQL("SELECT to_jsonb(t)::text FROM memctl.{} t WHERE to_jsonb(t)::text ILIKE ANY(%s) AND {}").format(
        sql.Identifier(table), look.all_rows()
    )
    said: set[str] = set()
    with contextlib.suppress(psycopg.errors.UndefinedTable), connection.cursor() as cursor:
        # One by one: nearly every row may hold them by chance.
        for (row,) in cursor.stream(query, [[f"%{hit}%" for hit in doubtful]]):
            said.update(hit.lower() for text in _strings(msgspec.json.decode(row)) for hit in word.findall(text))
    return hits - doubtful | said


def _tables(connection: Connection) -> list[str]:
    """The tables that hold what was folded, of every generation; the others hold places and ids."""
    rows = connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'memctl' AND tablename ~ '_g[0-9]+$|^dead_letters$'"
        " ORDER BY 1"
    )
    return [row[0] for row in rows]


def _copied(connection: Connection, query: sql.Composable) -> Iterator[bytes]:
    with connection.cursor() as cursor, cursor.copy(sql.SQL("COPY ({}) TO STDOUT").format(query)) as rows:
        for row in rows:
            yield bytes(row)


def look_for(texts: Collection[str]) -> Callable[[Iterator[bytes]], set[str]]:
    """What finds those of the texts that stand in pieces, in any case. Making it takes longer than most looks."""
    sought = sorted(texts)
    if not sought:
        return lambda pieces: set()
    scan = scanner(["(?i)" + "".join(_escaped(each) for each in text) for text in sought])

    def look(pieces: Iterator[bytes]) -> set[str]:
        found: set[int] = set()
        block: list[bytes] = []
        size = 0
        for piece in pieces:
            block.append(piece)
            size += len(piece)
            if size >= BLOCK:
                read = b"".join(block)
                found |= scan(read)
                block, size = [read[-_OVERLAP:]], 0
        if block:
            found |= scan(b"".join(block))
        return {sought[index] for index in found}

    return look


def _escaped(character: str) -> str:
    """A pattern of bytes for a letter in either case; `(?i)` knows those of ASCII alone."""
    if character.isalnum() and character.isascii():
        return character
    forms = dict.fromkeys((character.lower(), character.upper(), character))
    return "(?:" + "|".join("".join(f"\\x{b:02x}" for b in form.encode()) for form in forms) + ")"


def _said_elsewhere(connection: Connection, look: Look, words: Collection[str]) -> set[str]:
    """Words that events say which are not erased, or that memctl's rules are made of."""
    if not words:
        return set()
    sought = set(words)
    looked = look_for(sought)
    found = looked(iter(rules.sources()))
    upto = int(last_position(connection))
    while upto > 0 and found < sought:
        query = sql.SQL(
            "SELECT payload, location, stream, session_id, type, actor FROM memctl.events"
            " WHERE position > {} AND position <= {} AND payload IS NOT NULL AND {}"
        ).format(upto - POSITIONS, upto, look.all_rows())
        found |= looked(_copied(connection, query))
        upto -= POSITIONS
    return found


def _in_files(paths: Iterable[Path], texts: Collection[str]) -> dict[Path, set[str]]:
    """What of it stands in which file."""
    files = [path for path in paths if path.is_file() and not path.is_symlink()]
    sought = look_for(texts if files else ())
    return {path: hits for path in files if (hits := sought(_read(path)))}


def _read(path: Path) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            yield from iter(lambda: file.read(BLOCK), b"")
    except OSError:  # gone meanwhile
        return


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _strings(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _strings(inner)


def ids_of(ids: Iterable[UUID]) -> tuple[str, ...]:
    """Ids as rows name them."""
    return tuple(str(id) for id in ids)[:MOST_IDS]
