"""What language models cost, and how the processors stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memctl.api.reading.reader import Reader
from memctl.infra.llm import budget
from memctl.infra.readmodels import processor_work as processing
from memctl.infra.readmodels.processor_work import WorkState

if TYPE_CHECKING:
    from memctl.infra.settings_model import Llm


def costs(reader: Reader, llm: Llm, limit: int) -> dict[str, Any]:
    """This month's calls by processor and subject, dearest first, and the budget (over all spaces, in UTC).

    What is set aside for calls under way, or of which nobody knows what became of them, counts as spent.
    """
    return {"budget": allowance(reader, llm), "calls": budget.ledger(reader.connection, reader.space_id, limit)}


def allowance(reader: Reader, llm: Llm) -> dict[str, dict[str, float | int]]:
    """What of the budget is spent, and what is allowed, by period and unit."""
    spent = budget.spent(reader.connection)
    return {
        "daily_usd": {"spent": float(spent.daily_usd), "allowed": llm.daily_usd},
        "monthly_usd": {"spent": float(spent.monthly_usd), "allowed": llm.monthly_usd},
        "daily_tokens": {"spent": spent.daily_tokens, "allowed": llm.daily_tokens},
        "monthly_tokens": {"spent": spent.monthly_tokens, "allowed": llm.monthly_tokens},
    }


def standings(reader: Reader) -> list[WorkState]:
    """Every processor that has worked."""
    return processing.standings(reader.connection, reader.space_id)
