# The main targets are `demo` and `test`. A line that starts with ## describes the target below it.

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
# Tests and the demo need root for TUN devices and namespaces, and cargo does not.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
# cargo runs as the user, and tests/isolated.sh runs the test programs as root.
RUNNER := --config 'target."cfg(unix)".runner = ["$(CURDIR)/tests/isolated.sh"]'
# The test runner, which interop/cargo-tool.sh installs. Many tests wait for timers, so there are three per processor.
NEXTEST := PATH="$(CURDIR)/target/tools/bin:$$PATH" $(CARGO) nextest run --locked --workspace --exclude airtcp-benches $(RUNNER) \
  --test-threads $(shell expr 3 \* $$(nproc))
# `make nightly` uses the date as seed. AIRTCP_SEED=20261127 repeats the run of that day.
SEED := $(or $(AIRTCP_SEED),$(shell date +%Y%m%d))

CORE := $(TARGET)/wasm32-unknown-unknown/page/airtcp_playground.wasm
# The build of the programs includes this file if it exists. Without it, `airtcp playground` reports what is missing.
export AIRTCP_PLAYGROUND_CORE = $(shell [ ! -f $(CORE) ] || echo $(abspath $(CORE)))

.PHONY: book demo playground core test test-pages check nightly siege pairs matrix examples wasm fuzz fuzz-seeds deny bench install uninstall deb dist packages \
  lint doc fmt clean

## Runs four scenes on radio links, over TUN devices and in virtual time. Shows the gain of each mechanism, and writes a page
## with graphs.
demo:
	@sh interop/setup.sh build
	@sh interop/need-root.sh 'make demo'
	@$(CARGO) build --quiet --locked -p airtcp-cli -p airlink
	@$(SUDO) rm -rf target/demo
	@$(SUDO) $(TARGET)/debug/airtcp demo --output target/demo

## Builds the playground: the program with the WebAssembly core, and the page.
playground: core
	@sh interop/setup.sh build
	$(CARGO) build --locked -p airtcp-cli
	$(TARGET)/debug/airtcp playground -o target/playground.html

## Builds the simulator as WebAssembly. Programs that are built after it contain it.
core:
	@[ -d "$$(rustc --print target-libdir --target wasm32-unknown-unknown)" ] || rustup target add wasm32-unknown-unknown
	$(CARGO) rustc --locked --profile page --target wasm32-unknown-unknown -p airtcp-playground --lib --crate-type cdylib

# An incremental build would write files that only a second build reads.
test test-pages nightly: export CARGO_INCREMENTAL = 0
# Otherwise nextest starts itself again for each test, so that Ctrl-Z cannot stop it between fork and exec. That
# costs 4 ms of processor time per test.
test test-pages nightly: export NEXTEST_DOUBLE_SPAWN = 0

## Runs all tests except those in a browser (`test-pages`) and examples (`examples`), with a fixed sample of the large
## matrices.
test:
	@sh interop/setup.sh test
	@sh interop/need-root.sh 'make test'
	@sh interop/cargo-tool.sh cargo-nextest target/tools
	$(CARGO) build --locked --workspace --exclude airtcp-benches --bins --tests
	AIRTCP_PROGRAMS=$(TARGET)/debug $(NEXTEST) -E 'not binary(pages)'

## Tests the report's page and the playground in a browser. Builds the playground's core, which takes two minutes.
test-pages: core
	@sh interop/setup.sh test
	@sh interop/need-root.sh 'make test-pages'
	@sh interop/cargo-tool.sh cargo-nextest target/tools
	$(CARGO) build --locked --workspace --exclude airtcp-benches --bins --tests
	AIRTCP_PROGRAMS=$(TARGET)/debug $(NEXTEST) -E 'binary(pages)'

## Checks format, clippy and unit tests of the crates that differ from BASE (default HEAD).
check:
	@sh interop/cargo-tool.sh cargo-nextest target/tools
	@PATH="$(CURDIR)/target/tools/bin:$$PATH" CARGO='$(CARGO)' sh tests/changed.sh $(or $(BASE),HEAD)

## Runs all tests in full, optimised: all cases of the matrices, 10,000 exchanges with this machine's kernel, new ns-2 vectors,
## the papers' scenarios with the seeds of ns-2, every recorded figure, sweeps on a Slurm with two nodes, transfers with
## a known cause or congestion control, the matrix of receivers, and `make fuzz`. Takes hours. Prints its seed.
nightly: core
	@sh interop/setup.sh test
	@sh interop/setup.sh long
	@sh interop/need-root.sh 'make nightly'
	@sh interop/cargo-tool.sh cargo-nextest target/tools
	@sh interop/receivers/setup.sh uml-7
	@echo "nightly: AIRTCP_SEED=$(SEED) repeats these cases"
	$(CARGO) build --locked --profile long -p airtcp-cli -p airtcp-serve -p airlink
	AIRTCP_TESTS=all AIRTCP_SEED=$(SEED) AIRTCP_PROGRAMS=$(TARGET)/long $(NEXTEST) --cargo-profile long --profile nightly \
	  --run-ignored all --no-fail-fast
	$(MAKE) book
	$(MAKE) packages
	$(MAKE) matrix
	$(MAKE) fuzz

