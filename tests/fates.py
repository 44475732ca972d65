"""Histories drawn at random: sessions of several agents that move about, what hooks and transcripts tell of them, and
what people say of all that memory made of it. No I/O; a seed gives the same history each time.

Everything is drawn from small pools, so that keys meet, and each pool holds what hurts: locations inside one another,
worktrees, clocks that lie, texts of control characters, escapes that decode to NUL, words in Korean.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec
from events import NOON

from memctl.domain.events.core_memory import CoreMemoryAppended, CoreMemoryReplaced
from memctl.domain.events.event import Event, Micros, NewEvent, Payload, Position, derived_id, type_of
from memctl.domain.events.event_order import prompt_about
from memctl.domain.events.facts import Lesson, fact_id, quote
from memctl.domain.events.feedback import (
    ConditionResolved,
    KnowledgeRejected,
    KnowledgeVerified,
    MemoryPinned,
    MemoryRated,
)
from memctl.domain.events.file_checks import FileObserved
from memctl.domain.events.observations import (
    CommitRecorded,
    ContextCompacted,
    Hunk,
    NoticeReceived,
    Observation,
    PromptSubmitted,
    ResponseReceived,
    SessionEnded,
    SessionStarted,
    TagRecorded,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    event_id_of,
    hook_key,
    session_stream,
    transcript_key,
)
from memctl.domain.events.processor_events import (
    PROCESSORS,
    Claim,
    EpisodeDistilled,
    InsightExtracted,
    ProcessorFailed,
    StrategyDistilled,
    TrajectoryJudged,
)
from memctl.domain.events.recalls import MemoryRecalled, RecalledMemory
from memctl.domain.events.skipping import EventSkipped
from memctl.domain.events.statements import (
    DecisionMade,
    DiscoveryNoted,
    HypothesisProposed,
    HypothesisUpdated,
    SessionSummarized,
    TaskCompleted,
    TaskStarted,
)
from memctl.domain.knowledge.consolidation import STREAM as CONSOLIDATION
from memctl.domain.knowledge.consolidation import (
    ConsolidationUndone,
    ContradictionFound,
    Member,
    MemoriesMerged,
    MemoryPruned,
    MemorySuperseded,
)
from memctl.domain.knowledge.forget_requests import ForgetRefused, ForgetRequested
from memctl.domain.knowledge.reflections import ReflectionMade
from memctl.domain.language.hypotheses import key_of
from memctl.domain.language.notes import NOTES, MemoryNoted
from memctl.domain.projects.identity import ProjectIdentified, ProjectMerged, ProjectSplit
from memctl.domain.support.location import normalise

SECOND = 1_000_000

PLACES = (
    "/work/shop", "/work/shop/api", "/work/shop/api/v1", "/work/shop.worktrees/feat", "/work/shop/.worktrees/fix",
    "/home/dana", "/home/dana/ledger", "C:\\work\\shop", "", "/work/매장", "/work/od\nd", "/work/a:b", "/",
    "/home/dana/.codex/worktrees/1a2b/ledger", "/srv/" + "deep/" * 300,
)  # fmt: skip
REMOTES = ("github.com/dana/shop", "github.com/dana/ledger", "gitlab.com/other/shop")
BRANCHES = ("", "main", "main", "feat/cart", "HEAD")
NASTY = ("", "\x1b[31mred\x1b[0m\x01", 'say "x" \\ \t', "😀 𝄞 \u202e", "word " * 400, "한국어 " * 200, "a" * 9_000)

ASKED = (
    "Fix the total of an empty cart: it crashes.", "Fix the total of an empty cart:  it crashes.", "commit",
    "thanks!",
    "no, that's wrong: never use npm here, always use pnpm", "Please write the changelog for the release",
    "I always prefer short answers without emoji. Use tabs, not spaces.",
    "let's go with option 2 because it is simpler",
    "Implement the following plan:\n# Plan: a faster cart\n1. measure", "고마워, 이제 테스트도 추가해줘",
    "우리는 항상 pnpm을 사용한다", "이 방식으로 하자", "why does it fail?", "this is still not working",
    "<command-name>/clear</command-name>", "<system-reminder>x</system-reminder>", "issues are in Linear issue ABC-12",
    "add tests for this and update the changelog",
    "use the review skill on this", "from now on always run make test before you commit",
    "TypeError: unsupported operand type(s)\nfix this please",
)  # fmt: skip
SAID = (
    "The issue is that `total` starts from None because the cart has no discount. I'll start from 0.",
    "The root cause is that `cart.py` reads the clock before it is set, so the cache is stale.",
    "I suspect the cache in cart.py is stale because of the clock that nobody sets.", "That confirms my hypothesis.",
    "That's not the issue.", "I'll use a decimal instead of a float for the totals here.", "Fixed: it totals 0 now.",
    "I decided to keep the old endpoint because clients rely on it.", "No response requested.",
    "This project uses pnpm as its package manager.", "원인은 캐시가 오래되어 합계가 틀린 것 같습니다",
)  # fmt: skip
TRACEBACK = """F    [100%]
tests/test_cart.py:12: in test_total_of_empty_cart
    assert Cart().total() == 0
