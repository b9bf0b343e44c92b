# Needs python3 (3.11 or newer) with its venv module, and make. Debian: apt-get install make python3-venv
PYTHON ?= python3
BIN := .venv/bin
# More arguments for the tool behind a target, such as: make test ARGS="-k dequeue --engine postgres18"
ARGS ?=
# Everything that tests and tools may need. A step for which this machine lacks something says so once.
ALL := $(addprefix .venv/.stamp-,dev tsql plsql npm mariadb mysql odbc)

# Without the bytecode of the last run, each worker of pytest compiles all tests anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
# Two of pip at a time would spoil .venv.
.NOTPARALLEL:
.PHONY: help install demo check test test-all lint format generate verify docs dist release next bench clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

install: $(ALL) ## Set up .venv with everything (the other targets set up what they need)

demo: .venv/.stamp ## Run 69,659 real orders through a private PostgreSQL and check the sums
	@$(BIN)/rowq demo $(ARGS)

check: .venv/.stamp-test ## Run the static, contract and client tests on one PostgreSQL, in two minutes
	@$(BIN)/python -m pytest --numprocesses auto --selection check $(ARGS)

test: .venv/.stamp-test .venv/.stamp-mariadb ## Run the tests on the newest PostgreSQL and MariaDB but for the slow ones, in five minutes
	@$(BIN)/python -m pytest --numprocesses auto $(ARGS)

test-all: $(ALL) ## Run all tests, and on older versions those whose result may differ there
	@$(BIN)/python -m pytest --numprocesses auto --selection all $(ARGS)

# The examples in Python are programs of their own, two of them a package shop. Django has no types.
lint: .venv/.stamp-dev ## Check style, types and who imports what
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

generate: .venv/.stamp-dev ## Write all generated files anew, the benchmarks' page among them
	@$(BIN)/python -m benchmarks.studies.page
	@$(BIN)/python -m sql.generate
	@$(BIN)/python -m sql.postgres.addons.citus build

verify: .venv/.stamp-dev .venv/.stamp-tsql .venv/.stamp-plsql .venv/.stamp-npm ## Check that generated files are fresh and agree with the contract; needs no database
	@$(BIN)/python -m pytest tests/static $(ARGS)

docs: .venv/.stamp-dev ## Make a site of the documentation in build/docs, to be read without a network
	@$(BIN)/python -m docs.build
	@echo "build/docs/index.html"

dist: .venv/.stamp-release ## Build wheel and sdist, and the scripts that rowq sql prints, with their sums, in dist
	@$(BIN)/python -m sql.generate dist

release: .venv/.stamp-dev ## Date the changelog and freeze the newest migration of every engine, if all is as it must be
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

# Each of the steps below fetches one thing that some tests need. Where it cannot be had, those tests
# are skipped and name the reason; the step is not tried again before its stamp is removed.
define fetched
	@echo "Setting up $(1)"
	@if $(2); then touch $@; else echo "  left out; to try again: rm $@" | tee $@; fi
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
