"""Templates, and the filters they write values with. All text is escaped; what memory holds is data, never markup."""

import json
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, datetime
from functools import cache
from html import unescape
from typing import Any
from urllib.parse import quote

import jinja2
import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from memctl.api.http.access import refused
from memctl.api.reading.caller import Caller
from memctl.api.reading.records import SessionItem
from memctl.domain.events.facts import quote_hash
from memctl.domain.knowledge.acting import commands_somebody
from memctl.domain.support import patterns
from memctl.domain.support.text import tokens
from memctl.domain.support.wording import fix_and_why, fix_or_what_is_known, seen, size, span

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
"""Of the viewer's pages: nothing from elsewhere, no script and no style within a page."""


LEVELS = {
    4: ("in use", "search finds it"),
    3: ("verified", "it holds"),
    2: ("unproved", "it passed its checks, and more sessions or a person may prove it"),
    1: ("read", "it was read out of what was said, and failed a check"),
}
"""Of claims: a word for each, and what it means."""


@cache
def environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("memctl.api.viewer"),
        autoescape=True,
        finalize=shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    own = (when, to_the_second, until, size, part, count, much, place, apart, pretty, marked, brief, plain, linked)
    more = (unmarked, worth_showing, laid_out, span, ticked, found)
    made.filters.update({each.__name__: each for each in (*own, *more)}, acts=commands_somebody, digest=quote_hash)
    made.globals.update(LEVELS=LEVELS, fix_and_why=fix_and_why, fix_or_what_is_known=fix_or_what_is_known)
    return made


def page(name: str, caller: Caller, **values: Any) -> str:
    """A template's text for whoever looks, who is offered only what they may do. Names of values are the template's
    own."""

    def may(path: str, method: str = "GET") -> bool:
        return not refused(caller, method, path)

    return environment().get_template(name).render(**values, may=may, member=caller.member)


def shown(value: object) -> object:
    """A value as a page shows it: with a mark for each character that is hidden in it."""
    return type(value)(seen(str(value), "�")) if isinstance(value, str) else value


def when(at: str | datetime | None) -> Markup | str:
    """A moment as people read it, in UTC, with the exact one on hovering; empty for none."""
    shown = Markup('<time datetime="{0}" title="{0}">{1:%-d %b %Y %H:%M}</time>')
    return shown.format((moment := _moment(at)).isoformat(), moment) if at else ""


def to_the_second(at: str | datetime | None) -> Markup | str:
    """A moment as `when` shows it, with its seconds."""
    shown = Markup('<time class="exact" datetime="{0}" title="{0}">{1:%-d %b %Y %H:%M:%S}</time>')
    return shown.format((moment := _moment(at)).isoformat(), moment) if at else ""


def until(begun: str | datetime, ended: str | datetime) -> str:
    """How long it is from the one moment to the other: `12 min`."""
    return span(max((_moment(ended) - _moment(begun)).total_seconds(), 0.0))


def _moment(at: str | datetime) -> datetime:
    return (at if isinstance(at, datetime) else datetime.fromisoformat(at)).astimezone(UTC)


def count(number: float) -> str:
    return f"{number:,.0f}"


def apart(session: SessionItem, sessions: Sequence[SessionItem]) -> str:
    """What distinguishes a session from others of these that are called the same: what was asked last, or first, or how
    it ended; empty where none is called so, or nothing differs."""
    called = session.title or session.first_prompt
    same = [_words(each) for each in sessions if (each.title or each.first_prompt) == called]
    own = enumerate(_words(session) if len(same) > 1 else ())
    return next((words for at, words in own if words and sum(each[at] == words for each in same) == 1), "")


def _words(session: SessionItem) -> tuple[str, str, str]:
    """What was asked last of a session, and first, and how it ended; empty where that is not known."""
    last, first, ended = session.last_prompt, session.first_prompt, session.summary.partition("It ended with: ")[2]
    return (
        f"asked last: {last}" if last else "",
        f"asked: {first}" if session.title and first else "",
        f"ended with: {ended}" if ended else "",
    )


def place(rank: int) -> str:
    """A rank as an ordinal: `1st`, `12th`."""
    return f"{rank}{'th' if rank // 10 % 10 == 1 else {1: 'st', 2: 'nd', 3: 'rd'}.get(rank % 10, 'th')}"


def much(number: float) -> Markup | str:
    """A large number in three digits, `1.15 G`, with all of them on hovering."""
    for unit, of in (("G", 1e9), ("M", 1e6)):
        if number >= 0.9995 * of:
            return Markup('<data value="{0:.0f}" title="{0:,.0f}">{1:.3g} {2}</data>').format(number, number / of, unit)
    return count(number)


def part(text: object) -> str:
    """Text as one part of a URL's path or query."""
    return quote(str(text), safe="")


def pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=msgspec.to_builtins)


