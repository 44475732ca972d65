"""Asking a language model for a typed answer: metered, in bounded time, with content that is redacted and fenced.

Speaks to Anthropic, to whatever is compatible with OpenAI (Ollama and vLLM among them), and to coding agents' own
clients (`agents`). Every request is one line of the ledger, its retries among them: the libraries' own retries are
switched off.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec

from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection
from memctl.infra.llm import budget
from memctl.infra.llm.agents import AGENTS, model_of
from memctl.infra.llm.budget import OverBudget, Purpose
from memctl.infra.llm.prompts import Prompt, fenced
from memctl.infra.redaction.text import drop_private

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from memctl.infra.redaction import Redactor
    from memctl.infra.settings_model import Llm

T = TypeVar("T")

Kind = Literal["unavailable", "timeout", "refused", "bad_output", "over_budget"]

TRIES = 3
"""Requests for one answer where a server is busy or away, and again where its answer was not in the form asked for."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""Before a request is made again: the first, doubled up to the second."""

_NOBODY_FOR_US = (401, 402, 403, 404)
"""No key, no money, no right, no such model: whatever is asked."""

_PERHAPS_ANSWERED = frozenset((408, *range(500, 600))) - {503, 529}
"""Statuses after which a model may have answered, and its server have counted. Of 503 and 529 (overloaded) the server
says that it did not begin."""

_NOBODY_NOW = (429, 503, 529)
"""Busy or away, whatever is asked. After any other failure of a server it may be this very request that it fails on."""

OVERHEAD_TOKENS = 512
"""Set aside beside the bytes of a request, for what a server adds to it."""


class Unanswered(MemctlError):
    """The language model gave no answer that could be used ({kind}): {why}"""

    kind: Kind
    why: str
    whatever: bool = False
    """Nothing else would be answered now, either: nobody is there, nobody for this key, or the budget is used up."""


class LlmMissing(MemctlError):
    """A language model is configured, and what speaks to it is not installed."""

    hint = "pip install '.[llm]' in memctl's checkout"


def longest_s(settings: Llm) -> float:
    """Seconds that one answer may take, with all its requests."""
    return settings.timeout_s * (TRIES + 1)


class ModelAnswer(msgspec.Struct, Generic[T], frozen=True):
    """An answer, what gave it, and what it cost with all its requests."""

    output: T
    model: str
    tokens: int
    usd: float


class ModelClient:
    """Asks the model that is configured, for one space. Not for several threads: it uses the caller's connection."""

    def __init__(self, settings: Llm, connection: Connection, space_id: int, redactor: Redactor) -> None:
        self._settings = settings
        self._connection = connection
        self._space_id = space_id
        self._redactor = redactor
        self.model = f"{settings.provider}:{settings.model}"

    def ask(self, prompt: Prompt, content: str, output: type[T], *, processor: str, subject: str) -> ModelAnswer[T]:
        """The model's answer in that form (a pydantic model).

        Raises: Unanswered; LlmMissing; psycopg's errors where the ledger cannot be written, and then nothing is asked.
        """
        try:
            from pydantic_ai import Agent, NativeOutput
            from pydantic_ai.exceptions import AgentRunError, UserError
        except ImportError as problem:
            raise LlmMissing from problem
        public, _ = drop_private(content)
        clean, _ = self._redactor.redact(public)
        fence, material = fenced(clean)
        purpose = Purpose(
            space_id=self._space_id, processor=processor, subject=subject, model=self.model, prompt=prompt.name
        )
        agent_adds = AGENTS[self._settings.provider].overhead if self._settings.provider in AGENTS else 0
        meter = Meter(self._connection, self._settings, purpose, self._cost, OVERHEAD_TOKENS + agent_adds)

        async def asked() -> T:
            model, close = _model(self._settings)
            try:
                agent: Any = Agent(
                    _metered(model, meter, self._settings.timeout_s),
                    output_type=NativeOutput(output) if self._settings.form == "schema" else output,
                    instructions=prompt.instructions + fence,
                    retries=1,
                    model_settings={"max_tokens": self._settings.most_output_tokens, "temperature": 0.0},
                )
                async with asyncio.timeout(longest_s(self._settings)):
                    found = await agent.run(material)
                answer: T = found.output
                return answer
            finally:
                await close()

        try:
            answer = asyncio.run(asked())
        except OverBudget as problem:
            raise Unanswered(kind="over_budget", why=str(problem), whatever=True) from problem
        except Unanswered:
            raise
        except TimeoutError as problem:
            raise Unanswered(kind="timeout", why="it took too long") from problem
        except (AgentRunError, UserError) as problem:
            # What the model said may be quoted in it.
            raise Unanswered(kind="bad_output", why=type(problem).__name__) from None
        if material.splitlines()[0].casefold() in str(answer).casefold():
            raise Unanswered(kind="bad_output", why="it speaks of the marks around the material")
        return ModelAnswer(answer, self.model, meter.tokens, float(meter.usd))

    def _cost(self, tokens_in: int, tokens_out: int) -> Decimal:
        price_in, price_out = self._settings.usd_per_million_in, self._settings.usd_per_million_out
        return (tokens_in * Decimal(str(price_in)) + tokens_out * Decimal(str(price_out))) / 1_000_000


