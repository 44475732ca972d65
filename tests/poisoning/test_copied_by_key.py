"""A key that is limited to the owner's project hides nothing of what the owner did there."""

from __future__ import annotations

import json

import pytest
from events import observed
from histories import drained
from poisoning.teams import PLAIN, team_of

from memctl.domain.events.observations import PromptSubmitted, ResponseReceived

ASKED = "Check the quillvault ledger of the contact list."
SAID = "The quillvault ledger was wrong by two cents, of a float in totals.py: it is mended."
DONE = "Nothing of it is left to do, for all of the page was looked through twice, and twice it was well, as it is now."


@pytest.mark.parametrize("way", ["memories?project=*", "history?project=*", "episodes?project=*", "search"])
def test_a_copy_that_a_key_brings_stands_in_nobodys_place(
    way: str,
    postgres_server: str,
    migrated_template: str,
    vectors: tuple[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    mine = [
        observed(PromptSubmitted(line="0a", text=ASKED), session="mine", location=PLAIN),
        observed(ResponseReceived(line="0b", text=SAID), session="mine", at=30, actor="agent", location=PLAIN),
    ]
    data = tmp_path_factory.mktemp("api")
    of = (postgres_server, migrated_template, vectors, data)
    with team_of(*of, ("kim",), projects=(PLAIN,), before=mine) as team:

        def shown() -> bool:
            body = {"q": "quillvault ledger of the contact list", "project": "*", "limit": 20}
            answer = team.ask("", f"/v1/{way}", body if way == "search" else None)[1]
            found = json.loads(answer)["results" if way == "search" else "items"]
            return "mine" in json.dumps(found)

        before = shown()
        copied = [
            observed(PromptSubmitted(line="0a", text=ASKED), session="theirs", location=PLAIN),
            observed(ResponseReceived(line="0c", text=DONE), session="theirs", at=90, actor="agent", location=PLAIN),
        ]
        assert team.deliver("kim", copied) == {}
        drained(team.database)
        assert (before, shown()) == (True, True)
