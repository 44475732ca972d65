"""A relay as a process of its own, between hooks and a team's API: nothing is lost, nothing doubled, whatever fails."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Self
from uuid import uuid4

import msgspec
import pytest
from apis import Api
from asked import ATLAS, LEDGER, Remembered
from certificates import certificate_in
from click.testing import CliRunner
from data_dirs import used
from events import observed
from histories import EXAMPLE, events_of
from hook_payloads import sent_for
from knocking import ask
from waiting import seconds, until

from memctl.api.client import Client
from memctl.api.write.committer import parse
from memctl.api.write.ingest_writer import OUTAGES
from memctl.api.write.relay import NoRelayKey, run_relay
from memctl.api.write.remote_ingest import NEW_PLACES_A_DAY, sent
from memctl.api.write.remote_ingest import Delivery as Batch
from memctl.cli.capture.ingest import ingest
from memctl.cli.operate.status import status
from memctl.cli.operate.verify import doctor
from memctl.domain.events.observations import PromptSubmitted
from memctl.infra import api_keys as keys
from memctl.infra import hook
from memctl.infra.data_dir import Folders
from memctl.infra.database import Connection, connect
from memctl.infra.hooks.capture_policy import switch
from memctl.infra.hooks.remote_progress import Checkpoints, relay_seen
from memctl.infra.hooks.spool import Delivery
from memctl.infra.log.checkpoints import name_of
from memctl.infra.settings import SettingsInvalid, load_settings

RUN = """
import ctypes, logging, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
logging.basicConfig(level="INFO", stream=sys.stderr)
import memctl.api.write.relay as relay
relay.MOST_BACK_OFF_S = 1.0
from memctl.infra.settings import load_settings
relay.run_relay(load_settings())
"""

SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.fixture(scope="module")
def log(memory: Remembered) -> Iterator[Connection]:
    with connect(memory.database_url) as connection:
        yield connection


Way = Literal["open", "shut", "stalled", "deaf"]


class Line:
    """The line between a relay and the API. Shut, nobody is let through; stalled, whoever is waits for ever; deaf, the
    request arrives and its answer does not."""

    def __init__(self, port: int, certificate: Path | None = None) -> None:
        """With a certificate it speaks TLS to the relay; what is cut is then not closed as TLS has it."""
        self._to = port
        self.way: Way = "open"
        self.certificate = certificate
        self._tls = None if certificate is None else ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if self._tls is not None:
            self._tls.load_cert_chain(str(certificate))
        self.sent = bytearray()
        """What came from the relay."""
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{'http://127.0.0.1' if self._tls is None else 'https://localhost'}:{self.port}"

    def set(self, way: Way) -> None:
        self.way = way
        self._cut()

    def _cut(self) -> None:
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                if self.way == "shut":
                    client.close()
                    continue
                if self._tls is not None:
                    client = self._tls.wrap_socket(client, server_side=True)
                self._open.append(client)
                if self.way != "stalled":
                    server = socket.create_connection(("127.0.0.1", self._to))
                    self._open.append(server)
                    for source, target in ((client, server), (server, client)):
                        threading.Thread(target=self._pass, args=(source, target, client), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(1 << 16):
                if source is client:
                    self.sent += part
                elif self.way == "deaf":
                    break
                target.sendall(part)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()
        self._cut()


class Relay:
    """A relay process, the hooks of its machine, and what its `status` says."""

    def __init__(self, folder: Path, line: Line, key: str) -> None:
        self.data = used(folder / "data")
        self.key = folder / "key"
        self.log = folder / "relay.log"
        self.give(key)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("MEMCTL_")},
            "MEMCTL_DATA_DIR": str(self.data),
            "MEMCTL_API_URL": line.url,
            "MEMCTL_API_TOKEN_FILE": str(self.key),
            **({"SSL_CERT_FILE": str(line.certificate)} if line.certificate else {}),
            "XDG_CONFIG_HOME": str(folder / "config"),
        }
        self.start()

    def give(self, key: str) -> None:
        self.key.touch(0o600)
        self.key.write_text(key + "\n")

    def start(self) -> None:
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RUN], env=self.environment, stdout=output, stderr=output
            )
        until(lambda: self._answers(), "the relay's door")

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect((self.data / "run" / "door").read_text().strip())
        except OSError:
            return False
        return True

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def remove(self) -> None:
        """Kill it, and take away its sockets, which lie elsewhere where this path is long."""
        self.kill()
        shutil.rmtree(Folders(self.data).sockets, ignore_errors=True)

    def hook(self, payload: dict[str, Any], *options: str) -> str:
        """Run a hook as a client would; answers what it prints."""
        command = [sys.executable, "-I", "-S", hook.__file__, "ingest", "--stdin", *options]
        done = subprocess.run(
            command, input=json.dumps(payload).encode(), env=self.environment, capture_output=True, check=True
        )
        assert done.stderr == b""
        return done.stdout.decode()

    def say(self, session: str, numbers: range) -> None:
        for number in numbers:
            self.hook(prompt(session, f"please look into number {number} of the list"))

    def quickest(self, session: str, numbers: range) -> float:
        """Say so many prompts; the seconds of the quickest hook, to which a busy machine adds least."""
        return min(seconds(lambda n=n: self.say(session, range(n, n + 1))) for n in numbers)  # type: ignore[misc]

    def waiting(self) -> int:
        spool = self.data / "spool"
        return len(list(spool.glob("*.delivery"))) if spool.is_dir() else 0

    def status(self) -> tuple[int, dict[str, Any]]:
        done = CliRunner(env=self.environment).invoke(status, ["--json"])
        told: dict[str, Any] = json.loads(done.stdout)
        return done.exit_code, told

    def doctor(self) -> dict[str, dict[str, Any]]:
        """What `doctor` finds of the relay and its doors, by part and name; that it ends with 1 where anything is."""
        done = CliRunner(env=self.environment).invoke(doctor, ["--json"])
        told = json.loads(done.stdout)
        assert done.exit_code == (0 if told["ok"] else 1)
        found = {f"{each['part']} {each['name']}": each for each in told["checks"]}
        assert not any(name.startswith(("postgres", "queue", "vectors")) for name in found)
        return {name: each for name, each in found.items() if name.startswith(("relay", "doors"))}

    def state(self) -> str:
        return str(self.status()[1]["relay"]["state"])


def prompt(session: str, text: str) -> dict[str, Any]:
    return {"session_id": session, "cwd": LEDGER, "hook_event_name": "UserPromptSubmit", "prompt": text}


def kept(log: Connection, session: str) -> list[str]:
    """What the team's log holds of a session's prompts, in the order in which it came."""
    rows = log.execute(
        "SELECT payload->>'text' FROM memctl.events WHERE session_id = %s AND type = 'prompt.submitted'"
        " ORDER BY position",
        [session],
    )
    return [row[0] for row in rows]


def expected(numbers: range) -> list[str]:
    return [f"please look into number {number} of the list" for number in numbers]


@pytest.fixture(scope="module")
def line(api: Api) -> Iterator[Line]:
    with Line(api.port) as found:
        yield found


@pytest.fixture(scope="module")
def _relay(tmp_path_factory: pytest.TempPathFactory, line: Line, log: Connection) -> Iterator[Relay]:
    found = Relay(tmp_path_factory.mktemp("relay"), line, a_key(log))
    try:
        yield found
    finally:
        found.remove()


@pytest.fixture
def relay(_relay: Relay, line: Line, log: Connection) -> Relay:
    """The relay of these tests, whatever the one before did to it."""
    line.set("open")
    if _relay.process.poll() is not None:
        _relay.start()
    until(lambda: _relay.waiting() == 0, "an empty spool")
    return _relay


def a_key(log: Connection) -> str:
    """A key more of the member of the team whom the relays of these tests are of."""
    return keys.make(log, "default", "dana", ("read", "ingest"))[1]


def test_what_hooks_and_transcripts_tell_comes_to_the_teams_log_once_and_without_secrets(
    relay: Relay, line: Line, log: Connection, tmp_path: Path
) -> None:
    message = {"role": "user", "content": f"the token is {SECRET}"}
    said = {"type": "user", "uuid": "l1", "sessionId": "told", "cwd": LEDGER, "message": message}
    transcript = tmp_path / "told.jsonl"
    transcript.write_text(json.dumps({**said, "timestamp": "2026-03-02T12:00:00Z"}) + "\n")
    stops = {"session_id": "told", "cwd": LEDGER, "hook_event_name": "Stop", "transcript_path": str(transcript)}
    relay.hook(prompt("told", f"use {SECRET} for it"))
    relay.hook(stops)
    until(lambda: len(kept(log, "told")) == 2)
    assert SECRET.encode() not in line.sent
    assert all(SECRET not in text for text in kept(log, "told"))
    relay.hook(stops)
    relay.hook(prompt("told", "and once more"))
    until(lambda: "and once more" in kept(log, "told"))
    assert len(kept(log, "told")) == 3
    until(lambda: relay.status()[1]["relay"]["waiting"] == 0)  # it lets go of a delivery once that is answered
    code, told = relay.status()
    assert (code, told["relay"]["state"]) == (0, "forwarding")
    until(lambda: relay.status()[1]["relay"]["events"] >= 3)


def test_while_the_api_is_down_hooks_are_as_quick_and_all_comes_in_order_afterwards(
    relay: Relay, line: Line, log: Connection
) -> None:
    usual = relay.quickest("patient", range(5))
    until(lambda: relay.waiting() == 0)
    line.set("shut")
    assert relay.quickest("patient", range(5, 20)) < usual + hook.PATIENCE_S / 2
    until(lambda: relay.state() == "waiting")
    assert relay.waiting() == 15
    assert relay.status()[0] == 0
    line.set("open")
    until(lambda: len(kept(log, "patient")) == 20)
    assert kept(log, "patient") == expected(range(20))
    until(lambda: relay.waiting() == 0 and relay.state() == "forwarding")


def test_an_answer_that_is_lost_doubles_nothing(relay: Relay, line: Line, log: Connection) -> None:
    line.set("deaf")
    relay.say("deaf", range(5))
    until(lambda: len(kept(log, "deaf")) == 5)
    assert relay.waiting() == 5
    line.set("open")
    until(lambda: relay.waiting() == 0)
    assert kept(log, "deaf") == expected(range(5))


def test_an_api_that_hangs_holds_up_no_hook_that_tells_and_one_that_asks_for_two_seconds(
    relay: Relay, line: Line
) -> None:
    line.set("stalled")

    def tells() -> float:
        return seconds(lambda: relay.say("hanging", range(1)))

    def asks() -> float:
        took = seconds(lambda: told.add(relay.hook(prompt("hanging", "how is money kept here?"), "--recall")))
        assert took >= hook.RECALL_PATIENCE_S
        return took

    told: set[str] = set()
    until(lambda: tells() < hook.PATIENCE_S / 2, "a hook that nothing holds up")
    until(lambda: asks() < hook.RECALL_PATIENCE_S + hook.PATIENCE_S / 2, "a hook that waits for its patience alone")
    assert told == {""}


def test_a_relay_that_is_killed_again_and_again_loses_and_doubles_nothing(relay: Relay, log: Connection) -> None:
    for start in range(0, 40, 10):
        relay.say("killed", range(start, start + 10))
        relay.kill()
        relay.hook(prompt("killed", f"said while nobody listened {start}"))
        relay.start()
    wanted = {*expected(range(40)), *(f"said while nobody listened {start}" for start in range(0, 40, 10))}
    until(lambda: len(kept(log, "killed")) >= 44 and relay.waiting() == 0)
    assert sorted(kept(log, "killed")) == sorted(wanted)


def test_two_relays_that_tell_one_session_each_in_its_own_order_are_kept_once(
    relay: Relay, line: Line, log: Connection, api: Api, tmp_path: Path
) -> None:
    told = tmp_path / "told.jsonl"
    told.write_text(EXAMPLE.read_text().replace("3f6f1d52", "27272727"))
    (session,) = {sent.payload["session_id"] for sent in sent_for([told])}
    deliveries = [
        Delivery(f"{number:032x}", sent.at, "claude-code", "", json.dumps(sent.payload).encode())
        for number, sent in enumerate(sent_for([told]), 1 << 64)
    ]
    wanted = {event.dedupe_key for each in deliveries for event in parse(each).events}
    wanted |= {event.dedupe_key for events in events_of(tmp_path) for event in events}

    def tell(relay: Relay, deliveries: list[Delivery]) -> None:
        door = Path((relay.data / "run" / "door").read_text().strip())
        for each in deliveries:
            assert ask(door, each)["ok"]

    def in_the_log() -> list[tuple[str, bool]]:
        rows = log.execute("SELECT dedupe_key, variant_of IS NULL FROM memctl.events WHERE session_id = %s", [session])
        return rows.fetchall()

    with Line(api.port) as late:
        late.set("shut")
        other = Relay(tmp_path / "other", late, a_key(log))
        try:
            tell(other, deliveries[::2])
            line.set("deaf")
            tell(relay, deliveries[::-1])
            until(lambda: len(in_the_log()) >= len(deliveries), "what the API keeps and the relay does not hear of")
            relay.kill()
            line.set("open")
            relay.start()
            until(lambda: relay.waiting() == 0)
            late.set("deaf")
            until(lambda: b"/v1/events" in late.sent)
            other.kill()
            late.set("open")
            other.start()
            until(lambda: other.waiting() == 0)
            until(lambda: {key for key, _ in in_the_log()} >= wanted, "what the transcript tells")
        finally:
            other.remove()
    assert sorted(in_the_log()) == [(key, True) for key in sorted(wanted)]


def test_what_names_a_place_too_many_holds_nothing_else_up(
    relay: Relay, log: Connection, api: Api, tmp_path: Path
) -> None:
    """An agent's command makes a thousand directories in a minute."""
    places = [
        observed(PromptSubmitted(line=f"{n}", text="made"), session="made", location=f"/m/{n}")
        for n in range(NEW_PLACES_A_DAY)
    ]
    before = relay.key.read_text()
    relay.give(key := keys.make(log, "default", "flo", ("read", "ingest"))[1])
    body = msgspec.json.encode(Batch([sent(each) for each in places]))
    asked = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    assert api.ask("/v1/events", method="POST", body=body, headers=asked)[0] == 200
    relay.hook({**prompt("crowded", "made here"), "cwd": "/m/more"})
    relay.hook({**prompt("at-work", "please go on"), "cwd": "/m/1"})
    until(lambda: kept(log, "at-work") == ["please go on"])
    until(lambda: relay.waiting() == 0)
    aside = list((relay.data / "spool").glob("*.refused"))
    assert [b"made here" in each.read_bytes() for each in aside] == [True]
    transcript = tmp_path / "read.jsonl"
    line = {"type": "user", "uuid": "u1", "sessionId": "read", "cwd": "/m/more", "timestamp": "2026-03-02T09:00:00Z"}
    transcript.write_text(json.dumps({**line, "message": {"role": "user", "content": "look at it"}}) + "\n")
    done = CliRunner(env=relay.environment).invoke(ingest, [str(transcript)])
    assert (done.exit_code, "new places" in str(done.exception)) == (1, True)
    assert not isinstance(done.exception, OUTAGES), "an outage would have all other transcripts wait as well"
    aside[0].unlink()
    relay.give(before.strip())


