"""The viewer's pages and their addresses. Each page is one question of the read API, put into a template."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import partial
from http import HTTPStatus
from importlib import resources
from typing import Any, TypeVar, get_args
from urllib.parse import urlencode
from uuid import uuid4

import msgspec
from msgspec.structs import asdict
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import URL
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from memctl.api.checks.counting import Counted
from memctl.api.checks.health import VECTOR_STORE, health, servers, troubles
from memctl.api.http.access import caller_of
from memctl.api.http.metrics import Timings
from memctl.api.http.problems import of_http, status_of
from memctl.api.queries import bugs, claims, figures, project, stats
from memctl.api.queries import hindsight as hindsights
from memctl.api.queries import memories as queries
from memctl.api.queries.activity import activity, reach
from memctl.api.queries.endings import uses_of
from memctl.api.queries.explain import explain
from memctl.api.queries.turns import position_of, timeline, turn_with, turns_and_headings
from memctl.api.reading import models
from memctl.api.reading.caller import NOBODY, Caller
from memctl.api.reading.counts import Counts, Stats
from memctl.api.reading.evidence import field_text, with_evidence
from memctl.api.reading.pages import Keyed, Where, one, total
from memctl.api.reading.pages import page as page_of
from memctl.api.reading.places import Places, places_of, project_asked, projects_of
from memctl.api.reading.projects import ProjectItem
from memctl.api.reading.reader import Reader, Readers
from memctl.api.reading.records import EpisodeItem, SessionItem
from memctl.api.reading.views import BugAnswer, BugHit
from memctl.api.search.engine import Engine, Question
from memctl.api.viewer import corrections, lists, render, trends
from memctl.api.viewer.forgetting import Forgetting, PageAnswer
from memctl.api.viewer.sign_in import COOKIE, SIGNED_IN_S, Browsers
from memctl.api.viewer.timeline import LAST_S, MOST_LANES
from memctl.api.viewer.timeline import timeline as drawn
from memctl.api.write.command_handler import CommandHandler
from memctl.domain.events.event import Micros
from memctl.domain.knowledge.memory import MemoryKind
from memctl.domain.projects.identity import Project, SeveralProjects
from memctl.domain.support.errors import MemctlError
from memctl.infra.readmodels import rebuilds
from memctl.projections.episodes import EpisodeRow

log = logging.getLogger("memctl.api")

T = TypeVar("T")

ANYWHERE = "*"
"""What the project field says where nothing was chosen."""

MOST_PROJECTS = 60
"""On one page."""

MOST_ROUTES = 15
"""Of the API and the viewer, whose times are shown."""

_TITLES = {404: "Not found", 422: "This cannot be shown", 500: "This did not work", 503: "Not now"}
"""Of pages that say why there is no other, by the status of HTTP."""

_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

# Under the API's own policy, no-referrer, browsers call the origin of a page's forms "null".
_HEADERS = {"Content-Security-Policy": render.POLICY, "Referrer-Policy": "same-origin"}

Show = Callable[[Request], str | PageAnswer | Response]
Draw = Callable[[], str]
Look = Callable[[Reader, Request], Draw | Callable[[], Response]]


class Page(Route):
    """A route that is measured under its own path (`metrics.Timed`), as those of the API are."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, found = super().matches(scope)
        return match, found if match is Match.NONE else {**found, "route": self}


