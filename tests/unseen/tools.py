# ruff: noqa: E501
"""Outputs of real tools on broken input: what agents see, and no rule was written for.

Each recipe is a few files and a command. What a machine lacks is left out and said; `fetch` gets some of it from PyPI and
npm.
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
FETCHED = Path(__file__).parents[2] / ".scratch" / "unseen"
"""Where what was fetched lies, until `make clean`."""
BY_PIP = ("tox", "sphinx")
BY_NPM = ("eslint", "jest", "vitest", "typescript")
FETCH_WITHIN_S = 600
BINARIES = (FETCHED / "python" / "bin", FETCHED / "node" / "node_modules" / ".bin")
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
_TOX = (
    "[tox]\nenvlist = unit, lint, deps\nskipsdist = true\n[testenv]\ncommands = python -m unittest -v t.py\n"
    "[testenv:lint]\nallowlist_externals = false\ncommands =\n    python -c \"print('checking'); raise SystemExit(3)\"\n    flake8 .\n"
    "[testenv:deps]\ndeps = no-such-package-at-all>=9\ncommands = python -V\n"
)
_TOX_PACKAGE = "[tox]\nenvlist = py\nisolated_build = true\n[testenv]\ncommands = {missing:command} --x\n"
_RST = (
    "Shop\n==\n\nSee :ref:`nowhere`, :py:func:`cart.total` and `no such target`_.\n\n.. toctree::\n\n   missing\n\n"
    ".. automodule:: cart\n   :members:\n\n.. no-such-directive:: x\n\n.. code-block:: python\n\n   def f(:\n\n* a\n- b\n    * c\n  *d\n"
)
_CART = 'def total(x):\n    """Sum.\n\n    :param x: what\n        * odd\n      indent *here\n    """\nimport no_such_module\n'
_ESLINT = "export default [{ rules: { 'no-undef': 'error', 'no-unused-vars': 'warn', eqeqeq: 2, 'no-empty': 2 } }]\n"
_LINTED = "function f(a, b) { if (a == c) { } }\nlet x = 1; let y = missing(x)\n"
_JS_TESTS = (
    "describe('cart', () => {\n  test('adds', () => { expect({ a: 1, b: [1, 2] }).toEqual({ a: 2, b: [1, 3] }) })\n"
    "  test('throws', () => { null.x })\n  test.each([1, 2, 3])('is %i', (n) => { expect(n).toBe(2) })\n"
    "  test('waits', async () => { await Promise.reject(new TypeError('outer', { cause: new Error('inner') })) })\n"
    "  test('never ends', async () => { await new Promise(() => {}) }, 50)\n"
    "  test('text', () => { expect('one\\ntwo\\nthree').toBe('one\\n2\\nthree') })\n  test('is well', () => {})\n})\n"
)
_TS_MORE = (
    "type Deep<T> = { [K in keyof T]: T[K] extends object ? Deep<T[K]> : T[K] | null };\ninterface A { a: { b: { c: number } }; d(x: string): void }\n"
    "const x: Deep<A> = { a: { b: { c: 'no' } }, d: (x: number) => x };\nimport { y } from './missing';\nclass B implements A { a = 1 }\n"
    "function g<T extends keyof A>(k: T): A[T] { return k }\ng('zzz');\n"
)
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
    Recipe("tsc", "tsc --noEmit --strict --pretty", {"tsconfig.json": '{"compilerOptions": {"noSuchOption": 1}, "include": ["*.ts"]}', "a.ts": _TS_MORE}),
    Recipe("tsc", "tsc -b --verbose", {"tsconfig.json": '{"references": [{"path": "./nowhere"}], "files": ["a.ts"]}', "a.ts": _TS}),
    Recipe("tox", "tox", {"tox.ini": _TOX, "t.py": _UNITTEST}),
    Recipe("tox", "tox -vv", {"tox.ini": _TOX_PACKAGE, "setup.py": _SETUP}),
    Recipe("sphinx-build", "sphinx-build -n -W --keep-going . out", {"conf.py": "import sys\nsys.path.insert(0, '.')\nextensions = ['sphinx.ext.autodoc']\n", "index.rst": _RST, "cart.py": _CART}),
    Recipe("sphinx-build", "sphinx-build -T . out", {"conf.py": "extensions = ['no.such.extension']\n", "index.rst": _RST}),
    Recipe("sphinx-build", "sphinx-build . out", {"conf.py": _CHAIN, "index.rst": _RST}),
    Recipe("eslint", "eslint .", {"eslint.config.mjs": _ESLINT, "a.mjs": _LINTED, "b.mjs": "export const = 1\n"}),
    Recipe("eslint", "eslint --format json .", {"eslint.config.mjs": _ESLINT, "a.mjs": _LINTED}),
    Recipe("eslint", "eslint a.js", {"a.js": _LINTED}),
    Recipe("jest", "jest", {"package.json": "{}", "a.test.js": _JS_TESTS, "b.test.js": "const x = ;\n", "c.test.js": "require('./nowhere')\n"}),
    Recipe("jest", "jest --verbose --coverage --ci", {"package.json": "{}", "a.test.js": _JS_TESTS, "d.test.js": "test('kept', () => { console.error('odd'); expect({ a: 1 }).toMatchSnapshot() })\n"}),
    Recipe("vitest", "vitest run --globals", {"package.json": "{}", "a.test.js": _JS_TESTS, "b.test.js": "const x = ;\n", "c.test.js": "import './nowhere'\n"}),
    Recipe("vitest", "vitest run --globals --reporter=verbose --bail 1", {"package.json": "{}", "a.test.ts": _JS_TESTS, "vitest.config.js": "export default { test: { retry: 2 } }\n"}),
    Recipe("vitest", "vitest run", {"package.json": "{}", "vitest.config.js": "import './nowhere'\n"}),
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


def fetch(report: list[str]) -> None:
    """Have what PyPI and npm hold of the programs here, once. What cannot be had is named in `report`."""
    python, node = FETCHED / "python", FETCHED / "node"
    node.mkdir(parents=True, exist_ok=True)
    quietly = "--silent --no-fund --no-audit"
    commands = (
        (BINARIES[0] / "tox", f"{PY} -m venv {python} && {python}/bin/pip install -q {' '.join(BY_PIP)}"),
        (BINARIES[1] / "tsc", f"npm install {quietly} --prefix {node} {' '.join(BY_NPM)}"),
    )
    for made, command in commands:
        if made.exists():
            continue
        try:
            subprocess.run(command, shell=True, capture_output=True, timeout=FETCH_WITHIN_S, check=True)
        except subprocess.SubprocessError as problem:
            report.append(f"{' '.join(BY_NPM if 'npm' in command else BY_PIP)} ({str(problem)[-200:]})")


def outputs(report: list[str], recipes: Sequence[Recipe] = RECIPES) -> Iterator[tuple[str, str]]:
    """Command and output of each recipe that can be run here. What cannot is named in `report`."""
    path = os.pathsep.join([*map(str, BINARIES), os.environ.get("PATH", os.defpath)])
    for recipe in recipes:
        if not (shutil.which(recipe.needs, path=path) or Path(recipe.needs).exists()):
            report.append(recipe.needs)
            continue
        with tempfile.TemporaryDirectory(prefix="memctl-unseen-") as folder:
            for name, text in recipe.files.items():
                Path(folder, name).write_text(text, encoding="utf-8")
            environment = {
                **os.environ, "PATH": path, "HOME": folder, "CI": "true", "NO_UPDATE_NOTIFIER": "1", "PIP_NO_INDEX": "1"
            }  # fmt: skip
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
            yield (
                recipe.command.replace(PY, "python"),
                output.replace(folder, "/home/dev/shop").replace(PY, "python").replace(str(FETCHED), "/opt/tools"),
            )


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