def test_a_relay_that_was_killed_is_missed(relay: Relay) -> None:
    relay.kill()
    code, told = relay.status()
    assert (code, told["relay"]["running"]) == (1, False)
    found = relay.doctor()
    assert {name for name, each in found.items() if each["result"] == "gap"} == {
        "relay process", "doors door", "doors api"
    }  # fmt: skip


def test_what_holds_nothing_to_keep_waits_for_no_api(relay: Relay, line: Line) -> None:
    """As what `doctor` has each hook deliver."""
    line.set("shut")
    relay.hook({"hook_event_name": "Notification", "session_id": "noticed", "cwd": "/", "message": "waiting"})
    assert relay.waiting() == 0


def test_what_waits_for_long_is_said_and_no_short_outage(relay: Relay, line: Line) -> None:
    line.set("shut")
    relay.say("late", range(2))
    until(lambda: relay.state() == "waiting")
    assert relay.status()[0] == 0
    first = min((relay.data / "spool").glob("*.delivery"))
    came, _, name = first.name.partition("-")
    first.rename(first.with_name(f"{int(came) - 11 * 60 * 1_000_000}-{name}"))
    done = CliRunner(env=relay.environment).invoke(status)
    assert done.exit_code == 1
    assert done.stdout.startswith("needs you: 2 deliveries wait for 11 min to be sent: The team's API does not take")
    assert "backups" not in done.stdout


