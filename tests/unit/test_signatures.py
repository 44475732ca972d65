# ruff: noqa: E501 - outputs stand as the tools print them
"""Errors in outputs: what is recognised, and by which signature it is known again."""

from __future__ import annotations

import pytest

from memctl.domain.failures.signatures import errors_in, is_noise, signature_of
from memctl.domain.failures.templates import template_of

TRACEBACK = """Traceback (most recent call last):
  File "{root}/app/main.py", line {line}, in <module>
    main()
  File "{root}/app/orders.py", line 8{line}, in load
    return json.load(open(path))
  File "/usr/lib/python3.11/json/__init__.py", line 293, in load
    return loads(fp.read(),
json.decoder.JSONDecodeError: Expecting value: line 1 column {line} (char {line})
"""

SHAPES = [
    ("python", "python app.py", TRACEBACK.format(root="/home/a", line=3), "JSONDecodeError", "Expecting value"),
    ("syntax", "python a.py", '  File "a.py", line 3\n    if x\n        ^\nSyntaxError: expected \':\'', "SyntaxError", "expected"),
    ("pytest", "pytest", "FAILED tests/test_a.py::test_b - AssertionError: assert 1 == 2", "AssertionError", "assert 1 == 2"),
    ("go compile", "go build ./...", "# shop/cart\ncart/cart.go:12:3: undefined: total", "go compile", "undefined: total"),
    ("go test", "go test ./...", "--- FAIL: TestCart (0.00s)\n    cart_test.go:9: got 3, want 4\nFAIL", "test failure", "got 3, want 4"),
    ("go panic", "go run .", "panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\nmain.total(...)\n\t/w/cart.go:9 +0x1d\nmain.main()\n\t/w/main.go:3\n", "panic", "index out of range"),
    ("golangci", "golangci-lint run", "cmd/a.go:19:13: G304: Potential file inclusion via variable (gosec)\n\tx\n1 issues:", "golangci-lint/gosec", "G304"),
    ("quoted break", "golangci-lint run", "cmd/a.go:9:2: string `export A=b\n` has 3 occurrences, make it a constant (goconst)\n\tx := `export A=b\n\t     ^", "golangci-lint/goconst", "has 3 occurrences"),
    ("mise prefix", "mise run lint", "[lint:go] cmd/a.go:19:13: G104: Errors unhandled (gosec)", "golangci-lint/gosec", "G104"),
    ("rust", "cargo build", "error[E0308]: mismatched types\n  --> src/main.rs:4:18\n   |\n", "E0308", "mismatched types"),
    ("rust panic", "cargo test", "thread 'tests::adds' panicked at src/lib.rs:12:9:\nassertion failed: ok", "panic", "assertion failed"),
    ("tsc", "npx tsc --noEmit", "src/a.ts(12,5): error TS2322: Type 'string' is not assignable to type 'number'.", "TS2322", "not assignable"),
    ("tsc pretty", "tsc", "src/a.ts:12:5 - error TS2304: Cannot find name 'x'.", "TS2304", "Cannot find name"),
    ("eslint", "eslint .", "/w/a.js\n  3:7  error  'x' is defined but never used  no-unused-vars\n\n1 problem", "lint/no-unused-vars", "never used"),
    ("biome", "biome check", "src/a.ts:3:7 lint/style/useConst  FIXABLE  ━━━━━━━━\n\n  × This let declares a constant.\n", "biome/lint/style/useConst", "declares a constant"),
    ("mypy", "mypy .", 'a.py:3: error: Incompatible return value type (got "str")  [return-value]', "mypy/return-value", "Incompatible"),
    ("ruff", "ruff check", "a.py:1:8: F401 `os` imported but unused", "ruff/F401", "imported but unused"),
    ("java", "java App", 'Exception in thread "main" java.lang.NullPointerException: name is null\n\tat shop.Cart.add(Cart.java:12)\n\tat shop.Main.main(Main.java:3)', "NullPointerException", "name is null"),
    ("javac", "javac A.java", "A.java:3: error: cannot find symbol", "compile", "cannot find symbol"),
    ("gcc", "make", "src/a.c:3:5: error: 'x' undeclared (first use in this function)\nmake: *** [Makefile:3: a.o] Error 1", "compile", "undeclared"),
    ("node", "node a.js", "TypeError: Cannot read properties of undefined (reading 'id')\n    at total (/w/cart.js:3:9)\n    at node:internal/main:1:1\n", "TypeError", "Cannot read properties"),
    ("npm", "npm install", "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\nnpm error A complete log", "npm/ERESOLVE", "unable to resolve"),
    ("pnpm", "pnpm i", " ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with frozen-lockfile", "ERR_PNPM_OUTDATED_LOCKFILE", "Cannot install"),
    ("bun test", "bun test", "error: expect(received).toBe(expected)\n\nExpected: 2\nReceived: 1\n\n(fail) cart > adds [0.53ms]\n", "test failure", "expect(received).toBe"),
    ("jest", "npx jest", "  ● cart › adds\n\n    expect(received).toBe(expected)\n\n    Expected: 2\n", "test failure", "expect(received)"),
    ("pip", "pip install x", "ERROR: Could not find a version that satisfies the requirement x (from versions: none)", "pip", "Could not find a version"),
    ("docker", "docker run x", "docker: Error response from daemon: pull access denied for x.", "docker", "pull access denied"),
    ("git", "git push", "fatal: not a git repository (or any of the parent directories): .git", "git", "not a git repository"),
    ("rejected", "git push", "To github.com:a/b.git\n ! [rejected]        main -> main (fetch first)\nerror: failed to push", "git push/rejected", "fetch first"),
    ("conflict", "git merge x", "Auto-merging a.go\nCONFLICT (content): Merge conflict in a.go\nAutomatic merge failed", "conflict/content", "Merge conflict"),
    ("not found", "foo", "bash: line 1: foo: command not found", "command not found", "foo: command not found"),
    ("zsh", "foo", "(eval):1: command not found: foo", "command not found", "command not found: foo"),
    ("no file", "cp a b", "cp: cannot stat 'a': No such file or directory", "file", "cannot stat"),
    ("sql", "psql -c x", 'ERROR:  relation "users" does not exist\nLINE 1: select', "sql", "does not exist"),
    ("usage", "gh run view 1", 'Unknown JSON field: "actor"\nAvailable fields:', "usage", "Unknown JSON field"),
    ("http", "gh pr view 1", "HTTP 401: Bad credentials (https://api.github.com/graphql)", "HTTP 401", "Bad credentials"),
    ("curl", "curl x", "curl: (7) Failed to connect to localhost port 8080", "curl/7", "Failed to connect"),
    ("make", "make x", "make: *** No rule to make target 'x'.  Stop.", "make", "No rule to make target"),
    ("by words", "./deploy.sh", "==> Checking\nMetadata branch not found\n", "error", "Metadata branch not found"),
    ("unittest", "python -m unittest", "======================================================================\nFAIL: test_adds (tests.test_cart.CartTest.test_adds)\n----------------------------------------------------------------------\nTraceback (most recent call last):\n  File \"/w/tests/test_cart.py\", line 9, in test_adds\n    self.assertEqual(total([1]), 2)\nAssertionError: 1 != 2\n\n----------------------------------------------------------------------\nRan 1 test in 0.001s\n\nFAILED (failures=1)\n", "test failure", "1 != 2"),
    ("pyright", "pyright", '/w/a.py\n  /w/a.py:3:12 - error: "x" is not defined (reportUndefinedVariable)\n1 error, 0 warnings', "pyright/reportUndefinedVariable", "is not defined"),
    ("pylint", "pylint a.py", "************* Module a\na.py:1:0: C0114: Missing module docstring (missing-module-docstring)", "pylint/C0114", "Missing module docstring"),
    ("flake8", "flake8", "a.py:3:80: E501 line too long (93 > 79 characters)", "ruff/E501", "line too long"),
    ("black", "black --check .", "error: cannot format a.py: Cannot parse: 3:8: if x\nOh no!", "error", "cannot format a.py"),
    ("poetry", "poetry install", "Updating dependencies\nResolving dependencies...\n\nBecause shop depends on foo (^2.0) which doesn't match any versions, version solving failed.\n", "dependencies", "version solving failed"),
    ("uv", "uv sync", "  × No solution found when resolving dependencies:\n  ╰─▶ Because foo was not found in the package registry, we can conclude …", "dependencies", "No solution found"),
    ("clippy", "cargo clippy", "error: this expression creates a reference which is immediately dereferenced\n  --> src/main.rs:4:18\n   |\n4  |     total(&items)\n", "rustc", "creates a reference"),
    ("cargo test", "cargo test", "running 1 test\ntest cart::adds ... FAILED\n\nfailures:\n    cart::adds\n\ntest result: FAILED. 0 passed; 1 failed;", "test failure", "FAILED"),
    ("linker", "make", "/usr/bin/ld: main.o: in function `main':\nmain.c:(.text+0x9): undefined reference to `total'\ncollect2: error: ld returned 1 exit status\n", "link", "undefined reference to `total'"),
    ("cmake", "cmake ..", "CMake Error at CMakeLists.txt:3 (find_package):\n  Could not find a package configuration file provided by \"fmt\"\n\n-- Configuring incomplete, errors occurred!", "cmake", "Could not find a package"),
    ("gtest", "./cart_test", "[ RUN      ] Cart.Adds\ncart_test.cc:9: Failure\n[  FAILED  ] Cart.Adds (0 ms)\n", "test failure", "0 ms"),
    ("ctest", "ctest", "The following tests FAILED:\n\t  1 - cart_adds (Failed)\nErrors while running CTest\n", "test failure", "Failed"),
    ("asan", "./a.out", "==123==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010\n    #0 0x4f in main a.c:9", "AddressSanitizer", "heap-use-after-free"),
    ("assert", "./a.out", "a.out: src/cart.c:12: total: Assertion `count > 0' failed.\nAborted (core dumped)", "assertion", "Assertion `count > 0' failed"),
    ("kotlin", "./gradlew build", "e: file:///w/src/Cart.kt:3:5 Unresolved reference: total\nBUILD FAILED in 2s", "compile", "Unresolved reference"),
    ("gradle test", "./gradlew test", "> Task :test FAILED\n\nCartTest > adds() FAILED\n    org.opentest4j.AssertionFailedError: expected: <2> but was: <1>\n        at CartTest.adds(CartTest.java:12)\n", "test failure", "expected: <2> but was: <1>"),
    ("surefire", "mvn test", "[ERROR] Failures: \n[ERROR]   CartTest.adds:12 expected:<2> but was:<1>\n[ERROR] Tests run: 1, Failures: 1", "test failure", "expected:<2>"),
    ("maven", "mvn compile", "[ERROR] /w/src/main/java/Cart.java:[3,5] cannot find symbol\n[ERROR]   symbol: total", "compile", "cannot find symbol"),
    ("sbt", "sbt compile", "[error] /w/src/Cart.scala:3:5: not found: value total\n[error] one error found", "compile", "not found: value total"),
    ("dotnet build", "dotnet build", "/w/Cart.cs(3,5): error CS0103: The name 'total' does not exist in the current context [/w/Shop.csproj]", "CS0103", "does not exist"),
    ("dotnet test", "dotnet test", "  Failed Shop.CartTests.Adds [3 ms]\n  Error Message:\n   Assert.Equal() Failure\n", "test failure", "Assert.Equal() Failure"),
    ("dotnet run", "dotnet run", "Unhandled exception. System.InvalidOperationException: Sequence contains no elements\n", "InvalidOperationException", "no elements"),
    ("swift", "swift build", "/w/Sources/Cart.swift:3:5: error: cannot find 'total' in scope", "compile", "cannot find 'total'"),
    ("rspec", "rspec", "Failed examples:\n\nrspec ./spec/cart_spec.rb:9 # Cart adds items\n", "test failure", "Cart adds items"),
    ("ruby", "ruby a.rb", "a.rb:3:in `total': undefined method `price' for nil:NilClass (NoMethodError)\n\tfrom a.rb:9:in `<main>'", "NoMethodError", "undefined method"),
    ("rubocop", "rubocop", "lib/a.rb:3:81: C: Layout/LineLength: Line is too long. [93/80]", "rubocop/Layout/LineLength", "too long"),
    ("bundler", "bundle install", "Could not find gem 'foo (~> 2.0)' in rubygems repository", "gem", "Could not find gem"),
    ("php", "php a.php", "PHP Fatal error:  Uncaught Error: Call to undefined function total() in /w/a.php:3\nStack trace:\n#0 {main}", "php/Fatal error", "undefined function"),
    ("phpunit", "phpunit", "There was 1 failure:\n\n1) Tests\\CartTest::testAdds\nFailed asserting that 1 matches expected 2.\n", "test failure", "Failed asserting"),
    ("composer", "composer install", "Your requirements could not be resolved to an installable set of packages.\n\n  Problem 1", "composer", "could not be resolved"),
    ("elixir", "mix run", "** (KeyError) key :price not found in: %{}\n    lib/cart.ex:3: Cart.total/1", "KeyError", "key :price not found"),
    ("exunit", "mix test", "  1) test adds items (CartTest)\n     test/cart_test.exs:3\n     Assertion with == failed\n     code:  assert 1 == 2\n", "test failure", "Assertion with == failed"),
    ("shellcheck", "shellcheck -f gcc a.sh", "a.sh:3:6: note: Double quote to prevent globbing and word splitting. [SC2086]", "shellcheck/SC2086", "Double quote"),
    ("shellcheck tty", "shellcheck a.sh", "\nIn a.sh line 3:\nrm $1\n   ^-- SC2086 (info): Double quote to prevent globbing.\n", "shellcheck/SC2086", "Double quote"),
    ("unbound", "bash a.sh", "a.sh: line 3: NAME: unbound variable", "shell", "unbound variable"),
    ("terraform", "terraform plan", "╷\n│ Error: Reference to undeclared resource\n│ \n│   on main.tf line 3:\n", "terraform", "undeclared resource"),
    ("kubectl", "kubectl apply -f x", 'Error from server (NotFound): namespaces "shop" not found', "kubernetes/NotFound", "not found"),
    ("mysql", "mysql < a.sql", "ERROR 1064 (42000) at line 1: You have an error in your SQL syntax", "sql/1064", "SQL syntax"),
    ("sqlite", "sqlite3 a.db < a.sql && echo", "Parse error near line 1: no such table: users", "sql", "no such table"),
    ("psycopg", "python a.py", 'Traceback (most recent call last):\n  File "/w/a.py", line 3, in load\n    cur.execute(q)\npsycopg.errors.UndefinedTable: relation "users" does not exist\nLINE 1: select\n', "UndefinedTable", "does not exist"),
    ("apt", "apt-get install foo", "Reading package lists...\nE: Unable to locate package foo", "apt", "Unable to locate package"),
    ("brew", "brew install foo", 'Error: No available formula with the name "foo".', "error", "No available formula"),
    ("npm script", "npm run buidl", 'npm error Missing script: "buidl"\nnpm error\nnpm error To see a list of scripts, run:', "npm", "Missing script"),
    ("yarn berry", "yarn install", "➤ YN0000: ┌ Resolution step\n➤ YN0001: │ Error: foo@^9: No candidates found", "yarn/YN0001", "No candidates found"),
    ("cargo resolver", "cargo build", "error: no matching package named `foo` found\nlocation searched: crates.io index", "error", "no matching package"),
    ("vitest", "npx vitest run", " FAIL  src/cart.test.ts > cart > adds\nAssertionError: expected 1 to be 2 // Object.is equality\n ❯ src/cart.test.ts:9:17\n", "test failure", "expected 1 to be 2"),
    ("mocha", "npx mocha", "  1 failing\n\n  1) cart\n       adds:\n\n      AssertionError [ERR_ASSERTION]: 1 == 2\n      at Context.<anonymous> (test/cart.js:9:10)\n", "AssertionError", "1 == 2"),
    ("node test", "node --test", "✖ adds (1.2ms)\n  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n  1 !== 2\n      at TestContext.<anonymous> (file:///w/cart.test.js:9:10)\n", "AssertionError", "strictly equal"),
    ("playwright", "npx playwright test", "  1) [chromium] › cart.spec.ts:3:5 › adds items ─────\n\n    Error: Timed out 5000ms waiting for expect(locator).toBeVisible()\n", "test failure", "Timed out"),
    ("vite", "vite build", 'error during build:\n[vite]: Rollup failed to resolve import "foo" from "/w/src/a.ts".\n', "bundle", "Rollup failed to resolve"),
    ("esbuild", "esbuild a.ts", '✘ [ERROR] Could not resolve "foo"\n\n    a.ts:1:17:\n', "bundle", 'Could not resolve "foo"'),
    ("webpack", "webpack", "ERROR in ./src/a.ts 1:0-20\nModule not found: Error: Can't resolve 'foo' in '/w/src'", "bundle", "Can't resolve"),
    ("stale lock", "npm ci", "npm error code EUSAGE\nnpm error\nnpm error `npm ci` can only install packages when your package.json and package-lock.json are in sync.", "npm/EUSAGE", "in sync"),
    ("wrong folder", "go test -run X", "# .\nno Go files in /w/shop\n\nFAIL\t. [setup failed]", "go", "no Go files in"),
    ("go vet", "go vet ./...", "# shop/cart\ncart/cart.go:9:2: fmt.Printf format %d has arg x of wrong type string", "go compile", "wrong type"),
    ("go mod", "go build ./...", "cart/cart.go:4:2: no required module provides package github.com/a/b; to add it:\n\tgo get github.com/a/b", "go compile", "no required module"),
    ("pytest path", "pytest tests/nope.py", "ERROR: file or directory not found: tests/nope.py\n\ncollected 0 items", "usage", "file or directory not found"),
    ("haskell", "cabal build", "src/Cart.hs:3:5: error: [GHC-88464]\n    Variable not in scope: total", "compile", "GHC-88464"),
    ("zig", "zig build", "src/main.zig:3:5: error: use of undeclared identifier 'total'", "compile", "undeclared identifier"),
    ("dart", "dart analyze", "  error • Undefined name 'total' • lib/cart.dart:3:5 • undefined_identifier", "dart/undefined_identifier", "Undefined name"),
    ("lua", "lua a.lua", "lua: a.lua:3: attempt to index a nil value (global 'cart')\nstack traceback:", "lua", "attempt to index"),
    ("perl", "perl a.pl", "Can't locate Foo/Bar.pm in @INC at a.pl line 3.", "perl", "Can't locate"),
    ("R", "Rscript a.R", "Error in total(x) : object 'x' not found\nExecution halted", "R", "object 'x' not found"),
    ("segfault", "./a.out", "Segmentation fault (core dumped)", "process", "Segmentation fault"),
    ("docker build", "docker build .", 'ERROR: failed to solve: process "/bin/sh -c make" did not complete successfully: exit code: 2', "docker", "did not complete"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "command", "output", "type", "message"), SHAPES, ids=[shape[0] for shape in SHAPES])