## Attacks `airtcp-serve` in separate namespaces. Compares the results with the promises in docs/reference/security.md. Takes
## one to two minutes.
siege:
	@sh interop/setup.sh test
	@sh interop/need-root.sh 'make siege'
	$(CARGO) build --locked -p airtcp-cli -p airtcp-serve -p airlink
	@$(SUDO) rm -f target/siege.txt
	AIRTCP_SIEGE=$(CURDIR)/target/siege.txt AIRTCP_PROGRAMS=$(TARGET)/debug $(CARGO) test --locked \
	  -p airtcp-tests --test kernel $(RUNNER) -- serve::strangers serve::costs serve::faults serve::machine; \
	  status=$$?; printf '\n%-50s  %-54s  %s\n' attack promised observed; cat target/siege.txt; exit $$status

## Compares the senders linux, reno-linux and bbr-linux with the kernel's senders: thirty pairs on each of eight paths. Takes
## hours. AIRTCP_PAIRS and AIRTCP_PATHS select fewer pairs and paths.
pairs:
	@sh interop/need-root.sh 'make pairs'
	$(CARGO) build --locked -p airtcp-cli -p airlink
	AIRTCP_PROGRAMS=$(TARGET)/debug $(CARGO) test --locked -p airtcp-tests --test experiments $(RUNNER) -- --ignored --nocapture thirty_pairs

## Transfers data to receivers of five stacks over five kinds of path, with one recipe of each family. Takes a few minutes.
matrix:
	@sh interop/setup.sh build
	@sh interop/need-root.sh 'make matrix'
	@sh interop/receivers/setup.sh --ci
	@$(CARGO) build --quiet --locked -p airtcp-cli -p airlink
	$(SUDO) rm -rf $(MATRIX)
	$(SUDO) $(TARGET)/debug/airtcp lab matrix --quick $(MATRIX_OPTIONS) --output $(MATRIX)

## Runs every example of every crate, also those in the documentation of functions. Examples that use devices run as root.
examples:
	@sh interop/need-root.sh 'make examples'
	$(CARGO) build --locked --workspace --exclude airtcp-benches --examples
	@SUDO='$(SUDO)' sh interop/examples.sh
	$(CARGO) test --locked --workspace --exclude airtcp-benches --doc

## Builds the protocol machines for a target without operating system, clock and sockets.
wasm:
	@[ -d "$$(rustc --print target-libdir --target wasm32-unknown-unknown)" ] || rustup target add wasm32-unknown-unknown
	CARGO_PROFILE_DEV_OPT_LEVEL=0 $(CARGO) build --locked --target wasm32-unknown-unknown --lib --no-default-features \
	  -p airwire -p airtcp -p airlink -p airtcp-sim

## Runs the fuzz targets over their seeds as ordinary programs, without a fuzzer. fuzz/README.md describes fuzzing.
fuzz-seeds:
	@for target in $(FUZZ_TARGETS); do \
	  $(CARGO) run --quiet --locked -p airtcp-fuzz --bin $$target -- fuzz/seeds/$$target || exit 1; \
	done

## Runs every fuzz target for ten minutes, starting from the inputs that earlier runs saved in fuzz/corpus. FUZZ_SECONDS=60
## sets another time, and FUZZ_TARGETS="packets rlc" selects targets.
fuzz:
	@CARGO='$(CARGO)' sh fuzz/fuzz.sh $(FUZZ_SECONDS) $(FUZZ_TARGETS)

## Checks the licences, sources and duplicate versions of dependencies (deny.toml).
deny:
	@sh interop/cargo-tool.sh cargo-deny target/tools
	PATH="$(CURDIR)/target/tools/bin:$$PATH" $(CARGO) deny --locked --workspace check bans licenses sources

## Compares `airtcp-serve` with nginx and HAProxy. Then measures the cost of a segment, of a simulated world (compared with
## ns-2), of a captured packet (compared with tcptrace and tshark), of a packet in airlink, and of a PDU. tcptrace takes minutes
## for captures with many connections.
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

## Installs the three programs, their man pages and shell completions, and the plug-in for Wireshark.
install: core
	@sh interop/setup.sh build
	$(CARGO) build --release --locked -p airtcp-cli -p airtcp-serve -p airlink
	DESTDIR=$(DESTDIR) sh packaging/install.sh $(TARGET)/release $(PREFIX)

## Builds a Debian package of the programs in target/packages.
deb: core
	@sh interop/setup.sh package
	$(CARGO) build --release --locked -p airtcp-cli -p airtcp-serve -p airlink
	sh packaging/deb.sh $(TARGET)/release $(PACKAGES)

## Builds statically linked programs for any Linux: an archive with a checksum in target/packages.
dist: core
	@sh interop/setup.sh package
	sh packaging/dist.sh $(PACKAGES)

## Installs and tests both packages in a fresh Debian system without Rust.
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

## Checks the formatting, and runs clippy over all targets, including benches, examples and fuzz targets.
lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

## Builds the documentation as a book in target/book. Installs mdBook if it is missing, which takes minutes.
book:
	@PATH="$(CURDIR)/target/tools/bin:$$PATH" command -v mdbook >/dev/null || $(CARGO) install mdbook --version 0.5.4 --locked --root target/tools
	PATH="$(CURDIR)/target/tools/bin:$$PATH" mdbook build
	[ ! -f $(CORE) ] || $(CARGO) run --quiet --locked -p airtcp-cli --bin airtcp -- playground -o target/book/evidence/papers/playground.html

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

fmt:
	$(CARGO) fmt --all

clean:
	$(CARGO) clean
