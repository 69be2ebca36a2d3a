# The chores of the project, each one command. `make` alone lists them.
#   PYTHON   Python whose PyTorch is traced (2.6 to 2.15). Left out: one with PyTorch 2.11 is made under ~/.cache/attntrace.
#   PREFIX   where `make install` puts things
#   JOBS     parallel compilers, default: one a core
.DEFAULT_GOAL := help
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
# Quiet unless V=1.
$(V).SILENT:

help: ## list the targets
	awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	echo "  PYTHON=/path/to/python uses that environment's PyTorch (2.6 to 2.15) and downloads none; PREFIX=... for install"

demo: build ## set up, build, trace the demo's two training runs, print their summaries
	python=$$(tools/setup "$(PYTHON)") && docs/examples/demo.sh "$$python"

check: build ## set up, build, run all tests
	ctest --preset dev

build: ## set up and build; runs in place as build/attntrace
	python=$$(tools/setup "$(PYTHON)") && tools/build "$$python" $(JOBS)

agent: ## add the agent for another PyTorch to the same build: make agent PYTHON=...
	$(if $(PYTHON),,$(error make agent needs PYTHON=/path/to/python))
	python=$$(tools/setup "$(PYTHON)") && tools/build --agent "$$python" $(JOBS)

check-versions: build ## end-to-end tests on the oldest and the newest PyTorch supported
	tools/check-versions $(JOBS)

bench: build ## measure what tracing costs, traced and untraced in pairs
	python=$$(tools/setup "$(PYTHON)") && tests/bench/run.py --attntrace build/attntrace --python "$$python"

install: ## install what was built: make install PREFIX=...
	tools/install "$(PREFIX)"

docs: build ## write the real output into README.md and docs/ again
	python=$$(tools/setup "$(PYTHON)") && tools/regen-docs "$$python"

format: ## clang-format every C++ source
	git ls-files '*.cc' '*.h' | xargs -r clang-format -i

clean: ## remove the build folders
	rm -rf build build-release build-asan

.PHONY: help demo check build agent check-versions bench install docs format clean
