"""Who may ask what: every route of the API stands under a rule, and keys open what their scopes say."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from inspect import Parameter, signature

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import described_api
from starlette.requests import Request

from memctl.api.http.access import caller_of, is_open, refused, rule_of, rules
from memctl.api.http.forget import forget_once
from memctl.api.reading.caller import NOBODY, OWNER, Caller, drawn
from memctl.api.reading.reader import Readers, opened, reader_of
from memctl.api.write.command_handler import CommandHandler
from memctl.api.write.remote_ingest import RemoteIngest
from memctl.infra import api_keys as keys
from memctl.infra.api_keys import SCOPES, Key, Lock

VIEWER = (
    "/", "/search", "/sessions", "/sessions/x", "/things/x", "/events/x", "/bugs", "/knowledge", "/projects",
    "/projects/x", "/engine",
)  # fmt: skip


def routes() -> list[tuple[str, str]]:
    """Method and path of every route of the API, with a word for each parameter."""
    paths = described_api()["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


ROUTES = routes()


def test_a_request_that_no_guard_let_in_is_nobodys() -> None:
    with pytest.raises(AttributeError):
        caller_of(Request({"type": "http", "method": "GET", "path": "/v1/memories", "headers": []}))


@pytest.mark.parametrize(
    "acts", [Readers.read, reader_of, opened, CommandHandler.carry_out, RemoteIngest.take, drawn, forget_once]
)
def test_who_acts_for_a_caller_is_given_it(acts: Callable[..., object]) -> None:
    assert signature(acts).parameters["caller"].default is Parameter.empty


def test_a_caller_is_limited_or_not_by_what_is_said_and_nobody_reads_nothing() -> None:
    with pytest.raises(TypeError):
        Caller("x", frozenset())  # type: ignore[call-arg]
    assert NOBODY.projects == ()


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_of_the_api_stands_under_a_scope(method: str, path: str) -> None:
    rule = rule_of(method, path)
    assert rule is not None
    assert rule.scopes or path in ("/healthz", "/readyz")


def test_a_path_is_looked_at_as_far_as_rules_go() -> None:
    began = time.process_time()
    assert rule_of("GET", "/v1/" + "a/" * 100_000) is None
    assert rule_of("GET", "/static/" + "a/" * 100_000) is not None
    assert time.process_time() - began < 0.2


def test_every_rule_is_of_a_route_that_is_there() -> None:
    there = {(method, name) for method, path in ROUTES for name in (path, path.partition("{")[0])}
    there |= {("POST", "/v1/commands/"), ("GET", "/v1/openapi.json")}
    assert {(method, path) for method, path in rules() if path.startswith("/v1")} <= there


@pytest.mark.parametrize(("method", "path"), [*((m, p) for m, p in ROUTES), *(("GET", p) for p in VIEWER)])
def test_nobody_without_a_scope_is_answered(method: str, path: str) -> None:
    assert is_open(method, path) == (path in ("/healthz", "/readyz"))
    assert bool(refused(Caller("x", frozenset(), None), method, path)) != is_open(method, path)
    assert not refused(OWNER, method, path)


@pytest.mark.parametrize(
    "path", ["/waiting", "/sign-out", "/v1/tickets", "/v1/nothing", "/v1", "//v1/search", "/v1/search/", "/things"]
)
def test_what_no_rule_names_is_the_owners_alone(path: str) -> None:
    assert rule_of("GET", path) is None
    assert refused(Caller("x", frozenset(SCOPES), None), "GET", path)


def test_a_path_stands_under_the_longest_rule_that_names_it_and_head_is_like_get() -> None:
    assert rule_of("GET", "/v1/things/a/b/c") is rules()["GET", "/v1/things/"]
    assert rule_of("HEAD", "/v1/stats") is rules()["GET", "/v1/stats"]
    assert rule_of("DELETE", "/v1/stats") is None
    assert rule_of("POST", "/v1/things/x") is None


@given(st.sets(st.sampled_from(SCOPES)), st.booleans())
def test_a_key_opens_what_its_scopes_say_and_limited_to_projects_nothing_that_tells_of_all(
    scopes: set[str], limited: bool
) -> None:
    caller = Caller("x", frozenset(scopes), ("github.com/acme/app",) if limited else None)
    for (method, path), rule in rules().items():
        opens = not rule.scopes or (bool(rule.scopes & scopes) and not (limited and rule.whole))
        assert (refused(caller, method, path) == "") == opens


# --- tokens ---

AT = datetime(2026, 3, 1, tzinfo=UTC)


def lock(**more: datetime) -> Lock:
    key = Key(id="0123456789ab", space="default", name="dana", scopes=("read",), projects=None, made_at=AT, **more)
    return Lock({key.id: (key, keys._hash("s_e-cret"))})


def test_a_token_opens_its_own_key_alone() -> None:
    found = lock().opened_by("memctl_0123456789ab_s_e-cret")
    assert found is not None
    assert found.name == "dana"


@pytest.mark.parametrize(
    "token",
    [
        "", "memctl_", "memctl_0123456789ab", "memctl_0123456789ab_", "memctl_0123456789ab_s_e-cret ", "s_e-cret",
        "memctl_0123456789ab_s_e-creT", "memctl_ffffffffffff_s_e-cret", "0123456789ab_s_e-cret", "memctl_x_\udcff",
        "memctl_ffffffffffff_" + "\0" * 32,
    ],
)  # fmt: skip
def test_no_other_token_opens_anything(token: str) -> None:
    assert lock().opened_by(token) is None


def test_a_key_holds_until_it_is_revoked_or_expires() -> None:
    def key(**more: datetime) -> Key:
        return Key(id="a", space="default", name="a", scopes=(), projects=None, made_at=AT, **more)

    assert key().holds(AT)
    assert key(expires_at=AT + timedelta(seconds=1)).holds(AT)
    assert not key(expires_at=AT).holds(AT)
    assert not key(revoked_at=AT - timedelta(days=1)).holds(AT)
