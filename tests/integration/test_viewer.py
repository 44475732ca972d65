"""The viewer as a browser meets it: signing in, every page over a folded memory, and that what it shows stays data."""

from __future__ import annotations

import contextlib
import csv
import html
import io
import os
import re
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal
from urllib.parse import parse_qs, quote, urlsplit
from zoneinfo import ZoneInfo

import httpx
import msgspec
import pytest
import uvicorn
from asked import Remembered, remembered
from data_dirs import used
from draining import catch_up
from events import observed, stated
from histories import workshop
from waiting import until

from memctl.api.client import Client
from memctl.api.queries import figures
from memctl.api.reading.caller import OWNER
from memctl.api.reading.reader import Readers
from memctl.api.search.engine import Engine
from memctl.api.server.application import application
from memctl.api.server.auth import Guard, names_of
from memctl.api.viewer import lists, site
from memctl.api.viewer.sign_in import COOKIE, Browsers
from memctl.api.write.command_handler import CommandHandler
from memctl.api.write.remote_ingest import RemoteIngest
from memctl.domain.events.event import YEAR_9999, Micros
from memctl.domain.events.facts import quote_hash
from memctl.domain.events.observations import NoticeReceived, PromptSubmitted, ToolCalled, ToolFailed
from memctl.domain.events.recalls import BECAUSE, SILENT, MemoryRecalled, PassedOver
from memctl.domain.language.notes import NOTES, MemoryNoted
from memctl.infra.database import connect
from memctl.infra.embedders import NONE, Embedders
from memctl.infra.listening import viewer_host
from memctl.infra.log.append import append
from memctl.infra.settings import load_settings
from memctl.workers.erasure import forgetting
from memctl.workers.folding.drain import Drainer

TOKEN = "the-viewers-token"
HOSTILE = "<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\"> please always keep it"

TWINS = "/home/dana/left/twin", "/home/dana/right/twin"
"""Two projects of one name."""

PAGES = (
    "/",
    "/search?q=decimal",
    "/sessions",
    "/sessions?since=2026-03-01&before=2026-04-01",
    "/work",
    "/work?file=.py&outcome=success",
    "/work?file=no-such-file",
    "/work?status=open",
    "/knowledge",
    "/bugs",
    "/bugs?q=TypeError",
    "/recalls",
    "/recalls?said=spoken",
    "/hindsight",
    "/hindsight?recalled=no&sort=seconds",
    "/trends",
    "/trends?project=ledger",
    "/trends?since=2026-03-01&before=2026-04-01",
    "/projects",
    "/engine",
    "/engine?part=live",
    "/waiting",
    "/forget",
    "/forget?how=session&what=hostile",
    "/sessions/hostile?after=0",
)


BY_NAME = {"Host": viewer_host(TOKEN)}


@dataclass
class Viewer:
    """A served viewer, and how to be signed in."""

    url: str
    browsers: Browsers

    @contextlib.contextmanager
    def signed_in(self) -> Iterator[httpx.Client]:
        with httpx.Client(base_url=self.url, follow_redirects=True) as client:
            assert client.get(f"/sign-in/{self.browsers.ticket(OWNER)}", headers=BY_NAME).status_code == 200
            yield client


@pytest.fixture(scope="module")
def memory(postgres_server: str, migrated_template: str, vectors: tuple[str, str]) -> Iterator[Remembered]:
    with remembered(postgres_server, migrated_template, vectors, embedded=False) as found:
        with connect(found.database_url) as connection:
            payload = PromptSubmitted(line="h1", text=HOSTILE)
            append(connection, 1, [observed(payload, session="hostile", at=90_000, location="/home/dana/<b>bold")])
            append(connection, 1, workshop())
            for line, at in (("b2", 89_600), ("b1", 89_000)):  # a file may tell what came later first
                told = PromptSubmitted(line=line, text=f"said as {line}")
                append(connection, 1, [observed(told, session="backwards", at=at)])
            for place in TWINS:
                said = PromptSubmitted(line=place, text=f"said in {place}")
                session = place.split("/")[3]
                asked = observed(said, session=session, at=40_000, location=place)
                called = ToolCalled(line=f"{place} 1", call="c", tool="Bash", input={"command": "python tides.py"})
                failed = ToolFailed(line=f"{place} 2", call="c", text="ZeroDivisionError: division by zero")
                used = [observed(each, session=session, at=40_001, location=place) for each in (called, failed)]
                append(connection, 1, [asked, *used])
            note = MemoryNoted(text="The tides are computed before the tests run.")
            append(connection, 1, [msgspec.structs.replace(stated(NOTES, note), actor="agent", location=TWINS[0])])
            notice = observed(NoticeReceived(line="b3", kind="title", text="Backwards"), session="backwards")
            append(connection, 1, [msgspec.structs.replace(notice, occurred_at=Micros(0))])
            silent = MemoryRecalled(hook="UserPromptSubmit", passed_over=(PassedOver("m-gone", 0.31, "weak"),))
            append(connection, 1, [stated("session/claude-code/backwards", silent, "kept-silent", at=89_700)])
            for number in range(45):
                said = PromptSubmitted(line=f"l{number}", text=f"said {number}")
                append(connection, 1, [observed(said, session="long", at=50_000 + number)])
        drainer = Drainer(found.database_url)
        catch_up(drainer)
        drainer.close()
        yield found


@pytest.fixture(scope="module")
def viewer(memory: Remembered, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    with pytest.MonkeyPatch.context() as here, contextlib.ExitStack() as stack:
        here.setenv("MEMCTL_DATA_DIR", str(used(tmp_path_factory.mktemp("data"))))
        here.setenv("MEMCTL_DATABASE_URL", memory.database_url)
        settings = load_settings()
        readers = Readers(memory.database_url, settings.space)
        stack.callback(readers.close)
        engine = Engine(memory.qdrant_url, memory.qdrant_api_key, Embedders(NONE))
        stack.callback(engine.close)
        commands = CommandHandler(settings, readers)
        stack.callback(commands.close)
        browsers = Browsers(TOKEN)
        routes = application(readers, engine, commands, browsers, RemoteIngest(settings, readers))
        app = Guard(routes, TOKEN, names_of("http://127.0.0.1"), browsers.signed_in)
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, name="viewer")
        thread.start()
        stack.callback(thread.join)
        stack.callback(setattr, server, "should_exit", True)
        until(lambda: server.started, "the viewer")
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Viewer(f"http://127.0.0.1:{port}", browsers)


