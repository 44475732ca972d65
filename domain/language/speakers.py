"""Who said what: texts of conversations begin with the name of who speaks, and questions name whom they ask about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memctl.domain.support import patterns

_SAYS = patterns.compile(r"\s*([^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,2}): \S")
_WORD = patterns.compile(r"[^\W_]+")


def speaker_of(text: str) -> str:
    """Who says a text, as it stands before its first colon (`Ada: I think …`): up to three words, else nothing."""
    found = _SAYS.match(text[:80])
    return found[1] if found else ""


def said_by_named(query: str, texts: Mapping[str, str]) -> dict[str, bool]:
    """By id, whether the one that the query names said the text; empty where nothing is known of that.

    Only of conversations: most of the texts begin with one of few names, and the query has exactly one of these. A
    prompt that begins with "Error:" is no conversation, and in a question of two people each may answer.
    """
    by_text = {id: name for id, text in texts.items() if (name := speaker_of(text))}
    names = set(by_text.values())
    if len(names) < 2 or 2 * len(by_text) < len(texts) or len(by_text) < _TURNS_EACH * len(names):
        return {}
    asked = _named(query, names)
    return {id: name == asked for id, name in by_text.items()} if asked else {}


_TURNS_EACH = 3
"""Texts that each name has in a conversation, at the least on average."""


def _named(query: str, names: Iterable[str]) -> str:
    words = set(_WORD.findall(query.casefold()))
    named = [name for name in names if words.issuperset(_WORD.findall(name.casefold()))]
    return named[0] if len(named) == 1 else ""
