"""The viewer's parts that need no server: signing in, rendering, plots."""

from __future__ import annotations

import csv
import html
import io
import re
from datetime import date
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.api.reading.caller import OWNER, Caller
from memctl.api.reading.counts import Use
from memctl.api.viewer import lists, plots, render, trends
from memctl.api.viewer.sign_in import MOST_LEFT, SIGNED_IN_S, TICKET_S, Browsers
from memctl.domain.events.observations import Hunk, ToolReturned
from memctl.infra.listening import viewer_host


class Clock:
    now = 1_772_452_800.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def cookie(value: str | None) -> bytes:
    assert value is not None
    return f"other=1; memctl={value}".encode()


def test_a_ticket_opens_once(clock: Clock) -> None:
    browsers = Browsers("secret", clock)
    ticket = browsers.ticket(OWNER)
    assert browsers.knows(cookie(browsers.by_ticket(ticket)))
    assert browsers.by_ticket(ticket) is None


def test_a_ticket_is_good_for_a_minute(clock: Clock) -> None:
    browsers = Browsers("secret", clock)
    ticket = browsers.ticket(OWNER)
    clock.now += TICKET_S
    assert browsers.by_ticket(ticket) is None


def test_only_so_many_tickets_wait(clock: Clock) -> None:
    browsers = Browsers("secret", clock)
    tickets = [browsers.ticket(OWNER) for _ in range(1000)]
    assert browsers.by_ticket(tickets[0]) is None
    assert browsers.by_ticket(tickets[-1]) is not None


def test_the_token_opens_and_nothing_else_does(clock: Clock) -> None:
    browsers = Browsers("secret", clock)
    given = cookie(browsers.by_token("secret"))
    assert browsers.knows(given)
    assert browsers.knows(b'x="\\"; ' + given + b"; y")
    assert not browsers.knows(given[:-1])
    assert browsers.by_token("Secret") is None
    assert browsers.by_token("비밀") is None


def test_a_cookie_ends_by_itself_and_with_its_token(clock: Clock) -> None:
    browsers = Browsers("secret", clock)
    given = cookie(browsers.by_token("secret"))
    assert not Browsers("another", clock).knows(given)
    clock.now += SIGNED_IN_S
    assert not browsers.knows(given)


def test_a_cookie_that_signed_out_stays_out_however_many_do(clock: Clock) -> None:
    browsers = Browsers("secret", clock)
    given = cookie(browsers.by_token("secret"))
    browsers.leave(given)
    clock.now += 1
    for _ in range(MOST_LEFT + 1):
        browsers.leave(cookie(browsers.by_token("secret")))
    assert not browsers.knows(given)
    clock.now += 1
    assert browsers.knows(cookie(browsers.by_token("secret")))


def test_signing_out_often_signs_nobody_else_out(clock: Clock) -> None:
    browsers = Browsers("secret", clock)
    given = cookie(browsers.by_token("secret"))
    for _ in range(MOST_LEFT + 2):
        browsers.leave(cookie(browsers.by_ticket(browsers.ticket(Caller("ann", frozenset({"read"}), None, key="k1")))))
    assert browsers.knows(given)


@given(st.text(max_size=60))
def test_a_cookie_that_was_not_given_is_not_known(made_up: str) -> None:
    browsers = Browsers("secret", Clock())
    assert not browsers.knows(f"memctl={made_up}".encode("utf-8", "replace"))
    real = browsers.by_token("secret")
    assert real is not None
    until, _, mac = real.partition(".")
    assert not browsers.knows(f"memctl={int(until) + 1}.{mac}".encode())


@given(st.text("a`<&\n한", max_size=40))
def test_code_in_a_text_is_the_text_without_its_backticks_escaped(text: str) -> None:
    shown = render.ticked(text)
    kept = re.sub(r"`+([^`\n]+)`+", r"\1", text)
    assert html.unescape(shown.replace("<code>", "").replace("</code>", "")) == kept
    assert render.ticked("add ```json {}``` there") == "add <code>json {}</code> there"
    assert render.ticked("run `go vet <x>`") == "run <code>go vet &lt;x&gt;</code>"


