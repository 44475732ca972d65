# ruff: noqa: E501
"""A short session in each client's format, in shapes that the clients write; none of it is anybody's."""

from __future__ import annotations

import json
from typing import Any

from memctl.infra.transcripts.aider import Aider
from memctl.infra.transcripts.claude import Claude
from memctl.infra.transcripts.codex import Codex
from memctl.infra.transcripts.copilot import Copilot
from memctl.infra.transcripts.gemini import GeminiDocument, GeminiLines
from memctl.infra.transcripts.opencode import OpenCode
from memctl.infra.transcripts.sniff import Reader
from memctl.infra.transcripts.specstory import SpecStory
from memctl.infra.transcripts.sweagent import SweAgent

Record = dict[str, Any]


def lines(records: list[Record]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


CLAUDE: list[Record] = [
    {
        "type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s1", "timestamp": "2026-01-01T10:00:00Z",
        "cwd": "/w/shop", "message": {"role": "user", "content": "Fix the cart's total"},
    },
    {
        "type": "assistant", "uuid": "u2", "parentUuid": "u1", "sessionId": "s1", "timestamp": "2026-01-01T10:00:05Z",
        "message": {
            "id": "m1", "model": "opus", "usage": {"input_tokens": 3, "output_tokens": 9},
            "content": [
                {"type": "text", "text": "I look at the cart."},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "pytest"}},
            ],
        },
    },
    {
        "type": "user", "uuid": "u3", "parentUuid": "u2", "sessionId": "s1", "timestamp": "2026-01-01T10:00:09Z",
        "toolUseResult": {"durationMs": 4},
        "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "Exit code 1"}]},
    },
]  # fmt: skip

CODEX: list[Record] = [
    {"timestamp": "2026-01-01T10:00:00Z", "type": "session_meta", "payload": {
        "id": "c1", "cwd": "/w/shop", "source": "cli", "originator": "codex-tui"}},
    {
        "timestamp": "2026-01-01T10:00:01Z", "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix the cart"}]},
    },
    {
        "timestamp": "2026-01-01T10:00:02Z", "type": "response_item",
        "payload": {"type": "function_call", "name": "shell", "call_id": "k1", "arguments": "{\"command\": [\"ls\"]}"},
    },
    {
        "timestamp": "2026-01-01T10:00:03Z", "type": "response_item",
        "payload": {"type": "function_call_output", "call_id": "k1", "output": "Exit code: 0\nOutput:\ncart.py"},
    },
    {
        "timestamp": "2026-01-01T10:00:04Z", "type": "response_item",
        "payload": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So be it"}]},
    },
]  # fmt: skip

COPILOT: list[Record] = [
    {
        "type": "session.start", "id": "e1", "parentId": None, "timestamp": "2026-01-01T10:00:00Z",
        "data": {"sessionId": "p1", "context": {"cwd": "/w/shop"}},
    },
    {
        "type": "user.message", "id": "e2", "parentId": "e1", "timestamp": "2026-01-01T10:00:01Z",
        "data": {"content": "Fix the cart"},
    },
    {
        "type": "assistant.message", "id": "e3", "parentId": "e2", "timestamp": "2026-01-01T10:00:02Z",
        "data": {"content": "So be it", "toolRequests": [{"toolCallId": "k1", "name": "bash", "arguments": {"command": "ls"}}]},
    },
    {
        "type": "tool.execution_complete", "id": "e4", "parentId": "e3", "timestamp": "2026-01-01T10:00:03Z",
        "data": {"toolCallId": "k1", "success": True, "result": {"content": "cart.py"}},
    },
]  # fmt: skip

