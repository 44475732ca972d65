# ruff: noqa: E501
"""Outputs of real tools on broken input: what agents see, and no rule was written for.

Each recipe is a few files and a command. What a machine lacks is left out and said.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple


class Recipe(NamedTuple):
    """Files to write, and the command that fails on them. `needs` is the program that has to be there."""

    needs: str
    command: str
    files: dict[str, str]


PY = sys.executable
_DEEP = "def f(n):\n    return f(n - 1) if n else {}['deep']\nf(40)\n"
_CHAIN = (
    "def load():\n    try:\n        int('x')\n    except ValueError as e:\n        raise RuntimeError('no config') from e\n"
    "try:\n    load()\nexcept RuntimeError:\n    raise KeyError('gone')\n"
)
_SETUP = (
    "import sys\nfor n in 'abcdef':\n    print(f'        cythoning pkg/{n}.pyx to pkg/{n}.c')\n"
    "raise SystemExit('error: command gcc failed with exit status 1')\n"
)
_TESTS = (
    "import pytest\n@pytest.mark.parametrize('n', range(12))\ndef test_total(n):\n    assert {'total': n} == {'total': 3}, 'wrong'\n"
    "def test_raises():\n    with pytest.raises(ValueError):\n        pass\n@pytest.fixture\ndef cart(): raise OSError('disk')\n"
    "def test_cart(cart): pass\n"
)
_UNITTEST = (
    "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual([1, 2], [1, 3])\n"
    "    def test_b(self): open('/nowhere')\n    def test_c(self):\n        for n in range(3):\n            with self.subTest(n=n): self.assertTrue(n)\n"
)
_NODE = "async function f() { null.x }\nprocess.on('exit', () => console.error('bye'));\nf()\n"
_TS = "const a: number = 'x';\nfunction f(b: {c: string}) { return b.d }\nf({c: 1});\nexport default missing\n"
_C = '#include <missing.h>\nint main(void) { int x = "s"; return y; }\n'
_CPP = "#include <vector>\n#include <string>\nint main() { std::vector<std::string> v; v.push_back(3, 4); return v; }\n"
_RUST = 'fn main() { let s = String::new(); let t = s; println!("{}", s); let x: i32 = "a"; y() }\n'
_JAVA = "import java.util.*;\nclass A { int f() { List<Strin> l = new ArrayList<>(); return l.get(0) } }\n"
_JAVA_RUN = (
    'class B { static void f(int n) { if (n == 0) throw new IllegalStateException("done"); f(n - 1); }\n'
    'public static void main(String[] a) { try { f(30); } catch (Exception e) { throw new RuntimeException("outer", e); } } }\n'
)
_POM = (
    "<project xmlns='http://maven.apache.org/POM/4.0.0'><modelVersion>4.0.0</modelVersion><groupId>a</groupId>"
    "<artifactId>b</artifactId><version>1</version><dependencies><dependency><groupId>no.such</groupId>"
    "<artifactId>thing</artifactId><version>9</version></dependency></dependencies></project>"
)

RECIPES = (
    Recipe(PY, f"{PY} a.py", {"a.py": _DEEP}),
    Recipe(PY, f"{PY} a.py", {"a.py": _CHAIN}),
    Recipe(PY, f"{PY} a.py", {"a.py": "def f(:\n  pass\n"}),
    Recipe(PY, f"{PY} -X dev a.py", {"a.py": "import asyncio\nasync def f(): raise ExceptionGroup('many', [ValueError(1), TypeError(2)])\nasyncio.run(f())\n"}),
    Recipe(PY, f"{PY} -m unittest -v t.py", {"t.py": _UNITTEST}),
    Recipe(PY, f"{PY} -m pytest -q --no-header -p no:cacheprovider t.py", {"t.py": _TESTS}),
    Recipe(PY, f"{PY} -m pytest -vv --tb=long -p no:cacheprovider t.py", {"t.py": _TESTS}),
    Recipe(PY, f"{PY} -m pytest -p no:cacheprovider nowhere.py", {}),
    Recipe(PY, f"{PY} setup.py bdist", {"setup.py": _SETUP}),
    Recipe(PY, f"{PY} -m pip install --no-build-isolation --no-deps --no-index .", {"setup.py": _SETUP}),
    Recipe(PY, f"{PY} -m pip install --no-index no-such-package-at-all", {}),
    Recipe(PY, f"{PY} -m mypy a.py", {"a.py": "x: int = 'a'\ndef f(a: str) -> int: return a\nf(1, 2)\n"}),
    Recipe(PY, f"{PY} -m ruff check --select ALL a.py", {"a.py": "import os,sys\ndef f( a ):\n  l = 1\n  return eval(a)\n"}),
    Recipe(PY, f"{PY} -m build --no-isolation", {"pyproject.toml": "[project]\nname = 1\n"}),
    Recipe("node", "node a.js", {"a.js": _NODE}),
    Recipe("node", "node a.mjs", {"a.mjs": "import {x} from './b.mjs'\n", "b.mjs": "export const y = 1\n"}),
    Recipe("node", "node --test", {"a.test.js": "const t = require('node:test'); t('adds', () => { require('assert').deepEqual({a: 1}, {a: 2}) })\n"}),
    Recipe("npm", "npm run nothing", {"package.json": '{"name": "a", "scripts": {"test": "false"}}'}),
    Recipe("npm", "npm test", {"package.json": '{"name": "a", "scripts": {"test": "node -e \\"process.exit(3)\\""}}'}),
    Recipe("npm", "npm ci", {"package.json": '{"name": "a", "dependencies": {"left-pad": "1"}}'}),
    Recipe("tsc", "tsc --noEmit --strict a.ts", {"a.ts": _TS}),
    Recipe("gcc", "gcc -Wall a.c", {"a.c": _C}),
    Recipe("g++", "g++ -Wall a.cpp", {"a.cpp": _CPP}),
    Recipe("make", "make -k all", {"Makefile": "all: a b\na:\n\tfalse\nb: c.h\n\techo b\n"}),
    Recipe("cmake", "cmake .", {"CMakeLists.txt": "cmake_minimum_required(VERSION 3.1)\nproject(a)\nfind_package(Nowhere REQUIRED)\nadd_executable(b none.c)\n"}),
    Recipe("rustc", "rustc a.rs", {"a.rs": _RUST}),
    Recipe("rustc", "rustc a.rs && ./a", {"a.rs": "fn main() { let v = vec![1]; let n = v.len() + 2; println!(\"{}\", v[n]); }\n"}),
    Recipe("cargo", "cargo build --offline", {"Cargo.toml": "[package]\nname = 'a'\nversion = '0.1.0'\n[dependencies]\nnosuch = '9'\n"}),
    Recipe("javac", "javac A.java", {"A.java": _JAVA}),
    Recipe("javac", "javac B.java && java B", {"B.java": _JAVA_RUN}),
    Recipe("mvn", "mvn -o -B test", {"pom.xml": _POM}),
    Recipe("go", "go vet ./...", {"go.mod": "module a\n", "a.go": "package main\nfunc main() { x := 1 }\n"}),
    Recipe("go", "go test ./...", {"go.mod": "module a\n", "a_test.go": "package a\nimport \"testing\"\nfunc TestA(t *testing.T) { t.Fatal(\"no\") }\n"}),
    Recipe("perl", "perl a.pl", {"a.pl": "use strict;\nsub f { die { code => 3 } if $_[0] }\nprint $undeclared; f(1);\n"}),
    Recipe("bash", "bash -x a.sh", {"a.sh": "set -eu\necho ${nothing}\nif [ 1 -eq ]; then\n"}),
    Recipe("git", "git init -q && git merge nowhere; git checkout -b x/..; git apply p.diff", {"p.diff": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"}),
    Recipe("tclsh", "tclsh a.tcl", {"a.tcl": "proc f {} { error deep }\nproc g {} { f }\ng\n"}),
)  # fmt: skip


def outputs(report: list[str], recipes: Sequence[Recipe] = RECIPES) -> Iterator[tuple[str, str]]:
    """Command and output of each recipe that can be run here. What cannot is named in `report`."""
    for recipe in recipes:
        if not (shutil.which(recipe.needs) or Path(recipe.needs).exists()):
            report.append(recipe.needs)
            continue
        with tempfile.TemporaryDirectory(prefix="memctl-unseen-") as folder:
            for name, text in recipe.files.items():
                Path(folder, name).write_text(text, encoding="utf-8")
            environment = {**os.environ, "HOME": folder, "CI": "true", "NO_UPDATE_NOTIFIER": "1"}
            try:
                done = subprocess.run(
                    recipe.command,
                    shell=True,
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                    timeout=120,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                report.append(f"{recipe.command} (took over two minutes)")
                continue
            output = (done.stdout + done.stderr).decode("utf-8", "replace")
            yield recipe.command.replace(PY, "python"), output.replace(folder, "/home/dev/shop").replace(PY, "python")


def mangled(text: str, other: str, luck: random.Random) -> str:
    """The text as something on its way to an agent may have made it."""
    lines = text.split("\n")
    match luck.randrange(14):
        case 0:
            return "\n".join(" " * luck.randrange(40) + line for line in lines)
        case 1:
            prefix = luck.choice(
                ("web-1  | ", "[lint:go] ", "2026-01-02T03:04:05.678Z ", "#12 1.234 ", "> ", "ERROR: ", "\t")
            )
            return "\n".join(prefix + line for line in lines)
        case 2:
            width = luck.choice((20, 40, 80))
            return "\n".join(line[at : at + width] for line in lines for at in range(0, len(line) + 1, width))
        case 3:
            return "\n".join(f"\x1b[3{luck.randrange(8)}m{line}\x1b[0m\x1b[K" for line in lines)
        case 4:
            return text[luck.randrange(len(text) + 1) :]
        case 5:
            return text[: luck.randrange(len(text) + 1)]
        case 6:
            others = other.split("\n")
            return "\n".join(
                luck.choice((a, b)) for a, b in zip(lines, (others * (len(lines) // len(others) + 1)), strict=False)
            )
        case 7:
            return text * luck.choice((10, 100, 1_000))
        case 8:
            return text.replace("\n", "\r\n")
        case 9:
            return text.replace("\n", luck.choice(("\r", "\\n", "  ", "\u2028", "\x0b")))
        case 10:
            at = luck.randrange(len(text) + 1)
            return (
                text[:at]
                + luck.choice(("\0", "\ud800", "é" * 5_000, " " * 20_000, "(" * 3_000, "a" * 50_000))
                + text[at:]
            )
        case 11:
            return "\n".join(line + luck.choice(lines) for line in lines)
        case 12:
            luck.shuffle(lines)
            return "\n".join(lines)
        case _:
            return text
