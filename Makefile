# One command for each thing a person does. `make demo` and `make test`, in either order, install what is missing.
.PHONY: help demo ui test test-rust test-controls test-page test-python test-alone test-under-load lint format bench docs fidelity fuzz clean setup setup-develop tools lint-rust lint-python
.DEFAULT_GOAL := help
SHELL := /bin/bash
UV = $$(command -v uv || echo .tools/bin/uv)
RUN = .venv/bin
# With byte code, so that no command is slow the first time.
SYNC = $(UV) sync --locked --compile-bytecode && $(RUN)/python -m compileall -q python/tcplab
# Real delivery traces to test with, where there are some: a directory of files in mahimahi's format.
export TCPLAB_TRACES ?= $(abspath $(wildcard ../shared/traces))

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup:
	@scripts/setup demo
	@$(SYNC)

tools:
	@scripts/setup develop

# With the agent for remote hosts, which tests send to hosts of their own.
setup-develop: tools
	@scripts/agent
	@$(SYNC)

demo: setup ## compare Reno, CUBIC and two BBRs, simulated and on this machine's kernel, in one report
	@scripts/demo

# The page is built again when its sources are newer.
PAGE = python/tcplab/server/page/index.html
WEB = $(shell find web/src web/index.html web/package-lock.json web/vite.config.ts web/tsconfig.json -type f)

ui: $(PAGE) ## the page of `tcplab ui`, into the Python package

$(PAGE): $(WEB)
	@scripts/setup ui
	cd web && npm ci --no-fund --no-audit --loglevel=error && npm run --silent build

KERNEL_TESTS = tests/kernel tests/witness python/tcplab/testbed

# Rust's tests of the kernel mostly wait, beside those in Python.
test: setup-develop ui ## every test
	@$(MAKE) --keep-going --jobs=2 test-rust test-controls test-page test-python; \
	others=$$?; $(MAKE) test-alone && exit $$others

# The same cases each time; `make fuzz` tries others, and many.
# Without make's variables: rustdoc warns that its job server cannot be reached.
test-rust: setup-develop
	env --unset=MAKEFLAGS --unset=MFLAGS PROPTEST_RNG_SEED=1 cargo test --workspace --locked --no-fail-fast

test-controls: setup-develop
	cc/check-bpf.sh

test-page: ui
	cd web && npm test --silent

# Many of the kernel's and of remote hosts' tests wait: two workers more. With three, some of them have too little of a CPU.
test-python: setup-develop ui
	$(RUN)/pytest -n $$(($$(nproc) + 2)) --dist loadgroup --durations=25 --hypothesis-seed=1 -m 'not alone'

# What compares times of the running kernel: a few at a time, which mostly wait.
# Nothing else runs, not even at idle priority.
test-alone: setup-develop
	$(RUN)/pytest -n 3 --dist loadgroup -rs --durations=15 -m alone tests/kernel tests/remote

test-under-load: setup-develop ## the kernel's tests beside busy loops, then with 40 % of a CPU
	scripts/test-under-load busy $(KERNEL_TESTS)
	scripts/test-under-load limited $(KERNEL_TESTS)

# Text that people read.
SPELLED = *.md docs python scenarios scripts studies tests cc crates

lint: lint-rust lint-python ## formatting, warnings, types, dependencies, licences, purity of the core, controls for BPF

CLIPPY = cargo clippy --workspace --all-targets --locked -- -D warnings

lint-rust: tools
	cargo fmt --all --check
	$(CLIPPY)
	cargo check --locked --target wasm32-unknown-unknown -p tcplab-units -p tcplab-plan -p tcplab-control -p tcplab-tcp -p tcplab-link -p tcplab-sim -p tcplab-scenario

lint-python: setup-develop
	$(RUN)/ruff check
	$(RUN)/ruff format --check
	$(RUN)/mypy
	$(RUN)/lint-imports --no-cache
	$(RUN)/codespell $(SPELLED)
	$(RUN)/python scripts/prose.py
	$(RUN)/python scripts/crates.py

format: ## put the sources in the form `make lint` asks for
	cargo fmt --all
	$(RUN)/ruff check --fix
	$(RUN)/ruff format

bench: setup-develop ui ## how fast it is, measured now on this machine
	$(RUN)/python scripts/startup_times.py
	$(RUN)/python scripts/page_figures.py
	$(RUN)/python -m tests.kernel.accelerator_rate
	$(RUN)/python -m tests.remote.rates
	cargo run --release --locked --quiet -p tcplab-sim --example bench
	cargo run --release --locked --quiet -p tcplab-pcap --example captures
	cargo bench --locked --quiet -p tcplab-agent --bench emulated --bench sampling --bench bulk_vs_iperf3 --bench echo_overhead

docs: setup-develop ui ## the figures and generated tables in docs/, made by the tool itself
	@rm -rf runs/docs runs/docs-echo
	$(RUN)/tcplab run scenarios/four-controls.yaml --output runs/docs --no-report
	$(RUN)/tcplab report runs/docs --figures runs/docs/figures --format svg
	@mkdir -p docs/images
	cp runs/docs/figures/timeseries.svg docs/images/four-controls.svg
	$(RUN)/tcplab run scenarios/echo-clients.yaml --output runs/docs-echo --no-report
	$(RUN)/tcplab report runs/docs-echo --figures runs/docs-echo/figures --format svg
	cp runs/docs-echo/figures/echo-by-size.svg docs/images/echo-by-size.svg
	$(RUN)/python scripts/page_pictures.py
	$(RUN)/python -m tcplab.results.reference docs/results.md
	$(RUN)/python -m tcplab.study.reference docs/studies.md

fidelity: setup ## simulator, kernel and theory against each other, into docs/fidelity.md (an hour and a quarter, idle machine)
	$(RUN)/python scripts/fidelity.py

fuzz: setup-develop ## properties of all crates with new cases; the scenario loader and the trace reader, 60 s each; `tcplab serve` and capture files, 5 min a target
	PROPTEST_CASES=3000 PROPTEST_MAX_GLOBAL_REJECTS=100000 cargo test --release --workspace --locked --no-fail-fast --lib
	$(RUN)/python tests/fuzz/fuzz_scenario.py --seconds 60
	$(RUN)/python tests/fuzz/fuzz_trace.py --seconds 60
	$(RUN)/python tests/fuzz/fuzz_serve.py --seconds 300
	cargo run --locked --quiet -p tcplab-pcap --example fuzz -- --seconds 2400

clean: ## forget everything built
	rm -rf target .venv .tools
