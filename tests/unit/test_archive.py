"""A backup that is damaged anywhere is refused in words."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from memctl.infra.backup import archive


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_manifest_damaged_at_any_byte_is_refused_in_words_or_read(tmp_path: Path, method: int) -> None:
    file = tmp_path / "a.memctl.zip"
    told = '{"format": 1, "schema": "0010", "made_at": "2026-03-02", "position": 1, "tables": {}}'
    with zipfile.ZipFile(file, "w", method) as made:
        made.writestr("manifest.json", told)
    content = file.read_bytes()
    refused = 0
    for at in range(len(content)):
        for flipped in (0x01, 0x80, 0xFF):
            file.write_bytes(content[:at] + bytes([content[at] ^ flipped]) + content[at + 1 :])
            try:
                archive.read_manifest(file)
            except archive.BadBackup:
                refused += 1
    assert refused > 20
