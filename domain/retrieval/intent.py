"""What a query asks for, read by rules: the kind of memory, and the time it is about."""

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from typing import Literal

import msgspec

from memctl.domain.knowledge.memory import Bucket
from memctl.domain.support import patterns

Intent = Literal["PROFILE", "PREFERENCE", "RECALL", "KNOWLEDGE", "DEBUG", "GENERAL"]

PREFERRED: dict[Intent, frozenset[Bucket]] = {
    "PROFILE": frozenset(("PROFILE",)),
    "PREFERENCE": frozenset(("PREFERENCE",)),
    "RECALL": frozenset(("EPISODIC",)),
    "KNOWLEDGE": frozenset(("SEMANTIC", "FACT")),
    "DEBUG": frozenset(("EPISODIC", "SEMANTIC", "FACT")),
    "GENERAL": frozenset(("PROFILE", "PREFERENCE", "EPISODIC", "SEMANTIC", "FACT")),
}
"""Buckets that an intent is answered from. (Bug patterns are FACT.)"""


class Period(msgspec.Struct, frozen=True):
    """A span of time that a query speaks of, in microseconds; `before` is excluded. `words` are those that said so."""

    since: int
    before: int
    words: str


class Understood(msgspec.Struct, frozen=True):
    """`content` is the query without the words that state the time."""

    intent: Intent
    period: Period | None
    content: str


_SIGNS: dict[Intent, tuple[str, ...]] = {
    "DEBUG": (
        r"\b(?:errors?|exceptions?|traceback|stack ?trace|bugs?|crash(?:es|ed|ing)?|fail(?:s|ed|ing|ures?)?)\b",
        r"\b(?:broken|panic|segfault|debug(?:ging)?|not work(?:ing)?|exit code)\b",
        r"\b\w+(?:Error|Exception)\b",
        r"에러|오류|버그|예외|실패|안 ?(?:돼|되|됨)|디버그|디버깅",
    ),
    "PREFERENCE": (
        r"\bprefer(?:s|red|ence|ences)?\b|\bfavou?rite\b|\bmy (?:style|taste)\b|\bshould i (?:always|never)\b",
        r"\b(?:do|does|did) (?:i|we|the user|they) (?:like|want|hate)\b",
        r"\b(?:coding|code|commit|naming) (?:style|conventions?)\b",
        r"선호|좋아하|싫어하|취향|스타일|컨벤션",
    ),
    "PROFILE": (
        r"\bwho am i\b|\babout me\b|\bwhat do i (?:do|work on|know)\b|\bam i (?:a|an|good at)\b",
        r"\bmy (?:name|role|job|background|experience|expertise|skills?|team)\b",
        r"내 (?:이름|역할|직업|경력|팀|전문)|나는 누구|나에 대해",
    ),
    "RECALL": (
        r"\b(?:last|previous|earlier|before|yesterday|ago|remember|remind|recall|again|history|what happened)\b",
        r"\b(?:did|have|had|was|were) (?:i|we|you)\b|\bwhen (?:did|was|were)\b",
        r"지난|저번|이전|예전|아까|어제|기억|했었|했던|언제|했지|했더라",
    ),
    "KNOWLEDGE": (
        r"\bhow (?:do|does|to|can|is|are|should)\b|\bwhat (?:is|are|does)\b|\bwhere (?:is|are|do|does)\b",
        r"\bwhich\b|\bwhy (?:do|does|is|are)\b",
        r"\b(?:explain|documentation|architecture|meaning of|difference between)\b",
        r"어떻게|무엇|뭐야|뭔가|뭐지|어디|왜|설명|방법|구조",
    ),
}
# The first that matches decides, so the narrower stand first.
_INTENTS = {intent: patterns.compile("|".join(signs), patterns.I) for intent, signs in _SIGNS.items()}

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTH = "|".join(_MONTHS)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAYS_BACK = {"today": 0, "k_today": 0, "yesterday": 1, "k_yesterday": 1, "before_yesterday": 2, "k_before": 2}
_KOREAN_UNITS = {"일": "day", "주": "week", "주일": "week", "달": "month", "개월": "month", "년": "year"}

