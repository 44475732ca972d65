"""Secrets here are made up, or published as examples by the rules' authors."""

from __future__ import annotations

import base64
import fcntl
import gzip
import ipaddress
import json
import math
import random
import re
import string
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import line_fronts
import msgspec
import published
import pytest
import secret_forms
import secret_structures
from data_dirs import anonymizing
from hostile import Values
from hypothesis import given, settings
from hypothesis import strategies as st
from vendors import as_shipped, published_rules

from memctl.api.assist.lines import line
from memctl.api.assist.recall import block
from memctl.domain.events.event import YEAR_9999, Micros, NewEvent, Payload, decode_payload, event_types
from memctl.domain.events.observations import (
    CONTEXT_BLOCK_CLOSE,
    CONTEXT_BLOCK_OPEN,
    TEXT_CAP,
    CommitRecorded,
    Hunk,
    NoticeReceived,
    Observation,
    PromptSubmitted,
    ResponseReceived,
    ToolCalled,
    ToolReturned,
)
from memctl.domain.events.skipping import EventSkipped
from memctl.domain.events.statements import DiscoveryNoted
from memctl.domain.knowledge.consolidation import MemoryPruned
from memctl.domain.projects.identity import ProjectIdentified
from memctl.domain.support import patterns
from memctl.domain.support.location import above, normalise
from memctl.infra.redaction import PRIVATE, Redactor, default_redactor, prepare, prepare_all, redact, redactor_of
from memctl.infra.redaction import text as text_module
from memctl.infra.redaction.events import as_sent
from memctl.infra.redaction.personal import resident_number
from memctl.infra.redaction.rules import BadUserPattern, Rule, load_rules, personal_rules, user_rule, vendors
from memctl.infra.redaction.text import MOST_BROKEN
from memctl.infra.transcripts.fields import identifier
from memctl.projections.stats import DAY

KEY = "AKIA" + "DEADBEEFDEADBEEF"
MARK = "[redacted:aws-access-key]"
PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + "\n".join(["MIIEogIBAAKCAQEAjosMtDUqbE1/8zxZac1t8fkh2SxGuMXHk9"] * 6)


@pytest.fixture(scope="module", autouse=True)
def _rules_are_compiled_once() -> None:
    default_redactor()


def event(payload: Payload, location: str = "/work") -> NewEvent:
    return NewEvent(
        stream="session/codex/s",
        payload=payload,
        occurred_at=Micros(1),
        dedupe_key="k",
        actor="user",
        location=location,
    )


def test_a_secret_is_replaced_by_its_kind_and_nothing_else_changes() -> None:
    assert redact(f"use {KEY}, please") == (f"use {MARK}, please", {"aws-access-key": 1})


@pytest.mark.parametrize(
    "text",
    [
        "The password must have eight characters; ask for a token.",
        "def login(user: str, password: str, token: str | None = None) -> Session:",
        'const apiKey = process.env.API_KEY ?? "";',
        "commit 4e480f9057dbe4b7313ef9b16c371d756767002d",
        "018427c2-6807-4b10-b33b-3bfc78dd5c73 sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca4",
        "https://example.com:8443/a@b?c=d",
        "git@github.com:org/repo.git",
        "max_tokens=100000, tokens: 12345678, PASSED=1234567",
        "비밀번호를 입력하세요. トークン “—…” 🙂\u2028",
    ],
)
def test_a_text_without_secrets_is_left_as_it_is(text: str) -> None:
    assert redact(text) == (text, {})
    given = event(PromptSubmitted(text=text))
    assert prepare(given) is given


@pytest.mark.parametrize("at", [-1, -(2**63), YEAR_9999 - 1, 2**53 * 1000, 2**70])
def test_a_moment_before_1970_or_long_after_it_is_heard_of_is_none(at: int) -> None:
    given = event(PromptSubmitted(text="hello", line="1"))
    assert prepare(msgspec.structs.replace(given, occurred_at=Micros(at))).occurred_at == 0


def test_a_clock_may_be_ahead_by_hours_but_not_by_days() -> None:
    now = time.time_ns() // 1000
    kept, late = (
        msgspec.structs.replace(event(PromptSubmitted(text="hello", line="1")), occurred_at=Micros(now + ahead))
        for ahead in (DAY // 2, 2 * DAY)
    )
    assert prepare(kept) is kept
    assert prepare(late).occurred_at == 0


@pytest.mark.parametrize("name", [f"{KEY}_key.txt", f"old_{KEY}", f"_{KEY}_"])
def test_a_secret_is_cut_beside_an_underscore(name: str) -> None:
    text, cut = redact(name)
    assert KEY not in text
    assert cut == {"aws-access-key": 1}


def test_the_rules_authors_examples_are_found_in_prompts_in_objects_and_in_escaped_json() -> None:
    missed: list[tuple[str, str, str]] = []
    for rule in load_rules():
        for example in rule.examples:
            nested = json.dumps(json.dumps({"note": f"x\n{example}\ny"}, ensure_ascii=False), ensure_ascii=False)
            for way, payload in (
                ("text", PromptSubmitted(text=example)),
                ("object", ToolCalled(tool="Write", input={"edits": [{"content": f"x\n{example}\ny"}]})),
                ("escaped", PromptSubmitted(text=nested)),
            ):
                if not prepare_all([event(payload)]).redactions:
                    missed.append((rule.id, way, example))
    assert not missed


def test_what_a_rule_of_memctls_own_must_not_take_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    # Compiling a scan for each rule would take most of the time, and the scan only says which rules to ask.
    monkeypatch.setattr(text_module, "scanner", lambda given, *_, **__: lambda _: set(range(len(given))))
    for rule in load_rules():
        if rule.id.startswith("memctl."):
            alone = Redactor([rule])
            for example in rule.negative_examples:
                assert alone.redact(example) == (example, {}), rule.id


def test_of_published_rules_only_those_for_public_names_are_left_out() -> None:
    everything, used = load_rules(everything=True), {rule.id for rule in load_rules()}
    left_out = [rule for rule in everything if rule.id not in used]
    examples = sum(len(rule.examples) for rule in everything)
    missed = [(rule.id, example) for rule in left_out for example in rule.examples if not redact(example)[1]]
    assert {id for id, _ in missed} <= {
        "np.age.1",
        "np.arn.1",
        "np.gcs.1",
        "np.gcs.2",
        "np.s3.1",
        "np.s3.2",
        "np.shopify.1",
    }
    assert len(missed) / examples < 0.04


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f'{{"env": "line\\n{KEY}"}}', KEY),
        (f'"a\\\\nb\\\\n{KEY}\\\\n"', KEY),
        (f"tab\\t{KEY}\\r\\n", KEY),
        ('{\\"password\\": \\"hunter22\\"}', "hunter22"),
        ("GITHUB_TOKEN\\u003dghx0123456789abcdef", "ghx0123456789abcdef"),
        ("aws_secret_access_key=abcdefghij\\/bcdefghijabcdefghij0123456789", "bcdefghijabcdefghij0123456789"),
        (f"\x1b[01;31m\x1b[KTOKEN\x1b[m\x1b[K=\x1b[33m{KEY}\x1b[0m", KEY),
        (f'{{"out": "\\u001b[33m{KEY}\\u001b[0m"}}', KEY),
        (f"GET /?q=%7B%22token%22%3A%22{KEY}%22%7D", KEY),
        (f"next=%252Fcallback%253Ftoken%253D{KEY}", KEY),
    ],
)
def test_escapes_hide_nothing(text: str, secret: str) -> None:
    redacted, counts = redact(text)
    assert secret not in redacted
    assert counts


@pytest.mark.parametrize(
    "text",
    [*secret_forms.NO_PAIRS, *secret_forms.NO_THIRD, *secret_forms.NOT_BETWEEN_QUOTES, *secret_forms.NOT_OF_TOOLS],
)
def test_of_what_only_looks_like_a_secret_beside_its_name_nothing_is_cut(text: str) -> None:
    assert redact(text) == (text, {})


