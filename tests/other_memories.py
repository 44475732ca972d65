"""Stores of other tools' memories, as these write them.

claude-mem's and mem0's are what their own code wrote (claude-mem 13.25.3 asked over its API to import, mem0ai 2.2.1's
`SQLiteManager`), less the tables that hold neither notes nor sessions; basic-memory's note is what 0.24's
`tool write-note` wrote. Claude Code's notes follow its documentation and claude-wrapper's account of the files:
no model was there to write any.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

CLAUDE_MEM = """
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL,
memory_session_id TEXT
UNIQUE, project TEXT NOT NULL, platform_source TEXT NOT NULL DEFAULT 'claude', user_prompt TEXT,
started_at TEXT NOT NULL,
started_at_epoch INTEGER NOT NULL, completed_at TEXT, completed_at_epoch INTEGER, status TEXT CHECK(status IN ('active',
'completed', 'failed')) NOT NULL DEFAULT 'active', worker_port INTEGER, prompt_counter INTEGER DEFAULT 0,
custom_title TEXT);
CREATE TABLE "session_summaries" (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL,
project TEXT NOT
NULL, request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT,
files_edited TEXT,
notes TEXT, prompt_number INTEGER, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL, discovery_tokens INTEGER
DEFAULT 0, merged_into_project TEXT, synced_at INTEGER, sync_rev TEXT NOT NULL DEFAULT '1',
FOREIGN KEY(memory_session_id)
REFERENCES sdk_sessions(memory_session_id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE "observations" (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL,
project TEXT NOT NULL,
text TEXT, type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT,
files_modified TEXT, prompt_number INTEGER, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL,
discovery_tokens
INTEGER DEFAULT 0, content_hash TEXT, generated_by_model TEXT, relevance_count INTEGER DEFAULT 0,
merged_into_project TEXT,
metadata TEXT, sync_rev TEXT NOT NULL DEFAULT '1', FOREIGN KEY(memory_session_id)
REFERENCES sdk_sessions(memory_session_id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE "user_prompts" (id INTEGER PRIMARY KEY AUTOINCREMENT, session_db_id INTEGER,
content_session_id TEXT NOT NULL,
prompt_number INTEGER NOT NULL, prompt_text TEXT NOT NULL, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL,
FOREIGN KEY(session_db_id) REFERENCES sdk_sessions(id) ON DELETE CASCADE);
CREATE VIRTUAL TABLE observations_fts USING fts5(title, narrative, content='observations', content_rowid='id');
INSERT INTO sdk_sessions (content_session_id, memory_session_id, project, user_prompt, started_at, started_at_epoch)
VALUES ('11111111-2222-4333-8444-555555555555', 'm-1', 'ledger', 'why are the totals off', '2026-03-01T10:00:00.000Z',
1772359200000);
INSERT INTO observations (memory_session_id, project, type, title, subtitle, facts, narrative, concepts, files_read,
files_modified, prompt_number, created_at, created_at_epoch) VALUES
('m-1', 'ledger', 'bugfix', 'Invoice totals round per line', 'A cent was lost', '["Totals are summed as Decimal"]',
'The invoice totals lost a cent because each line was rounded before the sum was taken.', '["gotcha"]', '[]',
'["ledger/totals.py"]', 1, '2026-03-01T10:05:00.000Z', 1772359500000),
('m-1', 'ledger', 'decision', 'Money is Decimal', NULL,
'["No float holds an amount of money","Amounts are parsed as Decimal"]', NULL, '[]', '[]', '[]', 1,
'2026-03-01T10:06:00.000Z', 1772359560000);
INSERT INTO session_summaries (memory_session_id, project, request, investigated, learned, completed, next_steps,
prompt_number, created_at, created_at_epoch) VALUES
('m-1', 'ledger', 'Find why totals are off', 'totals.py', 'Rounding each line loses up to half a cent a line.',
'Totals are rounded once, after the sum.', 'none', 1, '2026-03-01T10:09:00.000Z', 1772359740000);
INSERT INTO user_prompts (content_session_id, prompt_number, prompt_text, created_at, created_at_epoch) VALUES
('11111111-2222-4333-8444-555555555555', 1, 'why are the invoice totals off by a cent', '2026-03-01T10:00:00.000Z',
1772359200000);
"""

MEM0 = """
CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT, created_at
DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT);
INSERT INTO "history" VALUES('8e6084d6-5364-461c-8eca-e65ba3a5c7bd','a',NULL,'Prefers tabs over spaces in Go code',
'ADD',
'2026-02-01T10:00:00+00:00',NULL,0,NULL,NULL);
INSERT INTO "history" VALUES('f6527a91-9c62-4eab-acd0-dc99e2b00b08','a','Prefers tabs over spaces in Go code',
'Prefers gofmt to any other formatting','UPDATE','2026-02-01T10:00:00+00:00','2026-02-03T10:00:00+00:00',0,NULL,NULL);
INSERT INTO "history" VALUES('db040341-7c34-4735-b17c-74e1af7931fa','b',NULL,'The office printer lives on floor three',
'ADD','2026-02-01T10:00:00+00:00',NULL,0,NULL,NULL);
INSERT INTO "history" VALUES('d321a619-4a6f-4367-987f-e9849ee16abb','b','The office printer lives on floor three',NULL,
'DELETE','2026-02-01T10:00:00+00:00',NULL,1,NULL,NULL);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_scope TEXT, role TEXT, content TEXT, name TEXT,
created_at DATETIME);
INSERT INTO "messages" VALUES('d6e929aa-bf93-45d4-9ab7-8a7361c565da','u=1','user','hello',NULL,'2026-02-01T10:00:00');
"""

BASIC_MEMORY = """---
title: Coffee
type: note
permalink: main/kitchen/coffee
tags:
- brewing
---

# Coffee at the office

The machine is descaled on Fridays.

## Observations
- [method] Pour over gives more clarity than the press #brewing
- [decision] Beans are bought from the roastery in Leith (since May)

## Relations
- relates_to [[Office Rules]]
"""

CLAUDE_INDEX = "# Memory Index\n\n- [Deploys](project_deploys.md) — deploys go out on Tuesdays\n"
CLAUDE_NOTE = """---
name: project-deploys
description: when deploys go out
metadata:
  type: project
---

Deploys go out on Tuesdays, after the nightly run of the suite.
**Why:** the on-call person is in on Wednesdays. See [[release-train]].
"""


def database(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as made:
        made.executescript(script)
    return path


def claude_notes(home: Path, project: Path, *, sessions: bool = True) -> Path:
    """Claude Code's folder of notes on a project, beside a session there."""
    name = "".join(each if each.isascii() and each.isalnum() else "-" for each in str(project))
    folder = home / ".claude" / "projects" / name / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text(CLAUDE_INDEX)
    (folder / "project_deploys.md").write_text(CLAUDE_NOTE)
    os.utime(folder / "project_deploys.md", (1_772_000_000, 1_772_000_000))
    if sessions:
        lines = ({"type": "summary"}, {"type": "user", "cwd": str(project / "src")})
        (folder.parent / "11111111-2222-4333-8444-555555555555.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


def other_memories(home: Path, project: Path) -> Path:
    """A home in which each of the tools keeps something."""
    claude_notes(home, project)
    database(home / ".claude-mem" / "claude-mem.db", CLAUDE_MEM)
    (home / ".claude-mem" / "settings.json").write_text('{"CLAUDE_MEM_MODEL": "haiku"}')
    database(home / ".mem0" / "history.db", MEM0)
    note = home / "notes" / "kitchen" / "Coffee.md"
    note.parent.mkdir(parents=True)
    note.write_text(BASIC_MEMORY)
    settings = home / ".basic-memory" / "config.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"projects": {"main": {"path": str(home / "notes"), "mode": "local"}}}))
    return home