def linked(browser: httpx.Client) -> list[str]:
    """A page of each kind of single thing, as the lists lead to them: bug, claim, project, session, event."""
    found = []
    for listed, leads in (
        ("/bugs", r"/things/[^\"?]+"),
        ("/knowledge", r"/things/[^\"?]+"),
        ("/projects", r"/projects/[^\"?]+"),
        ("/sessions", r"/sessions/(?!hostile|workshop|backwards|long)[^\"?]+"),
    ):
        (first, *_) = re.findall(rf'href="({leads})"', browser.get(listed).text)
        found.append(first)
    for page in tuple(found):
        found += re.findall(r'href="(/events/[^"]+|/things/[^"]+)"', browser.get(page).text)[:1]
    return [path.replace("&amp;", "&") for path in dict.fromkeys(found)]


def test_whoever_is_not_signed_in_is_led_to_the_door_and_told_nothing(viewer: Viewer) -> None:
    with httpx.Client(base_url=viewer.url, headers={"Accept": "text/html"}) as stranger:
        for path in (*PAGES, "/events/00", "/things/1"):
            answer = stranger.get(path)
            assert (answer.status_code, answer.headers["location"], answer.text) == (303, "/sign-in", "")
        assert "ledger" not in stranger.get("/sign-in").text
        assert stranger.get("/v1/stats").status_code == 401
        assert stranger.post("/sign-in", data={"token": "guess"}).status_code == 403


def test_where_memory_kept_silent_the_viewer_says_what_was_considered_and_why_it_was_left_out(viewer: Viewer) -> None:
    with viewer.signed_in() as browser:
        for path in ("/recalls?said=silent", "/sessions/backwards"):
            page = browser.get(path).text
            assert html.unescape(page).count(SILENT[""]) >= 1, path
            assert BECAUSE["weak"] in html.unescape(page)
        assert SILENT[""] not in html.unescape(browser.get("/recalls?said=spoken").text)
        assert browser.get("/recalls?as=json").json()[0]["block"]["silent"] == SILENT[""]


