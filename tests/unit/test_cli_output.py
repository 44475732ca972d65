"""What commands print: nothing that steers a terminal, aligned columns, dates that people read."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from memctl.api.reading.views import BugHit, Found, Json, ShownSolution, SourceRow, Thing
from memctl.api.write.ingest import Account
from memctl.cli import output
from memctl.cli.ask import context, work
from memctl.cli.ask.read import print_bug, print_found, print_thing
from memctl.cli.capture.ingest import KINDS_SHOWN, print_account
from memctl.cli.commands import COMMANDS, FIRST, GROUPS, MEANT, MEANT_IN
from memctl.cli.main import memctl
from memctl.cli.output import Cell, Column, when
from memctl.cli.pages import Moment, OneOf, table
from memctl.domain.support.wording import size, span

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


HEAVY = {"psycopg", "sqlalchemy", "pydantic", "fastapi", "httpx", "asyncio", "numpy", "redis", "qdrant_client", "rich"}
"""What commands need once they do something."""


@pytest.mark.parametrize("group", [*GROUPS, ""])
def test_help_imports_nothing_that_only_commands_need(group: str) -> None:
    """It asks each command for its line, so each one's module is imported."""
    asked = f"sys.argv[1:] = {[*filter(None, [group]), '--help']}"
    told = f"import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); {asked}"
    done = subprocess.run(
        [sys.executable, "-c", f"{told}; from memctl.cli.__main__ import run; run()"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    imported = set(done.stderr.split())
    named = {"memory": "ask.claims", "admin": "operate.keys", "hook": "capture.hooks", "": "ask.read"}
    assert f"memctl.cli.{named[group]}" in imported
    assert not imported & HEAVY, (
        f"a file of cli imports {imported & HEAVY} at its top. Let it take the type of an answer from"
        " api/reading/records.py, and import within a function what only that needs"
    )


KOREAN = "결제 모듈의 반올림 오류를 고치고 테스트를 추가했다 "


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@given(st.text())
def test_no_stored_text_can_steer_a_terminal(text: str) -> None:
    assert not STEERING.search(output.safe(text))


@given(st.text(alphabet=st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs"))))
def test_ordinary_text_is_printed_as_it_is(text: str) -> None:
    assert output.safe(text) == text


def test_an_escape_sequence_is_shown_and_not_obeyed() -> None:
    assert output.safe("a\x1b[2Jb\x9b31m\tc\n") == "a␛[2Jb�31m\tc\n"
    assert output.safe("a\U000e0062\u200bc \u202ed") == "a��c �d"


@given(st.dictionaries(st.text(), st.text()))
def test_printed_json_reads_back_as_it_was_and_cannot_steer_a_terminal(answer: dict[str, str]) -> None:
    printed, before = io.StringIO(), sys.stdout
    sys.stdout = printed
    try:
        output.print_json(answer)
    finally:
        sys.stdout = before
    assert json.loads(printed.getvalue()) == answer
    assert not STEERING.search(printed.getvalue().replace("\n", ""))


def test_a_table_outside_a_terminal_keeps_lines_whole_and_columns_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    long = "word " * 60
    output.print_table(
        [Column("what"), Column("count", "right"), Column("text", give=True)],
        [["한국어 항목", "7", long], ["plain", "1,000", "b"]],
    )
    head, first, second = capsys.readouterr().out.splitlines()
    assert long.strip() in first
    # Wide characters take two columns: measured in columns, the numbers end at the same place.
    ends = [
        output.width_of(row[: row.index(n) + len(n)]) for row, n in ((head, "count"), (first, "7"), (second, "1,000"))
    ]
    assert len(set(ends)) == 1


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_table_on_a_terminal_fits_its_width(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "dumb")
    output.print_table(
        [Column("id"), Column("when"), Column("text", give=True)],
        [["0a1b2c3d", "yesterday 09:10", KOREAN * 3], ["ffffffff", "today 10:00", "short"]],
    )
    lines = click.unstyle(screen.getvalue()).splitlines()
    assert len(lines) == 3
    assert max(output.width_of(line) for line in lines) <= columns
    assert "0a1b2c3d" in lines[1]


@given(st.text("ab 한/", max_size=300), st.integers(0, 12), st.sampled_from([20, 80]))
def test_a_text_on_a_terminal_is_broken_at_its_words_and_hangs_below_its_beginning(
    text: str, indent: int, columns: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", Terminal())
        patch.setenv("COLUMNS", str(columns))
        rows = output.broken(" " * indent + text, indent)
    assert " ".join(row[indent:] for row in rows) == text
    assert all(row[:indent].strip() == "" for row in rows)
    for row in rows:
        assert output.width_of(row) <= columns or " " not in row.strip()
    assert output.broken(" " * indent + text, indent) == [" " * indent + text]  # elsewhere it is whole


def test_markup_in_stored_text_is_not_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "dumb")
    output.print_table([Column("text")], [[Cell("[red]a[/red] :smile:")]])
    assert "[red]a[/red] :smile:" in screen.getvalue()


def test_the_parts_of_a_row_are_shown_by_name_whole_and_without_what_only_the_fold_needs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failed: dict[str, Json] = {
        "at": "2026-06-17T10:20:39Z", "id": "3c8c76da-9229-5cc1-8998-96ccd39b7d9f", "lineage": "8f124b7f",
        "stream": "session/codex/s1", "command": "entire status", "message": "if any flags " * 30,
    }  # fmt: skip
    print_thing(Thing("command", {"id": "k1", "failed": [failed]}))
    assert capsys.readouterr().out.splitlines() == [
        "command k1", "failed:", f"  - at: {when('2026-06-17T10:20:39Z')}", "    session: session/codex/s1",
        "    command: entire status", f"    message: {'if any flags ' * 30}",
    ]  # fmt: skip


@pytest.mark.parametrize(("projects", "headings"), [("aa", "id  work"), ("ab", "id  project  work")])
def test_a_terminal_is_shown_the_project_where_there_are_several(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], projects: str, headings: str
) -> None:
    shown = table(lambda name: ["1", name, "work"], "id", "project", Column("work", give=True))
    shown([*projects])
    assert capsys.readouterr().out.splitlines()[0].split() == ["id", "project", "work"], "a pipe has every column"
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    shown([*projects])
    assert click.unstyle(screen.getvalue()).splitlines()[0].split() == headings.split()


@pytest.mark.parametrize(
    ("status", "outcome", "state"),
    [("open", "success", "open, success"), ("open", "unknown", "open"), ("done", "success", "success"),
     ("done", "partial", "partial")],
)  # fmt: skip
def test_a_task_that_is_open_says_so_however_well_it_went(status: str, outcome: str, state: str) -> None:
    assert work.state_of(status, outcome).text == state


def test_what_a_session_is_at_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", "60")
    context._row("asked", "why does the prompt stop " * 10)
    assert output.width_of(click.unstyle(screen.getvalue()).rstrip("\n")) <= 60


def test_moments_are_told_as_local_dates() -> None:
    now = datetime(2026, 3, 2, 18, 0).astimezone()

    def told(at: datetime) -> str:
        return output.when(at.astimezone().isoformat(), now)

    assert told(datetime(2026, 3, 2, 9, 5)) == "today 09:05"
    assert told(datetime(2026, 3, 1, 23, 59)) == "yesterday 23:59"
    assert told(datetime(2026, 1, 9, 8, 0)) == "9 Jan 08:00"
    assert told(datetime(2025, 12, 31, 8, 0)) == "2025-12-31"
    assert output.when(None) == ""
    assert output.when("no date \x1b[1m", now) == "no date ␛[1m"


def test_durations_and_sizes_are_rounded_to_what_matters() -> None:
    assert [span(s) for s in (None, 40, 720, 10_800, 172_800)] == ["", "40 s", "12 min", "3 h", "2 d"]
    assert [size(n) for n in (12, 1_200, 3_400_000, 5_000_000_000)] == ["12 B", "1.2 kB", "3.4 MB", "5.0 GB"]


@pytest.mark.parametrize(("flags", "stdin"), [([], "a word"), (["--yes"], ""), (["--dry-run"], " \n")])
def test_a_text_to_forget_from_standard_input_is_neither_missing_nor_followed_by_an_answer(
    flags: list[str], stdin: str
) -> None:
    done = CliRunner().invoke(memctl, ["forget", "--match", "-", *flags], input=stdin)
    assert done.exit_code == 2, done.output
    assert "standard input" in done.output


def test_an_account_names_the_most_frequent_kinds_of_lines_and_counts_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    kinds = {f"kind-{number}": number for number in range(1, KINDS_SHOWN + 6)}
    print_account(Account(ignored=Counter(kinds)), as_json=False)
    told = [int(line.split()[0]) for line in capsys.readouterr().out.splitlines() if "  ignored  " in line]
    assert len(told) == KINDS_SHOWN + 1
    assert sum(told) == sum(kinds.values())
    print_account(Account(ignored=Counter(kinds)), as_json=True)
    assert json.loads(capsys.readouterr().out)["ignored"] == kinds


def help_of(*path: str) -> str:
    done = CliRunner().invoke(memctl, [*path, "--help"], terminal_width=80)
    assert done.exit_code == 0
    return done.output


def test_help_fits_a_screen_and_lists_each_command_once_in_its_group_in_words_that_end() -> None:
    pages = {"": help_of(), **{name: help_of(name) for name in GROUPS}}
    assert len(pages[""].splitlines()) <= 40
    text = "\n".join(pages.values())
    assert re.findall(r"^[^\[\n]*\.\.\.$", text, re.MULTILINE) == []
    listed = re.findall(r"^  ([a-z][\w-]*)  +[A-Z]", text, re.MULTILINE)
    assert sorted(listed) == sorted([*COMMANDS, *GROUPS])
    assert re.findall(r"^(\w.*):$", pages[""], re.MULTILINE)[1:] == [*FIRST, "More"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_called_by_its_name_alone_and_in_its_group(name: str) -> None:
    own = [group for group, (_, sections) in GROUPS.items() if any(name in section for section in sections.values())]
    assert all(help_of(group, name).partition("\n")[2] == help_of(name).partition("\n")[2] for group in own)


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        *((word, "memctl project list") for word in ("list", "ls")),
        *((word, "memctl up") for word in ("start", "run", "restart")),
        *((word, "memctl down") for word in ("stop", "quit")),
        *((word, "memctl forget") for word in ("delete", "remove", "rm")),
        *((word, "memctl search") for word in ("find", "recall", "serch")),
        *((word, "memctl note") for word in ("add", "remember")),
        *(
            ("unpin", "memctl pin ID --off"),
            ("stop-all", "memctl down"),
            ("ui", "memctl view"),
            ("get", "memctl show"),
            ("settings", "memctl config"),
        ),
        *(
            ("version", "memctl --version"),
            ("help", "memctl --help"),
            ("rebuild", "memctl replay"),
            ("ps", "memctl status"),
        ),
        *((word, "memctl insights") for word in ("lessons", "decisions", "rules")),
        *(
            ("why", "memctl explain"),
            ("preferences", "memctl prefs"),
            ("team", "memctl keys"),
            ("migrate", "memctl up"),
        ),
        *(
            ("timeline", "memctl view"),
            ("ping", "memctl status"),
            ("gc", "memctl maintain"),
            ("tail", "memctl history"),
        ),
        *(("error", "memctl bugs"), ("uninstall", "memctl install CLIENT --uninstall"), ("ingset", "memctl ingest")),
    ],
)
def test_a_word_that_is_no_command_is_answered_with_the_one_that_is_meant(words: str, instead: str) -> None:
    done = CliRunner().invoke(memctl, [words])
    assert done.exit_code == 2
    assert done.output.rstrip("\n").endswith(f"Did you mean `{instead}`?")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cost"], "Did you mean `memctl stats`?"),
        (["logs"], "Did you mean `memctl doctor`? The logs are files in the folder `log` of the data directory."),
        (["todo"], "Did you mean `memctl tasks --status open`?"),
        (["project", "shop"], "A project is shown by `memctl project show shop`."),
        (["project", "shwo"], "Did you mean 'show'?"),
        (["project", "rm", "shop"], "Did you mean `memctl forget --project NAME`?"),
        (["keys", "create", "dana"], "Did you mean `memctl keys add NAME`?"),
        (["keys", "rm", "dana"], "Did you mean `memctl keys revoke KEY`?"),
        (["memory", "list"], "Did you mean `memctl insights`?"),
        (["help", "search"], "Did you mean `memctl search --help`?"),
        (["forget", "all"], "All that memory holds goes by `memctl reset`."),
        (["forget", "3f6f1d52"], "as in `memctl forget --id 3f6f1d52`"),
        (["--json", "search", "csv"], "--json is no option of memctl itself: commands come first."),
        (["ask", "how are tests run"], "`memctl search` takes any."),
        (["ask", "how", "tests"], "Did you mean how_to?"),
        (["search", "--kind", "bug", "csv"], "Did you mean bug_pattern?"),
        (["search", "--kind", "turns", "csv"], "Did you mean turn?"),
        (["episodes", "--outcome", "failed"], "Did you mean failure?"),
        (["sessions", "--since", "last-week"], "write 2026-03-01, yesterday, monday, 7d or 2 weeks ago"),
        (["search", "--before", "2026-13-01", "csv"], "'2026-13-01' is no day: write 2026-03-01"),
    ],
)
def test_a_call_that_is_badly_made_is_answered_with_the_one_that_is_meant(words: list[str], said: str) -> None:
    done = CliRunner().invoke(memctl, words)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("given", "days"),
    [("today", 0), ("yesterday", 1), ("7d", 7), ("2W", 14), ("0d", 0), ("3 days ago", 3), ("a week ago", 7)],
)
def test_a_day_may_be_named_by_how_long_ago_it_was(given: str, days: int) -> None:
    at = datetime.fromisoformat(Moment().convert(given, None, None))
    assert (at.hour, at.minute, at.tzinfo is not None) == (0, 0, True)
    assert date.today() - at.date() == timedelta(days=days)


