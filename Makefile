# One command for each thing a person does. `make demo` and `make test`, in either order, install what is missing.
.PHONY: help demo demo-kernel test lint format bench docs fidelity fuzz clean setup setup-develop
.DEFAULT_GOAL := help
SHELL := /bin/bash
UV = $$(command -v uv || echo .tools/bin/uv)
RUN = .venv/bin
# Real delivery traces to test with, where there are some: a directory of files in mahimahi's format.
export TCPLAB_TRACES ?= $(abspath $(wildcard ../shared/traces))

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup:
	@scripts/setup demo
	@$(UV) sync --locked

setup-develop:
	@scripts/setup develop
	@$(UV) sync --locked

demo: setup ## compare Reno, CUBIC and BBR on a 10 Mbit/s path with a shallow buffer
	@$(RUN)/tcplab run scenarios/four-controls.yaml

demo-kernel: setup ## the same in the simulator and on this machine's kernel, overlaid in one report
	@scripts/demo-kernel

# The kernel's tests run alone: what shares the machine with them would be measured too.
KERNEL_TESTS = tests/kernel python/tcplab/testbed

test: setup-develop ## every test
	cargo test --workspace --locked
	cc/check-bpf.sh
	$(RUN)/pytest -n auto $(KERNEL_TESTS:%=--ignore=%)
	$(RUN)/pytest -rs $(KERNEL_TESTS)

lint: setup-develop ## formatting, warnings, types, licences, purity of the core, controls for BPF
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo build --locked --target wasm32-unknown-unknown -p tcplab-units -p tcplab-control -p tcplab-tcp -p tcplab-link -p tcplab-sim
	cargo deny --log-level error check licenses bans sources
	$(RUN)/ruff check
	$(RUN)/ruff format --check
	$(RUN)/mypy

format: ## put the sources in the form `make lint` asks for
	cargo fmt --all
	$(RUN)/ruff check --fix
	$(RUN)/ruff format

bench: setup-develop ## how fast it is, measured now on this machine
	cargo run --release --locked --quiet -p tcplab-sim --example bench

docs: setup ## the figures and generated tables in docs/, made by the tool itself
	@rm -rf runs/docs
	$(RUN)/tcplab run scenarios/four-controls.yaml --out runs/docs --no-report
	$(RUN)/tcplab report runs/docs --figures runs/docs/figures --format svg
	@mkdir -p docs/images
	cp runs/docs/figures/timeseries.svg docs/images/four-controls.svg
	$(RUN)/python -m tcplab.results.reference docs/results.md

fidelity: setup ## simulator, kernel and theory against each other, into docs/fidelity.md (7 minutes, idle machine)
	$(RUN)/python scripts/fidelity.py

fuzz: setup-develop ## the scenario loader and the trace reader, 60 s each
	$(RUN)/python tests/fuzz/fuzz_scenario.py --seconds 60
	$(RUN)/python tests/fuzz/fuzz_trace.py --seconds 60

clean: ## forget everything built
	rm -rf target .venv .tools
