# Commands for contributors. Each target first installs what it needs into .venv, and again only when a lock file has
# changed. Any POSIX make and sh work.
#
#   make PYTHON=/path/to/python3.12 TARGET     create .venv with that interpreter
#   make test ARGS='-k chart -x'               pass arguments to pytest (or to the benchmarks)

VENV = .venv
PY = $(VENV)/bin/python
CHAT = runtimes/chat/.venv
ARGS =
ENGINE = tests/cluster/test_scaling.py tests/cluster/test_vllm.py tests/cluster/test_vllm_groups.py tests/cluster/test_vllm_load.py \
	tests/cluster/test_training.py

UV = $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --custom-compile-command 'make lock' $(ARGS)

.PHONY: help demo test test-chat test-cluster test-engine cluster-tools cluster-up cluster-down bench bench-chat bench-cluster bench-serving lint format docs coverage mutants lock clean

help: ## List the targets
	@echo "usage: make TARGET"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.base ## Render the demo repository and show where to look
	@cd examples/demo && ../../$(VENV)/bin/kaigen -v render
	@$(PY) -m tools.tour

test: $(VENV)/.dev ## Run the tests, except those that need a cluster
	$(PY) -m pytest -n auto $(ARGS)

test-chat: $(CHAT)/.done ## Run the chat server's tests, which need PyTorch (5 GB, installed once)
	$(CHAT)/bin/python -m pytest runtimes/chat/tests/served $(ARGS)

test-cluster: cluster-tools ## Run the tests on a real control plane, built from Go modules
	$(PY) -m pytest tests/cluster $(ENGINE:%=--ignore=%) -n 2 --dist loadfile $(ARGS)

test-engine: cluster-tools ## Run the tests of autoscalers, vLLM and PyTorch on a real node (25 minutes; the first time 10 more)
	@PATH="$$PWD/$(VENV)/bin:$$PATH" $(PY) -m tests.cluster.tools all
	$(PY) -m pytest $(ENGINE) $(ARGS)

cluster-tools: $(VENV)/.dev ## Build the control plane's programs, once
	@sh tools/venv.sh go
	@PATH="$$PWD/$(VENV)/bin:$$PATH" $(PY) -m tests.cluster.tools

cluster-up: cluster-tools ## Start a control plane to try things by hand
	$(PY) -m tests.cluster up $(if $(NODE),--node) $(if $(ARGOCD),--argocd) $(if $(FLUX),--flux)

cluster-down: $(VENV)/.dev ## Stop the control plane
	$(PY) -m tests.cluster down

bench: $(VENV)/.dev ## Compare the speed of kaigen with its peers
	$(PY) -m benchmarks $(ARGS)

bench-chat: $(CHAT)/.bench ## Compare the speed of the chat server with its peers
	$(CHAT)/bin/python -m benchmarks.chat $(ARGS)

bench-cluster: cluster-tools ## Measure the load of 500 apps on a cluster
	$(PY) -m benchmarks.cluster $(ARGS)

bench-serving: cluster-tools ## Ask vLLM for ten minutes while it is rolled out, drained, scaled up and killed
	$(PY) -m benchmarks.serving $(ARGS)

lint: $(VENV)/.dev ## Check style, types and YAML (runs every check, then reports failures)
	@failed=; \
	for check in 'ruff check --quiet' 'ruff format --quiet --check --diff' mypy 'yamllint --strict .'; do \
		echo "$$check"; \
		$(PY) -m $$check || failed="$$failed, $$check"; \
	done; \
	for runtime in runtimes/*/; do \
		echo "mypy $$runtime"; \
		(cd "$$runtime" && MYPYPATH=tests ../../$(PY) -m mypy --config-file ../../pyproject.toml .) || \
			failed="$$failed, mypy $$runtime"; \
	done; \
	if [ -n "$$failed" ]; then echo "failed: $${failed#, }" >&2; exit 1; fi

format: $(VENV)/.dev ## Auto-fix lint errors and format the code
	$(PY) -m ruff check --fix-only
	$(PY) -m ruff format

docs: $(VENV)/.dev ## Generate schemas/ and the generated pages of docs/
	$(PY) -m tools.docs

coverage: $(VENV)/.dev ## Run the tests and list the lines they do not cover
	$(PY) -m coverage erase
	$(PY) -m coverage run -m pytest $(ARGS)
	@$(PY) -m coverage combine --quiet
	@$(PY) -m coverage report

mutants: $(VENV)/.mutants ## Change the code in small ways and report the changes no test notices (ARGS='--sample 300 --seed 1')
	$(PY) -m tools.mutants $(ARGS)

lock: $(VENV)/.lock ## Resolve requirements/*.txt again (ARGS=--upgrade for the newest versions)
	@$(UV) -o requirements/base.txt pyproject.toml
	@$(UV) -o requirements/dev.txt pyproject.toml requirements/dev.in
	@$(UV) -o requirements/build.txt requirements/build.in
	@$(UV) -o requirements/helm.txt --no-deps requirements/helm.in
	@$(UV) -o requirements/go.txt requirements/go.in
	@$(UV) -o requirements/lock.txt requirements/lock.in
	@$(UV) -o requirements/mutants.txt requirements/mutants.in
	@$(VENV)/bin/uv pip compile --quiet --python-version 3.13 --python-platform x86_64-manylinux_2_28 --generate-hashes \
		--custom-compile-command 'make lock' $(ARGS) --override tests/cluster/vllm/overrides.txt \
		-o tests/cluster/vllm/requirements.txt tests/cluster/vllm/requirements.in
	@for each in runtimes/*/requirements*.in benchmarks/peers/*.in; do $(UV) -o "$${each%.in}.txt" "$$each" || exit 1; done

clean: ## Remove both virtual environments and every cache
	rm -rf $(VENV) $(CHAT) .mypy_cache runtimes/*/.mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .coverage.* dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.base: tools/venv.sh pyproject.toml requirements/base.txt requirements/build.txt
	@sh tools/venv.sh base

$(VENV)/.dev: tools/venv.sh pyproject.toml requirements/dev.txt requirements/build.txt requirements/helm.txt
	@sh tools/venv.sh dev

$(VENV)/.lock: tools/venv.sh requirements/lock.txt
	@sh tools/venv.sh lock

$(VENV)/.mutants: $(VENV)/.dev requirements/mutants.txt
	@sh tools/venv.sh mutants

$(CHAT)/.done: tools/venv.sh runtimes/chat/requirements.txt runtimes/chat/requirements-test.txt
	@sh tools/venv.sh chat

$(CHAT)/.bench: $(CHAT)/.done runtimes/chat/requirements-bench.txt
	@sh tools/venv.sh bench-chat
