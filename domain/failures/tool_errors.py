"""What compilers, test runners, linters, package managers and shells print when they fail: one entry a kind of error.

The table is read from the top: an earlier entry knows more of what it finds, and what lies inside it is its own. A tool
that prints an error on one line needs one entry here (and a fixture in its test), one that takes several a function in
`error_blocks`.
"""

from __future__ import annotations

from memctl.domain.failures import blocks
from memctl.domain.failures.shapes import PLAIN, WRAPPER, Shape, lines

SHAPES: tuple[Shape, ...] = (
    Shape("unittest", ("Traceback (most recent",), blocks.unittests),
    Shape("python", ("Traceback (most recent",), blocks.tracebacks),
    Shape("go test", ("--- FAIL: ",), blocks.go_tests),
    Shape("go panic", ("goroutine ",), blocks.go_panics),
    Shape("pytest", ("FAILED ", "ERROR ", "\nE   "), blocks.pytest),
    Shape("js test", ("(fail) ", " › ", "FAIL ", "❯ ", "not ok ", "✖ "), blocks.js_tests),
    Shape("rust", ("error", "panicked"), blocks.rust),
    Shape("biome", ("━━",), blocks.biome),
    lines("junit", (" FAILED",),
          r"^(?P<frame>[\w$]+ > [^\n]+) FAILED\n\s+(?P<msg>(?:\w+\.)*(?P<type>\w+(?:Error|Exception))\b.*)$",
          "test failure"),
    Shape("stack", ("    at ", "\tat "), blocks.stacks),
    Shape("npm", ("npm ERR!", "npm error"), blocks.npm),
    lines("rust test", (" ... FAILED",), r"^test (?P<frame>\S+) \.\.\. (?P<msg>FAILED)$", "test failure"),
    lines("python syntax", ("SyntaxError", "IndentationError", "TabError"),
          r"^(?P<type>SyntaxError|IndentationError|TabError): (?P<msg>.+)$"),
    lines("gtest", ("[  FAILED  ] ",), r"^\[  FAILED  \] (?P<frame>[\w/]+\.[\w/]+)(?:, where.*)? \((?P<msg>\d+ ms)\)$",
          "test failure"),
    lines("ctest", ("(Failed)", "(Timeout)", "(SEGFAULT)"),
          r"^\t +\d+ - (?P<frame>\S+) \((?P<msg>Failed|Timeout|SEGFAULT)\)$", "test failure"),
    lines("rspec", ("rspec ./",), r"^rspec (?P<file>\./\S+?):\d+ # (?P<msg>.+)$", "test failure"),
    lines("surefire", ("[ERROR] ",),
          r"^\[ERROR\] {2,}(?P<frame>\w+(?:\.\w+)+):\d+(?:->\S+)? (?:» )?(?P<msg>\S.+)$", "test failure"),
    lines("dotnet test", ("Error Message:",),
          r"^ *Failed (?P<frame>\S+) \[[^\]]+\]\n +Error Message:\n +"
          r"(?P<msg>.+)$", "test failure", within=("Failed ",)),
    lines("phpunit", ("There was ", "There were "),
          r"^\d+\) (?P<frame>[\w\\]+::\w+)(?: with data set .*)?\n(?P<msg>\S.+)$", "test failure",
          within=("::",)),
    lines("playwright", (" › ",), r"^ +\d+\) (?:\[\w+\] › )?(?P<file>\S+\.\w+):\d+:\d+ › (?P<frame>.+?)(?: ─+)?\n"
                                  r"(?:[ \t]*\n)*[ \t]+(?P<msg>"
          r"(?P<type>\w*Error): .+)$", "test failure", within=(" › ",)),
    lines("exunit", (") test ",), r"^ +\d+\) test (?P<frame>.+ \([\w.]+\))\n +(?P<file>\S+):\d+\n +(?P<msg>\S.+)$",
          "test failure", within=(") test ",)),
    lines("tsc", ("error TS",), r"^(?P<file>[^\s(:][^(:\n]*?)(?:\(\d+,\d+\)|:\d+:\d+)(?: -|:) error "
                                r"(?P<type>TS\d+): (?P<msg>.+)$"),
    lines("tsc", ("error TS",), r"^error (?P<type>TS\d+): (?P<msg>.+)$"),
    # What it quotes may hold the end of a line.
    lines("golangci-lint", (".go:",),
          r"^(?P<file>(?:[A-Za-z]:)?[\w./\\@+-]+\.go):\d+(?::\d+)?: "
          r"(?P<msg>[^\n`]*`[^\n`]*(?:\n[^\n`]*){1,3}`[^\n`]*) \((?P<type>[a-z]\w+)\)$", "golangci-lint"),
    lines("golangci-lint", (".go:",),
          r"^(?P<file>(?:[A-Za-z]:)?[\w./\\@+-]+\.go):\d+(?::\d+)?: "
          r"(?P<msg>[^\n]+) \((?P<type>[a-z]\w+)\)$", "golangci-lint"),
    lines("go compile", (".go:",),
          r"^(?:vet: )?(?P<file>(?:[A-Za-z]:)?[\w./\\@+-]+\.go):\d+:\d+: (?P<msg>(?!too many "
          r"errors)[^\n]+)$", "go compile"),
    lines("mypy", (".py:",), r"^(?P<file>[\w./\\-]+\.pyi?):\d+(?::\d+)?: error: (?P<msg>.+?)(?: "
                             r" \[(?P<type>[\w-]+)\])?$", "mypy", within=(".py",)),
    lines("ruff", (".py:",), r"^(?P<file>[\w./\\-]+\.pyi?):\d+:\d+: (?P<type>[A-Z]{1,4}\d{2,4}) (?P<msg>.+)$", "ruff",
          within=(".py",)),
    lines("ruff", ("--> ",), r"^(?P<type>[A-Z]{1,4}\d{2,4}) (?:\[\*\] )?(?P<msg>.+)\n +--> "
                             r"(?P<file>[^\s:]+):\d+:\d+$", "ruff", within=()),
    lines("pyright", (" - error: ",),
          r"^ *(?P<file>\S+?\.pyi?):\d+:\d+ - error: (?P<msg>.+?)(?: \((?P<type>report\w+)\))?$",
          "pyright"),
    lines("pylint", (".py:",),
          r"^(?P<file>[\w./\\-]+\.pyi?):\d+:\d+: (?P<type>[CREFW]\d{4}): (?P<msg>.+?)(?: \([\w-]+\))?$",
          "pylint", within=(".py",)),
    lines("shellcheck", ("[SC",),
          r"^(?P<file>\S+?):\d+:\d+: (?:error|warning|note|info): (?P<msg>.+?) \[(?P<type>SC\d+)\]$",
          "shellcheck"),
    lines("shellcheck", (" SC",),
          r"^In (?P<file>\S+) line \d+:\n.*\n *\^-*\^? (?P<type>SC\d+)(?: \(\w+\))?: (?P<msg>.+)$",
          "shellcheck", within=("In ",)),
    lines("rubocop", (".rb:",),
          r"^(?P<file>\S+\.rb):\d+:\d+: [CWEF]: (?:\[Correctable\] )?(?P<type>\w+/\w+): (?P<msg>.+)$",
          "rubocop"),
    lines("kotlin", ("e: ",),
          r"^e: (?:file://)?(?P<file>/?[^\s:(]+\.kts?)(?::\d+:\d+|: \(\d+, \d+\):) (?P<msg>.+)$", "compile"),
    lines("sbt", ("[error] ",),
          r"^\[error\] (?:-- (?:\[\w+\] )?[\w ]*: )?(?P<file>\S+\.(?:scala|java)):\d+:\d+:? ?(?P<msg>\S.*?)"
                                r"(?: -+)?$", "compile"),
    lines("dart", (" • ",), r"^ *error • (?P<msg>.+?) • (?P<file>\S+?):\d+:\d+ • (?P<type>\w+)$", "dart"),
    lines("linker", ("undefined reference to", "undefined symbol"),
          r"^.*?(?P<msg>undefined (?:reference to|symbols?:?) .+)$", "link"),
    lines("linker", ("ld: ",),
          r"^(?:\S*/)?ld: (?P<msg>(?:cannot find|library not found|symbol\(s\) not found).*)$",
          "link"),
    lines("cmake", ("CMake Error",),
          r"^CMake Error(?: at (?P<file>\S+?):\d+ \((?P<frame>\w+)\))?:\n +(?P<msg>\S.+)$", "cmake"),
    lines("sanitizer", ("Sanitizer: ",), r"^=*\d*=*ERROR: (?P<type>\w+Sanitizer): (?P<msg>[\w-]+).*$"),
    lines("assert", ("Assertion `",),
          r"^.*?(?P<file>[\w./-]+\.\w+):\d+: (?P<frame>.+): (?P<msg>Assertion `.+' failed\.?)$",
          "assertion"),
    lines("compiler", ("error: ",),
          r"^(?P<file>(?:[A-Za-z]:)?[\w./\\+-]+\.\w{1,5}):\d+(?::\d+)?: (?:fatal )?error: (?P<msg>.+)$", "compile"),
    lines("eslint", (" error ",),
          r"^[ \t]+\d+:\d+[ \t]+error[ \t]+(?P<msg>\S.*?)[ \t]{2,}(?P<type>[@\w./-]+)[ \t]*$", "lint",
          within=("error",)),
    lines("markdownlint", (" MD",), r"^(?P<file>\S+\.mdx?):\d+(?::\d+)? (?:error )?(?P<type>MD\d+)\S* "
                                    r"(?P<msg>.+)$", "markdownlint"),
    lines("diagnostic", (":",), r"^(?P<file>[\w./-]+\.[a-z]{1,5}):\d+:\d+: (?P<msg>\S.+?)(?: \[(?P<type>[\w./-]+)\])?$",
          "diagnostic", PLAIN),
    lines("maven", ("[ERROR] ",), r"^\[ERROR\] (?P<file>\S+\.\w+):\[\d+,\d+\] (?P<msg>.+)$", "compile"),
    lines("msbuild", (": error ",), r"^[ \t]*(?P<file>[^\s(]+)\(\d+,\d+\): error (?P<type>[A-Z]+\d+): "
                                    r"(?P<msg>.+?)(?: \[[^\]]+\])?$"),
    lines("ruby", (".rb:",),
          r"^(?P<file>\S+\.rb):\d+:in [`'](?P<frame>[^']+)': (?P<msg>.+?) \((?P<type>(?:\w+::)*[A-Z]\w+)\)$"),
    lines("php", ("PHP ", "Fatal error: ", "Parse error: "),
          r"^(?:PHP )?(?P<type>Fatal error|Parse error): +(?P<msg>.+?) in "
          r"(?P<file>\S+\.php)(?::\d+| on line \d+)$", "php"),
    lines("elixir", ("** (",), r"^ *\*\* \((?P<type>[\w.]+)\) (?P<msg>.+)$"),
    lines("lua", (".lua:",), r"^lua\S*: (?P<file>\S+\.lua):\d+: (?P<msg>.+)$", "lua"),
    lines("perl", (" line ",), r"^(?P<msg>\S.*) at (?P<file>\S+\.p[lm]) line \d+\.$", "perl", PLAIN),
    lines("r", ("Error in ",), r"^Error in (?P<frame>.{1,60}?) : *\n? *(?P<msg>\S.*)$", "R", PLAIN),
    lines("unhandled", ("Unhandled exception. ",), r"^Unhandled exception\. (?:\w+\.)*(?P<type>\w+): (?P<msg>.+)$"),
    lines("terraform", ("│ Error: ",), r"^│ Error: (?P<msg>.+)$", "terraform"),
    lines("kubectl", ("Error from server",), r"^Error from server(?: \((?P<type>\w+)\))?: (?P<msg>.+)$", "kubernetes"),
    lines("mysql", ("ERROR ",), r"^ERROR (?P<type>\d{4}) \(\w{5}\)(?: at line \d+)?: (?P<msg>.+)$", "sql"),
    lines("sqlite", ("near line ",), r"^(?:Parse|Runtime) error near line \d+: (?P<msg>.+)$", "sql"),
    lines("apt", ("E: ",), r"^E: (?P<msg>\S.+)$", "apt", PLAIN),
    lines("yarn", ("YN0",),
          r"^➤ (?P<type>YN0\d{3}): [│└┌ ]*(?P<msg>(?:Error: |.*(?:can't|couldn't|doesn't|failed|fails)).*)$",
          "yarn"),
    lines("resolver", ("ersion solving failed", "No solution found"),
          r"^[ \t×]*(?P<msg>.*version solving failed|No solution found .*)\.?:?$", "dependencies"),
    lines("gem", ("Could not find a valid gem", "Could not find gem"),
          r"^(?:ERROR:  )?(?P<msg>Could not find (?:a valid gem|gem) .+)$", "gem"),
    lines("composer", ("could not be resolved",),
          r"^(?P<msg>Your requirements could not be resolved to an installable set of packages\.?)$", "composer"),
    lines("bundler", ("Rollup failed", "Could not resolve", "Module not found"),
          r"^.*?(?P<msg>(?:Rollup failed to resolve import|Module not found: Error:|"
          r"Could not resolve (?:entry module |\")).+)$",
          "bundle", PLAIN),
    lines("go modules", ("no Go files in", "is not in std", "directory prefix", "no required module"),
          r"^(?:\S+\.go:\d+:\d+: )?(?P<msg>(?:no Go files in|package \S+ is not in std|pattern .*directory prefix|"
          r"no required module provides package).*)$", "go", PLAIN),
    lines("pytest usage", ("file or directory not found",),
          r"^ERROR: (?P<msg>file or directory not found: .+)$", "usage"),
    lines("pnpm", ("ERR_PNPM_",), r"^[ \t]*(?P<type>ERR_PNPM_\w+)\s+(?P<msg>.+)$"),
    lines("pip", ("ERROR: ",), r"^ERROR: (?P<msg>(?:Could not|No matching|Cannot|Failed|Package|Ignored|Invalid|"
                               r"Exception).+)$", "pip"),
    lines("docker", ("Error response from daemon", "failed to solve"),
          r"^(?:docker: )?(?:Error response from daemon|ERROR: failed to solve): (?P<msg>.+?)\.?$", "docker"),
    lines("merge conflict", ("CONFLICT (",), r"^CONFLICT \((?P<type>[^)]+)\): (?P<msg>.+)$", "conflict"),
    lines("push rejected", (" ! [",), r"^ ! \[(?P<type>remote rejected|"
                                      r"rejected)\]\s+.*?(?P<msg>\([^)]+\))$", "git push"),
    lines("hook", ("hook id:",), r"^- hook id: (?P<msg>.+)$", "pre-commit hook", WRAPPER),
    lines("shell", ("command not found", ": not found"),
          r"^(?:\S*sh|\(eval\)|\S+\.sh)(?:: line \d+|:\d+)?: (?P<msg>command not found: \S+|[^\s:]+: (?:command "
          r")?not found)$",
          "command not found"),
    lines("shell syntax",
          ("parse error", "syntax error", "unexpected EOF", "no matches found", "unbound variable", "bad subst"),
          r"^(?:\S*sh|\(eval\)|\S+\.sh)(?:: -c)?(?:: line \d+|:\d+)?: (?P<msg>.*(?:parse error|syntax error|"
          r"unexpected EOF|"
          r"no matches found|unbound variable|bad substitution).*)$",
          "shell"),
    lines("http", ("HTTP ",), r"^(?:gh: |\w+: )?(?P<msg>.*\((?P<type>HTTP [45]\d\d)\).*)$", "", PLAIN),
    lines("http", ("HTTP ",), r"^(?:gh: |error: )?(?P<type>HTTP [45]\d\d): (?P<msg>.+?)(?: \(https?:.*)?$", "", PLAIN),
    lines("graphql", ("GraphQL: ",), r"^GraphQL: (?P<msg>.+)$", "GraphQL", PLAIN),
    lines("curl", ("curl: (",), r"^curl: \((?P<type>\d+)\) (?P<msg>.+)$", "curl"),
    lines("postgres", ("ERROR:  ", "FATAL:  "), r"^(?:psql:\S* )?(?:ERROR|FATAL):  (?P<msg>.+)$", "sql", PLAIN),
    lines("sql", ("SQLSTATE", "near \""), r"^(?P<msg>.*(?:SQLSTATE\[?\w+|near \"[^\"]*\": syntax "
                                          r"error).*)$", "sql", PLAIN),
    lines("go", ("go: ",), r"^go: (?P<msg>(?!downloading|finding|added|upgraded|extracting|found).+)$", "go", PLAIN),
    lines("usage",
          ("nknown", "nrecognized", "llegal option", "nvalid option", "unexpected argument", "No such option",
           "if any flags in"),
          r"^(?P<msg>.*(?:[Uu]nknown (?:shorthand )?(?:option|flag|command|subcommand|argument|JSON field)|"
          r"[Uu]nrecognized (?:option|argument|"
          r"subcommand|command)|[Ii]llegal option|[Ii]nvalid option|unexpected argument|No such option|if any "
          r"flags in the group).*)$",
          "usage", PLAIN),
    lines("git", ("fatal: ",), r"^fatal: (?P<msg>.+)$", "git", PLAIN),
    lines("file",
          ("o such file", "ermission denied", "s a directory", "ot a directory", "ile exists", "not permitted",
           "o space left"),
          r"^(?P<msg>(?:[\w./()\[\]-]+:(?:\d+:)? ).*(?:[Nn]o such file or directory|[Pp]ermission denied|[Ii]s a "
          r"directory|[Nn]ot a directory|"
          r"File exists|Operation not permitted|[Nn]o space left on device).*)$", "file", PLAIN),
    lines("process", ("Segmentation fault", "core dumped", "timed out after", "Killed", "out of memory"),
          r"^(?P<msg>.*(?:Segmentation fault|core dumped|[Cc]ommand timed out after|Killed(?:: 9)?$|out of "
          r"memory).*)$", "process", PLAIN),
    lines("named", ("Error: ", "Exception: "),
          r"^[ \t]*(?:Uncaught |Unhandled )?(?P<type>(?:\w+\.)*[A-Z]\w*(?:Error|Exception)): (?P<msg>.+)$", "", PLAIN),
    lines("error line", ("rror: ", "ERROR: ", "rror ", "ERROR "),
          r"^[ \t]*(?:\[[\w: .-]+\] )?(?:[✗✘❌×✖] ?)?(?:error|Error|ERROR|fatal error)(?:\[[\w-]+\])?:? "
          r"+(?P<msg>(?!task failed|during build:|in \./|\d+ \(|Command failed with|script \").+)$",
          "error", PLAIN, within=("rror", "ERROR")),
    lines("crossed", ("✗", "✘", "❌", "×", "✖", "❯"), r"^[ \t]*(?:✗|✘|❌|×|✖)[ \t]*(?P<msg>\S.+)$", "error", PLAIN),
    lines("go test package", ("FAIL\t",), r"^FAIL\t(?P<msg>\S+)(?: \[(?P<type>[\w ]+)\]|"
                                          r"\t[\d.]+s)?.*$", "test failure", WRAPPER),
    lines("make", ("*** ",), r"^g?make(?:\[\d+\])?: \*\*\* (?P<msg>.+)$", "make", WRAPPER),
    lines("script",
          ("exited with code", "ELIFECYCLE", "Command failed with", "ERROR task failed", "BUILD FAILED", "exit status"),
          r"^(?P<msg>.*(?:exited with code \d+|ELIFECYCLE.*|Command failed with exit code \d+|ERROR task failed|"
          r"BUILD FAILED.*|^exit status \d+))$",
          "failed", WRAPPER),
)  # fmt: skip
