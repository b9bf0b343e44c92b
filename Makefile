# Needs python3 (3.11 or newer) with its venv module, and make. Debian: apt-get install make python3-venv
PYTHON ?= python3
BIN := .venv/bin
# More arguments for the tool behind a target, such as: make test ARGS="-k dequeue --engine postgres18"
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all lint format generate verify docs dist release next bench clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

install: .venv/.stamp-dev .venv/.stamp-tsql .venv/.stamp-plsql .venv/.stamp-npm .venv/.stamp-mariadb .venv/.stamp-mysql .venv/.stamp-odbc ## Set up .venv with everything for the tests (the other targets do it by themselves)

demo: .venv/.stamp ## Run 69,659 real orders through a private PostgreSQL and check the sums
	@$(BIN)/rowq demo $(ARGS)

test: .venv/.stamp-dev .venv/.stamp-tsql .venv/.stamp-plsql .venv/.stamp-npm .venv/.stamp-mariadb .venv/.stamp-mysql .venv/.stamp-odbc ## Run the tests that take no longer than minutes, on the newest PostgreSQL and MariaDB
	@$(BIN)/python -m pytest --numprocesses auto $(ARGS)

test-all: .venv/.stamp-dev .venv/.stamp-tsql .venv/.stamp-plsql .venv/.stamp-npm .venv/.stamp-mariadb .venv/.stamp-mysql .venv/.stamp-odbc ## Run them and the long ones (chaos, benchmarks ...), and what may differ on every older version at hand
	@$(BIN)/python -m pytest --numprocesses auto --selection all $(ARGS)

# The examples in Python are programs of their own, two of them a package shop. Django has no types.
lint: .venv/.stamp-dev ## Check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@MYPYPATH=examples/django $(BIN)/mypy --cache-dir .mypy_cache/django \
		--allow-subclassing-any --allow-untyped-decorators examples/django
	@MYPYPATH=examples/fastapi $(BIN)/mypy --cache-dir .mypy_cache/fastapi examples/fastapi

format: .venv/.stamp-dev ## Rewrite the Python files in the project's style
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

generate: .venv/.stamp-dev ## Write all generated files anew, the benchmarks' reports and plots among them
	@$(BIN)/python -m benchmarks.generate
	@$(BIN)/python -m generate
	@$(BIN)/python -m tests.laboratory

verify: .venv/.stamp-dev .venv/.stamp-tsql .venv/.stamp-plsql .venv/.stamp-npm ## Check that generated files are fresh and agree with the contract; needs no database
	@$(BIN)/python -m pytest tests/static $(ARGS)

docs: .venv/.stamp-dev ## Make a site of the documentation in build/docs, to be read without a network
	@$(BIN)/python -m docs.build
	@echo "build/docs/index.html"

dist: .venv/.stamp-release ## Build wheel and sdist, and the scripts that rowq sql prints, with their sums, in dist
	@$(BIN)/python -m generate dist

release: .venv/.stamp-dev ## Date the changelog and freeze the newest migration of every engine, if all is as it must be
	@$(BIN)/python -m generate release

next: .venv/.stamp-dev ## Begin the next version: make next VERSION=0.2.0 NAME=more-settings
	@$(BIN)/python -m generate next "$(VERSION)" $(NAME)

bench: .venv/.stamp-dev .venv/.stamp-bench $(if $(filter peers features,$(ARGS)),.venv/.stamp-peers) ## Measure against other queues and draw the results
	@$(BIN)/python -m benchmarks.run $(if $(QUICK),--quick) \
		$(if $(PGMQ_SQL),--pgmq-sql "$(PGMQ_SQL)") $(if $(NOTE),--note "$(NOTE)") $(ARGS)
	@$(BIN)/python -m generate

clean: ## Remove .venv, caches and built files
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.stamp: EXTRA = demo
.venv/.stamp-dev: EXTRA = dev
.venv/.stamp-release: EXTRA = release
.venv/.stamp-bench: EXTRA = bench
.venv/.stamp-bench-peers: EXTRA = bench-peers
.venv/.stamp .venv/.stamp-dev .venv/.stamp-release .venv/.stamp-bench .venv/.stamp-bench-peers: pyproject.toml
	@echo "Setting up .venv ($(EXTRA))"
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRA)]'
	@touch $@

# The programs that check T-SQL without a server, about 80 MB: without them that check is skipped.
.venv/.stamp-tsql: tests/static/tsql/requirements.txt | .venv/.stamp-dev
	@echo "Setting up the check of T-SQL"
	@if $(BIN)/python -m tests.static.tsql --fetch; then touch $@; fi

# The grammar that checks PL/SQL without a server, about 15 MB: without it that check is skipped.
.venv/.stamp-plsql: tests/static/plsql/package.json | .venv/.stamp-dev
	@echo "Setting up the check of PL/SQL"
	@if command -v npm >/dev/null && $(BIN)/python -m tests.static.plsql --fetch; then touch $@; fi

# Drivers, a compiler and a lint of npm, about 40 MB: without them their tests are skipped.
.venv/.stamp-npm: tests/npm/package.json | .venv/.stamp-dev
	@echo "Setting up packages of npm"
	@if command -v npm >/dev/null && mkdir -p .venv/npm && cp $< .venv/npm/ \
		&& npm install --no-audit --no-fund --loglevel=error --prefix .venv/npm; then touch $@; fi

# MariaDB of Debian 13 on an older Debian, about 20 MB: without it that version is not tested.
.venv/.stamp-mariadb: tests/engines/mysql/debian.py | .venv/.stamp-dev
	@echo "Setting up MariaDB of Debian 13"
	@if $(BIN)/python -m tests.engines.mysql.debian mariadb --fetch; then touch $@; fi

# MySQL of Debian's unstable suite, about 70 MB: without it MySQL is not tested here.
.venv/.stamp-mysql: tests/engines/mysql/debian.py | .venv/.stamp-dev
	@echo "Setting up MySQL of Debian's unstable suite"
	@if $(BIN)/python -m tests.engines.mysql.debian mysql --fetch; then touch $@; fi

# Microsoft's ODBC driver for the tests, about 3 MB: without it only FreeTDS talks to SQL Server.
.venv/.stamp-odbc: tests/engines/sqlserver/odbc.py | .venv/.stamp-dev
	@echo "Setting up Microsoft's ODBC driver"
	@if $(BIN)/python -m tests.engines.sqlserver.odbc --fetch; then touch $@; fi

# The queues of npm that rowq is measured against, about 150 MB: without them they are left out.
.venv/.stamp-peers: benchmarks/peers_node/package.json | .venv/.stamp-bench-peers
	@echo "Setting up the peers"
	@if command -v npm >/dev/null && $(BIN)/python -m benchmarks.studies.peers.node; then touch $@; fi
