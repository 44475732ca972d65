"""What an edit did to code: the blocks it replaced, the replacements that repeat, and the transformations they make.

Cheap structural rules over the lines that changed: no parser, no whole file. Precision before recall: what no rule is
sure of is nothing. The structure of an edit decides its category (extract_method, rename, simplify, type_hints,
extract_constant, restructure), not key words and line counts: docs/internals/evaluation/code.md says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from memctl.domain.events.observations import Hunk
from memctl.domain.shell.programs import words_of
from memctl.domain.support import patterns
from memctl.domain.support.remembered import remembered

Category = Literal["extract_method", "rename", "simplify", "type_hints", "extract_constant", "restructure"]

LONGEST_FRAGMENT = 80
"""Characters of what was replaced, and of what replaced it: longer ones are rewritten code, not a rule."""

_MOST_TOKENS = 14
_MOST_LINES = 30
"""Lines of a block that are compared one by one; larger ones are generated or rewritten."""

_LONGEST_LINE = 300
"""Characters of a line that is compared with another: longer ones are data or minified code."""

_LANGUAGES = {
    "go": "go", "py": "python", "pyi": "python", "ts": "typescript", "tsx": "typescript", "mts": "typescript",
    "js": "javascript", "jsx": "javascript", "mjs": "javascript", "cjs": "javascript", "rs": "rust", "java": "java",
    "kt": "kotlin", "rb": "ruby", "php": "php", "c": "c", "h": "c", "cc": "c++", "cpp": "c++", "hpp": "c++",
    "cs": "c#", "swift": "swift", "scala": "scala", "sh": "shell", "bash": "shell", "sql": "sql", "vue": "typescript",
    "svelte": "typescript", "dart": "dart", "ex": "elixir", "exs": "elixir", "lua": "lua",
}  # fmt: skip

_KEYWORDS = words_of(
    """
    if else elif for while do switch case default break continue return func function def class struct enum interface
    trait impl type var let const static final public private protected export import from package module use mod pub
    new delete try catch except finally raise throw throws with as in is not and or async await yield lambda self this
    super true false none null nil undefined void int str string bool float double char byte map chan go defer range
    fn mut ref where match then fi done esac echo local end begin typeof instanceof extends implements any unknown
    never object number boolean dict list tuple set the err error ctx
    """
)
"""Words that say nothing of what was replaced. Lower case."""

_DECLARING = words_of(
    "def class func fn function type interface struct enum trait pub export async public private protected static const"
)
_TOKEN = patterns.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`[^`\n]*`|\w+|\s+|.')
_NAME = patterns.compile(r"[A-Za-z_]\w*\Z")
_DOTTED = patterns.compile(r"[A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)*\Z")
_LITERAL = patterns.compile(
    r"""(?:"[^"'`\s]{3,}"|'[^"'`\s]{3,}'|`[^"'`\s]{3,}`|0x[0-9a-fA-F_]{2,}|0o?\d{3}|\d[\d_]{2,}(?:\.\d+)?)\Z"""
)
_HUNK_MARKS = ("-", "+")


class Block(NamedTuple):
    """Lines that stood together, and what stands in their place; either may be empty, not both."""

    removed: tuple[str, ...]
    added: tuple[str, ...]


class Replacement(NamedTuple):
    """A fragment of a line that gave way to another, with the names that both have written `$1`, `$2`, ….

    `variables` are those names; `line` the whole line before and after, without its indentation.
    """

    before: str
    after: str
    variables: tuple[str, ...]
    line: tuple[str, str]

    @property
    def literal(self) -> tuple[str, str]:
        """Before and after as they stood."""
        return filled(self.before, self.variables), filled(self.after, self.variables)

    @property
    def is_name(self) -> bool:
        """Whether a name, perhaps with its owner, gave way to another."""
        before, after = self.literal
        return bool(_DOTTED.match(before) and _DOTTED.match(after))

    @property
    def declares(self) -> bool:
        """Whether the line declares what is replaced in it."""
        return all((line.split(None, 1) or [""])[0] in _DECLARING for line in self.line)


@remembered(1024)
def language_of(path: str) -> str:
    """The language of a file by its name; empty for what is not code."""
    name = path.rpartition("/")[2]
    return _LANGUAGES.get(name.rpartition(".")[2].lower(), "") if "." in name else ""


def filled(pattern: str, variables: Sequence[str]) -> str:
    """A pattern with its `$1`, `$2`, … put in."""
    for number in range(len(variables), 0, -1):
        pattern = pattern.replace(f"${number}", variables[number - 1])
    return pattern


# --- blocks ---


def blocks_of_hunks(hunks: Iterable[Hunk]) -> list[Block]:
    """The blocks of a patch as a client shows it."""
    return [block for hunk in hunks for block in blocks_of_lines(hunk.lines)]


def blocks_of_lines(lines: Iterable[str]) -> list[Block]:
    """The blocks of lines that begin with a blank, a plus or a minus."""
    found: list[Block] = []
    removed: list[str] = []
    added: list[str] = []
    for line in lines:
        mark = line[:1]
        if (mark not in _HUNK_MARKS or (mark == "-" and added)) and (removed or added):
            found.append(Block(tuple(removed), tuple(added)))
            removed, added = [], []
        if mark == "-":
            removed.append(line[1:])
        elif mark == "+":
            added.append(line[1:])
    if removed or added:
        found.append(Block(tuple(removed), tuple(added)))
    return found


def blocks_of_texts(before: str, after: str) -> list[Block]:
    """The one block between the common beginning and the common end of two texts."""
    old, new = before.split("\n"), after.split("\n")
    start, end = _common_ends(old, new)
    block = Block(tuple(old[start : len(old) - end]), tuple(new[start : len(new) - end]))
    return [block] if block.removed or block.added else []


# --- replacements ---


def replacements_in(blocks: Iterable[Block]) -> list[Replacement]:
    """What gave way to what, once for each line that has it, where lines were replaced one by one."""
    found = []
    for removed, added in blocks:
        if len(removed) != len(added) or len(removed) > _MOST_LINES:
            continue
        for old, new in zip(removed, added, strict=True):
            if old != new and len(old) <= _LONGEST_LINE and len(new) <= _LONGEST_LINE:
                replacement = _replacement(old.strip(), new.strip())
                if replacement is not None:
                    found.append(replacement)
    return found


def _replacement(old: str, new: str) -> Replacement | None:
    if old.startswith(("//", "/*", "#", "*")) or (window := _differing(old, new)) is None:
        return None  # prose, or another line
    fragments = _differing_tokens(*(_TOKEN.findall(part) for part in window))
    if fragments is None or not _is_of_code(*fragments):
        return None
    gone, come = fragments
    if gone[:-1] == come[:-1] and come and _NAME.match(gone[-1]) and _NAME.match(come[-1]):
        gone, come = gone[-1:], come[-1:]  # a new name is one whoever it belongs to
    variables = tuple(dict.fromkeys(token for token in gone if _NAME.match(token) and token in come))[:4]
    variables = tuple(name for name in variables if name.lower() not in _KEYWORDS)
    numbers = {name: f"${number}" for number, name in enumerate(variables, 1)}
    return Replacement(
        "".join(numbers.get(token, token) for token in gone).strip(),
        "".join(numbers.get(token, token) for token in come).strip(),
        variables,
        (old, new),
    )


def _differing_tokens(old: list[str], new: list[str]) -> tuple[list[str], list[str]] | None:
    """The tokens between the common beginning and the common end of two lines; None where nothing stayed: that is
    another line, not a replacement."""
    start, end = _common_ends(old, new)
    if start == 0 and end == 0:
        return None
    # A name is recorded with what it belongs to: `exec.Command`, not `Command`.
    while start >= 2 and old[start - 1] == "." and _NAME.match(old[start - 2]):
        start -= 2
    return old[start : len(old) - end], new[start : len(new) - end]


def _is_of_code(gone: Sequence[str], come: Sequence[str]) -> bool:
    """Whether a fragment that gave way to another is short, is code rather than data, and says something by itself."""
    before, after = "".join(gone).strip(), "".join(come).strip()
    if not 0 < len(gone) <= _MOST_TOKENS or len(come) > _MOST_TOKENS or not _has_own_word(gone):
        return False
    if not before or before == after or (_is_text(gone) and _is_text(come)) or _begins_or_ends_with(gone, come):
        return False
    if max(len(before), len(after)) > LONGEST_FRAGMENT or not _comparable(before, after):
        return False
    return bool(after) or sum(_NAME.match(token) is not None for token in gone) >= 2


def _common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many items two sequences share at their beginning, and how many of the rest at their end."""
    start, room = 0, min(len(old), len(new))
    while start < room and old[start] == new[start]:
        start += 1
    end = 0
    while end < room - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, end


def _differing(old: str, new: str) -> tuple[str, str] | None:
    """The parts of two lines between the last blank before and the first blank behind what differs, with a token of
    what stayed on each side; None where they differ in more than a fragment, or in all. Only this is cut into tokens.
    """
    room = min(len(old), len(new))
    if max(len(old), len(new)) - room > LONGEST_FRAGMENT:
        return None
    start = _shared(old, new, room)
    end = _shared(old[::-1], new[::-1], room - start)
    if start + end == 0 or max(len(old), len(new)) - start - end > LONGEST_FRAGMENT:
        return None
    if start + end == len(old) and not new[start : start + 1].isalnum():
        return None  # something was put in, which no name grew by
    left = old.rfind(" ", 0, max(start - 1, 0)) + 1
    if any(old.count(mark, 0, left) % 2 for mark in "\"'`"):
        left = 0
    behind = old.find(" ", len(old) - end + 1)
    right = len(old) - behind if behind > 0 else 0
    if any(old.count(mark, len(old) - right) % 2 for mark in "\"'`"):
        right = 0
    return old[left : len(old) - right], new[left : len(new) - right]


def _shared(old: str, new: str, room: int) -> int:
    """How many characters two texts begin alike, `room` at most: found by halving."""
    start, width = 0, room
    while width:
        while start + width <= room and old[start : start + width] == new[start : start + width]:
            start += width
        width //= 2
    return start


def _has_own_word(tokens: Sequence[str]) -> bool:
    """Whether a fragment has a word of its own: a name of three letters that is no keyword, or a literal."""
    if "interface" in tokens:
        return True
    return (
        any(
            (len(token) >= 3 and _NAME.match(token) and token.lower() not in _KEYWORDS) or _LITERAL.match(token)
            for token in tokens
        )
        or "any" in tokens
    )


def _begins_or_ends_with(gone: Sequence[str], come: Sequence[str]) -> bool:
    """Whether all that went came back, with something before or behind it: an argument added, not a replacement."""
    return len(come) > len(gone) and (list(come[: len(gone)]) == list(gone) or list(come[-len(gone) :]) == list(gone))


def _is_text(tokens: Sequence[str]) -> bool:
    """Whether a fragment is one string or number, or nothing: then data was changed, not code."""
    return not tokens or (len(tokens) == 1 and tokens[0][0] in "\"'`0123456789")


def _comparable(before: str, after: str) -> bool:
    """Whether both fragments are whole in the same way: brackets and quotes open alike, no comments, same kind of
    statement."""
    for text in (before, after):
        if text.count('"') % 2 or text.count("`") % 2 or "//" in text or text.endswith((":", "=")):
            return False
    if ("=" in before) != ("=" in after) and after:
        return False
    return all(_depth(before, pair) == _depth(after, pair) >= 0 for pair in ("()", "[]", "{}"))


def _depth(text: str, pair: str) -> int:
    """How many brackets stay open at the end; -1 where one closes that was not opened. Those in strings count too."""
    if pair[0] not in text and pair[1] not in text:
        return 0
    depth = 0
    for character in text:
        depth += (character == pair[0]) - (character == pair[1])
        if depth < 0:
            return -1
    return depth


# --- transformations ---


class Transformation(NamedTuple):
    """A refactoring that an edit made. `variant` is a key of `VARIANTS`; before and after are its lines."""

    category: Category
    variant: str
    before: str
    after: str


class Variant(NamedTuple):
    """How a kind of transformation is described, and what is expected of it (-1 to 1, by Fowler's catalogue)."""

    category: Category
    description: str
    readability: float = 0.0
    performance: float = 0.0
    maintainability: float = 0.0
    testability: float = 0.0


VARIANTS: dict[str, Variant] = {
    "literal to constant": Variant(
        "extract_constant", "Literals that repeat get a name", readability=0.4, maintainability=0.6
    ),
    "code to function": Variant(
        "extract_method", "Code moves into a function that is called in its place", 0.5, 0.0, 0.6, 0.6
    ),
    "moved to another file": Variant("restructure", "Definitions move to the file they belong to", 0.2, 0.0, 0.5, 0.2),
    "any to type": Variant("type_hints", "`any` gives way to a type that says something", 0.3, 0.0, 0.6, 0.2),
    "signature annotated": Variant("type_hints", "Signatures get types", 0.3, 0.0, 0.5, 0.2),
    "prefix dropped": Variant("rename", "A name loses what its package or context says already", 0.3, 0.0, 0.2),
    "prefix added": Variant("rename", "A name gets in front what distinguishes it from others", 0.3, 0.0, 0.2),
    "suffix dropped": Variant("rename", "A name loses its ending", 0.2, 0.0, 0.2),
    "suffix added": Variant("rename", "A name gets an ending that distinguishes it from others", 0.2, 0.0, 0.2),
    "exported": Variant("rename", "A name becomes public", 0.0, 0.0, 0.1, 0.2),
    "unexported": Variant("rename", "A name becomes private", 0.1, 0.0, 0.3),
    "case changed": Variant("rename", "A name is spelt in another case style", 0.2, 0.0, 0.1),
    "newer idiom": Variant("simplify", "An older construct gives way to the language's newer one", 0.4, 0.1, 0.3),
}
"""Every transformation that is recognised, by name."""

_IDIOMS = {
    "go": (("interface{}", "any"), ("strings.Split(", "strings.SplitSeq("), ("ioutil.", "os."), ("ioutil.", "io."),
           ("sort.Slice", "slices.Sort"), ("exec.Command(", "exec.CommandContext("), ("os.IsNotExist", "errors.Is")),
    "python": (("Optional[", "|"), ("List[", "list["), ("Dict[", "dict["), ("os.path", "Path"), ("%", "f\""),
               (".format(", "f\""), ("typing.", "collections.abc")),
    "typescript": (("var ", "const "), ("&&", "?."), ("||", "??"), ("require(", "import ")),
    "javascript": (("var ", "const "), ("&&", "?."), ("||", "??"), ("require(", "import ")),
    "rust": (("try!(", "?"),),
}  # fmt: skip
"""Pairs of what an older idiom has and what its successor has in its place."""

_ANY = patterns.compile(r"\bany\b")
_DEFINES = ("def ", "func ", "function", "fn ", "class ", "struct ", "interface ", "trait ")
_DEFINED = patterns.compile(
    r"^[ \t]*(?:export |default |public |private |protected |static |async |pub(?:\([a-z]+\))? )*"
    r"(?:def|func(?: \([^)]*\))?|function\*?|fn)\s+([A-Za-z_]\w{2,})\s*[\(<\[]",
    patterns.M,
)
_TOP_LEVEL = patterns.compile(
    r"^(?:export |default |async |pub(?:\([a-z]+\))? )*(?:def|func|function\*?|fn|class|struct|interface|trait)\s+"
    r"([A-Za-z_]\w{3,})",
    patterns.M,
)
_ANNOTATED = patterns.compile(r":\s*[A-Za-z_][\w\[\]<>.|, ]*?(?=\s*[,)=]|$)|\s*->\s*[^:]+(?=:)")
_SIGNATURE = patterns.compile(r"\s*(?:async )?def \w+\(")
_CAMEL = patterns.compile(r"[a-z\d](?=[A-Z])")


def transformation_of(replacement: Replacement, language: str) -> Transformation | None:
    """The transformation that one replacement is by itself."""
    before, after = replacement.literal
    variant = _variant(before, after, language)
    if variant is None:
        return None
    return Transformation(VARIANTS[variant].category, variant, *replacement.line)


def _variant(before: str, after: str, language: str) -> str | None:
    if any(old in before and old not in after and new in after for old, new in _IDIOMS.get(language, ())):
        return "newer idiom"
    if language == "typescript" and _ANY.search(before) and not _ANY.search(after):
        return "any to type"
    if _LITERAL.match(before) and _DOTTED.match(after) and after.lower() not in _KEYWORDS and len(after) > 3:
        return "literal to constant"
    if _DOTTED.match(before) and _DOTTED.match(after):
        owner, _, old = before.rpartition(".")
        new_owner, _, new = after.rpartition(".")
        return _renamed(old, new) if owner == new_owner else None
    return None


def _renamed(old: str, new: str) -> str | None:
    """In which manner a name was changed; None for another word."""
    if old == new or min(len(old), len(new)) < 4:
        return None
    if old[1:] == new[1:] and old[0] != new[0]:
        return "exported" if new[0].isupper() else "unexported"
    if _words(old) == _words(new):
        return "case changed"
    if new.lower() == old.lower():
        return None
    a, b = _words(old), _words(new)
    if len(b) < len(a):
        if a[-len(b) :] == b:
            return "prefix dropped"
        if a[: len(b)] == b:
            return "suffix dropped"
    elif len(a) < len(b):
        if b[-len(a) :] == a:
            return "prefix added"
        if b[: len(a)] == a:
            return "suffix added"
    return None


def _words(name: str) -> list[str]:
    return [word for word in _CAMEL.sub(lambda found: found[0] + "_", name).lower().split("_") if word]


def annotated(blocks: Iterable[Block]) -> Transformation | None:
    """Python signatures that got types and changed in nothing else."""
    for removed, added in blocks:
        if len(removed) != len(added):
            continue
        for old, new in zip(removed, added, strict=True):
            if old != new and _SIGNATURE.match(old) and _SIGNATURE.match(new) and len(new) <= _LONGEST_LINE:
                bare_old, bare_new = _ANNOTATED.sub("", old), _ANNOTATED.sub("", new)
                if bare_new.replace(" ", "") == bare_old.replace(" ", "") and len(new) > len(old):
                    return Transformation("type_hints", "signature annotated", old.strip(), new.strip())
    return None


def functions_in(text: str) -> tuple[str, ...]:
    """Names of the functions that a text defines."""
    return tuple(_DEFINED.findall(text)) if any(word in text for word in _DEFINES) else ()


def calls_in(lines: Iterable[str], name: str) -> str:
    """The line that calls a function, and does not define it; empty where none does."""
    return next((line.strip() for line in lines if f"{name}(" in line and not _DEFINED.match(line)), "")


def top_level_in(text: str) -> frozenset[str]:
    """Names that a text defines for its whole file."""
    return frozenset(_TOP_LEVEL.findall(text)) if any(word in text for word in _DEFINES) else frozenset()


def body_of(lines: Iterable[str]) -> frozenset[str]:
    """Lines that distinguish code from other code, without indentation: what is moved keeps most of them."""
    return frozenset(
        line for each in lines if len(line := each.strip()) >= 16 and not line.startswith(("//", "#", "*"))
    )
