"""Has this error been seen before? Every error of the sessions is asked about as if at that moment, in order of time.

Rows are those of the facts before it; the pure matcher of `memctl bugs` ranks them. "Returned" means among the first
five. With MEMCTL_EVAL_SLOW=N, N of the questions are asked of a real store too, which holds the events before them:
it must give the same hits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from figures import Figure, Missing, share
from sessions import Data, in_order

from memctl.api.queries import bugs
from memctl.api.reading.caller import OWNER
from memctl.domain.events.facts import ErrorOccurred, ErrorResolved, ResolutionRefuted
from memctl.domain.failures.signatures import signature_of
from memctl.domain.support.bounded import names
from memctl.domain.support.location import project_name
from memctl.projections.bug_patterns import BugPattern, bug_patterns
from memctl.projections.bug_sightings import BugSightings, bug_sightings
from memctl.projections.kernel import Changed, projections

FIRST = 5


class Asked(NamedTuple):
    """One error, what was known of it, and the signatures and solutions that came back."""

    error: ErrorOccurred
    everywhere: bool
    known: bool
    elsewhere: bool
    """Known from another session."""
    fixed: bool
    hits: list[BugPattern]

    @property
    def returned(self) -> bool:
        return any(hit.signature == self.error.signature for hit in self.hits)

    @property
    def fix_returned(self) -> bool:
        return any(hit.signature == self.error.signature and hit.solutions for hit in self.hits)


class Rows:
    """The rows of `bug_patterns` as facts come in."""

    def __init__(self) -> None:
        self.patterns: dict[str, BugPattern] = {}
        self._shares: dict[str, dict[str, BugSightings]] = {}
        [self._sightings] = [p for p in projections(2) if p.name == "bug_sightings"]

    def add(self, fact: ErrorOccurred | ErrorResolved | ResolutionRefuted) -> None:
        [key] = self._sightings.keys(fact)
        shares = self._shares.setdefault(fact.signature, {})
        share_of = bug_sightings(shares.get(key), fact)
        assert share_of is not None
        shares[key] = share_of
        row: BugPattern | None = None
        for name, each in shares.items():
            row = bug_patterns(row, Changed(name, each))
        assert row is not None
        self.patterns[fact.signature] = row


def measure(data: Data) -> Iterator[Figure]:
    if not data.has_sessions:
        raise Missing("there are no sessions (agent-sessions.tar.xz)")
    asked = list(_asked(data))
    for everywhere, scope in ((False, "same project"), (True, "any project")):
        of_scope = [a for a in asked if a.everywhere == everywhere]
        known = [a for a in of_scope if a.known]
        yield Figure(f"{scope}: seen before, returned", _rate(known, "returned"), len(known), 0.90)
        elsewhere = [a for a in of_scope if a.elsewhere]
        yield Figure("  seen in another session, returned", _rate(elsewhere, "returned"), len(elsewhere), 0.90)
        fixed = [a for a in of_scope if a.fixed]
        yield Figure(f"{scope}: fixed before, fix returned", _rate(fixed, "fix_returned"), len(fixed), 0.80)
        worded = [a for a in of_scope if a.known and _same_words(a)]
        yield Figure(
            "  a hit of the same words, by a key of the eval's own", share(len(worded), len(known)), len(known)
        )
        unknown = [a for a in of_scope if not a.known]
        strangers = [a for a in unknown if a.hits and _sure(a)]
        yield Figure("  never seen, yet much alike to something", share(len(strangers), len(unknown)), len(unknown))
    if count := int(os.environ.get("MEMCTL_EVAL_SLOW", "0")):
        picked = [a for a in asked if a.known][:: max(1, sum(a.known for a in asked) // count)][:count]
        yield Figure(
            "asked of a real store, same hits", share(_same_in_store(data, picked), len(picked)), len(picked), 1.0
        )


def _asked(data: Data) -> Iterator[Asked]:
    rows = Rows()
    seen: dict[str, list[tuple[str, str]]] = {}
    fixed: dict[str, set[str]] = {}
    for fact in in_order(data.facts.values()):
        if not isinstance(fact, (ErrorOccurred, ErrorResolved, ResolutionRefuted)):
            continue
        project = project_name(fact.location)
        if isinstance(fact, ErrorOccurred):
            before = seen.setdefault(fact.signature, [])
            for everywhere in (False, True):
                met = [stream for stream, where in before if everywhere or where == project]
                fixes = fixed.get(fact.signature, set())
                yield Asked(
                    fact,
                    everywhere,
                    known=bool(met),
                    elsewhere=any(stream != fact.stream for stream in met),
                    fixed=bool(fixes) if everywhere else project in fixes,
                    hits=_hits(rows, fact, None if everywhere else project),
                )
            before.append((fact.stream, project))
        elif isinstance(fact, ErrorResolved):
            fixed.setdefault(fact.signature, set()).add(project)
        rows.add(fact)


def _hits(rows: Rows, error: ErrorOccurred, project: str | None) -> list[BugPattern]:
    """What `memctl bugs` answers to the excerpt of the output that shows the error."""
    patterns = [
        pattern
        for pattern in rows.patterns.values()
        if project is None or any(project_name(place) == project for place in names(pattern.locations))
    ]
    found = bugs.ranked(signature_of(error.text, error.command), patterns, error.command)
    return [each.pattern for each in found[:FIRST]]


def _sure(asked: Asked) -> bool:
    [best, *_] = bugs.ranked(signature_of(asked.error.text, asked.error.command), asked.hits, asked.error.command)
    return best.match.class_ != "none"


def _same_words(asked: Asked) -> bool:
    key = _key(asked.error.message)
    return any(_key(hit.message) == key for hit in asked.hits)


def _key(message: str) -> str:
    """The words of a message without numbers, paths and quotes."""
    return " ".join(re.findall(r"[a-z]{2,}", re.sub(r"\S*[/\\]\S*|'[^']*'|\"[^\"]*\"|`[^`]*`", " ", message.lower())))


def _rate(asked: list[Asked], what: str) -> float:
    return share(sum(getattr(a, what) for a in asked), len(asked))


def _same_in_store(data: Data, picked: list[Asked]) -> int:
    """How many of the questions a real store, which holds what was before, answers with the same hits."""
    import sys

    sys.path.insert(0, str(Path(__file__).parents[2]))
    import servers
    from histories import drained

    from memctl.api.reading.places import Places
    from memctl.api.reading.reader import Readers
    from memctl.infra.database import connect
    from memctl.infra.log.append import append
    from memctl.infra.readmodels import generations

    events = sorted(data.events, key=lambda e: e.occurred_at)
    places = sorted({e.location for e in events})
    same = at = 0
    with (
        servers.postgres_server() as server,
        servers.migrated_database(server) as template,
        servers.fresh_database(server, template=template) as url,
    ):
        with connect(url) as connection:
            generations.ensure_live(connection, 1)
        readers = Readers(url, "default", size=1)
        for asked in picked:
            upto = at
            while upto < len(events) and events[upto].occurred_at < asked.error.occurred_at:
                upto += 1
            with connect(url) as connection:
                append(connection, 1, events[at:upto])
            drained(url)
            at = upto
            mine = project_name(asked.error.location)
            locations = None if asked.everywhere else tuple(p for p in places if project_name(p) == mine)
            where = Places(None, "asked", locations)
            answer = readers.read(
                lambda reader, asked=asked, where=where: bugs.bugs(
                    reader, asked.error.text, where, command=asked.error.command, limit=FIRST
                ),
                OWNER,
            )
            same += [hit.signature for hit in answer.hits] == [hit.signature for hit in asked.hits]
        readers.close()
    return same
