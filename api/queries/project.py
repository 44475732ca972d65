"""A project's page: what sessions showed of it, each line with how often and where it was seen, and when last."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from memctl.api.queries import bugs, claims
from memctl.api.queries.threads import open_threads
from memctl.api.reading import models
from memctl.api.reading.pages import Where, page, select, total
from memctl.api.reading.places import Places, projects_of
from memctl.api.reading.projects import (
    Line,
    ProjectCounts,
    ProjectItem,
    ProjectPage,
    WaitingItem,
)
from memctl.api.reading.questions import question
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import BugHit, Listing, iso, moment
from memctl.domain.projects.identity import Project, Projects
from memctl.domain.projects.stack import case_of, is_config, is_entry, is_library, language_of, test_style_of
from memctl.domain.support.bounded import one_line
from memctl.domain.support.location import above, path_of, project_of
from memctl.domain.support.provenance import Provenance, words_of
from memctl.domain.support.tallies import Tallies, Tally
from memctl.projections.project_knowledge import SessionKnowledge

SESSIONS = 400
"""Sessions whose rows a page is made of, newest first: what is older has decayed."""

HALF_LIFE_DAYS = 30
"""After so many days a change counts half as much for a hot spot."""

DAY = 86_400_000_000
SOURCES = 5
"""Events that a line names."""

_ELSEWHERE = ("/.git/", "/node_modules/")


class Sum(msgspec.Struct):
    """Tallies of one thing over sessions. Weighted by age: see `HALF_LIFE_DAYS`."""

    count: int = 0
    failed: int = 0
    at: int = 0
    weight: float = 0.0
    streams: set[str] = msgspec.field(default_factory=set)
    events: list[tuple[int, UUID]] = msgspec.field(default_factory=list)

    def add(self, stream: str, tally: Tally, now: int) -> None:
        self.count += tally.count
        self.failed += tally.failed
        self.at = max(self.at, tally.at)
        self.weight += tally.count * 0.5 ** (max(now - tally.at, 0) / DAY / HALF_LIFE_DAYS)
        self.streams.add(stream)
        if tally.event is not None:
            self.events.append((tally.at, tally.event))

    def line(self, text: str) -> Line:
        newest = sorted(self.events, key=lambda e: (-e[0], e[1]))
        shown = list(dict.fromkeys(str(event) for _, event in newest))[:SOURCES]
        return Line(text, self.count, len(self.streams), iso(moment(self.at)) if self.at else None, shown)


Sums = dict[str, Sum]


@question("/projects", "projects")
def projects(reader: Reader) -> Listing[ProjectItem]:
    """Every project, newest first, with its locations and what was merged into it."""
    return Listing(listed(projects_of(reader).all))


@question("/projects/waiting", "projects")
def projects_waiting(reader: Reader) -> Listing[WaitingItem]:
    """Every checkout that says it is of a known project and waits for a person's word. Until then nothing of the one is
    used in the other. `merge-projects` says yes, `split-project` no."""
    return Listing(waiting(projects_of(reader)))


@question("/project", "projects", live=True)
def project_page(reader: Reader, project: Project, now: datetime) -> ProjectPage:
    """What is known of one project: stack, commands, structure, conventions, hot spots, issues, what is preferred and
    avoided; each line with how often and in how many sessions it was seen, when last, and events that show it."""
    return shown(reader, project, int(now.timestamp() * 1_000_000))


def shown(reader: Reader, project: Project, now: int) -> ProjectPage:
    """The page of a project: who it is, counts, and sections of `Line`s. `now` in microseconds."""
    places = Places(project.name, "asked", project.locations)
    p = models.project_knowledge
    newest, _ = page(reader, p, "last_at", Where(p).within(places), limit=SESSIONS, longest=SESSIONS)
    rows = [keyed.row for keyed in newest]
    return ProjectPage(
        project=_item(project),
        stats=_statistics(reader, places),
        **sections_of(rows, project, now),
        **_learnt(reader, places),
    )


def sections(page: ProjectPage) -> list[tuple[str, list[Line]]]:
    """The sections of a page by their names, in their order."""
    names = [name for name in page.__struct_fields__ if name not in ("project", "stats")]
    return [(name, getattr(page, name)) for name in names]


# --- what sessions showed ---


def sections_of(rows: Sequence[SessionKnowledge], project: Project, now: int) -> dict[str, list[Line]]:
    """The sections of a page that rows of sessions come to: tech_stack, commands, structure, conventions, hotspots."""
    inside = Roots(project).path_in
    changed, fixed, read = (_summed(rows, table, now, inside) for table in ("changed", "fixed", "read"))
    return {
        "tech_stack": _stack(rows, project, changed, read, now),
        "commands": _commands(rows, now),
        "structure": _structure(changed, read),
        "conventions": _conventions(rows, changed, read, now),
        "hotspots": _hotspots(changed, fixed, read),
    }


def _summed(
    rows: Iterable[SessionKnowledge], table: str, now: int, called: Callable[[str, str], str] = lambda at, name: name
) -> Sums:
    """Each name in a table with what rows have of it, as it is `called` at a row's location."""
    found: Sums = defaultdict(Sum)
    for row in rows:
        tallies: Tallies = getattr(row, table)
        for each, tally in tallies.items():
            if name := called(row.location, each):
                found[name].add(row.stream, tally, now)
    return found


