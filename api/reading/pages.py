"""Pages of a read model: rows in the order of one field, newest first, each page continued by key."""

import base64
import binascii
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Generic, LiteralString, Self, TypeVar

import msgspec
from psycopg import sql
from psycopg.sql import Composable

from memctl.api.reading.places import OF_NO_PLACE, Places, is_anothers, limits_of, visible
from memctl.api.reading.reader import Reader
from memctl.domain.support.bounded import LOCATIONS
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.provenance import Provenance
from memctl.infra.readmodels.rows import decode_row, expression, load, table
from memctl.projections.kernel import Projection, projections

LONGEST_PAGE = 200
"""Rows of one answer: more are asked for page by page, so that no answer holds up others."""


class BadCursor(MemctlError):
    """The cursor is not one that memctl gave out."""

    exit_code = 2
    hint = "Leave it out to begin with the first page."


R = TypeVar("R")


class Keyed(msgspec.Struct, Generic[R], frozen=True):
    """A row under its key."""

    key: str
    row: R


class Condition(msgspec.Struct, frozen=True):
    """A part of a statement, and the values of its placeholders."""

    clause: Composable
    values: tuple[Any, ...] = ()


_LISTED = "FROM jsonb_array_elements(row->'{}') AS listed(l)"
_NAME = "CASE jsonb_typeof(l) WHEN 'array' THEN l->>0 ELSE l#>>'{}' END"
"""The locations that a row lists, by name or with when each was last seen."""


@cache
def projection_named(name: str) -> Projection[Any]:
    """The projection of that name. Raises: KeyError."""
    found = {p.name: p for p in projections()}
    return found[name]


def table_of(reader: Reader, p: Projection[Any]) -> Composable:
    """The live table of a projection."""
    generation = reader.live.of(p.stage)
    return sql.SQL(table(p.name, generation))


def built(reader: Reader, p: Projection[Any]) -> bool:
    """Whether the live generation has this projection: one that is new with this version is built by the workers."""
    row = reader.connection.execute("SELECT to_regclass(%s)", [table_of(reader, p).as_string()]).fetchone()
    return row is not None and row[0] is not None


def all_of(conditions: Sequence[Condition]) -> tuple[Composable, tuple[Any, ...]]:
    """All of these conditions as one, and the values of its placeholders."""
    return sql.SQL(" AND ").join([c.clause for c in conditions]), tuple(v for c in conditions for v in c.values)


def rows_of(
    reader: Reader, p: Projection[Any], places: Places | None = None, conditions: Sequence[Condition] = ()
) -> tuple[Composable, tuple[Any, ...]]:
    """The rows of a read model that an answer may be made of (`key`, `row`, of stage 1 `stream`, too), to stand behind
    FROM, and the values of its placeholders. They are of the caller's space, seen by the caller (`visible`), of these
    places, and under these conditions."""
    where, values = all_of(
        [
            Condition(sql.SQL("space_id = %s"), (reader.space_id,)),
            *visible_to_caller(reader, p),
            *(Where(p).located(places) if places else ()),
            *conditions,
        ]
    )
    return sql.SQL("(SELECT * FROM {} WHERE {}) AS those").format(table_of(reader, p), where), values


def select(
    reader: Reader, p: Projection[Any], query: LiteralString, *values: object, places: Places | None = None,
    conditions: Sequence[Condition] = (), before: Sequence[object] = (), binary: bool = False, **parts: Composable,
) -> list[tuple[Any, ...]]:  # fmt: skip
    """What a query answers out of `{rows}`, which are those of `rows_of`. `before` and `values` are what its
    placeholders before and behind these stand for, `parts` what stands in its other braces."""
    rows, own = rows_of(reader, p, places, conditions)
    asked = sql.SQL(query).format(rows=rows, **parts)
    return reader.connection.execute(asked, [*before, *own, *values], binary=binary).fetchall()


def either(conditions: Sequence[Condition]) -> list[Condition]:
    """One of these conditions holds; nothing to ask where there are none."""
    if not conditions:
        return []
    clause = sql.SQL("({})").format(sql.SQL(" OR ").join([c.clause for c in conditions]))
    return [Condition(clause, tuple(value for c in conditions for value in c.values))]


def field_of(p: Projection[Any], name: str) -> Composable:
    """The expression of a row's field, as the indexes have it."""
    return sql.SQL(expression(p, name))


def day_of(p: Projection[Any], name: str, latest: Composable) -> Composable:
    """The day of UTC of a field that is a moment; of none after `latest`, which a clock may have put there."""
    micros = sql.SQL("least({}, {})").format(field_of(p, name), latest)
    return sql.SQL("(to_timestamp({} / 1000000) AT TIME ZONE 'UTC')::date").format(micros)