def site(
    readers: Readers, engine: Engine, browsers: Browsers, handler: CommandHandler, timings: Timings
) -> list[Route]:
    """The viewer's routes, for an application beside the API's, whose answers `timings` measures."""
    pages, forgetting = _Pages(readers, engine, timings, handler), Forgetting(handler.settings, readers)
    waits = corrections.Waits(readers, handler)
    shown: dict[str, Show] = {
        "/": pages.home,
        "/search": pages.search,
        "/sessions": pages.rows(lists.SESSIONS),
        "/sessions/{id:path}": pages.read(pages.session),
        "/work": pages.rows(lists.WORK),
        "/things/{id:path}": pages.read(pages.thing),
        "/events/{id}": pages.read(pages.event),
        "/bugs": pages.bugs,
        "/knowledge": pages.rows(lists.KNOWLEDGE),
        "/hindsight": pages.rows(lists.HINDSIGHT),
        "/recalls": pages.rows(lists.RECALLS),
        "/trends": pages.read(pages.trends),
        "/projects": pages.read(pages.projects),
        "/projects/{name:path}": pages.read(pages.project),
        "/engine": pages.engine,
        "/waiting": waits.ask,
        "/forget": forgetting.ask,
    }
    sign_in = _SignIn(browsers)
    return [
        *(Page(path, _page(show)) for path, show in shown.items()),
        Page("/bugs", _form(pages.like_an_error), methods=["POST"]),
        Page("/waiting", _form(waits.do), methods=["POST"]),
        Page("/forget", _form(forgetting.do), methods=["POST"]),
        Page("/projects", _form(pages.said_of_project), methods=["POST"]),
        Page("/things", _form(pages.correct), methods=["POST"]),
        Page("/static/{name}", _static),
        # What a browser asks for of its own accord, where a page names no icon.
        Page("/favicon.ico", lambda _: RedirectResponse("/static/icon.svg", 308)),
        Page("/sign-in", sign_in.ask),
        Page("/sign-in", sign_in.by_token, methods=["POST"]),
        Page("/sign-in/{ticket}", sign_in.by_ticket),
        Page("/sign-out", sign_in.leave, methods=["POST"]),
    ]


def _page(show: Show) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        return await run_in_threadpool(_shown_or_refused, partial(show, request), caller_of(request), request.url)

    return answer


def _form(do: Callable[[Mapping[str, Any], Caller], str | PageAnswer]) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        async with request.form(max_files=0, max_fields=8) as form:
            given = dict(form)
        caller = caller_of(request)
        return await run_in_threadpool(_shown_or_refused, partial(do, given, caller), caller, request.url)

    return answer


def _shown_or_refused(show: Callable[[], str | PageAnswer | Response], caller: Caller, asked: URL) -> Response:
    """A page, or one that says in words why there is none, and leads on."""
    try:
        shown = show()
        if isinstance(shown, Response):
            return shown
        return _html(*shown) if isinstance(shown, PageAnswer) else _html(shown)
    except MemctlError as why:
        status = status_of(why)
        if status == 500:
            log.error("a page failed: %s", why, exc_info=why)
        if isinstance(why, SeveralProjects) and why.paths:
            choices = [(path, _of_project(asked, path)) for path in why.paths]
            return _html(render.page("which_project.html", caller, called=why.project, choices=choices, at=""), status)
        title = _TITLES.get(status, HTTPStatus(status).phrase)
        return _html(render.page("refused.html", caller, title=title, message=str(why), hint=why.hint, at=""), status)


def _of_project(asked: URL, project: str) -> str:
    """The address that asks the same of another project."""
    if asked.path.startswith("/projects/"):
        return f"/projects/{render.part(project)}"
    return f"{asked.path}?{asked.include_query_params(project=project).query}"


async def not_there(request: Request, why: Exception) -> Response:
    """The answer for a path that does not exist: a page for a browser, a problem document for other clients."""
    if request.url.path.startswith("/v1") or "text/html" not in request.headers.get("accept", ""):
        return await of_http(request, why)
    message = "There is no such page here."
    caller = caller_of(request)
    return _html(render.page("refused.html", caller, title=_TITLES[404], message=message, hint="", at=""), 404)


