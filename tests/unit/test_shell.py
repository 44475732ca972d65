"""What a command line is taken for."""

from __future__ import annotations

import pytest

from memctl.domain.shell.commands import (
    changes_of,
    head_of,
    heads_of,
    is_commit,
    only_reads,
    runner_of,
    substitutions_of,
    written_by,
)


@pytest.mark.parametrize(
    ("command", "heads"),
    [
        ("cd /w && go test -run TestA ./... 2>&1 | tail -20", ("go test",)),
        ("mise run fmt && mise run lint && mise run test:ci", ("mise run fmt", "mise run lint", "mise run test:ci")),
        ("FOO=1 sudo -u me timeout -k 5 60 npm --prefix web run build", ("npm run build",)),
        ("npx --yes eslint . --fix", ("eslint",)),
        ("uv run --with x pytest -q", ("pytest",)),
        ("python3 -m pytest tests/", ("pytest",)),
        ("python -m http.server", ("python -m http.server",)),
        ("git -C /w/x -c a=b push origin main", ("git push",)),
        ("docker compose -f x.yml up -d", ("docker compose up",)),
        ("/usr/local/go/bin/go build ./...", ("go build",)),
        ("./scripts/deploy.sh --all", ("deploy.sh",)),
        ("bash -c 'cd x && make test'", ("make test",)),
        ("wsl.exe -d Ubuntu -e npm -- test && wsl", ("npm test", "wsl")),
        ("for f in *.go; do gofmt -w $f; done", ("gofmt",)),
        ("cat <<'EOF' > a.md\nrm -rf / && go test\nEOF\ngit add a.md", ("cat", "git add")),
        ('git commit -m "fix: a && b; c | d"', ("git commit",)),
        ("echo done; export X=1", ()),
        ("gh pr view 12 --json a | jq .a", ("gh pr view",)),
        ("(cd web && pnpm i) || true", ("pnpm i",)),
        ("rtk bun run test 2>&1", ("bun run test",)),
        ("# only a remark", ()),
        ("", ()),
        ('for f in *.go; do [ -z "$f" ] && continue; wc -l $f || exit 1; done', ("wc",)),
    ],
)
def test_heads_see_through_wrappers_and_leave_paths_out(command: str, heads: tuple[str, ...]) -> None:
    assert heads_of(command) == heads


def test_the_head_of_a_chain_is_what_does_something_first() -> None:
    assert head_of("ls && git status && go vet ./... && go test ./...") == "go vet"
    assert head_of("ls -la | head") == "ls"
    assert head_of("cd /tmp") == "cd"


def test_reading_is_told_from_doing() -> None:
    assert only_reads("grep -rn x . | sort | head -3; git diff HEAD~1")
    assert not only_reads("grep -rn x . && go test ./...")


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        ("go mod tidy && go build ./...", ("go mod tidy",)),
        ("gofmt -l .", ()),
        ("gofmt -w .", ("gofmt -w .",)),
        ("sed -n 1,5p a.go", ()),
        ("sed -i '' s/a/b/ a.go", ("sed -i '' s/a/b/ a.go",)),
        ("eslint . --fix", ("eslint . --fix",)),
        ("eslint .", ()),
        ("git config --get user.name", ()),
        ("git config user.name me", ("git config user.name me",)),
        ("npm ci; npm test", ("npm ci",)),
        ("pytest -q", ()),
    ],
)
def test_what_changes_things_is_known(command: str, changes: tuple[str, ...]) -> None:
    assert changes_of(command) == changes


def test_files_written_by_the_shell_are_found() -> None:
    assert written_by("cat > src/a.py <<'EOF'\nx = 1\nEOF") == ("src/a.py",)
    assert written_by("sed -i s/a/b/ src/a.py") == ("src/a.py",)
    assert written_by("cat <<EOF > /dev/null\nx\nEOF") == ()


@pytest.mark.parametrize(
    ("head", "runner"),
    [
        ("pytest", "pytest"),
        ("go test", "go"),
        ("cargo test", "cargo"),
        ("npm test", "js"),
        ("bun run test", "script"),
        ("mise run test:integration", "script"),
        ("make check", "script"),
        ("go build", ""),
        ("git status", ""),
    ],
)
def test_test_runners_are_known_by_their_heads(head: str, runner: str) -> None:
    assert runner_of(head) == runner


def test_commits_and_pushes_are_known() -> None:
    assert is_commit('git add . && git commit -m "x"')
    assert is_commit("git rebase --continue")
    assert not is_commit("git rebase main")
    assert not is_commit("git log --grep commit")


def test_a_long_or_hostile_command_is_read_in_time() -> None:
    import time

    for command in (
        "a" * 100_000,
        "'" * 6_001,
        '"$(' * 2_000,
        "$(" * 3_000,
        "<<E\n" * 1_500,
        "`" * 5_001,
        "\\" * 5_001,
        "wsl " * 1_500,
        "wsl env " * 750,
    ):
        began = time.process_time()
        heads_of(command)
        assert time.process_time() - began < 2, command[:20]


@pytest.mark.parametrize(
    ("command", "heads", "reads"),
    [
        ("Get-Content .\\lint.txt | Where-Object { $_ -match 'error' } | Measure-Object", ("get-content",), True),
        ("$out = go test ./... 2>&1; $out | Select-String FAIL", ("go test",), False),
        ('$env:MODE = "test"; Set-Location cart; go build', ("go build",), False),
        ("$found = Get-Content a.txt; $found", ("get-content",), True),
        ("$TOOL run", ("$tool",), False),
    ],
)
def test_cmdlets_that_show_are_readers_and_a_variable_is_no_program(
    command: str, heads: tuple[str, ...], reads: bool
) -> None:
    assert heads_of(command) == heads
    assert only_reads(command) is reads


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (
            "sed -i 's/o(a)/n\\(b\\)/g' src/a.go ./b.go && go vet",
            {"src/a.go": ("o(a)", "n(b)"), "./b.go": ("o(a)", "n(b)")},
        ),
        ("sed -i '' -e 's|^x/y$|z|' -e '3s/a/b/' a.txt", {"a.txt": ("x/y\na", "z\nb")}),
        ("perl -pi -e 's/Old/New/g' lib/x.pl", {"lib/x.pl": ("Old", "New")}),
        ("sed -n 's/a/b/p' x.py", {}),
        ("sed -i 4d x.py", {}),
    ],
)
def test_both_sides_of_an_edit_in_place_stand_in_its_expression(
    command: str, found: dict[str, tuple[str, str]]
) -> None:
    assert substitutions_of(command) == found
