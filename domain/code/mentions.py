"""Libraries, services and people that commands, code and manifests name.

Only what is named in a place that leaves no doubt: an import, an install command, a manifest's dependency, a program
that speaks to one service, the author of a commit. Names that belong to the project itself are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from memctl.domain.code.entities import EntityKind
from memctl.domain.shell.programs import words_of
from memctl.domain.support import patterns
from memctl.domain.support.remembered import remembered

How = Literal["import", "manifest", "install", "command", "commit"]

HEAD = 2_500
"""Characters at the beginning of a file in which imports are looked for."""

_MOST = 40
"""Names that are taken from one file or command."""

_COMMAND = 400
"""Characters of a command in which names are looked for."""


class Named(NamedTuple):
    """Something that was named. `platform` is where the name is one: npm, go, pypi, crates, git, or a host."""

    kind: EntityKind
    platform: str
    name: str
    how: How
    version: str = ""


# --- libraries ---

_ECMA = patterns.compile(
    r"""\b(?:from|import) ['"]([^'"\n]{1,80})['"]|\b(?:require|import)\(['"]([^'"\n]{1,80})['"]\)"""
)
_ECMA_NAME = patterns.compile(r"(@[a-z0-9][\w.-]*/[a-z0-9][\w.-]*|[a-z][\w.-]+)(?:/.*)?\Z")
_GO = patterns.compile(r"(?<=[\t ])\"([a-z0-9-]+(?:\.[a-z0-9-]+)+/[\w./~-]{1,100})\"\s*$", patterns.M)
_PYTHON = patterns.compile(r"^[ \d→|:\t]*(?:from ([A-Za-z]\w*)[\w.]* import|import ([A-Za-z]\w*))", patterns.M)
_RUST = patterns.compile(r"^[ \t\d→|:]*(?:pub )?use ([a-z][a-z0-9_]+)::", patterns.M)

_FOLDERS = words_of("home users user src work projects code repos git go app apps packages")
_ALIASES = words_of(
    """
    shared app apps components lib libs utils util cli core server client config api common hooks pages store
    services features assets styles test tests models db internal frontend backend web ui
    """
)
"""Scopes of npm that stand for folders of the project itself, by habit."""

_NODE = words_of(
    """
    assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain events
    fs http http2 https inspector module net os path perf_hooks process punycode querystring readline repl stream
    string_decoder sys timers tls tty url util v8 vm wasi worker_threads zlib bun
    """
)
_PYTHON_KNOWN = {
    "numpy": "numpy", "pandas": "pandas", "requests": "requests", "httpx": "httpx", "aiohttp": "aiohttp",
    "flask": "flask", "django": "django", "fastapi": "fastapi", "starlette": "starlette", "pydantic": "pydantic",
    "sqlalchemy": "sqlalchemy", "alembic": "alembic", "psycopg": "psycopg", "psycopg2": "psycopg2",
    "redis": "redis", "celery": "celery", "pytest": "pytest", "hypothesis": "hypothesis", "click": "click",
    "typer": "typer", "rich": "rich", "yaml": "pyyaml", "bs4": "beautifulsoup4", "lxml": "lxml", "PIL": "pillow",
    "cv2": "opencv-python", "sklearn": "scikit-learn", "scipy": "scipy", "matplotlib": "matplotlib", "torch": "torch",
    "tensorflow": "tensorflow", "transformers": "transformers", "openai": "openai", "anthropic": "anthropic",
    "boto3": "boto3", "jinja2": "jinja2", "uvicorn": "uvicorn", "gunicorn": "gunicorn", "attr": "attrs",
    "attrs": "attrs", "msgspec": "msgspec", "orjson": "orjson", "structlog": "structlog", "tqdm": "tqdm",
    "polars": "polars", "seaborn": "seaborn", "plotly": "plotly", "streamlit": "streamlit", "langchain": "langchain",
    "networkx": "networkx", "sympy": "sympy", "docker": "docker", "paramiko": "paramiko", "setuptools": "setuptools",
    "pymongo": "pymongo", "tenacity": "tenacity", "websockets": "websockets", "cryptography": "cryptography",
}  # fmt: skip
"""Python's imports do not distinguish a library from the project's own modules, so only well-known ones count."""
_RUST_OWN = frozenset(("std", "core", "alloc", "crate", "self", "super", "proc_macro", "test"))


def libraries_in_code(language: str, head: str, location: str) -> list[Named]:
    """Libraries that the beginning of a file imports."""
    if "import" not in head and "require(" not in head and "use " not in head:
        return []
    if (imported := _IMPORTED.get(language)) is None:
        return []
    own = _own(location)
    names = dict.fromkeys(pair for pair in imported(head) if not _is_own(pair[1], own))
    return [Named("library", platform, name, "import") for platform, name in list(names)[:_MOST]]


def _of_ecma(head: str) -> Iterator[tuple[str, str]]:
    return (("npm", name) for groups in _ECMA.findall(head) if (name := _npm("".join(groups))))


def _of_go(head: str) -> Iterator[tuple[str, str]]:
    start = max(head.find("import"), 0)
    if head.startswith("import (", start):
        end = head.find(")", start)
        head = head[start : end if end > 0 else None]
    else:
        head = "\n".join(line for line in head.split("\n") if "import " in line)
    return (("go", name) for path in _GO.findall(head) if (name := _module(path)))


def _of_python(head: str) -> Iterator[tuple[str, str]]:
    names = map("".join, _PYTHON.findall(head))
    return (("pypi", _PYTHON_KNOWN[name]) for name in names if name in _PYTHON_KNOWN)


def _of_rust(head: str) -> Iterator[tuple[str, str]]:
    return (("crates", name) for name in _RUST.findall(head) if name not in _RUST_OWN)


_IMPORTED: dict[str, Callable[[str], Iterator[tuple[str, str]]]] = {
    "typescript": _of_ecma, "javascript": _of_ecma, "go": _of_go, "python": _of_python, "rust": _of_rust,
}  # fmt: skip
"""By language: platform and name of each library that the beginning of a file imports."""


def _npm(specifier: str) -> str:
    if specifier.startswith((".", "/", "node:", "bun:", "~", "#", "@/", "http", "$", "file:", "src/")):
        return ""
    match = _ECMA_NAME.match(specifier)
    return (
        match[1] if match and match[1] not in _NODE and not match[1].endswith((".js", ".ts", ".json", ".css")) else ""
    )


def _module(path: str) -> str:
    """The module that a Go import path lies in, as far as its text shows it."""
    parts = path.split("/")
    if parts[0].endswith((".com", ".org")) and parts[0] in ("github.com", "gitlab.com", "bitbucket.org", "golang.org"):
        return "/".join(parts[:3]) if len(parts) >= 3 else ""
    return "/".join(parts[:2])


@remembered(256)
def _own(location: str) -> frozenset[str]:
    """The project's name, and those of the folders it lies in: a package that has one of them is its own."""
    return frozenset(_plain(part) for part in location.split("/")[-4:] if part) - _FOLDERS


