"""What is said on the command line is the user's where a person types, and an agent's where an agent runs commands."""

from __future__ import annotations

import os

import pytest
from commandline import terminal

from memctl.infra.hooks.agent_shell import AGENTS_VARIABLES, in_agents_shell, speaker


def test_a_person_has_a_terminal_at_any_of_the_streams() -> None:
    with terminal() as typed, os.fdopen(os.dup(typed), "rb", buffering=0) as typing, open(os.devnull) as nothing:
        assert speaker({}, [typing, nothing, nothing]) == "user"
        assert speaker({}, [nothing, None, typing]) == "user"
        assert speaker({}, [nothing, None, nothing]) == "agent"


@pytest.mark.parametrize("name", AGENTS_VARIABLES)
def test_in_an_agents_shell_nobody_types_though_there_is_a_terminal(name: str) -> None:
    with terminal() as typed, os.fdopen(os.dup(typed), "rb", buffering=0) as typing:
        assert speaker({name: "1"}, [typing]) == "agent"
        assert speaker({name: ""}, [typing]) == "user"
    assert in_agents_shell({name: "1"})
    assert not in_agents_shell({"PATH": "/bin"})