def test_doctor_looks_at_a_relay_and_at_what_its_key_may_do(relay: Relay, line: Line, log: Connection) -> None:
    found = relay.doctor()
    assert {each["result"] for each in found.values()} == {"ok"}
    assert found["relay key"]["counted"] == "may ingest, read"
    before = relay.key.read_text()
    relay.give(keys.make(log, "default", uuid4().hex, ("read",))[1])
    assert "no scope ingest" in relay.doctor()["relay key"]["found"][0]
    relay.give(before.strip())
    line.set("shut")
    assert "does not answer" in relay.doctor()["relay api"]["found"][0]


def test_a_revoked_key_is_said_loudly_and_what_is_told_waits_for_another(
    relay: Relay, api: Api, log: Connection
) -> None:
    relay.say("revoked", range(1))
    until(lambda: len(kept(log, "revoked")) == 1)
    for key in keys.listed(log, "default"):
        if key.revoked_at is None:
            keys.revoke(log, "default", key.id)
    key = {"Authorization": f"Bearer {relay.key.read_text().strip()}"}
    until(lambda: api.ask("/v1/caller", headers=key)[0] == 401)  # it may be taken for a while yet
    relay.say("revoked", range(1, 4))
    until(lambda: relay.state() == "refused")
    code, told = relay.status()
    assert code == 1
    assert "refuses this machine's key" in told["relay"]["why"]
    assert "refuses this machine's key" in relay.log.read_text()
    assert relay.waiting() == 3
    found = relay.doctor()
    assert found["relay api"]["found"] == ["it refuses this machine's key"]
    assert found["relay spool"]["counted"].startswith("3 deliveries")
    starts = {"session_id": "next", "cwd": LEDGER, "hook_event_name": "SessionStart", "source": "startup"}
    said = json.loads(relay.hook(starts, "--recall"))["hookSpecificOutput"]["additionalContext"]
    assert "refuses this machine's key" in said
    assert relay.hook(prompt("next", "how is money kept here?"), "--recall") == ""
    relay.give(a_key(log))
    until(lambda: kept(log, "revoked") == expected(range(4)))
    until(lambda: relay.state() == "forwarding")


