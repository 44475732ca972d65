"""Libraries, services and people that commands, code and manifests name, and those that they only seem to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.code.mentions import (
    libraries_declared,
    libraries_in_code,
    libraries_installed,
    people_in,
    services_in,
)

HERE = "/home/dana/ledger"


@pytest.mark.parametrize(
    ("language", "code", "names"),
    [
        ("typescript", "import { memo } from 'react';\nimport x from '@tanstack/q/build'", ["react", "@tanstack/q"]),
        ("typescript", "import fs from 'node:fs'\nimport path from 'path'", []),
        ("typescript", "import a from './a'\nimport s from '@shared/types'", []),
        ("typescript", "export type State = 'queued' | 'idle'", []),
        ("typescript", "import { book } from '@ledger/core'", []),
        ("javascript", "const express = require('express')", ["express"]),
        ("go", 'import (\n\t"net/http"\n\t"github.com/spf13/cobra/doc"\n)', ["github.com/spf13/cobra"]),
        ("go", 'import (\n\tv3 "gopkg.in/yaml.v3"\n)', ["gopkg.in/yaml.v3"]),
        ("go", 'import "fmt"\n\nvar url = "example.com/a/b"\n', []),
        ("go", 'import (\n\t"github.com/dana/ledger/books"\n)', []),
        ("python", "import numpy as np\nfrom fastapi import FastAPI\nimport books\nimport os", ["numpy", "fastapi"]),
        ("rust", "use serde::Deserialize;\nuse std::fmt;\nuse crate::books;", ["serde"]),
        ("java", "import java.util.List;", []),
    ],
)  # fmt: skip
def test_imports_name_libraries_and_never_the_project_itself(language: str, code: str, names: list[str]) -> None:
    assert [found.name for found in libraries_in_code(language, code, HERE)] == names


def test_a_file_shown_with_line_numbers_is_read_alike() -> None:
    shown = '     1→package a\n     2→\n     3→import (\n     4→\t"github.com/spf13/cobra"\n     5→)'
    assert [found.name for found in libraries_in_code("go", shown, HERE)] == ["github.com/spf13/cobra"]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("cd web && npm install react@18.2.0", [("npm", "react", "18.2.0")]),
        ("npm i @types/node --save-dev", [("npm", "@types/node", "")]),
        ("pip install 'httpx>=0.27' -r requirements.txt", [("pypi", "httpx", "0.27")]),
        ("go get github.com/creack/pty@v1.1.24", [("go", "github.com/creack/pty", "v1.1.24")]),
        ("uv add pydantic", [("pypi", "pydantic", "")]),
        ("npm install", []),
        ("pip install -e . --index-url https://pypi.example.com/simple", []),
        ('echo "npm install react"', []),
        ("grep -r install .", []),
    ],
)  # fmt: skip
def test_install_commands_name_libraries(command: str, found: list[tuple[str, str, str]]) -> None:
    assert [(each.platform, each.name, each.version) for each in libraries_installed(command, HERE)] == found


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("/p/package.json", '{"scripts": {"a": "1.0"}, "dependencies": {"react": "^18.2.0"}}', [("react", "18.2.0")]),
        ("/p/package.json", '{"devDependencies": {"y": "workspace:*"}}', []),
        ("/p/go.mod", "go 1.24\n\nrequire (\n\tgithub.com/a/b v1.8.0\n)", [("github.com/a/b", "v1.8.0")]),
        ("/p/go.mod", "require (\n\tgolang.org/x/mod v0.1.0 // indirect\n)", []),
        ("/p/pyproject.toml", 'dependencies = [\n  "click>=8.1",\n  "rich",\n]\n', [("click", "8.1"), ("rich", "")]),
        ("/p/requirements.txt", "# tools\n-r base.txt\nflask==3.0.0\n", [("flask", "3.0.0")]),
        ("/p/Cargo.toml", '[dependencies]\nserde = { version = "1.0" }\n', [("serde", "1.0")]),
        ("/p/Cargo.toml", '[package]\nversion = "1.0"\n', []),
        ("/p/tsconfig.json", '{"dependencies": {"react": "18.0.0"}}', []),
    ],
)  # fmt: skip
def test_manifests_tell_versions(path: str, text: str, found: list[tuple[str, str]]) -> None:
    assert [(each.name, each.version) for each in libraries_declared(path, text, HERE)] == found


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("gh pr view 12 --json title", ["github.com"]),
        ("cd x && docker compose up -d && psql -h db", ["Docker", "PostgreSQL"]),
        ("curl -s https://api.stripe.com/v1/charges | jq .", ["api.stripe.com"]),
        ("curl http://localhost:3000/health", ["localhost:3000"]),
        ("curl https://example.com", []),
        ("grep -rn docker .", []),
        ("cat docs/aws.md", []),
        ("git commit -m 'use gh pr create'", []),
    ],
)
def test_a_command_speaks_to_a_service_by_its_program_or_host(command: str, names: list[str]) -> None:
    assert [found.name for found in services_in(command)] == names


def test_authors_of_commits_are_people_and_bots_are_not() -> None:
    log = (
        "commit 1a2b\nAuthor: Dana Kim <dana@ledger.dev>\nDate: Mon\n\n    Author: quoted <x@y.z>\n"
        "commit 3c4d\nAuthor: dependabot[bot] <support@github.com>\ncommit 5e6f\nAuthor: Test User <test@example.com>\n"
    )
    assert [found.name for found in people_in("git log -3", log)] == ["Dana Kim"]
    assert people_in("cat notes.txt", log) == []
    assert [found.name for found in people_in("gh pr view 3", "title:\tFix\nauthor:\tdanakim\n")] == ["danakim"]


@given(st.text(alphabet="npm install gh:/.@'\"\n\t-&|;abc한<>", max_size=200))
def test_no_text_is_too_strange(text: str) -> None:
    libraries_installed(text, HERE)
    services_in(text)
    people_in("git log", "Author:" + text)
    for language in ("go", "python", "typescript", "rust"):
        libraries_in_code(language, "import " + text, HERE)
    for manifest in ("package.json", "go.mod", "pyproject.toml", "requirements.txt", "Cargo.toml"):
        libraries_declared(manifest, text, HERE)
