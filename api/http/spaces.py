"""The space that is asked: that of the key, or the one that the owner names; nobody gets an answer from another."""

from collections.abc import Callable, Collection
from typing import Annotated, Any

import msgspec
from fastapi import Header, Request

from memctl.api.client import SPACE
from memctl.api.http.access import caller_of
from memctl.api.reading.caller import IN_DIRECTORY
from memctl.api.reading.reader import Reader, Readers
from memctl.domain.support.errors import MemctlError
from memctl.infra.log.spaces import space_names


class OtherSpace(MemctlError):
    """this memctl answers for the space {own}, and {asked} was asked for"""

    hint = (
        "a key opens its own space alone; `memctl space create` makes one in this database; else let MEMCTL_API_URL or"
        " MEMCTL_DATA_DIR lead to the memctl of that space, or take the space out of MEMCTL_SPACE, .memctl.toml or"
        " config.toml (`memctl config` says where it is set)"
    )
    own: str
    asked: str


def space_asked(readers: Readers, own: str) -> Callable[..., None]:
    """What every route depends on: a caller who names a space means it from here on. Raises: OtherSpace where it is not
    that of the key, or none of the database."""

    def check(request: Request, asked: Annotated[str, Header(alias=SPACE, include_in_schema=False)] = "") -> None:
        caller = caller_of(request)
        mine = caller.space or own
        if not asked or asked == mine:
            return
        known = caller.owner and asked in readers.read(_names, IN_DIRECTORY)
        if not known:
            raise OtherSpace(own=mine, asked=asked[:64])
        request.state.caller = msgspec.structs.replace(caller, space=asked)

    return check


def _names(reader: Reader) -> Collection[str]:
    return space_names(reader.connection).values()


def parameter() -> dict[str, Any]:
    """How the API's description shows it."""
    return {
        "name": SPACE,
        "in": "header",
        "required": False,
        "schema": {"type": "string"},
        "description": "The space that is meant: a key's is its own, the token's any of the database, by default that"
        " of MEMCTL_SPACE. Any other is refused with 421.",
    }