E   TypeError: unsupported operand type(s) for +: 'NoneType' and 'int'
tests/test_cart.py:12: TypeError
FAILED tests/test_cart.py::test_total_of_empty_cart - TypeError: unsupported operand type(s) for +: 'NoneType'
1 failed, 11 passed in 0.41s
"""
RUN: tuple[tuple[str, str, int], ...] = (
    ("pytest -q", TRACEBACK, 1), ("pytest -q", "12 passed in 0.40s", 0), ("go test ./...", "ok  \tshop\t0.2s", 0),
    ("go build ./...", "./cart.go:7:2: undefined: total", 1), ("go build ./...", "", 0),
    ("git commit -m 'fix(cart): total of an empty cart'", "[main 1a2b3c4] fix\n 2 files changed", 0),
    ("git push", "To github.com:dana/shop.git\n   1..2  main -> main", 0),
    ("git rev-parse --show-toplevel", "/work/shop", 0), 
    ("cd /home/dana/ledger && git push", "To github.com:dana/ledger", 0),
    ("git -C api remote -v", "origin\tgit@gitlab.com:other/shop.git (fetch)", 0), ("pnpm install", "done", 0),
    ("npm install left-pad@1.3.0", "added 1 package", 0), ("npm run test:unit", "Missing script: test:unit", 1),
    ("npm run test", "3 passed", 0), ("mypy .", "cart.py:3: error: Name 'x' is not defined  [name-defined]", 1),
    ("mypy .", "Success: no issues found", 0),
    ("cat package.json", '{"name": "shop\\u0000", "scripts": {"t": "x"}}', 0),
    ("rm -rf x &&", "sh: 1: Syntax error: end of file unexpected", 2), ("grep -rn total", "", 1), ("", "", 0),
    ("gh pr create", "https://github.com/dana/shop/pull/7", 0),
    ("git checkout -b feat/cart", "", 0), ("git switch -c cart", "", 0), ("git push origin HEAD:main", "", 0),
    ("git commit -m 'totals of carts'", "[main 2b] totals", 0), ("npm run lint", "", 0), ("eslint .", "", 0),
    ("go test -race ./...", "ok  \tgithub.com/dana/shop/cart\t0.1s\n", 0), ("make test", "ok", 0),
    ("cd api && make test", "ok", 0), ("pnpm -r test", "ok", 0),
    ("cargo test", "error[E0425]: cannot find value `x`", 101),
)  # fmt: skip
READ: tuple[tuple[str, str], ...] = (
    ("go.mod", "module shop\n\nrequire (\n\tgithub.com/spf13/cobra v1.8.0\n)\n"),
    ("package.json", '{"name": "s\\u0000", "dependencies": {"zod": "3.0.0", "b\\u0000": "1"}, "scripts": {"t": "x"}}'),
    ("package.json", '{"name": "shop", "dependencies": {"react": "^18.2.0"}, "scripts": {"test": "vitest"}}'),
    ("pyproject.toml", '[project]\nname = "led\\u0000ger"\ndependencies = [\n"django>=5",\n]\n'),
    ("cart.py", "import django\nfrom sqlalchemy import select\n\ndef total(cart):\n    return sum(cart)\n"),
    ("api/cart.go", 'import "github.com/spf13/cobra"\n\nfunc Total() int { return 0 }\n'),
)  # fmt: skip
EDIT: tuple[tuple[str, str, str], ...] = (
    ("cart.go", "v := map[string]interface{}{", "v := map[string]any{"),
    ("cart.go", "v := map[string]any{", "v := map[string]interface{}{"),
    ("b.go", "v := map[string]interface{}{", "v := map[string]any{"),
    ("cart.py", "    total = self.discount", "    total = self.discount or 0"),
    ("cart.py", "def total(cart):\n    x = 1\n    return x + y", "def total(cart: Cart) -> int:\n    return add(1, 2)"),
    ("a:b.ts", "const limit = 10\nretry(10)", "const LIMIT = 10\nretry(LIMIT)"),
)  # fmt: skip
FAILED = (
    "The user doesn't want to proceed with this tool use. STOP what you are doing and wait.",
    "The user doesn't want to proceed. the user said: never push to main, use a branch instead\n\nNote: x",
    "<tool_use_error>File has not been read yet.</tool_use_error>", "Exit code 1\nerror: bad thing", "cancelled",
)  # fmt: skip


class _Session:
    """Tells one session's events, each a little later than the one before, but for its clock's whims."""

    def __init__(self, luck: random.Random, agent: str, id: str, began: int) -> None:
        self.luck = luck
        self.agent, self.id = agent, id
        self.stream = session_stream(agent, id)
        self.events: list[NewEvent] = []
        self._now = began
        self._line = ""
        self._number = 0
        self._ordinals = luck.random() < 0.25
        self._hooks = luck.choice((0.0, 0.0, 0.3, 1.0))
        """How much hooks tell beside the transcript."""
        self._transcript = luck.choice((1.0, 1.0, 1.0, 0.5, 0.0))
        """How much of it the transcript tells that has come so far."""
        self._confined = luck.choice((0.0, 0.0, 0.0, 0.1, 1.0))
        """How much of it is told under a key that is limited to projects."""
        self._titles = luck.choice((0.0, 0.0, 0.4))
        """How often its title is told again."""
        self._entitled = "#0"
        self._wild = luck.random() < 0.3
        self._stated = luck.sample(range(13), 4)
        """Which kinds of statements are made of it."""
        self.place = normalise(luck.choice(PLACES))
        self._branch = luck.choice(BRANCHES)

    def at(self) -> Micros:
        if self._wild and self.luck.random() < 0.15:
            return Micros(self.luck.choice((0, 1, self._now - 600 * SECOND, self._now + 3600 * SECOND, NOON)))
        return Micros(self._now)

    def tell(self, payload: Observation, actor: str = "agent", **more: Any) -> None:
        luck = self.luck
        self._number += 1
        self._now += luck.choice((0, 1, SECOND, SECOND, 60 * SECOND, 5 * 3600 * SECOND if luck.random() < 0.1 else 1))
        if luck.random() < 0.06:
            self.place, self._branch = normalise(luck.choice(PLACES)), luck.choice(BRANCHES)
        where = {"branch": self._branch} if luck.random() < 0.5 else {}
        by_hook = luck.random() < self._hooks
        if not by_hook or luck.random() < self._transcript:
            line = f"#{self._number}" if self._ordinals else f"{self.id}-{self._number}"
            parent = self._line if luck.random() < 0.8 else f"{self.id}-{luck.randint(1, 40)}"
            lined = msgspec.structs.replace(payload, line=line, parent=parent, **where, **more)
            self._line = line
            self._add(lined, transcript_key(self.agent, self.id, line, 0), actor)
        if by_hook:
            hooked = msgspec.structs.replace(payload, via="hook", **more)
            drawn = UUID(int=luck.getrandbits(128))
            self._add(hooked, hook_key(str(drawn)), actor)

    def entitle(self) -> None:
        """A title of no time and no place, in a line that is only numbered, as Claude Code writes them."""
        luck = self.luck
        if luck.random() < 0.7:
            self._number += 1
            self._entitled = f"#{self._number}"
        line, block = self._entitled, luck.choice((0, 1))
        notice = NoticeReceived(kind="title", text=luck.choice(ASKED), line=line, block=block, confined=self._limited())
        key = transcript_key(self.agent, self.id, line, block)
        self.events.append(
            NewEvent(
                stream=self.stream, payload=notice, occurred_at=Micros(0), dedupe_key=key, actor="system",
                session_id=self.id,
            )
        )  # fmt: skip

    def _limited(self) -> bool:
        """Whether this is told under a key that is limited to projects."""
        return self.luck.random() < self._confined

    def _add(self, payload: Payload, key: str, actor: str) -> None:
        location = self.place if self.luck.random() < 0.9 else ""
        if isinstance(payload, Observation) and self._limited():
            payload = msgspec.structs.replace(payload, confined=True)
        self.events.append(
            NewEvent(
                stream=self.stream, payload=payload, occurred_at=self.at(), dedupe_key=key, actor=actor,
                location=location, session_id=self.id,
            )
        )  # fmt: skip

    def use(self, tool: str, given: dict[str, Any], text: str, *, failed: bool = False, **outcome: Any) -> None:
        luck = self.luck
        call = f"call-{self._number}" if luck.random() < 0.95 else luck.choice(("", "call-1"))
        aside = {"subagent": "a1"} if luck.random() < 0.06 else {}
        order = [0, 1] if luck.random() < 0.95 else [1, 0]
        for step in order:
            if step == 0 and luck.random() < 0.97:
                self.tell(ToolCalled(tool=tool, call=call, input=given, message=luck.choice(("", "m1", "m2"))), **aside)
            elif step == 1 and luck.random() < 0.97:
                came = ToolFailed if failed else ToolReturned
                self.tell(came(text=text, tool=tool, call=call, **outcome), "tool", **aside)

    def step(self) -> None:
        luck = self.luck
        if luck.random() < self._titles:
            self.entitle()
        match luck.choices(
            ("ask", "say", "run", "read", "edit", "fail", "plan", "delegate", "notice", "start", "end", "nasty"),
            (14, 14, 24, 10, 14, 5, 4, 4, 4, 2, 1, 4),
        )[0]:
            case "ask":
                self.tell(PromptSubmitted(text=luck.choice(ASKED)), "user")
            case "say":
                kind = luck.choice(("text", "text", "thinking"))
                tokens = luck.randint(0, 50)
                message = luck.choice(("", "m1", "m2"))
                self.tell(ResponseReceived(text=luck.choice(SAID), kind=kind, message=message, tokens_out=tokens))
            case "run":
                command, output, code = luck.choice(RUN)
                given = {"command": command} if luck.random() < 0.9 else {"cmd": ["bash", "-lc", command]}
                self.use("Bash", given, output, failed=code != 0 and luck.random() < 0.9, exit_code=code or None)
            case "read":
                name, text = luck.choice(READ)
                self.use("Read", {"file_path": f"{self.place}/{name}"}, text)
            case "edit":
                name, old, new = luck.choice(EDIT)
                path = luck.choice((f"{self.place}/{name}", name))
                lines = (*(f"-{line}" for line in old.split("\n")), *(f"+{line}" for line in new.split("\n")))
                patch = (Hunk(1, 1, lines),) if luck.random() < 0.5 else ()
                self.use("Edit", {"file_path": path, "old_string": old, "new_string": new}, "ok", patch=patch)
            case "fail":
                self.use("Bash", {"command": luck.choice(RUN)[0]}, luck.choice(FAILED), failed=True)
            case "plan":
                steps = [
                    {"content": f"step {n}", "status": luck.choice(("pending", "in_progress", "completed"))}
                    for n in range(luck.randint(0, 4))
                ]
                self.use("TodoWrite", {"todos": steps}, "ok")
            case "delegate":
                if luck.random() < 0.3:
                    self.use("Skill", {"skill": "review"}, "ok")
                given = {"subagent_type": "reviewer", "description": "look at the cart", "prompt": "look"}
                self.use("Task", given, "it looks fine", asked=luck.choice(("a1", "a2", "")))
            case "notice":
                kind = luck.choice(("title", "tokens", "interrupted", "api_error", "queued-prompt", "queue-taken"))
                data = {"tokens_in": luck.randint(0, 9), "tokens_out": "?"} if kind == "tokens" else {}
                self.tell(NoticeReceived(kind=kind, text=luck.choice(ASKED), data=data), "system")
            case "start":
                repository = luck.choice(("", "git@github.com:dana/shop.git"))
                source = luck.choice(("startup", "resume", "compact"))
                parent = luck.choice(("", "", "s0"))
                started = SessionStarted(
                    source=source, repository=repository, parent_session=parent, title=luck.choice(("", "", "A cart"))
                )
                self.tell(started, "system")
            case "end":
                self.tell(luck.choice((SessionEnded(reason="exit"), ContextCompacted(text="so far"))), "system")
            case _:
                text = luck.choice(NASTY)
                self.tell(luck.choice((PromptSubmitted(text=text), ResponseReceived(text=text))), "user")

    def state(self) -> None:
        """Somebody records something of this session's work, from wherever."""
        luck = self.luck
        theory = luck.choice(SAID)
        told: tuple[Payload, ...] = (
            TaskStarted(description=luck.choice(ASKED)),
            TaskStarted(description="Write the changelog", task_type="docs"),
            TaskCompleted(outcome=luck.choice(("success", "failure", "partial", "unknown")), note="so it is"),
            HypothesisProposed(text=theory, confidence=luck.choice((0.3, 0.95))),
            HypothesisUpdated(
                hypothesis=key_of(theory), text=theory, status=luck.choice(("confirmed", "rejected")), confidence=0.9
            ),
            DecisionMade(text=luck.choice(("Wait for the clock", theory)), rationale="it drifts"),
            DiscoveryNoted(text=luck.choice(NASTY) or "the clock drifts"),
            SessionSummarized(summary=luck.choice((*SAID, *NASTY)), tags=("cart",)),
            MemoryRecalled(
                hook=luck.choice(("UserPromptSubmit", "SessionStart")),
                asked_by=self._asker() if luck.random() < 0.7 else None,
                memories=tuple(RecalledMemory(luck.choice(("m", "n", "", text))) for text in luck.sample(NASTY, 2)),
                withheld=luck.random() < 0.3,
            ),
            *self._processed(),
        )
        self._now += luck.choice((0, 1, SECOND, SECOND))
        at = self.at()
        if luck.random() < 0.3:
            at = Micros(max(0, at + luck.choice((-1, 0, 1)) * 90 * SECOND))
        self.events.append(
            NewEvent(
                stream=self.stream, payload=told[luck.choice(self._stated)], occurred_at=at, session_id=self.id,
                dedupe_key=f"command:{UUID(int=luck.getrandbits(128))}", actor=luck.choice(("user", "agent")),
                location=normalise(luck.choice(PLACES)),
            )
        )  # fmt: skip

    def _asker(self) -> UUID:
        """The event of a hook that may have asked memory: the last mostly, or one that never comes."""
        hooks = [each.dedupe_key for each in self.events if each.dedupe_key.startswith("hook:")]
        return event_id_of(1, self.luck.choice((*hooks[-1:] * 3, *hooks, "hook:never")))

    def _processed(self) -> tuple[Payload, ...]:
        """What processors may say of the session: of its episodes, of one that is not, and of one yet to come."""
        luck = self.luck
        text = luck.choice((*ASKED, *SAID, *NASTY))
        prompts = luck.choice([e.payload.text for e in self.events if isinstance(e.payload, PromptSubmitted)] or ASKED)
        episode = fact_id(self.stream, "episode", f"{prompt_about(luck.choice((prompts, luck.choice(ASKED))))}:1")
        said = {"made_by": luck.choice(("a-model", "")), "prompt": "judge@1", "tokens": luck.randint(0, 99)}
        span = luck.choice((None, quote(derived_id(prompts), prompts)))
        outcome: Any = luck.choice(("success", "failure", "partial"))
        return (
            TrajectoryJudged(episode=episode, outcome=outcome, why=text, **said),
            EpisodeDistilled(episode=episode, problem=text, tips=(text,) * luck.randint(0, 12), **said),
            StrategyDistilled(
                episode=episode,
                strategies=tuple(
                    Lesson(title=luck.choice(SAID), content=text, from_failure=luck.random() < 0.5)
                    for _ in range(luck.randint(0, 4))
                ),
                **said,
            ),
            InsightExtracted(
                claims=tuple(
                    Claim(kind="fact", text=luck.choice(SAID), quote=prompts, said_by=said_by, span=span)
                    for said_by in luck.sample(("user", "agent", "tool"), 2)
                ),
                **said,
            ),
        )


