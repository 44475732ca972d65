"""Are secrets cut, and nothing else? Published examples, a repository of leaks, personal data, and the real sessions.

Of Kingfisher's vendors, those of the second half stand for vendors that memctl never heard of: their shapes are taken
from the rules, and their examples asked. `vendors.py` says how the halves are told apart. Rules for public things are
not asked.

A negative example of Nosey Parker's says what its own rule must not take; many hold a secret of another kind all the
same. So alarms are told twice: any at all, and by the rule that the example belongs to. Of personal data, recall counts
spans of a type of which nothing is left, and precision cuts that touch a span of any type.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
from figures import Figure, Missing, share
from sessions import Data
from vendors import first_half, published_rules

from memctl.infra.redaction import Redactor, default_redactor, prepare_all, redact
from memctl.infra.redaction.rules import Rule, load_rules, personal_rules, vendors

_KNOWN = re.compile(
    rb"AKIA[0-9A-Z]{16}\b|gh[pousr]_[A-Za-z0-9]{36}|xox[abprs]-[0-9A-Za-z-]{20,}|AIza[0-9A-Za-z_-]{35}"
    rb"|sk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,}|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:\\\\n|\s)+[A-Za-z0-9+/=]{40}"
    rb"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}|glpat-[A-Za-z0-9_-]{20}|npm_[A-Za-z0-9]{36}"
)
"""Shapes that nobody disputes, written down apart from the rules."""

_NAMED_FIRST = re.compile(r"(?:[A-Za-z][A-Za-z0-9]{1,11}[_-]){1,3}[A-Za-z0-9_.-]{16,}$")
"""Secrets that say with their first letters whose they are."""

_SHAPED = {
    "EMAIL_ADDRESS": 0.95, "CREDIT_CARD": 0.9, "IBAN_CODE": 0.9, "US_SSN": 0.95, "IP_ADDRESS": 0.9, "PHONE_NUMBER": 0.7,
}  # fmt: skip


def measure(data: Data) -> Iterator[Figure]:
    """Recall and alarms on examples, leaks, personal data, and what the sessions' events still hold."""
    folder = data.file("secrets-noseyparker/rules")
    if folder is None:
        raise Missing("secrets-noseyparker/rules is not there")
    yield from _examples(folder)
    if (by_vendor := data.file("secrets-kingfisher/rules")) is not None:
        yield from _vendors(by_vendor)
    yield from _alarms(data)
    if (leaky := data.file("secrets-leaky-repo")) is not None:
        yield from _leaks(leaky)
    if (texts := data.file("pii-presidio/synth_first_750.json")) is not None:
        yield from _personal(texts)
    if data.has_sessions:
        yield from _sessions(data)


def _examples(folder: Path) -> Iterator[Figure]:
    import yaml

    found = alarms = by_own = positive = negative = 0
    ours = {rule.id: Redactor([rule]) for rule in load_rules()}
    for file in sorted(folder.glob("*.yml")):
        for rule in yaml.safe_load(file.read_text())["rules"]:
            for example in rule.get("examples") or ():
                positive += 1
                found += bool(redact(example)[1])
            for example in (rule.get("negative_examples") or []) + (rule.get("non_examples") or []):
                negative += 1
                alarms += bool(redact(example)[1])
                by_own += rule["id"] in ours and bool(ours[rule["id"]].redact(example)[1])
    yield Figure("examples of secrets that are cut", share(found, positive), positive, 0.95)
    yield Figure("negative examples cut by their own rule", share(by_own, negative), negative, 0.08, at_most=True)
    yield Figure("negative examples cut by any rule", share(alarms, negative), negative)