def _is_own(name: str, own: frozenset[str]) -> bool:
    parts = [_plain(part.removeprefix("@")) for part in name.split("/")]
    return any(part in own for part in parts) or (name[:1] == "@" and parts[0] in _ALIASES)


@remembered(512)
def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


_INSTALL = patterns.compile(
    r"(?:^|[;&|(]\s*|\bsudo )"
    r"(?:(?P<npm>(?:npm (?:i|install|add)|pnpm add|yarn add|bun (?:add|install|i)))"
    r"|(?P<pypi>(?:pip3?|python3? -m pip|uv pip) install|uv add|poetry add|pdm add)"
    r"|(?P<crates>cargo add)|(?P<go>go get)|(?P<rubygems>gem install|bundle add))"
    r"(?P<rest>(?:[ \t]+(?:'[^'\n]*'|\"[^\"\n]*\"|[^\s;&|<>()'\"]+))+)",
    patterns.M,
)
_SPEC = {
    "npm": patterns.compile(r"(@[a-z0-9][\w.-]*/[a-z0-9][\w.-]*|[a-z][\w.-]*)(?:@([\w.^~*-]+))?\Z"),
    "pypi": patterns.compile(r"([A-Za-z][\w.-]*)(?:\[[\w,]+\])?(?:[=~<>!]=?=?([\w.*]+))?\Z"),
    "crates": patterns.compile(r"([a-z][\w-]*)(?:@([\w.]+))?\Z"),
    "go": patterns.compile(r"([a-z0-9-]+(?:\.[a-z0-9-]+)+/[\w./~-]+)(?:@([\w.+-]+))?\Z"),
    "rubygems": patterns.compile(r"([a-z][\w-]*)\Z"),
}
_MAY_INSTALL = (" install ", " add ", "go get ", " i ")
_VALUED = frozenset(
    ("-r", "-c", "-e", "--index-url", "--extra-index-url", "--filter", "-F", "--features", "--prefix", "--group")
)