@pytest.mark.parametrize("given", ["monday", "Last Wednesday", "sunday"])
def test_a_day_of_the_week_is_the_last_that_there_was(given: str) -> None:
    at = datetime.fromisoformat(Moment().convert(given, None, None)).date()
    assert at.strftime("%A").lower() == given.lower().removeprefix("last ")
    assert 1 <= (date.today() - at).days <= 7


def test_a_day_that_is_written_whole_is_asked_for_as_it_stands() -> None:
    assert Moment().convert("2026-03-01", None, None) == "2026-03-01"
    assert Moment().convert("2026-03-01T14:30+01:00", None, None) == "2026-03-01T14:30:00+01:00"


@pytest.mark.parametrize(
    "given", ["", "d", "-1d", "1.5d", "99999d", "²d", "days ago", "2 ago", "monday ago", "01.07.2026", "9" * 50 + "d"]
)
def test_what_is_no_day_is_refused(given: str) -> None:
    with pytest.raises(click.BadParameter, match="is no day"):
        Moment().convert(given, None, None)


def test_a_kind_is_taken_in_any_case_and_with_either_dash() -> None:
    assert OneOf(("how_to", "convention")).convert("How-To", None, None) == "how_to"


def test_a_word_that_is_near_no_command_is_answered_with_where_they_are_listed() -> None:
    done = CliRunner().invoke(memctl, ["xyzzy"])
    assert done.exit_code == 2
    assert done.output.rstrip("\n").endswith("There is no command 'xyzzy'. `memctl --help` lists them.")