class Meter:
    """Sets aside, and settles, what each request of one answer costs."""

    def __init__(
        self,
        connection: Connection,
        limits: Llm,
        purpose: Purpose,
        cost: Callable[[int, int], Decimal],
        overhead: int,
    ) -> None:
        self.connection, self._limits, self._purpose, self._cost = connection, limits, purpose, cost
        self._overhead = overhead
        self._aside = (0, Decimal(0))
        self.tokens = 0
        self.usd = Decimal(0)

    def reserve(self, request_bytes: int, most_output: int) -> int:
        """What a request of so many bytes may cost at most: no token of any model is less than a byte."""
        tokens_in = request_bytes + self._overhead
        self._aside = (tokens_in + most_output, self._cost(tokens_in, most_output))
        return budget.reserve(self.connection, self._limits, self._purpose, *self._aside)

    def answered(self, call: int, tokens_in: int, tokens_out: int) -> None:
        """The last request was answered. A server that does not say what it counted counts as if it were all."""
        tokens, cost = tokens_in + tokens_out, self._cost(tokens_in, tokens_out)
        if tokens_in:
            budget.settle(self.connection, call, tokens_in, tokens_out, cost)
        else:
            tokens, cost = self._aside
            budget.unknown(self.connection, call, "no usage")
        self.tokens += tokens
        self.usd += cost


def _metered(model: Model, meter: Meter, timeout_s: float) -> Model:
    """The model, asked again where its server was busy or away, with each request on the meter."""
    from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
    from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.models.wrapper import WrapperModel
    from pydantic_ai.settings import ModelSettings

    class Metered(WrapperModel):
        async def request(
            self,
            messages: list[ModelMessage],
            model_settings: ModelSettings | None,
            model_request_parameters: ModelRequestParameters,
        ) -> ModelResponse:
            most = int((model_settings or {}).get("max_tokens") or 0)
            tools = [
                [tool.name, tool.description, tool.parameters_json_schema]
                for tool in (*model_request_parameters.function_tools, *model_request_parameters.output_tools)
            ]
            size = len(ModelMessagesTypeAdapter.dump_json(messages)) + len(json.dumps(tools))
            pause = FIRST_PAUSE_S
            for left in reversed(range(TRIES)):
                call = meter.reserve(size, most)
                try:
                    async with asyncio.timeout(timeout_s):
                        answer = await self.wrapped.request(messages, model_settings, model_request_parameters)
                except TimeoutError:
                    # The server may go on and count it: another try would cost as much again.
                    budget.unknown(meter.connection, call, "timeout")
                    raise Unanswered(kind="timeout", why=f"no answer within {timeout_s:.0f} s") from None
                except ModelHTTPError as problem:
                    status, why = problem.status_code, f"HTTP {problem.status_code}"
                    if status in _PERHAPS_ANSWERED:
                        budget.unknown(meter.connection, call, why)
                    else:
                        budget.refused(meter.connection, call, why)
                    if status not in (408, 409, 429) and status < 500:
                        raise Unanswered(kind="refused", why=why, whatever=status in _NOBODY_FOR_US) from None
                    if not left:
                        raise Unanswered(kind="unavailable", why=why, whatever=status in _NOBODY_NOW) from None
                except ModelAPIError as problem:
                    if never_sent := _never_sent(problem):
                        budget.refused(meter.connection, call, "connection")
                    else:
                        budget.unknown(meter.connection, call, "connection")
                    if not left:
                        raise Unanswered(kind="unavailable", why="it cannot be reached", whatever=never_sent) from None
                except Exception:  # whatever the library makes of an answer in no known shape
                    budget.unknown(meter.connection, call, "unreadable")
                    raise Unanswered(kind="bad_output", why="its answer cannot be read") from None
                else:
                    meter.answered(call, answer.usage.input_tokens, answer.usage.output_tokens)
                    if answer.finish_reason == "content_filter":
                        raise Unanswered(kind="refused", why="it declined to answer")
                    return answer
                await asyncio.sleep(pause)
                pause = min(pause * 4, LONGEST_PAUSE_S)
            raise AssertionError("unreachable")

    return Metered(model)


def _never_sent(problem: BaseException | None) -> bool:
    """Whether there was no connection to send a request over."""
    while problem is not None:
        # By name: which library speaks HTTP is the provider's own business.
        if type(problem).__name__ in ("ConnectError", "ConnectTimeout"):
            return True
        problem = problem.__cause__
    return False


def _model(settings: Llm) -> tuple[Model, Callable[[], Any]]:
    """The model behind its client, and what closes that."""
    key = settings.api_key.get_secret_value() if settings.api_key is not None else "none"
    url = settings.base_url
    try:
        if settings.provider in AGENTS:
            return model_of(settings), partial(asyncio.sleep, 0)
        if settings.provider == "anthropic":
            from anthropic import AsyncAnthropic
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            theirs = AsyncAnthropic(api_key=key, base_url=url, max_retries=0, timeout=settings.timeout_s)
            return AnthropicModel(settings.model, provider=AnthropicProvider(anthropic_client=theirs)), theirs.close
        from openai import AsyncOpenAI
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        ours = AsyncOpenAI(api_key=key, base_url=url, max_retries=0, timeout=settings.timeout_s)
        return OpenAIChatModel(settings.model, provider=OpenAIProvider(openai_client=ours)), ours.close
    except ImportError as problem:
        raise LlmMissing from problem