def test_errors_of_common_tools_are_recognised(name: str, command: str, output: str, type: str, message: str) -> None:
    [error, *others] = errors_in(output, command, failed=True, exit_code=1)
    assert type in error.error_types, others
    assert message in error.message
    assert not others
    assert signature_of(output, command) == [error]
    assert output[error.start : error.end].strip()


SAME = [
    ("another user, line and column", TRACEBACK.format(root="/home/a", line=3), TRACEBACK.format(root="/Users/b/w", line=41)),
    ("another duration", "--- FAIL: TestCart (0.01s)\n    cart_test.go:9: timed out after 3s", "--- FAIL: TestCart (2.13s)\n    cart_test.go:14: timed out after 5s"),
    ("another commit", "fatal: bad object 082c2c4495629bd585a0", "fatal: bad object 5ba11807b4e0ede9a99"),
    ("another port", "Error: listen EADDRINUSE: address already in use :::3000", "Error: listen EADDRINUSE: address already in use :::8080"),
    ("another quoted name", "error: cannot load plugin 'abc'", "error: cannot load plugin 'xyz'"),
    ("another address and version", "Error: bad pointer 0xc000123 in v1.2.3", "Error: bad pointer 0x7fff01 in v2.0.11-rc1"),
    ("colours", "src/a.ts(1,5): error TS2322: Bad type.", "src/b.ts(9,1): \x1b[31merror\x1b[0m TS2322: Bad type."),
    ("another operating system", "Error: cannot open /home/a/x.db", "Error: cannot open C:\\Users\\b\\x.db"),
    ("another place in the output", "FAILED tests/test_a.py::test_b - ValueError: boom", "1 passed\nFAILED tests/test_a.py::test_b - ValueError: boom\n== 1 failed"),
    ("another id and time", "Error: job 7f9c24e8-3b1a-4d7e-9f10-aa11bb22cc33 died at 2026-01-13T12:37:04Z", "Error: job 00000000-3b1a-4d7e-9f10-aa11bb22cc34 died at 2025-12-01T00:00:00Z"),
]  # fmt: skip