def test_what_a_relay_of_another_space_is_told_waits_until_it_names_the_apis(relay: Relay, log: Connection) -> None:
    relay.kill()
    relay.environment["MEMCTL_SPACE"] = "lab"
    try:
        relay.start()
        del relay.environment["MEMCTL_SPACE"]  # the hooks name none
        relay.say("elsewhere", range(2))
        relay.environment["MEMCTL_SPACE"] = "lab"
        until(lambda: relay.state() == "refused")
        assert "space default, and lab was asked for" in relay.status()[1]["relay"]["why"]
        found = relay.doctor()["relay api"]
        assert "MEMCTL_SPACE" in found["advice"]
        assert relay.waiting() == 2
        assert kept(log, "elsewhere") == []
    finally:
        relay.kill()
        del relay.environment["MEMCTL_SPACE"]
    relay.start()
    until(lambda: kept(log, "elsewhere") == expected(range(2)))


def test_what_a_hook_means_for_another_space_goes_to_no_other_and_holds_nothing_up(
    relay: Relay, line: Line, log: Connection
) -> None:
    relay.say("both", range(1))
    until(lambda: kept(log, "both") == expected(range(1)))
    line.sent.clear()
    starts = {"session_id": "lab", "cwd": LEDGER, "hook_event_name": "SessionStart", "source": "startup"}
    relay.environment["MEMCTL_SPACE"] = "lab"  # of these hooks alone
    try:
        relay.say("lab", range(2))
        assert relay.hook(starts, "--recall") == "", "nor is it given what the key's space holds"
    finally:
        del relay.environment["MEMCTL_SPACE"]
    relay.say("both", range(1, 3))
    until(lambda: kept(log, "both") == expected(range(3)))
    until(lambda: relay.waiting() == 0)
    assert kept(log, "lab") == []
    assert b"memctl-space: lab" in bytes(line.sent).lower()
    assert relay.state() == "forwarding"
    refused = list((relay.data / "spool").glob("*.refused"))
    assert len(refused) == 3
    for file in refused:
        file.unlink()
    before = relay.key.read_text().strip()
    relay.give(keys.make(log, "default", "dana", ("read", "ingest"), (LEDGER,))[1])
    assert "What memory holds of" in relay.hook(starts, "--recall")
    relay.give(before)


