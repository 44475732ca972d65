"""The register of questions: each is declared once, beside the function that answers it.

    @question("/strategies", "code")
    def strategies(reader: Reader, places: Places, *, waiting: bool = False, limit: Limit = 50) -> Page[StrategyItem]:

is `GET /v1/strategies?project=&here=&waiting=&limit=`. The route, who may ask it, and its description in OpenAPI are
made of that declaration (`memctl.api.http.questions`, `access`, `openapi`). Parameters by their type:

- `Reader`, `Places` (the projects asked about), `Project` (exactly one), `Engine`, `Llm`, `datetime` (now) are given;
- a name that stands in the path comes from there, every other one from the query;
- `Micros` is a moment, written in ISO 8601; `Annotated` with `msgspec.Meta` says bounds, a description, examples.

The first paragraph of the docstring is the description.
"""

import functools
import importlib
import pkgutil
import typing
from collections.abc import Callable
from inspect import Parameter, cleandoc, signature
from typing import Annotated, Any, NamedTuple, TypeVar

from msgspec import Meta

from memctl.api.reading.pages import LONGEST_PAGE
from memctl.infra.api_keys import Scope

LONGEST_PLACE = 4096
"""Characters of a project's name or of a path."""

Limit = Annotated[int, Meta(ge=1, le=LONGEST_PAGE, description="Most items of the answer.")]
Cursor = Annotated[str | None, Meta(max_length=1024, description="`next` of the page before.")]
Id = Annotated[str, Meta(min_length=1, max_length=512, description="An id, or its unambiguous beginning.")]
Part = Annotated[str | None, Meta(max_length=1024, description="A part of a name.")]

F = TypeVar("F", bound=Callable[..., Any])


class Endpoint(NamedTuple):
    """A question under its path. `whole`: the answer is about memory as a whole, so a key that is limited to projects
    gets none.
    `shared`: it is about what all spaces of the database share, so no key gets one where there are several.
    `live`: the answer changes without an event, by the clock or by what servers do, so it has no ETag."""

    path: str
    tag: str
    ask: Callable[..., Any]
    scopes: frozenset[Scope]
    whole: bool
    live: bool
    shared: bool = False

    @property
    def name(self) -> str:
        return self.ask.__name__

    @property
    def description(self) -> str:
        return cleandoc(str(self.ask.__doc__)).partition("\n\n")[0]

    @property
    def parameters(self) -> list[Parameter]:
        """Its parameters, their annotations resolved."""
        types = self._types
        return [each.replace(annotation=types[each.name]) for each in signature(self.ask).parameters.values()]

    @property
    def answer(self) -> Any:
        """The type of its answer."""
        return self._types["return"]

    @property
    def _types(self) -> dict[str, Any]:
        return typing.get_type_hints(self.ask, include_extras=True)


_declared: dict[str, Endpoint] = {}

_ROOMS = ("reading", "queries", "search", "assist", "checks")
"""Packages of `memctl.api` in which questions are answered."""


def question(
    path: str,
    tag: str,
    *,
    scopes: tuple[Scope, ...] = ("read",),
    whole: bool = False,
    live: bool = False,
    shared: bool = False,
) -> Callable[[F], F]:
    """Declare the function as what answers `GET /v1` + path. Any of the scopes opens it.

    Raises: ValueError where no scope opens it, another function answers there, or it has no docstring.
    """
    if not scopes:
        raise ValueError(f"{path}: a question without a scope would be open to everyone")

    def declare(ask: F) -> F:
        if not ask.__doc__:
            raise ValueError(f"{path}: write a docstring for {ask.__name__}: it is the description in the API's schema")
        if path in _declared:
            raise ValueError(f"{path}: {_declared[path].name} answers there already")
        _declared[path] = Endpoint(path, tag, ask, frozenset(scopes), whole, live, shared)
        return ask

    return declare


@functools.cache
def questions() -> tuple[Endpoint, ...]:
    """Every question, by path."""
    for room in _ROOMS:
        package = importlib.import_module(f"memctl.api.{room}")
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    return tuple(_declared[path] for path in sorted(_declared))