DIFFERENT = [
    ("type", "TypeError: bad operand", "ValueError: bad operand"),
    ("message", "error: cannot lock ref", "error: cannot open ref"),
    ("test", "FAILED tests/test_a.py::test_b - ValueError: boom", "FAILED tests/test_a.py::test_c - ValueError: boom"),
    ("linter", "a.go:1:2: bad thing (gosec)", "a.go:1:2: bad thing (revive)"),
    ("compiler code", "src/a.ts(1,5): error TS2322: Bad type.", "src/a.ts(1,5): error TS2345: Bad type."),
    ("status", "HTTP 401: Bad request", "HTTP 404: Bad request"),
    ("identifier", "a.go:1:2: undefined: total", "a.go:1:2: undefined: sum"),
    (
        "own frame",
        TRACEBACK.format(root="/home/a", line=3),
        TRACEBACK.format(root="/home/a", line=3).replace("in load\n    return json", "in save\n    return json"),
    ),
]


def signatures(text: str) -> list[str]:
    return [error.signature for error in signature_of(text)]


@pytest.mark.parametrize(("what", "one", "other"), SAME, ids=[pair[0] for pair in SAME])
def test_the_same_error_in_another_run_has_the_same_signature(what: str, one: str, other: str) -> None:
    assert len(signatures(one)) == 1
    assert signatures(one) == signatures(other)


