"""The one base of memctl's errors. The message says what is wrong, the hint what to do about it."""

from typing import Any, ClassVar


class MemctlError(Exception):
    """Something went wrong that a person can act on."""

    # A subclass's first paragraph is its message, a format template over the error's attributes, so that an error is
    # raised as `PortTaken(port=8080)` and carries its data; a message given in words replaces it.

    exit_code: ClassVar[int] = 1
    hint: str | None = None

    def __init__(self, message: str | None = None, *, hint: str | None = None, **data: object) -> None:
        self.__dict__.update(data)
        if hint is not None:
            self.hint = hint
        super().__init__(message if message is not None else self._from_docstring())

    def _from_docstring(self) -> str:
        paragraph = (type(self).__doc__ or type(self).__name__).strip().split("\n\n")[0]
        return " ".join(paragraph.split()).format_map(vars(self))

    def __reduce__(self) -> tuple[Any, ...]:
        # Subclasses take their data as they like; pickle's own way would call them with the message alone.
        return _restored, (type(self), self.args, self.__dict__.copy())


def _restored(kind: type[MemctlError], args: tuple[object, ...], data: dict[str, object]) -> MemctlError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(data)
    return error
