"""What language models cost, and how the processors stand."""

from __future__ import annotations

import msgspec

from memctl.api.reading.counts import Allowance, Costs, ModelCalls
from memctl.api.reading.questions import Limit, question
from memctl.api.reading.reader import Reader
from memctl.infra.llm import budget
from memctl.infra.readmodels import processor_work
from memctl.infra.readmodels.processor_work import WorkState
from memctl.infra.settings_model import Llm


class WorkStates(msgspec.Struct, frozen=True):
    """Every processor that has worked."""

    processors: list[WorkState]


@question("/costs", "log", scopes=("operate",), whole=True, live=True)
def costs(reader: Reader, llm: Llm, *, limit: Limit = 50) -> Costs:
    """This month's calls by processor and subject, dearest first, and the budget (over all spaces, in UTC).

    What is set aside for calls under way, or of which nobody knows what became of them, counts as spent.
    """
    calls = budget.ledger(reader.connection, reader.space_id, limit)
    return Costs(budget=allowance(reader, llm), calls=[msgspec.convert(each, ModelCalls) for each in calls])


def allowance(reader: Reader, llm: Llm) -> dict[str, Allowance]:
    """What of the budget is spent, and what is allowed, by period and unit."""
    spent = budget.spent(reader.connection)
    return {
        "daily_usd": Allowance(spent=float(spent.daily_usd), allowed=llm.daily_usd),
        "monthly_usd": Allowance(spent=float(spent.monthly_usd), allowed=llm.monthly_usd),
        "daily_tokens": Allowance(spent=spent.daily_tokens, allowed=llm.daily_tokens),
        "monthly_tokens": Allowance(spent=spent.monthly_tokens, allowed=llm.monthly_tokens),
    }


@question("/processors", "log", scopes=("operate",), whole=True, live=True)
def processors(reader: Reader) -> WorkStates:
    """How the processors stand: pieces of work by status, and when each last did something."""
    return WorkStates(processor_work.standings(reader.connection, reader.space_id))