@pytest.mark.parametrize(("what", "one", "other"), DIFFERENT, ids=[pair[0] for pair in DIFFERENT])
def test_other_errors_have_other_signatures(what: str, one: str, other: str) -> None:
    assert len(signatures(one)) == len(signatures(other)) == 1
    assert signatures(one) != signatures(other)


def test_library_frames_are_no_part_of_a_signature() -> None:
    [error] = signature_of(TRACEBACK.format(root="/home/a", line=3))
    assert error.frames == ("orders.py:load", "main.py:<module>")
    assert error.files == ("/home/a/app/orders.py", "/home/a/app/main.py")


def test_a_chain_of_exceptions_is_one_error_of_both_types() -> None:
    chain = (
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'x'\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "a.py", line 3, in g\napp.MissingColumn: no column x\n'
    )
    [error] = signature_of(chain)
    assert error.error_types == ("MissingColumn", "KeyError")


def test_distinct_errors_of_one_output_are_several_and_at_most_eight() -> None:
    output = "\n".join(f"cart/a{i}.go:{i}:3: undefined: name{'x' * i}" for i in range(1, 30))
    found = errors_in(output, "go build ./...", failed=True)
    assert len({error.signature for error in found}) == len(found) == 8
    repeated = "\n".join(f"cart/a.go:{i}:3: undefined: total" for i in range(30))
    assert len(errors_in(repeated, "go build ./...", failed=True)) == 1