class Where(tuple[Condition, ...]):
    """Conditions on the rows of a read model, all of which hold. Each method gives them with one more; nothing more is
    asked where its value is None, its text empty, or its places are all."""

    _p: Projection[Any]

    def __new__(cls, p: Projection[Any], conditions: Iterable[Condition] = ()) -> Self:
        made = super().__new__(cls, conditions)
        made._p = p
        return made

    def also(self, *more: Condition) -> Self:
        return type(self)(self._p, (*self, *more))

    def _field(self, clause: LiteralString, name: str, value: object) -> Self:
        return self.also(Condition(sql.SQL(clause).format(field_of(self._p, name)), (value,)))

    def equal(self, name: str, value: object) -> Self:
        """The field is `value`."""
        return self if value is None else self._field("{} = %s", name, value)

    def one_of(self, name: str, values: Sequence[str]) -> Self:
        """The text field is one of these."""
        return self._field("{} = ANY(%s::text[])", name, list(values))

    def above(self, name: str, value: int) -> Self:
        """The field is more than `value`."""
        return self._field("{} > %s", name, value)

    def between(self, name: str, since: int | None, before: int | None) -> Self:
        """The field, in microseconds, is at or after `since` and before `before`."""
        found = self if since is None else self._field("{} >= %s", name, since)
        return found if before is None else found._field("{} < %s", name, before)

    def holding(self, name: str, text: str) -> Self:
        """The text field holds `text` somewhere, in any case."""
        return self._field("strpos(lower({}), lower(%s)) > 0", name, text) if text else self

    def of_no_other(self, member: str) -> Self:
        """No member of the team but that one (empty: none) said the claim alone, and no person confirmed it."""
        any_of = type(self)(self._p).one_of("said_by", [each for each in Provenance if each is not Provenance.MEMBER])
        return self.also(*either(any_of.equal("confirmed", True).equal("member", member or None)))

    def within(self, places: Places, *, or_everywhere: bool = False) -> Self:
        """The row's location is one of the project's; `or_everywhere` takes rows that hold everywhere too."""
        if places.locations is None:
            return self
        return self.one_of("location", [*places.locations, *([""] if or_everywhere else ())])

    def met_in(self, places: Places) -> Self:
        """One of the locations that the row lists is one of the project's."""
        if places.locations is None or "locations" not in self._p.row.__struct_fields__:
            return self
        clause = sql.SQL(f"EXISTS (SELECT {_LISTED.format('locations')} WHERE {_NAME} = ANY(%s::text[]))")
        return self.also(Condition(clause, (list(places.locations),)))

    def located(self, places: Places) -> Self:
        """The row is of one of the project's locations: was met there, where it lists several and is of none."""
        return self.within(places) if "location" in self._p.row.__struct_fields__ else self.met_in(places)

    def fullest(self, reader: Reader, places: Places, ends: str) -> Self:
        """Of rows that copies of a session, forks and resumed ones have in common (their field `once`), the one that
        goes furthest by the field `ends`, of those at these places that the caller may see: they count once."""
        rows, values = rows_of(reader, self._p, places)
        clause = sql.SQL(
            "NOT EXISTS (SELECT FROM (SELECT key AS of_key, {once} AS of_once, coalesce({ends}, 0) AS until"
            " FROM {rows}) AS copied WHERE of_once <> '' AND of_once = {once}"
            " AND (until, of_key) > (coalesce({ends}, 0), key))"
        ).format(once=field_of(self._p, "once"), ends=field_of(self._p, ends), rows=rows)
        return self.also(Condition(clause, values))


def visible_to_caller(reader: Reader, p: Projection[Any]) -> list[Condition]:
    """The caller may see the row, as `memctl.api.reading.places.visible` says: asked of the database, so that what
    others did takes no room in a page and stands in no count."""
    limits = limits_of(reader)
    if limits is None or p.row in OF_NO_PLACE:
        return []
    fields, allowed = p.row.__struct_fields__, list(limits.locations)
    if "location" not in fields and "locations" not in fields:
        return [Condition(sql.SQL("false"))]
    listed = [f"SELECT {_NAME} {_LISTED.format(name)}" for name in ("locations", "elsewhere") if name in fields]
    if not listed:
        return [Condition(sql.SQL("row->>'location' <> '' AND row->>'location' = ANY(%s::text[])"), (allowed,))]
    named = sql.SQL(" UNION ALL ".join(["SELECT row->>'location'", *listed]))
    clause = sql.SQL(
        "(SELECT count(DISTINCT at) BETWEEN 1 AND %s AND bool_and(at = ANY(%s::text[]))"
        " FROM ({}) AS named(at) WHERE at <> '')"
    ).format(named)
    return [Condition(clause, (LOCATIONS - 1, allowed))]


