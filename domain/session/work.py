"""What an agent did: uses of tools, commands, tests, changed files, plans, errors and what resolved them."""

from collections.abc import Sequence
from typing import Any

from memctl.domain.events.event import Micros
from memctl.domain.events.event_order import OrderedEvent
from memctl.domain.events.fact_builder import FactBuilder, span_of
from memctl.domain.events.facts import (
    CommandRan,
    Edit,
    ErrorOccurred,
    ErrorResolved,
    FileChanged,
    Lesson,
    PlanChanged,
    ResolutionRefuted,
    Span,
    StackShown,
    SubagentAsked,
    TestsRan,
    ToolUsed,
)
from memctl.domain.events.observations import ToolCalled, ToolFailed, ToolOutcome
from memctl.domain.failures.signatures import SeenError, errors_in, hides_exit, is_noise
from memctl.domain.failures.templates import plain
from memctl.domain.knowledge.strategies import (
    of_check,
    of_commit,
    of_gate,
    of_machine,
    of_one_test,
    of_refusal,
    steps_of,
)
from memctl.domain.language.decisions import Asked, decisions_in_answers
from memctl.domain.projects.stack import imports_in, manifest_in, message_in, subject_of
from memctl.domain.session.changed_files import ChangedFiles
from memctl.domain.session.conversation import Conversation
from memctl.domain.session.episode_outcomes import EpisodeOutcomes
from memctl.domain.session.error_resolution import Resolutions, Resolved, Spent, filters_of
from memctl.domain.session.met_errors import MetErrors
from memctl.domain.session.searches import Searches
from memctl.domain.session.tool_uses import Use
from memctl.domain.session.tools import (
    Change,
    StepList,
    changes_of_use,
    command_of,
    directory_of,
    family_of,
    files_of,
    is_clients_own,
    summary_of,
    symbols_in,
)
from memctl.domain.session.working_directory import git_stays_in, in_scratch, parted
from memctl.domain.session.wrong_calls import WrongCalls
from memctl.domain.shell.changes import undone_by
from memctl.domain.shell.commands import (
    changes_of,
    head_of,
    heads_of,
    is_commit,
    is_reading,
    only_reads,
    proofs_in,
    proofs_of,
    proves,
    runner_of,
)
from memctl.domain.shell.test_runners import runner_in
from memctl.domain.support import patterns
from memctl.domain.support.bounded import one_line
from memctl.domain.support.location import belongs, is_scratch, joined
from memctl.domain.support.provenance import Provenance, attributed, through

REFUTED_STEPS, REFUTED_WITHIN = 60, 2 * 3_600_000_000
"""An error that comes back within so many uses of tools and microseconds was not resolved after all."""

LONGEST_COMMAND = 2_000
"""Characters of a command that a fact keeps; the event has the rest."""

_WRITTEN = ("content", "file_text", "new_string", "new_str", "newString")
"""Fields of an edit that hold the new text; the first two the whole of it."""

_SESSION = "Process running with session ID "
_STILL_RUNNING = patterns.compile(rf"{_SESSION}(\d+)")
_IN_BACKGROUND = ("Command running in background", "Command was manually backgrounded")
_REFUSED = {
    "claude-code": "The user doesn't want to proceed with this tool use",
    "opencode": "The user rejected permission to use this",
}
"""How a client begins what it says of a refusal. In another client's session a tool wrote it."""
_USER_SAID = patterns.compile(
    r"(?:the user said|with the following feedback):\s*(?P<words>\S.*?)(?:\n\nNote: |\Z)", patterns.S
)


MOST_CALLS = 2_000
"""Calls of one stream whose outcome may still come: the newest."""


