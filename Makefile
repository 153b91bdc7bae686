# Two commands: `make demo` and `make test`. Everything else is a chore.

PREFIX ?= /usr/local
TARGET := $(or $(CARGO_TARGET_DIR),target)
MATRIX ?= target/matrix
PACKAGES ?= target/packages
# For example MATRIX_OPTIONS="--kind lossless" for one kind of path.
MATRIX_OPTIONS ?=
CARGO ?= cargo
# Seconds for each target in `make fuzz`.
FUZZ_SECONDS ?= 600
# A value in the environment takes precedence, even an empty one.
FUZZ_TARGETS ?= $(basename $(notdir $(wildcard fuzz/seeds/*)))
# Tests and the demo need root for TUN devices and namespaces; cargo itself does not.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
# cargo builds as you; tests/isolated.sh runs the test programs as root.
RUNNER := --config 'target."cfg(unix)".runner = ["$(CURDIR)/tests/isolated.sh"]'
# The test runner; interop/cargo-tool.sh installs it. Many tests wait for timers, so two run for each processor.
NEXTEST := PATH="$(CURDIR)/target/tools/bin:$$PATH" $(CARGO) nextest run --locked --workspace --exclude airtcp-benches $(RUNNER) \
  --test-threads $(shell expr 2 \* $$(nproc))
# `make nightly` tries other cases each day; AIRTCP_SEED=20261127 repeats the run of that day.
SEED := $(or $(AIRTCP_SEED),$(shell date +%Y%m%d))

CORE := $(TARGET)/wasm32-unknown-unknown/page/airtcp_playground.wasm
# The build of the programs includes this file if it exists. Without it, `airtcp playground` reports what is missing.
export AIRTCP_PLAYGROUND_CORE = $(shell [ ! -f $(CORE) ] || echo $(abspath $(CORE)))

.PHONY: book demo playground core test check nightly siege pairs matrix examples wasm fuzz fuzz-seeds deny bench install uninstall deb dist packages \
  lint doc fmt clean

## Four scenes on radio links, for real and in virtual time: what each mechanism is worth, and a page with graphs.
demo:
	@sh interop/setup.sh build
	@sh interop/need-root.sh 'make demo'
	@$(CARGO) build --quiet --locked -p airtcp-cli -p airlink
	@$(SUDO) rm -rf target/demo
	@$(SUDO) $(TARGET)/debug/airtcp demo --output target/demo

## The playground: the program with the core in it that runs in a browser, and the page itself.
playground: core
	@sh interop/setup.sh build
	$(CARGO) build --locked -p airtcp-cli
	$(TARGET)/debug/airtcp playground -o target/playground.html

## The core alone: virtual time as WebAssembly. Programs that are built after it have it in them.
core:
	@[ -d "$$(rustc --print target-libdir --target wasm32-unknown-unknown)" ] || rustup target add wasm32-unknown-unknown
	$(CARGO) rustc --locked --profile page --target wasm32-unknown-unknown -p airtcp-playground --lib --crate-type cdylib

## All tests: a fixed sample of the large matrices, the rest whole.
test: core
	@sh interop/setup.sh test
	@sh interop/need-root.sh 'make test'
	@sh interop/cargo-tool.sh cargo-nextest target/tools
	$(CARGO) build --locked --workspace --exclude airtcp-benches --bins --tests
	AIRTCP_PROGRAMS=$(TARGET)/debug $(NEXTEST)
	$(CARGO) test --locked --workspace --exclude airtcp-benches --doc

## The loop while programming: format, clippy and unit tests of the crates that differ from BASE (default HEAD).
check:
	@sh interop/cargo-tool.sh cargo-nextest target/tools
	@PATH="$(CURDIR)/target/tools/bin:$$PATH" CARGO='$(CARGO)' sh tests/changed.sh $(or $(BASE),HEAD)

## Everything in full, optimised: all cases that `test` takes samples of, 10,000 exchanges compared with this machine's kernel, fresh
## ns-2 vectors, the papers' scenarios with as many seeds as ns-2 had, every recorded figure, sweeps on a Slurm of two nodes,
## the matrix of receivers and `make fuzz`. Takes hours. The seed of the day is printed.
nightly: core
	@sh interop/setup.sh test
	@sh interop/setup.sh long
	@sh interop/need-root.sh 'make nightly'
	@sh interop/cargo-tool.sh cargo-nextest target/tools
	@echo "nightly: AIRTCP_SEED=$(SEED) repeats these cases"
	$(CARGO) build --locked --profile long -p airtcp-cli -p airtcp-serve -p airlink
	AIRTCP_TESTS=all AIRTCP_SEED=$(SEED) AIRTCP_PROGRAMS=$(TARGET)/long $(NEXTEST) --cargo-profile long --profile nightly \
	  --run-ignored all --no-fail-fast
	$(MAKE) book
	$(MAKE) packages
	$(MAKE) matrix
	$(MAKE) fuzz

## Attacks on `airtcp-serve`, in namespaces of their own: what docs/reference/security.md promises, and what was seen (a minute or two).
siege:
	@sh interop/setup.sh test
	@sh interop/need-root.sh 'make siege'
	$(CARGO) build --locked -p airtcp-cli -p airtcp-serve -p airlink
	@$(SUDO) rm -f target/siege.txt
	AIRTCP_SIEGE=$(CURDIR)/target/siege.txt AIRTCP_PROGRAMS=$(TARGET)/debug $(CARGO) test --locked \
	  -p airtcp-tests --test kernel $(RUNNER) -- serve::strangers serve::costs serve::faults serve::machine; \
	  status=$$?; printf '\n%-50s  %-54s  %s\n' attack promised seen; cat target/siege.txt; exit $$status

## Compares the senders linux, reno-linux and bbr-linux with the kernel's own senders: thirty pairs on each of eight paths. Takes
## hours; AIRTCP_PAIRS and AIRTCP_PATHS choose fewer.
pairs:
	@sh interop/need-root.sh 'make pairs'
	$(CARGO) build --locked -p airtcp-cli -p airlink
	AIRTCP_PROGRAMS=$(TARGET)/debug $(CARGO) test --locked -p airtcp-tests --test experiments $(RUNNER) -- --ignored --nocapture thirty_pairs

## Transfers to receivers of five stacks over five kinds of path, with one recipe of each family (a few minutes).
matrix:
	@sh interop/setup.sh build
	@sh interop/need-root.sh 'make matrix'
	@sh interop/receivers/setup.sh --ci
	@$(CARGO) build --quiet --locked -p airtcp-cli -p airlink
	$(SUDO) rm -rf $(MATRIX)
	$(SUDO) $(TARGET)/debug/airtcp lab matrix --quick $(MATRIX_OPTIONS) --output $(MATRIX)

## Every example of every crate, each on its own; those that use devices as root.
examples:
	@sh interop/need-root.sh 'make examples'
	$(CARGO) build --locked --workspace --exclude airtcp-benches --examples
	@SUDO='$(SUDO)' sh interop/examples.sh

## The machines build for a target that has no operating system, clock or socket.
wasm:
	@[ -d "$$(rustc --print target-libdir --target wasm32-unknown-unknown)" ] || rustup target add wasm32-unknown-unknown
	CARGO_PROFILE_DEV_OPT_LEVEL=0 $(CARGO) build --locked --target wasm32-unknown-unknown --lib --no-default-features \
	  -p airwire -p airtcp -p airlink -p airtcp-sim

## The fuzz targets as plain programs over their seeds: no fuzzer and no nightly compiler. fuzz/README.md has the fuzzing.
fuzz-seeds:
	@for target in $(FUZZ_TARGETS); do \
	  $(CARGO) run --quiet --locked -p airtcp-fuzz --bin $$target -- fuzz/seeds/$$target || exit 1; \
	done

## Runs every fuzz target for ten minutes (FUZZ_SECONDS=60 for one minute; FUZZ_TARGETS="packets rlc" for these two), starting
## from the inputs that earlier runs saved in fuzz/corpus.
fuzz:
	@CARGO='$(CARGO)' sh fuzz/fuzz.sh $(FUZZ_SECONDS) $(FUZZ_TARGETS)

## Checks the licences, sources and duplicate versions of dependencies (deny.toml).
deny:
	@sh interop/cargo-tool.sh cargo-deny target/tools
	PATH="$(CURDIR)/target/tools/bin:$$PATH" $(CARGO) deny --locked --workspace check bans licenses sources

## Compares whole programs (`airtcp-serve` with nginx and HAProxy), then measures the cost of a segment, of a simulated world
## (compared with ns-2), of a captured packet (compared with tcptrace and tshark), of a packet in airlink and of a PDU. tcptrace
## takes minutes for captures with many connections.
bench: core
	@sh interop/setup.sh bench
	@sh interop/need-root.sh 'make bench'
	$(CARGO) build --release --workspace --locked
	@! command -v go >/dev/null || (cd benches/throughput/gvisor && CGO_ENABLED=0 go build -trimpath -o "$(abspath $(TARGET))/release/gvisor-sender" .)
	$(SUDO) $(TARGET)/release/airtcp-throughput
	$(SUDO) $(TARGET)/release/airtcp-proxies
	sh benches/ns3/build.sh $(TARGET)/ns3
	$(CARGO) bench --locked -p airtcp-benches
	AIRTCP_PROGRAMS=$(TARGET)/release $(CARGO) bench --locked -p airtcp-benches --bench analyze $(RUNNER) -- real 3000 9
	$(CARGO) bench --locked -p airlink --bench chain --bench rlc
	$(CARGO) bench --locked -p airlink --bench forward $(RUNNER)
	$(CARGO) bench --locked -p airlink --bench forward $(RUNNER) -- lateness

## The three programs, their man pages and shell completions, and the plug-in for Wireshark.
install: core
	@sh interop/setup.sh build
	$(CARGO) build --release --locked -p airtcp-cli -p airtcp-serve -p airlink
	DESTDIR=$(DESTDIR) sh packaging/install.sh $(TARGET)/release $(PREFIX)

## A Debian package of the programs, in target/packages.
deb: core
	@sh interop/setup.sh package
	$(CARGO) build --release --locked -p airtcp-cli -p airtcp-serve -p airlink
	sh packaging/deb.sh $(TARGET)/release $(PACKAGES)

## Statically linked programs for any Linux, as an archive with a checksum in target/packages.
dist: core
	@sh interop/setup.sh package
	sh packaging/dist.sh $(PACKAGES)

## Both packages in a fresh Debian system without Rust.
packages: deb dist
	@sh interop/need-root.sh 'make packages'
	$(SUDO) sh packaging/check.sh $(PACKAGES)

uninstall:
	for program in airtcp airtcp-serve airlink; do \
	  rm -f $(DESTDIR)$(PREFIX)/bin/$$program \
	    $(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$program \
	    $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_$$program \
	    $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$$program.fish; \
	done
	rm -rf $(DESTDIR)$(PREFIX)/share/airtcp
	rm -f $(DESTDIR)$(PREFIX)/share/man/man1/airtcp*.1 $(DESTDIR)$(PREFIX)/share/man/man1/airlink*.1

## Compiles everything, benches, examples and fuzz targets too.
lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

## The documentation as a book, in target/book. Installs mdBook if it is missing, which takes minutes.
book:
	@PATH="$(CURDIR)/target/tools/bin:$$PATH" command -v mdbook >/dev/null || $(CARGO) install mdbook --version 0.5.4 --locked --root target/tools
	PATH="$(CURDIR)/target/tools/bin:$$PATH" mdbook build

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

fmt:
	$(CARGO) fmt --all

clean:
	$(CARGO) clean
