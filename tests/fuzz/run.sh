#!/usr/bin/env bash
# Fuzzes each parser for so many seconds, guided by which code is reached: ./test --fuzz [SECONDS
# [FORMAT…]]. Ends with what failed; the bytes of a failure are named, and stay.
#
# Needs cargo-fuzz and a nightly compiler (rustup toolchain install nightly; cargo install
# cargo-fuzz), which nothing else here needs. FUZZ_JOBS parsers at a time, by default one a core.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly seconds=${1:-600}
shift $(($# > 0 ? 1 : 0))
cargo fuzz --version >/dev/null 2>&1 || { echo "fuzz: needs cargo-fuzz: cargo install --locked cargo-fuzz" >&2; exit 1; }
cargo +nightly --version >/dev/null 2>&1 || { echo "fuzz: needs: rustup toolchain install nightly" >&2; exit 1; }

if [ $# -eq 0 ]; then
    # The words that the program knows, what a configuration describes, and the two ways in before a
    # word is known.
    mapfile -t words < <(sed -n 's/^        name: "\(.*\)",$/\1/p' src/settlement/mod.rs)
    set -- "${words[@]}" table content archive
fi
export OPENSSL_NO_VENDOR=${OPENSSL_NO_VENDOR-1}
readonly kept=$PWD/target/fuzz
# What could corrupt memory is forbidden in src/lib.rs: without a sanitizer it tries twice as much.
cargo +nightly fuzz build --sanitizer none --fuzz-dir tests/fuzz --target-dir "$kept/build" settlement
target=$(rustc -vV | sed -n 's/^host: //p')
readonly program=$kept/build/$target/release/settlement

one() { # FORMAT
    local folder=$kept/$1 seeds=$kept/seeds
    mkdir -p "$folder/corpus" "$folder/found"
    echo "fuzz: $1: begins"
    if TIEOUT_FUZZ_FORMAT=${1#content} "$program" "$folder/corpus" "$seeds" \
        -max_total_time="$seconds" -max_len=65536 -timeout=20 -rss_limit_mb=1024 \
        -artifact_prefix="$folder/found/" >"$folder/log" 2>&1; then
        echo "fuzz: $1: $(grep '^Done' "$folder/log")"
    else
        echo "fuzz: $1: FAILED: $folder/log, $folder/found/" >&2
        return 1
    fi
}
mkdir -p "$kept/seeds"
find fixtures/settlement fixtures/formats -type f -not -path '*/told/*' -exec cp -f -t "$kept/seeds" {} +
export -f one
export seconds program kept
printf '%s\n' "$@" | xargs -P "${FUZZ_JOBS:-$(nproc)}" -I{} bash -euo pipefail -c 'one {}'
echo "fuzz: $# parsers, $seconds s each: nothing breaks them"
