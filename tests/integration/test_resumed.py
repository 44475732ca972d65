"""A session that goes on in another file begins there with a copy of its lines: what it holds counts once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from doors import Door, door_at
from events import observed

from memctl.api.queries.explain import explain
from memctl.api.queries.figures import by_day
from memctl.api.queries.project import project_page
from memctl.api.queries.stats import totals_of
from memctl.api.queries.work import episodes
from memctl.api.reading import models
from memctl.api.reading.pages import page
from memctl.api.reading.places import Places, projects_of
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import NoticeReceived, PromptSubmitted, ResponseReceived
from memctl.infra.log.append import append
from memctl.infra.redaction import prepare

CRM = "/work/crm"
HERE = Places("crm", "here", (CRM,))
NOW = datetime(2026, 6, 1, tzinfo=UTC)
COPIED = (
    ("Key duplicates of the contact list on the lowercased email.", "Done: merge_records keys on it, tests pass."),
    ("Always run the linter with make lint-all, never by its own name.", "Noted: make lint-all it is, always."),
)
"""Prompts and answers that a resumed session repeats."""


door = door_at(CRM)


def session(name: str, turns: tuple[tuple[str, str], ...], own: str = "", first: int = 0) -> list[NewEvent]:
    """What `own` begins is a line of this session alone. One prompt waited in the client's queue: it has no id."""
    said: list[Any] = []
    for number, (prompt, answered) in enumerate(turns, first):
        said += [
            PromptSubmitted(line=f"{own}{number}a", text=prompt),
            ResponseReceived(line=f"{own}{number}b", text=answered, message=f"m{own}{number}", tokens_out=100),
            NoticeReceived(line=f"#{own}{number}c", kind="queued-prompt", text=f"Then look at the page {own}{number}."),
            NoticeReceived(line=f"#{own}{number}d", kind="queue-taken"),
            ResponseReceived(line=f"{own}{number}e", text="It is so.", message=f"q{own}{number}", tokens_out=10),
        ]
    return [
        prepare(observed(payload, session=name, at=300 * first + 30 * number, location=CRM))
        for number, payload in enumerate(said)
    ]


@pytest.fixture
def resumed(door: Door) -> Door:
    append(door.connection, 1, session("one", COPIED))
    went_on = (("Translate the invoice template of the billing page into French.", "Done, it stands beside it."),)
    append(door.connection, 1, session("two", COPIED) + session("two", went_on, own="t", first=2))
    return door


def test_tokens_and_counts_of_copied_lines_count_once(resumed: Door) -> None:
    reader = resumed.known()
    totals = totals_of(reader, HERE)
    assert (totals["prompts"], totals["tokens_out"]) == (6, 330)
    assert totals["sessions_opened"] == 2
    (day,) = by_day(reader, HERE).values()
    assert (day["prompts"], day["tokens_out"]) == (6, 330)


def test_work_of_copied_lines_is_listed_and_counted_once(resumed: Door) -> None:
    reader = resumed.known()
    work = [each.description for each in episodes(reader, HERE).items]
    assert work == sorted(set(work), key=work.index)
    (project,) = projects_of(reader).all
    ended = sum(count for name, count in totals_of(reader, HERE).items() if name in ("episodes_succeeded",
        "episodes_failed", "episodes_partial", "episodes_unknown"))  # fmt: skip
    assert ended == project_page(reader, project, NOW).stats.episodes == len(work)


def test_a_claim_that_copied_lines_make_was_read_once(resumed: Door) -> None:
    reader = resumed.known()
    rows = page(reader, models.insights, "last_seen", [], limit=10)[0]
    (claim,) = [keyed.key for keyed in rows if "lint-all" in keyed.row.text][:1]
    levels = explain(reader, claim).levels
    assert "read it 1 time in 1 session" in " ".join(level.why for level in levels)
    assert "1 of 1 quotes" in " ".join(level.why for level in levels)