def test_what_is_said_instead_of_a_word_is_a_command_or_an_option() -> None:
    within = [said for words in MEANT_IN.values() for said in words.values()]
    assert {said.split()[0] for said in (*MEANT.values(), *within)} <= {*COMMANDS, "--version", "--help"}
    assert not set(MEANT) & set(COMMANDS)
    for said in within:
        noun, verb, *_ = [*said.split(), ""]
        command = memctl.get_command(click.Context(memctl), noun)
        assert not isinstance(command, click.Group) or verb in command.commands, said
    for name, words in MEANT_IN.items():
        group = memctl.get_command(click.Context(memctl), name)
        assert isinstance(group, click.Group)
        assert not set(words) & set(group.list_commands(click.Context(group)))


def test_the_help_of_a_noun_lists_its_verbs_in_words_that_end() -> None:
    nouns = [name for name in COMMANDS if isinstance(memctl.get_command(click.Context(memctl), name), click.Group)]
    assert len(nouns) > 5
    shown = "\n".join(help_of(name).partition("\n")[2] for name in nouns)
    assert re.findall(r"^.*\.\.\.$", shown, re.MULTILINE) == []


@pytest.mark.parametrize(
    ("approach", "description", "told"),
    [
        ("The rate is a float: `rate` became `Decimal(rate)` in totals.py", "The rate is a float.", 1),
        ("ran `make rates`", "The rate is a float.", 2),
        ("", "The rate is a float.", 1),
        ("ran `make test`", "", 1),
        ("", "", 1),
    ],
)
def test_a_fix_is_told_once_and_whole(
    capsys: pytest.CaptureFixture[str], approach: str, description: str, told: int
) -> None:
    solution = ShownSolution(approach, description, [], [], [], 1, 1, 1.0, None, None, [])
    at = datetime(2026, 3, 2, 9, tzinfo=UTC)
    hit = BugHit(
        id="5", signature="5", score=0.0, class_="none", aspects=[], error_types=["TypeError"], message="no",
        template="no", stack=[], code=[], file_types=[], frameworks=[], causes=[], occurrences=1, resolutions=1,
        mean_resolve_s=None, first_seen=at, last_seen=at, projects=[], files=[], solution=solution, lesson="",
        solutions=[solution], related=[], evidence=[],
    )  # fmt: skip
    print_bug(hit)
    lines = [each.strip() for each in capsys.readouterr().out.splitlines() if each.strip().startswith(("fix:", "why:"))]
    assert len(lines) == told
    unknown = "passed later; nobody said what mended it"
    assert lines[0].partition(": ")[2] == (approach or description or unknown)
    assert lines[-1].partition(": ")[2] in (description or unknown, approach)