def brief(text: str, most: int = 280) -> str:
    """One line of a text, cut at a word."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[:most].rsplit(" ", 1)[0] + " …"


def plain(text: str) -> str:
    """A text without its backticks, for where code cannot be laid out."""
    return text.replace("`", "")


_MARKS = patterns.compile(r"`{3,}\w*(?:\s|$)|(?:^|\s)#{2,6}\s|(^|[\s(])\*\*(\w[^*`\n]*)\*\*")


def unmarked(text: str) -> str:
    """A text without the marks of Markdown that mean nothing in one line: fences, headings, what is bold."""
    return _MARKS.sub(lambda mark: f"{mark[1] or ' '}{mark[2] or ''}", text)


_ID = patterns.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{16}\b")


def linked(text: str) -> Markup:
    """A text whose ids lead to what they are of, by their beginnings."""
    parts, at = [], 0
    for id in _ID.finditer(text):
        parts += [escape(text[at : id.start()]), Markup('<a href="/things/{}">{}</a>').format(id[0], id[0][:8])]
        at = id.end()
    return Markup("").join([*parts, escape(text[at:])])


FEWEST = 3
"""Results that are shown however weak they are."""


def worth_showing(results: Sequence[Mapping[str, Any]]) -> int:
    """How many results stand open: up to the last that is no weak match."""
    return max((n for n, each in enumerate(results, 1) if each["class"] != "none"), default=FEWEST)


_TICKED = patterns.compile(r"`+([^`\n]+)`+")


_WORD = patterns.compile(r"\S+")


def ticked(text: str, asked: Set[str] = frozenset()) -> Markup:
    """A text with what stands between backticks as code, and the words marked that have one of these tokens."""
    parts = [_lit(each, asked) for each in _TICKED.split(text)]
    return Markup("").join(Markup("<code>{}</code>").format(each) if n % 2 else each for n, each in enumerate(parts))


def found(text: str, question: str) -> Markup:
    """A text as `ticked` shows it, with the words marked that the question has too, in whatever form."""
    return ticked(text, frozenset(tokens(question)))


def _lit(text: str, asked: Set[str]) -> Markup:
    shown, at = [], 0
    words = {word[0] for word in _WORD.finditer(text)} if asked else set()
    lit = {each for each in words if not asked.isdisjoint(tokens(each))}
    for word in _WORD.finditer(text) if lit else ():
        if word[0] in lit:
            shown += [escape(text[at : word.start()]), Markup("<mark>{}</mark>").format(word[0])]
            at = word.end()
    return Markup("").join([*shown, escape(text[at:])])


LONGEST_MARKDOWN = 20_000
"""Characters that are laid out; a longer text is shown as it is."""

MOST_CELLS = 4_000
"""Cells of tables that are: each row of a table is filled up to the width of its head."""


@cache
def _markdown() -> MarkdownIt:
    """Lists, tables, emphasis and code. Markup, links and images stay the text that they are: what memory holds leads
    nowhere and loads nothing."""
    made = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    made.disable(["html_block", "html_inline", "link", "image", "autolink", "reference", "lheading", "entity"])
    plain = {"heading_open": '<p class="heading">', "heading_close": "</p>", "th_open": "<th>", "td_open": "<td>"}
    for name, tag in plain.items():  # a cell's alignment would be a style, which the policy forbids
        made.add_render_rule(name, lambda *_, tag=tag: tag)
    made.add_render_rule("fence", _fence)
    return made


_TAG = patterns.compile(r"<[^>]*>")


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text))


def laid_out(text: str) -> Markup:
    """A text with its Markdown laid out, where that is no work for long and hides no letter of it, as Markdown does the
    words behind a fence and a row's cells beyond its head: who reads it here may approve it."""
    parts = [part.split("\n") for part in text.split("\n\n") if "|" in part] if len(text) <= LONGEST_MARKDOWN else []
    cells = sum(len(lines) * max(line.count("|") for line in lines) for lines in parts)
    too_much = len(text) > LONGEST_MARKDOWN or cells > MOST_CELLS
    laid = "" if too_much else _markdown().render(seen(text, "�"))
    if too_much or _letters(unescape(_TAG.sub("", laid))) != _letters(seen(text, "�")):
        return Markup("<pre>{}</pre>").format(shown(text))
    return Markup('<div class="laid">{}</div>').format(Markup(laid))  # noqa: S704 - its renderer escapes


def _fence(_: object, tokens: Sequence[Token], at: int, *__: object) -> str:
    """Code between fences, with the language that stands behind the first."""
    named = f"{escape(tokens[at].info.strip())}\n" if tokens[at].info.strip() else ""
    return f"<pre><code>{named}{escape(tokens[at].content)}</code></pre>\n"


def marked(text: str, start: int, end: int) -> Markup:
    """A text with the characters from `start` to `end` marked."""
    before, quoted, after = text[:start], text[start:end], text[end:]
    return Markup('{}<mark id="quote">{}</mark>{}').format(before, quoted, after) if quoted else escape(text)