def libraries_installed(command: str, location: str) -> list[Named]:
    """Libraries that a command adds by name."""
    command = command[:_COMMAND]
    if not any(word in command for word in _MAY_INSTALL):
        return []
    own = _own(location)
    found: dict[tuple[str, str], str] = {}
    for match in _INSTALL.finditer(command):
        platform = next(name for name in _SPEC if match[name])
        skip = False
        for word in match["rest"].split():
            word = word.strip("'\"")
            if skip or word.startswith(("-", ".", "/", "~", "$", "git+", "http:", "https:", "file:")):
                skip = word in _VALUED
                continue
            if spec := _SPEC[platform].match(word):
                name = _module(spec[1]) if platform == "go" else spec[1]
                version = (spec[2] or "") if spec.re.groups >= 2 else ""
                if name and not _is_own(name, own):
                    found[platform, name] = version if version != "latest" else ""
    return [Named("library", platform, name, "install", version) for (platform, name), version in found.items()][:_MOST]


_NUMBERED = patterns.compile(r"^ *\d+(?:→|\t|: )", patterns.M)
_JSON_DEPENDENCIES = patterns.compile(r'"(?:dev|peer|optional)?[dD]ependencies"\s*:\s*\{([^{}]*)\}')
_JSON_PAIR = patterns.compile(r'"(@?[a-z0-9][\w./-]*)"\s*:\s*"([~^]?\d[\w.+-]*)"')
_GO_MOD = patterns.compile(r"^(?:require )?[ \t]*([a-z0-9-]+(?:\.[a-z0-9-]+)+/\S+) (v\d\S*)[ \t]*$", patterns.M)
_PYPROJECT = patterns.compile(r"\bdependencies\s*=\s*\[(.*?)^\s*\]", patterns.S | patterns.M)
_REQUIREMENT = patterns.compile(
    r"""^\s*["']?([A-Za-z][\w.-]*)(?:\[[\w,]+\])?\s*(?:[=~<>!]=?=?\s*([\w.*]+))?""", patterns.M
)
_CARGO = patterns.compile(r"^\[(?:dev-|build-|workspace\.)?dependencies\]\s*$(.*?)(?=^\[|\Z)", patterns.S | patterns.M)
_CARGO_PAIR = patterns.compile(r'^([a-z][\w-]*)\s*=\s*(?:"([^"]+)"|\{[^}\n]*?version\s*=\s*"([^"]+)")', patterns.M)
MANIFESTS = frozenset(("package.json", "go.mod", "pyproject.toml", "requirements.txt", "Cargo.toml"))


def libraries_declared(path: str, text: str, location: str) -> list[Named]:
    """Libraries, with versions, that a manifest names (as a file, or as a client shows one with line numbers)."""
    manifest = path.rpartition("/")[2]
    if manifest not in MANIFESTS:
        return []
    text = _NUMBERED.sub("", text[:16_000])
    own = _own(location)
    found: dict[str, str] = {}
    platform = {"package.json": "npm", "go.mod": "go", "Cargo.toml": "crates"}.get(manifest, "pypi")
    match manifest:
        case "package.json":
            for body in _JSON_DEPENDENCIES.findall(text):
                found.update((name, version.lstrip("^~")) for name, version in _JSON_PAIR.findall(body))
        case "go.mod":
            found.update((_module(name), version) for name, version in _GO_MOD.findall(text))
        case "Cargo.toml":
            for body in _CARGO.findall(text):
                found.update((name, one or other) for name, one, other in _CARGO_PAIR.findall(body))
        case "pyproject.toml":
            for body in _PYPROJECT.findall(text):
                found.update(_REQUIREMENT.findall(body.replace(",", "\n")))
        case _:
            found.update(_REQUIREMENT.findall("\n".join(x for x in text.splitlines() if x[:1] not in ("#", "-"))))
    names = ((name, version) for name, version in found.items() if name and not _is_own(name, own))
    return [Named("library", platform, name, "manifest", version) for name, version in names][:_MOST]


# --- services ---