class Work:
    """The uses of tools of one stream, and the errors they left open."""

    def __init__(self, assertions: FactBuilder, conversation: Conversation, episode_outcomes: EpisodeOutcomes) -> None:
        self._assert = assertions
        self._talk = conversation
        self._outcomes = episode_outcomes
        self._calls: dict[tuple[str, str], tuple[OrderedEvent, str]] = {}
        """Calls without an outcome yet, by the key that they came through: no key makes another's call return."""
        self._uses = 0
        self._running: dict[str, tuple[str, str]] = {}
        """Commands that go on in the background and where they began, by the client's id of the process."""
        self._steps = StepList()
        self._resolutions = Resolutions()
        self._resolved: dict[str, tuple[ErrorResolved, int]] = {}
        self.searches = Searches(assertions)
        self._wrong_calls = WrongCalls(assertions)
        self._met = MetErrors(assertions)
        self._files = ChangedFiles(assertions)
        self._subagents: set[str] = set()
        """Those that used a tool. Some clients name a subagent by the call that asked for it."""

    @property
    def at_a_tool(self) -> bool:
        """Whether a call has not come back."""
        return bool(self._calls)

    def called(self, placed: OrderedEvent, seen: ToolCalled) -> None:
        if seen.call:
            self._calls[through(placed.event.actor), seen.call] = placed, self._assert.directory
            if len(self._calls) > MOST_CALLS:
                del self._calls[next(iter(self._calls))]

    def responded(self, placed: OrderedEvent, text: str, *, thought: bool) -> None:
        self._resolutions.responded(self._uses, text, thought=thought)
        if not thought:
            self._met.answered(self._uses, placed, text)
            self.searches.answered(text)

    def came_back(self, placed: OrderedEvent, seen: ToolOutcome) -> None:
        """A use of a tool ended: all that it says, in one go."""
        self._uses += 1
        if seen.subagent:
            self._subagents.add(seen.subagent)
        called, tool, given, location = self._call_of(placed, seen)
        family = family_of(tool)
        failed = isinstance(seen, ToolFailed)
        command, began = self._command(given, location) if family == "run" else ("", "")
        use = Use(placed, called, began)
        errors, noise = errors_or_noise(family, command, seen, failed)
        ok = not failed and not (errors and family == "run")
        files = files_of(family, given, seen.file)
        self._note_use(placed, seen, tool, family, summary_of(given), files, ok=ok, noise=noise)
        self._asked(placed, given, seen)
        if noise:
            self._refused(placed, called, tool, family, seen)
            return
        changes = [] if failed else changes_of_use(family, tool, given, seen.patch, seen.file)
        if not failed:
            self._changed(use, family, changes, given, seen)
            if not seen.subagent:  # its list of steps is not the task's
                self._planned(placed, tool, given, seen)
            self._built(placed, family, files, given, seen, command)
        about = seen.call or str(placed.cite)
        ended = bool(command) and not self._goes_on(seen, given, command, began)
        if ended:
            self._ran(use, command, seen, ok, errors)
            self._called(placed, about, command, began, ok, errors)
        occurred = self._erred(placed, about, tool, command, began, seen.text, errors)
        if occurred:
            self._met.failed(self._uses, placed, about, command, began, seen.text, occurred)
        elif ended:
            self._met.passed(self._uses, placed, command, began)
        if ended:
            self._settle(use, command, seen.text, ok, occurred)
        self.searches.used(placed, family, files, command, changes, seen.text, ok=ok)

    def _called(
        self, placed: OrderedEvent, about: str, command: str, began: str, ok: bool, errors: Sequence[SeenError]
    ) -> None:
        """Whether a command that ended was called as its program wants to be."""
        if ok:
            self._wrong_calls.passed(self._uses, placed, about, command, began)
        else:
            self._wrong_calls.failed(self._uses, placed, about, command, began, errors)

    def _call_of(self, placed: OrderedEvent, seen: ToolOutcome) -> tuple[OrderedEvent | None, str, dict[str, Any], str]:
        """The call that came back, its tool and its input, and where the session was when it was made."""
        called, location = self._calls.pop((through(placed.event.actor), seen.call), (None, ""))
        call = called.payload if called is not None else None
        if not isinstance(call, ToolCalled):
            return None, seen.tool, {}, location
        return called, seen.tool or call.tool, call.input, location

    def _note_use(
        self,
        placed: OrderedEvent,
        seen: ToolOutcome,
        tool: str,
        family: str,
        summary: str,
        files: tuple[str, ...],
        *,
        ok: bool,
        noise: bool,
    ) -> None:
        episode = self._talk.episode_of(placed)
        self._assert.note(
            ToolUsed,
            placed,
            tool=tool,
            family=family,
            ok=ok,
            noise=noise,
            summary=summary,
            files=files,
            result=seen.text[:600],
        )
        if episode is not None:
            episode.used(tool, ok=ok or noise)
            episode.touch(placed.when)

    def _refused(
        self, placed: OrderedEvent, called: OrderedEvent | None, tool: str, family: str, seen: ToolOutcome
    ) -> None:
        """What the user said, or showed, by refusing a use of a tool. Only of tools of the client's own, which alone
        lets its words through: what ran, or a server of others answered, is no word of the user's, whatever it says.
        `tool` is that of the call, which is asked, for most transcripts name none beside what came back."""
        text = seen.text
        begins = _REFUSED.get(placed.event.stream.split("/", 2)[1], "")
        if called is None or seen.exit_code is not None or not begins or not is_clients_own(tool):
            return
        if family == "edit" and begins in text[:200]:
            self._talk.refused_change()
        if text.lstrip().startswith(begins) and (refusal := _USER_SAID.search(text)):
            self._talk.refused(placed, text, *refusal.span("words"))

    def _asked(self, placed: OrderedEvent, given: dict[str, Any], seen: ToolOutcome) -> None:
        """The subagent that a call asked for, if it did."""
        asked = seen.asked or (seen.call if seen.call in self._subagents else "")
        if not asked:
            return
        role, about = (
            next((text for name in names if isinstance(text := given.get(name), str) and text.strip()), "")
            for names in (("subagent_type", "agent_type", "agent"), ("description", "name", "prompt", "message"))
        )
        self._assert.note(
            SubagentAsked,
            placed,
            asked=asked,
            role=role[:60],
            about=one_line(about, 200),
            ok=not isinstance(seen, ToolFailed),
            duration_ms=seen.duration_ms,
        )

    def _command(self, given: dict[str, Any], location: str) -> tuple[str, str]:
        """The command that a use began, or went on with, and the directory it began in."""
        process = given.get("session_id", given.get("bash_id", given.get("shellId")))
        if process is not None and str(process) in self._running:
            return self._running[str(process)]
        return command_of(given), directory_of(given, location)

    def _goes_on(self, seen: ToolOutcome, given: dict[str, Any], command: str, began: str) -> bool:
        """Whether the command has not ended: then what it printed proves nothing yet."""
        if _SESSION in (head := seen.text[:300]) and (running := _STILL_RUNNING.search(head)):
            self._running[running[1]] = command, began
            return True
        return given.get("run_in_background") is True or seen.text.startswith(_IN_BACKGROUND)

    # --- changes ---

    def _changed(
        self, use: Use, family: str, changes: Sequence[Change], given: dict[str, Any], seen: ToolOutcome
    ) -> None:
        placed = use.came
        episode = self._talk.episode_of(placed)
        edits = []
        if changes:
            self._files.changed(use, changes, given)
        for change in changes:
            names = symbols_in(change.path, change.after)
            self._assert.note(FileChanged, placed, task=self._talk.task, symbols=names, **change._asdict())
            edits.append(Edit(change.path, change.before, change.after))
            self._talk.worked_on(placed, change.path)
            if episode is not None:
                base = self._assert.top
                scratch = is_scratch(joined(base, change.path), base)
                episode.changed(
                    change.path, change.added, change.removed, names, created=change.created, scratch=scratch
                )
        self._resolutions.edited(self._uses, edits)

    def _built(
        self,
        placed: OrderedEvent,
        family: str,
        files: Sequence[str],
        given: dict[str, Any],
        seen: ToolOutcome,
        command: str,
    ) -> None:
        """What a file that was read, or written, shows of what the project is built with."""
        path, text = files[0] if files else "", seen.text
        if family == "edit":
            text = next((new for name in _WRITTEN if isinstance(new := given.get(name), str)), "")
        elif command.startswith("cat ") and not set(command) & set("|;&>\n"):
            path = command[4:].strip().strip("'\"")
        if not path or not text or self._lies_elsewhere(path):
            return
        manifest = manifest_in(path, text)
        imports = imports_in(path, text)
        if manifest is not None:
            self._assert.note(
                StackShown,
                placed,
                path=path,
                manifest=manifest.of,
                own=manifest.own,
                packages=manifest.packages,
                scripts=manifest.scripts,
            )
        elif imports:
            self._assert.note(StackShown, placed, path=path, imports=imports)

    def _lies_elsewhere(self, path: str) -> bool:
        """Whether a file lies in another place than the session works in: a library's source, another project's."""
        base = self._assert.top
        return bool(base) and not belongs(joined(base, path), base)

    def _planned(self, placed: OrderedEvent, tool: str, given: dict[str, Any], seen: ToolOutcome) -> None:
        steps = self._steps.after(tool, given, seen.text)
        if steps is not None:
            self._assert.note(PlanChanged, placed, steps=steps, task=self._talk.task)
            if (episode := self._talk.episode_of(placed)) is not None:
                episode.plan = steps
        if tool.lower() == "exitplanmode":
            self._talk.planned(placed, seen.text)
        if tool.lower() == "askuserquestion":
            by = attributed(Provenance.USER_TYPED, placed.event.actor)
            for decision in decisions_in_answers(seen.text, _asked(given), self._talk.asked_for):
                span = span_of(placed, seen.text, decision.start, decision.end)
                self._talk.decided(placed, span, decision, by)

    # --- commands, errors, fixes ---

    def _ran(self, use: Use, command: str, seen: ToolOutcome, ok: bool, errors: Sequence[SeenError]) -> None:
        placed = use.came
        task, episode = self._talk.task, self._talk.episode_of(placed)
        short = command[:LONGEST_COMMAND]
        head = head_of(command)
        within, elsewhere = parted(command, use.began, self._assert.top)
        self._assert.note(
            CommandRan,
            placed,
            command=short,
            head=head,
            ok=ok,
            exit_code=seen.exit_code,
            task=task,
            proofs=proofs_in(within) if elsewhere else proofs_of(command),
            elsewhere=any(part.words[:1] == ("git",) for part in elsewhere),
        )
        runner = runner_in(command, seen.text)
        if runner and (ok or any("test failure" in error.error_types for error in errors) or not errors):
            away = any(runner_of(part.head) for part in elsewhere) and not any(runner_of(part.head) for part in within)
            self._assert.note(TestsRan, placed, runner=runner, command=short, passed=ok, task=task, elsewhere=away)
            runners = {part.head for part in (*within, *elsewhere) if runner_of(part.head)}
            if episode is not None and not in_scratch(command, use.began, self._assert.top, runners):
                episode.tests_passed, episode.tested_at = ok, episode.steps
                if ok and filters_of(command):
                    self._outcomes.learnt(placed, episode, of_one_test(command), Span(placed.cite))

    def _settle(self, use: Use, command: str, output: str, ok: bool, errors: Sequence[ErrorOccurred]) -> None:
        """What a command's end says of the errors that are open."""
        episode = self._talk.episode_of(use.came)
        if not ok:
            spent = Spent(self._assert.tokens, self._assert.idle)
            self._resolutions.failed(self._uses, command, errors, use.began, spent=spent)
            if episode is not None and episode.passed:
                for step in steps_of(command):
                    episode.passed.pop(step, None)
            if episode is not None and any(error.signature in episode.unresolved for error in errors):
                episode.failed_at = episode.steps
            return
        self._resolutions.ran(self._uses, changing := changes_of(command))
        for change in changing:
            if " stash" not in change and (undone := undone_by(change)) is not None:  # a stash is mostly for a look
                self._talk.undone(undone)
        self._resolve(use.came, command, use.began, output)
        if episode is not None:
            if episode.failed_at is not None and not episode.unresolved:
                episode.failed_at = None
            if episode.changed_at is not None:
                for step in steps_of(command):
                    episode.went_through(step)
            if is_commit(command) and git_stays_in(command, use.began, self._assert.top):
                self._outcomes.learnt(use.came, episode, of_commit(tuple(episode.passed)), Span(use.came.cite))
                episode.committed(subject_of(command))
                self._talk.committed(use.came, message_in(command))

    def _erred(
        self, placed: OrderedEvent, about: str, tool: str, command: str, began: str, text: str,
        errors: Sequence[SeenError],
    ) -> list[ErrorOccurred]:  # fmt: skip
        occurred = []
        episode = self._talk.episode_of(placed)
        for error in errors:
            fact = self._assert.make(
                ErrorOccurred,
                placed,
                f"{about}:{error.signature}",
                _span(placed, text, error),
                signature=error.signature,
                error_types=error.error_types,
                template=error.template,
                message=error.message,
                text=error.text,
                frames=error.frames,
                files=error.files,
                code=error.code,
                beside=tuple(other.signature for other in errors if other is not error),
                tool=tool,
                command=command[:LONGEST_COMMAND],
                task=self._talk.task,
                seen_before=self._resolutions.is_open(error.signature),
            )
            occurred.append(fact)
            self._refute(placed, fact)
            if episode is not None:
                heads = heads_of(command)
                ran = frozenset(head for head in heads if not is_reading(head))
                scratch = in_scratch(command, began, self._assert.top, ran)
                matters = not scratch and (any(map(proves, heads)) or bool(error.frames))
                episode.erred(error.signature, error.error_types, error.message, matters=matters)
                lesson = of_refusal(error.error_types, command) or of_machine(error.error_types, error.message)
                self._outcomes.learnt(placed, episode, lesson, *fact.evidence)
        return occurred

    def _refute(self, placed: OrderedEvent, error: ErrorOccurred) -> None:
        known = self._resolved.pop(error.signature, None)
        if known is None:
            return
        resolution, at = known
        soon = self._uses - at <= REFUTED_STEPS and placed.when - resolution.occurred_at <= REFUTED_WITHIN
        if soon:
            self._assert.make(
                ResolutionRefuted,
                placed,
                str(resolution.id),
                *error.evidence,
                resolution=resolution.id,
                signature=error.signature,
            )

    def _resolve(self, placed: OrderedEvent, command: str, began: str, output: str) -> None:
        found = self._resolutions.passed(self._uses, command, began, output)
        for resolved in found:
            error = resolved.error.fact
            fact = self._assert.make(
                ErrorResolved,
                placed,
                str(error.id),
                *error.evidence,
                Span(placed.cite),
                error=error.id,
                signature=error.signature,
                message=one_line(error.message, 160),
                command=command[:LONGEST_COMMAND],
                edits=resolved.edits,
                ran=resolved.ran,
                explanation=resolved.explanation,
                approach=resolved.approach,
                duration_us=Micros(placed.when - error.occurred_at),
                calls=self._uses - resolved.error.at,
                tokens=max(self._assert.tokens - resolved.error.spent.tokens, 0),
                idle_us=self._assert.idle - resolved.error.spent.idle,
                task=error.task,
                part_of=resolved.lead.fact.id if resolved.lead is not None else None,
                instead=resolved.instead,
            )
            if not resolved.error.miscalled and resolved.lead is None:
                with_it = (each.error.fact for each in found if each.lead is resolved.error and each.change)
                self._met.mended(placed, [error, *with_it], resolved)
            self._resolved[error.signature] = (fact, self._uses)
            if (episode := self._talk.episode_of(placed)) is not None:
                failed = resolved.error
                scratch = in_scratch(failed.command, failed.began, self._assert.top, failed.culprits)
                episode.resolve(
                    error.signature, error.message, resolved.approach, resolved.explanation, scratch=scratch
                )
                self._outcomes.learnt(placed, episode, _lesson(resolved), *fact.evidence)


