"""Stage 2's rows against what they are folded from: looks, and changes nothing.

In one snapshot, rows, routes and offset agree with each other, so workers may go on beside it. What is cheap is
compared in full: that each source goes where its keys say and nowhere else, and that each row is of some source. The
rows themselves are folded again by a sample; a full comparison is a rebuild beside them.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, LiteralString

import msgspec
import psycopg
from psycopg import sql

from memctl.domain.events.event import Position
from memctl.domain.events.facts import FACT_TYPES
from memctl.infra.database import Connection, snapshot
from memctl.infra.log.audit import AuditFound
from memctl.infra.log.reach import Section
from memctl.infra.readmodels import dead_letters, facts, generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.dead_letters import LeftOut, Target
from memctl.infra.readmodels.facts import SourceKey
from memctl.infra.readmodels.generations import Live
from memctl.infra.readmodels.rows import RowKey
from memctl.projections.kernel import Changed, Projection
from memctl.workers.folding.poison import is_content_fault, keys_of
from memctl.workers.folding.row_inputs import RowInputs
from memctl.workers.folding.sources import Item, Register, recorded_sources, row_source

SCAN = 1_000
"""Sources whose routes are compared at once."""

SAMPLED = 500
"""Rows of a read model that are folded again; beside them as many of the keys that something goes to and no row is at
(a fold may rightly keep none)."""

AT_ONCE = 20
"""Rows that are folded again together: what goes to them is in memory."""

Progress = Callable[[str, int, int], None]


class Audit:
    """What was looked at in stage 2, and what is wrong there, in words; all is counted, the first are named."""

    def __init__(self) -> None:
        self.sources = 0
        """Facts, recorded events and rows of other read models, all whose routes were compared."""
        self.rows = 0
        """Rows of stage 2, all of which were looked for a source."""
        self.read_models = 0
        self.folded_again = 0
        self.routes: AuditFound[str] = AuditFound()
        """Sources that do not go where their keys say, and routes of what is no source."""
        self.unfounded: AuditFound[str] = AuditFound()
        """Rows that nothing goes to."""
        self.differing: AuditFound[str] = AuditFound()
        """Rows that are not what is folded from what goes to them, or cannot be read or folded."""


def audit(connection: Connection, progress: Progress = lambda what, done, of: None) -> Audit:
    """Compare the live stage 2 with its sources, as of its offset. `connection` is in autocommit mode.

    What is parked, and what goes to facts that are about to change, is left out.
    """
    with snapshot(connection):
        live = generations.live(connection)
        found = Audit()
        look = _Look(connection, live, found)
        progress("comparing routes", 0, 0)
        look.at_routes()
        register = look.register.projections
        for number, p in enumerate(register):
            progress("folding rows again", number, len(register))
            look.at_rows(p)
        found.read_models = len(register)
        return found


class _Look:
    def __init__(self, connection: Connection, live: Live, found: Audit) -> None:
        self._connection = connection
        self._live = live
        self._found = found
        read = generations.offset_of(connection, live.stage2)
        self._upto, self._lag = read.position, list(read.held)
        """Up to where rows are compared, and the spaces that have not read that far, which are left out."""
        self.register = Register()
        self._left_out = LeftOut(dead_letters.skips(connection, self._upto))
        self._inputs = RowInputs(connection, live.stage2, live.stage1, self._upto, self.register)
        self._parked = {letter.target for letter in dead_letters.parked(connection, live.stage2)}
        changing = self._rows(
            "SELECT DISTINCT r.space_id, r.target FROM {routes} r JOIN {facts} f"
            " ON f.space_id = r.space_id AND f.id = r.source WHERE r.upstream IS NULL AND f.at > %s",
            [self._upto],
        )
        # One shard of several may have read further than another: what it read is not compared.
        changing += self._rows(
            "SELECT DISTINCT r.space_id, r.target FROM {routes} r JOIN memctl.events e"
            " ON e.space_id = r.space_id AND e.event_id = r.source WHERE r.upstream IS NULL AND e.position > %s",
            [self._upto],
        )
        changed = facts.changed_since(connection, live.stage2, self._upto)
        self._moving = {row_source(name, key) for name, key in changed}
        """Rows that shards which read them have yet to read again."""
        changing += self._rows(
            "SELECT DISTINCT space_id, target FROM {routes} WHERE (upstream, space_id, upstream_key) IN"
            " (SELECT * FROM unnest(%s::text[], %s::int4[], %s::text[]))",
            [[name for name, _ in changed], [key[0] for _, key in changed], [key[1] for _, key in changed]],
        )
        self._changing = {(row[0], row[1]) for row in changing}
        """Rows that rest on what was changed since: what they were folded from is no longer there."""

    # --- routes ---

    def at_routes(self) -> None:
        tags = [tag for tag, fact in FACT_TYPES.items() if fact in self.register.by_fact]
        for batch in facts.scan_facts(self._connection, self._live.stage1, self._upto, tags, SCAN):
            self._compare({key: (self.register.takers(fact), fact) for key, fact in batch})
        recorded = recorded_sources(self._connection, self.register.by_payload, Section(Position(0), self._upto))
        for at in range(0, len(recorded), SCAN):
            sources = recorded[at : at + SCAN]
            self._compare({s.key: (self.register.takers(s.item), s.item) for s in sources if s.item is not None})
        for upstream in self.register.projections:
            takers = [p for p in self.register.projections if upstream.row in p.upstream]
            if takers:
                for rows in readmodels.raw_rows(self._connection, upstream, self._live.stage2, SCAN):
                    self._compare(dict(self._changed(upstream, takers, rows)))
        self._ghosts()

    def _changed(
        self, upstream: Projection[Any], takers: Sequence[Projection[Any]], rows: Iterable[tuple[RowKey, bytes]]
    ) -> Iterator[tuple[SourceKey, tuple[Sequence[Projection[Any]], Item]]]:
        for key, data in rows:
            try:
                row = readmodels.decode_row(upstream, data)
            except msgspec.MsgspecError as problem:
                self._found.differing.add(f"{upstream.name}:{key[1]}: cannot be read: {type(problem).__name__}")
            else:
                yield row_source(upstream.name, key), (takers, Changed(key[1], row))

    def _compare(self, sources: Mapping[SourceKey, tuple[Sequence[Projection[Any]], Item]]) -> None:
        """Whether these sources go to the rows that their keys name, at each of the projections that take them."""
        moving = self._moving
        sources = {s: item for s, item in sources.items() if s[0] not in self._lag and s not in moving}
        there = facts.read_routes(self._connection, self._live.stage2, list(sources))
        self._found.sources += len(sources)
        for source, (takers, item) in sources.items():
            was = set(there[source].keys if source in there else ())
            for p in takers:
                if Target(p.name, source[0], None, source[1]) in self._parked:
                    was = {target for target in was if not target.startswith(f"{p.name}:")}
                    continue
                try:
                    now = {f"{p.name}:{key}" for key in keys_of(p, source, item, self._left_out)}
                except Exception as problem:
                    if not is_content_fault(problem):
                        raise
                    self._found.routes.add(f"{p.name}: cannot route {source[1]}: {type(problem).__name__}")
                    continue
                self._found.routes.add(*(f"{target}: {source[1]} should go there" for target in sorted(now - was)))
                was -= now
            self._found.routes.add(*(f"{target}: {source[1]} should not go there" for target in sorted(was)))

    def _ghosts(self) -> None:
        """Routes of what is neither a fact, nor in the log, nor a row."""
        makers = sorted(self.register.by_name)
        none = self._rows(
            "SELECT target, source FROM {routes} r WHERE upstream IS NULL AND NOT EXISTS (SELECT FROM {facts} f"
            " WHERE f.space_id = r.space_id AND f.id = r.source AND (f.payload IS NOT NULL OR f.at > %s))"
            " AND NOT EXISTS (SELECT FROM memctl.deliveries d JOIN memctl.events USING (position)"
            " WHERE d.space_id = r.space_id AND d.event_id = r.source)"
            " AND space_id <> ALL(%s)",
            [self._upto, self._lag],
        )
        none += self._rows("SELECT target, source FROM {routes} WHERE NOT upstream = ANY(%s)", [makers])
        for name in makers:
            none += self._rows(
                "SELECT target, source FROM {routes} r WHERE upstream = %s AND NOT EXISTS (SELECT FROM {rows} t"
                " WHERE t.space_id = r.space_id AND t.key = r.upstream_key) AND NOT EXISTS (SELECT FROM {changed} c"
                " WHERE (c.space_id, c.read_model, c.key) = (r.space_id, r.upstream, r.upstream_key) AND c.at > %s)",
                [name, self._upto],
                name,
            )
        self._found.routes.add(*(f"{target}: {source} goes there, and is not there" for target, source in none))

    # --- rows ---

    def at_rows(self, p: Projection[Any]) -> None:
        self._found.rows += readmodels.count(self._connection, p, self._live.stage2)
        unfounded = self._rows(
            "SELECT space_id, key FROM {rows} t WHERE NOT EXISTS (SELECT FROM {routes} r"
            " WHERE r.target = %s || t.key AND r.space_id = t.space_id) ORDER BY space_id, key",
            [f"{p.name}:"], p.name,
        )  # fmt: skip
        self._found.unfounded.add(*(f"{p.name}:{key}: nothing goes to it" for _, key in unfounded))
        without = self._rows(
            "SELECT DISTINCT r.space_id, substr(r.target, length(%(prefix)s) + 1) FROM {routes} r"
            " WHERE starts_with(r.target, %(prefix)s) AND NOT EXISTS (SELECT FROM {rows} t"
            " WHERE t.space_id = r.space_id AND t.key = substr(r.target, length(%(prefix)s) + 1))",
            {"prefix": f"{p.name}:"}, p.name,
        )  # fmt: skip
        there = self._rows("SELECT space_id, key FROM {rows} ORDER BY random() LIMIT %s", [SAMPLED], p.name)
        gone = random.sample(without, min(SAMPLED, len(without)))
        wanted = sorted({(row[0], row[1]) for row in (*gone, *there)} - {(row[0], row[1]) for row in unfounded})
        wanted = [key for key in wanted if key[0] not in self._lag and Target(p.name, *key) not in self._parked]
        wanted = [key for key in wanted if (key[0], f"{p.name}:{key[1]}") not in self._changing]
        for at in range(0, len(wanted), AT_ONCE):
            self._fold_again(p, wanted[at : at + AT_ONCE])

    def _fold_again(self, p: Projection[Any], keys: Sequence[RowKey]) -> None:
        """Fold these rows from all that goes to them, and compare. Where that fails, each by itself."""
        try:
            inputs = self._inputs.of(p, keys)
            rows: dict[RowKey, bytes | None] = {}
            for key in keys:
                row = None
                for _, item in inputs.get(key, []):
                    row = p(row, item, key[1])
                rows[key] = None if row is None else msgspec.json.encode(row)
        except psycopg.Error:
            raise
        except Exception as problem:  # whatever a fold raises; its words may quote what was said
            if len(keys) > 1:
                for key in keys:
                    self._fold_again(p, [key])
                return
            self._found.differing.add(f"{p.name}:{keys[0][1]}: cannot be folded: {type(problem).__name__}")
            return
        finally:
            self._inputs.forget()
        self._found.folded_again += len(keys)
        wrong = readmodels.differing(self._connection, p, self._live.stage2, rows)
        self._found.differing.add(
            *[f"{p.name}:{key[1]}: " + ("should not be there" if rows[key] is None else "is not what its sources give")
             for key in wrong]
        )  # fmt: skip

    def _rows(self, statement: LiteralString, parameters: Any, of: str = "") -> list[tuple[Any, ...]]:
        """What a statement yields that names the tables {routes}, {facts} and, of one read model, {rows}."""
        names = {"routes": readmodels.table("routes", self._live.stage2)}
        names["facts"] = readmodels.table("facts", self._live.stage1)
        names["changed"] = readmodels.table("changed", self._live.stage2)
        names["rows"] = readmodels.table(of, self._live.stage2) if of else ""
        named = {name: sql.SQL(table) for name, table in names.items()}
        return self._connection.execute(sql.SQL(statement).format(**named), parameters).fetchall()