def test_a_failure_further_up_is_told_only_where_nothing_else_is() -> None:
    output = (
        "[lint] ERROR task failed\n\na.go:1:2: Error return value is not checked (errcheck)\nmake: *** [lint] Error 1"
    )
    [error] = errors_in(output, "make lint", failed=True)
    assert error.error_types == ("golangci-lint/errcheck",)
    [error] = errors_in("[lint] ERROR task failed", "mise run lint", failed=True)
    assert error.error_types == ("failed",)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("grep -rn panic .", "a.go:1: panic: oh no\ngoroutine 1"),
        ("cat CHANGELOG.md", "Error: fixed the crash\nTypeError: x"),
        ("git log -5", "fatal: fixed\nerror: no"),
        ("go test ./... | tail -3", "ok  \tshop/cart\t0.02s\nok  \tshop/errors\t0.01s"),
        ("pytest | tail -3", "12 passed, 1 warning in 0.41s (0 errors)"),
        ("npm run build; ls", "warning: 0 errors found\nbuilt in 2s"),
    ],
)
def test_a_quotation_or_a_good_run_shows_no_error(command: str, output: str) -> None:
    assert errors_in(output, command, failed=False) == []


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("go build", "a.go:3:2: undefined: total (typecheck)\n\treturn total(x)\n\t       ^", "return total(x)"),
        (
            "cargo build",
            "error[E0308]: mismatched types\n --> src/a.rs:4:18\n  |\n4 |     let x: u8 = total();\n  |                 ^^^^",
            "let x: u8 = total();",
        ),
        ("make", "a.c:3:5: error: 'x' undeclared\n    3 |     x = 1;\n      |     ^", "x = 1;"),
        ("python a.py", '  File "a.py", line 3\n    if x\n        ^\nSyntaxError: expected', ""),
        ("python a.py", TRACEBACK.format(root="/w", line=3), "return json.load(open(path))"),
        ("npx tsc", "a.ts:3:5 - error TS2304: Cannot find name 'x'.\n\n3     x = 1;\n      ~\n", ""),
    ],
)
def test_the_line_that_a_tool_points_at_is_kept(command: str, output: str, code: str) -> None:
    [error] = errors_in(output, command, failed=True)
    assert error.code == code