def test_a_key_file_that_goes_away_loses_nothing(relay: Relay, line: Line, log: Connection) -> None:
    line.set("shut")
    relay.say("keyless", range(3))
    until(lambda: relay.state() == "waiting")
    key = relay.key.read_text().strip()
    relay.key.unlink()
    line.set("open")
    # `status` refuses to go by settings that name a file that is not there.
    until(lambda: (seen := relay_seen(Folders(relay.data))) is not None and seen.standing.state == "refused")
    assert relay.waiting() == 3
    assert not list((relay.data / "spool").glob("*.refused"))
    relay.give(key)
    until(lambda: kept(log, "keyless") == expected(range(3)))


def test_what_a_key_for_another_project_could_not_tell_is_told_once_there_is_one_for_it(
    relay: Relay, log: Connection, tmp_path: Path
) -> None:
    before, said_before = relay.key.read_text().strip(), len(relay.log.read_text())
    transcript = tmp_path / "foreign.jsonl"
    said = {"type": "user", "uuid": "f1", "sessionId": "foreign", "cwd": LEDGER, "message": {"content": "how much?"}}
    transcript.write_text(json.dumps(said) + "\n")
    stop = {"session_id": "foreign", "cwd": LEDGER, "hook_event_name": "Stop", "transcript_path": str(transcript)}
    relay.give(keys.make(log, "default", uuid4().hex, ("read", "ingest"), [ATLAS])[1])
    relay.hook({**stop, "cwd": ATLAS})
    until(lambda: "not kept: of no project that this key is for" in relay.log.read_text())
    assert kept(log, "foreign") == []
    relay.say("abroad", range(3))
    until(lambda: relay.waiting() == 0, "that nothing of it waits")
    until(lambda: relay.status()[1]["relay"]["left_out"] > 0, "the count")
    done = CliRunner(env=relay.environment).invoke(status)
    assert done.exit_code == 0, "nobody has to do anything about it"
    assert "events of projects that this machine's key is not for" in done.stdout
    assert "left out of projects" in relay.doctor()["relay spool"]["counted"]
    assert not [each.name for each in (relay.data / "spool").iterdir() if each.suffix == ".refused"]
    assert not [word for word in ("Traceback", "refused for") if word in relay.log.read_text()[said_before:]]
    relay.give(before)
    relay.hook(stop)
    until(lambda: kept(log, "foreign") == ["how much?"])
    assert "another key" in relay.log.read_text()