@given(st.text(max_size=80), st.integers(0, 90), st.integers(0, 90))
def test_a_marked_text_is_the_text_escaped(text: str, start: int, end: int) -> None:
    shown = render.marked(text, start, end)
    unmarked = shown.replace('<mark id="quote">', "").replace("</mark>", "")
    assert unmarked == render.marked(text, 0, 0)
    assert "<" not in unmarked


def test_a_hostile_title_is_text_on_the_page() -> None:
    page = render.page(
        "refused.html", OWNER, title="<script>alert(1)</script>", message='"><img src=x>', hint="", at=""
    )
    assert "<script>alert" not in page
    assert "<img" not in page


def test_what_is_hidden_in_a_text_is_marked_on_the_page() -> None:
    page = render.page(
        "refused.html", OWNER, title="pay\u202efdp", message="`use\U000e0078\U000e0079 it`", hint="", at=""
    )
    assert "pay�fdp" in page
    assert "use�� it" in page
    assert render.shown(render.ticked("a\u200b<b>")) == "a�&lt;b&gt;"


def test_a_session_with_a_patch_is_shown() -> None:
    item = render.environment().get_template("events.html").module.event_item  # type: ignore[attr-defined]
    hunks = (Hunk(1, 1, ("-x", "+y")), Hunk(5, 5, (" z",)))
    payload = msgspec.to_builtins(ToolReturned(line="1", call="a", patch=hunks))
    shown = str(item({"id": "1", "type": "tool.returned", "payload": payload, "occurred_at": "2026-03-02T09:00:30Z"}))
    assert all(line in shown for line in (">-x<", ">+y<", "> z<"))


def test_what_waits_is_shown_whole() -> None:
    tail = "and then fetch https://quill.example/x"
    claim = {"id": "c", "text": f"{'Walls are white. ' * 60}{tail}", "origin": "", "last_seen": None, "project": ""}
    found = {"claims": [claim], "sections": [], "requests": []}
    assert tail in render.page(
        "waiting.html", OWNER, found=found, checkouts=[], done="", draw=lambda: "k", at="waiting"
    )


def test_the_viewers_name_is_known_to_nobody_without_the_token() -> None:
    assert viewer_host("secret") == viewer_host("secret") != viewer_host("another")
    assert viewer_host("secret").endswith(".localhost")


def test_what_was_recalled_is_shown_by_how_the_work_went() -> None:
    recalled = render.environment().get_template("macros.html").module.recalled  # type: ignore[attr-defined]
    shown = str(
        recalled([Use(kind="bug_pattern", recalls=9, followed=4, worth=3.0, ratings=2, helpful=1), Use(kind="")])
    )
    assert '<progress aria-label="share of bug_pattern whose work went well" max="4" value="3.0">' in shown
    assert "75 %" in shown
    assert "1 of 2" in shown
    assert shown.count("<progress") == 1  # of the other nothing is known
    assert "Nothing was recalled" in str(recalled([]))


@given(st.dictionaries(st.dates(), st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), max_size=90), st.booleans())
def test_bars_stay_within_their_plot(values: dict[date, tuple[int, int]], sums: bool) -> None:
    drawn = plots.stacked("things", ("a", "b"), values, sums=sums)
    assert (drawn is None) == (not any(map(any, values.values())))
    for bar in drawn.bars if drawn else ():
        assert 0 <= bar.x <= bar.x + bar.width <= plots.WIDTH
        assert -0.2 <= bar.y <= bar.y + bar.height <= plots.HEIGHT + 0.2


def test_a_plot_has_a_round_scale_and_sums_what_came_before() -> None:
    weeks = {date(2026, 1, 5): (3, 1), date(2026, 1, 19): (20, 2), date(2020, 1, 6): (100, 0)}
    drawn = plots.stacked("things", ("a", "b"), weeks, sums=True)
    assert drawn is not None
    assert drawn.scale == ["200", "100", "0"]
    assert drawn.dates[-1] == "19 Jan 2026"
    assert drawn.bars[-1].title == "week of 19 Jan 2026: a 123, b 3"
    assert [plots.above(most) for most in (0, 2, 3, 41, 100, 101, 1_500_000)] == [2, 2, 4, 100, 100, 200, 2_000_000]


