"""Where the sockets of an instance lie whose path is too long for one."""

from __future__ import annotations

from pathlib import Path

from memctl.infra.data_dir import make_socket_folder, socket_folder


def test_sockets_find_another_folder_where_somebody_took_their_name(tmp_path: Path) -> None:
    beside = tmp_path / ("long" * 30)
    beside.mkdir()
    taken = socket_folder(beside)
    taken.symlink_to(tmp_path)  # what everyone may make in a folder that everyone may write to
    try:
        made = make_socket_folder(beside)
        assert made not in (taken, beside / "sockets")
        assert made.stat().st_mode & 0o777 == 0o700
        assert socket_folder(beside) == make_socket_folder(beside) == made
        made.rmdir()
        made.symlink_to(tmp_path)
        again = make_socket_folder(beside)
        assert again == socket_folder(beside) != made
        again.rmdir()
        made.unlink()
    finally:
        taken.unlink()
