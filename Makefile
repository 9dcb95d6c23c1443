# `make help` lists the targets. Every target does its own set-up.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name 'Cargo.toml') Cargo.toml Cargo.lock
export CARGO_TERM_PROGRESS_WHEN ?= auto
export OMP_NUM_THREADS ?= 1
export NO_MKDOCS_2_WARNING := 1

.PHONY: verifier help demo test test-slow test-lowest test-faults lint format bench bench-long docs wheel wheels lock setup engine engine-for-tests \
	object-storage object-storage-for-tests \
	prerequisites clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

prerequisites:
	@command -v $(PYTHON) >/dev/null || { echo "anofel needs Python 3.11 or newer ('$(PYTHON)' was not found)."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "anofel needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V)."; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "anofel needs Python's venv module (Debian: apt-get install python3-venv)."; exit 1; }
	@command -v cargo >/dev/null || { echo "anofel needs Rust 1.90 or newer ('cargo' was not found)."; exit 1; }
	@command -v cc >/dev/null || { echo "anofel needs a C compiler ('cc' was not found)."; exit 1; }

# The stamps make a second run free: packages when the pinned versions change, the
# extension module when Rust changes.
$(BIN)/.packages: requirements/dev.txt
	@echo "Setting up Python packages in $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --no-input --require-hashes --progress-bar off -r requirements/dev.txt
	@touch $@

# 2.7 GB to fetch, so only for the targets that train networks; --no-deps, since torch.txt leaves some out.
$(BIN)/.torch: $(BIN)/.packages requirements/torch.txt
	@echo "Setting up PyTorch (2.7 GB) ..."
	$(BIN)/python -m pip install --disable-pip-version-check --no-input --require-hashes --no-deps --progress-bar off -r requirements/torch.txt
	@touch $@

# What makes wheels for other machines, and resolves dependencies: zig alone is 100 MB.
$(BIN)/.release: $(BIN)/.packages requirements/release.txt
	$(BIN)/python -m pip install --disable-pip-version-check --no-input --require-hashes --progress-bar off -r requirements/release.txt
	@touch $@

$(BIN)/.extension: $(BIN)/.packages $(RUST_SOURCES) pyproject.toml
	@echo "Building the Rust core (the first time takes a few minutes) ..."
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --locked
	@touch $@

setup: prerequisites $(BIN)/.extension ## set up the development environment

# Only boards of several validators need it, and Go; the version is pinned in anofel.node.replicated.engine.
GO ?= go
engine: ## build CometBFT, for boards of several validators
	@command -v $(GO) >/dev/null || { echo "CometBFT is built with Go ('$(GO)' was not found)."; exit 2; }
	GOBIN=$(abspath .engine) GOFLAGS=-mod=mod CGO_ENABLED=0 $(GO) install -trimpath -ldflags='-s -w' github.com/cometbft/cometbft/cmd/cometbft@v0.38.26

# Without Go the tests of boards of several validators are skipped, each by its name.
engine-for-tests:
	@test -x .engine/cometbft || if command -v $(GO) >/dev/null; then $(MAKE) --no-print-directory engine; \
	else echo "Go ('$(GO)') was not found, so CometBFT is not built and tests with real engines are skipped."; fi

# A real S3 server, for the tests of blobs in object storage alone.
object-storage: ## build versitygw, the S3 server of the tests
	@command -v $(GO) >/dev/null || { echo "versitygw is built with Go ('$(GO)' was not found)."; exit 2; }
	GOBIN=$(abspath .engine) GOFLAGS=-mod=mod CGO_ENABLED=0 $(GO) install -trimpath -ldflags='-s -w' github.com/versity/versitygw/cmd/versitygw@v1.8.0

object-storage-for-tests:
	@test -x .engine/versitygw || if command -v $(GO) >/dev/null; then $(MAKE) --no-print-directory object-storage; \
	else echo "Go ('$(GO)') was not found, so versitygw is not built and tests with an S3 server are skipped."; fi

# The page that checks a board in a browser. Its tool is pinned beside the crate (crates/anofel-wasm/Cargo.toml).
WASM_TARGET := wasm32-unknown-unknown
VERIFIER_TOOLS := $(abspath .verifier-tools)
WASM_BINDGEN := 0.2.130
$(VERIFIER_TOOLS)/bin/wasm-bindgen:
	cargo install wasm-bindgen-cli --version $(WASM_BINDGEN) --root $(VERIFIER_TOOLS)