def test_a_member_brings_history_with_the_members_key(
    line: Line, log: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No relay needs to run; what was sent is not sent again; what the key is not for stays here."""
    folder = tmp_path / ".claude" / "projects" / "ledger"
    folder.mkdir(parents=True)
    for name, cwd in (("brought", LEDGER), ("private", ATLAS)):
        said = {
            "type": "user",
            "uuid": name,
            "sessionId": name,
            "cwd": cwd,
            "message": {"content": f"of {name} {SECRET}"},
        }
        (folder / f"{name}.jsonl").write_text(json.dumps(said) + "\n")
    file = tmp_path / "key"
    file.touch(0o600)
    file.write_text(keys.make(log, "default", uuid4().hex, ("read", "ingest"), [LEDGER])[1])
    environment = {
        "HOME": str(tmp_path), "MEMCTL_DATA_DIR": str(used(tmp_path / "data")), "MEMCTL_API_URL": line.url,
        "MEMCTL_API_TOKEN_FILE": str(file), "XDG_CONFIG_HOME": str(tmp_path / "config"), "MEMCTL_DATABASE_URL": "",
    }  # fmt: skip
    run = CliRunner(env=environment)
    account = json.loads(run.invoke(ingest, ["--json"], catch_exceptions=False).stdout)
    (refused,) = account["bad"]
    assert refused["why"] == "not kept: of no project that this key is for"
    (text,) = kept(log, "brought")
    assert text.startswith("of brought")
    assert SECRET not in text
    assert kept(log, "private") == []
    again = json.loads(run.invoke(ingest, ["--json"], catch_exceptions=False).stdout)
    assert (again["unchanged"], again["events"]["new"]) == (2, 0)
    assert run.invoke(ingest, ["--wait"]).exit_code == 2


def test_a_line_of_many_parts_is_sent_in_requests_that_the_api_takes(
    line: Line, log: Connection, tmp_path: Path
) -> None:
    """Each of them says where it happened: of short texts that takes more than they do."""
    folder = tmp_path / ".claude" / "projects" / "ledger"
    folder.mkdir(parents=True)
    parts = [{"type": "tool_use", "id": f"t{n}", "name": "Read", "input": {}} for n in range(15_000)]
    said = {"type": "assistant", "uuid": "parts", "sessionId": "parts", "cwd": f"{LEDGER}{'/deep' * 180}",
            "timestamp": "2026-03-02T12:00:00Z", "message": {"role": "assistant", "content": parts}}  # fmt: skip
    (folder / "parts.jsonl").write_text(json.dumps(said) + "\n")
    file = tmp_path / "key"
    file.touch(0o600)
    file.write_text(a_key(log))
    environment = {
        "HOME": str(tmp_path), "MEMCTL_DATA_DIR": str(used(tmp_path / "data")), "MEMCTL_API_URL": line.url,
        "MEMCTL_API_TOKEN_FILE": str(file), "XDG_CONFIG_HOME": str(tmp_path / "config"), "MEMCTL_DATABASE_URL": "",
    }  # fmt: skip
    account = json.loads(CliRunner(env=environment).invoke(ingest, ["--json"], catch_exceptions=False).stdout)
    assert (account["bad"], account["events"]["new"]) == ([], len(parts))


def test_what_a_hook_asks_is_answered_by_the_team_also_after_its_connection_was_closed(
    relay: Relay, line: Line, log: Connection
) -> None:
    relay.give(keys.make(log, "default", "dana", ("read", "ingest"), (LEDGER,))[1])
    starts = {"session_id": "asks", "cwd": LEDGER, "hook_event_name": "SessionStart", "source": "startup"}
    for _ in range(2):
        said = relay.hook(starts, "--recall")
        assert "What memory holds of" in json.loads(said)["hookSpecificOutput"]["additionalContext"]
        line.set("open")  # ends what is idle, as servers do
    relay.give(a_key(log))


def test_what_a_hook_asks_leaves_this_machine_without_secrets_and_what_is_private(relay: Relay, line: Line) -> None:
    """As what is kept: in prompts, in what commands print, and in a session's name."""
    line.sent.clear()
    asked = prompt(f"asks {SECRET}", f"why does {SECRET} fail? <private>quillbetweenus</private> See the ledger.")
    relay.hook(asked, "--recall")
    printed = {"stdout": f"export GITHUB_TOKEN={SECRET}\nerror: bad credentials", "stderr": ""}
    returned = {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "env"},
                "tool_response": printed}  # fmt: skip
    relay.hook({**asked, **returned}, "--recall-only")
    assert line.sent.count(b"POST /v1/hooks/claude-code") == 2
    assert b"See the ledger." in line.sent
    assert SECRET.encode() not in line.sent
    assert b"quillbetweenus" not in line.sent