_SERVICES = {
    "gh": "github.com", "glab": "gitlab.com", "aws": "AWS", "gcloud": "Google Cloud", "gsutil": "Google Cloud",
    "az": "Azure", "kubectl": "Kubernetes", "helm": "Kubernetes", "docker": "Docker", "docker-compose": "Docker",
    "podman": "Podman", "psql": "PostgreSQL", "pg_dump": "PostgreSQL", "mysql": "MySQL", "redis-cli": "Redis",
    "valkey-cli": "Valkey", "mongosh": "MongoDB", "vercel": "Vercel", "netlify": "Netlify", "flyctl": "Fly.io",
    "fly": "Fly.io", "heroku": "Heroku", "wrangler": "Cloudflare", "supabase": "Supabase", "firebase": "Firebase",
    "stripe": "Stripe", "sentry-cli": "Sentry", "terraform": "Terraform", "pulumi": "Pulumi", "railway": "Railway",
    "linear": "Linear", "doctl": "DigitalOcean", "sqlcmd": "SQL Server", "kafka-topics": "Kafka",
    "rabbitmqctl": "RabbitMQ",
}  # fmt: skip
_CALLED = patterns.compile(
    r"(?:^|[;&|(]\s*|\b(?:sudo|npx|bunx|exec) )("
    + "|".join(sorted(map(patterns.escape, _SERVICES), key=len, reverse=True))
    + r")(?=\s)",
    patterns.M,
)  # fmt: skip
_HOST = patterns.compile(
    r"\b(?:curl|wget|http|xh|websocat)\b[^;&|\n]*?\bhttps?://(?:[^/\s@]*@)?([a-z0-9-]+(?:\.[a-z0-9-]+)+|localhost:\d{2,5})",
    patterns.I,
)
_SSH = patterns.compile(
    r"(?:^|[;&|(]\s*)ssh (?:-\S+ (?:\d+ )?)*(?:[\w.-]+@)?([a-z0-9-]+(?:\.[a-z0-9-]+)+)\b", patterns.I
)
_NO_HOST = patterns.compile(r"(?:^|\.)example\.(?:com|org|net)$|\.(?:test|invalid|example)$|^(?:127|10|192|0)\.")


def services_in(command: str) -> list[Named]:
    """Services that a command speaks to, by its program or by its host."""
    command = command[:_COMMAND].partition("<<")[0]
    found: dict[str, None] = {}
    if not _SERVICES.keys().isdisjoint(command.split()):
        found = dict.fromkeys(_SERVICES[program] for program in _CALLED.findall(command))
    if "://" in command or "ssh " in command:
        hosts = (host.lower() for pattern in (_HOST, _SSH) for host in pattern.findall(command))
        found |= dict.fromkeys(host.removeprefix("www.") for host in hosts if not _NO_HOST.search(host))
    return [Named("service", "", name, "command") for name in list(found)[:8]]


# --- people ---

_AUTHOR = patterns.compile(
    r"^(?:Author|Commit|    Reviewed-by|    Signed-off-by):[ \t]+([^<\n]{2,60}?) <([^>\n]+)>", patterns.M
)
_LOGIN = patterns.compile(r"^author:\t([A-Za-z0-9-]{2,39})$", patterns.M)
_NO_PERSON = patterns.compile(
    r"\bbot\b|\[bot\]|\btest|claude|copilot|codex|gemini|cursor|dependabot|renovate|github|actions|noreply@anthropic|^root$"
    r"|^user$|^you$|^your name$|^author$|^name$|^dev\d*$|^ci\b"
    r"|-(?:check|ci|action|release|deploy|compliance)$|example user|[{}$<>%\\]",
    patterns.I,
)


def people_in(command: str, output: str) -> list[Named]:
    """Authors whom the output of a command of git or of GitHub's CLI names."""
    if "git" in command and "Author:" in output:
        found = [
            name.strip()
            for name, mail in _AUTHOR.findall(output[:16_000])
            if not _NO_PERSON.search(name) and not mail.endswith((".local", "@local", "@localhost"))
            and not mail.startswith(("test@", "noreply@"))
        ]  # fmt: skip
        return [Named("person", "", name, "commit") for name in dict.fromkeys(found)][:8]
    if "gh " in command and "author:\t" in output:
        logins = [name for name in _LOGIN.findall(output[:4_000]) if not _NO_PERSON.search(name)]
        return [Named("person", "", name, "commit") for name in dict.fromkeys(logins)][:8]
    return []