def _asked(given: dict[str, Any]) -> dict[str, Asked]:
    """The questions that a call puts to the user."""
    return {
        str(one.get("question")).strip(): Asked(str(one.get("header") or "")[:60], _labels(one.get("options")))
        for one in _objects(given.get("questions"))
    }


def _labels(options: object) -> tuple[str, ...]:
    return tuple(str(one["label"]) for one in _objects(options) if one.get("label"))


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value[:_MOST_ASKED] if isinstance(one, dict)] if isinstance(value, list) else []


_MOST_ASKED = 16
"""Questions of one call, and answers offered to one, that are looked at: clients take four."""


def _lesson(resolved: Resolved) -> Lesson | None:
    error = resolved.error
    fact = error.fact
    if not resolved.edits:
        return None
    return of_check(fact.error_types, error.command, fact.message, resolved.edits) or of_gate(
        fact.error_types, error.command, error.culprits, fact.message
    )


def errors_or_noise(family: str, command: str, seen: ToolOutcome, failed: bool) -> tuple[Sequence[SeenError], bool]:
    """The errors that a use showed; with True where it failed without one: it was interrupted, or found nothing."""
    if failed and (is_noise(seen.text) or seen.interrupted):
        return (), True
    errors = _errors(family, command, seen, failed)
    # Exit 1 of what looks for something is an answer.
    return errors, failed and not errors and bool(command) and only_reads(command)


def _errors(family: str, command: str, seen: ToolOutcome, failed: bool) -> list[SeenError]:
    if family == "run":
        if failed or (command and hides_exit(command)):
            return errors_in(seen.text, command, failed=failed, exit_code=seen.exit_code)
    elif failed and family in ("web", "other", "delegate"):
        return errors_in(seen.text, "", failed=True)
    return []


def _span(placed: OrderedEvent, text: str, error: SeenError) -> Span:
    if plain(text) == text:
        return span_of(placed, text, error.start, error.end)
    # Colour codes lie between: cite the message where it stands unbroken.
    first = error.message.split("\n", 1)[0]
    at = text.find(first)
    return span_of(placed, text, at, at + len(first)) if at >= 0 else Span(placed.cite)
