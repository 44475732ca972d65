"""The spool: what a hook leaves on disk, and how it is read again."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from pathlib import Path

import pytest

from memctl.infra import hook
from memctl.infra.hooks.spool import (
    BadDelivery,
    Delivery,
    decode_header,
    make_counter,
    read_spooled,
    refusals,
    set_aside,
    spool,
    spooled,
    sweep,
)


def delivery(number: int = 1, payload: bytes = b"{}", at: int = 1_772_452_800_000_000) -> Delivery:
    return Delivery(f"{number:032x}", at, "claude-code", "Stop", payload)


def test_what_is_spooled_is_read_again_oldest_first(tmp_path: Path) -> None:
    later, earlier = delivery(1, at=20), delivery(2, b"line\nline \xff", at=3)
    for one in (later, earlier):
        spool(tmp_path, one)
    assert [found for _, found in read_spooled(spooled(tmp_path))] == [earlier, later]
    assert [oct(path.stat().st_mode)[-3:] for path in spooled(tmp_path)] == ["600", "600"]


@pytest.mark.parametrize(
    ("word", "meant"), [("lab", "lab"), ("", ""), ("a b", ""), ("x" * 65, ""), ('a"', ""), ("-a", "")]
)
def test_a_hook_says_which_space_is_meant_where_one_may_be_called_so(
    monkeypatch: pytest.MonkeyPatch, word: str, meant: str
) -> None:
    monkeypatch.setenv("MEMCTL_SPACE", word)
    assert hook.space_meant() == meant
    one = delivery()._replace(space=meant)
    found, size = decode_header(one.encode().split(b"\n")[0])
    assert (found._replace(payload=one.payload), size) == (one, 2)


def test_a_header_says_how_the_client_was_started_or_its_payload_does() -> None:
    one = delivery()._replace(started='odd "word"\n')
    head = one.encode().split(b"\n")[0]
    assert decode_header(head)[0].started == one.started
    named = json.loads(head)
    del named["started"]
    with pytest.raises(BadDelivery, match="no header"):
        decode_header(json.dumps(named).encode())
    assert decode_header(json.dumps({**named, "v": 1}).encode())[0].started == ""


@pytest.mark.parametrize("at", [-1, -(10**18), 253_370_764_800_000_000, 10**30, 1.5, True, None, "0", float("inf")])
def test_a_time_outside_of_1970_to_9998_is_no_header(at: object) -> None:
    header = {"v": 1, "id": "a" * 32, "at": at, "agent": "codex", "event": "", "size": 0}
    with pytest.raises(BadDelivery, match="time"):
        decode_header(json.dumps(header).encode())


@pytest.mark.parametrize("size", [-1, hook.MAX_PAYLOAD + 1, 1e300, float("inf"), "1", False])
def test_a_size_that_no_payload_has_is_no_header(size: object) -> None:
    header = {"v": 1, "id": "a" * 32, "at": 0, "agent": "codex", "event": "", "size": size}
    with pytest.raises(BadDelivery, match="size"):
        decode_header(json.dumps(header).encode())


@pytest.mark.parametrize("line", [b"", b"[]", b'"x"', b"{", b"{}", b"\xff", b"[" * 4000, b"1" * 5000])
def test_what_is_no_header_is_said_without_quoting_it(line: bytes) -> None:
    with pytest.raises(BadDelivery, match=r": (no|a) header"):
        decode_header(line)


def test_what_is_no_file_does_not_keep_others_from_being_read(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000-folder.delivery").mkdir()
    os.mkfifo(tmp_path / "00000000000000000001-pipe.delivery")
    (tmp_path / "00000000000000000002-gone.delivery").symlink_to("nowhere")
    (tmp_path / "00000000000000000003-torn.delivery").write_bytes(delivery(9, b"whole").encode()[:-1])
    spool(tmp_path, delivery())
    found = [found for _, found in read_spooled(spooled(tmp_path))]
    kinds = (OSError, OSError, BadDelivery, Delivery)
    assert [isinstance(one, kind) for one, kind in zip(found, kinds, strict=True)] == [True] * 4


def test_a_file_larger_than_any_delivery_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "0-x.delivery").open("wb") as file:
        file.truncate(1 << 40)
    [(_, found)] = read_spooled(spooled(tmp_path))
    assert isinstance(found, BadDelivery)


def test_what_is_set_aside_keeps_its_bytes_and_waits_no_more(tmp_path: Path) -> None:
    path = spool(tmp_path, delivery())
    assert path is not None
    aside = set_aside(path, "refused")
    assert aside.name == path.name.replace(".delivery", ".refused")
    assert aside.read_bytes() == delivery().encode()
    assert spooled(tmp_path) == []


def test_a_spool_with_as_many_files_as_it_may_have_keeps_nothing_more_and_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook, "MOST_FILES", 20)
    assert refusals(tmp_path) is None
    for number in range(hook.MOST_FILES - 1):
        (tmp_path / f"{number}.delivery").touch()
    assert spool(tmp_path, delivery(1)) is not None
    assert refusals(tmp_path) is None
    before = time.time_ns() // 1000
    assert spool(tmp_path, delivery(2)) is None
    assert spool(tmp_path, delivery(3)) is None
    told = refusals(tmp_path)
    assert told is not None
    assert told.deliveries == 2
    assert before <= told.last_at <= time.time_ns() // 1000
    assert len(spooled(tmp_path)) == hook.MOST_FILES


def test_a_spool_with_as_many_bytes_as_it_may_have_keeps_nothing_more(tmp_path: Path) -> None:
    small = len(delivery().encode())
    with (tmp_path / "0-x.refused").open("wb") as file:
        file.truncate(hook.MOST_BYTES - small)  # no block of it is on the disk
    assert spool(tmp_path, delivery(1, b"{ }")) is None
    assert spool(tmp_path, delivery(2)) is not None


def test_a_payload_that_the_door_would_not_take_is_not_spooled(tmp_path: Path) -> None:
    payload = bytes(hook.MAX_PAYLOAD + 1)
    assert spool(tmp_path, delivery(1, payload)) is None
    assert os.listdir(tmp_path) == ["refused"]


def test_counting_takes_its_room_before_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "spool"
    make_counter(folder)
    assert refusals(folder) is None
    size = (folder / "refused").stat().st_size
    monkeypatch.setattr(hook, "MAX_PAYLOAD", 1)
    for _ in range(12):
        assert spool(folder, delivery()) is None
    make_counter(folder)
    told = refusals(folder)
    assert told is not None
    assert told.deliveries == 12
    assert (folder / "refused").stat().st_size == size


def test_a_torn_count_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "refused").write_bytes(b'{"count": 1')
    assert refusals(tmp_path) is None
    monkeypatch.setattr(hook, "MAX_PAYLOAD", 1)
    assert spool(tmp_path, delivery()) is None
    told = refusals(tmp_path)
    assert told is not None
    assert told.deliveries == 1


def test_a_disk_that_is_full_leaves_no_half_written_file_and_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        spool(tmp_path, delivery())
    assert os.listdir(tmp_path) == ["refused"]


def test_what_was_begun_over_an_hour_ago_is_swept_and_what_was_begun_now_is_not(tmp_path: Path) -> None:
    old, new = tmp_path / ".a.part", tmp_path / ".b.part"
    for path in (old, new):
        path.touch()
    os.utime(old, (time.time() - 3700, time.time() - 3700))
    kept = spool(tmp_path, delivery())
    assert kept is not None
    os.utime(kept, (0, 0))
    sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([new, kept])
    sweep(tmp_path / "that is not there")


def test_a_count_that_somebody_holds_or_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    make_counter(tmp_path)
    hook._count_refusal(str(tmp_path))
    with (tmp_path / hook.COUNTER).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        found = refusals(tmp_path)
        assert found is not None
        assert found.deliveries == 1
        with pytest.raises(BlockingIOError):
            hook._count_refusal(str(tmp_path))
    hook._count_refusal(str(tmp_path))
    found = refusals(tmp_path)
    assert found is not None
    assert found.deliveries == 2
    (tmp_path / hook.COUNTER).unlink()
    os.mkfifo(tmp_path / hook.COUNTER)
    make_counter(tmp_path)
    assert refusals(tmp_path) is None