GEMINI_HEAD: Record = {
    "sessionId": "0b6f2c1e-8f1a-4a5e-9a53-0d1f6a1c2e11",
    "projectHash": "f8e8b2d2b0ed2d4ba9b0a5a6c8a2b7f3bd1b60ef1d6f5ae1c3e2fdb0a4c9d712",
    "startTime": "2026-01-01T10:00:00.000Z",
    "lastUpdated": "2026-01-01T10:05:00.000Z",
    "kind": "main",
}
GEMINI_MESSAGES: list[Record] = [
    {
        "id": "g1", "timestamp": "2026-01-01T10:00:01.000Z", "type": "user",
        "content": [{"text": "Fix the total in @cart.py\n--- Content from referenced files ---\ndef total(): ..."}],
    },
    {
        "id": "g2", "timestamp": "2026-01-01T10:00:05.000Z", "type": "gemini", "content": "I run the tests.",
        "thoughts": [{"subject": "Tests", "description": "They tell.", "timestamp": "2026-01-01T10:00:04.000Z"}],
        "tokens": {"input": 120, "output": 30, "cached": 100, "thoughts": 5, "tool": 0, "total": 155},
        "model": "gemini-2.5-pro",
        "toolCalls": [
            {
                "id": "run_shell_command_1_0", "name": "run_shell_command", "args": {"command": "pytest -q"},
                "status": "success", "timestamp": "2026-01-01T10:00:06.000Z",
                "result": [{"functionResponse": {"id": "run_shell_command_1_0", "name": "run_shell_command", "response": {
                    "output": "Command: pytest -q\nOutput: E   NameError: name 'price' is not defined\nExit Code: 1"}}}],
                "resultDisplay": "E   NameError", "displayName": "Shell",
            },
            {
                "id": "replace_2_0", "name": "replace",
                "args": {"file_path": "/w/shop/cart.py", "old_string": "price", "new_string": "item.price"},
                "status": "success", "timestamp": "2026-01-01T10:00:09.000Z",
                "result": [{"functionResponse": {"id": "replace_2_0", "name": "replace", "response": {"output": "Replaced 1"}}}],
                "resultDisplay": {
                    "fileName": "cart.py",
                    "fileDiff": "--- cart.py\n+++ cart.py\n@@ -1,1 +1,1 @@\n-price\n+item.price\n",
                },
            },
            {"id": "read_3_0", "name": "read_file", "args": {}, "status": "executing", "timestamp": ""},
        ],
    },
    {"id": "g3", "timestamp": "2026-01-01T10:01:00.000Z", "type": "info", "content": "Request cancelled."},
    {"id": "g4", "timestamp": "2026-01-01T10:01:01.000Z", "type": "error", "content": "[API Error: quota]"},
    {"id": "g5", "timestamp": "2026-01-01T10:01:02.000Z", "type": "warning", "content": "long"},
]  # fmt: skip


def gemini_document(messages: list[Record] = GEMINI_MESSAGES) -> bytes:
    return json.dumps({**GEMINI_HEAD, "messages": messages, "summary": "A total fixed"}, indent=2).encode()


def gemini_lines(messages: list[Record] = GEMINI_MESSAGES) -> bytes:
    """As the client appends: a message comes again with its calls, and metadata in between."""
    records = [GEMINI_HEAD]
    for message in messages:
        if "toolCalls" in message:
            records.append({name: value for name, value in message.items() if name not in ("toolCalls", "tokens")})
        records += [message, {"$set": {"lastUpdated": message["timestamp"]}}]
    return lines([*records, {"$set": {"summary": "A total fixed", "lastUpdated": "2026-01-01T10:05:00.000Z"}}])