verifier: prerequisites $(VERIFIER_TOOLS)/bin/wasm-bindgen ## build the verifier page into dist/verifier/
	@rustc --print target-libdir --target $(WASM_TARGET) | xargs test -d || { echo "Rust has no $(WASM_TARGET) yet (rustup target add $(WASM_TARGET))."; exit 1; }
	RUSTFLAGS="--remap-path-prefix=$(CURDIR)=. --remap-path-prefix=$${CARGO_HOME:-$$HOME/.cargo}=cargo" \
		cargo build --profile wasm --locked -p anofel-wasm --target $(WASM_TARGET)
	$(VERIFIER_TOOLS)/bin/wasm-bindgen --target no-modules --no-typescript --remove-producers-section \
		--out-dir target/verifier --out-name anofel target/$(WASM_TARGET)/wasm/anofel_wasm.wasm
	$(PYTHON) tools/verifier.py target/verifier/anofel_bg.wasm target/verifier/anofel.js dist/verifier

demo: setup ## set up and run the demo: every role a process, two real studies
	$(BIN)/anofel demo

# The whole workspace, also the bridge that has no Rust tests: cargo then chooses the same
# features as for the package and compiles no dependency twice.
test: setup engine-for-tests object-storage-for-tests $(BIN)/.torch ## set up and run every default test
	cargo test --release --locked --workspace
	$(BIN)/python -m pytest -n 2

test-slow: setup engine-for-tests object-storage-for-tests $(BIN)/.torch ## the tests that take minutes
	cargo test --release --locked --workspace -- --ignored
	$(BIN)/python -m pytest -m slow

test-lowest: setup $(BIN)/.release ## tests with the lowest versions that pyproject.toml allows, and beside flwr
	$(BIN)/python -m pytest -m slow tests/packaging

test-faults: setup engine-for-tests ## the fuzz and fault campaigns against real nodes, with tables
	$(BIN)/python -m tests.faults.campaign
	$(BIN)/python -m tests.faults.replicated

lint: setup $(BIN)/.torch ## format check, lints, types, import direction, links of the documentation
	cargo fmt --all --check
	cargo clippy --release --locked --workspace --all-targets -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest anofel._core --allowlist tests/stubtest-allowlist.txt
	$(BIN)/lint-imports
	$(BIN)/mkdocs build --strict --quiet --site-dir .cache/site

format: setup ## format both languages
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup ## the benchmarks that take minutes
	$(BIN)/python bench/proofs.py
	$(BIN)/python bench/privacy.py
	$(BIN)/python bench/encryption.py --quick
	$(BIN)/python bench/board.py --posts 64
	$(BIN)/python bench/growth.py --quick
	$(BIN)/python bench/protocol.py --quick
	$(BIN)/python bench/baselines.py --quick
	$(BIN)/python bench/scale.py --quick

bench-long: setup $(BIN)/.torch ## the benchmarks that take longer
	$(BIN)/python bench/encryption.py
	$(BIN)/python bench/board.py
	$(BIN)/python bench/growth.py
	$(BIN)/python bench/protocol.py --processes
	$(BIN)/python bench/baselines.py
	$(BIN)/python bench/scale.py
	$(BIN)/python bench/attacks.py && $(BIN)/python bench/attacks.py page
	for name in mnist-iid mnist-noniid fashion-iid fashion-noniid cifar-resnet20 cifar-squeezenet support2 nwtco; do \
		$(BIN)/python bench/learning.py $$name || failed=1; done; \
	$(BIN)/python bench/learning.py page && exit $${failed:-0}

docs: setup ## build the documentation into site/ and target/doc/
	$(BIN)/mkdocs build --strict --quiet
	RUSTDOCFLAGS='-D warnings' cargo doc --release --locked --no-deps --workspace --exclude anofel-py

wheel: setup ## build a wheel into dist/
	$(BIN)/maturin build --release --locked --out dist

wheels: setup $(BIN)/.release ## wheels for Linux (x86_64, aarch64, musl) and an sdist in dist/, checked; needs rustup
	PATH="$(abspath $(BIN)):$$PATH" nice -n 10 $(BIN)/python tools/wheels.py dist

lock: ## resolve requirements/*.in again into pinned versions with hashes
	@command -v uv >/dev/null || { echo "make lock needs uv."; exit 1; }
	uv pip compile requirements/dev.in --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --upgrade -o requirements/dev.txt
	uv pip compile requirements/torch.in --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-package triton --no-emit-package cuda-bindings --upgrade -o requirements/torch.txt
	uv pip compile requirements/release.in --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --upgrade -o requirements/release.txt

clean: ## remove everything built
	rm -rf $(VENV) target dist site .cache
