"""The space that an API answers for. A request that names another space gets an error, and no answer from this one."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Header

from memctl.api.client import SPACE
from memctl.domain.support.errors import MemctlError


class OtherSpace(MemctlError):
    """this memctl answers for the space {own}, and {asked} was asked for"""

    hint = (
        "let MEMCTL_API_URL or MEMCTL_DATA_DIR lead to the memctl of that space, or take the space out of MEMCTL_SPACE,"
        " .memctl.toml or config.toml (`memctl config` says where it is set)"
    )
    own: str
    asked: str


def own_space(own: str) -> Callable[..., None]:
    """What every route depends on: that the space is its own, where the caller names one. Raises: OtherSpace."""

    def check(asked: Annotated[str, Header(alias=SPACE, include_in_schema=False)] = "") -> None:
        if asked and asked != own:
            raise OtherSpace(own=own, asked=asked[:64])

    return check


def parameter(own: str) -> dict[str, Any]:
    """How the API's description shows it."""
    return {
        "name": SPACE,
        "in": "header",
        "required": False,
        "schema": {"type": "string", "enum": [own]},
        "description": "The space that is meant; refused with 421 where it is another than this API answers for.",
    }
