"""What a session's client shows of the directories it works in, and that commands show nothing."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial

import fates
import msgspec
import pytest
from events import NOON
from msgspec import structs
from session_events import Session, facts_of, only

from memctl.domain.events.event import Event, Micros, Position
from memctl.domain.events.event_order import OrderedEvent
from memctl.domain.events.fact_builder import FactBuilder
from memctl.domain.events.facts import CommandRan, PlaceSeen, StackShown
from memctl.domain.events.facts import TestsRan as RanTests
from memctl.domain.events.observations import SessionStarted, ToolReturned, event_id_of
from memctl.domain.session.working_directory import WorkingDirectory
from memctl.domain.support.location import joined, of_member, of_occupant
from memctl.projections.project_knowledge import project_knowledge

HERE = "/home/dana/cli"


def placed(branch: str = "") -> OrderedEvent:
    seen = SessionStarted(branch=branch) if branch else ToolReturned()
    id = event_id_of(1, "e")
    event = Event(
        position=Position(1), event_id=id, space_id=1, stream="session/claude-code/s1", type="session.started",
        occurred_at=Micros(1), recorded_at=Micros(1), actor="tool", location=HERE, session_id="s1", dedupe_key="e",
        payload=seen,
    )  # fmt: skip
    return OrderedEvent(event, seen, id, Micros(1), (1, 0, 0, 0), "")


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("git push", "To github.com:Acme/cli.git\n   1c2..3d4  main -> main\n"),
        ("git pull --rebase", "From https://github.com/acme/cli\n * branch"),
        ("git log -1", "commit 1c2d\n\n    Merge\n\nFrom https://github.com/acme/cli\n"),
        ("git remote -v", "origin\tgit@github.com:acme/cli.git (fetch)\n"),
        ("make && git remote -v", "origin\thttps://github.com/acme/cli (fetch)\n"),
        ("git remote get-url origin", "https://github.com/acme/cli.git\n"),
        ("gh pr create --fill", "https://github.com/acme/cli/pull/12\n"),
        ("git rev-parse --show-toplevel", "/home/dana\n"),
        ("go test ./...", "ok  \tgithub.com/acme/cli/cmd\t0.2s\n"),
        ("cat go.mod", "module github.com/acme/cli\n"),
        ("cat .git/config", '[remote "origin"]\n\turl = https://github.com/acme/cli\n'),
    ],
)
def test_what_a_command_prints_shows_nothing_of_where_it_ran(command: str, text: str) -> None:
    session = Session()
    session.user("Do it.")
    session.runs(command, text)
    assert {(seen.remote, seen.around) for seen in only(facts_of(session.events), PlaceSeen)} == {("", "")}


def test_a_client_names_the_repository_that_its_session_began_in() -> None:
    assertions = FactBuilder("session/codex/s1")
    assertions.moved(HERE)
    WorkingDirectory(assertions).opened(placed(), "git@github.com:Acme/cli.git", brought=False)
    assert [(f.place, f.remote) for f in assertions.drain() if isinstance(f, PlaceSeen)] == [
        (HERE, "github.com/acme/cli")
    ]


def test_a_folder_entered_on_the_same_branch_is_part_of_the_checkout() -> None:
    assertions = FactBuilder("session/claude-code/s1")
    where = WorkingDirectory(assertions)
    for location, branch in ((HERE, "main"), (f"{HERE}/cmd", "main"), (f"{HERE}/vendor/lib", "v2"), (HERE, "main")):
        where.came(placed(branch), location)
    told = [(f.place, f.around) for f in assertions.drain() if isinstance(f, PlaceSeen)]
    assert told == [(HERE, ""), (f"{HERE}/cmd", ""), (f"{HERE}/cmd", HERE), (f"{HERE}/vendor/lib", "")]


def test_what_is_told_under_a_limited_key_says_that_the_session_was_there_and_no_more() -> None:
    assertions = FactBuilder("session/claude-code/s1")
    assertions.moved(HERE)
    assertions.confined = True
    where = WorkingDirectory(assertions)
    where.opened(placed(), "git@github.com:acme/secret.git", brought=False)
    for location in (HERE, f"{HERE}/cmd"):
        where.came(placed("main"), location)
    told = [f for f in assertions.drain() if isinstance(f, PlaceSeen)]
    assert [(f.place, f.remote, f.around, f.confined) for f in told] == [
        (HERE, "", "", True),
        (f"{HERE}/cmd", "", "", True),
    ]


RUST, JEST = "test result: ok. 12 passed; 0 failed", "Tests:       3 passed, 3 total"


def test_what_is_done_in_another_repository_tells_nothing_of_the_one_that_the_session_is_in() -> None:
    session = Session()
    session.user("Bump the client in both repositories")
    session.runs("cd /work/other && cargo test", RUST)
    session.runs("npm test && cd ../other && cargo test", f"{JEST}\n{RUST}")
    session.runs("cd /work/shop.worktrees/fix && npm test", JEST)
    session.runs("cd /work/other && git commit -m 'feat: bump'", "[main 1a2b3c4] feat: bump")
    session.uses("Read", {"file_path": "/work/other/src/lib.ts"}, "import { z } from 'zod'\n")
    session.uses("Read", {"file_path": "/work/shop/src/lib.ts"}, "import { z } from 'yup'\n")
    facts = facts_of(session.events)
    assert [run.elsewhere for run in only(facts, RanTests)] == [True, False, False]
    assert [ran.proofs for ran in only(facts, CommandRan)] == [(), (("test", "npm test"),), (("test", "npm test"),), ()]
    assert [ran.elsewhere for ran in only(facts, CommandRan)] == [False, False, False, True]
    assert [stack.imports for stack in only(facts, StackShown)] == [("yup",)]
    [row] = [project_knowledge(None, [f for f in facts if isinstance(f, CommandRan | RanTests | StackShown)])]
    assert ([*row.tests], row.commits, [*row.imports]) == (["npm test"], {}, ["yup"])


def test_a_drive_has_one_name_in_every_shell() -> None:
    assert joined("D:/w/shop", "/d/w/shop/api") == "D:/w/shop/api"
    assert joined("D:/w/shop", "/cygdrive/d/w") == "D:/w"
    assert joined("D:/w/shop", "/d") == "D:/"
    assert joined("D:/w/shop", "/dev/null") == "/dev/null"
    assert joined("/w/shop", "/d/w") == "/d/w"


@pytest.mark.parametrize("kind", [partial(of_member, "kim"), partial(of_occupant, NOON)], ids=["member", "since"])
@pytest.mark.parametrize("seed", range(60))
def test_a_session_on_a_member_s_machine_or_over_another_checkout_shows_what_it_would_show_here(
    seed: int, kind: Callable[[str], str]
) -> None:
    """But where, and whose: paths of files and directories are those of the machine."""
    drawn = fates.sessions(random.Random(seed), 1)
    free = [(each, {"confined": False} if hasattr(each.payload, "confined") else {}) for each in drawn]
    events = [structs.replace(each, payload=structs.replace(each.payload, **limits)) for each, limits in free]
    there = [structs.replace(each, location=kind(each.location)) for each in events]
    for_both = [[bared(fact) for fact in facts_of(fates.Log().append(each))] for each in (events, there)]
    assert for_both[0] == for_both[1]


def bared(fact: object) -> str:
    """A fact without whose machine it is of; ids are of places, too."""
    return re.sub("[0-9a-f-]{16,36}|member:kim:|since:[^:]*:", "", msgspec.json.encode(fact).decode())
