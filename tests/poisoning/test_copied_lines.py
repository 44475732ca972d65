"""Who copies the ids of another's lines into a session of their own takes nothing of that one's place."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from doors import Door, door_at
from events import observed

from memctl.api.queries.figures import by_day
from memctl.api.queries.memories import history
from memctl.api.queries.project import project_page
from memctl.api.queries.threads import open_threads
from memctl.api.queries.work import episodes
from memctl.api.reading.places import Places, projects_of
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import PromptSubmitted, ResponseReceived
from memctl.domain.support.location import of_member
from memctl.domain.support.provenance import IMPORTED, spoken_through
from memctl.infra.log.append import append
from memctl.infra.redaction import prepare

CRM = "/work/crm"
HERE = Places("crm", "here", (CRM,))
NOW = datetime(2026, 6, 1, tzinfo=UTC)
LEFT = "The quillvault ledger is still wrong; the next step is to open the quillvault ledger by hand."
MINE: list[tuple[Any, str, int]] = [
    (PromptSubmitted(line="0a", text="Check the quillvault ledger of the contact list."), "user", 0),
    (ResponseReceived(line="0b", text=LEFT, message="m0", tokens_out=100), "agent", 30),
]
OTHERS = {
    "a member elsewhere": (spoken_through("user", "kim"), spoken_through("agent", "kim"), of_member("kim", "/srv/x")),
    "an imported session elsewhere": (IMPORTED, "agent", "/imported/x"),
}


door = door_at(CRM)


def session(name: str, location: str, said: list[tuple[Any, str, int]]) -> list[NewEvent]:
    return [
        prepare(observed(payload, session=name, at=at, actor=actor, location=location)) for payload, actor, at in said
    ]


def shown(door: Door) -> dict[str, object]:
    reader = door.known()
    (project,) = [each for each in projects_of(reader).all if CRM in each.locations]
    return {
        "work": [each.description for each in episodes(reader, HERE).items],
        "turns": [each.title for each in history(reader, HERE).items],
        "open": [each.threads for each in open_threads(reader, HERE)],
        "episodes": project_page(reader, project, NOW).stats.episodes,
        "tokens": sum(day["tokens_out"] for day in by_day(reader, HERE).values()),
    }


def copied(door: Door, by: str, line: str, asked: str, later: int = 0) -> None:
    """What another brings, of a session of their own."""
    user, agent, location = OTHERS[by]
    done = "Done, and nothing of it is left to do, for all of the page was looked through twice, and twice it was well."
    theirs: list[tuple[Any, str, int]] = [
        (PromptSubmitted(line=line, text=asked), user, later),
        (ResponseReceived(line="0c", text=done, message="k0", tokens_out=1), agent, 90),
    ]
    append(door.connection, 1, session("theirs", location, theirs))


@pytest.mark.parametrize("by", list(OTHERS))
def test_who_copies_the_ids_of_the_users_lines_hides_none_of_the_users_work(door: Door, by: str) -> None:
    append(door.connection, 1, session("mine", CRM, MINE))
    before = shown(door)
    assert before["work"]
    copied(door, by, "0a", MINE[0][0].text, later=1)
    assert shown(door) == before


@pytest.mark.parametrize("by", list(OTHERS))
def test_who_says_the_users_words_at_the_users_moment_hides_no_turn(door: Door, by: str) -> None:
    append(door.connection, 1, session("mine", CRM, MINE))
    before = shown(door)
    assert before["turns"]
    copied(door, by, "k0a", MINE[0][0].text)
    assert shown(door) == before