@pytest.mark.parametrize("origin", ["written by an agent", "in a prompt", ""])
def test_what_was_found_is_printed_with_whose_words_it_is_in(origin: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_found(
        Found(
            id="0" * 36, text="Solution: use quillmark", title="dates", score=0.6, class_="suggested", kind="episode",
            bucket="EPISODIC", project="shop", occurred_at=datetime(2026, 1, 2, tzinfo=UTC), evidence=[], why="words",
            source=SourceRow("facts", "x"), origin=origin,
        )
    )  # fmt: skip
    head, about, *_ = capsys.readouterr().out.splitlines()
    assert head.split() == ["likely", "dates"], "its score does not order what is found, and says less than its class"
    assert about.split(" · ")[1:-3] == ["episode", *filter(None, [origin])]


def test_a_word_that_is_no_folder_is_not_backed_up_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`memctl backup list` means to look."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(memctl, ["backup", "list"])
    assert done.exit_code == 2
    assert "there is no folder 'list' here" in done.output
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("verb", "most"), [(["search", "x"], 50), (["bugs"], 50), (["ask", "how_to", "x"], 20), (["sessions"], 200)]
)
def test_more_items_than_a_verb_can_list_are_refused_with_how_many_it_can(verb: list[str], most: int) -> None:
    result = CliRunner().invoke(memctl, [*verb, "--limit", f"{most + 1}"])
    assert result.exit_code == 2
    assert f"{most + 1} is not in the range 1<=x<={most}" in result.output
