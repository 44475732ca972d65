"""Hostile inputs made of honest ones: cut, spliced, repeated, and with values that break careless programs.

`Mangler` draws every choice from one seed, so that an input which broke something can be made again.
"""

from __future__ import annotations

import copy
import json
import os
import random
from typing import Any

COUNT = int(os.environ.get("MEMCTL_TEST_FUZZ", "120"))
"""Inputs for each kind of target; `make fuzz` tries more."""

SEED = int(os.environ.get("MEMCTL_TEST_FUZZ_SEED", "7"))

BYTES = (
    b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\r\n\r\n", b"\x1b]0;owned\x07", b"\xe2\x80\xae",
    b'\\u0000', b'\\ud800', b"{" * 3000, b"[" * 3000, b'"' * 99, b"\\" * 999, b"1e999999", b"-0", b"NaN",
    b"9" * 5000, b"'; DROP TABLE memctl.events; --", b"%s%n%(x)s{0}", b"../../../../etc/passwd", b"<private>",
    b"</script><script>alert(1)</script>", b"\n" * 500, b"```\n" * 50, b"# aider chat started at 2026-99-99 99:99:99\n",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, -(2**63) - 1, 10**400, 1.5, 1e308, "", " ", "\0", "a\0b", "\ud800", "\u202e",
    "x" * 70_000,
    [], {}, [[]], {"": ""}, [None] * 50, {"a": {"b": {"c": []}}}, "../../../etc/passwd", "/", "~root/.ssh/id_rsa",
    "'; DROP TABLE memctl.events; --", "%00", "${jndi:ldap://x}", "{{7*7}}", "$(touch /tmp/owned)", "-rf", "--help",
    "<img src=x onerror=alert(1)>", "\x1b[2J", "session/claude-code/other", "a/b/c", ":", "core/1",
    "9999-99-99T99:99:99Z",
    "0001-01-01T00:00:00Z", "2026-01-01T00:00:00+99:99", "١٢٣", "ﬀ" * 300, "-----BEGIN PRIVATE KEY-----", "<private>",
)  # fmt: skip

HOOKS: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup", "model": "m"},
    "UserPromptSubmit": {"prompt": "Please fix the failing test. I always prefer short answers."},
    "PostToolUse": {
        "tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "pytest -q", "timeout": 60},
        "tool_response": {"stdout": "1 failed", "stderr": "", "interrupted": False, "exitCode": 1},
    },
    "PostToolUseFailure": {
        "tool_name": "Edit", "tool_use_id": "t2", "error": "TypeError: no",
        "tool_input": {"file_path": "/w/a.py", "old_string": "a", "new_string": "b"},
    },
    "Stop": {
        "last_assistant_message": "All tests pass.", "stop_hook_active": False,
        "messages": [{"role": "user", "content": "fix it"}, {"role": "assistant", "content": [{"text": "done"}]}],
    },
    "SubagentStop": {"agent_id": "a1", "agent_type": "explorer", "last_assistant_message": "Nothing found."},
    "PreCompact": {"trigger": "auto", "custom_instructions": "", "transcript_path": "/w/t.jsonl"},
    "Notification": {"message": "waiting"},
    "SessionEnd": {"reason": "exit"},
}  # fmt: skip
"""Payloads of each kind, without what all of them hold."""


def hook(name: str) -> dict[str, Any]:
    return {"hook_event_name": name, "session_id": "s1", "cwd": "/w/shop", "permission_mode": "default", **HOOKS[name]}


def nested(depth: int) -> Any:
    value: Any = "end"
    for number in range(depth):
        value = {"k": value} if number % 2 else [value]
    return value


class Mangler:
    """Inputs from samples. Every choice is drawn from the seed."""

    def __init__(self, seed: int = SEED) -> None:
        self.rng = random.Random(seed)

    def bytes(self, sample: bytes, other: bytes = b"") -> bytes:
        """A sample with one to four things done to its bytes, perhaps with a piece of another one."""
        data = bytearray(sample)
        for _ in range(self.rng.randint(1, 4)):
            at = self.rng.randint(0, len(data))
            end = min(len(data), at + self.rng.choice((1, 7, 60, 1000)))
            match self.rng.randrange(6):
                case 0:
                    del data[at:end]
                case 1:
                    data[at:at] = self.rng.choice(BYTES)
                case 2:
                    data[at:end] = self.rng.randbytes(end - at)
                case 3:
                    data[at:at] = data[at:end] * self.rng.choice((2, 30))
                case 4:
                    data[at:at] = other[self.rng.randint(0, len(other)) :][:2000]
                case _:
                    del data[at:]
        return bytes(data)

    def value(self, sample: Any) -> Any:
        """A JSON value with one to three of its parts replaced, renamed or left out."""
        found = json.loads(json.dumps(sample))
        for _ in range(self.rng.randint(1, 3)):
            found = self._changed(found)
        return found

    def json(self, sample: Any) -> bytes:
        """`value` as bytes; lone surrogates and NUL are escaped, as JSON has them."""
        return json.dumps(self.value(sample), ensure_ascii=self.rng.random() < 0.5).encode("utf-8", "surrogatepass")

    def lines(self, data: bytes, other: bytes = b"") -> bytes:
        """JSON lines with some records changed, others lost, doubled or in another order; or just their bytes."""
        rows = data.splitlines()
        if self.rng.random() < 0.3 or not all(row[:1] == b"{" for row in rows):
            return self.bytes(data, other)
        for _ in range(self.rng.randint(1, 3)):
            at = self.rng.randrange(len(rows))
            match self.rng.randrange(5):
                case 0:
                    rows.insert(self.rng.randrange(len(rows)), rows[at])
                case 1 if len(rows) > 1:
                    rows[at], rows[-1] = rows[-1], rows[at]
                case _:
                    rows[at] = self.json(json.loads(rows[at])) if rows[at][:1] == b"{" else rows[at]
        return b"\n".join(rows) + b"\n"

    def _changed(self, value: Any) -> Any:
        rng = self.rng
        if isinstance(value, dict) and value and rng.random() < 0.85:
            name = rng.choice(list(value))
            match rng.randrange(8):
                case 0:
                    del value[name]
                case 1:
                    value[str(rng.choice(VALUES))[:5000]] = value.pop(name)
                case _:
                    value[name] = self._changed(value[name])
            return value
        if isinstance(value, list) and value and rng.random() < 0.85:
            at = rng.randrange(len(value))
            value[at] = self._changed(value[at])
            return value
        return nested(rng.choice((40, 400))) if rng.random() < 0.05 else copy.deepcopy(rng.choice(VALUES))
