"""What is known of programs: which wrap others, which take subcommands, which read, change, test or build."""

from memctl.domain.support import patterns


def words_of(text: str, separator: str | None = None) -> frozenset[str]:
    """The words of a list that is written as one text."""
    return frozenset(text.split(separator))


WRAPPERS = words_of(
    "sudo doas time nice nohup env command exec builtin stdbuf unbuffer caffeinate chronic xvfb-run rtk setsid then do "
    "else if while until ! { eval"
)
"""What stands before a command and leaves it what it is."""

RUNNERS_OF_TOOLS = {
    "npx": 1,
    "bunx": 1,
    "pnpx": 1,
    "uvx": 1,
    "pipx run": 2,
    "uv run": 2,
    "poetry run": 2,
    "pdm run": 2,
    "hatch run": 2,
    "pipenv run": 2,
    "rye run": 2,
    "conda run": 2,
    "pnpm exec": 2,
    "pnpm dlx": 2,
    "yarn dlx": 2,
    "yarn exec": 2,
    "npm exec": 2,
    "mise exec": 2,
    "mise x": 2,
    "bundle exec": 2,
    "bun x": 2,
    "direnv exec": 3,
    "devbox run": 2,
}
"""Programs that run another: how many words they take."""
SETTING = words_of(
    "cd pushd popd export unset set source . true : sleep wait mkdir touch echo printf pwd fi done esac } for case "
    "continue break return exit [ [[ test "
    "local alias ulimit umask trap shopt chdir set-location sl push-location pop-location"
)
"""What sets up what comes after it: no part of a command that is worth naming."""

WITH_SUBCOMMAND = words_of(
    "git go cargo rustup docker podman kubectl helm gh glab mise asdf make just task npm pnpm yarn bun deno pip "
    "pip3 uv "
    "poetry pdm hatch conda brew apt apt-get dnf yum apk systemctl terraform aws gcloud az dotnet mvn gradle gradlew "
    "bundle rails rake mix composer php artisan swift xcodebuild flutter dart nx turbo lerna moon bazel buck2 supabase "
    "alembic django-admin manage.py prisma firebase vercel netlify wrangler entire tofu ansible sbt lein cabal stack "
    "zig conan meson cmake ctest buf sam cdk pulumi heroku fly flyctl memctl tox nox pre-commit lefthook husky ruff "
    "biome hugo jekyll goreleaser"
)
"""Programs whose head has a second word: `git commit`."""

RUNS_SCRIPTS = {
    "npm": ("run", "run-script"),
    "pnpm": ("run",),
    "yarn": ("run",),
    "bun": ("run",),
    "mise": ("run", "r"),
    "deno": ("task",),
    "composer": ("run-script", "run"),
    "hatch": ("run",),
}
"""By which subcommands a program runs a script of the project, whose name is then part of the head."""

TWO_LEVELS = {
    "docker": {"compose", "buildx", "container", "image", "network", "volume"},
    "gh": {"pr", "issue", "run", "repo", "release", "api", "workflow", "auth", "secret"},
    "git": {"stash", "remote", "worktree", "submodule", "bisect", "notes"},
    "go": {"mod", "tool", "work"},
    "uv": {"pip", "tool"},
    "kubectl": {"rollout", "config"},
    "dotnet": {"tool", "ef"},
    "cargo": {"nextest"},
    "nx": {"run", "run-many"},
    "turbo": {"run"},
}
"""Subcommands behind which the head has a third word: `docker compose up`."""

