"""Whose word is heard, what is sealed, and what of a data directory forgetting walks: real processes throughout."""

from __future__ import annotations

import stat
from pathlib import Path

import psycopg
import pyrage
from commandline import Memctl

from memctl.infra.backup.sealed import plain_in
from memctl.infra.transcripts.files import EXAMPLE
from memctl.workers.erasure.erasure_register import UNKNOWN, files_of

KEPT = "the bq3jhy54nd lantern protocol"


def test_every_file_of_a_data_directory_is_in_the_register_that_forgetting_walks(memctl: Memctl) -> None:
    memctl("off", "--project", str(memctl.home))
    memctl("on", "--project", str(memctl.home))
    memctl("ingest", "--example", "--wait")
    memctl("note", f"We rely on {KEPT} everywhere.")
    memctl("backup")
    found = {str(path.relative_to(memctl.data)): place for place, path in files_of(memctl.data)}
    assert len(found) > 5
    assert [name for name, place in found.items() if place is UNKNOWN] == []


def test_the_receipt_names_backups_that_were_made_before(memctl: Memctl) -> None:
    memctl("note", "We rely on the mk4rwp81ys quay protocol everywhere.")
    done = memctl.json("forget", "--match", "the mk4rwp81ys quay protocol", "--yes")
    assert any("1 backup in" in each and "made before" in each for each in done["stays"])


def test_what_is_sealed_is_opened_by_its_key_alone(memctl: Memctl, tmp_path: Path) -> None:
    key, other = pyrage.x25519.Identity.generate(), pyrage.x25519.Identity.generate()
    (tmp_path / "key").write_text(f"# created for a test\n{key}\n")
    (tmp_path / "other").write_text(f"{other}\n")
    made = memctl.json("backup", str(tmp_path / "disk"), "--to", str(key.to_public()))
    sealed = Path(made["file"])
    assert stat.S_IMODE(sealed.stat().st_mode) == 0o600
    assert [each.name for each in sealed.parent.iterdir()] == [sealed.name]
    assert sealed.read_bytes().startswith(b"age-encryption.org/v1")
    memctl("backup", "--check", str(sealed), code=2)
    memctl("backup", "--check", str(sealed), "--identity", str(tmp_path / "other"), code=2)
    assert "is not opened by" in memctl.said
    assert "sound" in memctl("backup", "--check", str(sealed), "--identity", str(tmp_path / "key"))
    memctl("export", str(tmp_path / "log.jsonl.age"), "--to", str(key.to_public()))
    assert KEPT.encode() not in (tmp_path / "log.jsonl.age").read_bytes()
    memctl("import", str(tmp_path / "log.jsonl.age"), "--mine", "--identity", str(tmp_path / "key"))
    memctl("backup", str(tmp_path), "--to", "age1nobody", code=2)
    assert not list(memctl.data.glob("unsealed-*"))


def test_a_plain_backup_that_a_crash_left_is_named_by_doctor_and_gone_with_the_next_forgetting(memctl: Memctl) -> None:
    memctl("note", "We rely on the hx2rwp93ka mole protocol everywhere.")
    left = memctl.data / "unsealed-crashed"
    left.mkdir()
    memctl("backup", str(left))
    assert f"{left} holds a plain backup that was left behind" in memctl("doctor", code=1)
    with plain_in(memctl.data) as held:
        done = memctl.json("forget", "--match", "the hx2rwp93ka mole protocol", "--yes")
        assert any(str(held) in each for each in done["stays"])
    assert not left.exists()
    left.mkdir()
    memctl("up")
    assert not left.exists()


def test_in_an_agents_shell_and_without_a_terminal_nobody_speaks_for_the_user(memctl: Memctl, tmp_path: Path) -> None:
    forged = tmp_path / "somebodys.jsonl"
    forged.write_bytes(EXAMPLE.read_bytes())
    memctl("note", "Boats are moored at the third quay.", at_a_terminal=False)
    memctl("note", "Boats are painted in the spring.")
    memctl.environment["CLAUDECODE"] = "1"
    try:
        memctl("note", "Boats are sold to strangers.")
        memctl("forget", "--match", "painted in the spring", "--yes", code=2)
        assert "a person forgets" in memctl.said.lower()
        memctl("keys", "add", "friend", code=2)
        memctl("reset", "--confirm", code=2)
        memctl("restore", code=2)
        memctl("prune", "--older-than", "1", "--yes", code=2)
        memctl("ingest", str(forged), code=2)
        assert "says whose sessions these are" in memctl.said
        kept = memctl.home / ".claude" / "projects" / "boats"
        kept.mkdir(parents=True)
        memctl("ingest", str(forged.rename(kept / "a.jsonl")), "--wait")
    finally:
        del memctl.environment["CLAUDECODE"]
    with psycopg.connect(memctl.database_url) as connection:
        said = connection.execute(
            "SELECT actor FROM memctl.events WHERE payload->>'text' LIKE 'Boats %' ORDER BY position"
        ).fetchall()
    assert [actor for (actor,) in said] == ["agent", "user", "agent"]
