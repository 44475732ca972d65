"""A project's page from the rows of its sessions."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from memctl.api.queries.project import DAY, Roots, came_back, sections_of
from memctl.api.reading.views import BugHit, ShownSolution
from memctl.domain.projects.identity import Place, Project, Projects
from memctl.domain.support.location import of_member
from memctl.domain.support.tallies import Tally
from memctl.projections.project_knowledge import SessionKnowledge

NOW = 1_772_452_800_000_000
REMOTE = "github.com/acme/cli"
PLACES = [
    Place("/w/cli", remotes=(REMOTE,)),
    Place("/w/cli/cmd", inside=("/w/cli",)),
    Place("/w/cli/.worktrees/2"),
]


def project() -> Project:
    return Projects(PLACES).one("cli")


def tally(count: int, *, failed: int = 0, days_ago: int = 0) -> Tally:
    return Tally(count, failed, NOW - days_ago * DAY, UUID(int=count))


def session(number: int, location: str = "/w/cli", **tables: dict[str, Tally]) -> SessionKnowledge:
    return SessionKnowledge(stream=f"session/codex/{number}", location=location, last_at=NOW, **tables)  # type: ignore[arg-type]


def texts(section: str, *rows: SessionKnowledge) -> list[str]:
    return [line.text for line in sections_of(rows, project(), NOW)[section]]


def test_files_are_named_from_the_root_of_their_checkout_on() -> None:
    for location, path in (
        ("/w/cli", "cmd/a.go"),
        ("/w/cli", "/w/cli/cmd/a.go"),
        ("/w/cli/cmd", "a.go"),
        ("/w/cli/.worktrees/2", "cmd/a.go"),
        ("/w/cli", "/w/cli/.worktrees/2/cmd/a.go"),
    ):
        assert Roots(project()).path_in(location, path) == "cmd/a.go"
        there = Projects([Place(of_member("kim", each.location), remotes=each.remotes) for each in PLACES])
        assert Roots(there.one("cli")).path_in(of_member("kim", location), path) == "cmd/a.go"
    assert Roots(project()).path_in("/w/cli", "/home/dana/notes.md") == ""
    assert Roots(project()).path_in("/w/cli", "web/node_modules/x/index.js") == ""


def test_a_hot_spot_of_today_goes_before_a_hotter_one_of_long_ago() -> None:
    rows = [
        session(1, changed={"old.go": tally(30, days_ago=180)}),
        session(2, "/w/cli/.worktrees/2", changed={"new.go": tally(3)}, fixed={"new.go": tally(2)}),
    ]
    assert texts("hotspots", *rows) == [
        "often changed: `new.go` (3 changes, 2 of them to resolve an error)",
        "often changed: `old.go` (30 changes)",
    ]


def test_only_commands_that_mostly_pass_are_shown() -> None:
    row = session(1, tests={"go test ./...": tally(9, failed=1), "go test ./x": tally(4, failed=3)})
    assert texts("commands", row) == ["test: `go test ./...` passed 8 of 9 times"]


def test_a_project_is_no_library_of_its_own_and_a_path_alias_none_at_all() -> None:
    imports = {name: tally(5) for name in (REMOTE, "github.com/spf13/cobra", "@shared/types", "react", "acme.io/cli")}
    row = session(1, imports=imports, owns={"acme.io/cli": tally(1)})
    assert texts("tech_stack", row) == ["uses github.com/spf13/cobra", "uses react"]


def test_a_directory_that_holds_nearly_all_gives_way_to_those_in_it() -> None:
    changed = {f"cmd/cli/{folder}/{n}.go": tally(2) for folder in ("hooks", "store") for n in range(3)}
    assert texts("structure", session(1, changed={**changed, "cmd/cli/main.go": tally(4)})) == [
        "`cmd/cli/hooks/`: 3 files touched",
        "`cmd/cli/store/`: 3 files touched",
        "`cmd/cli/`: 1 file touched",
        "entry point: `cmd/cli/main.go`",
    ]


def test_a_line_says_in_how_many_sessions_it_was_seen_and_names_events() -> None:
    rows = [session(n, runners={"pytest": tally(n, days_ago=n)}) for n in (1, 2, 3)]
    (line,) = sections_of(rows, project(), NOW)["tech_stack"]
    assert (line.text, line.count, line.sessions) == ("tests run with pytest", 6, 3)
    assert line.sources == [str(UUID(int=n)) for n in (1, 2, 3)]


def hit(message: str, occurrences: int, approach: str, day: int = 1) -> BugHit:
    seen = datetime(2026, 3, day, tzinfo=UTC)
    return BugHit(
        id="",
        signature=message,
        score=1.0,
        class_="high",
        aspects=[],
        error_types=[],
        message=message,
        template=message,
        stack=[],
        code=[],
        file_types=[],
        frameworks=[],
        causes=[],
        occurrences=occurrences,
        resolutions=1,
        mean_resolve_s=None,
        first_seen=seen,
        last_seen=seen,
        projects=[],
        files=[],
        solution=ShownSolution(approach, "", [], [], [], 1, 1, 1.0, None, None, []) if approach else None,
        lesson=approach,
        solutions=[],
        related=[],
        evidence=[],
    )


def test_errors_that_one_way_resolved_stand_in_one_line() -> None:
    lines = came_back(
        [
            hit("G104", 5, "added context", day=3),
            hit("no such file", 2, "made the folder"),
            hit("G304", 4, "added context", day=7),
            hit("seen once", 1, "added context"),
            hit("never resolved", 9, ""),
        ]
    )
    assert [(line.text, line.count, line.last) for line in lines] == [
        ("G104; G304 → an agent's fix: added context", 9, "2026-03-07T00:00:00Z"),
        ("no such file → an agent's fix: made the folder", 2, "2026-03-01T00:00:00Z"),
    ]
