"""Questions about texts that are too long for a URL: they come in a body."""

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from memctl.api.assist import guidance
from memctl.api.http import openapi
from memctl.api.http.answers import Answers, now
from memctl.api.http.parameters import Flag, Iso, Number, micros
from memctl.api.reading.advice import Kind
from memctl.api.reading.places import Places, places_of
from memctl.api.reading.questions import LONGEST_PLACE
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import BugAnswer, SearchAnswer
from memctl.api.search import questions
from memctl.api.search.engine import MOST_RESULTS, Engine
from memctl.domain.knowledge.memory import MemoryKind

LONGEST_TEXT = 200_000
"""Characters of a posted query or error text."""

LONGEST_PROMPT = 50_000
"""Characters of a text that is asked about: whole prompts with a pasted log; what is longer says no more."""


class _Placed(BaseModel):
    project: str | None = Field(default=None, max_length=LONGEST_PLACE)
    here: str | None = Field(default=None, max_length=LONGEST_PLACE)
    anywhere: Flag = False

    def places(self, reader: Reader) -> Places:
        """The projects that are asked about."""
        return places_of(reader, self.project, self.here, anywhere=self.anywhere)


class ErrorText(_Placed):
    """An error to be looked up."""

    text: str = Field(min_length=1, max_length=LONGEST_TEXT, examples=["ModuleNotFoundError: No module named 'yaml'"])
    command: str = Field(default="", max_length=LONGEST_PLACE, description="What printed it.", examples=["pytest -q"])
    limit: Number = Field(default=5, ge=1, le=50)


class SearchText(_Placed):
    """A search whose query is too long for a URL."""

    q: str = Field(min_length=1, max_length=LONGEST_TEXT)
    limit: Number = Field(default=5, ge=1, le=MOST_RESULTS)
    profile: str = Field(default="bounded")
    explain: Flag = False
    kinds: list[MemoryKind] = Field(default_factory=list)
    threshold: float = Field(default=0.0, ge=0, le=1, strict=True)
    since: Iso = None
    before: Iso = None


class Asked(_Placed):
    """A question of one kind. `session` is the session that asks, whose own errors count first."""

    model_config = ConfigDict(extra="forbid")

    kind: Kind
    text: str = Field(min_length=1, max_length=LONGEST_PROMPT)
    session: str = Field(default="", max_length=300)
    limit: Number = Field(default=3, ge=1, le=20)


def routes(answers: Answers, engine: Engine) -> APIRouter:
    """The routes. All depend on the clock."""
    router = APIRouter()

    @router.post("/search", tags=["search"], responses=openapi.answer_as(SearchAnswer))
    def search_text(request: Request, body: SearchText) -> Response:
        """As the search of a short query."""
        return answers.fresh(
            request,
            lambda reader: questions.search(
                reader, engine, body.places(reader), now(), q=body.q, limit=body.limit,
                profile=body.profile, explain=body.explain, kind=body.kinds, threshold=body.threshold,
                since=micros(body.since), before=micros(body.before),
            ),
        )  # fmt: skip

    @router.post("/bugs", tags=["bugs"], responses=openapi.answer_as(BugAnswer))
    def bugs_of_text(request: Request, body: ErrorText) -> Response:
        """Known errors like those of a long output."""
        return answers.fresh(
            request,
            lambda reader: questions.bugs(
                reader, engine, body.places(reader), q=body.text, command=body.command,
                limit=body.limit,
            ),
        )  # fmt: skip

    @router.post("/ask", tags=["search"])
    def ask(request: Request, body: Asked) -> Response:
        """An earlier error like this one (`similar_error`), how something is done (`how_to`), what is agreed on
        (`convention`), or how a like task went (`past_approach`); with the tier of memory that answered."""
        return answers.fresh(
            request,
            lambda reader: guidance.answer(
                reader, engine, body.kind, body.text, body.places(reader), now(),
                session=body.session, limit=body.limit,
            ),
        )  # fmt: skip

    return router
