"""Draw pieces of work from real sessions, to be judged by readers who do not see how the rule judged them.

    python tests/eval/judging.py [--seed N] [--count N] [--out FOLDER] [--sessions FOLDER]

Writes `judge-sheet.md`, the rubric and each trajectory (what was asked, what was done and what came of it, what was
said), and `judge-sheet.json`, the same for a machine, with `outcome` left open.

    python tests/eval/judging.py --against JUDGED.json [JUDGED.json]

tells how often the rule agrees with the labels, with the confusion of each; of two sheets also how far they agree.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sessions import FOLDER, Data

from memctl.domain.events.facts import Answered, Episode, Fact, Prompted, TestsRan, ToolUsed
from memctl.domain.support.bounded import one_line

ROOT = Path(__file__).parents[2]
OUT = ROOT / ".scratch"
FIRST, LAST = 6, 22
"""Uses of tools of a trajectory that are shown, from its beginning and from its end."""

LABELS = ("success", "partial", "failure", "unknown")

RUBRIC = """\
Each trajectory below is one piece of work of a coding agent: from the prompt that asked for it to the next request for
something else (or to where the record ends). Say how it went, for the person who asked, by what stands here:

- **success**: what was asked for was done, as far as the record shows: checks that were run pass or what still fails
  has nothing to do with it, and the person went on without complaint; or a question was answered.
- **partial**: something of it was done, and something that was asked for is missing, fails, or was found wrong and not
  mended by the end.
- **failure**: nothing of what was asked for was reached: given up, undone, refused, or ended by an error.
- **unknown**: the record does not tell: it ends in the middle of the work, or holds no work to judge.

An agent's own "done" with changes that fit is a success where nothing speaks against it. A complaint of the person
that the agent then answered to, with no further complaint, is a success. What counts is how it stood at the end.
"""


class Trajectory(NamedTuple):
    """An episode, with what happened in it and the prompt that came next."""

    episode: Episode
    facts: list[Fact]
    after: str


def trajectories(data: Data) -> list[Trajectory]:
    """Every piece of work with at least one use of a tool or an answer."""
    found = []
    for stream, facts in sorted(data.facts.items()):
        episodes = {fact.id: fact for fact in facts if isinstance(fact, Episode)}
        told = sorted(episodes.values(), key=lambda e: (e.occurred_at, e.id))
        for episode, following in zip(told, [*told[1:], None], strict=True):
            until = following.occurred_at if following is not None else None
            within = [
                f for f in facts if f.occurred_at >= episode.occurred_at and (until is None or f.occurred_at < until)
            ]
            if episode.steps or episode.answer:
                after = following.description if following is not None and following.stream == stream else ""
                found.append(Trajectory(episode, within, after))
    return found


def told(number: int, each: Trajectory) -> dict[str, Any]:
    episode = each.episode
    return {
        "number": number,
        "id": str(episode.id),
        "project": episode.location.rstrip("/").rpartition("/")[2],
        "asked": one_line(episode.description, 300),
        "course": _course(each.facts),
        "after": one_line(each.after, 200),
        "outcome": None,
        "why": "",
    }


def _course(facts: Sequence[Fact]) -> list[str]:
    uses = [fact for fact in facts if isinstance(fact, ToolUsed)]
    hidden = {id(fact) for fact in uses[FIRST : len(uses) - LAST]} if len(uses) > FIRST + LAST else set()
    spoken = [fact for fact in facts if isinstance(fact, Answered) and not fact.subagent]
    prompts = [at for at, fact in enumerate(facts) if isinstance(fact, Prompted)]
    last_before_prompt = {id(_last_answer(facts[:at])) for at in prompts} | {id(fact) for fact in spoken[-2:]}
    lines: list[str] = []
    left_out = 0
    for fact in facts:
        if isinstance(fact, ToolUsed):
            if id(fact) in hidden:
                left_out += 1
                continue
            if left_out:
                lines.append(f"  … {left_out} uses of tools left out")
                left_out = 0
            lines.append(_use(fact))
        elif isinstance(fact, TestsRan):
            lines.append(f"  tests {'passed' if fact.passed else 'FAILED'}")
        elif isinstance(fact, Prompted):
            lines.append(f"  USER: {one_line(fact.text, 700)}")
        elif isinstance(fact, Answered) and id(fact) in last_before_prompt:
            lines.append(f"  AGENT: {one_line(fact.text, 900)}")
    return lines


def _last_answer(facts: Sequence[Fact]) -> Fact | None:
    return next((fact for fact in reversed(facts) if isinstance(fact, Answered) and not fact.subagent), None)


def _use(fact: ToolUsed) -> str:
    result = "" if fact.ok else f" → FAILED: {one_line(fact.result, 220)}"
    if fact.ok and fact.family == "run":
        result = f" → {one_line(fact.result[-220:], 120)}" if fact.result.strip() else ""
    return f"  {fact.tool} {one_line(fact.summary, 150)}{result}"


def sheet(drawn: list[dict[str, Any]], seed: int, of: int) -> str:
    lines = ["# Trajectories to be judged", "", f"{len(drawn)} of {of}, drawn with seed {seed}.", "", RUBRIC]
    for each in drawn:
        lines += [f"## {each['number']}. {each['project']}: {each['asked']}", "", "```", *each["course"], "```", ""]
        lines += [f"Next request in the session: {each['after'] or 'none: the record ends here'}", ""]
    return "\n".join(lines)


def confusion(labels: dict[str, str], said: dict[str, str]) -> str:
    """How often the rule's outcome is the label, and which it took for which: a row for each label."""
    known = sorted(labels.keys() & said.keys())
    right = sum(labels[id] == said[id] for id in known)
    most = Counter(labels[id] for id in known).most_common(1)[0]
    always = f"always {most[0]}: {most[1] / len(known):.3f}"
    lines = [f"accuracy {right} of {len(known)} ({right / len(known):.3f}); {always}"]
    lines.append(f"{'label':<10}" + "".join(f"{name:>10}" for name in LABELS))
    for label in LABELS:
        of = Counter(said[id] for id in known if labels[id] == label)
        lines.append(f"{label:<10}" + "".join(f"{of[name]:>10}" for name in LABELS))
    return "\n".join(lines)


