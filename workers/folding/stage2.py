"""Stage 2 at work: facts, recorded events and changed rows are routed, folded and written with one new offset.

Folds do not depend on the order of what they are given, so a fact seen for the first time is simply folded in. A
fact that was revised or retracted makes the rows it went to be folded again: from what they were before it came, where
that is at hand (`newest_sources`), else from everything that was routed to them.

A row that cannot be folded is parked: it stands as before the first that is at fault, and what comes for it is routed
but not folded until it is tried again, the one at fault changes, or is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import msgspec

from memctl.domain.events.event import Position
from memctl.domain.events.facts import FACT_TYPES, Fact
from memctl.infra.database import Connection
from memctl.infra.log.reach import Reach, Section, at_end, next_section
from memctl.infra.readmodels import dead_letters, facts, generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.dead_letters import DeadLetter, Fault, LeftOut, NoProgress, Skip, Target
from memctl.infra.readmodels.facts import FactChange, Route, RowChange, Share, SourceKey
from memctl.infra.readmodels.generations import Lease
from memctl.infra.readmodels.rows import RowKey
from memctl.projections import layers
from memctl.projections.kernel import Changed, Projection
from memctl.projections.layers import Slice
from memctl.workers.folding.dealing import keys_or_none
from memctl.workers.folding.newest_sources import NewestSources, Parted
from memctl.workers.folding.poison import DeadLetterIndex, Parking, fault_of, first_fault, is_content_fault, keys_of
from memctl.workers.folding.row_inputs import RowInputs, Rows
from memctl.workers.folding.sources import (
    Item,
    Register,
    SourceItem,
    of_fact,
    parts,
    recorded_sources,
    row_source,
    upstream_of,
)
from memctl.workers.watchdog import progress_board as progress
from memctl.workers.watchdog.progress_board import ThreadWork

KEPT_ROWS = 20_000
"""Rows a worker keeps in memory across batches, over all projections."""

KEPT_BYTES = 32 << 20
"""Bytes of their JSON: as objects they take some four times as much."""


class Stage2:
    """Drains stage 2, keeping recent rows for as long as nobody else moves the offset."""

    def __init__(
        self,
        batch: int = 4000,
        *,
        parks: bool = False,
        endless: Mapping[Target, Fault] = MappingProxyType({}),
        shares: int = 1,
    ) -> None:
        """`parks`: a row that cannot be folded is parked, and the others go on; else the batch fails. `endless`: what
        is known not to come to an end, and over which source. `shares`: how many such have one's memory together."""
        self._batch = batch
        self._parks = parks
        self._endless = endless
        self._slice = Slice((), frozenset(), 0, False)
        self._register = Register(())
        self._rows = Rows()
        self._shares = shares
        self._newest = NewestSources(shares)
        self._letters: DeadLetterIndex | None = None
        """What is parked, for as long as nobody else can have changed it."""
        self._seen: tuple[int, int, Reach, int] | None = None

    def drain_batch(self, connection: Connection, lease: Lease, facts_of: int, upto: Position | Reach) -> Lease:
        """Fold one batch of the section of changes that is next, up to a position of each space that every shard before
        this one's layer has reached.

        Raises: LeaseLost, CannotFold; then nothing was written.
        """
        section = next_section(lease.reach, upto if isinstance(upto, Reach) else Reach(upto)) or at_end(lease.reach)
        if (
            self._seen is None
            or self._seen[:3] != (lease.generation, lease.shard, lease.reach)
            or (lease.epoch - self._seen[3] not in (0, 1))
        ):
            self._forget()
        self._seen = None
        self._deal(lease)
        progress.slot().over(ThreadWork("stage 2", str(lease.shard), generation=lease.generation))
        if self._slice.whole:
            section = section._replace(upto=facts.batch_end(connection, facts_of, section, self._batch))
            changes, changed = facts.read_changes(connection, facts_of, section), list[tuple[str, RowKey]]()
        else:
            section, changes, changed = self._dealt(connection, lease.generation, facts_of, section)
        recorded = recorded_sources(connection, self._register.by_payload, section)
        to = section.reached(lease.reach, section.upto)

        def work(batch: _Batch) -> None:
            batch.fold([*map(of_fact, changes), *recorded], changed)

        lease = self._commit(connection, lease, facts_of, section, to, work)
        if not self._slice.whole:
            self._rows.keep(self._slice.names)
            self._letters = None
            if lease.shard == lease.shards - 1:
                facts.forget_gone(connection, lease.generation, generations.lowest_offset(connection, lease.generation))
        self._rows.shrink(KEPT_ROWS // self._shares, KEPT_BYTES // self._shares)
        self._seen = (lease.generation, lease.shard, lease.reach, lease.epoch)
        return lease

    def _deal(self, lease: Lease) -> None:
        found = layers.slice_of(lease.shard, lease.shards)
        if found is not self._slice:
            self._slice, self._register = found, Register(found.projections)

    def _dealt(
        self, connection: Connection, generation: int, facts_of: int, section: Section
    ) -> tuple[Section, list[FactChange], list[tuple[str, RowKey]]]:
        """How far a batch goes that this shard reads, and the facts and rows of others in it."""
        types = tuple(_TAGS[fact] for fact in self._register.by_fact)
        names = tuple(
            {self._register.makers[row].name for p in self._slice.projections if not p.same_key for row in p.upstream}
        )
        mask = self._slice.mask
        found, end = facts.read_dealt(connection, facts_of, section, self._batch, Share(types, mask))
        section = section._replace(upto=end)
        rows, end = facts.read_changed(connection, generation, section, self._batch, Share(names, mask))
        section = section._replace(upto=end)
        return section, [change for at, change in found if at <= end], [row for at, row in rows if at <= end]

    def refold(
        self,
        connection: Connection,
        leases: Sequence[Lease],
        facts_of: int,
        rows: Iterable[tuple[str, RowKey]] = (),
        *,
        changes: Iterable[SourceItem] = (),
        recorded: Callable[[Reach], Iterable[SourceItem]] = lambda reach: (),
        letters: Iterable[DeadLetter] = (),
    ) -> list[Lease]:
        """Fold rows (projection, and key) again from all that was routed to them, and all that follows from it.

        `leases` are those of all shards, in order. `changes` of facts, and recorded events as they stand for who has
        read so far, that these offsets have passed are folded in too, and what was parked is tried again. The offsets
        stay. Raises: LeaseLost, CannotFold; then nothing was written.
        """
        wanted, parked, given = list(rows), list(letters), list(changes)
        self._seen = None
        held: list[Lease] = []
        changed: list[tuple[str, RowKey]] = []
        for lease in leases:
            self._forget()
            self._deal(lease)
            here = self._share(wanted, [*given, *recorded(lease.reach)], parked, changed)
            if self._slice.whole or any(here):
                lease, more = self._refold_shard(connection, lease, facts_of, here)
                changed += more
            held.append(lease)
        if len(held) > 1 and changed:
            facts.forget_changed(connection, held[0].generation, changed)
        return held

    def _share(
        self,
        rows: Iterable[tuple[str, RowKey]],
        changes: Iterable[SourceItem],
        letters: Iterable[DeadLetter],
        changed: Iterable[tuple[str, RowKey]],
    ) -> _Again:
        """What of it one shard is to fold again."""
        mine, register = self._slice, self._register
        return _Again(
            [(name, key) for name, key in rows if mine.owns(name, key[1])],
            [each for each in changes if each.item is None or register.takers(each.item)],
            [each for each in letters if self._concerns(each.target)],
            [row for row in changed if any(p.name in mine.names for p in register.takers_of[row[0]])],
        )

    def _concerns(self, target: Target) -> bool:
        """Whether a target is this shard's; that a source cannot be routed concerns each that has the read model."""
        mine = self._slice
        return target.projection in mine.names and (target.key is None or mine.owns(target.projection, target.key))

    def _refold_shard(
        self, connection: Connection, lease: Lease, facts_of: int, again: _Again
    ) -> tuple[Lease, list[tuple[str, RowKey]]]:
        """One shard's share of it. Returns also the rows that others are folded from and that are different now."""
        spaces = {*(key[0] for _, key in (*again.rows, *again.changed)), *(each.key[0] for each in again.changes)}
        spaces.update(letter.target.space_id for letter in again.letters)
        # Each that lags by itself, as far as it was read, and all the others together.
        lag = sorted(spaces & lease.held.keys())
        sections = [Section(at, at, space) for space in lag for at in (lease.held[space],)]
        if len(lag) < len(spaces) or not spaces:
            sections.append(at_end(lease.reach))
        changed: list[tuple[str, RowKey]] = []
        for of in sections:
            tried: list[_Batch] = []

            def work(batch: _Batch, of: Section = of, tried: list[_Batch] = tried) -> None:
                tried[:] = [batch]
                batch.refold(again.within(of))

            lease = self._commit(connection, lease, facts_of, of, lease.reach, work)
            changed += tried[0].changed_upstream()
        return lease, changed

    def _writes(self, fault: Fault) -> bool:
        """Whether a letter is this shard's. Where keys are the same, no other meets a row that cannot be routed."""
        target, key = fault.target, fault.target.key
        if key is None and self._register.by_name[target.projection].same_key:
            key = fault.upstream_key
        return self._slice.owns(target.projection, str(target.source) if key is None else key)

    def _forget(self) -> None:
        self._rows.clear()
        self._newest.clear()
        self._letters = None

    def _commit(
        self,
        connection: Connection,
        lease: Lease,
        facts_of: int,
        section: Section,
        to: Reach,
        work: Callable[[_Batch], None],
    ) -> Lease:
        for careful in (False, True):
            try:
                skips = dead_letters.skips(connection, section.upto)
                with connection.transaction():
                    moved = generations.advance(connection, lease, to)
                    if self._letters is None:
                        letters = dead_letters.parked(connection, lease.generation)
                        mine = [each for each in letters if each.target.key is None or self._concerns(each.target)]
                        self._letters = DeadLetterIndex(mine)
                    parking = Parking(
                        connection, lease.generation, self._letters, parks=self._parks, before=section.after
                    )
                    parking.endless = self._endless
                    parking.writes = self._writes
                    made = (self._slice, self._register, self._rows, self._newest, parking, skips, careful)
                    work(_Batch(connection, lease.generation, str(lease.shard), section, facts_of, *made))
                    parking.save()
                if not parking.untouched:
                    self._letters = None
                return moved
            except BaseException as problem:
                self._forget()
                # Some row or route cannot be stored: then each is tried by itself, to see which.
                if careful or not is_content_fault(problem):
                    raise
        raise AssertionError("unreachable")


class _Again(NamedTuple):
    """What one shard is to fold again: see `Stage2.refold`. `changed`: rows that its own are folded from."""

    rows: Sequence[tuple[str, RowKey]]
    changes: Sequence[SourceItem]
    letters: Sequence[DeadLetter]
    changed: Sequence[tuple[str, RowKey]]

    def within(self, of: Section) -> _Again:
        return _Again(
            [row for row in self.rows if of.holds(row[1][0])],
            [each for each in self.changes if of.holds(each.key[0])],
            [letter for letter in self.letters if of.holds(letter.target.space_id)],
            [row for row in self.changed if of.holds(row[1][0])],
        )


_TAGS: dict[type[Fact], str] = {cls: tag for tag, cls in FACT_TYPES.items()}


class _Batch:
    """One transaction of stage 2. `careful`: whether Postgres takes a row or a route is tried for each by itself."""

    def __init__(
        self,
        connection: Connection,
        generation: int,
        shard: str,
        section: Section,
        facts_of: int,
        slice: Slice,
        register: Register,
        rows: Rows,
        newest: NewestSources,
        parking: Parking,
        skips: Sequence[Skip],
        careful: bool,
    ) -> None:
        self._connection = connection
        self._generation = generation
        self._end = section.upto
        self._slice = slice
        self._register = register
        self._rows = rows
        self._newest = newest
        self._parking = parking
        self._left_out = LeftOut(skips)
        self._skips = [skip for skip in skips if section.after < skip.position and section.holds(skip.source[0])]
        """Those that come with this batch."""
        self._careful = careful
        self._refolding = False
        """Rows that are parked are folded again, too: some of what they hold may be forgotten now."""
        self._inputs = RowInputs(connection, generation, facts_of, section.upto, register, rows, keeps=True)
        self._routes = self._inputs.routes
        self._feeds: dict[str, dict[RowKey, dict[SourceKey, Item]]] = defaultdict(lambda: defaultdict(dict))
        """What is new to rows."""
        self._revised: dict[str, dict[RowKey, dict[SourceKey, Item | None]]] = defaultdict(lambda: defaultdict(dict))
        """What went to rows before and is different now, or goes there no more (None)."""
        self._refolds: dict[str, set[RowKey]] = defaultdict(set)
        """Rows to fold again from all that was routed to them."""
        self._changed: dict[str, dict[RowKey, Any]] = defaultdict(dict)
        self._former: dict[str, dict[RowKey, Any]] = defaultdict(dict)
        """Rows of this shard that others are folded from, as they were before they changed."""
        self._before: dict[SourceKey, Sequence[str]] = {}
        """Where sources went before, of the rows of this shard."""
        self._slot, self._step = progress.slot(), ThreadWork("stage 2", shard, generation=generation)
        self._piece = 0

    def changed_upstream(self) -> list[tuple[str, RowKey]]:
        """Rows of this shard that others are folded from and that are different now."""
        return [(name, key) for name, changed in self._former.items() for key in changed]

    def fold(self, sources: Sequence[SourceItem], changed: Iterable[tuple[str, RowKey]] = ()) -> None:
        """`changed`: rows of other shards that those of this one are folded from."""
        self._inputs.items = items = {source.key: source.item for source in sources}
        self._read(changed)
        self._try_again(items.keys())
        self._route(sources)
        self._leave_out()
        for p in self._register.projections:
            for row_type in p.upstream:
                self._feed(p, self._register.makers[row_type])
            self._fold_projection(p)
        facts.save_routes(self._connection, self._generation, self._routes, None if self._slice.whole else self._before)
        if not self._slice.whole:
            self._note_changed()
        readmodels.queue_points(self._connection, self._generation, self._changed.get(readmodels.OUTBOX_OF, {}).keys())

    def _read(self, changed: Iterable[tuple[str, RowKey]]) -> None:
        """Have rows of other shards at hand, as they stand now."""
        by_name: dict[str, list[RowKey]] = defaultdict(list)
        for name, key in changed:
            by_name[name].append(key)
        for name, keys in by_name.items():
            self._inputs.load(self._register.by_name[name], keys)
            self._changed[name].update({key: self._rows.get((name, key))[0] for key in keys})

    def _note_changed(self) -> None:
        """Note the rows that others are folded from and that are different now, with where they go and went."""
        noted: list[RowChange] = []
        for name, former in self._former.items():
            ids = [(*key, row_source(name, key)) for key in former]
            masks: list[int | None] = [0] * len(ids)
            for p in self._register.takers_of[name]:
                self._begin("upstream", f"{p.name}:{name}", ids)
                for number, (space_id, key, source) in enumerate(ids):
                    self._slot.piece(number)
                    rows = (former[space_id, key], self._changed[name][space_id, key])
                    mask = masks[number]
                    if Target(p.name, space_id, None, source[1]) in self._parking:
                        mask = None
                    for row in rows:
                        keys = () if row is None else keys_or_none(p, Changed(key, row))
                        mask = None if mask is None or keys is None else mask | layers.mask_of(keys)
                    masks[number] = mask
                self._slot.over(self._step)
            noted += [
                RowChange(space_id, name, key, self._changed[name][space_id, key] is None, mask)
                for (space_id, key, _), mask in zip(ids, masks, strict=True)
            ]
        facts.note_changed(self._connection, self._generation, self._end, noted)

    def _routes_before(self, sources: Sequence[SourceKey]) -> dict[SourceKey, Route]:
        """Where sources went so far, of the rows of this shard."""
        found = facts.read_routes(self._connection, self._generation, sources, self._slice.mask)
        if self._slice.whole:
            return found
        for source, route in found.items():
            own = tuple(target for target in route.keys if self._slice.owns(*parts(target)))
            found[source] = Route(own, route.upstream, route.upstream_key)
            self._before.setdefault(source, own)
        return found

    def refold(self, again: _Again) -> None:
        self._refolding = True
        unrouted: list[SourceKey] = []
        changed = list(again.changed)
        for letter in again.letters:
            target, fault = letter.target, letter.fault
            self._parking.try_again(target)
            if target.key is not None:
                self._refolds[target.projection].add((target.space_id, target.key))
            elif fault.upstream is not None and fault.upstream_key is not None:
                changed.append((fault.upstream, (target.space_id, fault.upstream_key)))
            else:
                unrouted.append((target.space_id, fault.source))
        for name, key in again.rows:
            self._parking.try_again(Target(name, *key))
            self._refolds[name].add(key)
        found = self._inputs.sources({source: Route(()) for source in unrouted})
        sources = [*again.changes, *(SourceItem(source, cast(Fact, found.get(source))) for source in unrouted)]
        self.fold(sources, changed)

    def _try_again(self, sources: Collection[SourceKey], by: Projection[Any] | None = None) -> None:
        """What was parked over one of these sources, which have changed, is folded again."""
        for target in self._parking.over(sources):
            if by is None or by.name == target.projection:
                self._parking.try_again(target)
                if target.key is not None:
                    self._refolds[target.projection].add((target.space_id, target.key))

    def _leave_out(self) -> None:
        """Take sources that are dropped now off the rows that they went to."""
        known = self._routes_before([skip.source for skip in self._skips if skip.source not in self._routes])
        for skip in self._skips:
            name, space_id = skip.projection, skip.source[0]
            if name not in self._slice.names:
                continue
            self._parking.try_again(Target(name, space_id, skip.key, skip.source[1] if skip.key is None else None))
            if skip.key is not None and self._slice.owns(name, skip.key):
                self._refolds[name].add((space_id, skip.key))
            route = self._routes.get(skip.source) or known.get(skip.source)
            if route is None:
                continue
            gone = [t for t in route.keys if t.startswith(f"{name}:") and (skip.source, *parts(t)) in self._left_out]
            self._refolds[name].update((space_id, parts(target)[1]) for target in gone)
            kept = tuple(target for target in route.keys if target not in gone)
            self._routes[skip.source] = Route(kept, route.upstream, route.upstream_key)

    def _route(self, sources: Sequence[SourceItem]) -> None:
        before = self._routes_before([s.key for s in sources])
        self._begin("source", "", [s.key for s in sources], len(self._register.places))
        for number, source in enumerate(sources):
            self._piece = number * len(self._register.places)
            was = before[source.key].keys if source.key in before else ()
            now = () if source.item is None else self._targets(source)
            space_id = source.key[0]
            for target in was:
                name, key = parts(target)
                self._revised[name][space_id, key][source.key] = source.item if target in now else None
            for target in now:
                if target not in was:
                    name, key = parts(target)
                    self._feeds[name][space_id, key][source.key] = cast(Item, source.item)
            if was != now:
                self._routes[source.key] = Route(now)
        self._slot.over(self._step)

    def _targets(self, source: SourceItem) -> tuple[str, ...]:
        """Every `projection:key` of this shard that a fact or a recorded event goes to."""
        found: list[str] = []
        if source.dealt is not None and not (self._careful or self._left_out.rows or self._parking.unrouted):
            for slot, targets in source.dealt.items():
                if self._slice.mask >> slot & 1:
                    found += [target for target in targets if parts(target)[0] in self._slice.names]
            return tuple(found)
        assert source.item is not None
        for p in self._register.takers(source.item):
            self._slot.piece(self._piece + self._register.places[p.name])
            found += (f"{p.name}:{key}" for key in self._keys(p, source.key, source.item))
        return tuple(found)

    def _begin(self, kind: str, name: str, pieces: Sequence[Any], steps: int = 1) -> None:
        """Show whoever watches what is folded from now on."""
        self._slot.fold(ThreadWork(kind, name, pieces, self._generation, self._end, steps))

    def _keys(
        self, p: Projection[Any], source: SourceKey, item: Item, upstream: tuple[str, str] | None = None
    ) -> Sequence[str]:
        """The rows of a projection that a source goes to; none where that is what cannot be computed."""
        target = Target(p.name, source[0], None, source[1])
        if target in self._parking:
            self._parking.wait(target, 1)
            return ()
        if (endless := self._parking.endless.get(target)) is not None:
            self._parking.fail(endless, NoProgress(0, endless.place))
            return ()
        try:
            keys = keys_of(p, source, item, self._left_out)
            if not self._slice.whole:
                keys = tuple(key for key in keys if self._slice.owns(p.name, key))
            if self._careful and keys:
                route = Route(tuple(f"{p.name}:{key}" for key in keys), *(upstream or (None, None)))
                with self._connection.transaction(force_rollback=True):
                    facts.save_routes(self._connection, self._generation, {source: route})
            return keys
        except Exception as problem:
            if not is_content_fault(problem):
                raise
            self._parking.fail(fault_of(target, source, self._end, problem, upstream), problem)
            return ()

    def _feed(self, p: Projection[Any], upstream: Projection[Any]) -> None:
        """Hand the upstream rows that this batch changed to a projection that reads them."""
        changed = self._changed.get(upstream.name)
        if not changed:
            return
        ids = {key: row_source(upstream.name, key) for key in changed}
        self._try_again(set(ids.values()), p)
        missing = [ids[key] for key in changed if ids[key] not in self._routes]
        before = self._routes_before(missing)
        prefix = f"{p.name}:"
        self._begin("upstream", f"{p.name}:{upstream.name}", [(*key, ids[key]) for key in changed])
        for number, (key, row) in enumerate(changed.items()):
            self._slot.piece(number)
            source = ids[key]
            known = self._routes.get(source) or before.get(source) or Route((), upstream.name, key[1])
            was = [target for target in known.keys if target.startswith(prefix)]
            change: Changed[Any] = Changed(key[1], row)
            keys = () if row is None else self._keys(p, source, change, (upstream.name, key[1]))
            now = [prefix + k for k in keys]
            # A row that went there before is revised or retracted, as a fact is: what it went to is folded again.
            for target in was:
                self._revised[p.name][key[0], target[len(prefix) :]][source] = change if target in now else None
            for target in now:
                if target not in was:
                    self._feeds[p.name][key[0], target[len(prefix) :]][source] = change
            if was != now:
                others = [target for target in known.keys if not target.startswith(prefix)]
                self._routes[source] = Route((*others, *now), upstream.name, key[1])
        self._slot.over(self._step)

    def _fold_projection(self, p: Projection[Any]) -> None:
        feeds, revised = self._feeds.pop(p.name, {}), self._revised.pop(p.name, {})
        refolds = self._refolds.pop(p.name, set())
        self._wait(p, feeds, revised, refolds)
        touched = list(dict.fromkeys((*refolds, *revised, *feeds)))
        if not touched:
            return
        self._inputs.load(p, touched)
        # As they are now: what this batch holds apart may push others out.
        parted = {key: found for key, changes in revised.items() if (found := self._parted(p, key, changes))}
        whole = {key for key in touched if key in refolds or (key in revised and key not in parted)}
        inputs = self._inputs.of(p, whole)
        out: dict[RowKey, bytes | None] = {}
        noted = not self._slice.whole and bool(self._register.takers_of[p.name])
        self._begin("row", p.name, touched)
        for number, key in enumerate(touched):
            row, before = self._rows.get((p.name, key))
            former = row
            new, changes = feeds.get(key, {}), revised.get(key, {})
            members = inputs.get(key, []) if key in whole else None
            self._slot.piece(number, len(new if members is None else members))
            endless = self._parking.endless.get(Target(p.name, *key))
            try:
                if endless is not None and any(source[1] == endless.source for source, _ in members or ()):
                    row, after = self._park_at(p, key, members or (), endless)
                elif members is not None:
                    row, after = self._folded_again(p, key, members, {**changes, **new})
                elif key in parted:
                    row, after = self._folded_apart(p, key, parted[key], {**changes, **new})
                else:
                    self._newest.grow(p.name, key, row, new)
                    row, after = self._folded(p, key, row, new.values())
            except Exception as problem:
                if not is_content_fault(problem):
                    raise
                row, after = self._park(p, key, problem)
            if after is None:
                self._rows.drop((p.name, key))
            else:
                self._rows.put((p.name, key), row, after)
                self._newest.weigh(p.name, key, len(after))
            if after != before:
                out[key] = after
                self._changed[p.name][key] = row
                if noted:
                    self._former[p.name][key] = former
        self._slot.over(self._step)
        readmodels.save(self._connection, p, self._generation, out)

    def _parted(self, p: Projection[Any], key: RowKey, changes: Mapping[SourceKey, Item | None]) -> Parted | None:
        """A row in two parts, where all that was revised of it is among its newest sources."""
        held = self._newest.get(p.name, key)
        apart = held is not None and changes.keys() <= held.newest.keys() and not self._parking.endless
        return held if apart else None

    def _folded_apart(
        self, p: Projection[Any], key: RowKey, held: Parted, changes: Mapping[SourceKey, Item | None]
    ) -> tuple[Any, bytes | None]:
        """The row with what changed of its newest sources and what is new to it."""
        parted = Parted(held.rest, held.after(changes))
        self._newest.put(p.name, key, parted)
        return self._folded(p, key, parted.rest, parted.newest.values())

    def _folded_again(
        self,
        p: Projection[Any],
        key: RowKey,
        members: Sequence[tuple[SourceKey, Item]],
        changes: Mapping[SourceKey, Item | None],
    ) -> tuple[Any, bytes | None]:
        """The row from all that was routed to it; what changed comes last, and is held apart from then on."""
        held = self._newest.get(p.name, key)
        apart = {*changes, *(held.newest if held is not None else ())}
        newest = {source: item for source, item in members if source in apart}
        rest = None
        for item in _from_both_ends([item for source, item in members if source not in apart]):
            rest = p(rest, item, key[1])
        self._newest.put(p.name, key, Parted(rest, newest))
        return self._folded(p, key, rest, newest.values())

    def _park_at(
        self, p: Projection[Any], key: RowKey, inputs: Sequence[tuple[SourceKey, Item]], fault: Fault
    ) -> tuple[Any, bytes | None]:
        """Park a row at the source that it is known not to end with; it stands as before that one."""
        self._parking.fail(fault, NoProgress(0, fault.place))
        self._newest.drop(p.name, key)
        index = next(n for n, (source, _) in enumerate(inputs) if source[1] == fault.source)
        return self._folded(p, key, None, (item for _, item in inputs[:index]))

    def _wait(
        self,
        p: Projection[Any],
        feeds: dict[RowKey, dict[SourceKey, Item]],
        revised: dict[RowKey, dict[SourceKey, Item | None]],
        refolds: set[RowKey],
    ) -> None:
        """Set aside what came for rows that are parked: their routes are kept, and show it when they are refolded."""
        for target in self._parking.rows(p.name, feeds.keys() | revised.keys() | refolds):
            key = (target.space_id, cast(str, target.key))
            again = key in refolds or key in revised
            if self._refolding and again:
                self._parking.try_again(target)
                refolds.add(key)
                continue
            self._parking.wait(target, len(feeds.pop(key, ())) + again)
            revised.pop(key, None)
            refolds.discard(key)

    def _folded(self, p: Projection[Any], key: RowKey, row: Any, items: Iterable[Item]) -> tuple[Any, bytes | None]:
        """The row once these are folded in, and its JSON. Raises: TooLongForAnIndex, or whatever the fold raises."""
        for item in items:
            row = p(row, item, key[1])
        if row is not None:
            p.check(row)
        after = None if row is None else msgspec.json.encode(row)
        if self._careful:
            with self._connection.transaction(force_rollback=True):
                readmodels.save(self._connection, p, self._generation, {key: after})
        return row, after

    def _park(self, p: Projection[Any], key: RowKey, problem: Exception) -> tuple[Any, bytes | None]:
        """Park a row that cannot be folded: it stands as before the first that is at fault, in order of time."""
        self._newest.drop(p.name, key)
        inputs = self._inputs.of(p, {key}).get(key, [])

        def folded(count: int) -> tuple[Any, bytes | None]:
            return self._folded(p, key, None, (item for _, item in inputs[:count]))

        index, cause = first_fault(len(inputs), folded)
        source, item = inputs[index]
        upstream = upstream_of(self._register, p, source, item)
        fault = fault_of(Target(p.name, *key), source, self._end, cause, upstream, len(inputs) - index - 1)
        self._parking.fail(fault, problem)
        return folded(index)


def _from_both_ends(items: Sequence[Item]) -> list[Item]:
    """The newest, the oldest, the second newest and so on: rows keep some of each, and pass over what lies between."""
    half = len(items) // 2
    pairs = zip(reversed(items[half:]), items[:half], strict=False)
    return [*chain.from_iterable(pairs), *items[half : len(items) - half]]
