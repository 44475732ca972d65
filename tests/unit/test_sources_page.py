"""docs/sources.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from memctl.infra.legacy.meaning import TABLES
from memctl.infra.transcripts import files
from memctl.infra.transcripts.sniff import READERS

PAGE = (Path(__file__).parents[2] / "docs" / "sources.md").read_text()


def test_the_page_names_every_client_and_no_other() -> None:
    named = re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    assert named[0] == "--agent"
    assert sorted(named[1:]) == sorted({reader.agent for reader in READERS})


def test_the_page_names_every_suffix_table_and_variable() -> None:
    for word in (*files._SUFFIXES, *TABLES, "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
        assert f"`{word}`" in PAGE or f"`{word}" in PAGE, word
