"""A coding agent that is asked as a model may print anything."""

from __future__ import annotations

import pytest

from memctl.infra.llm.agents import AGENTS, Failed


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("printed", [b"", b"Sign in first\n", b"\xff", b"[" * 100_000, b'{"response": "no json"}'])
def test_what_is_no_answer_is_a_failure(name: str, printed: bytes) -> None:
    with pytest.raises((Failed, ValueError, LookupError)):
        AGENTS[name].read(printed)