def test_a_search_that_found_nothing_is_no_error() -> None:
    assert errors_in("", "grep -rn x .", failed=True, exit_code=1) == []
    assert errors_in("Exit code 1\n---\n---", "git config --get x; echo ---", failed=True, exit_code=1) == []


def test_what_a_person_pastes_finds_the_same_signature() -> None:
    seen = errors_in(TRACEBACK.format(root="/home/a", line=3), "python -m app.main 2>&1", failed=True)
    pasted = signature_of("I get this again:\n\n" + TRACEBACK.format(root="/srv", line=9) + "\nany idea?")
    assert [error.signature for error in pasted] == [error.signature for error in seen]
    assert signature_of("") == signature_of("  \n") == []


@pytest.mark.parametrize(
    "text",
    [
        "The user doesn't want to proceed with this tool use. The tool use was rejected",
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
        "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>",
        "String to replace not found in file.",
        "The user rejected permission to use this specific tool call with the following feedback: use pnpm",
        "Error: The user dismissed this question",
        "Error: Could not find oldString in the file. It must match exactly, including whitespace.",
        "Your edit was not applied (file not modified): Text 'a' not found in displayed lines.",
        "claude-x[1m] is temporarily unavailable, so auto mode cannot determine the safety of Bash right now.",
    ],
)
def test_refusals_and_mishandled_tools_are_noise(text: str) -> None:
    assert is_noise(text)
    assert not is_noise(f"Exit code 1\n{text}")


