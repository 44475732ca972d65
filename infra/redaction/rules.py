"""The rules that secrets are known by: Nosey Parker's, Kingfisher's, and memctl's own for what those leave out."""

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import msgspec

from memctl.domain.support import patterns

_FLAGS = patterns.compile(r"\(\?([imsx]+)\)")
_FIRST = patterns.compile(r"\A((?:\s|\(\?[imsx]+\))*)\\b")
_LAST = patterns.compile(r"\\b\s*\z")


class Rule(msgspec.Struct, frozen=True):
    """One shape of secret. Every group of the pattern is a part of the secret, but for `names`.

    `pattern` is read by Hyperscan and, over UTF-8 bytes, by `re`. `examples` hold what it must find, and
    `negative_examples` what it must not.
    """

    id: str
    marker: str
    pattern: str
    examples: tuple[str, ...] = ()
    negative_examples: tuple[str, ...] = ()
    unless: str = ""
    """What a cut value may not be (a placeholder), and with `must` what it must hold: for `re` alone."""
    must: str = ""
    check: str = ""
    """A test of `personal` that a cut value must pass."""
    judge: str = ""
    """A test of `likely` that a cut value must pass, given the text of `names`."""
    within: str = ""
    """What has to stand around a match; it holds `of`."""
    of: str = ""
    """What a text has to hold for the rule to be tried: it stands in for `pattern` where all rules are looked for."""
    entropy: float = 0.0
    """Bits a character that a cut value must have."""
    names: tuple[int, ...] = ()
    """Groups that only say whose secret it is or where it serves (a user, a host, a key's name): they stay."""
    of_characters: bool = False
    """Whether it is read over characters: who writes `\\w` or `[가-힣]` means letters, not bytes of them."""

    @property
    def source(self) -> str:
        """The pattern as it is looked for: beside an underscore as beside a blank, for files are named after keys. A
        user's is left as it is."""
        if self.id.startswith("user."):
            return self.pattern
        return _LAST.sub(r"(?:\b|_)", _FIRST.sub(lambda found: rf"{found[1]}(?:\b|_)", self.pattern, 1))

    def compiled(self) -> patterns.Pattern[bytes] | patterns.Pattern[str]:
        """The pattern, its flags taken for all of it."""
        flags = sum(getattr(patterns, name.upper()) for name in set("".join(_FLAGS.findall(self.pattern))))
        source = _FLAGS.sub("", self.source)
        if self.of_characters:
            return patterns.Pattern(source, flags)
        return patterns.Pattern(source.encode(), flags)


_ASIDE = patterns.compile(r"\(.*?\)")
_PART = patterns.compile(r"\{\{([a-z]+)\}\}")
_APART = patterns.compile(r"[^a-z0-9]+")


class BadUserPattern(ValueError):
    """A pattern of the user's cannot be used; the message says why."""


def user_rule(number: int, pattern: str) -> Rule:
    """The rule of a pattern that the user wants cut: its groups, or all of it where it has none. Raises: BadPattern."""
    try:
        compiled = patterns.Pattern(pattern)
        everywhere = compiled.search("") is not None
    except patterns.BadPattern as problem:
        raise BadUserPattern(f"{problem}") from None
    if everywhere:
        raise BadUserPattern(f"it matches nothing at all, so everywhere (in {pattern!r})")
    return Rule(id=f"user.{number}", marker="excluded", pattern=pattern, of_characters=True)


def personal_rules() -> list[Rule]:
    """The shapes of personal data."""
    return [_rule(each, {}, {}) for each in _read("personal.yml")["rules"]]


def _read(name: str) -> dict[str, Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    content = (files("memctl.infra.redaction") / "shapes" / name).read_bytes()
    found: dict[str, Any] = yaml.load(content, Loader=loader)  # noqa: S506 (a safe loader)
    return found


def load_rules(*, everything: bool = False) -> list[Rule]:
    """The rules in use; with `everything` also those of Nosey Parker that memctl leaves out."""
    own = _read("memctl.yml")
    left_out = set() if everything else set(own["leave_out"])
    markers, names = own["markers"], own["names"]
    rules = [_rule(_whole(each, own["parts"]), markers, names) for each in own["rules"]]
    folder = files("memctl.infra.redaction") / "shapes" / "noseyparker"
    for name in sorted(file.name for file in folder.iterdir()):
        if name.endswith(".yml"):
            theirs = _read(f"noseyparker/{name}")["rules"]
            rules += [_rule(each, markers, names) for each in theirs if each["id"] not in left_out]
    return rules + [rule for rule in vendors() if rule.id not in left_out]


def _whole(each: dict[str, Any], parts: dict[str, str]) -> dict[str, Any]:
    """A rule with the parts that its patterns share written out."""
    for field in {"pattern", "of"} & each.keys():
        each[field] = _PART.sub(lambda found: parts[found[1]], each[field])
    return each


def vendors(wanted: Callable[[str], bool] = lambda file: True) -> list[Rule]:
    """Kingfisher's rules, as far as the name of the file that each comes from is wanted."""
    file = files("memctl.infra.redaction") / "shapes" / "kingfisher" / "rules.json"
    rules = msgspec.json.decode(file.read_bytes())
    return [_rule({"judge": "shaped", **each}, {}, {}) for each in rules if wanted(each["file"])]


def _rule(each: dict[str, Any], markers: dict[str, str], names: dict[str, list[int]]) -> Rule:
    name = _APART.sub("-", _ASIDE.sub("", each["name"]).lower()).strip("-")
    return Rule(
        id=each["id"],
        marker=markers.get(each["id"], name),
        pattern=each["pattern"],
        examples=tuple(each.get("examples") or ()),
        negative_examples=tuple((each.get("negative_examples") or []) + (each.get("non_examples") or [])),
        unless=each.get("unless", ""),
        must=each.get("must", ""),
        check=each.get("check", ""),
        judge=each.get("judge", ""),
        entropy=each.get("entropy", 0.0),
        within=each.get("within", ""),
        of=each.get("of", ""),
        names=tuple(each.get("names") or names.get(each["id"]) or ()),
    )
