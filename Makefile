# Two commands: `make demo` and `make test`. Everything else is a chore.

PREFIX ?= /usr/local
TARGET := $(or $(CARGO_TARGET_DIR),target)
MATRIX ?= target/matrix
CARGO ?= cargo
# Of each target, in `make fuzz`.
FUZZ_SECONDS ?= 600
# What is in the environment counts, an empty list too.
FUZZ_TARGETS ?= $(basename $(notdir $(wildcard fuzz/seeds/*)))
# Tests and the demo need root for TUN devices and namespaces; cargo itself does not.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
ifneq ($(SUDO),)
# cargo builds as you; only the test programs run as root.
RUNNER := --config 'target."cfg(unix)".runner = ["sudo", "-E", "env", "PATH=$(PATH)"]'
endif

CORE := $(TARGET)/wasm32-unknown-unknown/page/airtcp_playground.wasm
# Looked for whenever a program is built. Without it `airtcp playground` says what is missing.
export AIRTCP_PLAYGROUND_CORE = $(shell [ ! -f $(CORE) ] || echo $(abspath $(CORE)))

.PHONY: demo playground core test test-long siege pairs matrix examples wasm fuzz fuzz-seeds deny bench install uninstall lint doc fmt clean

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

## Everything that proves something, against the real kernel too. Tests send signals that nohup, say, has programs ignore.
test: core
	@sh interop/setup.sh test
	@sh interop/need-root.sh 'make test'
	$(CARGO) build --locked -p airtcp-cli -p airlink
	AIRTCP_PROGRAMS=$(TARGET)/debug env --default-signal $(CARGO) test --workspace --exclude airtcp-benches --locked $(RUNNER)

## What takes too long without optimisation: a stream of more than 4 GiB, the papers' scenarios with as many seeds as ns-2 had,
## that no recipe ever freezes, vectors of ns-2 that nobody has seen, 10,000 random exchanges beside this machine's kernel, and
## all figures of the papers as they are recorded, which takes longest (AIRTCP_FIGURES="p0 p2-fig5" takes some); then `make fuzz`.
## Sweeps on more than one machine: a Slurm of two nodes, one of which is lost, and GNU parallel over ssh (a minute or two).
## AIRTCP_NS2_SEED and AIRTCP_DIFFER_SEED make vectors and exchanges of another day.
test-long:
	@sh interop/setup.sh long
	@sh interop/need-root.sh 'make test-long'
	$(CARGO) test --profile long --locked -p airtcp-tests --no-default-features --features kernel --test differ $(RUNNER) -- --ignored
	$(CARGO) test --profile long --locked -p airtcp-tests --no-default-features --test host --test world -- --ignored
	$(CARGO) test --profile long --locked -p airtcp-tests --no-default-features --test ns2 -- --ignored --quiet
	$(CARGO) test --profile long --locked -p airtcp-tests --no-default-features --test liveness -- --include-ignored --quiet
	[ -n "$(AIRTCP_PROGRAMS)" ] || $(CARGO) build --profile long --locked -p airtcp-cli -p airlink
	AIRTCP_PROGRAMS=$(or $(AIRTCP_PROGRAMS),$(TARGET)/long) $(CARGO) test --locked -p airtcp-tests --test sweeps $(RUNNER) -- --ignored cluster::
	AIRTCP_PROGRAMS=$(or $(AIRTCP_PROGRAMS),$(TARGET)/long) $(CARGO) test --locked -p airtcp-tests --test sweeps -- --ignored every_figure_of_the_record
	$(MAKE) fuzz

## Attacks on `airtcp serve`, in namespaces of their own: what docs/serve.md promises, and what was seen (a minute or two).
siege:
	@sh interop/setup.sh test
	@sh interop/need-root.sh 'make siege'
	$(CARGO) build --locked -p airtcp-cli -p airlink
	@$(SUDO) rm -f target/siege.txt
	AIRTCP_SIEGE=$(CURDIR)/target/siege.txt AIRTCP_PROGRAMS=$(TARGET)/debug env --default-signal $(CARGO) test --locked \
	  -p airtcp-tests --test kernel $(RUNNER) -- serve::strangers serve::costs serve::faults serve::machine; \
	  status=$$?; printf '\n%-50s  %-54s  %s\n' attack promised seen; cat target/siege.txt; exit $$status

## Our senders linux, reno-linux and bbr-linux beside the kernel's own: thirty pairs on each of eight paths (hours; AIRTCP_PAIRS
## and AIRTCP_PATHS take fewer).
pairs:
	@sh interop/need-root.sh 'make pairs'
	$(CARGO) build --locked -p airtcp-cli -p airlink
	AIRTCP_PROGRAMS=$(TARGET)/debug $(CARGO) test --locked -p airtcp-tests --test experiments $(RUNNER) -- --ignored --nocapture thirty_pairs

## Every recipe's family to receivers of five makers, over five kinds of path (a few minutes).
matrix:
	@sh interop/setup.sh build
	@sh interop/need-root.sh 'make matrix'
	@sh interop/receivers/setup.sh --ci
	@$(CARGO) build --quiet --locked -p airtcp-cli -p airlink
	$(SUDO) rm -rf $(MATRIX)
	$(SUDO) $(TARGET)/debug/airtcp lab matrix --quick --output $(MATRIX)

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

## Every fuzz target for ten minutes (FUZZ_SECONDS=60 for a minute; FUZZ_TARGETS="packets rlc" takes some), from where the last
## time has come to: fuzz/corpus.
fuzz:
	@CARGO='$(CARGO)' sh fuzz/fuzz.sh $(FUZZ_SECONDS) $(FUZZ_TARGETS)

## Licences, sources and doubled versions of what this is built from, by deny.toml.
deny:
	@sh interop/cargo-deny.sh target/tools
	PATH="$(CURDIR)/target/tools/bin:$$PATH" $(CARGO) deny --locked --workspace check bans licenses sources

## Whole programs against each other (`airtcp serve` beside nginx and HAProxy), then what a segment, a simulated world (beside
## ns-2), a captured packet (beside tcptrace and tshark), a packet and a PDU cost. tcptrace takes minutes where connections
## are many.
bench: core
	@sh interop/setup.sh bench
	@sh interop/need-root.sh 'make bench'
	$(CARGO) build --release --workspace --locked
	@! command -v go >/dev/null || (cd benches/throughput/gvisor && CGO_ENABLED=0 go build -trimpath -o "$(abspath $(TARGET))/release/gvisor-sender" .)
	$(SUDO) $(TARGET)/release/airtcp-throughput
	$(SUDO) $(TARGET)/release/airtcp-proxies
	$(CARGO) bench --locked -p airtcp-benches
	AIRTCP_PROGRAMS=$(TARGET)/release $(CARGO) bench --locked -p airtcp-benches --bench analyze $(RUNNER) -- real 3000 9
	$(CARGO) bench --locked -p airlink --bench chain --bench rlc
	$(CARGO) bench --locked -p airlink --bench forward $(RUNNER)
	$(CARGO) bench --locked -p airlink --bench forward $(RUNNER) -- lateness

## Both programs, their man pages and shell completions, and the plug-in for Wireshark.
install: core
	@sh interop/setup.sh build
	$(CARGO) build --release --locked -p airtcp-cli -p airlink
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(TARGET)/release/airtcp $(TARGET)/release/airlink
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/airtcp interop/wireshark/airtcp.lua
	$(TARGET)/release/airtcp man $(DESTDIR)$(PREFIX)/share/man/man1
	$(TARGET)/release/airlink man $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions \
	  $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	for program in airtcp airlink; do \
	  $(TARGET)/release/$$program completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$program && \
	  $(TARGET)/release/$$program completions zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_$$program && \
	  $(TARGET)/release/$$program completions fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$$program.fish \
	  || exit 1; \
	done

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/airtcp $(DESTDIR)$(PREFIX)/bin/airlink
	rm -rf $(DESTDIR)$(PREFIX)/share/airtcp
	rm -f $(DESTDIR)$(PREFIX)/share/man/man1/airtcp*.1 $(DESTDIR)$(PREFIX)/share/man/man1/airlink*.1
	rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/airtcp $(DESTDIR)$(PREFIX)/share/bash-completion/completions/airlink
	rm -f $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_airtcp $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_airlink
	rm -f $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/airtcp.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/airlink.fish

## Compiles everything, benches, examples and fuzz targets too.
lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

fmt:
	$(CARGO) fmt --all

clean:
	$(CARGO) clean