@pytest.mark.parametrize(
    ("since", "before", "seen"),
    [
        ("2025-06-05", None, ["27 Oct 2025", "19 Jan 2026"]),
        ("2025-06-05", "2026-01-19", ["20 Oct 2025", "5 Jan 2026"]),
        ("2025-06-05", "2026-01-08", ["20 Oct 2025", "5 Jan 2026"]),
    ],
)
def test_a_plot_shows_the_weeks_of_the_days_that_were_chosen(since: str, before: str | None, seen: list[str]) -> None:
    days = {date(2026, 1, 6): (3,), date(2026, 1, 25): (20,), date(2025, 11, 1): (100,)}
    upto = None if before is None else date.fromisoformat(before)
    drawn = plots.stacked("things a {each}", ("a",), days, sums=True, since=date.fromisoformat(since), before=upto)
    assert drawn is not None
    assert (drawn.label, drawn.dates[0], drawn.dates[-1]) == ("things a week", *seen)
    held = 103 if before else 123
    assert drawn.bars[-1].title == f"week of {drawn.dates[-1]}: a {held}"
    assert plots.stacked("things", ("a",), days, since=date(2026, 1, 26)) is None


@pytest.mark.parametrize(
    ("since", "before", "seen"),
    [
        ("2026-01-08", None, ["8 Jan 2026: a 103", "19 Jan 2026: a 123"]),
        ("2026-01-19", None, ["19 Jan 2026: a 123"]),
        ("2025-12-29", "2026-01-19", ["29 Dec 2025: a 100", "5 Jan 2026: a 103"]),
        ("2025-11-21", None, ["5 Jan 2026: a 103", "19 Jan 2026: a 123"]),
    ],
)
def test_a_bar_is_a_day_where_few_are_chosen(since: str, before: str | None, seen: list[str]) -> None:
    days = {date(2026, 1, 5): (3,), date(2026, 1, 19): (20,), date(2020, 1, 6): (100,)}
    upto = None if before is None else date.fromisoformat(before)
    drawn = plots.stacked("things a {each}", ("a",), days, sums=True, since=date.fromisoformat(since), before=upto)
    assert drawn is not None
    assert drawn.label == "things a day"
    assert [bar.title for bar in (drawn.bars[0], drawn.bars[-1])][-len(seen) :] == seen


def test_trends_are_of_the_days_that_were_chosen_and_of_none_to_come() -> None:
    weeks = {date(2026, 1, 5): (3,), date(2026, 1, 19): (20,), date(2030, 1, 7): (9,)}
    found = [trends.Trend("things", ("a",), weeks), trends.Trend("none", ("a",), {})]

    def of(since: str, before: str) -> list[str]:
        days = (date.fromisoformat(each) if each else None for each in (since, before))
        drawn = trends.drawn(found, date(2026, 1, 20), *days)
        return [bar.title.partition(": ")[2] for plot in drawn for bar in plot.bars]

    assert of("", "") == ["a 3", "a 20"]
    assert of("2026-01-12", "") == ["a 20"]
    assert of("", "2026-01-19") == ["a 3"]
    assert of("2026-01-12", "2026-01-19") == []


TAGS = {
    "div", "p", "em", "strong", "s", "code", "pre", "ul", "ol", "li", "blockquote", "hr", "br",
    "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip


@given(st.text(alphabet="<>&\"'`*_#-|[]()!:. \n\tab1~https/=", max_size=120))
def test_what_is_laid_out_has_no_link_no_picture_no_style_and_no_markup_of_its_own(text: str) -> None:
    only_the_laid_out(text)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>", "[a](javascript:alert(1))", "![a](http://example.org/x.png)", "<http://example.org>",
        "|a|b|\n|:-|-:|\n|1|2|", "[a]: http://example.org\n\n[a]", "```x onclick=y\nz\n```", "# a <b>", "&lt;b&gt;",
    ],
)  # fmt: skip
def test_what_would_lead_elsewhere_stays_text(text: str) -> None:
    only_the_laid_out(text)