class Roots:
    """The checkouts of a project: where in one a file lies."""

    def __init__(self, project: Project) -> None:
        self._tops = {path_of(at).rstrip("/") for at in (project.root, *project.locations)}
        self._of: dict[str, str | None] = {}
        """The root of the checkout that a directory lies in, as far as it was asked for."""

    def path_in(self, location: str, path: str) -> str:
        """A file's path from the root of its checkout on; empty for a file that lies outside of the project."""
        whole = path if path.startswith("/") or path[1:2] == ":" else f"{path_of(location)}/{path}"
        directory = whole.rpartition("/")[0]
        if directory not in self._of:
            self._of[directory] = self._root(whole)
        root = self._of[directory]
        if root is None:
            return ""
        inside = whole[len(root) + 1 :]
        return "" if any(part in f"/{inside}" for part in _ELSEWHERE) else inside

    def _root(self, whole: str) -> str | None:
        around = [at for at in (*above(whole), "") if at in self._tops]
        # A worktree inside its repository is a root of its own; a folder of a checkout is none.
        worktrees = [at for at in around if project_of(at) != at]
        return min(worktrees or around, key=len) if around else None


def _grouped(files: Mapping[str, Sum], of: Callable[[str], str]) -> Sums:
    found: Sums = defaultdict(Sum)
    for path, each in files.items():
        if name := of(path):
            _add(found[name], each)
    return found


def _add(group: Sum, each: Sum) -> None:
    group.count += each.count
    group.weight += each.weight
    group.at = max(group.at, each.at)
    group.streams |= each.streams
    group.events += each.events[-SOURCES:]


def _most(sums: Mapping[str, Sum], limit: int) -> list[tuple[str, Sum]]:
    """Those seen in most sessions first, then those seen most often."""
    return sorted(sums.items(), key=lambda item: (-len(item[1].streams), -item[1].count, item[0]))[:limit]


def _stack(rows: Sequence[SessionKnowledge], project: Project, changed: Sums, read: Sums, now: int) -> list[Line]:
    found = []
    languages = _grouped(changed, language_of)
    for name, each in _grouped(read, language_of).items():
        _add(languages[name], each)
    total = sum(each.count for each in languages.values())
    for name, each in sorted(languages.items(), key=lambda item: (-item[1].count, item[0]))[:5]:
        if each.count >= max(3, total * 0.03):
            found.append(each.line(f"{name}: {each.count * 100 // total} % of the code that was read or changed"))
    for name, each in _most(_summed(rows, "manifests", now), 3):
        path, _, of = name.partition("=")
        found.append(each.line(f"manifest `{path.rpartition('/')[2]}` ({of})"))
    for name, each in _most(_summed(rows, "runners", now), 3):
        if name not in ("script", "js") and each.count > each.failed:
            found.append(each.line(f"tests run with {name}"))
    libraries = _libraries(rows, project, now)
    found += [each.line(f"uses {name}") for name, each in _most(libraries, 10)]
    return found