OPTIONS_WITH_VALUE = {
    "wsl": {"-d", "--distribution", "-u", "--user", "--cd"},
    "git": {"-C", "-c", "--git-dir", "--work-tree"},
    "make": {"-C", "-f", "-j", "-I"},
    "docker": {"-H", "--context", "-f"},
    "npm": {"--prefix", "-w", "--workspace", "-C"},
    "pnpm": {"--filter", "-F", "-C", "--dir"},
    "yarn": {"--cwd", "-C"},
    "bun": {"--cwd", "--filter", "-C"},
    "cargo": {"--manifest-path", "-p", "--color"},
    "go": {"-C"},
    "kubectl": {"-n", "--namespace", "--context"},
    "gradle": {"-p", "-b"},
    "mvn": {"-f", "-pl", "-P"},
    "mise": {"-C", "--cd", "-j"},
    "uv": {"--directory", "--project"},
    "terraform": {"-chdir"},
    "just": {"-f", "-d"},
    "poetry": {"-C", "--directory"},
    "gh": {"-R", "--repo"},
    "timeout": {"-k", "-s", "--signal", "--kill-after"},
    "nice": {"-n"},
    "env": {"-u", "-C"},
    "sudo": {"-u", "-g"},
    "xargs": {"-n", "-I", "-P", "-d", "-L"},
    "stdbuf": {"-o", "-e", "-i"},
    "uv run": {"--with", "--python", "-p", "--project", "--directory", "--extra", "--group"},
}
"""Options of a program whose value is a word of its own."""

INTERPRETERS = words_of("python python3 node ruby perl bash sh zsh fish tsx ts-node php Rscript lua pwsh deno")
"""Programs that run a file, whose name is then part of the head."""

SYNONYMS = {
    "pip3": "pip",
    "python3": "python",
    "py.test": "pytest",
    "gradlew": "gradle",
    "mvnw": "mvn",
    "nodejs": "node",
    "gmake": "make",
    "docker-compose": "docker compose",
    "bash": "sh",
    "zsh": "sh",
}
"""Other names of a program, each with the one that stands for all."""

READERS = words_of(
    "cat bat head tail less more grep egrep fgrep rg ag ack sed awk jq yq ls ll tree find fd stat file wc sort "
    "uniq cut "
    "tr diff cmp comm column xxd od strings nl tac rev which whereis type man help ps pgrep lsof du df env "
    "printenv date "
    "hostname uname whoami id test [ [[ basename dirname realpath readlink tee xargs echo printf sqlite3 md5sum "
    "sha256sum shasum osascript open code pbcopy pbpaste git-diff base64 tput seq nproc free uptime "
    "get-content gc select-string sls select-object where-object foreach-object sort-object group-object "
    "compare-object measure-object format-table format-list out-string out-host out-null tee-object write-output "
    "write-host get-childitem gci get-item get-command get-location test-path convertfrom-json convertto-json"
)
"""Programs that show or look for text: what they print is a quotation, and their exit code an answer."""

READING_HEADS = words_of(
    "git diff|git show|git log|git status|git grep|git blame|git branch|git ls-files|git rev-parse|git config|"
    "git cat-file|git reflog|git remote|git stash list|git ls-tree|git ls-remote|git describe|git merge-base|git tag|"
    "git rev-list|git for-each-ref|git name-rev|git shortlog|git diff-tree|git check-ignore|git symbolic-ref|"
    "gh pr view|gh pr diff|gh pr list|gh pr checks|gh issue view|gh issue list|gh run view|gh run list|gh api|"
    "docker ps|docker logs|docker inspect|docker images|docker compose ps|docker compose logs|kubectl get|"
    "kubectl logs|kubectl describe|npm view|npm ls|npm list|pip show|pip list|pip freeze|go doc|go env|go list|"
    "cargo tree|journalctl|systemctl status|tmux capture-pane|gh search|entire status|git stash show",
    "|",
)
"""Heads that only read, of programs that do more than that."""