@pytest.mark.parametrize(
    "forms",
    [
        secret_forms.first(),
        secret_forms.second(),
        secret_forms.third(),
        secret_forms.pairs(),
        secret_forms.between_quotes(),
        secret_forms.alone(),
        secret_forms.of_tools(),
    ],
    ids=["first", "second", "third", "pairs", "between quotes", "alone", "of tools"],
)
def test_the_forms_that_tools_and_people_write_secrets_in(forms: list[tuple[str, str, str]]) -> None:
    left = [name for name, text, secret in forms if secret[: max(6, len(secret) * 2 // 3)] in redact(text)[0]]
    assert len(left) < 0.04 * len(forms), left


def found(half: bool) -> float:
    """The share of secrets that are cut, of those structures that rules were written by, or of the others."""
    placed = [each for each in secret_structures.secrets() if secret_structures.built_on(each.structure) is half]
    assert len(placed) > 150
    return sum(secret_structures.hidden(each, redact(each.text)[0]) for each in placed) / len(placed)


def test_the_structures_that_join_a_name_to_its_value_are_known() -> None:
    assert found(half=True) >= 0.98
    assert found(half=False) >= 0.93


def test_what_is_no_secret_stays_in_the_same_structures() -> None:
    placed = list(secret_structures.public())
    cut = [each for each in placed if redact(each.text)[1]]
    assert len(cut) <= 0.03 * len(placed)


@pytest.mark.parametrize(
    "text",
    [
        "always-auth: false  auth\n2026-06-18T08:57:03.4623102Z  * [new tag]",
        "Setting up auth\n213:2026-06-18T08:57:05.1401010Z  done",
        "tracestate: 'api_key=secret,rojo=00f067aa0ba902b7'",
        "| login | password |\n|---|---|\n| dana | required |\n",
        "kind,token,count\nword,identifier_name,18\n",
        "INSERT INTO accounts (login, password) VALUES ('dana', :password);",
        secret_structures.DUMPS["xxd"](b"count the tokens of a line, then print the key of each\n"),
    ],
)
def test_what_only_stands_near_a_name_stays(text: str) -> None:
    assert redact(text) == (text, {})


@pytest.mark.parametrize("structure", secret_forms.ON_LINES)
@pytest.mark.parametrize("front", secret_forms.FRONTS)
def test_what_a_tool_puts_before_lines_keeps_no_name_from_its_value(front: str, structure: str) -> None:
    value = "q7Zt4mXw9LkP2vRb8NcD3f"
    text = secret_forms.ON_LINES[structure].replace("@@", value)
    lines = secret_forms.fronted(secret_forms.FRONTS[front], f"x = 1\n{text}y = 2\n")
    for shown in (lines, "a line before\n" * 900 + lines):
        left, _ = redact(shown)
        assert value[:8] not in left
        assert "x = 1\n" in left
        assert left.endswith("y = 2\n")
    if structure != "flag":  # its backslash before the line's end is one with that, escaped
        assert value[:8] not in redact(json.dumps({"out": lines}, ensure_ascii=False))[0]


@pytest.mark.parametrize("aside", [False, True], ids=["written on", "set aside"])
def test_what_neighbouring_lines_begin_with_keeps_no_secret(aside: bool) -> None:
    value = "q7Zt4mXw9LkP2vRb8NcD3f"
    forms = {name: f"x = 1\n{text.replace('@@', value)}y = 2\n" for name, text in secret_forms.ON_LINES.items()}
    forms["name alone"] = f"token:\n  {value}\n"
    fronts = [name for name in line_fronts.FRONTS if line_fronts.set_aside(name) is aside]
    shown = {(front, form): line_fronts.fronted(front, text) for front in fronts for form, text in forms.items()}
    kept = [each for each, text in shown.items() if value[:8] in redact(text)[0]]
    assert len(kept) <= 0.01 * len(shown), kept
    assert not [front for front, form in kept if form == "name alone"]


def test_what_lines_of_code_begin_with_alike_makes_no_secret_of_them() -> None:
    code = "    56→  const wrappedKey = await wrapKey(\n    57→    file.contentKeyV2,\n    58→    ownerPrivateKey,\n"
    table = "| auth | 6d |\n| updater | 1d |\n"
    declared = "char *domain = NULL;\nchar *user = NULL;\nchar *password = NULL;\n"
    for text in (code, table, declared, code.replace("→", ":"), "self.token =\nself.timeout2x = 3\n" * 3):
        assert redact(text) == (text, {})


def test_an_addition_beside_a_line_that_stayed_is_one_with_it() -> None:
    for text in ("+- name: DB_PASSWORD\n   value: hunter22!\n", " - name: DB_PASSWORD\n+  value: hunter22!\n"):
        assert "hunter22" not in redact(text)[0]


@pytest.mark.parametrize("front", ["", "     1→", "     1\t"])
def test_a_key_s_file_is_known_by_its_name(front: str) -> None:
    key = "89be5bd44d4fdaf485d0c08d449f8e51"
    of_key, of_sums = (prepare(event(ToolReturned(text=f"{front}{key}", file=file))).payload
                       for file in ("/w/config/master.key", "/w/sums.txt"))  # fmt: skip
    assert of_key == ToolReturned(text=f"{front}[redacted:key-file]", file="/w/config/master.key")
    assert of_sums == ToolReturned(text=f"{front}{key}", file="/w/sums.txt")


KEY_LINE = "sMtDUqbE1x8zxZac1t8fkh2SxGuMXHk9q7Wm2Zr9Lk4Tn8ogIBAAKCAQEAjosMtD"


@pytest.mark.parametrize("front", secret_forms.FRONTS)
def test_the_last_lines_of_a_key_are_known_by_its_end(front: str) -> None:
    tail = "\n".join((*(KEY_LINE[at:] + KEY_LINE[:at] for at in range(9)), "q7Wm2Zr9Lk4T==", ""))
    for kind, cut in (("RSA PRIVATE KEY", True), ("CERTIFICATE", False)):
        lines = secret_forms.fronted(secret_forms.FRONTS[front], f"{tail}-----END {kind}-----\ny = 2\n")
        for shown in (lines, json.dumps({"out": lines}, ensure_ascii=False)):
            left, counts = redact(shown)
            assert ("1t8fkh2SxG" not in left) is cut
            assert ("Wm2Zr9Lk4T" not in left) is cut
            assert ("private-key" in counts) is cut
            assert "y = 2" in left


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("mysql -uroot -p'Kx9$Vq2!zT' shop", "Kx9$Vq2!zT"),
        ("mysqldump -h db -p'$ecr3tX9!q' shop", "ecr3tX9!q"),
        ("mysql -u root --password='pa$$w0rd9X' shop", "pa$$w0rd9X"),
        ('network={\n  ssid="home"\n  psk="correct horse"\n}', "correct horse"),
        ('nmcli device wifi connect "My Home" password "harborlantern"', "harborlantern"),
        ("sqlplus system/oracle@db", "oracle"),
        ('sqlplus -s "dana/Harbor921x@//db:1521/x"', "Harbor921x"),
        ("Driver={PG};Server=db;Uid=app;PWD={Kx9;Vq2}z!T};", "Kx9;Vq2"),
        (" id | login | password\n----+-------+----------\n  1 | dana  | Lantern77#q\n", "Lantern77#q"),
        ("  password\n-------------\n Harbor921!x\n Lantern77#q\n(2 rows)\n", "Lantern77#q"),
    ],
)
def test_what_stands_where_only_a_password_does_is_one(text: str, secret: str) -> None:
    assert secret not in redact(text)[0]


@pytest.mark.parametrize("often", [0, 1, 2, 3])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
def test_the_data_of_a_secret_is_cut_however_often_it_is_encoded(kind: str, indent: int | None, often: int) -> None:
    value = base64.b64encode(b"Copper-4-violet").decode()
    for order in (("apiVersion", "data", "kind"), ("kind", "apiVersion", "data")):
        parts: dict[str, Any] = {"apiVersion": "v1", "kind": kind, "data": {"pin": value}}
        text = json.dumps({name: parts[name] for name in order}, indent=indent)
        for _ in range(often):
            text = json.dumps({"content": [{"type": "text", "text": text}]}, indent=indent)
        assert (value not in redact(text)[0]) is (kind == "Secret")


@pytest.mark.parametrize(
    "text",
    [
        'TOKEN_HEADER = "X-Auth-Token"',
        "arn:aws:iam::123456789012:role/deploy",
        "mysql -uroot -p'${DB_PASS_1}' shop",
        'nmcli dev wifi connect Home password "$WIFI_PASSWORD"',
        "Password\n--------\nIt has 8 letters, 2 digits and 1 sign!\nA7-b9-x2\n",
        "    12→password:\n    13→  type: string2\n    14→  minLength: 12\n",
        "+  token,\n+  request2_id,\n",
    ],
)
def test_what_stands_where_a_password_might_is_left(text: str) -> None:
    assert redact(text) == (text, {})


@pytest.mark.parametrize("dump", secret_structures.DUMPS)
def test_of_a_dump_only_the_lines_that_show_a_secret_are_cut(dump: str) -> None:
    text = b"# what the shop reads at its start\n" * 3 + b"DB_PASSWORD=Lantern739_sfW\n" + b"PORT=80\n" * 20
    lines = secret_structures.DUMPS[dump](text).split("\n")
    kept = redact("\n".join(lines))[0].split("\n")
    assert kept[:7] == lines[:7]
    assert kept[-8:] == lines[-8:]
    assert 1 <= len(lines) - len(set(kept) & set(lines)) <= 4


GITHUB = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


@pytest.mark.parametrize("at", [2, 4, 5, 20])
@pytest.mark.parametrize(
    "between",
    [
        "\xad", "\u200b", "\u200e", "\u202c", "\u2063", "\ufe0f", "\ufeff", "\U000e0041", "\u034f",
        "\\u200b", "\\u00ad", "\x9b31m", "\x1b(B",
        "<wbr>", "<wbr/>", "<WBR>", "</b><b>", '</span><span class="hl">', "<!-- -->", "&shy;",
        "&ZeroWidthSpace;", "&#8203;",
        "&#xAD;", "&amp;shy;", "\x1b[0m\x1b[1;31m", "\x1b[0m\x1b]8;;https://x.dev/a\x07", "\x1b]8;;\x1b\\",
        "\\x1b[31m", "\\033[0m", "^[[0m", "\\u001b[0m", "<b>\u200b</b>\xad",
    ],
)  # fmt: skip
def test_what_shows_nothing_within_a_token_hides_nothing(between: str, at: int) -> None:
    redacted, _ = redact(f"use {GITHUB[:at]}{between}{GITHUB[at:]} now")
    assert GITHUB[at + 8 :] not in redacted
    assert redacted.startswith("use ")
    assert redacted.endswith(" now")


@pytest.mark.parametrize(
    "text",
    [
        GITHUB.replace("_", "&lowbar;"), GITHUB.replace("_", "&#95;"), GITHUB.replace("_", "&#x5f;"),
        GITHUB.replace("_", "&amp;#95;"), "".join(f"&#{ord(each)};" for each in GITHUB), f"\x1b[32m{GITHUB}\x1b[39m",
        f"\x1b]8;;https://x.dev\x1b\\{GITHUB}\x1b]8;;\x1b\\",
        "sk&#45;ant&#45;api03&#45;" + "q7Wm2Zr9Lk4Tn8Vb3Xc6" * 4 + "&#45;AA",
    ],
)  # fmt: skip
def test_letters_that_are_named_by_number_hide_nothing(text: str) -> None:
    redacted, _ = redact(f"use {text} now")
    assert len(redacted) < 80
    assert redacted.endswith(" now")


@pytest.mark.parametrize(
    "text",
    [
        "<b>key</b> &amp; <i>token</i> &#45; 5&nbsp;%",
        "⚠️ careful ⚠️",
        "\x1b[1mBold\x1b[0m",
        "Promise<a>, Map<b>",
        "a &lt; b",
    ],
)
def test_markup_and_colours_without_secrets_stay(text: str) -> None:
    assert redact(text) == (text, {})


def test_a_backslash_that_is_part_of_a_secret_does_not_save_it() -> None:
    redacted, _ = redact('password = "ab\\next22"')
    assert "next22" not in redacted


def test_the_key_of_a_value_tells_that_it_is_secret() -> None:
    secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    given = event(ToolCalled(tool="Bash", input={"env": {"AWS_SECRET_ACCESS_KEY": secret, "HOME": "/root"}}))
    prepared = prepare(given)
    assert isinstance(prepared.payload, ToolCalled)
    assert prepared.payload.input == {"env": {"AWS_SECRET_ACCESS_KEY": "[redacted:aws-secret-key]", "HOME": "/root"}}


DRAWN = "ptgUzEjfebzJ6sZWdoHIxrXl0gqn87b1"

NAMED = [
    ("Authorization", f"Bearer {DRAWN}"), ("X-Api-Key", DRAWN), ("Cookie", f"sid={DRAWN}"), ("STRIPE_SECRET", DRAWN),
    ("Set-Cookie", f"sid={DRAWN}; HttpOnly"), ("Password", DRAWN),
]  # fmt: skip
"""Names as headers, cookies, variables and forms have them, each with a value that is secret for its name alone."""


@pytest.mark.parametrize(
    "pair",
    [
        lambda name, value: {"name": name, "value": value},
        lambda name, value: {"value": value, "enabled": True, "key": name},
        lambda name, value: {"Name": name, "Value": value},
        lambda name, value: {"headerName": name, "headerValue": value},
        lambda name, value: {"name": name, "value": [value]},
        lambda name, value: {"name": name, "value": {"key": "x", "value": f"{name}: {value}"}},
        lambda name, value: [name, value],
        lambda name, value: (name, [value]),
        lambda name, value: json.dumps({"request": {"headers": [{"name": name, "value": value}]}}),
        lambda name, value: json.dumps({"postData": {"text": json.dumps({name: value})}}, indent=2),
        lambda name, value: json.dumps({"body": json.dumps({"headers": [[name, value]]})}),
    ],
)
@pytest.mark.parametrize(("name", "value"), NAMED)
def test_the_name_in_a_pair_tells_that_its_value_is_secret(
    pair: Callable[[str, str], Any], name: str, value: str
) -> None:
    given = {"url": "https://shop.example.com", "headers": [pair("Accept", "application/json"), pair(name, value)]}
    for payload in (ToolCalled(tool="mcp__http__send", input=given), NoticeReceived(kind="k", data=given)):
        kept = prepare(event(payload))
        assert DRAWN[:8].encode() not in msgspec.json.encode(kept.payload)
        assert b"application/json" in msgspec.json.encode(kept.payload)
        assert prepare(kept) == kept


@pytest.mark.parametrize("header", ["X-Api-Key", "x-auth-token", "Proxy-Authorization"])
def test_the_header_in_a_flat_list_tells_that_the_next_is_secret(header: str) -> None:
    given = {"rawHeaders": ["Accept", "*/*", header, DRAWN, "Host", "shop.example.com"]}
    kept = prepare(event(ToolCalled(tool="mcp__http__send", input=given))).payload
    assert isinstance(kept, ToolCalled)
    cut = "[redacted:assigned-secret]"
    assert kept.input["rawHeaders"] == ["Accept", "*/*", header, cut, "Host", "shop.example.com"]


@pytest.mark.parametrize("option", ["--token", "--api-key", "--db-password", "-token", "--auth_token"])
def test_the_option_in_a_list_of_arguments_tells_that_the_next_is_secret(option: str) -> None:
    given = {"command": "deploy", "args": ["--region", "eu-central-1", option, DRAWN, "--verbose", "now"]}
    kept = prepare(event(ToolCalled(tool="mcp__shell__run", input=given))).payload
    assert isinstance(kept, ToolCalled)
    assert kept.input["args"] == ["--region", "eu-central-1", option, "[redacted:assigned-secret]", "--verbose", "now"]


@pytest.mark.parametrize(
    "given",
    [
        {"name": "Content-Type", "value": "application/json"},
        {"key": "theme", "value": "solarized-dark-2024"},
        {"name": "token", "value": "{{API_TOKEN}}"},
        {"name": DRAWN, "value": "x"},
        {"name": "password " * 40, "value": DRAWN},
        {"args": ["--token", "$TOKEN", "--output", "build/report-2024.json"]},
        {"args": ["--no-token", "--", "src/a.py"]},
        {"args": ["- password", "kx9QmZr4tLw8"]},
        {"columns": ["password", "created_at2"], "headers": [["Content-Type", "text/html2"], ["page", DRAWN]]},
        {"words": ["token", DRAWN[:12], "password"]},
        {"argv": ["bash", "-lc", "git log --since=2024-01-01"]},
    ],
)
def test_what_a_pair_or_an_option_only_names_stays(given: dict[str, Any]) -> None:
    asked = event(ToolCalled(tool="mcp__http__send", input=given))
    assert prepare(asked) == asked


@pytest.mark.parametrize(
    "made",
    [
        lambda n: {"l": ["--password"] * n},
        lambda n: {"l": ["--" + "a" * 190, "b"] * (n // 2)},
        lambda n: {"l": [["a" * 190, "b"]] * (n // 2)},
        lambda n: {"l": [{"name": "n" * 190, "value": "v", "Value": "v", "VALUE": "v"}] * n},
        lambda n: {"name": "n" * 190, "value": ["v"] * n},
        lambda n: {f"{k}value": "v" for k in range(n)},
    ],
)
def test_names_of_many_values_are_read_in_linear_time(made: Callable[[int], dict[str, Any]]) -> None:
    def takes(size: int) -> float:
        payload, least = ToolCalled(tool="x", input=made(size)), math.inf
        for _ in range(3):  # noise only adds time
            began = time.process_time()
            prepare(event(payload))
            least = min(least, time.process_time() - began)
        return least

    assert takes(8_000) < 8 * 3 * takes(1_000) + 0.05


@pytest.mark.parametrize(
    "name", ["ses_3994a054fffedJCLU7MZInAJRI", "msg_01HqR7vT9xKpW3nYbZc5dEfG", "xk_9f8G7h6J5k4L3m2N1p0Q"]
)
def test_what_a_client_drew_as_a_name_stays_as_it_is(name: str) -> None:
    given = event(ToolReturned(text="ok", tool="Bash", line=name, call=name))
    given = msgspec.structs.replace(given, session_id=name, dedupe_key=f"transcript:opencode:{name}:0")
    assert prepare(given) == given


def test_every_string_of_an_event_is_looked_at() -> None:
    payload = ToolReturned(
        text=KEY, tool=KEY, file=f"/w/{KEY}.txt", branch=KEY, patch=(Hunk(1, 1, (" a", f"+{KEY}")),), line=KEY, call=KEY
    )
    prepared = prepare(event(payload, location=f"/w/{KEY}"))
    assert isinstance(prepared.payload, ToolReturned)
    stored = msgspec.json.encode(prepared.payload) + prepared.location.encode()
    assert KEY.encode() not in stored
    assert stored.count(MARK.encode()) == 5
    assert prepared.location.startswith("/~"), "a place that is not kept as it is lies nowhere"
    assert prepared.payload.line == prepared.payload.call != ""  # two that differ have to stay two
    named = prepare(event(NoticeReceived(kind="x", data={KEY: {"deep": [[KEY]]}})))
    assert KEY.encode() not in msgspec.json.encode(named.payload)


def test_a_match_reaches_over_no_two_texts_of_an_event() -> None:
    value = "q7Wm2Zr9Lk4Tn8Vb3Xc6"
    cut = prepare(event(ToolReturned(text=f"password =\n{value}", tool="Bash"))).payload
    assert isinstance(cut, ToolReturned)
    assert value not in cut.text, "as one text they are a name and its value"
    texts = ["password =", value, KEY[:10], KEY[10:]]
    apart = event(ToolCalled(tool="Bash", input={"a": texts, "b": [KEY]}))
    payload = prepare(apart).payload  # the last text has all the others looked at
    assert isinstance(payload, ToolCalled)
    assert payload.input == {"a": texts, "b": [MARK]}


def test_what_is_remembered_of_a_place_holds_for_one_set_of_rules() -> None:
    given = event(ToolReturned(text="ok", tool="Bash"), location="/work/bluebird")
    assert prepare_all([given], redactor_of((), anonymize=False)).events[0].location == given.location
    excluding = redactor_of(("bluebird",), anonymize=False)
    assert "bluebird" not in prepare_all([given], excluding).events[0].location


class Leaking(Values):
    """Payloads of which every text and every name holds a secret."""

    def text(self, length: int) -> str:
        return f"it is {KEY}, as said"

    def name(self) -> str:
        return KEY


@pytest.mark.parametrize("kind", sorted(event_types()))
def test_no_string_of_any_kind_of_event_keeps_a_secret(kind: str) -> None:
    payload = Leaking(random.Random(1), "").made(event_types()[kind].payload)
    prepared = prepare(event(payload, location=f"/w/{KEY}"))
    assert KEY.encode() not in msgspec.json.encode(prepared)


def test_a_name_that_holds_a_secret_gives_way_to_a_digest_and_stays_one_name() -> None:
    redactor = anonymizing(r"\d{4}")

    def named(session: str, **more: str) -> NewEvent:
        given = msgspec.structs.replace(
            event(PromptSubmitted(text="a plain text")), stream=f"session/codex/{session}", session_id=session,
            dedupe_key=f"transcript:codex:{session}:1:0", **more,
        )  # fmt: skip
        return prepare_all([given], redactor).events[0]

    first, again, other = named(KEY, actor=KEY), named(KEY), named(KEY[:-1] + "A")
    assert KEY.encode() not in msgspec.json.encode(first)
    assert first.stream == f"session/codex/{first.session_id}"
    assert (first.stream, first.session_id, first.dedupe_key) == (again.stream, again.session_id, again.dedupe_key)
    assert len({first.dedupe_key, other.dedupe_key, named("2026-1234").dedupe_key}) == 3
    assert named("2026-1234").session_id == "2026-1234", "a user's own patterns rename nothing"
    assert prepare(first) == first
    whole = prepare(msgspec.structs.replace(first, stream=f"{KEY}/{KEY}"))
    assert KEY not in whole.stream


def test_a_private_key_is_cut_from_patches_numbered_lines_and_where_its_end_is_missing() -> None:
    numbered = "\n".join(f"{number:6}→{line}" for number, line in enumerate(PEM.split("\n"), 1))
    patch = (Hunk(1, 1, tuple("+" + line for line in PEM.split("\n"))),)
    for payload in (PromptSubmitted(text=PEM), PromptSubmitted(text=numbered), ToolReturned(patch=patch)):
        stored = msgspec.json.encode(prepare(event(payload)).payload)
        assert b"MIIEog" not in stored
        assert b"SxGuMXHk9" not in stored


@pytest.mark.parametrize(
    "front", ["", "+", "> ", "  12\t", "2026-03-02T12:00:01Z [app] INFO: ", "    // ", '    "', "#| "]
)
@pytest.mark.parametrize("kind", ["RSA PRIVATE KEY", "PRIVATE KEY", "PGP PRIVATE KEY BLOCK", "ENCRYPTED PRIVATE KEY"])
def test_a_key_block_is_cut_whatever_stands_before_its_lines(front: str, kind: str) -> None:
    body = [
        "MIIEogIBAAKCAQEAjosMtDUqbE1/8zxZac1t8fkh2SxGuMXHk9",
        "aGVsbG8gd29ybGQgMTIzNDU2Nzg5MCB0aGlzIGlzIG5vdA",
        "q7Wm2Zr9Lk4Tn8Vb",
    ]
    lines = [f"-----BEGIN {kind}-----", *body, f"-----END {kind}-----"]
    end = '\\n" +' if front.endswith('"') else ""
    text = "before\n" + "\n".join(f"{front}{line}{end}" for line in lines) + "\nafter"
    left, _ = redact(text)
    assert not [line for line in body if line in left]
    assert left.startswith("before\n")
    assert left.endswith("\nafter")


def test_code_that_speaks_of_a_key_block_is_left() -> None:
    text = (
        'begin, end = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"\nif begin in text and end in text: ...'
    )
    assert redact(text) == (text, {})


@pytest.mark.parametrize(
    "text",
    [
        "ACME_API_KEY={}", "export ACME_TOKEN='{}'", "acme_token: {}", '{{"acmeToken": "{}"}}', 'acme_secret = "{}"',
        "[acme]\ntoken={}", "X-Acme-Key: {}", "GET /v1?api_key={}&page=2", "acme --api-key {}", "acme --token={}",
        'const acmeSecret: string = "{}";', 'acmeKey := "{}"', 'client.set("acme_token", "{}")', "ENV ACME_TOKEN {}",
        'os.environ["ACME_TOKEN"] = "{}"', '<add key="AcmeKey" value="{}" />', ":acme_token => '{}'",
        "Authorization: Bearer {}", "acme SECRET {}", "Endpoint=sb://a/;SharedAccessKey={}", "acm_{}", "sk_live_{}",
    ],
)  # fmt: skip
def test_a_secret_of_a_vendor_nobody_heard_of_is_known_by_its_name(text: str) -> None:
    secret = "q7Wm2Zr9Lk4Tn8Vb3Xc6Pd5H"
    left, counts = redact(text.format(secret))
    assert secret not in left
    assert sum(counts.values()) == 1
    assert redact(left) == (left, {})


@pytest.mark.parametrize("secret", ["u8jzPde0IgxLd6GncfBAepfJ", "69dad8199bfca8b6f3a6a9421cc1c930"])
@pytest.mark.parametrize("line", [
    'DB_PASSWORD = os.getenv("DB_PASSWORD", "{}")', 'password = os.environ.get("DB_PASSWORD", "{}")',
    '$pass = getenv("DB_PASSWORD") ?: "{}";', 'password = os.getenv("X", "{}")', "password: ENV['X'] || '{}'",
    'val token = System.getenv("X") ?: "{}"', 'let secret = env::var("X").unwrap_or("{}")',
])  # fmt: skip
def test_what_a_program_falls_back_on_for_a_secret_is_one(line: str, secret: str) -> None:
    assert secret not in redact(line.replace("{}", secret))[0]


@pytest.mark.parametrize("text", [
    "jdbc:postgresql://db.internal:5432/shop?user=app&password={}", "https://api.example.com/x?access_token={}&a=1",
    "ansible_become_pass: {}", "POST /login user=dana&password={}",
    '{"postData": {"params": [{"name": "password", "value": "{}"}]}}', "wss://acme.dev/?token={}",
])  # fmt: skip
def test_of_letters_alone_too_is_what_stands_where_only_a_secret_does(text: str) -> None:
    secret = "niNQTOZmLtma"
    assert secret not in redact(text.replace("{}", secret))[0]


@pytest.mark.parametrize(
    "text",
    [
        "https://acme.dev/login?password=&token=refreshToken",
        "ansible_become_pass: '{{ vault_pass }}' and ansible_password=lookup('env', 'SSH_PASS')",
        "password = os.environ['DB_PASSWORD'] or os.getenv('DB_PASS', 'db_password_name')",
        'cache_key = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"',
        'key: "018427c2-6807-4b10-b33b-3bfc78dd5c73"',
        "primaryKey: user_id_2024_sequence",
        "token = create_access_token_v2(user)",
        "nextPageToken=q7Wm2Zr9Lk4Tn8Vb3Xc6",
        "secret = config.vault2.secrets.acme",
        "auth: src/middleware/auth2/handler3.ts",
        "toolu_q7Wm2Zr9Lk4Tn8Vb3Xc6Pd5H call_q7Wm2Zr9Lk4Tn8Vb3Xc6Pd5H",
        "app-private-9f8e7d6c5b4a39281706f5e4d3c2b1a0-arm64 pack-9f8e7d6c5b4a39281706f5e4d3c2b1a0-idx",
        "image-9f8e7d6c5b4a39281706f5e4d3c2b1a0 v0.0.0-20220301184237-5011da428d02",
        '"integrity": "sha512-q7Wm2Zr9Lk4Tn8Vb3Xc6Pd5Hq7Wm2Zr9Lk4Tn8Vb3Xc6Pd5H=="',
        'TOKEN="your_token_1234567890_here"',
        "password: ${DB_PASSWORD_2024_PRODUCTION}",
        "-H 'X-Api-Key: $ACME_KEY_1234567890'",
        "api.v1.endpoints.feed and apps.v1.Deployment.spec",
    ],
)
def test_what_is_drawn_or_named_and_no_secret_is_left(text: str) -> None:
    assert redact(text) == (text, {})


def test_vendors_shapes_are_shipped_as_published_and_find_what_they_are_for() -> None:
    folder = published.FOLDER / "secrets-kingfisher" / "rules"
    if not folder.is_dir():
        pytest.skip(published.lacking(folder))
    rules = vendors()
    taken = [(taken, rule) for _, rule in published_rules(folder) if (taken := as_shipped(rule))]
    assert [(each["id"], each["pattern"]) for each, _ in taken] == [(rule.id, rule.pattern) for rule in rules]
    examples = [example for _, rule in taken for example in rule.get("examples") or ()]
    found = [bool(redact(example)[1]) for example in examples]
    assert sum(found) >= 0.97 * len(found)


def test_neighbouring_secrets_that_share_a_delimiter_are_all_cut() -> None:
    redacted, counts = redact(" ".join([KEY] * 3) + f",{KEY}")
    assert KEY not in redacted
    assert counts == {"aws-access-key": 4}


@settings(max_examples=40, deadline=None)
@given(
    st.text(max_size=80), st.sampled_from(["", f" {KEY} ", "password='hunter22'", "\n" + PEM, "postgres://a:b1c2@h/d"])
)
def test_redacting_twice_changes_nothing(text: str, secret: str) -> None:
    once, _ = redact(text + secret)
    assert redact(once) == (once, {})


@pytest.mark.parametrize(
    ("text", "kept", "blocks"),
    [
        ("a <private>b</private> c", f"a {PRIVATE} c", 1),
        ("a <PRIVATE>b\nb</Private> c <private>d</private>", f"a {PRIVATE} c {PRIVATE}", 2),
        ("a <private>b <private>c</private> d</private> e", f"a {PRIVATE} e", 1),
        ("a <private>b", f"a {PRIVATE}", 1),
        ("a <private>b\nc\n \nd", f"a {PRIVATE}\n \nd", 1),
        ("the tag `<private>` cuts\nwhat follows", "the tag `<private>` cuts\nwhat follows", 0),
        ("`<private>b</private>`, <private>c</private>", f"`{PRIVATE}`, {PRIVATE}", 2),
        ("a <private>b <private>c</private>\n\nd", f"a {PRIVATE}\n\nd", 1),
        ("a </private> b", "a </private> b", 0),
    ],
)
def test_private_blocks_are_dropped(text: str, kept: str, blocks: int) -> None:
    assert redact(text) == (kept, {"private": blocks} if blocks else {})
    prepared = prepare(event(PromptSubmitted(text=text)))
    assert isinstance(prepared.payload, PromptSubmitted)
    assert prepared.payload.text == kept


def test_what_no_database_takes_is_cleaned() -> None:
    given = event(ToolCalled(tool="x", input={"a\0": ["\ud800", 2**70, float("nan"), {"b": 1.5}]}))
    prepared = prepare(given)
    assert isinstance(prepared.payload, ToolCalled)
    assert prepared.payload.input == {"a": ["\ufffd", "1.180592e+21", "nan", {"b": 1.5}]}
    assert redact("\0".join(KEY)) == (MARK, {"aws-access-key": 1})


@pytest.mark.parametrize("number", [1e25, -1e19, 9.3e18, 1e305, 1.5, 1e18])
def test_a_number_is_kept_as_it_comes_back(number: float) -> None:
    kept = prepare(event(ToolCalled(tool="x", input={"a": number})))
    assert isinstance(kept.payload, ToolCalled)
    (told,) = kept.payload.input.values()
    # As jsonb holds it: of a large one all digits, so that it is read as a whole number.
    stored = int(told) if isinstance(told, float) and told.is_integer() else told
    again = event(ToolCalled(tool="x", input={"a": stored}))
    assert prepare(again) is again, "an import keeps it otherwise"


@pytest.mark.parametrize("length", [1_200, 3_000, 36_000])
def test_a_place_is_no_longer_than_an_index_takes(length: int) -> None:
    far = "/" + "deep" * (length // 4)
    place = prepare(event(ProjectIdentified(location=far, root=far, repository=far, remote="github.com/a/b"), far))
    assert isinstance(place.payload, ProjectIdentified)
    assert {place.location, place.payload.location, place.payload.root, place.payload.repository} == {normalise(far)}
    assert prepare(place) is place
    assert prepare(event(PromptSubmitted(text="hello"), far)).location == normalise(far)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{KEY}/shop", f"{KEY[:-1]}Z/shop"),
        ("caf\udce9/shop", "caf\udce8/shop"),
        ("na\udce9f/shop", "na\ufffdf/shop"),
        ("<private>a</private>shop", "<private>b</private>shop"),
        ("<memctl-context>a</memctl-context>shop", "<memctl-context>b</memctl-context>shop"),
        ("sh\0op", "shop"),
    ],
    ids=["secret", "bytes", "mark", "private", "injected", "nul"],
)
def test_two_places_stay_two_and_lie_nowhere_else(one: str, other: str) -> None:
    kept = set()
    for path in (f"/work/{one}", f"/work/{other}"):
        place = prepare(event(ProjectIdentified(location=f"{path}/src", root=path), f"{path}/src"))
        assert isinstance(place.payload, ProjectIdentified)
        assert place.location == place.payload.location
        assert place.payload.root == path or not [*above(place.payload.root), *above(place.location)]
        assert prepare(place) is place
        kept |= {place.location, place.payload.root}
    assert len(kept) == 4


def test_a_number_that_a_field_is_for_stays_one_of_which_rows_can_hold_sums() -> None:
    answered = ResponseReceived(text="hello", tokens_in=10**30, tokens_out=-(10**30), tokens_cached=7)
    kept = prepare(event(answered)).payload
    assert kept == ResponseReceived(text="hello", tokens_in=2**40, tokens_out=-(2**40), tokens_cached=7)
    assert decode_payload("response.received", 1, msgspec.json.encode(kept)) == kept
    edited = ToolReturned(tool="Edit", call="1", patch=(Hunk(10**30, 3, ("+x",)),))
    assert getattr(prepare(event(edited)).payload, "patch", ()) == (Hunk(2**40, 3, ("+x",)),)
    pruned = MemoryPruned(memory="m", last_at=1_772_449_200_000_000)
    assert prepare(event(pruned)).payload == pruned


def test_a_session_s_name_is_no_longer_than_its_row_has_room_for() -> None:
    long = "a/b" * 20_000
    named = msgspec.structs.replace(
        event(PromptSubmitted(text="hello")), session_id=long, stream=f"session/codex/{long}"
    )
    kept = prepare(named)
    assert (kept.stream, kept.session_id) == (f"session/codex/{identifier(long)}", identifier(long))
    assert prepare(kept) is kept
    kept = prepare(msgspec.structs.replace(named, stream=f"session/{'agent' * 100}/s", session_id="s"))
    assert kept.stream == f"session/{identifier('agent' * 100)}/s"
    of_before = msgspec.structs.replace(named, payload=EventSkipped(skipped=UUID(int=1)))
    assert prepare(of_before) is of_before, "in a log of before they were bounded, who drops an event of it is heard"


def test_the_name_of_a_line_or_a_call_is_no_longer_than_a_tombstone_has_room_for() -> None:
    long, longer = "a" * 300, "a" * 9_000
    kept = prepare(event(ToolCalled(line=long, parent=longer, call="né" * 100, tool="Bash"))).payload
    assert isinstance(kept, ToolCalled)
    assert (kept.line, kept.parent, kept.call) == (identifier(long), identifier(longer), identifier("né" * 100))


def test_deep_nesting_ends() -> None:
    value: Any = "x"
    for _ in range(250):
        value = {"a": value}
    assert b"nested too deeply" in msgspec.json.encode(prepare(event(ToolCalled(tool="x", input=value))).payload)


@pytest.mark.parametrize("size", [TEXT_CAP * 2, 600_000])
@pytest.mark.parametrize("shift", [-30, -10, 0, 10])
def test_a_secret_that_the_cap_would_cut_in_half_does_not_survive(size: int, shift: int) -> None:
    for at in (10_000 + shift, size - 6_000 + shift):
        text = "." * at + f" {KEY} " + "." * (size - at)
        prepared = prepare(event(PromptSubmitted(text=text)))
        assert isinstance(prepared.payload, PromptSubmitted)
        for part in range(6, len(KEY) + 1):
            assert KEY[:part] not in prepared.payload.text
        assert KEY[-8:] not in prepared.payload.text
        assert prepared.payload.length >= size
        assert len(prepared.payload.text) < TEXT_CAP + 100


MANY = 60_000
LONG = f"password={KEY} " * MANY
"""Some 2 MB of which each word is a secret."""


@pytest.mark.parametrize(
    "made",
    [
        lambda: PromptSubmitted(text=LONG),
        lambda: ToolCalled(tool="Write", input={"content": LONG}),
        lambda: ToolCalled(tool="Write", input={str(n): f"password={KEY}" for n in range(MANY)}),
        lambda: ToolReturned(text=LONG, patch=tuple(Hunk(n, n, (f"password={KEY}",)) for n in range(MANY))),
        lambda: NoticeReceived(kind="k", data={"a": [LONG] * 3}),
        lambda: CommitRecorded(files=(LONG[:60_000],) * 100),
    ],
)
def test_megabytes_of_secrets_are_searched_as_far_as_they_are_kept(made: Callable[[], Observation]) -> None:
    payload, took = made(), []
    for _ in range(2):  # noise only adds time
        began = time.process_time()
        kept = prepare(event(payload)).payload
        took.append(time.process_time() - began)
        if took[-1] < 4:
            break
    assert min(took) < 4
    assert KEY[:6].encode() not in msgspec.json.encode(kept)
    has_one_long = isinstance(kept, (PromptSubmitted, ToolCalled, ToolReturned))
    assert (kept.length > 1_500_000) == has_one_long  # type: ignore[attr-defined]


def drawn(size: int, seed: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(random.Random(seed).choices(letters, k=size))


LINES_OF_SECRETS = {
    "token": lambda n: f'{{"id": {n}, "access_token": "{drawn(400, n)}"}}',
    "jwt": lambda n: f"Set-Cookie: session=eyJ{drawn(40, n)}.eyJ{drawn(1_200, -n)}.{drawn(43, n + 7)}",
    "assigned": lambda n: f"API_SECRET={drawn(500, n)}",
    "url": lambda n: f"postgres://app:{drawn(200, n)}@db.example.com:5432/app",
    "bearer": lambda n: f"Authorization: Bearer {drawn(1_300, n)}",
    "key": lambda n: "\n".join((
        "-----BEGIN RSA PRIVATE KEY-----", *(drawn(64, n * 50 + each) for each in range(25)),
        "-----END RSA PRIVATE KEY-----",
    )),
}  # fmt: skip


@pytest.mark.parametrize(
    "made",
    [
        lambda: ToolCalled(tool="x", input={"a": math.nan, "b": ["c" * 60_000] * 20}),
        lambda: ToolCalled(tool="x", input={"l": [1] * 200_000}),
        lambda: NoticeReceived(kind="k", data={"l": [{}] * 200_000}),
        lambda: CommitRecorded(files=("a",) * 1_500),
        lambda: ToolReturned(text="", patch=tuple(Hunk(1, 1, ()) for _ in range(200_000))),
    ],
)
def test_what_holds_few_characters_is_bounded_by_number(made: Callable[[], Observation]) -> None:
    once = prepare(event(made()))
    assert len(msgspec.json.encode(once.payload)) < 60_000
    assert prepare(once) == once


def test_a_manifest_is_known_for_a_secret_though_its_kind_stands_far_away() -> None:
    value = base64.b64encode(drawn(30, 5).encode()).decode()
    for far in (24_500, 100_000):
        manifest = f"apiVersion: v1\ndata:\n  b: {value}\n  a: {'A' * far}=\nkind: Secret\n"
        for text in (manifest + "---\n" + "x\n" * 300_000, "x\n" * 300_000 + manifest + "---\n"):
            assert value not in msgspec.json.encode(prepare(event(PromptSubmitted(text=text))).payload).decode()


def test_letters_of_full_width_are_read_in_time() -> None:
    began = time.process_time()
    prepare(event(PromptSubmitted(text="ａ\u200b" * 1_000_000)))
    assert time.process_time() - began < 2


@pytest.mark.parametrize("kind", LINES_OF_SECRETS)
def test_of_secrets_that_shrink_no_piece_is_kept_at_any_edge(kind: str) -> None:
    made = LINES_OF_SECRETS[kind]
    pieces = [made(n) for n in range(200_000 // len(made(1)))]
    secrets = {word[at : at + 24] for piece in pieces for word in WORD.findall(piece) for at in range(0, len(word), 12)}
    text = "\nthe beginning\n" + "\n".join(pieces) + "\nthe end"
    for payload in (
        PromptSubmitted(text=text),
        ToolCalled(tool="Bash", input={"command": "." * 5_003 + text}),
        ToolReturned(text="ok", patch=(Hunk(1, 1, tuple(text.split("\n"))),)),
    ):
        kept = msgspec.json.encode(prepare(event(payload)).payload).decode()
        assert not secrets & {kept[at : at + 24] for at in range(len(kept) - 23)}
        assert "the beginning" in kept
        assert "the end" in kept or isinstance(payload, ToolReturned)  # of a patch the first lines are kept


WORD = re.compile(r"[A-Za-z0-9]{36,}")


@pytest.mark.parametrize(
    "said", ["Authorization: Bearer {}", 'password="{}"', "{}", "a {}", "-----BEGIN PRIVATE KEY-----\\n{}"]
)
def test_of_a_value_without_an_end_nothing_is_kept(said: str) -> None:
    value = drawn(500_000, 1)
    for before in ("", "x " * 4_990, "x " * 150_000):
        for behind in ("", " y" * 2_000, " y" * 150_000):
            kept = prepare(event(PromptSubmitted(text=f"AWS={KEY} {before}{said.format(value)}{behind}"))).payload
            assert isinstance(kept, PromptSubmitted)
            assert not re.search("[A-Za-z0-9]{200}", kept.text)


@pytest.mark.parametrize("field", ["subagent", "asked"])
def test_a_long_name_that_holds_a_secret_gives_way_to_a_digest_in_time(field: str) -> None:
    began = time.process_time()
    for name in ("x " * 120_000 + KEY, LONG):
        kept = prepare(event(ToolReturned(text="", **{field: name}))).payload
        assert KEY not in msgspec.json.encode(kept).decode()
    assert time.process_time() - began < 2


@pytest.mark.parametrize("size", [20_000, 500_000])
@pytest.mark.parametrize("depth", [1, 40, 600, 5_000])
@pytest.mark.parametrize("odd", ["\ud800", "\0", f"password={KEY}"])
def test_no_input_however_odd_and_long_fails(size: int, depth: int, odd: str) -> None:
    deep: Any = odd
    for _ in range(depth):
        deep = {odd: deep}
    given = {"content": f"{odd} " + "a" * size, odd: deep, "list": [odd, [deep]] * 3}
    for payload in (ToolCalled(tool="Write", input=given), NoticeReceived(kind="k", data=given)):
        once = prepare(event(payload))
        assert KEY not in msgspec.json.encode(once.payload).decode()
        assert prepare(once) == once


def test_a_private_block_that_begins_where_nothing_is_kept_is_dropped_to_its_end() -> None:
    text = "." * 20_000 + "<private>" + "\n\nabc" * 100_000 + "</private>" + "." * 100
    kept = prepare(event(PromptSubmitted(text=text))).payload
    assert isinstance(kept, PromptSubmitted)
    assert "abc" not in kept.text


def test_the_note_of_what_was_left_out_counts_all_of_it() -> None:
    kept = prepare(event(PromptSubmitted(text=f"{KEY} " + "." * 999_000))).payload
    assert isinstance(kept, PromptSubmitted)
    assert kept.length == len(KEY) + 999_001
    assert f"[… {kept.length - TEXT_CAP} characters left out …]" in kept.text
    assert kept.text.count("left out") == 1


def test_long_things_are_capped_once() -> None:
    lines = tuple("+" + "x" * 99 for _ in range(1000))
    for payload in (
        PromptSubmitted(text="y" * 50_000),
        ToolCalled(tool="Write", input={"content": "y" * 50_000, "more": ["z" * 20_000] * 5, "n": 1}),
        ToolReturned(file="/" * 9000, patch=(Hunk(1, 1, lines), Hunk(5, 5, lines))),
        NoticeReceived(kind="k", data={str(n): "v" * 500 for n in range(900)}),
    ):
        once = prepare(event(payload))
        assert len(msgspec.json.encode(once.payload)) < 40_000
        assert prepare(once) == once
    call = prepare(event(ToolCalled(tool="Write", input={"content": "y" * 50_000})))
    assert isinstance(call.payload, ToolCalled)
    assert call.payload.length == 50_014


def test_memctls_own_words_are_marked_and_not_kept_again() -> None:
    block = f"{CONTEXT_BLOCK_OPEN}\nThis error was met before:\n- 2026-01-02 it was zq7vkx19mw\n{CONTEXT_BLOCK_CLOSE}"
    whole = prepare(event(PromptSubmitted(text=f"before {block} between {block}\nfix it")))
    assert isinstance(whole.payload, PromptSubmitted)
    told = f"{CONTEXT_BLOCK_OPEN}…{CONTEXT_BLOCK_CLOSE}"
    assert (whole.payload.text, whole.payload.injected) == (f"before {told} between {told}\nfix it", True)
    assert prepare(whole) == whole
    torn = prepare(event(ToolReturned(tool="Bash", text=f"ok\n{block[:-20]}")))
    notice = prepare(event(NoticeReceived(kind="attachment", data={"content": [{"text": block}]})))
    statement = prepare(event(DiscoveryNoted(text=f"it said {block}")))
    in_json = prepare(event(ToolReturned(tool="Bash", text=json.dumps({"content": block})[:-20])))
    for each in (torn, notice, statement, in_json):
        assert "zq7vkx19mw" not in str(each.payload)


def test_the_words_of_a_person_who_names_the_tag_are_kept() -> None:
    block = f"{CONTEXT_BLOCK_OPEN}\nThis error was met before:\n- 2026-01-02 it was zq7vkx19mw\n{CONTEXT_BLOCK_CLOSE}"
    for asked in (
        f"why does {CONTEXT_BLOCK_OPEN} show twice? And mend the cart",
        f"{CONTEXT_BLOCK_OPEN}\nshows twice here:\n- in the prompt\n- in the answer",
    ):
        alone = prepare(event(PromptSubmitted(text=asked)))
        assert alone.payload == PromptSubmitted(text=asked)
        before = prepare(event(PromptSubmitted(text=f"{asked}\n{block}\nnow")))
        assert before.payload == PromptSubmitted(
            text=f"{asked}\n{CONTEXT_BLOCK_OPEN}…{CONTEXT_BLOCK_CLOSE}\nnow", injected=True
        )


@pytest.mark.parametrize("length", [1, 3])
def test_what_recall_writes_is_known_again_when_its_end_is_cut_off(length: int) -> None:
    told = block("Memory of earlier sessions:", [line(f"2026-01-0{n} word{n}", f"id{n}") for n in range(1, length + 1)])
    for cut in (-1, -len(CONTEXT_BLOCK_CLOSE), -40):
        kept = prepare(event(PromptSubmitted(text=f"ask\n{told.text[:cut]}")))
        assert kept.payload == PromptSubmitted(text=f"ask\n{CONTEXT_BLOCK_OPEN}…{CONTEXT_BLOCK_CLOSE}", injected=True)


@pytest.mark.parametrize(
    "name",
    ["mcp__memctl__search", "mcp__plugin_memctl_memctl__search", "memctl_search", "mcp_memctl_search", "memctl.search"],
)
def test_what_memctls_own_tools_answered_is_not_kept_again(name: str) -> None:
    asked = prepare(event(ToolCalled(tool=name, input={"query": "which port"}))).payload
    assert isinstance(asked, ToolCalled)
    assert (asked.injected, asked.input) == (True, {"query": "which port"})
    answered = prepare(event(ToolReturned(tool=name, text="Dana said zq7vkx19mw")))
    assert isinstance(answered.payload, ToolReturned)
    assert (answered.payload.injected, answered.payload.length) == (True, 20)
    assert "zq7vkx19mw" not in str(answered.payload)
    assert prepare(answered) == answered


@pytest.mark.parametrize("name", ["mcp__linear__search", "memctl", "mcp__memctlx__search", "Bash"])
def test_what_other_tools_answered_is_kept(name: str) -> None:
    answered = event(ToolReturned(tool=name, text="Dana said zq7vkx19mw"))
    assert prepare(answered) is answered


def test_compiled_rules_are_kept_for_the_next_process_and_damage_is_noticed(tmp_path: Path) -> None:
    rules = [Rule(id="t", marker="t", pattern="(t[0-9]{6})")]
    for _ in range(2):
        assert Redactor(rules, cache=tmp_path).redact("t123456")[0] == "[redacted:t]"
    (kept,) = tmp_path.glob("*.hsdb")
    assert all(each.stat().st_mode & 0o077 == 0 for each in tmp_path.iterdir())
    kept.write_bytes(kept.read_bytes()[:-9])
    assert Redactor(rules, cache=tmp_path).redact("t123456")[0] == "[redacted:t]"
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    assert Redactor(rules, cache=blocked).redact("t123456")[0] == "[redacted:t]"


COMPILES = """
import pathlib, sys
from memctl.infra.redaction import Redactor, rules, scanner
print("begun", flush=True)
Redactor([rules.Rule(id="t", marker="t", pattern="(t[0-9]{6})")], cache=pathlib.Path(sys.argv[1]))
print(scanner._once.cache_info().misses)
"""
"""Says how often it compiled."""


def test_of_processes_that_start_together_one_compiles_the_rules(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    second.mkdir()
    command = [sys.executable, "-c", COMPILES]
    with (second / "rules.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with subprocess.Popen([*command, second], stdout=subprocess.PIPE, text=True) as waiting:
            assert waiting.stdout is not None
            assert waiting.stdout.readline() == "begun\n"
            alone = subprocess.run([*command, first], stdout=subprocess.PIPE, text=True, check=True)
            assert alone.stdout.split() == ["begun", "1"]
            (made,) = first.glob("*.hsdb")
            made.rename(second / made.name)
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert waiting.stdout.read() == "0\n"


def test_known_leaks_are_found() -> None:
    folder = published.FOLDER / "secrets-leaky-repo"
    if not folder.is_dir():
        pytest.skip(published.lacking(folder))
    clean = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and ".leaky-meta" not in path.parts and path.stat().st_size < 100_000:
            text = path.read_bytes().decode("utf-8", "replace")
            if not redact(text)[1]:
                clean.append(path.name)
    # Not secret, or without any shape to know it by (a bare key, positional fields, arguments of a call).
    assert set(clean) <= {
        ".gitattributes", "LICENSE", "README.md", "id_rsa.pub", "master.key", "salesforce.js", ".pgpass", ".esmtprc",
        "high-entropy-misc.txt", "key4.db", "cert9.db",
    }  # fmt: skip


@pytest.mark.parametrize(
    "filler",
    [
        "a" * 200_000,
        " " * 200_000,
        "password=" * 20_000,
        "://a:" * 40_000,
        "\\" * 200_000,
        "A1" * 90_000,
        "key=a1" * 30_000,
        "acme key 1 " * 20_000,
        "acm_1" * 40_000,
        "apiVersion: kind: Secret\na1: b1b1b1\n" * 5_000,
        "-----BEGIN PRIVATE KEY-----" * 8_000,
        "Private-Lines: 1 " * 10_000,
        "SE9NRT0vcm9vdApQQVRIPS91c3IvYmlu " * 6_000,
        "ghp_a1\n" * 30_000,
        "sk-a1b2\n  " * 20_000,
        "token [ key=q7Wm2Zr9Lk4T " * 24_000,
        'password b="password=string2 ' * 20_000,
        "pass='pass=\"pass=`" * 12_000,
        'pass="\\"' * 25_000,
        "key=[1" + ",12" * 60_000 + "]",
        '"name": "password", "value": "a b(1", ' * 5_000,
        'encrypt = "' + "A1b/" * 50_000,
        "chpasswd a:b1c2d3\n" * 12_000,
        "é@é." * 40_000,
        "     1→password:\n" * 12_000,
        "+password" * 20_000,
        "a/b.c:1:password\n" * 12_000,
        "12" * 90_000 + "→password\n12→a",
        "password <<" * 18_000,
    ],
)
def test_no_text_takes_long(filler: str) -> None:
    redact("what is made at the first use")
    began = time.process_time()
    redact(filler)
    redact(base64.b64encode(filler.encode()[:100_000]).decode() + KEY)
    assert time.process_time() - began < 5  # quadratic searches would take minutes


def test_what_a_user_wants_cut_is_cut_also_by_patterns_that_hyperscan_does_not_take() -> None:
    redactor = redactor_of(
        ("(?i)project bluebird", r"(?<=ticket )OPS-\d+", "codename=([a-z]+)", r"x{4}(?!y)"), anonymize=False
    )
    text, counts = redactor.redact(f"Project Bluebird, ticket OPS-1234, codename=osprey, {KEY} xxxxxx")
    assert text == (
        f"[redacted:excluded], ticket [redacted:excluded], codename=[redacted:excluded], {MARK} [redacted:excluded]xx"
    )
    assert counts == {"excluded": 4, "aws-access-key": 1}


def test_a_user_s_patterns_leave_the_compiled_rules_as_they_are(tmp_path: Path) -> None:
    redactor_of((), anonymize=False, cache=tmp_path)
    compiled = {file.name: file.stat().st_mtime_ns for file in tmp_path.glob("*.hsdb")}

    redactor_of(("(?i)project bluebird", r"(?<=ticket )OPS-\d+"), anonymize=False, cache=tmp_path)

    assert len(compiled) <= 1  # none without Hyperscan
    assert {file.name: file.stat().st_mtime_ns for file in tmp_path.glob("*.hsdb")} == compiled


@pytest.mark.parametrize(
    ("pattern", "text", "kept"),
    [
        (r"고객\w+", "환불: 고객홍길동, 끝", "환불: [redacted:excluded], 끝"),
        ("사번.{3}번", "사번홍길동번 ☎", "[redacted:excluded] ☎"),
        ("(?i)müller", "Frau MÜLLER", "Frau [redacted:excluded]"),
        (r"\b홍길동\b", "é홍길동 홍길동 님", "é홍길동 [redacted:excluded] 님"),
        ("[À-ÿ]{2,}", "naïïve 한글", "na[redacted:excluded]ve 한글"),
        (r"이름: (\S+)(?= 님)", "이름: 홍길동 님", "이름: [redacted:excluded] 님"),
        (r"(?<=(홍길동) )님", "é 홍길동 님", "é [redacted:excluded] 님"),
    ],
)
def test_a_users_pattern_means_letters_of_any_script(pattern: str, text: str, kept: str) -> None:
    redactor = Redactor([user_rule(1, pattern)])
    assert redactor.redact(text)[0] == kept
    assert redactor.redact(json.dumps({"a": f'"{text}"'}, ensure_ascii=False))[0] == json.dumps(
        {"a": f'"{kept}"'}, ensure_ascii=False
    )


@pytest.mark.parametrize("pattern", ["(", "x*", "a|", "[z-a]", r"((\w)\2{4,})"])
def test_a_pattern_that_cannot_be_used_is_refused(pattern: str) -> None:
    with pytest.raises(BadUserPattern):
        user_rule(1, pattern)


def test_personal_data_is_cut_where_it_is_asked_for_and_left_otherwise() -> None:
    redactor = anonymizing()
    for rule in personal_rules():
        alone = Redactor([rule])
        for example in rule.examples:
            assert alone.redact(example)[1] == {rule.marker: 1}, example
            assert redactor.redact(example)[1], example
            assert redact(example) == (example, {})
        for example in rule.negative_examples:
            assert alone.redact(example) == (example, {}), example
    text, counts = redactor.redact("김철수 900101-1234567, 010-1234-5678, kim@orchard.co.kr")
    assert text == "김철수 [redacted:resident-number], [redacted:phone-number], [redacted:email-address]"
    assert counts.total() == 3


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("an jörg.müller@bücher.de.", "an [redacted:email-address]."),
        ("a иван@почта.рф", "a [redacted:email-address]"),
        ("请写信给：用户@例子.广告。", "请写信给：[redacted:email-address]。"),
        ("δοκιμή@παράδειγμα.ελ", "[redacted:email-address]"),
        ("06 12 34 56 78", "[redacted:phone-number]"), ("Tel. 030/901820", "Tel. [redacted:phone-number]"),
        ("06-12345678", "[redacted:phone-number]"), ("079 123 45 67", "[redacted:phone-number]"),
        ("at 415.555.2671.", "at [redacted:phone-number]."), ("8 (495) 123-45-67", "[redacted:phone-number]"),
        ("(11) 91234-5678", "[redacted:phone-number]"), ("手机：13800138000", "手机：[redacted:phone-number]"),
        ("Телефон 98765 43210", "Телефон [redacted:phone-number]"), ("138-0013-8000", "[redacted:phone-number]"),
        ("00000000  06 12 34 56 78 9a bc de", ""),
        ("port 98765 43210", ""), ("v10.415.555.2671", ""), ("кофе@v2", ""),
        ("at 01.02.2026 06:12:34", ""), ("0700/0600", ""), ("№ 8-495-123", ""),
        ("id 13800138000", ""), ("ratio 030/90", ""),
    ],
)  # fmt: skip
def test_addresses_and_numbers_are_cut_as_other_countries_write_them(of_people: Redactor, text: str, left: str) -> None:
    assert of_people.redact(text)[0] == (left or text)


@settings(deadline=None)
@given(st.integers(10**12, 10**13 - 1))
def test_thirteen_digits_in_a_row_are_a_resident_number_only_with_a_date_and_a_check_digit(number: int) -> None:
    text = str(number)
    weighed = sum(int(d) * w for d, w in zip(text, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5), strict=False))
    if resident_number(text):
        assert (11 - weighed % 11) % 10 == int(text[12])
        assert 1 <= int(text[2:4]) <= 12
        assert 1 <= int(text[4:6]) <= 31


ROOTS = (
    "2001:503:ba3e::2:30", "2801:1b8:10::b", "2001:500:2::c", "2001:500:2d::d", "2001:500:a8::e", "2001:500:2f::f",
    "2001:500:12::d0d", "2001:500:1::53", "2001:7fe::53", "2001:503:c27::2:30", "2001:7fd::1", "2001:500:9f::42",
    "2001:dc3::35",
)  # fmt: skip
"""Addresses of the root name servers."""


def _spelt(address: str) -> Iterator[str]:
    """An IPv6 address in the forms of RFC 4291 (2.2) and those that RFC 5952 (2) warns of, as texts have them."""
    whole = ipaddress.IPv6Address(address).exploded
    plain = ":".join(part.lstrip("0") or "0" for part in whole.split(":"))
    *high, a, b = plain.split(":")
    tail = f"{int(a, 16) >> 8}.{int(a, 16) & 255}.{int(b, 16) >> 8}.{int(b, 16) & 255}"
    for form in (address, address.upper(), whole, plain, ":".join([*high, tail])):
        yield f"the client {form} asked"
        yield f"http://[{form}]:8080/x"
        yield f"ip={form},"
        yield f"peer [{form}]: closed"
        yield f"route {form}/64"


@pytest.fixture(scope="module")
def of_people() -> Redactor:
    return anonymizing()


@pytest.mark.parametrize("address", ROOTS)
def test_an_ipv6_address_is_cut_in_every_form_in_which_it_is_written(of_people: Redactor, address: str) -> None:
    left = [text for text in _spelt(address) if of_people.redact(text)[0] == text]
    assert left == []


@pytest.mark.parametrize(
    "text",
    [
        "::1", "fe80::1%eth0", "fd12:3456:789a::1", "2001:db8::ff00:42:8329", "2001:DB8:0:0:8:800:200C:417A", "ff02::1",
        "12:30:45", "00:1B:44:11:3A:B7", "std::vector::at", "a::b", "crate::net::tcp", "1:2:3", "feed::beef(x)",
        "sha1 da:39:a3:ee:5e:6b:4b:0d:32:55:bf:ef:95:60:18:90", "10:11:12:13", "ratio 16::9",
    ],
)  # fmt: skip
def test_what_only_looks_like_an_ipv6_address_or_is_nobodys_stays(of_people: Redactor, text: str) -> None:
    assert of_people.redact(f"see {text} there")[0] == f"see {text} there"


ONE, OTHER = "q7Wm2Zr9Lk4Tn8Vb3Xc6", "Pd5H2bY8sR4jMq7Wm2Zr"


@pytest.mark.parametrize(
    "text",
    [
        f'api_key = "{ONE}" + "{OTHER}"',
        f"const apiSecret = '{ONE}' +\n  '{OTHER}';",
        f'token = ("{ONE}"\n         "{OTHER}")',
        f'$apiKey = "{ONE}" . "{OTHER}";',
        f"export AUTH_TOKEN={ONE}\\\n{OTHER}",
        f"client_secret: >-\n  {ONE}\n  {OTHER}\n",
    ],
)
def test_a_secret_is_cut_with_what_is_joined_to_it(text: str) -> None:
    left, _ = redact(text)
    assert ONE not in left
    assert OTHER not in left


def test_what_only_stands_beside_a_secret_is_left() -> None:
    for text in (f'["{ONE}", "{OTHER}"]', f'token = "{ONE}"\nname = "{OTHER}"', f'token="{ONE}" + "and so on"'):
        assert redact(f"api_{text}")[0].count("[redacted") <= 1
        assert text.rpartition('"')[0].rpartition('"')[2] in redact(f"api_{text}")[0]


@pytest.mark.parametrize("name", ["ＡＰＩ＿ＫＥＹ＝", "api\u200b_key=", "\ufeffapi_key：", "api_k\u2060ey = "])
def test_a_name_is_read_as_people_see_it(name: str) -> None:
    left, counts = redact(f"보기 {name}{ONE} und weiter")
    assert (ONE in left, counts) == (False, {"assigned-secret": 1})
    assert left.startswith("보기 ")
    assert left.endswith(" und weiter")


ENVIRONMENT = f"HOME=/root\nLANG=C.UTF-8\nPATH=/usr/local/bin:/usr/bin\nACME_TOKEN={ONE}\nEDITOR=vi\n"
ENCODED = base64.b64encode(ENVIRONMENT.encode()).decode()
WRAPPED = base64.encodebytes(ENVIRONMENT.encode()).decode().strip()


@pytest.mark.parametrize(
    "run",
    [
        ENCODED, WRAPPED, WRAPPED.replace("\n", "\r\n"), ENCODED[5:],
        base64.urlsafe_b64encode(f"a=?>?>?\n{ENVIRONMENT}".encode()).decode(),
        base64.b64encode(f"이름=홍길동\n{ENVIRONMENT}".encode()).decode(),
        base64.b64encode(b"API_KEY=abcdef0123456789").decode(),
    ],
)  # fmt: skip
@pytest.mark.parametrize("around", ["{}", "$ printenv | base64\n{}\n$ ls", "data:text/plain;base64,{}", "env: {}"])
def test_what_base64_hides_is_cut_with_all_of_its_run(run: str, around: str) -> None:
    before, after = around.split("{}")
    left, counts = redact(around.format(run))
    assert (left[: len(before)], left[len(left) - len(after) :], counts.keys() & {"name"}) == (before, after, set())
    assert left[len(before) :].startswith("[redacted:")
    assert len(left) < len(around) + 40
    for depth in (1, 2):
        nested = around.format(run)
        for _ in range(depth):
            nested = json.dumps({"data": nested})
        assert run[-20:] not in redact(nested)[0]


@pytest.mark.parametrize(
    "run",
    [
        *(base64.b64encode(ENVIRONMENT.encode(f"utf-16{order}")).decode() for order in ("-le", "", "-be")),
        base64.b64encode(ENCODED.encode()).decode(),
        base64.b64encode(WRAPPED.encode()).decode(), base64.b64encode(zlib.compress(ENVIRONMENT.encode())).decode(),
        base64.urlsafe_b64encode(zlib.compress(ENVIRONMENT.encode(), 9)).decode(),
        base64.b64encode(zlib.compress(ENVIRONMENT.encode() * 3, 1)).decode(),
        base64.b64encode(gzip.compress(ENVIRONMENT.encode())).decode(),
        base64.b64encode(base64.b64encode(zlib.compress(ENVIRONMENT.encode()))).decode(),
    ],
    ids=["UTF-16", "UTF-16 with a mark", "UTF-16 of the other order", "twice", "twice, in lines", "zlib", "zlib, best",
         "zlib, fastest", "gzip", "zlib, twice"],
)  # fmt: skip
@pytest.mark.parametrize("around", ["{}", "powershell -enc {}", "data:;base64,{}"])
def test_what_is_written_wide_packed_or_encoded_twice_hides_nothing_in_base64(run: str, around: str) -> None:
    left, counts = redact(around.format(run))
    assert counts
    assert left.startswith(around.format("[redacted:"))
    assert len(left) < len(around) + 40


def test_what_unpacks_to_gigabytes_is_looked_at_as_far_as_its_beginning() -> None:
    bomb = base64.b64encode(zlib.compress(bytes(50_000_000))).decode()
    began = time.process_time()
    assert redact(f"{bomb} ")[1] == {}
    assert time.process_time() - began < 1


@pytest.mark.parametrize("front", ["+", "-", " ", "> ", "{}\t", "  {}→", "{}: "])
def test_what_base64_hides_is_cut_over_lines_of_a_patch_or_of_a_numbered_file(front: str) -> None:
    lines = base64.encodebytes((ENVIRONMENT * 2 + "EDITOR=emacs\n").encode()).decode().split()
    left, _ = redact("\n".join(front.format(number) + line for number, line in enumerate(lines, 1)))
    assert not [line for line in lines if line in left]


def test_base64_of_an_ordinary_text_and_what_only_looks_like_it_is_left() -> None:
    ordinary = "HOME=/root\nLANG=C.UTF-8\nnext_page_token: abc\nThe password must have eight characters.\n" * 4
    for text in (
        base64.b64encode(ordinary.encode("utf-16-le")).decode(),
        base64.b64encode(base64.b64encode(ordinary.encode())).decode(),
        base64.b64encode(zlib.compress(ordinary.encode())).decode(),
        base64.b64encode(ordinary.encode()).decode(),
        base64.b64encode(base64.b64encode(ENVIRONMENT.encode())).decode()[:40],
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "src/components/applications/NavigationController/SettingsPage",
    ):
        assert redact(text) == (text, {})


TOKENS = (f"ghp_{ONE}Pd5H2bY8sR4jMq7W", KEY, f"sk-ant-api03-{ONE * 4}{OTHER}-wAA")


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("at", [6, 12, -3])
@pytest.mark.parametrize("broken", ["\n", "\r\n", "\\\n", "\n   ", "\n> ", "\\\n  \\", '"\n  "', "'\n    '"])
def test_a_token_that_is_broken_over_two_lines_is_cut_in_both(token: str, at: int, broken: str) -> None:
    if token.startswith("sk-") and at == -3:
        at = -20  # of what has no set length, three letters say nothing
    parts = token[:at], token[at:]
    for text in (f"use {parts[0]}{broken}{parts[1]} and go on", json.dumps({"a": f"use {broken.join(parts)} and"})):
        left, counts = redact(text)
        assert counts, text
        assert not [part for part in parts if part in left], left
        assert " and" in left


def test_of_many_broken_tokens_the_first_are_judged_and_the_others_cut_as_they_stand() -> None:
    broken = [f"{TOKENS[0][:13]}\n  {TOKENS[0][13:27]}\n  {TOKENS[0][27:]}\nand" for _ in range(4 * MOST_BROKEN)]
    left, counts = redact("\n".join(broken))
    assert not [part for part in (TOKENS[0][13:27], TOKENS[0][27:]) if part in left]
    assert counts["token"]


@pytest.mark.parametrize("line", ["Next we go on", "2026-03-02T12:00:01Z done", "https://acme.dev", "foo_bar = 1"])
def test_the_line_below_a_whole_token_is_left(line: str) -> None:
    for token in TOKENS:
        assert redact(f"{token}\n{line}")[0].endswith(f"]\n{line}")
    for word in ("npm_config", "use hf_", "sk-", "the pk_id"):
        assert redact(f"{word}\n{line}") == (f"{word}\n{line}", {})


@pytest.mark.parametrize(
    ("text", "suspect"),
    [
        ("call_Xq7Wm2Zr9Lk4Tn8Vb3Xc6", False),  # ends as a token of a known prefix does, and is an id of a call
        ("acm_Xq7Wm2Zr9Lk4Tn8Vb3Xc6", True),
        ("acm%5FXq7Wm2Zr9Lk4Tn8Vb3Xc6", True),
        (r"acm\u005fXq7Wm2Zr9Lk4Tn8Vb3Xc6", True),
        ("100%25 of C:\\new and \u200ba\x1b[0m", False),  # hides letters, none of them a secret's
    ],
)
def test_only_texts_that_may_hold_a_secret_as_they_read_are_looked_at_again(text: str, suspect: bool) -> None:
    assert default_redactor().suspects(text.encode()) is suspect


def test_what_is_not_looked_at_again_is_kept_as_if_it_had_been(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of strings of one event, each of which may end where a rule expects more."""
    luck = random.Random(5)
    rules = load_rules()
    whole = [text for rule in rules for text in (*rule.examples, *rule.negative_examples) if len(text) < 2_000]
    begun = ["password:", "secret = ", 'api_key="', "-----BEGIN RSA PRIVATE KEY-----", "token", "user: ann\npassword:"]
    events = []
    for number in range(1_500):
        drawn = [luck.choice((luck.choice(whole), luck.choice(begun), "a word or two")) for _ in range(3)]
        if number % 3 == 0:
            drawn = [text[: luck.randrange(1, len(text) + 1)] for text in drawn]
        events.append(event(ToolCalled(tool="Write", input=dict(zip(("path", "old", "new"), drawn, strict=True)))))
    found = [prepare(each) for each in events]
    assert sum(kept != each for kept, each in zip(found, events, strict=True)) > 100
    monkeypatch.setattr(Redactor, "suspects", lambda *_: True)
    assert found == [prepare(each) for each in events]


BEGUN = [rule for rule in load_rules() if rule.of and rule.id.startswith(("memctl.shaped", "memctl.pre", "memctl.dot"))]


@settings(deadline=None)
@given(st.data(), st.sampled_from(BEGUN))
def test_whatever_a_rule_matches_holds_what_it_is_looked_for_by(data: st.DataObject, rule: Rule) -> None:
    letters = st.characters(min_codepoint=32, max_codepoint=126)
    text = data.draw(st.from_regex(rule.pattern.replace(r"\z", r"\Z"), fullmatch=True, alphabet=letters))
    assert patterns.compile(rule.of).search(text)


def test_a_line_of_a_configuration_may_be_the_first() -> None:
    assert redact("password xK9-vLq2Tz") == ("password [redacted:password]", {"password": 1})


@pytest.mark.parametrize("before", ["{:6}\t", "web-1  | ", "{}|"])
def test_the_front_of_each_line_makes_no_table_of_code(before: str) -> None:
    code = ["import pwd", "_PR_SET_PDEATHSIG, _PR_SET_KEEPCAPS, _PR_CAP_AMBIENT, _PR_RAISE = 1, 8, 47, 2", "x = 1"]
    listed = "\n".join(before.format(number) + line for number, line in enumerate(code, 25))
    assert redact(listed) == (listed, {})
    table = ["name, password", "ann, xK9vLq2Tz7Rw4", "bob, pW3nYc8Dm5Hs1"]
    cut = redact("\n".join(before.format(number) + line for number, line in enumerate(table, 25)))[0]
    assert "xK9v" not in cut
    assert "pW3n" not in cut


def test_what_a_hook_asks_is_sent_without_secrets_in_names_pairs_and_places() -> None:
    token = "ghp_" + "A1b2C3d4" * 4 + "E5f6"
    asked = {
        token: "v", "name": "API_TOKEN", "value": "Zx81kQ9vLm27TpRw", "session_id": "mine",
        "workspace_roots": [f"/w/{token}/one", f"/w/{token}/two"],
    }  # fmt: skip
    sent = as_sent(asked, default_redactor())
    assert token not in str(sent)
    assert "Zx81kQ9vLm27TpRw" not in str(sent)
    assert sent["session_id"] == "mine"
    assert len({*sent["workspace_roots"]}) == 2