def test_templates_keep_what_tells_an_error_apart() -> None:
    assert template_of("cannot open /a/b.py:12: it's gone") == "cannot open <path>: it's gone"
    assert template_of("E0308 in src/a.rs at 10.0.0.1:80 after 3.2 s") == "e0308 in <path> at <host> after <n>"
    assert template_of("don't use C++ and read/write") == "don't use c++ and read/write"


def test_a_long_or_hostile_output_is_read_in_time() -> None:
    import time

    outputs = ["\n" * 16_000, "a" * 16_000, "error: " * 2_300, "at " * 5_000, "(" * 16_000, "'" * 16_000, "x:1:" * 4_000,
               "Traceback (most recent call last):\n" * 440, "--- FAIL: T (1s)\n" * 900,
               f"--- FAIL: T (1s)\n{'[' * 15_900}\n--- FAIL: U (1s)\n", "  × x\n━━ ━━\n" * 1_000]  # fmt: skip
    for output in outputs:
        began = time.process_time()
        errors_in(output, "make", failed=True, exit_code=2)
        assert time.process_time() - began < 2, output[:40]


LOG = "    hooks.go:15: Hook output: 2026/01/13 12:37:08 INFO stop session=s1 error=false"


def test_a_log_of_a_go_test_is_not_taken_for_its_verdict() -> None:
    told = f"--- FAIL: TestCart (0.00s)\n    cart_test.go:9: got 3, want 4\n{LOG}\nFAIL\tshop\t0.1s"
    [error] = errors_in(told, "go test ./...", failed=True, exit_code=1)
    assert error.message == "got 3, want 4"
    for cut in (LOG, f"    cart_test.go:7: First list:\n        a\n\n... [752 characters truncated] ...\n\n{LOG}"):
        [error] = errors_in(f"--- FAIL: TestCart (0.00s)\n{cut}\nFAIL\tshop\t0.1s", "go test", failed=True, exit_code=1)
        assert error.message == "TestCart failed"
    hour = "--- FAIL: TestCart (0.00s)\n    cart_test.go:9: got 12:00:00 in INFO, want 13:00:00\nFAIL\tshop\t0.1s"
    [error] = errors_in(hour, "go test ./...", failed=True, exit_code=1)
    assert error.message == "got 12:00:00 in INFO, want 13:00:00"
    plain = "--- FAIL: TestCart (0.00s)\n    cart_test.go:9: 3 != 4, sadly, in all of the baskets\nFAIL\tshop\t0.1s"
    [error] = errors_in(plain, "go test ./...", failed=True, exit_code=1)
    assert error.message == "3 != 4, sadly, in all of the baskets"


def test_a_refused_option_is_another_for_each_option_and_subcommand() -> None:
    def signature(option: str, command: str) -> str:
        return errors_in(f"error: unknown option '{option}'", command, failed=True)[0].signature

    assert signature("--a", "git gc --a") == signature("--a", "git gc --a -q")
    assert len({signature("--a", "git gc --a"), signature("--b", "git gc --b"), signature("--a", "git log --a")}) == 3


def test_an_operand_of_a_compilers_message_does_not_set_errors_apart() -> None:
    def signature(operand: str) -> str:
        output = f"a.go:3:2: cannot use {operand} (value of type T) as string value in struct literal"
        return errors_in(output, "go build", failed=True)[0].signature

    assert signature("label(cp)") == signature("env.Run(x, y)[0]") == signature("total")
    undefined = (errors_in(f"a.go:3:2: undefined: {name}", "go build", failed=True) for name in ("total", "price"))
    assert len({error.signature for [error] in undefined}) == 2, "a name alone is what is missing"
