#!/bin/sh
# Fuzzes: `fuzz/fuzz.sh SECONDS TARGET…`, each target for so long. What libFuzzer finds interesting stays in
# fuzz/corpus/TARGET, from which the next run goes on; what fails is in fuzz/artifacts/TARGET.
#
# libFuzzer comes with the crate libfuzzer-sys, which a C++ compiler builds; the counters come from an LLVM pass that every
# rustc has. So a stable compiler is enough. (cargo-fuzz does the same with a nightly one, and AddressSanitizer besides.)
set -eu

seconds=$1
shift
cd "$(dirname "$0")/.."
command -v c++ >/dev/null 2>&1 || { echo "fuzz: libFuzzer needs a C++ compiler: apt-get install g++" >&2; exit 3; }

# For a target of its own: then programs that cargo runs to build others have no counters.
target=$(rustc -vV | sed -n 's/^host: //p')
directory=${CARGO_TARGET_DIR:-target}/fuzz
export RUSTFLAGS="--cfg fuzzing -Cdebug-assertions -Coverflow-checks -Ccodegen-units=1 -Cpasses=sancov-module \
  -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
  -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
for name in "$@"; do
    ${CARGO:-cargo} build --locked --profile long --target "$target" --target-dir "$directory" -p airtcp-fuzz --bin "$name"
done
failed=
for name in "$@"; do
    mkdir -p "fuzz/corpus/$name" "fuzz/artifacts/$name"
    echo "fuzz: $name for $seconds s, from $(ls "fuzz/corpus/$name" | wc -l) inputs and the seeds"
    # A hang is a fault, and so is memory that grows without end.
    "$directory/$target/long/$name" "fuzz/corpus/$name" "fuzz/seeds/$name" -max_total_time="$seconds" -timeout=30 \
        -rss_limit_mb=4096 -artifact_prefix="fuzz/artifacts/$name/" -print_final_stats=1 -verbosity=0 \
        || failed="$failed $name"
done
[ -z "$failed" ] || { echo "fuzz: these have failed:$failed; what with is in fuzz/artifacts" >&2; exit 1; }