def _vendors(folder: Path) -> Iterator[Figure]:
    """Recall by half, once without the half's own shapes and once with all."""
    unseen = Redactor([rule for rule in load_rules() if not rule.id.startswith("kingfisher.")] + vendors(first_half))
    plain = Redactor([rule for rule in load_rules() if not rule.id.startswith("kingfisher.")])
    cut: Counter[str] = Counter()
    for file, rule in published_rules(folder):
        half = "first" if first_half(file) else "second"
        shape = Rule(id="", marker="", pattern=rule["pattern"]).compiled()
        for example in rule.get("examples") or () if rule.get("visible") is not False else ():
            whole = shape.search(example.encode())
            secret = (whole[1] if whole and shape.groups and whole[1] else whole[0] if whole else b"").decode()
            cut[f"{half} of"] += 1
            left, counts = (plain if half == "first" else unseen).redact(example)
            cut[f"{half} any"] += bool(counts)
            cut[f"{half} whole"] += bool(counts) and (not secret or secret not in left)
            if half == "second" and _NAMED_FIRST.match(secret):
                cut["prefix of"] += 1
                cut["prefix unseen"] += bool(counts)
                cut["prefix"] += bool(redact(example)[1])
            cut["all"] += bool(redact(example)[1])
    first, second = cut["first of"], cut["second of"]
    yield Figure("vendors seen, by the generic rules alone", share(cut["first any"], first), first)
    yield Figure("vendors unseen: examples in which something is cut", share(cut["second any"], second), second, 0.85)
    yield Figure("vendors unseen: the secret of the example is cut", share(cut["second whole"], second), second)
    yield Figure("… with a prefix, unseen", share(cut["prefix unseen"], cut["prefix of"]), cut["prefix of"])
    yield Figure("… with a prefix, known", share(cut["prefix"], cut["prefix of"]), cut["prefix of"], 0.97)
    yield Figure("all vendors, as shipped", share(cut["all"], first + second), first + second)


def _alarms(data: Data) -> Iterator[Figure]:
    """Cuts a line in what hardly holds a secret: the standard library, memctl's documents, pages of commands."""
    library, root = Path(json.__file__).parents[1], Path(__file__).parents[3]
    texts = {
        "code": [path.read_text("utf-8", "replace") for path in sorted(library.glob("*.py"))],
        "documents": [path.read_text("utf-8", "replace") for path in sorted((root / "docs").rglob("*.md"))],
    }
    if (pages := data.file("tldr-ko-en.jsonl")) is not None:
        lines = pages.read_text("utf-8").splitlines()
        texts["pages of commands"] = ["\n".join(map(str, json.loads(line).values())) for line in lines]
    for name, of_kind in texts.items():
        lines_of = sum(text.count("\n") + 1 for text in of_kind)
        cuts = sum(default_redactor().redact(text)[1].total() for text in of_kind)
        yield Figure(f"cuts a line of {name}", share(cuts, lines_of), lines_of, 0.0005, at_most=True)


def _leaks(folder: Path) -> Iterator[Figure]:
    files = cut = 0
    for path in sorted(folder.rglob("*")):
        if path.is_file() and ".leaky-meta" not in path.parts and path.stat().st_size < 100_000:
            files += 1
            cut += bool(redact(path.read_bytes().decode("utf-8", "replace"))[1])
    yield Figure("files of the leaky repository in which something is cut", share(cut, files), files)


def _personal(file: Path) -> Iterator[Figure]:
    redactor = Redactor(personal_rules())
    there: Counter[str] = Counter()
    gone: Counter[str] = Counter()
    cuts = right = 0
    for each in json.loads(file.read_text(encoding="utf-8")):
        text, spans = each["full_text"], each["spans"]
        left, counts = redactor.redact(text)
        kept = re.split(r"\[redacted:[a-z0-9-]+\]", left)
        cuts += counts.total()
        position = 0
        for before, after in itertools.pairwise(kept):
            start = text.index(before, position) + len(before)
            end = text.index(after, start) if after else len(text)
            right += any(s["start_position"] < end and start < s["end_position"] for s in spans)
            position = end
        for span in spans:
            there[span["entity_type"]] += 1
            gone[span["entity_type"]] += span["entity_value"] not in left
    for kind, target in _SHAPED.items():
        yield Figure(f"personal: {kind.lower()} cut", share(gone[kind], there[kind]), there[kind], target)
    yield Figure("personal: cuts that touch personal data", share(right, cuts), cuts, 0.95)


def _sessions(data: Data) -> Iterator[Figure]:
    encoded = [msgspec.json.encode(event.payload) for event in data.events]
    left = sum(bool(_KNOWN.search(each)) for each in encoded)
    yield Figure("events of the sessions with a secret of known shape left", left, len(encoded), 0, at_most=True)
    raw = b"\n".join(encoded)
    redactor = default_redactor()
    began = time.process_time()
    redactor.suspects(raw)
    yield Figure("MB a second, one text", len(raw) / 1e6 / (time.process_time() - began), len(raw) // 1_000_000, 60)
    began = time.process_time()
    prepare_all(data.events)
    yield Figure("MB a second, event by event", len(raw) / 1e6 / (time.process_time() - began), len(encoded), 50)
