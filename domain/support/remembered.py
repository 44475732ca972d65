"""Answers that are kept for texts which come again and again."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])

LONGEST = 4_096
"""Characters that the arguments of a kept answer have in all. Names, paths and commands are asked again and again.
Texts of others may have megabytes, and a cache of a thousand of them would hold gigabytes."""


def remembered(entries: int, *, longest: int = LONGEST) -> Callable[[Function], Function]:
    """Keep the last answers of a pure function of texts (`str`, `int` or tuples of `str`, by place)."""

    def decorate(function: Function) -> Function:
        kept = lru_cache(maxsize=entries)(function)

        @wraps(function)
        def answer(*texts: str | int | tuple[str, ...], **flags: bool) -> object:
            return (kept if sum(map(_length, texts)) <= longest else function)(*texts, **flags)

        return cast(Function, answer)

    return decorate


def _length(text: str | int | tuple[str, ...]) -> int:
    if isinstance(text, str):
        return len(text)
    return sum(map(len, text)) if isinstance(text, tuple) else 1