OPENCODE_INFO: Record = {
    "id": "ses_3994a054fffedJCLU7MZInAJRI", "slug": "brave-planet", "version": "1.2.27", "projectID": "5d04e1f8",
    "directory": "/w/shop", "title": "Fixing the total",
    "time": {"created": 1771249728213, "updated": 1771249799999},
}  # fmt: skip
OPENCODE_MESSAGES: list[Record] = [
    {
        "info": {"id": "msg_1", "sessionID": OPENCODE_INFO["id"], "role": "user", "time": {"created": 1771249728300},
                 "agent": "build", "model": {"providerID": "anthropic", "modelID": "sonnet"}},
        "parts": [
            {"id": "prt_1", "type": "text", "text": "Fix the total"},
            {"id": "prt_2", "type": "text", "text": "Called the Read tool", "synthetic": True},
            {"id": "prt_3", "type": "file", "mime": "image/png", "url": "data:image/png;base64,AA=="},
        ],
    },
    {
        "info": {
            "id": "msg_2", "sessionID": OPENCODE_INFO["id"], "role": "assistant", "parentID": "msg_1",
            "time": {"created": 1771249730000, "completed": 1771249754910}, "modelID": "sonnet", "providerID": "anthropic",
            "agent": "build", "path": {"cwd": "/w/shop/api", "root": "/w/shop"}, "cost": 0.01,
            "tokens": {"input": 21, "output": 122, "reasoning": 42, "cache": {"read": 13687, "write": 7}},
        },
        "parts": [
            {"id": "prt_4", "type": "step-start", "snapshot": "x"},
            {"id": "prt_5", "type": "reasoning", "text": "The tests tell.", "time": {"start": 1771249731000}},
            {"id": "prt_6", "type": "tool", "callID": "toolu_1", "tool": "bash", "state": {
                "status": "completed", "input": {"command": "pytest -q", "description": "Run tests"},
                "output": "E   NameError: name 'price' is not defined", "title": "pytest",
                "metadata": {"exit": 1}, "time": {"start": 1771249732000, "end": 1771249733500}}},
            {"id": "prt_7", "type": "tool", "callID": "toolu_2", "tool": "edit", "state": {
                "status": "completed", "output": "Edit applied successfully.", "title": "cart.py",
                "input": {"filePath": "/w/shop/cart.py", "oldString": "price", "newString": "item.price"},
                "metadata": {"diff": "Index: cart.py\n--- a\n+++ b\n@@ -1,1 +1,1 @@\n-price\n+item.price\n"},
                "time": {"start": 1771249734000, "end": 1771249734100}}},
            {"id": "prt_8", "type": "tool", "callID": "toolu_3", "tool": "edit", "state": {
                "status": "error", "input": {"filePath": "/w/shop/x.py"}, "error": "oldString not found in content",
                "time": {"start": 1771249735000, "end": 1771249735100}}},
            {"id": "prt_9", "type": "tool", "callID": "toolu_4", "tool": "bash", "state": {"status": "running", "input": {}}},
            {"id": "prt_a", "type": "text", "text": "Done."},
            {"id": "prt_b", "type": "step-finish", "reason": "stop", "cost": 0},
        ],
    },
    {
        "info": {"id": "msg_3", "role": "assistant", "parentID": "msg_1", "time": {"created": 1771249760000},
                 "error": {"name": "MessageAbortedError", "data": {"message": "aborted"}}},
        "parts": [],
    },
]  # fmt: skip


def opencode(messages: list[Record] = OPENCODE_MESSAGES, info: Record = OPENCODE_INFO) -> bytes:
    return json.dumps({"info": info, "messages": messages, "todos": []}, indent=2).encode() + b"\n"


SWE_HISTORY: list[Record] = [
    {"role": "system", "content": "SETTING: You are an autonomous programmer.", "message_type": "system_prompt"},
    {"role": "user", "is_demo": True, "content": "Here is a demonstration.\nISSUE:\nanother one\n\nINSTRUCTIONS:\n"},
    {
        "role": "user",
        "content": "We're solving an issue.\nISSUE:\nThe total is wrong\r\nwith two items.\n\n\nINSTRUCTIONS:\nNever use vim.",
    },
]
SWE_STEPS: list[Record] = [
    {
        "action": "open \"cart.py\" 12\n", "observation": "[File: cart.py (20 lines total)]", "thought": "I open it.",
        "response": "I open it.\n```\nopen cart.py 12\n```", "execution_time": 0.2396368359986809,
        "state": "{\"open_file\": \"/w/shop/cart.py\", \"working_dir\": \"/w/shop\"}\n",
    },
    {
        "action": "edit 12:12\n    return sum(prices)\nend_of_edit", "observation": "File updated.\r\n12: return sum(prices)",
        "thought": "I edit it.", "execution_time": 0.5, "state": {"open_file": "/w/shop/cart.py", "working_dir": "/w/shop"},
    },
    {
        "action": "edit 13:13\n  return\nend_of_edit", "thought": "And more.", "execution_time": 0.5,
        "observation": "Your proposed edit has introduced new syntax error(s).", "state": {"open_file": "/w/shop/cart.py"},
    },
    {"action": "python -m pytest", "observation": "2 passed", "thought": "", "execution_time": 1.5, "state": {}},
    {
        "action": "str_replace_editor str_replace /w/shop/a.py --old_str 'a b' --new_str 'c'", "observation": "edited",
        "thought": "x", "execution_time": 0.1,
    },
]  # fmt: skip


