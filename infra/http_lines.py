"""Lines of HTTP requests, read in linear time: h11's own patterns split blanks in every way before they refuse a line,
and take 20 s of the server's only loop for one header of 64 KB, before it is known who asks."""

from __future__ import annotations

from string import ascii_letters, digits, hexdigits
from typing import Any

_NAME = (ascii_letters + digits + "-!#$%&'*+.^_`|~").encode()
_HEX = hexdigits.encode()
_LONGEST_SIZE = 20
"""Digits of a size: what h11 takes."""
_BLANKS = b" \t"
_NOT_IN_VALUE = b"\0\n\r\f\v"


class _Line(dict[str, bytes]):
    """What h11 asks of a pattern, and of its match: the parts by name, nothing where a line is none of its kind."""

    def groupdict(self) -> dict[str, bytes]:
        return self


class Header:
    """In the place of `h11._readers.header_field_re`."""

    def fullmatch(self, line: bytes | bytearray) -> _Line:
        name, colon, value = bytes(line).partition(b":")
        if (
            not name
            or not colon
            or name.translate(None, _NAME)
            or len(value.translate(None, _NOT_IN_VALUE)) < len(value)
        ):
            return _Line()
        return _Line(field_name=name, field_value=value.strip(_BLANKS))


class ChunkSize:
    """In the place of `h11._readers.chunk_header_re`."""

    def fullmatch(self, line: bytes | bytearray) -> _Line:
        size, extends, more = bytes(line).removesuffix(b"\r\n").partition(b";")
        size = size if extends else size.rstrip(_BLANKS)
        if (
            not line.endswith(b"\r\n")
            or not 0 < len(size) <= _LONGEST_SIZE
            or size.translate(None, _HEX)
            or b"\n" in more
        ):
            return _Line()
        return _Line(chunk_size=size)


FREE_CHUNKS, LEAST_OF_CHUNK = 1_000, 512
"""Chunks that a body may always have, and bytes of those of a longer one on average. Each holds the server's only loop
for 10 us."""


def read_linearly() -> None:
    """Have h11 read lines so in this process, and no body in very many pieces."""
    from h11 import SEND_BODY, Data, LocalProtocolError, _readers

    class Chunks(_readers.ChunkedReader):
        _chunks = _taken = 0

        def __call__(self, buf: Any) -> Any:
            event = super().__call__(buf)
            if isinstance(event, Data):
                self._chunks += event.chunk_start
                self._taken += len(event.data)
                if self._chunks > FREE_CHUNKS and self._taken < self._chunks * LEAST_OF_CHUNK:
                    raise LocalProtocolError("a body in very many small chunks")
            return event

    _readers.header_field_re = Header()  # type: ignore[assignment]
    _readers.chunk_header_re = ChunkSize()  # type: ignore[assignment]
    bodies: Any = _readers.READERS[SEND_BODY]
    bodies["chunked"] = Chunks
