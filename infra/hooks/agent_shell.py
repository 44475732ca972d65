"""Whether a person speaks on the command line, or an agent that runs commands in a shell."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any, Literal

from memctl.domain.support.errors import MemctlError
from memctl.infra.hook import ENTRYPOINT_VARIABLE, SHELL_VARIABLES

AGENTS_VARIABLES = (*SHELL_VARIABLES, ENTRYPOINT_VARIABLE)
"""What coding agents set in the shells in which they run commands."""


def in_agents_shell(environment: Mapping[str, str] | None = None) -> bool:
    """Whether the environment is that of an agent's shell."""
    variables = os.environ if environment is None else environment
    return any(variables.get(name) for name in AGENTS_VARIABLES)


class NotByAgents(MemctlError):
    """A person {does}; this is the shell of a coding agent."""

    exit_code = 2
    hint = "run it in a terminal of your own; an agent asks for a deletion over MCP, and `memctl waiting` lists it"
    does: str


def only_a_person(does: str) -> None:
    """Refuse in an agent's shell what decides whose memory this is, or takes from it: an agent does what it has read.

    `does` is what a person does, in the third person. Raises: NotByAgents.
    """
    if in_agents_shell():
        raise NotByAgents(does=does)


def speaker(
    environment: Mapping[str, str] | None = None, streams: Sequence[IO[Any] | None] | None = None
) -> Literal["user", "agent"]:
    """Who speaks: a person has a terminal at one of the standard streams, and no agent's shell around it."""
    given = (sys.stdin, sys.stdout, sys.stderr) if streams is None else streams
    at_a_terminal = any(stream is not None and not stream.closed and stream.isatty() for stream in given)
    return "user" if at_a_terminal and not in_agents_shell(environment) else "agent"
