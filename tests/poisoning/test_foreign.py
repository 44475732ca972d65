"""A directory that pretends to be of a known project neither reads that project's memory nor writes into it, until a
person says that it is of it. A worktree that git's files prove is of it at once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode
from uuid import uuid4

import commandline
import pytest
import servers
from apis import TOKEN, Api, serving
from asked import Remembered
from events import observed
from forking import ran
from histories import drained
from poisoning.foreign import FOREIGN, Pretence, git, victim_in
from poisoning.test_poisoning import hooked, unasked
from waiting import until

from memctl.api.write.identify import Identifier
from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import PromptSubmitted, ToolCalled, ToolReturned
from memctl.infra.database import connect
from memctl.infra.git import checkout_of
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations
from memctl.infra.redaction import prepare

OURS = "honestly"
IN_PLACE = (
    "config-in-the-project",
    "config-beside-like-a-worktree",
    "named-like-a-worktree",
    "worktree-of-the-submodule-inside",
)
"""They lie beside the victim's checkout, or in it, whatever their folder."""
SHARED = "git.example.org/dana/ledger"


class Stage(NamedTuple):
    """A memory of the victim's and of every pretence, and where each works."""

    api: Api
    database: str
    folder: Path
    victim: Path
    at: dict[str, Path]


def session(name: str, location: Path, word: str, ran: tuple[str, str] = ("ls", "a.py"), at: int = 0) -> list[NewEvent]:
    said = [
        (PromptSubmitted(line="1", text=f"We use {word} for dates, not floats. Use {word}, not quartz."), "user"),
        (ToolCalled(line="2", tool="Bash", call="a", input={"command": ran[0]}), "agent"),
        (ToolReturned(line="3", call="a", text=ran[1], exit_code=0), "tool"),
    ]
    events = [
        observed(payload, session=name, at=at + number, actor=actor, location=str(location))
        for number, (payload, actor) in enumerate(said)
    ]
    return [*events, *Identifier().about(events)]


def keep(database: str, events: list[NewEvent]) -> None:
    with connect(database) as connection:
        append(connection, 1, [prepare(event) for event in events])
    drained(database)