def sessions(luck: random.Random, count: int = 3, steps: int = 25) -> list[NewEvent]:
    """The events of some sessions, each with what was stated of it, as they were told."""
    found: list[NewEvent] = []
    for number in range(count):
        agent = luck.choice(("claude-code", "claude-code", "codex"))
        began = NOON + luck.randint(0, 4) * 20 * 3600 * SECOND
        session = _Session(luck, agent, luck.choice((f"s{number}", f"s{number}", "same", f"s{number}:x")), began)
        for _ in range(luck.randint(1, steps)):
            session.step()
            if luck.random() < 0.2:
                session.state()
        found += session.events
    return list({event.dedupe_key: event for event in found}.values())


class Known(msgspec.Struct, frozen=True):
    """What memory made of a history, by which people name it: ids of each kind, and locations."""

    claims: Sequence[str] = ()
    memories: Sequence[str] = ()
    locations: Sequence[str] = ()


KINDS = 26
"""How many things `words` chooses from."""


def words(luck: random.Random, known: Known, count: int) -> list[NewEvent]:
    """What people and agents say of what memory holds: of the same few things again and again, some of which are not
    there (yet), at times that repeat."""

    def one(of: Iterable[str], other: str) -> str:
        return luck.choice((*sorted(of)[:4], other))

    anchors = (*sorted(known.locations)[:5], *REMOTES)
    found = []
    kinds = luck.sample(range(KINDS), 8)  # few at once, so that what is said meets
    for _ in range(count):
        claim, memory = one(known.claims, "a-claim"), one(known.memories, "a-memory")
        place = normalise(luck.choice(PLACES))
        text = luck.choice((*ASKED, *SAID, *NASTY))
        good, version = luck.random() < 0.5, luck.randint(1, 4)
        mine, others = Member(memory, "d1"), [Member(each, "d2") for each in (*sorted(known.memories)[:2], "a-memory")]
        earlier = event_id_of(1, luck.choice(found).dedupe_key) if found else UUID(int=7)
        stated: tuple[tuple[str, Payload], ...] = (
            (NOTES, MemoryNoted(text=text, everywhere=good, files=("cart.py",))),
            (NOTES, MemoryNoted(text="I prefer pnpm over npm.", kind="preference", confidence=luck.random())),
            (f"knowledge/{claim}", KnowledgeVerified(claim=claim, why="it held")),
            (f"knowledge/{claim}", KnowledgeRejected(claim=claim, why="it did not")),
            (f"knowledge/{memory}", MemoryPinned(memory=memory, pinned=good)),
            (f"knowledge/{memory}", MemoryRated(memory=memory, value=luck.choice((0.0, 0.3, 1.0)), why=text[:300])),
            (f"knowledge/{claim}", ConditionResolved(condition=claim, resolution="confirmed", resolved_to=memory)),
            (f"forget/{claim}", luck.choice((ForgetRequested(thing=claim, why="wrong"), ForgetRefused(thing=claim)))),
            (f"knowledge/{claim}", ConditionResolved(condition=claim, resolution=luck.choice(("pending", "rejected")))),
            ("core/memory", CoreMemoryAppended(section="human", text=text[:2_000], version=version)),
            ("core/memory", CoreMemoryReplaced(section="human", text=text[:2_000], version=version, old="a", new="b")),
            (
                "project/x",
                ProjectIdentified(
                    location=place or "/", root=luck.choice(("", "/work/shop")), remote=luck.choice(("", *REMOTES))
                ),
            ),
            ("project/x", ProjectMerged(into=luck.choice(anchors), merged=luck.choice(anchors))),
            ("project/x", ProjectMerged(into=luck.choice(anchors), merged=luck.choice(anchors))),
            ("project/x", ProjectSplit(part=luck.choice(anchors))),
            (PROCESSORS, ProcessorFailed(processor="judge", subject=claim, kind="timeout", why=text[:300])),
            (CONSOLIDATION, MemoriesMerged(keeper=mine, merged=(others[0], others[0]), alike=0.9)),
            (CONSOLIDATION, MemoryPruned(memory=memory, last_at=NOON, importance=0.1)),
            (CONSOLIDATION, MemorySuperseded(memory=mine, by=others[0], why=text[:300])),
            (CONSOLIDATION, ContradictionFound(memories=(mine, *others))),
            (CONSOLIDATION, ConsolidationUndone(change=earlier, memories=(memory, "a-memory"), why=text[:300])),
            (
                CONSOLIDATION,
                ReflectionMade(
                    topic=luck.choice(("file:cart.py", "check:ruff", "pair:a.py\nb.py")), title=text[:100], text=text,
                    memories=(memory, "a-memory"), importance=luck.choice((0.1, 0.6)),
                ),
            ),
            (CONSOLIDATION, FileObserved(path=f"{place}/cart.py", blob=luck.choice(("", "1a", "2b")))),
            ("history/x", CommitRecorded(line=luck.choice("abc") * 40, text=f"{text[:60]}\n\n{text}", files=(place,))),
            (
                "history/x",
                CommitRecorded(
                    line=luck.choice("abcd") * 40,
                    text=f"Undo\n\nThis reverts commit {luck.choice('abc') * 40}.\n{text}",
                ),
            ),
            ("history/x", TagRecorded(line=f"tag {text[:20]}", parent=luck.choice("abc") * 40, name=text[:20])),
        )  # fmt: skip
        assert len(stated) == KINDS, f"there are {len(stated)} to choose from: say so in KINDS, or some are never drawn"
        stream, payload = stated[luck.choice(kinds)]
        found.append(
            NewEvent(
                stream=stream, payload=payload, actor=luck.choice(("user", "user", "agent")), location=place,
                occurred_at=Micros(NOON + luck.randint(0, 6) * 3600 * SECOND),
                dedupe_key=f"command:{UUID(int=luck.getrandbits(128))}",
            )
        )  # fmt: skip
    return found