_PERIODS = patterns.compile(
    rf"""(?P<date>\b\d{{4}}-\d{{2}}-\d{{2}}\b)
    | \b(?:since\ |in\ |on\ |during\ |from\ )?(?:the\ )?(?:
        (?P<today>today|this\ morning|tonight) | (?P<yesterday>yesterday) | (?P<before_yesterday>day\ before\ yesterday)
      | (?P<which>last|past|previous|this)\ (?P<unit>day|week|weekend|month|year)
      | (?:last|past)\ (?P<count>\d{{1,3}}|few|couple\ of)\ (?P<counted>days|weeks|months|years)
      | (?P<ago>\d{{1,3}}|a|an|one|two|three|a\ few|few)\ (?P<agone>day|week|month|year)s?\ ago
      | last\ (?P<weekday>{"|".join(_DAYS)})
      )\b
    | \b(?:in|during|since|last)\ (?P<month>{_MONTH})(?:\ (?P<year>\d{{4}}))?\b
    | (?P<k_today>오늘) | (?P<k_yesterday>어제) | (?P<k_before>그저께|그제)
    | (?P<k_which>지난|저번|이번)\ ?(?P<k_unit>주|달|해)
    | (?P<k_year>작년) | (?P<k_count>\d{{1,3}}|한|두|세)\ ?(?P<k_counted>일|주일|주|달|개월|년)\ ?전
    | (?<!\d)(?P<k_month>1[0-2]|[1-9])월(?:에|달)?
    """,
    patterns.I | patterns.X,
)
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "few": 3, "a few": 3, "couple of": 2, "한": 1, "두": 2, "세": 3,
}  # fmt: skip


def understand(query: str, now: datetime) -> Understood:
    """What the query asks for, and which time it speaks of, seen from `now` (with its zone: days are the caller's)."""
    period, content = _period(query, now)
    # Of a query that only names a time, everything that happened then is asked for.
    intent: Intent = next(
        (name for name, words in _INTENTS.items() if words.search(query)), "RECALL" if period else "GENERAL"
    )
    return Understood(intent, period, content)


def _period(query: str, now: datetime) -> tuple[Period | None, str]:
    for found in _PERIODS.finditer(query):
        try:
            days = _days({name: value.lower() for name, value in found.groupdict().items() if value}, now.date())
        except (ValueError, OverflowError):  # 2026-13-45, 999 years ago
            continue
        if days is None:
            continue
        first, last = days
        since = datetime(first.year, first.month, first.day, tzinfo=now.tzinfo)
        end = last + timedelta(days=1)
        before = datetime(end.year, end.month, end.day, tzinfo=now.tzinfo)
        content = " ".join((query[: found.start()] + " " + query[found.end() :]).split())
        return Period(_micros(since), _micros(before), " ".join(found[0].split())), content
    return None, query


def _days(said: dict[str, str], today: date) -> tuple[date, date] | None:
    """First and last day of what was said."""
    if "date" in said:
        day = date.fromisoformat(said["date"])
        return day, day
    for name, back in _DAYS_BACK.items():
        if name in said:
            return _one_day(today, back)
    if "weekday" in said:
        back = (today.weekday() - _DAYS.index(said["weekday"]) - 1) % 7 + 1
        return _one_day(today, back)
    if "k_year" in said:
        return date(today.year - 1, 1, 1), date(today.year - 1, 12, 31)
    if "which" in said or "k_which" in said:
        unit = said.get("unit") or {"주": "week", "달": "month", "해": "year"}[said["k_unit"]]
        this = (said.get("which") or said["k_which"]) in ("this", "이번")
        return _calendar(unit, today, 0 if this else 1)
    if "count" in said:
        number = _NUMBERS.get(said["count"]) or int(said["count"])
        return today - timedelta(days=number * _LENGTH[said["counted"].rstrip("s")]), today
    if "ago" in said or "k_count" in said:
        amount = said.get("ago") or said["k_count"]
        unit = said.get("agone") or _KOREAN_UNITS[said["k_counted"]]
        return _around(today, _NUMBERS.get(amount) or int(amount), unit)
    return _month(said, today)


def _month(said: dict[str, str], today: date) -> tuple[date, date]:
    """The month that was named: without a year the last of that name that has begun."""
    month = int(said["k_month"]) if "k_month" in said else _MONTHS.index(said["month"]) + 1
    year = int(said["year"]) if "year" in said else today.year - (month > today.month)
    return date(year, month, 1), date(year, month, monthrange(year, month)[1])


_LENGTH = {"day": 1, "week": 7, "month": 30, "year": 365}


def _one_day(today: date, back: int) -> tuple[date, date]:
    day = today - timedelta(days=back)
    return day, day


def _around(today: date, number: int, unit: str) -> tuple[date, date]:
    """ "Three weeks ago" is a week, not a day; "three days ago" is that day."""
    middle = today - timedelta(days=number * _LENGTH[unit])
    slack = timedelta(days=_LENGTH[unit] // 2)
    return middle - slack, min(middle + slack, today)


def _calendar(unit: str, today: date, back: int) -> tuple[date, date]:
    if unit == "day":
        return _one_day(today, back)
    if unit in ("week", "weekend"):
        monday = today - timedelta(days=today.weekday() + 7 * back)
        return monday + timedelta(days=5 if unit == "weekend" else 0), monday + timedelta(days=6)
    if unit == "month":
        month = (today.year * 12 + today.month - 1) - back
        first = date(month // 12, month % 12 + 1, 1)
        return first, first.replace(day=monthrange(first.year, first.month)[1])
    return date(today.year - back, 1, 1), date(today.year - back, 12, 31)


def _micros(at: datetime) -> int:
    return int((at.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))
