"""What a hook asks over HTTP: `POST /v1/hooks/<agent>` with the payload as the client sent it."""

import logging
import time
import uuid
from datetime import datetime
from typing import Annotated, get_args

import msgspec
import orjson
from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.background import BackgroundTask

from memctl.api.assist.before_tool import Delegations
from memctl.api.assist.recall import Injection, recall
from memctl.api.http.access import caller_of
from memctl.api.reading import models
from memctl.api.reading.caller import Caller
from memctl.api.reading.pages import rows_unseen
from memctl.api.reading.places import limits_of, on_machine, places_of, projects_of, visible, waiting_at
from memctl.api.reading.reader import Reader, Readers
from memctl.api.search.engine import Engine
from memctl.api.write.command_handler import CommandHandler
from memctl.api.write.remote_ingest import begun_by_others
from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import (
    CONTEXT_BLOCK_CLOSE,
    CONTEXT_BLOCK_OPEN,
    Agent,
    event_id_of,
    hook_key,
    session_stream,
)
from memctl.domain.events.recalls import MemoryRecalled, held_back, quoted
from memctl.domain.knowledge.orders import only_names
from memctl.domain.projects.identity import replaces
from memctl.domain.session.tools import family_of
from memctl.domain.support.provenance import through
from memctl.infra.hooks.capture_policy import CapturePolicy
from memctl.infra.hooks.dialects import answer, place_of, read_asked
from memctl.infra.settings_model import RecallHook
from memctl.infra.transcripts.fields import string

log = logging.getLogger("memctl.api")


def routes(readers: Readers, engine: Engine, commands: CommandHandler, policy: CapturePolicy) -> APIRouter:
    """One route. It answers 204 if there is nothing to inject, which is most of the time."""
    router = APIRouter(tags=["hooks"])
    delegations = Delegations()

    @router.post("/hooks/{agent}", responses={204: {"description": "There is nothing to inject."}})
    async def hook(
        request: Request,
        agent: Annotated[str, Path(max_length=50)],
        delivery: Annotated[str, Header(alias="Memctl-Delivery", max_length=32)] = "",
        event: Annotated[str, Query(max_length=50, description="The hook, where the payload does not name it.")] = "",
    ) -> Response:
        """The text to inject at this hook, in the form of the agent's client. The injection is recorded, or that
        a prompt got none."""
        sent, payload = read_asked(agent, await request.body(), event)
        name = string(payload.get("hook_event_name"))

        session, here = place_of(payload)
        if name not in commands.settings.recall_at and name in get_args(RecallHook):
            return Response(status_code=204)
        caller = caller_of(request)
        of_caller = f"{caller.name} {session}" if session else ""  # whoever knows a session's id plants nothing in it
        if name == "PreToolUse" and family_of(string(payload.get("tool_name"))) == "delegate":
            delegations.asked(of_caller, payload)
            return Response(status_code=204)
        if name == "SubagentStart":
            payload = {**payload, "prompt": delegations.started(of_caller, string(payload.get("agent_type")))}
        # Whoever has a key is on another machine: a path of theirs says nothing of what lies here.
        if policy.off("recall", session, here if caller.owner else ""):
            return Response(status_code=204)

        limits = commands.settings.injection

        def look(reader: Reader) -> tuple[Injection, int, str, bool]:
            places = places_of(reader, None, string(payload.get("cwd")) or None)
            stream = session_stream(agent, session)
            injection = recall(reader, engine, name, payload, stream, places, datetime.now().astimezone(), None, limits)
            silent = name == "UserPromptSubmit" and bool(injection.silent or injection.passed_over)
            asked = bool(injection.text) or silent
            recordable = asked and _may_record(reader, caller, stream, here)
            if name == "SessionStart" and payload.get("source") != "compact":
                injection = _asking(injection, _question(reader, string(payload.get("cwd"))))
            return injection, reader.space_id, on_machine(reader, here), recordable

        injection, space_id, location, recordable = await run_in_threadpool(readers.read, look, caller)
        if agent not in get_args(Agent) or not (injection.text or recordable):
            return Response(status_code=204)
        # What nobody may record is not held back either: it would be measured by nothing.
        withheld = (
            recordable
            and bool(injection.memories)
            and name == "UserPromptSubmit"
            and held_back(session, string(payload.get("prompt")), commands.settings.withhold_share)
        )
        recorded = _recalled(agent, space_id, delivery, session, location, name, injection, withheld=withheld)
        recording = BackgroundTask(_record, commands, recorded if recordable else None, caller)
        if withheld or not injection.text:
            return Response(status_code=204, background=recording)
        return Response(
            orjson.dumps(answer(agent, sent, injection.text)), media_type="application/json", background=recording
        )

    return router


