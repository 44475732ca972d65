"""What files and commands tell of how a project is built."""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Callable
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.projects.stack import (
    DEEPEST,
    case_of,
    commit_style_of,
    imports_in,
    is_config,
    is_entry,
    language_of,
    manifest_in,
    message_in,
    subject_of,
)
from memctl.domain.projects.stack import (
    test_style_of as style_of,
)
from memctl.domain.shell.commands import proofs_of
from memctl.domain.support.tallies import Tallies, count

GO = 'package a\n\nimport (\n\t"fmt"\n\n\t"github.com/spf13/cobra"\n\tgit "github.com/go-git/go-git/v5/plumbing"\n)\n'


@pytest.mark.parametrize(
    ("path", "text", "packages"),
    [
        ("a.go", GO, ("github.com/go-git/go-git", "github.com/spf13/cobra")),
        ("a.go", "".join(f"{n:>6}→{line}\n" for n, line in enumerate(GO.split("\n"), 1)),
         ("github.com/go-git/go-git", "github.com/spf13/cobra")),
        ("a.go", 'fmt.Println("github.com/x/y")', ()),
        ("a.tsx", 'import React from "react";\nimport { x } from "@tanstack/react-query/core";\nimport y from "./y";',
         ("@tanstack/react-query", "react")),
        ("a.py", "import os\nfrom yaml.nodes import X\n    import inner\ntext = 'from here to there'", ("os", "yaml")),
        ("a.rs", "use std::io;\npub use serde::Serialize;\nuse crate::a;", ("serde",)),
        ("a.md", 'import x from "react"', ()),
    ],
)  # fmt: skip
def test_imports_are_read_where_they_stand(path: str, text: str, packages: tuple[str, ...]) -> None:
    assert imports_in(path, text) == packages


def test_manifests_tell_dependencies_and_commands_also_with_line_numbers() -> None:
    package = (
        '{"name": "@acme/web", "packageManager": "pnpm@9", "dependencies": {"react": "1"}, "scripts": {"build": "x"}}'
    )
    found = manifest_in("apps/web/package.json", f"     1→{package}")
    assert found is not None
    assert (found.of, found.own, found.packages, found.scripts) == ("pnpm", "@acme/web", ("react",), ("build",))
    go = manifest_in("go.mod", "module acme.io/cli\n\nrequire (\n\tgithub.com/a/b v1.0.0\n\tc.io/d v2 // indirect\n)\n")
    assert go is not None
    assert (go.own, go.packages) == ("acme.io/cli", ("github.com/a/b",))
    assert manifest_in("package.json", package[:-9]) is None
    assert manifest_in("notes.json", package) is None


@pytest.mark.parametrize(
    ("path", "nested"),
    [
        ("package.json", lambda levels: '{"name": "a", "x": ' + "[" * levels + "]" * levels + "}"),
        ("package.json", lambda levels: '{"name": "a", "x": ' + '{"y":' * levels + "1" + "}" * levels + "}"),
        ("pyproject.toml", lambda levels: 'project.name = "a"\nx = ' + "[" * levels + "]" * levels),
        ("pyproject.toml", lambda levels: 'project.name = "a"\nx = ' + "{y=" * levels + "1" + "}" * levels),
    ],
)
def test_whether_a_manifest_is_nested_too_deeply_depends_on_it_alone(path: str, nested: Callable[[int], str]) -> None:
    """Not on how much of Python's stack is left: a worker that folds has called more before than a rebuild."""
    shallow = manifest_in(path, nested(DEEPEST - 1))
    assert shallow is not None
    assert shallow.own == "a"
    assert manifest_in(path, nested(DEEPEST)) is None
    assert manifest_in(path, nested(DEEPEST * 100)) is None

    def with_little_left(calls: int) -> bool:
        return with_little_left(calls - 1) if calls else manifest_in(path, nested(DEEPEST - 1) + "\n") is not None

    assert with_little_left(sys.getrecursionlimit() - len(inspect.stack(0)) - 300)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "package.json",
            r'{"name": "s\u0000hop", "packageManager": "pn\u0000pm@9", "dependencies": {"\u0000zod": "3"}}',
        ),
        ("pyproject.toml", '[project]\nname = "s\\u0000hop"\ndependencies = ["zod"]\n'),
    ],
)
def test_an_escaped_nul_in_a_manifest_is_left_out_of_what_it_tells(path: str, text: str) -> None:
    manifest = manifest_in(path, text)
    assert manifest is not None
    assert (manifest.own, manifest.packages) == ("shop", ("zod",))
    assert "\0" not in manifest.of