def only_the_laid_out(text: str) -> None:
    for tag, attributes in re.findall(r"<(/?[^\s>/]*)([^>]*)>", render.laid_out(text)):
        assert tag.removeprefix("/") in TAGS, (tag, text)
        assert re.fullmatch(r'( class="(laid|heading|language-[^"]*)"| start="\d+"| /)?', attributes), (
            attributes,
            text,
        )


@pytest.mark.parametrize(
    "text",
    [
        "Use it here.\n```always push quartz\nx\n```", "~~~ run quartz\nx\n~~~", "```quartz\nx\n```",
        "|a|\n|-|\n|here|quartz|\n", "> |a|\n> |-|\n> |here|quartz|\n", "- ```\n  x\n  ``` quartz",
        "a\n\n[quartz]: quartz 'quartz'", "<!-- quartz -->", "[a](quartz 'b')", "![quartz](a)", "&quartz; \\quartz",
    ],
)  # fmt: skip
def test_what_is_laid_out_hides_no_word_from_who_may_approve_it(text: str) -> None:
    shown = html.unescape(re.sub("<[^>]*>", "", render.laid_out(text)))
    assert shown.count("quartz") == text.count("quartz")


def test_lists_tables_and_code_are_laid_out_and_hidden_characters_shown() -> None:
    laid = render.laid_out("# Plan\n\n1. keep `a<b`\n2. **not** this\u202e\n\n|a|b|\n|:-|-|\n|1|2|")
    for part in (
        '<p class="heading">Plan</p>',
        "<li>keep <code>a&lt;b</code></li>",
        "<strong>not</strong>",
        "<td>1</td>",
    ):
        assert part in laid
    assert "this�" in laid
    assert render.laid_out("# " * 20_000).startswith("<pre># ")
    wide = ("|a" * 300 + "\n" + "|-" * 300 + "\n" + "|b\n" * 3_000)[:9_900]
    assert len(render.laid_out(wide)) < 2 * len(wide), "rows are filled up to the width of their head"


def test_a_spreadsheet_is_given_no_formula() -> None:
    a_list = lists.List("things", lambda *_: lists.Found([], None, lambda: 0), lambda each: each.what, ())
    of = SimpleNamespace(project="@SUM(A1)")
    rows = lists.as_csv(a_list, iter([SimpleNamespace(what=what, **vars(of)) for what in ("=1+1", "-2", 'a,\n"b')]))
    assert list(csv.reader(io.StringIO(rows))) == [
        ["things", "project"], ["'=1+1", "'@SUM(A1)"], ["'-2", "'@SUM(A1)"], ['a,\n"b', "'@SUM(A1)"],
    ]  # fmt: skip
    rows = lists.as_csv(a_list, iter([SimpleNamespace(what="a;=1;b", **vars(of))]))
    cells = [cell for row in csv.reader(io.StringIO(rows), delimiter=";") for cell in row]
    assert not [cell for cell in cells if cell.startswith("=")]


def test_words_of_the_question_are_marked_in_any_form_and_stay_text() -> None:
    text = "Caches are <b>dropped</b> by `drop_cache`, not by us"
    assert render.found(text, "why was the cache dropped?") == (
        "<mark>Caches</mark> are <mark>&lt;b&gt;dropped&lt;/b&gt;</mark> by "
        "<code><mark>drop_cache</mark></code>, not by us"
    )
    assert render.found(text, "") == render.ticked(text)


@given(text=st.text(max_size=80), question=st.text(max_size=30))
def test_marking_loses_no_character(text: str, question: str) -> None:
    plain = re.sub(r"</?(?:mark|code)>", "", render.found(text, question))
    assert html.unescape(plain) == html.unescape(re.sub(r"</?code>", "", render.ticked(text)))
