"""The budget: what a call may cost at most is set aside before it is made, and what it cost is noted after.

Both stand in Postgres, so no number of workers passes a limit together; a call of which nobody knows what became of it
counts as if it had cost all that was set aside.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, single_row

if TYPE_CHECKING:
    from memctl.infra.settings_model import Llm

_LOCK = 0x6C6C6D62  # "llmb"

_SPENT = """
    SELECT coalesce(sum(t) FILTER (WHERE today), 0)::bigint, coalesce(sum(t), 0)::bigint,
           coalesce(sum(u) FILTER (WHERE today), 0), coalesce(sum(u), 0)
    FROM (SELECT asked_at >= date_trunc('day', clock_timestamp(), 'UTC') AS today,
                 CASE status WHEN 'reserved' THEN tokens_reserved ELSE tokens_in + tokens_out END AS t,
                 CASE status WHEN 'reserved' THEN usd_reserved ELSE usd END AS u
          FROM memctl.llm_calls WHERE asked_at >= date_trunc('month', clock_timestamp(), 'UTC')) calls
"""


class OverBudget(MemctlError):
    """The {limit} for language models is used up: {spent} of {allowed}."""

    hint = "it starts over by itself; `memctl costs` shows what it went into, `llm` in the configuration sets it"
    limit: str
    spent: str
    allowed: str


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What was spent in this day and this month (UTC), in US dollars and in tokens of input and output together, with
    what is set aside for calls under way."""

    daily_tokens: int
    monthly_tokens: int
    daily_usd: Decimal
    monthly_usd: Decimal


class Purpose(msgspec.Struct, frozen=True, kw_only=True):
    """What a call is for: a processor's work on a subject, of which model, with which prompt and version."""

    space_id: int
    processor: str
    subject: str
    model: str
    prompt: str


def spent(connection: Connection) -> Spent:
    """Today's and this month's spending, over all spaces."""
    row = single_row(connection, _SPENT)
    return Spent(daily_tokens=row[0], monthly_tokens=row[1], daily_usd=row[2], monthly_usd=row[3])


def reserve(connection: Connection, limits: Llm, purpose: Purpose, tokens: int, usd: Decimal) -> int:
    """Set aside what a call may cost at most; returns its number in the ledger. Raises: OverBudget, and nothing is."""
    most_a_day, most_a_month = (Decimal(str(most)) for most in (limits.daily_usd, limits.monthly_usd))
    with connection.transaction():
        # Everyone who reserves sees what those before have reserved.
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        now = spent(connection)
        for limit, had, more, allowed in (
            ("daily budget", now.daily_usd, usd, most_a_day),
            ("monthly budget", now.monthly_usd, usd, most_a_month),
            ("daily number of tokens", now.daily_tokens, tokens, limits.daily_tokens),
            ("monthly number of tokens", now.monthly_tokens, tokens, limits.monthly_tokens),
        ):
            if had + more > allowed:
                raise OverBudget(limit=limit, spent=f"{had:.4f}".rstrip("0").rstrip("."), allowed=f"{allowed}")
        row = connection.execute(
            "INSERT INTO memctl.llm_calls (space_id, processor, subject, model, prompt, tokens_reserved, usd_reserved)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s) RETURNING call",
            [purpose.space_id, purpose.processor, purpose.subject, purpose.model, purpose.prompt, tokens, usd],
        ).fetchone()
    assert row is not None
    return int(row[0])


def settle(connection: Connection, call: int, tokens_in: int, tokens_out: int, usd: Decimal) -> None:
    """The model answered: note what it counted in place of what was set aside."""
    connection.execute(
        "UPDATE memctl.llm_calls SET status = 'answered', tokens_in = %s, tokens_out = %s, usd = %s WHERE call = %s",
        [tokens_in, tokens_out, usd, call],
    )


def refused(connection: Connection, call: int, problem: str) -> None:
    """The server refused the call, and counts nothing for it."""
    connection.execute("UPDATE memctl.llm_calls SET status = 'failed', problem = %s WHERE call = %s", [problem, call])


def unknown(connection: Connection, call: int, problem: str) -> None:
    """Nobody knows whether the model answered: what was set aside counts as spent."""
    connection.execute("UPDATE memctl.llm_calls SET problem = %s WHERE call = %s", [problem, call])


def ledger(connection: Connection, space_id: int, limit: int) -> list[dict[str, Any]]:
    """This month's calls of a space by processor and subject, dearest first."""
    rows = connection.execute(
        "SELECT processor, subject, model, count(*), sum(tokens_in)::bigint, sum(tokens_out)::bigint,"
        " sum(CASE status WHEN 'reserved' THEN usd_reserved ELSE usd END)::float8,"
        " count(*) FILTER (WHERE status <> 'answered')"
        " FROM memctl.llm_calls WHERE space_id = %s AND asked_at >= date_trunc('month', clock_timestamp(), 'UTC')"
        " GROUP BY processor, subject, model ORDER BY 7 DESC, 5 DESC, 1, 2 LIMIT %s",
        [space_id, limit],
    ).fetchall()
    fields = ("processor", "subject", "model", "calls", "tokens_in", "tokens_out", "usd", "not_answered")
    return [dict(zip(fields, row, strict=True)) for row in rows]
