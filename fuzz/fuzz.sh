#!/bin/sh
# Fuzzes each target for SECONDS: `fuzz/fuzz.sh SECONDS TARGET…`. libFuzzer stores interesting inputs in
# fuzz/corpus/TARGET, from which the next run continues, and failing inputs in fuzz/artifacts/TARGET.
#
# A stable compiler is enough: the crate libfuzzer-sys contains libFuzzer, which needs a C++ compiler, and an
# LLVM pass that every rustc has adds the coverage counters. (cargo-fuzz needs a nightly compiler, and also
# uses AddressSanitizer.)
set -eu

seconds=$1
shift
cd "$(dirname "$0")/.."
command -v c++ >/dev/null 2>&1 || { echo "fuzz: libFuzzer needs a C++ compiler: apt-get install g++" >&2; exit 3; }

# With an explicit target, cargo builds build scripts and procedural macros without counters.
target=$(rustc -vV | sed -n 's/^host: //p')
directory=${CARGO_TARGET_DIR:-target}/fuzz
export RUSTFLAGS="--cfg fuzzing -Cdebug-assertions -Coverflow-checks -Ccodegen-units=1 -Cpasses=sancov-module \
  -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
  -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
for name in "$@"; do
    ${CARGO:-cargo} build --locked --profile long --target "$target" --target-dir "$directory" -p airtcp-fuzz --bin "$name"
done
mkdir -p "$directory/logs"
export seconds directory target
# One target per core. A hang and unbounded memory growth are failures.
fuzz='
    name=$1
    mkdir -p "fuzz/corpus/$name" "fuzz/artifacts/$name"
    echo "fuzz: $name for $seconds s, from $(ls "fuzz/corpus/$name" | wc -l) inputs and the seeds"
    log=$directory/logs/$name
    "$directory/$target/long/$name" "fuzz/corpus/$name" "fuzz/seeds/$name" -max_total_time="$seconds" -timeout=30 \
        -rss_limit_mb=4096 -artifact_prefix="fuzz/artifacts/$name/" -print_final_stats=1 -verbosity=0 >"$log" 2>&1 \
        || { cat "$log"; echo "fuzz: $name failed; the input is in fuzz/artifacts/$name" >&2; exit 1; }
    sed -n "s/^stat::number_of_executed_units: */fuzz: $name executed inputs: /p" "$log"
'
printf '%s\n' "$@" | xargs -P "$(nproc)" -I NAME sh -c "$fuzz" fuzz NAME