def agreement(one: dict[str, str], other: dict[str, str]) -> str:
    """How far two readers agree, and Cohen's kappa."""
    known = sorted(one.keys() & other.keys())
    same = sum(one[id] == other[id] for id in known) / len(known)
    by_chance = sum(
        sum(of[id] == name for id in known) / len(known) * (sum(other[id] == name for id in known) / len(known))
        for name in LABELS
        for of in (one,)
    )
    return f"they agree on {same:.3f}, kappa {(same - by_chance) / (1 - by_chance) if by_chance < 1 else 1:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--sessions", type=Path, help="a folder of transcripts, in place of the data's own")
    parser.add_argument("--against", type=Path, nargs="+", metavar="JUDGED")
    given = parser.parse_args()
    found = trajectories(Data(given.data, given.sessions))
    if given.against:
        said = {str(each.episode.id): str(each.episode.outcome) for each in found}
        why = {str(each.episode.id): each.episode.why for each in found}
        sheets = [json.loads(path.read_text(encoding="utf-8")) for path in given.against]
        labels = [{each["id"]: each["outcome"] for each in judged} for judged in sheets]
        for path, of in zip(given.against, labels, strict=True):
            print(f"{path}\n{confusion(of, said)}")
        if len(labels) == 2:
            print(agreement(*labels))
        for each in sheets[0]:
            if each["outcome"] != said.get(each["id"]):
                print(f"{each['number']}: {each['outcome']}, the rule {said.get(each['id'])} ({why.get(each['id'])})")
        return
    ranked = sorted(found, key=lambda each: str(each.episode.id))
    chosen = random.Random(given.seed).sample(ranked, min(given.count, len(ranked)))
    drawn = [told(number, each) for number, each in enumerate(chosen, 1)]
    given.out.mkdir(parents=True, exist_ok=True)
    told_as_json = json.dumps(drawn, indent=1, ensure_ascii=False) + "\n"
    (given.out / "judge-sheet.json").write_text(told_as_json, encoding="utf-8")
    (given.out / "judge-sheet.md").write_text(sheet(drawn, given.seed, len(found)), encoding="utf-8")
    print(f"{len(drawn)} of {len(found)} drawn to {given.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