def _question(reader: Reader, here: str) -> str:
    """What the user has to be asked where a session begins; empty for nothing."""
    waiting = {each.project: each for each in waiting_at(reader, here)} if here else {}
    known = next((project for project in projects_of(reader).all if project.anchor in waiting), None)
    if known is None:
        return ""
    asked = waiting[known.anchor]
    return asked_of(known.name, known.root, replaces=replaces(asked.root, asked.claims))


def asked_of(name: str, root: str, *, replaces: bool = False) -> str:
    """The question about a checkout that claims a project, or that lies where it lay. Whoever made a folder or its
    configuration chose the words of these names, so none is shown that says something."""
    named = quoted(name, 100) if only_names(name) else "a project"
    place = quoted(root, 300) if only_names(root) else "another directory"
    said = (
        f"lies where {named} lay, under another remote or none"
        if replaces
        else f"says that it is of {named}, which memory knows from {place}"
    )
    return (
        f"This checkout {said}. Nothing of the one is used in"
        " the other before the user says so, in a terminal: `memctl project join`, or `memctl project join --no`."
        " Say so to the user, and do not run it."
    )


def _asking(injection: Injection, question: str) -> Injection:
    """The injection with a question before it. A question is no memory: alone it is not recorded."""
    if not question:
        return injection
    said = injection.text.removeprefix(f"{CONTEXT_BLOCK_OPEN}\n") or CONTEXT_BLOCK_CLOSE
    return msgspec.structs.replace(injection, text=f"{CONTEXT_BLOCK_OPEN}\n{question}\n{said}")


def _may_record(reader: Reader, caller: Caller, stream: str, location: str) -> bool:
    """Whether a caller may have something recorded in that session, at that place: in none that somebody else began,
    where it would count as said to their agent."""
    if caller.scopes.isdisjoint(("ingest", "owner")):
        return False
    if caller.member and begun_by_others(reader, {stream}, through(caller.speaks("user"))):
        return False
    limits = limits_of(reader)
    if limits is None:
        return True
    sessions = rows_unseen(reader, models.sessions, [stream])
    return limits.holds(location) and all(visible(reader, row) for row in sessions.values())


def _recalled(
    agent: str,
    space_id: int,
    delivery: str,
    session: str,
    location: str,
    hook: str,
    injection: Injection,
    *,
    withheld: bool,
) -> NewEvent | None:
    if not session:
        return None
    return NewEvent(
        stream=session_stream(agent, session),
        payload=MemoryRecalled(
            hook=hook,
            asked_by=event_id_of(space_id, hook_key(delivery)) if delivery else None,
            memories=injection.memories,
            tokens=0 if withheld else injection.tokens,
            withheld=withheld,
            passed_over=injection.passed_over,
            silent=injection.silent,
        ),
        occurred_at=Micros(time.time_ns() // 1000),
        dedupe_key=f"recalled:{delivery or uuid.uuid4().hex}",
        actor="memctl",
        location=location,
        session_id=session,
    )


def _record(commands: CommandHandler, event: NewEvent | None, caller: Caller) -> None:
    if event is None:
        return
    try:
        commands.record(event, caller)
    except Exception as problem:  # the agent has its answer; that it had one is worth no failure
        log.warning("what was recalled could not be recorded: %s", problem)
