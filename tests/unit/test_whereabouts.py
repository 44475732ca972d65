"""What a session's own words and git's output show of the directories it works in."""

from __future__ import annotations

import msgspec
import pytest
from telling import Session, facts_of, only

from memctl.domain.events.event import Event, Micros, Position
from memctl.domain.events.event_order import OrderedEvent
from memctl.domain.events.fact_builder import FactBuilder
from memctl.domain.events.facts import CommandRan, PlaceSeen, StackShown
from memctl.domain.events.facts import TestsRan as RanTests
from memctl.domain.events.observations import SessionStarted, ToolReturned, event_id_of
from memctl.domain.session.working_directory import WorkingDirectory
from memctl.domain.support.location import joined
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


def shown(command: str, text: str) -> list[tuple[str, str, str]]:
    assertions = FactBuilder("session/claude-code/s1")
    assertions.moved(HERE)
    WorkingDirectory(assertions).ran(placed(), command, text, HERE)
    return [(f.place, f.root, f.remote) for f in assertions.drain() if isinstance(f, PlaceSeen)]


PUSHED = "To github.com:Acme/cli.git\n   1c2..3d4  main -> main\n"


@pytest.mark.parametrize(
    ("command", "text", "place", "remote"),
    [
        ("git push", PUSHED, HERE, "github.com/acme/cli"),
        ("git push -u origin main 2>&1", PUSHED, HERE, "github.com/acme/cli"),
        ("cd /home/dana/cli && git push", PUSHED, HERE, "github.com/acme/cli"),
        ("cd ../site && git push", PUSHED, "/home/dana/site", "github.com/acme/cli"),
        ("git -C /srv/lib push", PUSHED, "/srv/lib", "github.com/acme/cli"),
        ("git pull --rebase", "From https://github.com/acme/cli\n * branch", HERE, "github.com/acme/cli"),
        (
            "git remote -v",
            "origin\tgit@github.com:acme/cli.git (fetch)\nup\thttps://x.org/a/b (fetch)",
            HERE,
            "github.com/acme/cli",
        ),
        ("git remote get-url origin", "https://github.com/acme/cli.git\n", HERE, "github.com/acme/cli"),
        ("gh pr create --fill", "Creating…\nhttps://github.com/acme/cli/pull/12\n", HERE, "github.com/acme/cli"),
    ],
)
def test_git_tells_the_remote_of_where_it_ran(command: str, text: str, place: str, remote: str) -> None:
    assert shown(command, text) == [(place, "", remote)]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("git push fork main", PUSHED),
        ("cd $WORK && git push", PUSHED),
        ("cd /a && git push; cd /b && git push", PUSHED),
        ("git push", "To ../origin.git\n   1c2..3d4  main -> main\n"),
        ("echo git push", PUSHED),
        ("bash -lc 'cd /srv/lib && git push'", PUSHED),
        ("cat push.log", PUSHED),
        ("go test ./...", "ok  \texample.org/cli/cmd\t0.2s\n"),
        ("go test ./cmd", "ok  \tshop/cmd\t0.2s\n"),
        ("go test ./lib/...", "ok  \texample.org/cli/cmd\t0.2s\n"),
        ("cd /srv/lib && go test ./cmd/...", "ok  \texample.org/cli/cmd\t0.2s\n"),
        ("cd /srv/lib && go test ./...", "ok  \tgithub.com/acme/lib\t0.2s\n"),
        ("go test ./...", "ok  \tgithub.com/acme/lib\t0.2s\nok  \tgithub.com/other/cli\t0.2s\n"),
        ("git rev-parse --show-toplevel", "/somewhere/else\n"),
    ],
)
def test_what_may_be_about_another_repository_tells_nothing(command: str, text: str) -> None:
    assert shown(command, text) == []


@pytest.mark.parametrize(
    ("command", "text", "module"),
    [
        (
            "cd cmd && go test ./... 2>&1",
            "ok  \tgithub.com/Acme/cli/cmd\t0.2s\n?   \tgithub.com/acme/cli\t[no test files]\n",
            "github.com/acme/cli",
        ),
        ("mise run test", "[test] ok  \tgithub.com/acme/cli/cmd\t(cached)\n", "github.com/acme/cli"),
        ("go test -v ./cmd/...", "ok  \texample.org/tools/cli/cmd/serve\t0.2s\n", "example.org/tools/cli"),
        ("cd cmd && go test ./serve", "ok  \tExample.org/cli/cmd/serve\t0.2s\n", "example.org/cli"),
    ],
)
def test_a_run_of_go_tests_tells_the_module_of_where_it_ran(command: str, text: str, module: str) -> None:
    assertions = FactBuilder("session/claude-code/s1")
    assertions.moved(HERE)
    WorkingDirectory(assertions).ran(placed(), command, text, HERE)
    [told] = [fact for fact in assertions.drain() if isinstance(fact, PlaceSeen)]
    assert (told.place, told.module, told.remote) == (HERE, module, "")


@pytest.mark.parametrize(
    ("given", "ended", "place"),
    [
        ({"command": "cd lib && git push"}, "/work/shop/lib", "/work/shop/lib"),
        ({"command": "cd lib && git push"}, "/work/shop", "/work/shop/lib"),
        ({"command": "cd ../site && git push"}, "/work/site", "/work/site"),
        ({"cmd": "git push", "workdir": "/work/site"}, "/work/shop", "/work/site"),
        ({"command": "git push", "dir_path": "lib"}, "/work/shop", "/work/shop/lib"),
        ({"command": "git push", "dir_path": " "}, "/work/shop", "/work/shop"),
    ],
)
def test_a_command_is_where_it_began_and_was_led_from_there(given: dict[str, str], ended: str, place: str) -> None:
    """What comes back tells where the command ended."""
    session = Session()
    session.user("Push it.")
    came = session.uses("Bash", given, PUSHED)
    session.events[-1] = msgspec.structs.replace(came, location=ended)
    told = only(facts_of(session.events), PlaceSeen)
    assert [fact.place for fact in told if fact.remote] == [place]


def test_git_tells_the_root_of_where_it_ran() -> None:
    assert shown("cd cmd && git rev-parse --show-toplevel", f"{HERE}\n") == [(f"{HERE}/cmd", HERE, "")]


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
    where.opened(placed(), "git@github.com:acme/secret.git")
    for command, text in (
        ("git push", PUSHED),
        ("git -C /srv/lib push", PUSHED),
        ("git rev-parse --show-toplevel", f"{HERE}\n"),
        ("go test ./...", "ok  \tgithub.com/Acme/cli/cmd\t0.2s\n"),
    ):
        where.ran(placed(), command, text, HERE)
    for location in (HERE, f"{HERE}/cmd"):
        where.came(placed("main"), location)
    told = [f for f in assertions.drain() if isinstance(f, PlaceSeen)]
    assert [(f.place, f.root, f.remote, f.around, f.confined) for f in told] == [
        (HERE, "", "", "", True),
        (f"{HERE}/cmd", "", "", "", True),
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
