"""Each function that takes text or lines of others, found by its annotations, with something to call it by."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType, NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import memctl.api
import memctl.domain
import memctl.infra.hooks
import memctl.infra.legacy
import memctl.infra.redaction
import memctl.infra.transcripts

PLAIN: dict[Any, Any] = {str: "make test", bytes: b"make test", int: 1_000, bool: True, float: 1.0}
"""What an argument is that is not the one looked at."""

EMPTY: dict[Any, Any] = {
    **dict.fromkeys((list, Sequence, Iterable, Collection, Iterator, tuple), ()),
    **dict.fromkeys((set, frozenset, Set), frozenset()),
    **{kind: {} for kind in (dict, Mapping)},
}

LEFT_OUT = {"scanner", "redactor_of", "user_rule", "vendors"} | {"_page", "prompt", "_forget_session"}
"""What takes patterns that the user or memctl wrote, which are compiled once; and names that are memctl's own."""

LINES = (list, Sequence, Iterable, Collection, tuple)
"""What a function of lines takes."""


@dataclass(frozen=True)
class TextFunction:
    """A function, and which of its arguments is the text."""

    function: Callable[..., Any]
    """Without what keeps its answers."""
    keeping: Callable[..., Any]
    """As others call it."""
    others: dict[str, Any]
    """The other arguments by name."""
    text: str
    made: Callable[[str], Any]
    """The argument from a text: as it is, in bytes, or by its lines."""

    @property
    def name(self) -> str:
        return f"{self.function.__name__}({self.text})"

    @cached_property
    def _named(self) -> frozenset[str]:
        """The arguments that stand behind one that is left out, or have to be named."""
        parameters = inspect.signature(self.function).parameters.values()
        given = {*self.others, self.text}
        by_place = [each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters]
        ahead = [placed and each.name in given for each, placed in zip(parameters, by_place, strict=True)]
        first = ahead.index(False) if False in ahead else len(ahead)
        return frozenset(each.name for each in list(parameters)[first:])

    def __call__(self, text: str) -> None:
        """Call it, and take all that it yields."""
        arguments = {**self.others, self.text: self.made(text)}
        parameters = [each for each in inspect.signature(self.function).parameters if each in arguments]
        placed = [arguments[each] for each in parameters if each not in self._named]
        answer = self.function(*placed, **{each: arguments[each] for each in parameters if each in self._named})
        if isinstance(answer, Iterator):
            for _ in answer:
                pass


def text_functions() -> dict[str, list[TextFunction]]:
    """By module: what takes text in the domain, the API, the redaction, and the readers of transcripts, hooks, older
    memories, git, logs and models."""
    infra = memctl.infra
    rooms = (memctl.domain, memctl.api, infra.redaction, infra.transcripts, infra.hooks, infra.legacy)
    names = [each.name for room in rooms for each in walk_packages(room.__path__, f"{room.__name__}.")]
    names += [f"memctl.infra.{name}" for name in ("git", "logs", "embedders.bundled", "llm.prompts", "llm.agents")]
    found = {name.removeprefix("memctl."): list(_functions_of(import_module(name))) for name in names}
    return {name: functions for name, functions in found.items() if functions}


def _functions_of(module: ModuleType) -> Iterator[TextFunction]:
    for function in list(vars(module).values()):
        bare = inspect.unwrap(function) if callable(function) else None
        if not inspect.isfunction(bare) or bare.__module__ != module.__name__ or bare.__name__ in LEFT_OUT:
            continue
        try:
            hints = get_type_hints(bare)
        except NameError:  # a type that is imported for the checker alone
            continue
        parameters = inspect.signature(bare).parameters
        needed = {name: hints[name] for name, each in parameters.items() if each.default is each.empty}
        for name in parameters:
            made = _made_of(hints.get(name))
            try:
                others = {other: _something(hint) for other, hint in needed.items() if other != name}
            except (LookupError, TypeError):
                continue
            if made is not None:
                yield TextFunction(bare, function, others, name, made)


def _made_of(hint: Any) -> Callable[[str], Any] | None:
    if hint in (str, str | None):
        return str
    if hint is bytes:
        return str.encode
    if get_origin(hint) in LINES and get_args(hint)[:1] == (str,):
        kept = tuple if get_origin(hint) is tuple else list
        return lambda text: kept(text.splitlines())
    return None


def _something(hint: Any) -> Any:
    """A plain value of a type. Raises: LookupError where there is none."""
    if get_origin(hint) in (Union, UnionType):
        return None if NoneType in get_args(hint) else _something(get_args(hint)[0])
    return PLAIN[hint] if hint in PLAIN else EMPTY[get_origin(hint)]
