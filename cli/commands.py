"""Where each command lives, which group has it, and what people mean by words that are no command."""

Modules = dict[str, str]
"""Commands by name, each with the module and the name it has there."""

FIRST: dict[str, Modules] = {
    "Run": {
        "up": "memctl.cli.operate.up:up",
        "down": "memctl.cli.operate.up:down",
        "status": "memctl.cli.operate.status:status",
        "install": "memctl.cli.capture.install:install",
        "ingest": "memctl.cli.capture.ingest:ingest",
    },
    "Ask": {
        "search": "memctl.cli.ask.read:search",
        "ask": "memctl.cli.ask.guidance:ask",
        "bugs": "memctl.cli.ask.read:bugs",
        "show": "memctl.cli.ask.read:show",
        "project": "memctl.cli.ask.project:project",
        "view": "memctl.cli.ask.view:view",
    },
    "Record and erase": {
        "note": "memctl.cli.ask.record:note",
        "forget": "memctl.cli.erase.forget:forget",
    },
}
"""What `memctl --help` lists one by one: what a day needs."""

GROUPS: dict[str, tuple[str, dict[str, Modules]]] = {
    "memory": (
        """Look at what is remembered, confirm it, correct it, add to it.

        \b
        memctl memory sessions
        memctl memory insights
        """,
        {
            "Look at the work": {
                "history": "memctl.cli.ask.read:history",
                "sessions": "memctl.cli.ask.read:sessions",
                "episodes": "memctl.cli.ask.work:episodes",
                "tasks": "memctl.cli.ask.work:tasks",
                "context": "memctl.cli.ask.context:context",
                "stats": "memctl.cli.ask.stats:stats",
            },
            "Look at what was learnt": {
                "insights": "memctl.cli.ask.claims:insights",
                "knowledge": "memctl.cli.ask.claims:knowledge",
                "prefs": "memctl.cli.ask.claims:prefs",
                "strategies": "memctl.cli.ask.strategies:strategies",
                "guidance": "memctl.cli.ask.guidance:guidance",
                "explain": "memctl.cli.ask.claims:explain",
            },
            "See what memory was worth": {
                "recalls": "memctl.cli.ask.hindsight:recalls",
                "hindsight": "memctl.cli.ask.hindsight:hindsight",
            },
            "Confirm and correct": {
                "waiting": "memctl.cli.erase.waiting:waiting",
                "verify-knowledge": "memctl.cli.ask.claims:verify_knowledge",
                "reject": "memctl.cli.ask.claims:reject",
                "rate": "memctl.cli.ask.claims:rate",
                "pin": "memctl.cli.ask.claims:pin",
                "resolve": "memctl.cli.ask.claims:resolve",
                "core": "memctl.cli.ask.claims:core",
                "undo": "memctl.cli.erase.undo:undo",
            },
            "Record as the work goes on": {
                "task": "memctl.cli.ask.work:task",
                "hypothesis": "memctl.cli.ask.work:hypothesis",
                "decide": "memctl.cli.ask.work:decide",
                "discovery": "memctl.cli.ask.work:discovery",
            },
        },
    ),
    "admin": (
        """Look after an installation: keep, rebuild, prove, take apart.

        \b
        memctl admin doctor
        memctl admin replay --all --verify
        """,
        {
            "Run": {
                "doctor": "memctl.cli.operate.verify:doctor",
                "off": "memctl.cli.capture.switch:off",
                "on": "memctl.cli.capture.switch:on",
                "init": "memctl.cli.operate.processes:init",
                "config": "memctl.cli.operate.processes:config",
                "keys": "memctl.cli.operate.keys:keys",
                "space": "memctl.cli.operate.spaces:space",
                "completion": "memctl.cli.operate.completion:completion",
            },
            "Keep": {
                "backup": "memctl.cli.operate.keeping:backup",
                "restore": "memctl.cli.operate.keeping:restore",
                "export": "memctl.cli.operate.keeping:export",
                "import": "memctl.cli.capture.importing:import_legacy",
                "prune": "memctl.cli.erase.forget:prune",
                "redact": "memctl.cli.operate.keeping:redact",
                "reset": "memctl.cli.operate.keeping:reset",
            },
            "Rebuild and prove": {
                "replay": "memctl.cli.operate.replay:replay",
                "dlq": "memctl.cli.operate.dlq:dlq",
                "verify": "memctl.cli.operate.verify:verify",
                "reindex": "memctl.cli.operate.reindex:reindex",
                "events": "memctl.cli.ask.read:events",
            },
            "Do by hand what the worker does by itself": {
                "consolidate": "memctl.cli.operate.processors:consolidate",
                "reflect": "memctl.cli.operate.processors:reflect",
                "judge": "memctl.cli.operate.processors:judge",
                "maintain": "memctl.cli.operate.processors:maintain",
                "costs": "memctl.cli.operate.processors:costs",
            },
            "Parts, for a supervisor of your own": {
                "worker": "memctl.cli.operate.processes:worker",
                "serve": "memctl.cli.operate.processes:serve",
                "door": "memctl.cli.operate.processes:door",
                "relay": "memctl.cli.operate.processes:relay",
            },
        },
    ),
    "hook": (
        """What coding agents call by themselves.

        \b
        memctl hook mcp
        """,
        {
            "Called by agents": {
                "mcp": "memctl.cli.operate.processes:mcp",
                "session-start": "memctl.cli.capture.hooks:session_start",
                "save": "memctl.cli.capture.hooks:save",
                "session-end": "memctl.cli.capture.hooks:session_end",
            }
        },
    ),
}
"""The others, by group: what the group is for, and its commands under headings."""