def test_over_tls_as_well_neither_who_asks_nor_who_sends_minds_a_connection_that_was_closed(
    api: Api, log: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxies close what has been idle for a minute, without a word of TLS."""
    key = a_key(log)
    with Line(api.port, certificate_in(tmp_path)) as line:
        monkeypatch.setenv("SSL_CERT_FILE", str(line.certificate))
        with Client(line.url, key) as client:
            for _ in range(2):
                assert client.get("/v1/caller")
                line.set("open")
        relay = Relay(tmp_path, line, key)
        try:
            began = relay.status()[1]["relay"]["since"]
            for number in range(2):
                relay.say("tls", range(number, number + 1))
                until(lambda number=number: kept(log, "tls") == expected(range(number + 1)))  # type: ignore[misc]
                until(lambda: relay.waiting() == 0, "the answer")
                line.set("open")
            standing = relay.status()[1]["relay"]
            assert (standing["state"], standing["since"]) == ("forwarding", began), "it never waited"
        finally:
            relay.remove()


def test_what_is_off_here_never_leaves_this_machine(relay: Relay, line: Line, log: Connection) -> None:
    line.set("shut")
    off = {"everywhere": [], "sessions": {"quiet": ["save"]}, "projects": {}}
    relay.kill()  # one that runs takes two seconds to hear of it
    (relay.data / "off.json").write_text(json.dumps(off))
    relay.start()
    relay.hook(prompt("quiet", "between us"))
    (relay.data / "off.json").unlink()
    assert relay.waiting() == 0
    line.set("open")
    relay.hook(prompt("loud", "for all"))
    until(lambda: kept(log, "loud") == ["for all"])
    assert kept(log, "quiet") == []


def test_what_waits_here_since_before_saving_went_off_is_sent(relay: Relay, line: Line, log: Connection) -> None:
    line.set("shut")
    relay.hook(prompt("early", "for all"))
    switch(relay.data, False)
    relay.kill()
    relay.start()
    line.set("open")
    until(lambda: kept(log, "early") == ["for all"])
    until(lambda: relay.waiting() == 0)


def test_what_a_transcript_told_while_saving_was_off_here_is_not_sent_once_it_is_on(
    relay: Relay, log: Connection, tmp_path: Path
) -> None:
    transcript = tmp_path / "hushed.jsonl"
    stop = {"session_id": "hushed", "cwd": LEDGER, "hook_event_name": "Stop", "transcript_path": str(transcript)}

    def say(text: str) -> None:
        line = {"type": "user", "uuid": uuid4().hex, "sessionId": "hushed", "cwd": LEDGER, "message": {"content": text}}
        with transcript.open("a") as file:
            file.write(json.dumps(line) + "\n")
        relay.hook({**stop, "last_assistant_message": "Done."})

    def read() -> bool:
        with contextlib.closing(Checkpoints(relay.data / "relay.sqlite3")) as noted:
            at = noted.known().get(name_of(transcript))
        return at is not None and at.offset == transcript.stat().st_size

    relay.kill()
    (relay.data / "off.json").write_text(json.dumps({"sessions": {"hushed": ["save"]}}))
    relay.start()
    say("between us")
    until(read, "the transcript to be passed over")
    (relay.data / "off.json").unlink()
    relay.kill()
    relay.start()
    say("for all")
    until(lambda: kept(log, "hushed"))
    assert kept(log, "hushed") == ["for all"]


def test_a_log_that_takes_the_place_of_another_is_told_whole_transcripts_again(
    relay: Relay, line: Line, log: Connection, tmp_path: Path
) -> None:
    transcripts = [tmp_path / f"{name}.jsonl" for name in ("beside", "replaced")]

    def say(transcript: Path, text: str, event: str) -> None:
        session = transcript.stem
        said = {"type": "user", "uuid": uuid4().hex, "sessionId": session, "cwd": LEDGER, "message": {"content": text}}
        with transcript.open("a") as file:
            file.write(json.dumps(said) + "\n")
        named = {"session_id": session, "cwd": LEDGER, "transcript_path": str(transcript)}
        relay.hook({**named, "hook_event_name": event, "last_assistant_message": text})

    for transcript in transcripts:
        say(transcript, f"first words {transcript.stem}", "Stop")
        until(lambda name=transcript.stem: kept(log, name))  # type: ignore[misc]
    until(lambda: relay.waiting() == 0)
    log.execute("UPDATE memctl.installation SET id = gen_random_uuid()")
    log.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'memctl intake'")
    line.sent.clear()
    say(transcripts[1], "later words", "SessionStart")
    for transcript in transcripts:
        until(lambda name=transcript.stem: f"first words {name}".encode() in line.sent)  # type: ignore[misc]
    until(lambda: len(kept(log, "replaced")) == 2)
    assert kept(log, "beside") == ["first words beside"]
    assert "the team's log is another one" in relay.log.read_text()


def test_it_ends_when_told_and_leaves_nothing_but_what_waits(relay: Relay, line: Line) -> None:
    line.set("shut")
    relay.say("left", range(2))
    relay.process.send_signal(signal.SIGTERM)
    assert relay.process.wait(60) == 0
    assert relay.waiting() == 2
    assert not list((relay.data / "run").glob("relay*"))
    assert not (relay.data / "run" / "door").exists()


def test_a_key_file_that_others_may_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "key"
    key.touch(0o640)
    key.write_text("memctl_x_y")
    monkeypatch.setenv("MEMCTL_API_URL", "http://127.0.0.1:1")
    with pytest.raises(NoRelayKey):
        run_relay(load_settings())
    monkeypatch.setenv("MEMCTL_API_TOKEN_FILE", str(key))
    with pytest.raises(SettingsInvalid, match="read by others"):
        load_settings()
    key.chmod(0o600)
    assert load_settings().api_token == "memctl_x_y"