def _libraries(rows: Sequence[SessionKnowledge], project: Project, now: int) -> Sums:
    """Packages of manifests that are imported too, and imports that are packages by their name alone."""
    packages = _summed(rows, "packages", now)
    own = {*project.remotes, *_summed(rows, "owns", now)}
    found: Sums = {}
    for name, each in _summed(rows, "imports", now).items():
        hosted = "." in name.split("/")[0] and "/" in name
        mine = name in own or (hosted and name.rpartition("/")[2] in project.names)
        listed = name in packages or is_library(name) or hosted
        if listed and not mine and each.count >= 2 and name != "golang.org/x":
            found[name] = each
    return found


def _commands(rows: Sequence[SessionKnowledge], now: int) -> list[Line]:
    found = []
    for kind, table in (("test", "tests"), ("check", "checks"), ("build", "builds")):
        passing = {
            form: each
            for form, each in _summed(rows, table, now).items()
            if each.count - each.failed >= 2 and each.failed <= each.count / 2
        }
        for form, each in _most(passing, 3):
            found.append(each.line(f"{kind}: `{form}` passed {each.count - each.failed} of {each.count} times"))
    return found


def _structure(changed: Sums, read: Sums) -> list[Line]:
    touched = {path: changed.get(path) or read[path] for path in {**read, **changed}}
    found = []
    for folder, files, each in _folders(touched):
        found.append(each.line(f"`{folder}/`: {files} file{'s' if files > 1 else ''} touched"))
    for what, rule, limit in (("entry point", is_entry, 3), ("configured by", is_config, 6)):
        for path, each in _most({path: each for path, each in touched.items() if rule(path)}, limit):
            found.append(each.line(f"{what}: `{path}`"))
    return found


def _folders(touched: Mapping[str, Sum]) -> list[tuple[str, int, Sum]]:
    """The directories that most of the work lies in, each with its number of files that were touched: one directory
    that holds nearly all gives way to those in it."""
    groups: dict[str, list[str]] = {}
    for depth in range(1, 6):
        groups = defaultdict(list)
        for path in touched:
            if folder := "/".join(path.split("/")[:-1][:depth]):
                groups[folder].append(path)
        most = max((len(paths) for paths in groups.values()), default=0)
        if most < 0.8 * sum(len(paths) for paths in groups.values()):
            break
    sums = {
        name: _grouped({path: touched[path] for path in files}, lambda _: "all")["all"]
        for name, files in groups.items()
    }
    return [(name, len(groups[name]), each) for name, each in _most(sums, 6) if each.count >= 3]


def _conventions(rows: Sequence[SessionKnowledge], changed: Sums, read: Sums, now: int) -> list[Line]:
    found = []
    touched = {path: changed.get(path) or read[path] for path in {**read, **changed}}
    for style, each in _most(_grouped(touched, test_style_of), 2):
        files = sum(1 for path in touched if test_style_of(path) == style)
        if files >= 3:
            found.append(each.line(f"tests are {style} ({files} files)"))
    for language in [name for name, _ in _most(_grouped(changed, language_of), 2)]:
        code = [path for path in touched if language_of(path) == language and case_of(path)]
        cases = Counter(map(case_of, code)).most_common(1)
        if cases and len(code) >= 5 and cases[0][1] >= 0.8 * len(code):
            case, of = cases[0]
            each = _grouped({path: touched[path] for path in code}, lambda path: "files")["files"]
            found.append(each.line(f"{language} files are named in {case} ({of} of {len(code)} with several words)"))
    commits = _summed(rows, "commits", now)
    total = sum(each.count for each in commits.values())
    for style, each in _most(commits, 1):
        if total >= 5 and each.count >= 0.7 * total:
            found.append(each.line(f"commit subjects are {style} ({each.count} of {total})"))
    return found


def _hotspots(changed: Sums, fixed: Sums, read: Sums) -> list[Line]:
    found = []
    hot = sorted(changed.items(), key=lambda item: (-item[1].weight, item[0]))
    for path, each in hot[:6]:
        if each.count >= 3:
            fixes = fixed[path].count if path in fixed else 0
            more = f", {fixes} of them to resolve an error" if fixes > 1 else ", 1 to resolve an error" if fixes else ""
            found.append(each.line(f"often changed: `{path}` ({each.count} changes{more})"))
    for path, each in _most({path: each for path, each in fixed.items() if len(each.streams) > 1}, 3):
        found.append(each.line(f"bug-prone: `{path}` (changed to resolve {each.count} errors)"))
    for path, each in _most({path: each for path, each in read.items() if len(each.streams) > 2}, 3):
        found.append(each.line(f"most looked at: `{path}`"))
    return found