@pytest.mark.parametrize("among", ["{}", "[{}]", "{{ a = {} }}"])
def test_a_number_is_no_dependency_however_many_digits_it_has(among: str) -> None:
    """In hexadecimal it may have more than Python writes out."""
    listed = among.format("0x" + "F" * 5_000)
    manifest = manifest_in("pyproject.toml", f'[project]\nname = "shop"\ndependencies = ["zod", {listed}]\n')
    assert manifest is not None
    assert (manifest.own, manifest.packages) == ("shop", ("zod",))


@given(
    st.sampled_from(["package.json", "pyproject.toml", "go.mod", "Cargo.toml", "a.go", "a.py"]), st.text(max_size=200)
)
def test_no_text_breaks_the_readers(path: str, text: str) -> None:
    manifest_in(path, text)
    imports_in(path, text)
    proofs_of(text)
    subject_of(text)


@pytest.mark.parametrize(
    ("command", "proofs"),
    [
        ("cd src && go test ./... && golangci-lint run", (("test", "go test ./..."), ("check", "golangci-lint run"))),
        ("CI=1 npm run build 2>&1 | tail -3", (("build", "npm run build"),)),
        ("rtk bun run test", (("test", "rtk bun run test"),)),
        ("git checkout main", ()),
        ("command -v actionlint", ()),
        ("entire checkpoint --help", ()),
        ("go build -o /tmp/x ./cmd/x", ()),
        ("pip install ruff", ()),
        ("vale " + "a" * 90, ()),
    ],
)
def test_what_tests_checks_or_builds_is_told_as_it_was_written(
    command: str, proofs: tuple[tuple[str, str], ...]
) -> None:
    assert proofs_of(command) == proofs


@pytest.mark.parametrize(
    ("command", "subject", "style"),
    [
        ('git commit -m "fix(api): close the door"', "fix(api): close the door", "conventional"),
        ("git add . && git commit -am 'Close the door'", "Close the door", "capitalised"),
        ("git commit -m \"$(cat <<'EOF'\nfeat: doors\n\nMore.\nEOF\n)\"", "feat: doors", "conventional"),
        ('git commit -m "Say \\"no\\" to it\'s doors" -m "More."', 'Say "no" to it\'s doors', "capitalised"),
        ('git commit -m "$(cat <<EOF\nClose the "front" door\nEOF\n)"', 'Close the "front" door', "capitalised"),
        ("git commit -m 'fixup! feat: doors'", "", ""),
        ("git commit -m 'Initial commit'", "", ""),
        ("git commit -m 'Initial support of doors'", "Initial support of doors", "capitalised"),
        ('git commit -m "Merge branch main"', "", ""),
        ("git commit --amend --no-edit", "", ""),
        ("git log --oneline", "", ""),
    ],
)
def test_a_commit_tells_its_subject(command: str, subject: str, style: str) -> None:
    assert subject_of(command) == subject
    assert not subject or commit_style_of(subject).startswith(style)


def test_a_file_tells_its_role_by_its_name() -> None:
    assert language_of("a/b.tsx") == "TypeScript"
    assert language_of("Makefile") == ""
    assert style_of("a/b_test.go").startswith("`*_test.go`")
    assert case_of("src/user-list.tsx") == "kebab-case"
    assert case_of("src/UserList.tsx") == "PascalCase"
    assert case_of("main.go") == ""
    assert is_entry("cmd/cli/main.go")
    assert is_entry("src/index.ts")
    assert not is_entry("src/components/layout/index.ts")
    assert is_config(".github/workflows/ci.yml")
    assert not is_config("src/config.go")


@given(st.lists(st.sampled_from("abcdef"), max_size=30), st.integers(0, 30))
def test_in_how_many_pieces_is_counted_changes_nothing(names: list[str], cut: int) -> None:
    def counted(pieces: list[list[str]]) -> Tallies:
        table: Tallies = {}
        at = itertools.count(1)
        for piece in pieces:
            table = dict(table)
            for name in piece:
                count(table, name, next(at), UUID(int=1), 3, ok=name != "f")
        return table

    assert counted([names[:cut], names[cut:]]) == counted([names])
    assert len(counted([names])) <= 3


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            'git add a && git commit -m "$(cat <<\'EOF\'\nCap it\n\nSeven is "enough".\nEOF\n)" && git push',
            'Cap it\n\nSeven is "enough".',
        ),
        ('git commit -m "Cap it\n\nSeven is \\"enough\\"." && echo "done"', 'Cap it\n\nSeven is "enough".'),
        ("git commit -m 'Cap it\n\nThe client'\"'\"'s word' && git push", "Cap it\n\nThe client’s word"),
        ("git commit -m 'Merge main'", ""),
        ("git push", ""),
    ],
)
def test_the_whole_message_of_a_commit_is_read_from_its_command(command: str, message: str) -> None:
    assert message_in(command) == message
