# Requires python3 (3.11 or newer) with its venv module, and make. Debian: apt-get install make python3-venv
PYTHON ?= python3
BIN := .venv/bin
# Further arguments of a target's tool, such as: make test ARGS="-k dequeue --engine postgres18"
ARGS ?=
# Everything that tests and tools need. A step that cannot run on this machine reports that once.
ALL := $(addprefix .venv/.stamp-,dev tsql plsql npm mariadb mysql odbc)

# Without cached bytecode, each pytest worker compiles all tests.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
# Concurrent pip processes would corrupt .venv.
.NOTPARALLEL:
.PHONY: help install demo check test test-all lint format generate verify docs dist release next bench clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

install: $(ALL) ## Set up .venv completely (other targets set up their own needs)

demo: .venv/.stamp ## Run 69,659 real orders through a private PostgreSQL and check the sums
	@$(BIN)/rowq demo $(ARGS)

check: .venv/.stamp-test ## Run the static, contract and client tests on one PostgreSQL, in two minutes
	@$(BIN)/python -m pytest --numprocesses auto --selection check $(ARGS)

test: .venv/.stamp-test .venv/.stamp-mariadb ## Run all but the slow tests on the newest PostgreSQL and MariaDB, in five minutes
	@$(BIN)/python -m pytest --numprocesses auto $(ARGS)

test-all: $(ALL) ## Run all tests, and on older versions those that may differ
	@$(BIN)/python -m pytest --numprocesses auto --selection all $(ARGS)

# The Python examples are separate programs, two with a package shop. Django has no types.
lint: .venv/.stamp-dev ## Check style, types and imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-logo --no-cache
	@$(BIN)/mypy
	@MYPYPATH=docs/examples/django $(BIN)/mypy --cache-dir .mypy_cache/django \
		--allow-subclassing-any --allow-untyped-decorators docs/examples/django
	@MYPYPATH=docs/examples/fastapi $(BIN)/mypy --cache-dir .mypy_cache/fastapi docs/examples/fastapi

format: .venv/.stamp-dev ## Rewrite the Python files in the project's style
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

generate: .venv/.stamp-dev ## Regenerate all generated files, including the benchmarks' page
	@$(BIN)/python -m benchmarks.studies.page
	@$(BIN)/python -m sql.generate
	@$(BIN)/python -m sql.postgres.addons.citus build

verify: .venv/.stamp-dev .venv/.stamp-tsql .venv/.stamp-plsql .venv/.stamp-npm ## Check generated files and the contract; needs no database
	@$(BIN)/python -m pytest tests/static $(ARGS)

docs: .venv/.stamp-dev ## Build the documentation site in build/docs, for offline reading
	@$(BIN)/python -m docs.build
	@echo "build/docs/index.html"

dist: .venv/.stamp-release ## Build wheel, sdist and the scripts of rowq sql, with checksums, in dist
	@$(BIN)/python -m sql.generate dist

release: .venv/.stamp-dev ## Check, date the changelog, and freeze each engine's newest migration
	@$(BIN)/python -m sql.generate release

next: .venv/.stamp-dev ## Begin the next version: make next VERSION=0.2.0 NAME=more-settings
	@$(BIN)/python -m sql.generate next "$(VERSION)" $(NAME)

bench: .venv/.stamp-dev .venv/.stamp-bench $(if $(filter peers,$(ARGS)),.venv/.stamp-peers) ## Measure against other queues and write the results
	@$(BIN)/python -m benchmarks.run $(if $(QUICK),--quick) \
		$(if $(PGMQ_SQL),--pgmq-sql "$(PGMQ_SQL)") $(if $(NOTE),--note "$(NOTE)") $(ARGS)
	@$(BIN)/python -m sql.generate

clean: ## Remove .venv, caches and built files
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.stamp: EXTRA = demo
.venv/.stamp-test: EXTRA = test
.venv/.stamp-dev: EXTRA = dev
.venv/.stamp-release: EXTRA = release
.venv/.stamp-bench: EXTRA = bench
.venv/.stamp-bench-peers: EXTRA = bench-peers
.venv/.stamp .venv/.stamp-test .venv/.stamp-dev .venv/.stamp-release .venv/.stamp-bench .venv/.stamp-bench-peers: pyproject.toml
	@echo "Setting up .venv ($(EXTRA))"
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRA)]'
	@touch $@

# Each step below fetches a requirement of some tests. If it is unavailable, those tests are skipped with
# the reason; remove the step's stamp to retry.
define fetched
	@echo "Setting up $(1)"
	@if $(2); then touch $@; else echo "  skipped; to try again: rm $@" | tee $@; fi
endef

.venv/.stamp-tsql: tests/static/tsql/requirements.txt | .venv/.stamp-dev
	$(call fetched,the check of T-SQL (80 MB),$(BIN)/python -m tests.static.tsql --fetch)

.venv/.stamp-plsql: tests/static/plsql/package.json | .venv/.stamp-dev
	$(call fetched,the check of PL/SQL (15 MB),command -v npm >/dev/null && $(BIN)/python -m tests.static.plsql --fetch)

.venv/.stamp-npm: tests/npm/package.json | .venv/.stamp-dev
	$(call fetched,packages of npm (40 MB),command -v npm >/dev/null && mkdir -p .venv/npm && cp $< .venv/npm/ \
		&& npm install --no-audit --no-fund --loglevel=error --prefix .venv/npm)

.venv/.stamp-mariadb: tests/engines/mysql/debian.py | .venv/.stamp-test
	$(call fetched,MariaDB of Debian 13 (20 MB),$(BIN)/python -m tests.engines.mysql.debian mariadb --fetch)

.venv/.stamp-mysql: tests/engines/mysql/debian.py | .venv/.stamp-dev
	$(call fetched,MySQL of Debian's unstable suite (70 MB),$(BIN)/python -m tests.engines.mysql.debian mysql --fetch)

.venv/.stamp-odbc: tests/engines/sqlserver/odbc.py | .venv/.stamp-dev
	$(call fetched,Microsoft's ODBC driver (3 MB),$(BIN)/python -m tests.engines.sqlserver.odbc --fetch)

.venv/.stamp-peers: benchmarks/peers_node/package.json | .venv/.stamp-bench-peers
	$(call fetched,the queues of npm that rowq is measured against (150 MB),command -v npm >/dev/null && $(BIN)/python -m benchmarks.studies.peers.node)