# --- what was learnt ---


def _learnt(reader: Reader, places: Places) -> dict[str, list[Line]]:
    left = [
        Line(
            "; ".join(" ".join(each.text.split()) for each in item.threads)[:220]
            + f" ({item.description[:80]}; {words_of(Provenance.AGENT)})",
            len(item.threads),
            1,
            item.ended_at,
            [str(each.event_id) for each in item.evidence[:SOURCES]],
        )
        for item in open_threads(reader, places)
    ]
    # An error that other projects have too may have been resolved there, in their way.
    here = (hit for hit in bugs.known(reader, places, limit=20).hits if hit.projects == [places.project])
    prefer: list[Line] = []
    avoid: list[Line] = []
    for item in claims.knowledge(reader, places, limit=60).items:
        claim = item.claims[0]
        if item.everywhere or item.kind not in ("preference", "pattern", "fact"):
            continue
        sources = [str(each.event_id) for each in claim.evidence[:SOURCES]]
        text = f"{' '.join(item.text.split())[:160]} ({claim.origin})"
        line = Line(text, claim.sessions, claim.sessions, item.last_seen, sources)
        (avoid if claim.polarity < 0 else prefer).append(line)
    prefer, avoid = (sorted(lines, key=lambda line: (-line.sessions, line.text))[:6] for lines in (prefer, avoid))
    return {"open": left, "issues": came_back(here), "prefer": prefer, "avoid": avoid}


def came_back(hits: Iterable[BugHit]) -> list[Line]:
    """Errors that came back and what resolved them: the first four ways. What one way resolved stands in one line, for
    its words may be of any of them."""
    by_way: dict[str, list[BugHit]] = {}
    for hit in hits:
        if hit.occurrences > 1 and hit.solution:
            way = one_line(hit.solution.approach or hit.solution.description, 110)
            by_way.setdefault(way, []).append(hit)
    lines = []
    for way, resolved in list(by_way.items())[:4]:
        messages = [one_line(hit.message, 110 if len(resolved) == 1 else 50) for hit in resolved[:3]]
        if more := len(resolved) - len(messages):
            messages.append(f"{more} more")
        lines.append(
            Line(
                "; ".join(messages) + (f" → an agent's fix: {way}" if way else ""),
                sum(hit.occurrences for hit in resolved),
                0,
                iso(max(hit.last_seen for hit in resolved)),
                [str(each.event_id) for hit in resolved for each in hit.evidence[:SOURCES]][:SOURCES],
            )
        )
    return lines


def _statistics(reader: Reader, places: Places) -> ProjectCounts:
    p = models.episodes
    found = select(
        reader, p, "SELECT row->>'task_type', row->>'outcome', count(*) FROM {rows} GROUP BY 1, 2",
        places=places, conditions=Where(p).fullest(reader, places, "ended_at"),
    )  # fmt: skip
    types, outcomes = Counter[str](), Counter[str]()
    for kind, outcome, n in found:
        types[kind] += n
        outcomes[outcome] += n
    judged = outcomes["success"] + outcomes["failure"] + outcomes["partial"]
    return ProjectCounts(
        sessions=total(reader, models.sessions, Where(models.sessions).within(places)),
        episodes=types.total(),
        types=dict(types.most_common()),
        outcomes=dict(outcomes.most_common()),
        success_rate=round(outcomes["success"] / judged, 3) if judged else None,
    )


def listed(projects: Iterable[Project]) -> list[ProjectItem]:
    """Projects as a list shows them, newest first."""
    return [_item(each) for each in projects]


def waiting(known: Projects) -> list[WaitingItem]:
    """The checkouts that wait for a person's word."""
    named = {project.anchor: project for project in known.all}
    return [
        WaitingItem(root=each.root, claims=each.claims, project=of.anchor, name=of.name, known_from=of.root)
        for each in known.waiting
        if (of := named.get(each.project)) is not None
    ]


def _item(project: Project) -> ProjectItem:
    fields = msgspec.to_builtins(project)
    return msgspec.convert({**fields, "last_seen": iso(moment(project.last_seen))}, ProjectItem)