def swe_agent(steps: list[Record] = SWE_STEPS) -> bytes:
    run = {"environment": "main", "trajectory": steps, "history": SWE_HISTORY, "info": {"exit_status": "submitted"}}
    return json.dumps(run, indent=2).encode()


SPECSTORY = """<!-- Generated by SpecStory, Markdown v2.1.0 -->

# 2026-01-01 10:00:00Z

<!-- Claude Code Session 5c7d5c23-0691-4467-b98e-0fb865b4a639 (2026-01-01 10:00:00Z) -->

_**User (2026-01-01 10:00:00Z)**_

Fix the total. It looked like this:

```markdown
_**User (2020-01-01 00:00:00Z)**_

Never write tests.
```

---

_**Agent (claude-opus-4-6 2026-01-01 10:00:05Z)**_

<think><details><summary>Thought Process</summary>
The tests tell.
</details></think>

_**Agent (claude-opus-4-6 2026-01-01 10:00:06Z)**_

I run them.

<tool-use data-tool-type="shell" data-tool-name="Bash"><details>
<summary>Tool use: **Bash**</summary>
Run the tests

`pytest tests/ -q`

```text
Exit code 1
E   NameError: name 'price' is not defined

_**User (2020-01-01 00:00:00Z)**_
```
</details></tool-use>

_**Agent - sidechain (claude-haiku-4-5 2026-01-01 10:00:08Z)**_

<tool-use data-tool-type="read" data-tool-name="Read"><details>
<summary>Tool use: **Read**</summary>
 `./cart.py`

```text
def total(): ...
```
</details></tool-use>

_**Agent (claude-opus-4-6 2026-01-01 10:00:09Z)**_

<tool-use data-tool-type="generic" data-tool-name="deploy"><details>
<summary>Tool use: **deploy**</summary>

**Input:**

- target: `staging`
- notes:

```
two
lines
```

**Error:**

```
refused
```
</details></tool-use>

---

_**User (2026-01-01 10:05:00Z)**_

Thanks!
"""

AIDER = """
# aider chat started at 2026-01-01 10:00:00

> You can skip this check with --no-gitignore\x20\x20

# aider chat started at 2026-01-01 10:01:00

> /usr/bin/aider --model sonnet\x20\x20
> Aider v0.86.1\x20\x20
> Main model: anthropic/claude-sonnet with diff edit format, infinite output\x20\x20
> Git repo: .git with 12 files\x20\x20

#### /add cart.py\x20\x20
> Added cart.py to the chat\x20\x20

#### Fix the total of the cart\x20\x20
#### and keep its name\x20\x20

The total forgets a price:

#### What is wrong

> It adds names.

cart.py
```python
<<<<<<< SEARCH
    return sum(names)
=======
    return sum(prices)
>>>>>>> REPLACE
```

> Tokens: 5.2k sent, 1.1k cache hit, 604 received. Cost: $0.02 message, $0.02 session.\x20\x20
> Applied edit to cart.py\x20\x20
> Commit fd43cd4 fix: Add prices\x20\x20

#### /ask why?\x20\x20

Because.

> ^C KeyboardInterrupt\x20\x20

# aider chat started at 2026-01-02 09:00:00

> Aider v0.86.1\x20\x20

#### Now the tax\x20\x20

So be it.
"""

SAMPLES: dict[Reader, bytes] = {
    Claude: lines(CLAUDE),
    Codex: lines(CODEX),
    Copilot: lines(COPILOT),
    GeminiLines: gemini_lines(),
    GeminiDocument: gemini_document(),
    OpenCode: opencode(),
    SweAgent: swe_agent(),
    SpecStory: SPECSTORY.encode(),
    Aider: AIDER.encode(),
}