@pytest.fixture(scope="module")
def stage(
    postgres_server: str, migrated_template: str, vectors: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("checkouts").resolve()
    victim = victim_in(folder)
    events = session("victim", victim, OURS)
    at = {}
    for number, each in enumerate(FOREIGN, 1):
        at[each.name] = each.make(folder / "elsewhere" / each.name, victim)
        ran = each.ran[0], each.ran[1].replace("VICTIM", str(victim))
        events += session(each.name, at[each.name], each.canary, ran, at=10 * number)
    url, token = vectors
    with servers.fresh_database(postgres_server, template=migrated_template) as database:
        with connect(database) as connection:
            generations.ensure_live(connection, 2)
        keep(database, events)
        memory = Remembered(database, url, token, "none")
        with serving(tmp_path_factory.mktemp("api"), memory, embedder="none") as api:
            yield Stage(api, database, folder, victim, at)


def shown(api: Api, location: Path) -> str:
    """All that somebody who works there is given, asked or not."""
    about = "which package is used for dates, not floats and not quartz?"
    answers = list(unasked(api, str(location), about).values())
    for route in ("knowledge", "preferences", "memories", "history", "sessions", "strategies", "tasks"):
        status, _, body = api.ask(f"/v1/{route}?here={quote(str(location))}&limit=200")
        assert status == 200, (route, body)
        answers.append(body.decode())
    return "\n".join(answers)


@pytest.mark.parametrize("pretence", [pytest.param(each, id=each.name) for each in FOREIGN])
def test_a_foreign_directory_neither_reads_a_project_nor_writes_into_it(stage: Stage, pretence: Pretence) -> None:
    there = shown(stage.api, stage.at[pretence.name])
    assert pretence.canary in there
    assert OURS not in there
    assert pretence.canary not in shown(stage.api, stage.victim)
    named = stage.api.ask(f"/v1/knowledge?project={quote(SHARED)}&limit=200")[2].decode()
    assert OURS in named
    assert pretence.canary not in named


def test_what_a_project_knows_comes_out_in_it(stage: Stage) -> None:
    assert OURS in hooked(stage.api, "SessionStart", str(stage.victim), source="startup")
    assert OURS in shown(stage.api, stage.victim)
    assert len({each.canary for each in FOREIGN}) == len(FOREIGN)


def test_a_worktree_that_git_made_is_of_the_project_before_anything_was_kept_of_it(stage: Stage) -> None:
    tree = stage.folder / "trees" / "real"
    start = hooked(stage.api, "SessionStart", str(tree), source="startup")
    assert OURS in start
    assert "memctl project join" not in start
    assert OURS in shown(stage.api, tree)


@pytest.mark.parametrize(
    "kept", [".codex/worktrees/{at}/{name}", ".cursor/worktrees/{name}/{at}", "conductor/workspaces/{name}/{at}"]
)
@pytest.mark.parametrize("name", ["shop", "bank"])
def test_worktrees_that_tools_removed_share_nothing_with_those_of_other_repositories(
    stage: Stage, kept: str, name: str
) -> None:
    """Also of one name: nobody can look at git's files any more."""
    home = stage.folder / "tools" / name
    mine, other = (home / kept.format(at=at, name=called) for at, called in (("a1", "shop"), ("b2", name)))
    keep(
        stage.database, session(f"m{mine}", mine, "mineral", at=900) + session(f"o{other}", other, "otherwise", at=950)
    )
    there = shown(stage.api, mine)
    assert "mineral" in there
    assert "otherwise" not in there
    assert "mineral" not in shown(stage.api, other)


MADE_OF_FILES = [each for each in FOREIGN[8:] if each.name not in IN_PLACE]


@pytest.mark.parametrize("pretence", [pytest.param(each, id=each.name) for each in MADE_OF_FILES])
def test_a_checkout_that_was_never_met_is_given_nothing(stage: Stage, tmp_path: Path, pretence: Pretence) -> None:
    """Before anything of it is folded, git's files are all that says where it is of."""
    new = pretence.make(tmp_path / "new", stage.victim)
    about = "which package is used for dates, not floats and not quartz?"
    claims = checkout_of(new)
    if claims and (claims.remote or claims.borrows or claims.repository == str(stage.victim)):
        assert OURS not in shown(stage.api, new)
    assert OURS not in "".join(unasked(stage.api, str(new), about).values())


def test_what_git_would_follow_elsewhere_claims_nothing(stage: Stage) -> None:
    followed = ("commondir", "commondir-of-a-worktree", "include", "include-of-the-victims", "include-if", "instead-of")
    for name in followed:
        found = checkout_of(stage.at[name])
        assert found is not None
        assert (found.repository in ("", str(stage.at[name].parent / "main")), found.remote, found.borrows) == (
            True, "", ""
        ), name  # fmt: skip


def test_a_checkout_inside_the_project_that_was_never_met_is_given_nothing_unasked(stage: Stage) -> None:
    new = stage.victim / "vendor" / "never-met"
    new.mkdir(parents=True)
    git(new, "init", "-q")
    assert OURS not in "".join(unasked(stage.api, str(new), "which package is for dates, not quartz?").values())


def test_a_session_that_begins_in_a_second_clone_is_asked_once_what_to_run(stage: Stage) -> None:
    start = json.loads(hooked(stage.api, "SessionStart", str(stage.at["tarball-config"]), source="startup"))
    text = start["hookSpecificOutput"]["additionalContext"]
    assert "`memctl project join`" in text.split("\n")[1]
    assert str(stage.victim) in text
    assert "memctl project" not in hooked(stage.api, "SessionStart", str(stage.victim), source="startup")
    assert "memctl project" not in hooked(stage.api, "SessionStart", str(stage.at["go-module"]), source="startup")
    there = str(stage.at["tarball-config"])
    prompt = hooked(stage.api, "UserPromptSubmit", there, prompt="which dates are right here?")
    assert "memctl project" not in prompt


def waiting(api: Api) -> dict[str, str]:
    found = json.loads(api.ask("/v1/projects/waiting")[2])["items"]
    return {each["root"]: each["claims"] for each in found}


def say(stage: Stage, name: str, **given: str) -> int:
    body, key = json.dumps({"by": "user", **given}).encode(), {"Idempotency-Key": uuid4().hex}
    status = stage.api.ask(f"/v1/commands/{name}", method="POST", body=body, headers=key)[0]
    drained(stage.database)
    return status


def terminal(stage: Stage, *words: str, person: bool) -> int:
    """The exit code of a command of memctl, run by a person who says yes at a terminal, or by a program."""
    with commandline.terminal(b"y\n") as keyboard:
        environment = {**os.environ, **stage.api.environment}
        done = ran(*words, environment=environment, stdin=b"y\n", terminal=keyboard if person else None)
    drained(stage.database)
    return done.code


def test_a_second_clone_is_of_the_project_from_a_persons_yes_until_their_no(stage: Stage) -> None:
    clone = stage.folder / "clone"
    git(stage.folder, "clone", "-q", str(stage.victim), str(clone))
    git(clone, "remote", "set-url", "origin", "git@git.example.org:dana/ledger.git")
    keep(stage.database, session("clone", clone, "candidly", at=900))
    assert OURS not in shown(stage.api, clone)
    assert waiting(stage.api)[str(clone)] == SHARED
    assert say(stage, "merge-projects", into=SHARED, project=str(clone), by="agent") == 422
    assert OURS not in shown(stage.api, clone)
    assert terminal(stage, "project", "merge", SHARED, str(clone), person=False) == 2
    assert terminal(stage, "project", "join", str(clone), person=False) == 2
    assert str(clone) in waiting(stage.api)
    assert terminal(stage, "project", "join", str(clone / "src"), person=True) == 0
    assert OURS in shown(stage.api, clone)
    assert "candidly" in shown(stage.api, stage.victim)
    assert str(clone) not in waiting(stage.api)
    assert terminal(stage, "project", "join", str(clone), person=False) == 3
    assert say(stage, "split-project", project=str(clone)) == 200
    assert OURS not in shown(stage.api, clone)
    assert str(clone) not in waiting(stage.api)


def test_what_waits_is_listed_for_review(stage: Stage) -> None:
    def said(*words: str) -> str:
        return ran(*words, environment={**os.environ, **stage.api.environment}).out

    root = str(stage.at["alternates"])
    assert root in {each["root"] for each in json.loads(said("project", "list", "--waiting", "--json"))}
    checks = {(each["part"], each["name"]): each for each in json.loads(said("doctor", "--json"))["checks"]}
    assert checks["projects", "waiting"]["result"] == "ok"
    assert f"{root} says that it is of {stage.victim}" in checks["projects", "waiting"]["found"]


def test_the_viewer_shows_what_waits_and_takes_a_word(stage: Stage) -> None:
    root = str(stage.at["copied"])
    assert root in stage.api.ask("/projects")[2].decode()
    form = urlencode({"root": root, "project": SHARED, "say": "no", "key": uuid4().hex}).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": f"Bearer {TOKEN}"}
    status, _, page = stage.api.ask("/projects", method="POST", body=form, headers=headers)
    assert status == 200, page
    drained(stage.database)
    until(lambda: root not in waiting(stage.api), "the word")
    assert OURS not in shown(stage.api, stage.at["copied"])