CHANGING = patterns.compile(
    r"(?:go mod (?:tidy|init|download|edit|vendor)|go (?:get|install|generate|fmt|work \w+|clean)|gofmt|goimports|"
    r"(?:npm|pnpm|yarn|bun) (?:install|i|ci|add|remove|uninstall|update|upgrade|dedupe|link|rebuild|audit|pkg)|"
    r"(?:pip|uv pip|conda) (?:install|uninstall|sync)|uv (?:sync|add|lock|remove|venv)|"
    r"poetry (?:install|add|lock|update|remove)|cargo (?:add|update|fix|fmt|install|clean|remove)|"
    r"brew (?:install|upgrade|tap|link|unlink)|(?:apt|apt-get|dnf|yum|apk) (?:install|add|update|upgrade)|"
    r"mise (?:install|use|trust|run fmt|run format|run generate|run tidy|run lint:fix)|asdf (?:install|local|global)|"
    r"(?:npm|pnpm|yarn|bun) run (?:\S*(?:format|fmt|fix|generate|codegen|gen|build|migrate)\S*)|"
    r"(?:ruff|biome|eslint|prettier|black|isort|rustfmt|clang-format|stylua|terraform fmt|swiftformat|"
    r"golangci-lint|markdownlint-cli2|dprint|deno fmt|buf generate|protoc|sqlc|prisma)(?: \S+)?|"
    r"git (?:add|rm|mv|checkout|switch|restore|reset|stash|stash \w+|merge|rebase|pull|fetch|clean|cherry-pick|revert|"
    r"am|apply|commit|config|remote|remote \w+|worktree \w+|submodule \w+|update-index|gc|read-tree|branch|init|push|"
    r"tag|prune|update-ref|symbolic-ref)|"
    r"rm|mv|cp|ln|chmod|chown|patch|sed|perl|rsync|unzip|tar|install|truncate|dd|tee|kill|pkill|killall|mkdir|touch|"
    r"docker (?:build|pull|rm|rmi|run|compose \w+|start|stop|restart|volume \w+|network \w+|system)|"
    r"(?:systemctl|service) \S+|alembic (?:upgrade|revision|stamp|downgrade)|make (?:\S*(?:fmt|format|gen|clean|"
    r"install|"
    r"deps|setup|tidy|vendor|proto)\S*)|apply_patch|createdb|dropdb|psql|export)\Z"
)
"""Heads that change files, a repository or a machine; what `IN_PLACE` names only with one of its options."""

IN_PLACE = {
    "sed": ("-i",),
    "perl": ("-i", "-pi"),
    "ruff": ("--fix", "format"),
    "eslint": ("--fix",),
    "gofmt": ("-w", "-s"),
    "prettier": ("--write", "-w"),
    "biome": ("--write", "--fix", "--apply", "format"),
    "black": (),
    "isort": (),
    "golangci-lint": ("--fix", "fmt"),
    "goimports": ("-w",),
    "clang-format": ("-i",),
    "markdownlint-cli2": ("--fix",),
    "git config": ("*",),
    "git branch": ("*",),
    "tee": (),
}
"""Options without which a head changes nothing. `*`: it has to name a value, too; none: it changes as it is."""

TESTING = patterns.compile(
    r"(?:(?P<pytest>pytest|python -m unittest|python -m pytest|tox\b.*|nox\b.*|manage\.py test|django-admin test)|"
    r"(?P<go>go test|gotestsum|ginkgo)|(?P<cargo>cargo (?:test|nextest\b.*))|"
    r"(?P<js>(?:npm|pnpm|yarn|bun|deno) (?:test|t)|jest|vitest|mocha|ava|tap|playwright|cypress|karma|jasmine|"
    r"node --test)|"
    r"(?P<script>(?:npm|pnpm|yarn|bun|deno|composer) run(?:-script)? \S*(?:test|spec|e2e)\S*|"
    r"(?:mise run|make|just|task|rake|turbo|nx|moon|nox|deno task|invoke|bazel) \S*(?:test|spec|check|e2e|ci)\S*)|"
    r"(?P<ruby>rspec|rails test|minitest)|(?P<jvm>(?:mvn|gradle|sbt) \S*(?:test|verify|check)\S*)|"
    r"(?P<dotnet>dotnet test)|(?P<swift>swift test|xcodebuild test)|(?P<php>phpunit|pest|artisan test)|"
    r"(?P<mix>mix test)|(?P<ctest>ctest)|(?P<flutter>(?:flutter|dart) test)|(?P<bats>bats))\Z"
)
"""Heads that run tests; the name of the group is the runner (`domain.shell.commands.runner_of`)."""

CHECKING = patterns.compile(
    r"lint|vet|typecheck|type-check|tsc|mypy|pyright|check|clippy|vale|fmt|format|ruff|biome|eslint"
)
"""What the head of a check has in it, where it runs no tests."""

BUILDING = patterns.compile(r"build|compile|bundle|tsc|make|gradle|mvn|package|install")
"""What the head of a build has in it."""
