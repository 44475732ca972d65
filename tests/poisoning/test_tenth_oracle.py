"""A receipt says nothing of what the server's own files hold: who erases chooses the phrase, so each is an answer."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import msgspec
from apis import Api
from events import observed
from poisoning.test_spaces import shared

from memctl.api.write.remote_ingest import Delivery, sent
from memctl.domain.events.observations import PromptSubmitted

__all__ = ["shared"]

LENGTH, KNOWN = 10, 5
"""Letters of the token that are found out, and how many the first guess has: each further one takes 16 at most."""


def says(api: Api, key: str, guess: str, file: str = "/run/api") -> bool:
    """Whether a receipt of forgetting that guess, which the key has just said in its own space, names the file."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    told = observed(PromptSubmitted(line="1", text=f"look at {guess}"), session=uuid4().hex, location="/w/eve")
    body = msgspec.json.encode(Delivery([sent(told)]))
    assert api.ask("/v1/events", method="POST", body=body, headers=headers)[0] == 200
    headers["Idempotency-Key"] = uuid4().hex
    asked = json.dumps({"match": guess}).encode()
    status, _, answer = api.ask("/v1/forget", method="POST", body=asked, headers=headers)
    assert status == 200, answer
    return any(file in each for each in json.loads(answer)["stays"])


def test_a_key_finds_out_nothing_of_the_owners_token(shared: tuple[Api, str, list[str]]) -> None:
    api, key, _ = shared
    run = Path(api.environment["MEMCTL_DATA_DIR"], "run")
    run.mkdir(parents=True, exist_ok=True)
    token = "5f0c9a7be1d24836a0b9c8d7e6f51423"  # as `up` and a relay write theirs; must not come out, letter by letter
    (run / "api").write_text(f"/run/user/1/memctl/api.sock\n{token}\n")
    assert not says(api, key, "qz7qz7qz7"), "what the file does not hold"
    found = token[:KNOWN]
    while len(found) < LENGTH:
        more = next((each for each in "0123456789abcdef" if says(api, key, found + each)), "")
        if not more:
            break
        found += more
    assert found != token[:LENGTH], found


def test_a_key_finds_out_no_letter_of_what_up_keeps(shared: tuple[Api, str, list[str]]) -> None:
    """Letters come out without their case. The check sum of a cookie of one's own tells the cases offline."""
    api, key, _ = shared
    token = "Xj3rHALfLxYq0Zt7-plFTWn2BiSCInSg6"
    Path(api.environment["MEMCTL_DATA_DIR"], "keys.json").write_text(json.dumps({"tokens": {"api": token}}))
    right, wrong = token[:9].lower(), f"{token[:8].lower()}0"
    assert not says(api, key, wrong, "keys.json")
    assert not says(api, key, right, "keys.json")  # must not come out: that this guess is the right one
