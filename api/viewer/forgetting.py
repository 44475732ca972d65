"""Forgetting in the viewer: what is meant, what would go and what would follow, then doing it, and the receipt."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import uuid4

from starlette.requests import Request

from memctl.api.http.access import caller_of
from memctl.api.http.forget import Forget, forget_once, preview_of
from memctl.api.http.problems import status_of
from memctl.api.queries.memories import thing
from memctl.api.reading.caller import Caller
from memctl.api.reading.reader import Readers
from memctl.api.viewer import render
from memctl.domain.support.errors import MemctlError
from memctl.infra.settings import Settings

log = logging.getLogger("memctl.api")

HOW = {
    "match": ("every event in which a text stands", "text"),
    "session": ("a session, and those of its subagents", "id of a session"),
    "id": ("one thing: a memory, claim, episode, bug, task or event", "its id"),
    "project": ("everything of a project until now", "name or path"),
    "before": ("everything before a day", "2026-03-01"),
}
"""What may be forgotten: in words, and what is to be written."""

_TEXTS = ("title", "first_prompt", "text", "description", "message", "type")
"""Fields that say what a thing is, the shortest first."""

LONGEST = {"match": 8_000, "project": 4_096}


class NoMoment(MemctlError):
    """{text!r} is no date or time in ISO 8601, such as 2026-03-01."""

    exit_code = 2
    text: str


class NothingNamed(MemctlError):
    """Nothing is named that is to be forgotten."""

    exit_code = 2


class NamedTooLong(MemctlError):
    """What is to be forgotten is named by more than {most:,} characters."""

    exit_code = 2
    hint = "Name it by less: a shorter part of the text, or an id."
    most: int


class PageAnswer(NamedTuple):
    """A page, and the status of HTTP that it is sent with."""

    text: str
    status: int = 200


class Forgetting:
    """`ask` shows the form and, where something is named, what would go; `do` forgets it."""

    def __init__(self, settings: Settings, readers: Readers) -> None:
        self._settings, self._readers = settings, readers

    def ask(self, request: Request) -> PageAnswer:
        given, caller, preview = request.query_params, caller_of(request), None
        try:
            how, what = _named(given)
            if what:
                preview = preview_of(self._settings, caller, wanted(how, what))
        except MemctlError as why:
            return _once_more(given, why, caller)
        named = self._called(what, caller) if how in ("session", "id") and preview is not None else ""
        return PageAnswer(_page(caller, how=how, what=what, called=named, preview=preview, key=uuid4().hex))

    def _called(self, id: str, caller: Caller) -> str:
        """What a person knows a thing by; empty where it has no such words."""
        try:
            item = self._readers.read(lambda reader: thing(reader, id), caller).item
        except MemctlError:
            return ""
        return next((str(item[name]) for name in _TEXTS if item.get(name)), "")

    def do(self, form: Mapping[str, Any], caller: Caller) -> PageAnswer:
        """`form` has `how`, `what`, `key` and `reason`; the same key again shows the same receipt."""
        try:
            how, what = _named(form)
            if not what:
                raise NothingNamed
            asked = wanted(how, what).model_copy(update={"reason": str(form.get("reason", "")).strip()[:1_000]})
            receipt = forget_once(self._settings, caller, asked, str(form.get("key", ""))[:64] or uuid4().hex)
        except MemctlError as why:
            return _once_more(form, why, caller)
        return PageAnswer(_page(caller, how=how, what="", receipt=receipt))


def _once_more(given: Mapping[str, Any], why: MemctlError, caller: Caller) -> PageAnswer:
    """The form as it was filled in, and why that cannot be done."""
    status = status_of(why)
    if status == 500:
        log.error("forgetting failed: %s", why, exc_info=why)
    trouble = " ".join(filter(None, (str(why), why.hint)))
    return PageAnswer(_page(caller, how=_how(given), what=str(given.get("what", ""))[:8_000], trouble=trouble), status)


def wanted(how: str, what: str) -> Forget:
    """What the form names. Raises: NoMoment."""
    if how != "before":
        return Forget.model_validate({how: what})
    try:
        at = datetime.fromisoformat(what)
    except ValueError:
        raise NoMoment(text=what[:40]) from None
    return Forget(before=at if at.tzinfo else at.replace(tzinfo=UTC))


def _named(given: Mapping[str, Any]) -> tuple[str, str]:
    """How something is named, and what. Raises: NamedTooLong."""
    how = _how(given)
    what, most = str(given.get("what", "")).strip(), LONGEST.get(how, 512)
    if len(what) > most:
        raise NamedTooLong(most=most)  # less of it would mean more than what was written
    return how, what


def _how(given: Mapping[str, Any]) -> str:
    how = str(given.get("how", "match"))
    return how if how in HOW else "match"


_NOTHING: dict[str, Any] = {"trouble": "", "key": "", "called": "", "preview": None, "receipt": None}


def _page(caller: Caller, **values: Any) -> str:
    """The form, with what is known of what it has: any of `_NOTHING`, beside `how` and `what`."""
    return render.page("forget.html", caller, ways=HOW, at="forget", **(_NOTHING | values))
