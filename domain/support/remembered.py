"""Answers that are kept for texts which come again and again."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])

LONGEST = 8_192
"""Characters that the arguments of a kept answer have in all. Names, paths and commands are asked again and again.
Texts of others may have megabytes, and a cache of a thousand of them would hold gigabytes."""


LONGEST_OF_FEW, FEW = 32_000, 4
"""Characters of longer arguments of which only so many answers are kept: a fold asks the same of one text, which has
16,000 characters at most, several times in a row."""


def remembered(entries: int, *, longest: int = LONGEST) -> Callable[[Function], Function]:
    """Keep the last answers of a pure function of texts (`str`, `int` or tuples of `str`, by place)."""

    def decorate(function: Function) -> Function:
        kept, few = lru_cache(maxsize=entries)(function), lru_cache(maxsize=FEW)(function)

        def of_length(length: int) -> Callable[..., object]:
            return kept if length <= longest else few if length <= LONGEST_OF_FEW else function

        @wraps(function)
        def of_one(text: str | int | tuple[str, ...]) -> object:
            length = len(text) if text.__class__ is str else _length(text)
            return (kept if length <= longest else of_length(length))(text)

        @wraps(function)
        def of_several(*texts: str | int | tuple[str, ...], **flags: bool) -> object:
            length = 0
            for text in texts:  # a third of the time of sum() and map()
                length += len(text) if text.__class__ is str else _length(text)
            return (kept if length <= longest else of_length(length))(*texts, **flags)

        code = function.__code__
        alone = code.co_argcount + code.co_kwonlyargcount == 1
        return cast(Function, of_one if alone else of_several)

    return decorate


def _length(text: str | int | tuple[str, ...]) -> int:
    if isinstance(text, str):
        return len(text)
    return sum(map(len, text)) if isinstance(text, tuple) else 1