def arriving(luck: random.Random, events: Sequence[NewEvent]) -> list[NewEvent]:
    """The same events as they may arrive: late, in another order, repeated, some in a second version."""
    order = list(enumerate(events))
    how = luck.random()
    if how < 0.15:
        luck.shuffle(order)
    elif how < 0.45:  # each a little late or early, one stream far behind the others
        behind = luck.choice(events).stream if events else ""
        order.sort(key=lambda at: at[0] + luck.randint(0, 6) + (200 if at[1].stream == behind else 0))
    elif how < 0.55:  # all that hooks told comes first, or last
        order.sort(key=lambda at: at[1].dedupe_key.startswith("hook:"), reverse=luck.random() < 0.5)
    came = [event for _, event in order]
    for event in luck.sample(came, len(came) // 8):
        came.insert(luck.randint(0, len(came)), event)
    return came


def versions(luck: random.Random, events: Sequence[NewEvent]) -> list[NewEvent]:
    """Other versions of some of these: the same delivery, told with other words, from elsewhere, at another time, by
    somebody else, in another stream, on other sources, or as something else altogether."""
    found = []
    for event in luck.sample(events, len(events) // 10):
        how = luck.randint(0, 6)
        payload, other = event.payload, luck.choice(events)
        if how == 0 and hasattr(payload, "text"):
            payload = msgspec.structs.replace(payload, text=luck.choice((*ASKED, *NASTY)))
        elif how == 1:
            event = msgspec.structs.replace(event, location=normalise(luck.choice(PLACES)))
        elif how == 2:
            event = msgspec.structs.replace(event, actor=luck.choice(("user", "agent", "tool", "memctl")))
        elif how == 3:
            event = msgspec.structs.replace(event, stream=other.stream, session_id=other.session_id)
        elif how == 4:
            event = msgspec.structs.replace(event, sources=(event_id_of(1, other.dedupe_key),))
        elif how == 5:
            payload = other.payload
        else:
            event = msgspec.structs.replace(event, occurred_at=Micros(max(0, event.occurred_at - 7 * SECOND)))
        found.append(msgspec.structs.replace(event, payload=payload))
    return found


def leavings(luck: random.Random, events: Sequence[NewEvent]) -> list[NewEvent]:
    """Words that some of the sessions' events are to be left out, most of all those that were told twice."""
    told = {event.dedupe_key: event for event in events if event.stream.startswith("session/")}
    often = Counter(event.dedupe_key for event in events)
    first = sorted(told.values(), key=lambda event: (-often[event.dedupe_key], luck.random()))
    found = []
    for event in first[: luck.randint(1, 3)]:
        out = event_id_of(1, event.dedupe_key)
        found.append(
            NewEvent(
                stream=event.stream,
                payload=EventSkipped(skipped=out),
                actor="user",
                occurred_at=Micros(NOON),
                dedupe_key=f"skip:{out}",
            )
        )
    return found


class Log:
    """The log as its contract has it: a delivery that is known is passed by, or kept as a variant."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._known: dict[str, set[tuple[object, ...]]] = {}

    def append(self, came: Iterable[NewEvent]) -> list[Event]:
        fresh = []
        for new in came:
            told = (
                new.type, msgspec.json.encode(new.payload), new.occurred_at, new.location, new.actor, new.stream,
                new.session_id, new.sources,
            )  # fmt: skip
            known = self._known.setdefault(new.dedupe_key, set())
            if told in known:
                continue
            first = event_id_of(1, new.dedupe_key)
            id = derived_id(f"{first}#{told}") if known else first
            known.add(told)
            fresh.append(
                Event(
                    position=Position(len(self.events) + len(fresh) + 1),
                    event_id=id,
                    variant_of=None if id == first else first,
                    space_id=1,
                    stream=new.stream,
                    type=type_of(new.payload).name,
                    occurred_at=new.occurred_at,
                    recorded_at=Micros(0),
                    actor=new.actor,
                    location=new.location,
                    session_id=new.session_id,
                    dedupe_key=new.dedupe_key,
                    payload=new.payload,
                    sources=new.sources,
                )
            )
        self.events += fresh
        return fresh
