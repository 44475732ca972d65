"""How the relay of this machine stands: its process, what waits in its spool, and what the API makes of its key."""

import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from memctl.api.checks.check import Check, check, skipped
from memctl.api.client import Client, Refused, Unreachable
from memctl.api.reading.caller import Caller
from memctl.domain.support.wording import number
from memctl.infra.hooks.remote_progress import RelaySeen
from memctl.infra.settings_model import Settings

PART = "relay"
PATIENCE_S = 5.0
NEEDS = {"ingest": "nothing that is recorded here reaches the team", "read": "hooks that ask get no answer"}
"""Scopes of a relay's key, and what is missing without each."""

_KEY_ADVICE = "have a new key made (`memctl keys add`), and put it into the file that api_token_file names"
_ALONE = "the relay goes on by itself once it answers"


def relay(settings: Settings, found: RelaySeen) -> Iterator[Check]:
    """Raises: SettingsInvalid, NotRunning where no API is named."""
    standing = found.standing
    yield check(
        PART, "process", "running" if found.running else "down",
        [] if found.running else ["what hooks tell waits on this disk"],
        advice="start it with `memctl relay`, or let a supervisor do so",
    )  # fmt: skip
    stuck = [standing.why] if found.refused else []
    waits = f"{number(found.waiting, 'delivery', 'deliveries')} to be sent"
    since = f"{standing.events:,} events taken since it started"
    if standing.left_out:
        since += f", {standing.left_out:,} left out of projects that the key is not for, or of sessions of others"
    yield check(PART, "spool", f"{waits}, {since}", stuck,
                advice="nothing is lost: they are sent once that is mended")  # fmt: skip
    yield from _api(settings)


def _api(settings: Settings) -> Iterator[Check]:
    """The team's API, asked with the key that the relay uses."""
    url = settings.require("api_url")
    began = time.monotonic()
    try:
        with Client(url, settings.api_token or "", patience_s=PATIENCE_S, space=settings.space_meant) as client:
            caller = client.read("/v1/caller", Caller).value
    except (Unreachable, Refused) as why:
        refuses = isinstance(why, Refused) and why.status in (401, 403)
        yield check(
            PART, "api", f"{urlsplit(url).hostname} [{settings.origin('api_url')}]",
            ["it refuses this machine's key" if refuses else " ".join(str(why).split())],
            advice=_KEY_ADVICE if refuses else (isinstance(why, Refused) and why.hint) or _ALONE,
        )  # fmt: skip
        yield skipped(PART, "key", "what it may do is for the API to say")
        return
    took = f"{urlsplit(url).hostname}, answered in {(time.monotonic() - began) * 1000:.0f} ms"
    yield check(PART, "api", f"{took} [{settings.origin('api_url')}]")
    scopes = caller.scopes
    missing = [f"it has no scope {scope}: {what}" for scope, what in NEEDS.items() if scope not in scopes]
    projects = caller.projects
    bound = "" if projects is None else f", for {number(len(projects), 'project')}"
    yield check(
        PART, "key", f"may {', '.join(sorted(scopes))}{bound}", missing,
        advice="have one made with `memctl keys add NAME --scope ingest --scope read`",
    )  # fmt: skip