COMMANDS: Modules = {
    name: place
    for sections in (FIRST, *(sections for _, sections in GROUPS.values()))
    for section in sections.values()
    for name, place in section.items()
}
"""All of them. Each is called by its name alone: `memctl replay` is `memctl admin replay`."""

MEANT = {
    **dict.fromkeys(("start", "run", "restart", "upgrade", "update", "migrate", "daemon"), "up"),
    **dict.fromkeys(("stop", "quit", "kill", "shutdown"), "down"),
    **dict.fromkeys(("ps", "health", "info", "state", "ping", "whoami"), "status"),
    **dict.fromkeys(("logs", "log", "check", "debug", "diagnose", "test"), "doctor"),
    **dict.fromkeys(("setup", "hooks", "connect"), "install"),
    **dict.fromkeys(("cost", "usage", "tokens", "spent", "counts", "metrics"), "stats"),
    **dict.fromkeys(("load", "read", "scan", "sync", "index"), "ingest"),
    **dict.fromkeys(("watch", "follow"), "ingest --follow"),
    **dict.fromkeys(("tail", "recent", "latest"), "history"),
    **dict.fromkeys(("find", "query", "grep", "recall", "remembered"), "search"),
    **dict.fromkeys(("error", "errors", "fix", "fixes", "failures"), "bugs"),
    **dict.fromkeys(("get", "cat", "memories"), "show"),
    **dict.fromkeys(("list", "ls", "projects"), "project list"),
    **dict.fromkeys(("session", "chats", "conversations"), "sessions"),
    **dict.fromkeys(("todo", "open", "unfinished"), "tasks --status open"),
    **dict.fromkeys(("ui", "web", "dashboard", "viewer", "browse", "login", "timeline", "graph"), "view"),
    **dict.fromkeys(("add", "remember", "new", "store", "write"), "note"),
    **dict.fromkeys(("delete", "remove", "rm", "erase"), "forget"),
    **dict.fromkeys(("settings", "set", "env"), "config"),
    **dict.fromkeys(("why", "evidence", "trace"), "explain"),
    **dict.fromkeys(("lessons", "learnt", "learned", "claims", "facts", "rules", "decisions"), "insights"),
    **dict.fromkeys(("preferences", "preference"), "prefs"),
    **dict.fromkeys(("summary", "summarize", "overview"), "project show"),
    **dict.fromkeys(("merge", "join", "split"), "project --help"),
    **dict.fromkeys(("team", "members", "member", "users", "token"), "keys"),
    **dict.fromkeys(("share",), "export --team DIRECTORY"),
    **dict.fromkeys(("edit", "correct"), "reject"),
    **dict.fromkeys(("unpin",), "pin ID --off"),
    **dict.fromkeys(("rebuild", "refold"), "replay"),
    **dict.fromkeys(("disable", "pause"), "off"),
    **dict.fromkeys(("enable", "unpause"), "on"),
    **dict.fromkeys(("dump", "download"), "export"),
    **dict.fromkeys(("clear", "clean", "wipe", "purge"), "reset"),
    **dict.fromkeys(("confirm", "approve", "accept"), "verify-knowledge"),
    **dict.fromkeys(("pending", "review", "inbox"), "waiting"),
    **dict.fromkeys(("gc", "vacuum", "compact", "optimize"), "maintain"),
    **dict.fromkeys(("uninstall",), "install CLIENT --uninstall"),
    **dict.fromkeys(("version",), "--version"),
    **dict.fromkeys(("help",), "--help"),
}
"""Words that other tools have for what a command of memctl does, and how it is called here."""

BESIDE = dict.fromkeys(("logs", "log"), "The logs are files in the folder `log` of the data directory.")
"""What is said beside the command, by word."""

_GONE = ("delete", "remove", "rm", "forget")

MEANT_IN: dict[str, Modules] = {
    "memory": dict.fromkeys(("list", "ls"), "insights"),
    "project": {"ls": "project list", **dict.fromkeys(_GONE, "forget --project NAME")},
    "keys": {
        "ls": "keys list",
        **dict.fromkeys(("create", "new", "make"), "keys add NAME"),
        **dict.fromkeys((*_GONE, "disable"), "keys revoke KEY"),
    },
    "space": {"ls": "space list", **dict.fromkeys(("add", "new", "make"), "space create NAME")},
    "dlq": {"ls": "dlq list", **dict.fromkeys(_GONE, "dlq drop ID --reason TEXT")},
}
"""What is meant by words that are no command of a group, by the group's name."""
