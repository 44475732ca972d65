"""Figures that are kept for a while are those of their space, whatever number it has on its database."""

from __future__ import annotations

import re

import msgspec
from events import observed
from histories import drained
from integration.test_space_directory import Two, named, two  # noqa: F401  # fixtures

from memctl.api.write.remote_ingest import Delivery, sent
from memctl.domain.events.observations import PromptSubmitted, ResponseReceived


def test_figures_are_not_those_of_a_space_of_the_same_number_on_another_database(two: Two) -> None:  # noqa: F811
    bearers = {}
    for space, database, said in (("bank", (), ResponseReceived), ("lab", ("--on", "east"), PromptSubmitted)):
        assert two.run("space", "create", space, *database).exit_code == 0
        made = two.run("keys", "add", space, "--scope", "read", "--scope", "ingest", space=space)
        bearers[space] = {"Authorization": f"Bearer {made.stdout.strip()}", "Content-Type": "application/json"}
        events = [observed(said(line=str(n), text=f"number {n}"), session=f"{space}0", at=n) for n in range(40)]
        body = msgspec.json.encode(Delivery([sent(each) for each in events]))
        assert two.api.ask("/v1/events", method="POST", body=body, headers=bearers[space])[0] == 200
    drained(two.home)
    drained(two.east)
    pages = [
        two.api.ask("/sessions?project=*", headers={**bearers[space], "Accept": "text/html"})[2].decode()
        for space in ("lab", "bank")  # who asks first has figures kept
    ]
    assert [re.findall(r"prompts\W+(\d+)", re.sub(r"<[^>]+>", " ", page))[0] for page in pages] == ["40", "0"]