def test_many_projects_stand_on_several_pages_each_on_one(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    with viewer.signed_in() as browser:
        named = re.compile(r'<a href="/projects/[^"]+">([^<]+)</a>')
        everything = named.findall(browser.get("/projects").text)
        assert len(everything) > 1
        monkeypatch.setattr(site, "MOST_PROJECTS", 1)
        found, path = [], "/projects"
        while path:
            page = browser.get(path).text
            found.append(named.findall(page))
            onward = re.search(r'<a href="(/projects\?after=\d+)">Earlier ones</a>', page)
            path = onward[1] if onward else ""
        assert found == [[name] for name in everything]


def test_the_token_signs_in_and_signing_out_ends_it(viewer: Viewer) -> None:
    with httpx.Client(base_url=viewer.url, headers={"Accept": "text/html"}) as browser:
        own = {**BY_NAME, "Origin": f"http://{viewer_host(TOKEN)}"}
        given = browser.post("/sign-in", data={"token": TOKEN}, headers=own)
        assert given.status_code == 303
        told = given.headers["set-cookie"].lower()
        assert "httponly" in told
        assert "samesite=strict" in told
        assert browser.get("/").status_code == 200
        kept = {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}
        browser.post("/sign-out", headers={"Origin": viewer.url})
        assert browser.get("/").status_code == 303
        assert httpx.get(f"{viewer.url}/", headers=kept).status_code == 401, "who kept the cookie is out, too"


def test_over_https_the_cookie_is_for_https_alone(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    def cookie() -> list[str]:
        given = httpx.post(f"{viewer.url}/sign-in", data={"token": TOKEN}, headers=BY_NAME)
        return given.headers["set-cookie"].lower().split("; ")

    assert "secure" not in cookie()
    monkeypatch.setattr(viewer.browsers, "secure", True)
    assert "secure" in cookie()


def test_the_command_lines_address_opens_it_once(viewer: Viewer) -> None:
    with Client(viewer.url, TOKEN) as client:
        address = client.viewer().replace(viewer_host(TOKEN), "127.0.0.1")
    with httpx.Client(follow_redirects=True) as browser:
        assert browser.get(address, headers=BY_NAME).url.path == "/"
    assert httpx.get(address, headers=BY_NAME).status_code == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]"])
def test_no_cookie_is_set_where_all_of_loopback_would_be_sent_it(viewer: Viewer, name: str) -> None:
    port = urlsplit(viewer.url).port
    host = {"Host": f"{name}:{port}"}
    own = f"http://{viewer_host(TOKEN)}:{port}"
    with httpx.Client(base_url=viewer.url) as browser:
        led = browser.get(f"/sign-in/{viewer.browsers.ticket(OWNER)}", headers=host)
        assert (led.status_code, led.headers["location"].rpartition("/")[0]) == (303, f"{own}/sign-in")
        shown = browser.post("/sign-in", data={"token": TOKEN}, headers=host)
        (onward,) = set(re.findall(rf'{own}(/sign-in/[^"]+)"', shown.text))
        assert shown.status_code == 200
        assert not browser.cookies
        for path in (urlsplit(led.headers["location"]).path, onward):
            assert "set-cookie" in httpx.get(f"{viewer.url}{path}", headers={"Host": urlsplit(own).netloc}).headers
            assert httpx.get(f"{viewer.url}{path}", headers={"Host": urlsplit(own).netloc}).status_code == 403
        # Its name is for those who may sign in: all others could listen on another of its ports.
        for answer in (
            browser.get("/", headers={**host, "Accept": "text/html"}),
            browser.get("/sign-in", headers=host),
            browser.get("/sign-in/guess", headers=host),
            browser.post("/sign-in", data={"token": "guess"}, headers=host),
        ):
            assert ".localhost" not in f"{answer.headers}{answer.text}"


def test_another_page_can_use_the_cookie_for_nothing(viewer: Viewer) -> None:
    with viewer.signed_in() as browser:
        body = {"text": "Deploys go out on Fridays", "location": "/home/dana/ledger"}
        # Without an Origin it is not known which page sent it; with a foreign one it is.
        for headers in ({}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
            sent = browser.post("/v1/commands/note", json=body, headers={"Idempotency-Key": "k1", **headers})
            assert sent.status_code in (401, 403)
        assert browser.get("/", headers={"Host": "evil.example"}).status_code == 403


def test_every_page_is_made_and_loads_nothing_from_elsewhere(viewer: Viewer) -> None:
    with viewer.signed_in() as browser:
        singles = linked(browser)
        assert {path.split("/")[1] for path in singles} == {"things", "events", "projects", "sessions"}
        for path in (*PAGES, *singles):
            answer = browser.get(path)
            assert answer.status_code == 200, path
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            for word in ("http://", "https://", "<style", " style=", " onclick="):
                assert word not in answer.text, path


def test_what_memory_holds_stays_text_on_every_page(viewer: Viewer) -> None:
    with viewer.signed_in() as browser:
        seen = 0
        for path in (
            *PAGES,
            "/search?q=script",
            "/search?q=%3Cscript%3Ex&part=results",
            "/sessions/hostile",
            "/bugs?q=%3Cimg%3E",
            *linked(browser),
        ):
            text = browser.get(path).text
            assert "<script>document" not in text
            assert "<img" not in text
            assert "<b>bold" not in text
            seen += "&lt;script&gt;document" in text
        assert seen >= 3


def test_a_session_leads_to_its_events_and_a_claim_down_to_its_words(viewer: Viewer) -> None:
    with viewer.signed_in() as browser:
        client = httpx.Client(base_url=viewer.url, headers={"Authorization": f"Bearer {TOKEN}"})
        session = client.get("/v1/sessions?project=*&limit=5").json()["items"][-1]
        page = browser.get(f"/sessions/{session['session_id']}").text
        assert 'class="asked"' in page
        assert "prompt.submitted" in browser.get(f"/sessions/{session['session_id']}?after=0").text
        claim = client.get("/v1/insights?project=*&limit=1").json()["items"][0]
        page = browser.get(f"/things/{claim['id']}").text
        assert claim["text"].split("`")[0][:20] in page
        quote = claim["evidence"][0]
        source = browser.get(
            f"/events/{quote['event_id']}?field={quote['field']}&start={quote['start']}&end={quote['end']}"
        )
        assert f'<mark id="quote">{quote["quote"]}</mark>' in source.text
        client.close()


def test_a_bugs_page_tells_the_ways_it_was_fixed_and_how_they_held(viewer: Viewer) -> None:
    with viewer.signed_in() as browser:
        bugs = httpx.get(f"{viewer.url}/v1/bugs?project=*", headers={"Authorization": f"Bearer {TOKEN}"}).json()["hits"]
        known = next(hit for hit in bugs if hit["solutions"])
        best = known["solutions"][0]
        for id in (known["id"], known["signature"]):  # the memory made of it, and the record
            page = html.unescape(browser.get(f"/things/{id}").text)
            assert f"<h1><code>{known['message']}</code></h1>" in page
            assert f'<a href="/projects/{known["projects"][0]}">' in page.partition("<h1>")[0], "not: everywhere"
            assert best["approach"].replace("`", "") in page.replace("<code>", "").replace("</code>", "")
            assert f"held {best['successes']} of {best['uses']}" in page
            assert best["edits"][0]["path"] in page


def test_a_path_that_is_none_is_a_page_in_a_browser_and_a_problem_elsewhere(viewer: Viewer) -> None:
    with viewer.signed_in() as browser:
        seen = browser.get("/no-such-page", headers={"Accept": "text/html,*/*"})
        assert (seen.status_code, seen.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert 'href="/"' in seen.text
        for path, accept in (("/v1/no-such", "text/html"), ("/no-such-page", "*/*")):
            told = browser.get(path, headers={"Accept": accept})
            assert (told.status_code, told.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/things/nothing-has-this-id", 404),
        ("/sessions/none", 404),
        ("/sessions?cursor=x", 422),
        ("/static/../auth.py", 404),
    ],
)
def test_what_is_not_there_is_a_page_that_says_so(viewer: Viewer, path: str, status: int) -> None:
    with viewer.signed_in() as browser:
        assert browser.get(path).status_code == status


def test_a_memory_is_told_whole_below_its_title(viewer: Viewer) -> None:
    with viewer.signed_in() as browser:
        asked = {"q": "coastline of Iceland", "project": "*", "kind": "turn"}
        found = httpx.get(f"{viewer.url}/v1/search", params=asked, headers={"Authorization": f"Bearer {TOKEN}"})
        turn = next(each for each in found.json()["results"] if each["kind"] == "turn")
        page = html.unescape(browser.get(f"/things/{turn['id']}").text)
        assert "\n" in turn["text"]
        assert f"<h1>{turn['title']}</h1>" in page
        asked_it, answer = turn["text"].split("\n→ ", 1)
        assert f'<div class="text long"><div class="laid"><p>{asked_it}' in page
        assert answer.split("\n")[0] in page


def test_a_session_is_told_in_the_order_in_which_it_went(viewer: Viewer) -> None:
    with viewer.signed_in() as browser:
        for path, mark in (("/sessions/backwards", 'id="turns"'), ("/sessions/backwards?after=0", 'id="timeline"')):
            page = browser.get(path).text.partition(mark)[2]
            assert page.index("said as b1") < page.index("said as b2")


def test_the_timeline_counts_each_session_once_in_the_project_that_lists_it(viewer: Viewer) -> None:
    asked = {"project": "*", "since": "1970-01-02T00:00:00Z", "before": "2100-01-01T00:00:00Z"}
    key = {"Authorization": f"Bearer {TOKEN}"}
    shown = httpx.get(f"{viewer.url}/v1/activity", params=asked, headers=key).json()
    listed = httpx.get(f"{viewer.url}/v1/sessions", params={"project": "*", "limit": "200"}, headers=key).json()
    by_project: Counter[str] = Counter()
    for span in shown["spans"]:
        by_project[span["project"]] += span["sessions"]
    assert by_project == Counter(session["project"] for session in listed["items"])
    for name in ("prompts", "errors", "fixes"):
        assert sum(span[name] for span in shown["spans"]) == sum(each[name] for each in listed["items"])
    with viewer.signed_in() as browser:
        page = browser.get("/", params={"since": "86400", "before": "4102444800"}).text
        part = browser.get("/", params={"since": "86400", "before": "4102444800", "part": "timeline"}).text
    assert page.count('class="work"') == part.count('class="work"') > 0
    assert "<html" not in part


@pytest.mark.parametrize("query", ["?since=999999999999999&before=1", "?since=9&before=999999999999999", "?since=x"])
def test_a_time_that_no_calendar_has_is_shown_without_work(viewer: Viewer, query: str) -> None:
    with viewer.signed_in() as browser:
        assert browser.get(f"/{query}").status_code == 200


def test_forgetting_shows_what_would_go_then_does_it_once_and_shows_the_receipt(
    viewer: Viewer, memory: Remembered
) -> None:
    with connect(memory.database_url) as connection:
        append(
            connection,
            1,
            [observed(PromptSubmitted(line="f1", text="a plantain to forget"), session="gone", at=95_000)],
        )
    with viewer.signed_in() as browser:
        page = browser.get("/forget", params={"how": "match", "what": "a plantain to forget"}).text
        assert "1 prompt, 0 answers" in page
        key = re.search(r'name="key" value="(\w+)"', page)
        assert key is not None
        form = {"how": "match", "what": "a plantain to forget", "key": key[1], "reason": "a test"}
        assert browser.post("/forget", data=form).status_code == 401  # no page of ours sent it
        done = [browser.post("/forget", data=form, headers={"Origin": viewer.url}).text for _ in range(2)]
        receipts = [re.search(r"Receipt <code>([\w-]+)</code>", each) for each in done]
        assert receipts[0] is not None
        assert receipts[1] is not None
        assert receipts[0][1] == receipts[1][1]
        assert browser.get("/forget", params={"how": "match", "what": "a plantain to forget"}).status_code == 404
        assert browser.get("/forget", params={"how": "before", "what": "1999-12-31"}).status_code == 404  # none so old
        wrong = browser.get("/forget", params={"how": "before", "what": "yesterday"})
        assert wrong.status_code == 422
        assert "is no date or time" in wrong.text
        assert 'value="yesterday"' in wrong.text  # what was written is there to be mended
        for what in ("", "  ", "x" * 8_001):
            sent = browser.post("/forget", data={**form, "what": what, "key": "n"}, headers={"Origin": viewer.url})
            assert (sent.status_code, "text/html" in sent.headers["content-type"]) == (422, True)
        with connect(memory.database_url) as connection:
            assert connection.execute("SELECT count(*) FROM memctl.receipts").fetchone() == (1,)


@contextlib.contextmanager
def chromium_page(**context: Any) -> Iterator[Any]:
    """A page of the system's Chromium; the test is skipped where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium on this machine")
    with sync_api.sync_playwright() as drivers:
        browser = drivers.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser.new_context(**context).new_page()
        browser.close()


def by_name(viewer: Viewer) -> str:
    """Its address as `memctl view` tells it."""
    return viewer.url.replace("127.0.0.1", viewer_host(TOKEN))


def test_a_real_browser_walks_every_page(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    name = by_name(viewer)
    with viewer.signed_in() as client:
        singles = linked(client)
    complaints: list[str] = []
    with chromium_page(viewport={"width": 360, "height": 740}) as page:
        page.on("console", lambda said: complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{name}/sign-in/{viewer.browsers.ticket(OWNER)}")
        for path in (*PAGES, *singles, "/sessions/hostile"):
            page.goto(name + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, f"{path} is wider than a phone"
            assert page.title() != "pwned"
        monkeypatch.setattr(forgetting, "MOST_TRIED", 0)
        page.goto(name + "/forget?how=session&what=hostile")
        assert page.get_by_text("at least").count()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.goto(name + "/search")
        assert page.evaluate("document.activeElement.id") == "q"
        page.goto(name + "/search?q=tides")
        page.keyboard.press("/")
        page.keyboard.type("coastline")
        page.wait_for_url("**q=coastline**")
        page.wait_for_selector("#results li a")
        page.fill("#q", "지도 색상")
        page.wait_for_selector("#results li a:has-text('지도')")
        page.goto(name + "/sessions")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        first = page.locator("main .rows tbody a").first
        assert page.evaluate("document.activeElement.href") == first.evaluate("link => link.href")
        page.keyboard.press("Control+k")
        page.keyboard.type("coastline")
        page.wait_for_selector("dialog a.result")
        page.fill("#wanted", "ledg")
        page.wait_for_selector("dialog a.page[href^='/projects/']:has-text('ledger')")
        page.fill("#wanted", "know")
        page.keyboard.press("Enter")
        page.wait_for_url("**/knowledge")
        page.goto(name + "/")
        page.locator(".lanes svg a").first.focus()
        for key in ("+", "ArrowLeft", "-"):
            shown = page.url
            page.keyboard.press(key)
            page.wait_for_url(lambda url, shown=shown: url != shown)
            page.locator(".lanes svg a, nav.ways a").first.focus()
        page.goto(name + "/?since=1740787200&before=1780000000")
        box = page.locator(".lanes .drawing").first.bounding_box()
        shown = page.url
        page.mouse.move(box["x"] + 20, box["y"] + 3)
        page.mouse.down()
        page.mouse.move(box["x"] + 90, box["y"] + 3, steps=3)
        page.mouse.up()
        page.wait_for_url(lambda url: url != shown)
        page.click("text=Sign out")
        page.wait_for_url("**/sign-in")
        assert not [name for name in page.context.cookies() if name["name"] == COOKIE]
    assert complaints == []


def test_a_search_is_narrowed_to_a_project_a_kind_and_days(viewer: Viewer) -> None:
    def found(**asked: str) -> set[str]:
        text = client.get("/search", params={"q": "decimal", **asked}).text
        return set(re.findall(r'<p class="head">.*?href="(/things/[^"]+)"', text))

    with viewer.signed_in() as client:
        everything = found()
        kinds = re.findall(r'<option value="(\w+)">', client.get("/search").text)
        parts = [found(kind=kind) for kind in kinds]
        assert everything
        assert set().union(*parts) >= everything
        assert found(before="2026-03-02") == set() != found(since="2026-03-02")
        assert found(since="no day") == everything
        assert "Look in all projects, kinds and days" in client.get("/search?q=decimal&before=2026-03-02").text
        assert client.get("/search?q=decimal&project=none-such").status_code == 404


def test_work_is_found_by_its_files_and_by_how_it_ended(viewer: Viewer) -> None:
    def listed(**asked: str) -> list[str]:
        text = client.get("/work", params=asked).text
        return [path.removeprefix("/things/") for path in re.findall(ROW, text, re.DOTALL)]

    owner = {"Authorization": f"Bearer {TOKEN}"}
    known = httpx.get(f"{viewer.url}/v1/episodes?project=*&limit=200", headers=owner).json()["items"]
    path = next(each["files"][0] for each in known if each["files"])
    with viewer.signed_in() as client:
        assert listed() == [each["id"] for each in known[:40]]
        touched = [each["id"] for each in known if path in each["files"]]
        assert set(listed(file=path.upper())) == set(touched) < {each["id"] for each in known}
        for outcome in ("success", "failure", "partial", "unknown"):
            ended = [each["id"] for each in known if each["outcome"] == outcome]
            assert listed(outcome=outcome) == ended[:40], outcome
        assert listed(outcome="no such end") == listed()
        episode = client.get(f"/things/{touched[0]}").text
        assert f'href="/work?file={quote(path, safe="")}"' in episode


ROW = r'<tr><th scope="row">.*?href="(/[^"]+)"'


def rows_of(client: httpx.Client, path: str) -> tuple[list[str], int]:
    """Where the rows of a list lead, over all of its pages, and how many it says there are."""
    found: list[str] = []
    onward, said = path, -1
    while onward:
        page = client.get(onward).text
        if said < 0:
            said = int(re.findall(r'<span class="count">([\d,]+)</span>', page)[0].replace(",", ""))
        found += re.findall(ROW, page, re.DOTALL)
        more = re.findall(r'<a class="more" href="([^"]+)">More</a>', page)
        onward = path.partition("?")[0] + html.unescape(more[0]) if more else ""
    return found, said


@pytest.mark.parametrize("a_list", [lists.SESSIONS, lists.WORK, lists.KNOWLEDGE, lists.BUGS, lists.HINDSIGHT])
def test_a_list_says_how_many_it_has_and_gives_each_once_on_its_pages_and_in_its_files(
    viewer: Viewer, a_list: lists.List, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "MOST_ROWS", 2)
    with viewer.signed_in() as client:
        for order in ("", *(f"?sort={column.order}" for column in a_list.columns if column.order)):
            path = f"/{a_list.name}{order}"
            found, said = rows_of(client, path)
            exported = client.get(path, params={"as": "json", **({"sort": order[6:]} if order else {})})
            assert exported.headers["content-disposition"] == f'attachment; filename="{a_list.name}.json"'
            table = client.get(path, params={"as": "csv", **({"sort": order[6:]} if order else {})}).text
            rows = list(csv.reader(io.StringIO(table)))
            assert len(found) == said == len(exported.json()) == len(rows) - 1, path
            if a_list is not lists.HINDSIGHT:  # several needs may lie in one turn
                assert len(found) == len(set(found)), path
            if order and (column := next(c for c in a_list.columns if c.order == order[6:])).kind == "number":
                at = 2 + a_list.columns.index(column)
                values = [float(row[at]) for row in rows[1:]]
                if column.label != "sources":  # ordered by a part of what is shown
                    assert values == sorted(values, reverse=True), path
        assert found or a_list is lists.HINDSIGHT


@pytest.mark.parametrize("a_list", [lists.SESSIONS, lists.WORK, lists.KNOWLEDGE, lists.BUGS, lists.HINDSIGHT])
def test_the_parts_of_a_list_by_a_filter_are_the_whole(viewer: Viewer, a_list: lists.List) -> None:
    with viewer.signed_in() as client:
        whole, _ = rows_of(client, f"/{a_list.name}")
        for choice in a_list.choices:
            parts = [rows_of(client, f"/{a_list.name}?{choice.name}={quote(word)}") for word in choice.words]
            if parts:
                assert sorted(each for found, _ in parts for each in found) == sorted(whole), choice.name
                assert sum(said for _, said in parts) == len(whole)
            assert rows_of_none(client, f"/{a_list.name}?{choice.name}=no+such+word") == (not choice.words)
            assert client.get(f"/{a_list.name}?{choice.name}=%00").status_code == 200
        days = [rows_of(client, f"/{a_list.name}?{day}") for day in ("before=2026-03-03", "since=2026-03-03")]
        assert sorted(each for found, _ in days for each in found) == sorted(whole)
        assert sum(said for _, said in days) == len(whole)
        assert rows_of_none(client, f"/{a_list.name}?before=2020-01-01")


def rows_of_none(client: httpx.Client, path: str) -> bool:
    return "Nothing matches these filters." in client.get(path).text


def test_the_last_days_are_one_step_away_and_the_next_page_keeps_what_was_asked_for(
    viewer: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "MOST_ROWS", 1)
    with viewer.signed_in() as client:
        first = client.get("/work?outcome=success&file=.py&sort=steps").text
        (onward,) = map(html.unescape, re.findall(r'<a class="more" href="([^"]+)"', first))
        assert onward.startswith("?file=.py&outcome=success&sort=steps&cursor=")
        then = client.get("/work" + onward).text
        assert re.findall(ROW, then, re.DOTALL) != re.findall(ROW, first, re.DOTALL) != []
        ways = dict(re.findall(r'<a href="/work\?([^"]+)"[^>]*>([^<]+)</a>', html.unescape(first)))
        week = next(query for query, label in ways.items() if label == "7 days")
        since = datetime.now(UTC).date() - timedelta(days=6)
        assert parse_qs(week) == {
            "since": [str(since)], "outcome": ["success"], "file": [".py"], "sort": ["steps"],
        }  # fmt: skip
        assert f'value="{since}"' in client.get(f"/work?{html.unescape(week)}").text


WEEKS = re.compile(r"<title>week of (\d+ \w+ \d+): ")


def weeks_on(page: str) -> list[date]:
    return [datetime.strptime(day, "%d %b %Y").replace(tzinfo=UTC).date() for day in WEEKS.findall(page)]


def test_charts_are_of_the_days_that_were_chosen(viewer: Viewer) -> None:
    with viewer.signed_in() as client:
        for path in ("/trends", "/hindsight"):
            page = client.get(f"{path}?project=ledger&since=2026-03-01&before=2026-04-01").text
            assert 'name="since" type="date" value="2026-03-01"' in page
            assert all(date(2026, 2, 23) <= day < date(2026, 4, 1) for day in weeks_on(page)), path
            assert not weeks_on(client.get(f"{path}?before=2020-01-01").text)
        page = html.unescape(client.get("/trends?project=ledger").text)
        ways = re.findall(r'<a href="/trends\?since=[\d-]+&project=ledger">([^<]+)</a>', page)
        assert ways == ["today", "7 days", "30 days", "90 days", "365 days"]
        assert len(set(weeks_on(page))) > 0


def test_a_project_that_was_chosen_stays_chosen_on_the_other_pages(viewer: Viewer) -> None:
    with viewer.signed_in() as client:
        for path in ("/sessions", "/trends", "/search"):
            page = client.get(f"{path}?project=ledger").text
            for other in ("/sessions", "/work", "/knowledge", "/bugs", "/hindsight", "/trends", "/search", "/"):
                assert f'href="{other}?project=ledger"' in page, (path, other)


@pytest.mark.parametrize(
    ("asked", "address"),
    [
        ("/projects/twin", "/projects/{}"),
        ("/work?project=twin&outcome=success", "/work?outcome=success&project={}"),
        ("/?project=twin", "/?project={}"),
    ],
)
def test_a_name_that_several_projects_have_leads_to_each(viewer: Viewer, asked: str, address: str) -> None:
    with viewer.signed_in() as client:
        offered = client.get("/work").text
        page = client.get(asked)
        leads = html.unescape(page.text)
        for place in TWINS:
            assert f'<option value="{place}">' in offered
            onward = address.format(quote(place, safe=""))
            assert f'<a href="{onward}">{place}</a>' in leads
            assert client.get(onward).status_code == 200
    assert page.status_code == 422
    assert '<option value="twin">' not in offered


def test_the_home_of_a_project_counts_that_project_and_leads_back(viewer: Viewer) -> None:
    def figures(page: str) -> dict[str, str]:
        return dict(re.findall(r"<div><dt>([^<]+)</dt><dd>([^<]+)</dd></div>", page))

    with viewer.signed_in() as client:
        everywhere, ledger = client.get("/").text, client.get("/?project=ledger").text
        listed = re.search(r'<h1>Sessions <span class="count">(\d+)', client.get("/sessions?project=ledger").text)
        waiting = client.get("/waiting").text.count('<input type="hidden" name="key"')
    assert listed is not None
    assert figures(ledger)["sessions"] == listed[1]
    assert list(figures(everywhere)) == [*figures(ledger), "events"]
    for name in ("sessions", "prompts", "memories"):
        assert int(figures(ledger)[name]) < int(figures(everywhere)[name].replace(",", "")), name
    assert 'In project <b>ledger</b> only. <a href="?">All projects</a>' in ledger
    assert "All projects" not in everywhere
    assert waiting > 0
    assert f'<a href="/waiting">{waiting} wait' in everywhere


def test_home_lists_errors_whose_fix_it_shows(viewer: Viewer) -> None:
    with viewer.signed_in() as client:
        page = client.get("/").text
        unfixed = client.get("/bugs?fixed=never").text
    listed = page.partition("Errors with a known fix")[2].partition("</ul>")[0]
    assert listed.count("<li>") == listed.count("<b>Fix:</b>") > 0
    never = set(re.findall(r'<a href="(/things/[^"]+)"><code>', unfixed))
    assert never
    assert never.isdisjoint(re.findall(r'<a href="(/things/[^"]+)"><code>', listed))


def test_a_chart_has_its_numbers_at_its_lines_and_answers_stand_beside_each_other(viewer: Viewer) -> None:
    with chromium_page(viewport={"width": 1280, "height": 740}) as page:
        page.goto(f"{by_name(viewer)}/sign-in/{viewer.browsers.ticket(OWNER)}")
        page.goto(by_name(viewer) + "/trends")
        middles = "each => each.map(e => e.getBoundingClientRect()).map(b => (b.top + b.bottom) / 2)"
        off = page.locator(".plot").evaluate_all(
            """plots => plots.flatMap(plot => {
                const drawn = plot.querySelector("svg").getBoundingClientRect();
                return [...plot.querySelectorAll(".scale span")].map((number, n) => {
                    const box = number.getBoundingClientRect();
                    return (box.top + box.bottom) / 2 - drawn.top - drawn.height * n / 2;
                });
            })"""
        )
        heights = page.locator(".plot figcaption").evaluate_all("each => each.map(e => e.offsetHeight)")
        assert len(set(heights)) > 1, "no legend is longer than its neighbour's"
        assert len(off) >= 6
        assert max(map(abs, off)) < 3, off
        page.goto(by_name(viewer) + "/waiting")
        answers = page.locator("form.decide").first.locator("button").evaluate_all(middles)
        assert len(answers) == 2
        assert abs(answers[0] - answers[1]) < 2


def test_sessions_are_found_by_their_title_and_their_agent(viewer: Viewer) -> None:
    def found(query: str) -> list[str]:
        page = client.get(f"/sessions?{query}").text
        listed = re.findall(r'<th scope="row">\s*<a href="/sessions/([^"]+)"', page)
        count = re.search(r'<h1>Sessions <span class="count">(\d+)', page)
        assert count is not None
        assert int(count[1]) == len(listed)
        assert ("<dt>prompts</dt>" in page) == (query == "")  # figures of days are of all their sessions
        return listed

    with viewer.signed_in() as client:
        assert sorted(found("text=SAID+in+%2Fhome")) == ["left", "right"]
        assert found("text=home/dana/left") == ["left"]
        everything = found("")
        assert found("agent=claude") == everything
        assert found("agent=codex") == found("text=tides+of+nowhere") == []


def test_a_session_says_at_its_top_what_it_took_and_how_it_ended(viewer: Viewer) -> None:
    owner = {"Authorization": f"Bearer {TOKEN}"}
    kinds = set()
    with viewer.signed_in() as client:
        for session in httpx.get(f"{viewer.url}/v1/sessions?project=*&limit=20", headers=owner).json()["items"]:
            page = client.get(f"/sessions/{session['session_id']}").text
            figures = dict(re.findall(r"<div><dt>([^<]+)</dt><dd>([^<]+)</dd></div>", page))
            assert figures["prompts"] == str(session["prompts"])
            assert figures["errors resolved"] == f"{session['fixes']} of {session['errors']}"
            work = client.get("/work").text.count(f'href="/sessions/{session["session_id"]}">its session')
            assert ("Pieces of work" in page) == (work > 1)
            assert ("as a piece of work" in page) == (work == 1)
            kinds.add(min(work, 2))
    assert {1, 2} <= kinds


def test_projects_say_how_much_each_has(viewer: Viewer) -> None:
    with viewer.signed_in() as client:
        page = client.get("/projects").text
        sessions = re.findall(r">(\w+)</a> <span class=\"meta\">(\d+) sessions? · (\d+) memor", page)
        assert {name for name, _, _ in sessions} >= {"ledger", "atlas", "twin"}
        for name, count, _ in sessions:
            if name != "twin":
                assert f'<h1>Sessions <span class="count">{count}<' in client.get(f"/sessions?project={name}").text


def test_what_would_be_forgotten_is_called_by_its_name(viewer: Viewer) -> None:
    with viewer.signed_in() as client:
        page = client.get("/forget?how=session&what=left").text
        assert f"<b>said in {TWINS[0]}</b>" in page
        assert "said in" not in client.get("/forget?how=session&what=none-such").text


def test_a_session_of_many_turns_leads_to_each(viewer: Viewer, memory: Remembered) -> None:
    with viewer.signed_in() as client:
        page = client.get("/sessions/long").text
        leads = re.findall(r'<li><a href="(\?turns=[\d.]+)#t-([^"]+)">(said \d+)</a>', page)
        assert [words for _, _, words in leads] == [f"said {number}" for number in range(45)]
        for query, event, words in leads[::11]:
            there = client.get(f"/sessions/long{query}").text
            turn = there.partition(f'id="t-{event}"')[2]
            assert words in turn.partition("</li>")[0]


def test_sessions_say_what_their_days_took(viewer: Viewer) -> None:
    def figures(query: str) -> dict[str, str]:
        text = client.get("/sessions" + query).text
        return dict(re.findall(r"<div><dt>([^<]+)</dt><dd>([^<]+)</dd></div>", text))

    owner = {"Authorization": f"Bearer {TOKEN}"}
    with viewer.signed_in() as client:
        for query in ("", "?since=2026-03-01", "?before=2026-03-02", "?project=ledger"):
            asked = dict(part.split("=") for part in query[1:].split("&") if part)
            totals = httpx.get(f"{viewer.url}/v1/stats", params={"project": "*", **asked}, headers=owner).json()[
                "totals"
            ]
            assert figures(query)["prompts"] == f"{totals['prompts']:,}"
            assert figures(query)["errors resolved"] == f"{totals['errors_resolved']:,} of {totals['errors']:,}"
        assert figures("?before=2020-01-01")["prompts"] == "0"
        assert rows_of_none(client, "/sessions?before=2020-01-01")


def test_what_was_found_leads_to_the_turn_in_which_it_was_said(viewer: Viewer) -> None:
    with viewer.signed_in() as client:
        found = client.get("/search?q=decimal").text
        sessions = set(re.findall(r'href="/sessions/([^"?]+)\?turn=[^"]+#turns"', found))
        assert sessions
        looked_at = 0
        for session in sorted(sessions)[:2]:
            turns = re.findall(r'<li class="turn" id="t-([^"]+)">', client.get(f"/sessions/{session}").text)
            events = re.findall(r'<li id="e-([^"]+)"', client.get(f"/sessions/{session}?after=0").text)
            at = {id: client.get(f"/v1/events/{id}").json()["position"] for id in events}
            for event in (each for each in events if each not in turns):
                begun = [turn for turn in turns if at[turn] < at[event]]
                page = client.get(f"/sessions/{session}?turn={event}").text
                shown = re.findall(r'<li class="turn" id="t-([^"]+)">', page)
                if begun:
                    assert shown[0] == begun[-1]
                    looked_at += 1
        assert looked_at


def test_an_answer_of_which_nothing_is_likely_says_so(viewer: Viewer) -> None:
    seen = set()
    with viewer.signed_in() as client:
        for asked in ("decimal", "please zeppelin marmalade quokka", "totals of the zeppelin in marmalade"):
            page = client.get("/search", params={"q": asked, "project": "*"}).text
            classes = re.findall(r'<li class="(high|suggested|none)">', page)
            assert ("these only came nearest" in page) == (classes[:1] == ["none"])
            seen.add((classes or ["nothing"])[0])
    assert "none" in seen, seen
    assert seen - {"none", "nothing"}, seen


def test_a_person_says_where_they_read_what_holds_and_what_comes_first(viewer: Viewer) -> None:
    with viewer.signed_in() as client:
        shown = client.get("/search?q=decimal").text
        id = html.unescape(re.findall(r'<p class="head">.*?href="/things/([^"]+)"', shown)[0])
        assert 'value="pin"' in client.get(f"/things/{id}").text
        assert 'value="unpin"' not in client.get(f"/things/{id}").text
        asked = {"id": id, "say": "pin", "key": "once"}
        headers = {"Origin": viewer.url}
        assert [client.post("/things", data=asked, headers=headers).status_code for _ in range(2)] == [200, 200]
        pinned = client.post("/things", data=asked, headers=headers).text
        assert ('value="unpin"' in pinned, 'value="pin"' in pinned) == (True, False)
        assert "It is recorded." in client.post("/things", data={**asked, "say": "helped"}, headers=headers).text
        refused = client.post("/things", data={**asked, "say": "anything"}, headers=headers)
        assert (refused.status_code, "nothing of that kind" in refused.text) == (422, True)


def test_what_was_just_settled_waits_no_more(viewer: Viewer) -> None:
    with viewer.signed_in() as client:
        what, id = re.findall(r'name="what" value="(claim)"><input type="hidden" name="id" value="([^"]+)"',
                              client.get("/waiting").text)[0]  # fmt: skip
        page = client.post("/waiting", data={"what": what, "id": id, "key": "k"}, headers={"Origin": viewer.url}).text
        assert ("Rejected." in page, id in page) == (True, False)


def test_what_was_said_of_a_thing_stands_on_its_page_and_of_an_error_too(viewer: Viewer, memory: Remembered) -> None:
    with viewer.signed_in() as client:
        bug = html.unescape(re.findall(r'href="/things/([^"?]+)"', client.get("/bugs").text)[0])
        asked = {"id": bug, "say": "misled", "key": "misled"}
        page = client.post("/things", data=asked, headers={"Origin": viewer.url}).text
        assert "does not show it yet" in page, "nobody folds"
        drainer = Drainer(memory.database_url)
        catch_up(drainer)
        drainer.close()
        page = client.post("/things", data=asked, headers={"Origin": viewer.url}).text
        assert "It is recorded.</p>" in page
        assert "It was rated 1×" in page
        assert "it ranks lower for it" in client.get(f"/things/{bug}").text


def test_an_event_without_a_time_stands_where_it_came_and_says_when(viewer: Viewer) -> None:
    with viewer.signed_in() as client:
        page = client.get("/sessions/backwards?after=0").text
        assert "without a time, came" in page
        assert "1970" not in page
        [event] = [
            id for id, rest in re.findall(r'<li id="e-([^"]+)"(.*?)</li>', page, re.S) if "without a time" in rest
        ]
        assert "1970" not in client.get(f"/events/{event}").text
        assert client.get(f"/v1/events/{event}").json()["occurred_at"] is None


def test_trends_name_the_models_and_no_price_that_nobody_set(viewer: Viewer) -> None:
    with viewer.signed_in() as client:
        section = client.get("/trends").text.partition("Tokens by model")[2].partition("</section>")[0]
    assert '<th scope="row">' in section
    assert "[prices]" in section
    assert '<th scope="col" class="number">cost</th>' not in section


def test_work_that_is_open_is_listed_by_itself(viewer: Viewer) -> None:
    with viewer.signed_in() as client:
        of = {each: set(re.findall(r'<th scope="row">\s*<a href="/things/([^"]+)"',
              client.get(f"/work?status={each}").text)) for each in ("open", "done", "")}  # fmt: skip
        by_task = client.get("/v1/tasks", params={"status": "open", "project": "*", "limit": 200}).json()["items"]
        still = {each["description"] for each in by_task}
        assert of["open"]
        assert of["done"]
        assert of["open"].isdisjoint(of["done"])
        for id in of["open"]:
            assert client.get(f"/v1/things/{id}").json()["item"]["description"] in still


def test_the_engine_shows_levels_that_add_up_and_how_long_answers_took(viewer: Viewer) -> None:
    with viewer.signed_in() as browser:
        browser.get("/search", params={"q": "decimal"})
        page = browser.get("/engine").text
    figure = r'<td class="number">([\d,]+)(?: ms)?</td>'
    reached = [int(found) for found in re.findall(rf">L\d [^<]+</th>{figure}", page)]
    assert len(reached) == len(figures.LEVELS)
    assert reached[0] >= reached[1] >= reached[2] >= reached[3] > 0
    (asked, half, nearly_all) = re.findall(rf"GET /search</code></th>{figure * 3}", page)[0]
    assert int(asked) >= 1
    assert 0 <= int(half) <= int(nearly_all)


def test_an_error_is_posted_with_all_its_lines_by_pages_of_ours_alone(viewer: Viewer) -> None:
    error = "Traceback:\r\n  in total\r\nTypeError: unsupported operand type(s) for *: 'float' and 'decimal.Decimal'"
    ours = {"Origin": viewer.url}
    with viewer.signed_in() as browser:
        page = browser.post("/bugs", data={"q": error}, headers=ours).text
        assert re.search(r'href="/things/[^"]+"><code>[^<]*unsupported operand', page)
        assert "Traceback:\r\n  in total\r\n" in page  # it stands in the field as it was pasted
        assert browser.post("/bugs", data={"q": error * 900}, headers=ours).status_code == 200
        assert browser.post("/bugs", data={"q": error}).status_code == 401


def test_on_a_phone_the_current_page_is_in_sight_and_filters_are_folded(viewer: Viewer) -> None:
    with chromium_page(viewport={"width": 390, "height": 740}) as page:
        page.goto(f"{by_name(viewer)}/sign-in/{viewer.browsers.ticket(OWNER)}")
        for path in ("/forget", "/knowledge"):
            page.goto(by_name(viewer) + path)
            box = page.locator(".top nav [aria-current]").bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 390
            assert not page.locator(".top kbd").is_visible()
        assert not page.locator(".filters").is_visible()
        page.click("text=Filters")
        assert page.locator(".filters").is_visible()
        page.goto(by_name(viewer) + "/knowledge?project=ledger")
        assert page.locator(".filters").is_visible(), "what narrows the list is shown"
    with chromium_page(viewport={"width": 1280, "height": 740}) as page:
        page.goto(f"{by_name(viewer)}/sign-in/{viewer.browsers.ticket(OWNER)}")
        page.goto(by_name(viewer) + "/knowledge")
        assert page.locator(".filters").is_visible()


def test_the_timeline_begins_with_all_projects_where_they_are_few(
    viewer: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def days() -> float:
        with viewer.signed_in() as browser:
            since, before = re.findall(r'data-(?:since|before)="(\d+)"', browser.get("/").text)
        return (int(before) - int(since)) / 86_400

    monkeypatch.setattr(site, "MOST_LANES", 1)
    assert round(days()) == 60
    monkeypatch.setattr(site, "MOST_LANES", 200)
    assert round(days()) != 60


def test_times_are_those_of_where_the_browser_is(viewer: Viewer) -> None:
    with chromium_page(timezone_id="Asia/Seoul") as page:
        page.goto(f"{by_name(viewer)}/sign-in/{viewer.browsers.ticket(OWNER)}")
        shown, exact = page.eval_on_selector("time", "time => [time.textContent, time.dateTime]")
        there = datetime.fromisoformat(exact).astimezone(ZoneInfo("Asia/Seoul"))
        assert shown == f"{there:%-d %b %Y %H:%M}"
        assert page.inner_text("#zone") == "Asia/Seoul"


def test_what_is_watched_live_says_when_it_is_not_any_more(viewer: Viewer) -> None:
    with chromium_page() as page:
        page.clock.install()
        page.goto(f"{by_name(viewer)}/sign-in/{viewer.browsers.ticket(OWNER)}")
        page.goto(f"{by_name(viewer)}/engine")
        page.evaluate("document.querySelector('[data-live]').textContent = 'as it was'")
        page.clock.run_for(2_000)
        page.get_by_text("as it was", exact=True).wait_for(state="detached")
        assert page.is_hidden("#unanswered")
        page.route("**/engine?part=live", lambda route: route.abort())
        page.clock.run_for(2_000)
        page.wait_for_selector("#unanswered:visible")
        page.unroute("**/engine?part=live")
        page.clock.run_for(2_000)
        page.wait_for_selector("#unanswered", state="hidden")
        page.context.clear_cookies()
        page.clock.run_for(2_000)
        page.wait_for_url("**/sign-in")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(viewer: Viewer, scheme: Literal["light", "dark"]) -> None:
    axe = os.environ.get("MEMCTL_TEST_AXE")
    if axe is None:
        pytest.skip("MEMCTL_TEST_AXE names no axe.min.js; `make axe` brings one")
    with viewer.signed_in() as client:
        singles = linked(client)
    found = {}
    with chromium_page(bypass_csp=True, color_scheme=scheme) as page:
        for path in ("/sign-in", *PAGES, *singles, "/sessions/hostile", "/search?q=nothing+like+it"):
            if path == PAGES[0]:
                page.goto(f"{by_name(viewer)}/sign-in/{viewer.browsers.ticket(OWNER)}")
            page.goto(by_name(viewer) + path)
            page.add_script_tag(path=axe)
            told = page.evaluate("axe.run()")
            found[path] = [
                f"{each['id']}: {each['nodes'][0]['html'][:200]} {each['nodes'][0]['failureSummary']}"
                for each in told["violations"]
                if "part=" not in path
            ]
    assert {path: violations for path, violations in found.items() if violations} == {}


def test_a_day_that_no_calendar_has_ends_no_page(viewer: Viewer, memory: Remembered) -> None:
    """Appended past the door, which lets no such event in. The last test here: the memory keeps it."""
    with connect(memory.database_url) as connection:
        for number, at in enumerate((YEAR_9999 - 1, YEAR_9999 + 2 * 31_622_400_000_000)):
            far = observed(PromptSubmitted(line=f"far{number}", text="said in years to come"), session=f"far{number}")
            append(connection, 1, [msgspec.structs.replace(far, occurred_at=Micros(at))])
    drainer = Drainer(memory.database_url)
    catch_up(drainer)
    drainer.close()
    with viewer.signed_in() as browser:
        for path in PAGES:
            assert browser.get(path).status_code == 200, path


def test_what_is_pinned_on_a_page_is_what_it_showed(viewer: Viewer, memory: Remembered) -> None:
    """An agent may have added to it since the page was drawn."""
    with viewer.signed_in() as client:
        found = client.get("/search?q=decimal").text
        id = html.unescape(re.findall(r'<p class="head">.*?href="/things/([^"]+)"', found)[0])
        (words,) = re.findall(r'name="words" value="([^"]*)"', client.get(f"/things/{id}").text)
        assert words == quote_hash(client.get(f"/v1/memories/{id}").json()["text"])
        asked = {"id": id, "say": "pin", "key": "as shown", "words": "those of before"}
        assert client.post("/things", data=asked, headers={"Origin": viewer.url}).status_code == 200
    with connect(memory.database_url) as connection:
        rows = connection.execute("SELECT payload->>'words' FROM memctl.events WHERE type = 'memory.pinned'").fetchall()
    assert ("those of before",) in rows
