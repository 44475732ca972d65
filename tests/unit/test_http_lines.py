"""A request's lines are read as h11 reads them, and in linear time."""

from __future__ import annotations

import time

import h11
import pytest
from h11 import _readers
from hypothesis import given
from hypothesis import strategies as st

from memctl.infra.http_lines import FREE_CHUNKS, ChunkSize, Header, read_linearly

H11S = (_readers.header_field_re, _readers.chunk_header_re)
PIECES = [
    b"a",
    b"Host",
    b":",
    b" ",
    b"\t",
    b"\0",
    b"\n",
    b"\r",
    b"\f",
    b"\v",
    b";",
    b"5",
    b"fF",
    b"\xff",
    b"\r\n",
    b"-",
    b'"',
]

lines = st.lists(st.sampled_from(PIECES), max_size=9).map(b"".join)


@given(lines)
def test_a_header_is_read_as_h11_reads_it(line: bytes) -> None:
    theirs = H11S[0].fullmatch(line)
    names = ("field_name", "field_value")
    assert Header().fullmatch(line) == ({name: theirs[name] for name in names} if theirs else {})


@given(st.one_of(lines, lines.map(lambda line: b"5" + line + b"\r\n")))
def test_the_size_of_a_chunk_is_read_as_h11_reads_it(line: bytes) -> None:
    theirs = H11S[1].fullmatch(line)
    assert ChunkSize().fullmatch(line) == ({"chunk_size": theirs["chunk_size"]} if theirs else {})


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\na:" + b" " * 60_000 + b"\0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;"
        + b" " * 60_000
        + b"\nx\r\nhello\r\n0\r\n\r\n",
    ],
)
def test_a_line_of_blanks_is_refused_at_once(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("header_field_re", "chunk_header_re"):
        monkeypatch.setattr(_readers, name, getattr(_readers, name))
    read_linearly()
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 16)
    connection.receive_data(sent)
    began = time.process_time()
    refused = False
    while not refused:
        try:
            assert connection.next_event() is not h11.NEED_DATA
        except h11.RemoteProtocolError:
            refused = True
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(("chunks", "size", "taken"), [(1_000, 1, True), (5_000, 1, False), (2_000, 512, True)])
def test_a_body_in_very_many_small_chunks_is_refused(
    chunks: int, size: int, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("header_field_re", "chunk_header_re"):
        monkeypatch.setattr(_readers, name, getattr(_readers, name))
    bodies = _readers.READERS[_readers.SEND_BODY]
    monkeypatch.setitem(bodies, "chunked", bodies["chunked"])
    read_linearly()
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    connection.receive_data((b"%x\r\n" % size + b"x" * size + b"\r\n") * chunks + b"0\r\n\r\n")
    events = 0
    try:
        while not isinstance(connection.next_event(), h11.EndOfMessage):
            events += 1
    except h11.RemoteProtocolError:
        assert (taken, events) == (False, FREE_CHUNKS + 1)
    else:
        assert taken