def _html(text: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(text, status, headers=_HEADERS)


def _file(name: str, content: bytes) -> Response:
    """What a browser keeps as a file."""
    kind = "text/csv; charset=utf-8" if name.endswith("csv") else "application/json"
    return Response(content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    kind = next((kind for ending, kind in _TYPES.items() if name.endswith(ending)), None)
    file = resources.files("memctl.api.viewer").joinpath("static", name)
    if kind is None or name.startswith(".") or not file.is_file():
        raise HTTPException(404)
    return Response(file.read_bytes(), media_type=kind, headers={"Cache-Control": "private, max-age=300"})


class _SignIn:
    def __init__(self, browsers: Browsers) -> None:
        self._browsers = browsers

    async def ask(self, _: Request) -> Response:
        return _html(render.page("sign_in.html", NOBODY, wrong=False, onward=""))

    async def by_token(self, request: Request) -> Response:
        async with request.form(max_files=0, max_fields=4) as form:
            token = str(form.get("token", "")).strip()
        cookie = await run_in_threadpool(self._browsers.by_token, token)
        if cookie is not None and (
            onward := self._browsers.onward(request.url.hostname or "", request.url.port, cookie)
        ):
            # Not by a redirect: a page's policy keeps its forms from leading elsewhere.
            return _html(render.page("sign_in.html", NOBODY, wrong=False, onward=onward))
        return self._signed_in(cookie)

    async def by_ticket(self, request: Request) -> Response:
        """Whoever is signed in stays who they are: a link of somebody else's does not change that."""
        cookies = request.headers.get("cookie", "").encode("latin-1")
        if await run_in_threadpool(self._browsers.signed_in, cookies) is not None:
            return RedirectResponse("/", 303)
        ticket = request.path_params["ticket"]
        if onward := self._browsers.onward(request.url.hostname or "", request.url.port, None, ticket):
            return RedirectResponse(onward, 303)
        return self._signed_in(self._browsers.by_ticket(ticket))

    def _signed_in(self, cookie: str | None) -> Response:
        if cookie is None:
            return _html(render.page("sign_in.html", NOBODY, wrong=True, onward=""), 403)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(
            COOKIE, cookie, SIGNED_IN_S, path="/", httponly=True, samesite="strict", secure=self._browsers.secure
        )
        return answer

    async def leave(self, request: Request) -> Response:
        self._browsers.leave(request.headers.get("cookie", "").encode("latin-1"))
        answer: Response = RedirectResponse("/sign-in", 303)
        if request.state.of_proxy:
            why = "The proxy in front of memctl signed you in. Sign out there."
            answer = _html(render.page("sign_in.html", NOBODY, refusal=why))
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return answer


class _Pages:
    def __init__(self, readers: Readers, engine: Engine, timings: Timings, handler: CommandHandler) -> None:
        self._settings = handler.settings
        self._handler = handler
        self._readers = readers
        self._engine = engine
        self._timings = timings
        self._counted = Counted()

    def read(self, page: Look) -> Show:
        """A page that is made of what one reader says. It is drawn once the reader is given back."""
        return lambda request: self._readers.read(lambda reader: page(reader, request), caller_of(request))()

    def home(self, request: Request) -> str:
        caller = caller_of(request)
        timeline_alone = request.query_params.get("part") == "timeline"
        # Figures and state are of memory as a whole.
        asked = servers(self._settings) if caller.projects is None and not timeline_alone else None

        def look(reader: Reader) -> Draw:
            places = _places(reader, request)
            since, before = (
                Micros(min(_number(request, name), LAST_S) * 1_000_000) or None for name in ("since", "before")
            )
            now = datetime.now(UTC)
            whole = reach(reader, places, now)
            lanes = 1 if places.project else len(projects_of(reader).all)  # that show all that was worked on
            if not (since or before) and 1 < lanes <= MOST_LANES:
                since = Micros(whole[0])
            found = activity(reader, places, now, since=since, before=before, limit=MOST_LANES)
            work = drawn(found, whole)
            if timeline_alone:
                return self._page(request, "timeline.html", work=work)
            return self._page(
                request,
                "home.html",
                sessions=queries.sessions(reader, places, limit=6).items,
                claims=claims.insights(reader, places, limit=6).items,
                bugs=_fixed(reader, places, 4),
                figures=None if asked is None else self._figures(reader, places),
                waiting=self._kept(reader, "waiting", lambda: corrections.count_waiting(reader)) if caller.owner else 0,
                troubles=[] if asked is None else troubles(health(reader, asked)),
                work=work,
            )

        return self._readers.read(look, caller)()

    def search(self, request: Request) -> str:
        text = request.query_params.get("q", "").strip()[:8_000]
        kind = request.query_params.get("kind", "")[:64]
        since, before = (_day(request, name) for name in ("since", "before"))
        kept = {"q": text, "project": request.query_params.get("project", "")[:4096], "kind": kind}
        kept |= {"since": str(since or ""), "before": str(before or "")}

        def ask(reader: Reader) -> Draw:
            answer = None
            if text:
                asked = Question(
                    query=text, places=_places(reader, request), now=datetime.now().astimezone(), limit=20,
                    kinds=(kind,) if kind else (), since=_start_of(since), before=_start_of(before), explain=True,
                    on_request=True,
                )  # fmt: skip
                answer = msgspec.to_builtins(self._engine.search(reader, asked))
            part = request.query_params.get("part") == "results"
            return self._page(
                request, "results.html" if part else "search.html", q=text, answer=answer, kind=kind, since=since,
                before=before, kinds=get_args(MemoryKind), projects=[] if part else _names(reader),
                ranges=lists.ranges(datetime.now(UTC).date(), kept),
            )  # fmt: skip

        return self._readers.read(ask, caller_of(request))()

    def rows(self, a_list: lists.List) -> Show:
        """The page of a list, or with `as` the whole of it as a file."""

        def look(reader: Reader, request: Request) -> Draw | Callable[[], Response]:
            wanted = self._wanted(reader, request, a_list)
            form = request.query_params.get("as", "")
            if form in ("csv", "json"):
                items = a_list.everything(reader, wanted)
                text = lists.as_csv(a_list, items).encode() if form == "csv" else lists.as_json(items)
                return partial(_file, f"{a_list.name}.{form}", text)
            shown = self._shown(reader, request, a_list, wanted)
            beside = self._beside(reader, a_list, wanted, shown)
            return self._page(request, f"{a_list.name}.html", **shown, **beside)

        return self.read(look)

    def _shown(self, reader: Reader, request: Request, a_list: lists.List, wanted: lists.Wanted) -> dict[str, Any]:
        """What the page of a list shows of it."""
        query, cursor, given = request.query_params, request.query_params.get("cursor"), wanted.given
        since, before = (_day(request, name) for name in ("since", "before"))
        page, order = a_list.find(reader, wanted, lists.MOST_ROWS, cursor), wanted.order
        key = ("total", a_list.name, *wanted[:3], tuple(given.items()))
        total = None if cursor else self._kept(reader, key, page.total)
        days = {"since": str(since or ""), "before": str(before or "")}
        project = query.get("project", "")[:4096]
        kept = {"project": project, **given, **days, "sort": order if query.get("sort") else ""}
        return {
            "list": a_list, "page": page, "total": total, "given": given, "since": since,
            "before": before, "order": order, "projects": _names(reader), "narrowed": any(kept.values()),
            "kept": urlencode({name: value for name, value in kept.items() if value}),
            "unsorted": urlencode({name: value for name, value in kept.items() if value and name != "sort"}),
            "ranges": lists.ranges(datetime.now(UTC).date(), kept),
        }  # fmt: skip

    def _wanted(self, reader: Reader, request: Request, a_list: lists.List) -> lists.Wanted:
        since, before = (_start_of(_day(request, name)) for name in ("since", "before"))
        order, given = a_list.order(request.query_params.get("sort", "")), a_list.given(request.query_params)
        return lists.Wanted(_places(reader, request), since, before, order, given)

    def _beside(
        self, reader: Reader, a_list: lists.List, wanted: lists.Wanted, shown: Mapping[str, Any]
    ) -> dict[str, object]:
        """What stands above the rows of a list, beside what else is shown of it."""
        if a_list is lists.SESSIONS:
            days = (wanted.since, wanted.before)
            return {
                "totals": self._kept(
                    reader, (wanted.places, days), lambda: stats.totals_of(reader, wanted.places, *days)
                )
            }
        if a_list is lists.BUGS:
            return {"q": ""}
        if a_list is lists.HINDSIGHT:
            found, since, before = shown["page"].all, shown["since"], shown["before"]
            plots = trends.drawn([trends.held(found)], datetime.now(UTC).date(), since, before)
            return {"counts": hindsights.counted(found), "plots": plots}
        return {}

    def session(self, reader: Reader, request: Request) -> Draw:
        found = queries.session(reader, request.path_params["id"])
        at = request.query_params.get("event")
        if at or "after" in request.query_params:
            after = max(position_of(reader, at) - 1, 0) if at else _number(request, "after")
            events = timeline(reader, found.stream, after=after, limit=60)
            return self._page(request, "session_events.html", session=found, page=events, after=after)
        asked = request.query_params.get("turns", "").partition(".")
        after, skip = (_whole(asked[0]), _whole(asked[2]))
        if within_turn := request.query_params.get("turn"):
            after = turn_with(reader, found.stream, within_turn)
        page, headings = turns_and_headings(reader, found.stream, after=after, skip=skip)
        episodes = with_evidence(reader, _episodes_of(reader, found), EpisodeItem)
        return self._page(
            request, "session.html", session=found, episodes=episodes, page=page, headings=headings,
            later=bool(after or skip),
        )  # fmt: skip

    def thing(self, reader: Reader, request: Request) -> Draw:
        return self._thing(reader, request.path_params["id"], "", caller_of(request))

    def correct(self, given: Mapping[str, Any], caller: Caller) -> str:
        """A person said something of a thing: its page, with that."""
        id, position = corrections.correct(self._handler, given, caller)
        seen, said = corrections.shows(self._readers, caller, position), str(given.get("say", ""))
        done = "It is recorded." if seen else "It is recorded. What stands here does not show it yet: memory is behind."
        return self._readers.read(lambda reader: self._thing(reader, id, done, caller, said), caller)()

    def _thing(self, reader: Reader, asked: str, done: str, caller: Caller, said: str = "") -> Draw:
        found = queries.thing(reader, asked)
        id = str(found.item["id"])
        feedback = one(reader, models.memory_feedback, str(found.item.get("memory_id") or id))
        pinned = said == "pin" or (said != "unpin" and feedback is not None and feedback.pinned)
        offered = [each for each in corrections.offered(found.kind, caller) if each != ("pin" if pinned else "unpin")]
        claim = queries.id_of(reader, "claim", id) if {"holds", "wrong"}.intersection(offered) else ""
        words = queries.words_of(reader, claim) if "holds" in offered else ""
        if not words and {"pin", "unpin"}.intersection(offered):
            words = queries.words_of_memory(reader, id)
        settled = one(reader, models.memory_feedback, claim) if claim else feedback
        return partial(
            render.page, "thing.html", caller, kind=found.kind, item=found.item, why=explain(reader, id),
            bug=_bug_of(reader, found.kind, id), done=done, key=uuid4().hex, labels=corrections.LABELS,
            offered=offered, words=words, feedback=feedback, settled=settled, at="things", project=ANYWHERE,
        )  # fmt: skip

    def event(self, reader: Reader, request: Request) -> Draw:
        found = queries.event(reader, request.path_params["id"])
        field = request.query_params.get("field", "text")
        return self._page(
            request,
            "event.html",
            event=found,
            field=field,
            text=field_text(found.payload, field) or "",
            start=_number(request, "start"),
            end=_number(request, "end"),
        )

    def bugs(self, request: Request) -> str | PageAnswer | Response:
        if request.query_params.get("q", "").strip():
            return self.like_an_error(request.query_params, caller_of(request))
        return self.rows(lists.BUGS)(request)

    def like_an_error(self, given: Mapping[str, Any], caller: Caller) -> str:
        """`given` has `q`, the error, and `project`. A form posts it, because an error is long, has several lines, and
        must not stay in the browser's history."""
        text, project = str(given.get("q", "")).strip()[:20_000], _named(given)

        def look(reader: Reader) -> BugAnswer:
            places = places_of(reader, project)
            chances = self._engine.bugs_like(reader, text, places)
            return bugs.bugs(reader, text, places, chances=chances, limit=20)

        return render.page(
            "bugs_like.html", caller, q=text, answer=self._readers.read(look, caller), at="bugs", project=project
        )

    def trends(self, reader: Reader, request: Request) -> Draw:
        places, today = _places(reader, request), datetime.now(UTC).date()
        since, before = (_day(request, name) for name in ("since", "before"))
        whole = reader.limited_to is None
        found, uses = self._kept(
            reader, ("trends", places), lambda: (trends.trends(reader, places), uses_of(reader) if whole else []),
        )  # fmt: skip
        starts = tuple(map(_start_of, (since, before)))
        used = self._kept(reader, ("models", places, starts), lambda: stats.models_of(reader, places, *starts))
        days = {"since": str(since or ""), "before": str(before or "")}
        kept = {"project": request.query_params.get("project", "")[:4096], **days}
        return self._page(
            request, "trends.html", plots=trends.drawn(found, today, since, before), uses=uses, since=since,
            models=used, prices=self._settings.prices,
            before=before, ranges=lists.ranges(today, kept),
        )  # fmt: skip

    def projects(self, reader: Reader, request: Request) -> Draw:
        return self._projects(reader, caller_of(request), _number(request, "after"), project=_project(request))

    def _projects(self, reader: Reader, caller: Caller, after: int = 0, *, project: str, but: str = "") -> Draw:
        """The page of projects from that one on, without the checkout `but` among those that wait."""
        known = projects_of(reader)
        shown = known.all[after : after + MOST_PROJECTS]
        return partial(
            render.page, "projects.html", caller, projects=self._listed(reader, shown),
            waiting=corrections.checkouts(known, but=but), count=len(known.all), after=after, next=after + len(shown),
            at="projects", project=project,
        )  # fmt: skip

    def said_of_project(self, given: Mapping[str, Any], caller: Caller) -> str:
        """A person said whether the checkout at `root` is of `project`."""
        root, into, key = (str(given.get(name, ""))[:4096] for name in ("root", "project", "key"))
        yes = given.get("say") == "yes"
        asked = {"project": root, "by": "user"} | ({"into": into} if yes else {})
        name = "merge-projects" if yes else "split-project"
        self._handler.carry_out(name, msgspec.json.encode(asked), f"{key[:64]} {name}", caller)
        return self._readers.read(lambda reader: self._projects(reader, caller, project=ANYWHERE, but=root), caller)()

    def project(self, reader: Reader, request: Request) -> Draw:
        asked = project_asked(reader, request.path_params["name"], None)
        page = project.shown(reader, asked, time.time_ns() // 1000)
        return self._page(request, "project.html", page=page, sections=project.sections(page))

    def engine(self, request: Request) -> str:
        asked = servers(self._settings)
        name = "engine_live.html" if request.query_params.get("part") == "live" else "engine.html"

        def look(reader: Reader) -> Draw:
            counts = self._counts(reader, Places(None, "asked", None))
            kinds, levels = self._kept(
                reader, "by kind", lambda: (figures.memories_by_kind(reader), figures.claims_by_level(reader))
            )
            return self._page(
                request,
                name,
                stats=Stats(**asdict(counts), **asdict(stats.state(reader))),
                kinds=kinds,
                levels=levels,
                replays=rebuilds.progress(reader.connection, 5),
                troubles=troubles(health(reader, asked)),
                missing=[] if asked.vectors or VECTOR_STORE in asked.mute else self._engine.condition(reader),
                took=self._timings.by_route()[:MOST_ROUTES],
            )

        return self._readers.read(look, caller_of(request))()

    def _kept(self, reader: Reader, key: object, count: Callable[[], T]) -> T:
        """What `count` answers, or answered a while ago for who may see the same."""
        return self._counted.of((reader.space, reader.limited_to, reader.member, key), stats.version_of(reader), count)

    def _counts(self, reader: Reader, places: Places) -> Counts:
        """What there is, counted again now and then."""
        return self._kept(reader, places, lambda: stats.counts(reader, places))

    def _figures(self, reader: Reader, places: Places) -> list[tuple[str, str]]:
        """What there is of these places, and all events where these are all places: a word and a number each."""
        counts = self._counts(reader, places)
        held, events = counts.read_models, counts.events.total
        if places.locations is not None:
            both = (models.sessions, models.memories)
            held = self._kept(
                reader, ("held", places), lambda: {p.name: total(reader, p, Where(p).within(places)) for p in both}
            )
            events = 0
        totals = counts.totals
        found = [
            ("sessions", f"{held['sessions']:,}"),
            ("prompts", f"{totals['prompts']:,}"),
            ("errors resolved", f"{totals['errors_resolved']:,} of {totals['errors']:,}"),
            ("memories", f"{held['memories']:,}"),
        ]
        return [*found, ("events", f"{events:,}")] if events else found

    def _listed(self, reader: Reader, shown: Sequence[Project]) -> list[tuple[ProjectItem, int, int]]:
        """Projects, each with how many sessions and memories it has; counted as `_counts` are."""
        sessions, memories = self._kept(
            reader,
            "by place",
            lambda: tuple(figures.by_place(reader, p) for p in (models.sessions, models.memories)),
        )
        return [(each, _sum_of(sessions, each), _sum_of(memories, each)) for each in project.listed(shown)]

    def _page(self, request: Request, name: str, **values: object) -> Draw:
        """What draws the template with these values, once the reader is given back."""
        at = request.url.path.split("/")[1]
        return partial(render.page, name, caller_of(request), **values, at=at, project=_project(request))


def _sum_of(by_place: Mapping[str, int], of: ProjectItem) -> int:
    return sum(by_place.get(place, 0) for place in of.locations)


def _fixed(reader: Reader, places: Places, most: int) -> list[BugHit]:
    """Errors with a fix that is known to have held, those that were mended most often first."""
    asked = bugs.known(reader, places, bugs.BugFilter(open=False), limit=most + 2, whole=False)
    return [hit for hit in asked.hits if hit.solution][:most]


def _names(reader: Reader) -> list[str]:
    """The projects that a form offers: by name, those that share one by path."""
    known = projects_of(reader).all[:MOST_PROJECTS]
    called = Counter(each.name for each in known)
    return [each.name if called[each.name] == 1 else each.root or each.anchor for each in known]


def _project(request: Request) -> str:
    return _named(request.query_params)


def _named(given: Mapping[str, Any]) -> str:
    """The project that is asked about."""
    return str(given.get("project", "")).strip()[:4096] or ANYWHERE


def _day(request: Request, name: str) -> date | None:
    """A day that a form asks about, as browsers write it; None for none, and for what is no day."""
    with suppress(ValueError):
        return date.fromisoformat(request.query_params.get(name, "")[:10])
    return None


def _start_of(day: date | None) -> Micros | None:
    """When a day begins, UTC, in microseconds."""
    return None if day is None else Micros((day - date(1970, 1, 1)).days * 86_400_000_000)


def _places(reader: Reader, request: Request) -> Places:
    return places_of(reader, _project(request))


def _episodes_of(reader: Reader, session: SessionItem) -> Sequence[Keyed[EpisodeRow]]:
    """What a session worked on, the newest first."""
    there = Where(models.episodes).within(Places(None, "asked", tuple(session.locations)))
    return page_of(reader, models.episodes, "started_at", there.equal("stream", session.stream), limit=50)[0]


def _number(request: Request, name: str) -> int:
    return _whole(request.query_params.get(name, ""))


def _whole(value: str) -> int:
    """The number that the digits say; 0 for anything else."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 16 else 0


def _bug_of(reader: Reader, kind: str, id: str) -> BugHit | None:
    """The kind of error that a thing is, or that a memory was made of."""
    if kind == "bug":
        return bugs.of_signature(reader, id)
    memory = one(reader, models.memories, id) if kind == "memory" else None
    if memory is not None and memory.source.projection == "bug_patterns":
        return bugs.of_signature(reader, memory.source.key)
    return None