def page(
    reader: Reader,
    p: Projection[R],
    order: str,
    conditions: Sequence[Condition],
    *,
    limit: int,
    cursor: str | None = None,
    longest: int = LONGEST_PAGE,
) -> tuple[list[Keyed[R]], str | None]:
    """Rows by the field `order` (a whole number, 0 where a row has none), highest first, and the next page's cursor; up
    to `longest`, whatever `limit` says.

    What a limited caller may not see is left out, and what another member said of themselves, which no field shows: a
    page may be shorter than asked. Raises: BadCursor.
    """
    limit, by = max(1, min(limit, longest)), _ordered_by(p, order)
    before = [Condition(sql.SQL("({}, key) < (%s, %s)").format(by), _opened(cursor))] if cursor is not None else []
    query: LiteralString = "SELECT key, row, {by} FROM {rows} ORDER BY {by} DESC, key DESC LIMIT %s"
    found = select(reader, p, query, limit + 1, conditions=[*before, *conditions], by=by, binary=True)
    after = None
    if len(found) > limit:
        key, _, value = found[limit - 1]
        after = base64.urlsafe_b64encode(msgspec.json.encode([value, key])).decode().rstrip("=")
    rows_of_page = [Keyed(key, decode_row(p, row)) for key, row, _ in found[:limit]]
    return [each for each in rows_of_page if not is_anothers(reader, each.row)], after


def earlier(p: Projection[Any], order: str, cursor: str | None) -> list[Condition]:
    """The row stands on a page before the one that this cursor of `page` begins; None begins the first. Raises:
    BadCursor."""
    last = _opened(cursor) if cursor is not None else (2**63 - 1, "")
    return [Condition(sql.SQL("({}, key) >= (%s, %s)").format(_ordered_by(p, order)), last)]


def _ordered_by(p: Projection[Any], order: str) -> Composable:
    indexed = any(order in fields for fields in p.indexes)
    return field_of(p, order) if indexed else sql.SQL("coalesce({}, 0)").format(field_of(p, order))


def total(reader: Reader, p: Projection[Any], conditions: Sequence[Condition] = ()) -> int:
    """How many rows there are under these conditions, of those that the caller may see; what other members said of
    themselves, which `page` leaves out, is among them."""
    return int(select(reader, p, "SELECT count(*) FROM {rows}", conditions=conditions)[0][0])


def one(reader: Reader, p: Projection[R], key: str) -> R | None:
    """The row under exactly that key."""
    return several(reader, p, [key]).get(key)


def several(reader: Reader, p: Projection[R], keys: Sequence[str]) -> dict[str, R]:
    """Rows by key; absent ones, and what a limited caller may not see, are left out."""
    return {key: row for key, row in rows_unseen(reader, p, keys).items() if visible(reader, row)}


def rows_unseen(reader: Reader, p: Projection[R], keys: Sequence[str]) -> dict[str, R]:
    """Rows by key whether or not the caller may see them: for deciding what it may do, never for an answer."""
    # Postgres has no NUL in its texts, and so no such key.
    wanted = [(reader.space_id, key) for key in dict.fromkeys(keys) if "\0" not in key]
    generation = reader.live.of(p.stage)
    found = load(reader.connection, p, generation, wanted)
    return {key: row for (_, key), row in found.items()}


def keys_among(reader: Reader, p: Projection[Any], keys: Sequence[str]) -> set[str]:
    """Those of the keys under which there is a row that the caller may see."""
    these = Condition(sql.SQL("key = ANY(%s::text[])"), (list(keys),))
    return {key for (key,) in select(reader, p, "SELECT key FROM {rows}", conditions=[these])}


def keys_from(reader: Reader, p: Projection[Any], prefix: str, limit: int) -> list[str]:
    """Keys that begin so, in order, of what the caller may see."""
    if not prefix or "\0" in prefix:
        return []
    # Keys are compared by code point (COLLATE "C"), so all that begin so lie before the prefix's successor.
    among = Condition(sql.SQL("key >= %s AND key < %s"), (prefix, prefix + "\U0010ffff"))
    found = select(reader, p, "SELECT key FROM {rows} ORDER BY key LIMIT %s", limit, conditions=[among])
    keys = [key for (key,) in found]
    seen = several(reader, p, keys) if reader.member else keys
    return [key for key in keys if key in seen]


def _opened(cursor: str) -> tuple[int, str]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        value, key = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=tuple[int, str])
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise BadCursor from None
    if not -(2**63) <= value < 2**63 or "\0" in key:
        raise BadCursor
    return value, key
