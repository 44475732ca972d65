"""What is said on the command line is the user's where a person types, and an agent's where an agent runs commands."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from commandline import terminal

from memctl.cli.main import memctl as program
from memctl.infra.hooks.agent_shell import AGENTS_VARIABLES, NotByAgents, in_agents_shell, speaker


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


@pytest.mark.parametrize(
    "command",
    [
        "redact", "off", "off --recall", "on", "off --project .", "view", "view --no-open",
        "dlq drop 1 --reason x --yes", "forget --match quartz --yes", "prune --older-than 9 --yes",
        "restore", "reset --confirm", "keys add friend", "keys revoke friend",
    ],
)  # fmt: skip
def test_an_agents_shell_takes_nothing_from_memory_and_signs_nobody_in(tmp_path: Path, command: str) -> None:
    environment = {"MEMCTL_DATA_DIR": str(tmp_path / "memory"), "HOME": str(tmp_path), "CLAUDECODE": "1"}
    done = CliRunner(env=environment).invoke(program, shlex.split(command))
    assert isinstance(done.exception, NotByAgents)
    assert not (tmp_path / "memory").exists()


def test_an_agents_shell_reads_nothing_that_was_said_while_saving_was_off(tmp_path: Path) -> None:
    environment = {"MEMCTL_DATA_DIR": str(tmp_path / "memory"), "HOME": str(tmp_path), "CLAUDECODE": "1"}
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    done = CliRunner(env=environment).invoke(program, ["ingest", "--again"])
    assert isinstance(done.exception, NotByAgents)
