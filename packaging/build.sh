#!/usr/bin/env bash
# Builds what a release consists of, below target/dist: the stripped binary, its SHA-256, the
# Debian package and its SHA-256. Man pages and completions come from the binary itself.
#
#   packaging/build.sh            all of it; the package needs cargo-deb (cargo install cargo-deb)
#   packaging/build.sh binary     the binary and its SHA-256 alone
#
# With TIEOUT_PROFILE=dev all of it is made of the quickly built program, to try the package itself
# where the tests build that anyway; nobody should install such a one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'package: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

target=${CARGO_TARGET_DIR:-target}
profile=${TIEOUT_PROFILE:-release}
what=() # of the package: the program
case $profile in
    release) built=$target/release ;;
    # With the tests, whose own dependencies ask more of some crates: else those are compiled again.
    dev) built=$target/debug what=(--bins --tests) ;;
    *) die "TIEOUT_PROFILE is $profile, and can be release or dev" ;;
esac
say "building the $profile binary: some minutes"
# With an OpenSSL of its own, so that the binary runs wherever its libc does.
[ "$profile" != release ] || unset OPENSSL_NO_VENDOR
export LIBZ_SYS_STATIC=1
nice cargo build --profile "$profile" --locked "${what[@]}"
bin=$built/tieout
# The release is linked without its symbols.
[ "$profile" = release ] || strip "$bin"
file=$(readelf --sections --wide "$bin") || die "readelf: binutils are not installed"
[[ $file != *.symtab* ]] || die "$bin is not stripped"
[ "$profile" != release ] || packaging/needs.sh "$bin" ||
    die "README promises that glibc is all that it needs"
version=$("$bin" --version | cut -d' ' -f2)
name=tieout-$version-$(uname -m)-linux

rm -rf "$target/dist" "$target/generated"
mkdir -p "$target/dist" "$target/generated/man"
install -m 755 "$bin" "$target/dist/$name"
(cd "$target/dist" && sha256sum "$name" >"$name.sha256")
"$bin" generate man --dir "$target/generated/man"
for shell in bash zsh fish powershell; do
    "$bin" generate "$shell" >"$target/generated/tieout.$shell"
done
say "$target/dist/$name"
[ "${1:-all}" != binary ] || exit 0

command -v cargo-deb >/dev/null || die "cargo-deb is not installed, no package was made: cargo install --locked cargo-deb"
versions=$(readelf --version-info --wide "$bin")
options=()
[ "$profile" = release ] || options=(--fast)
[[ $versions != *GLIBC_ABI_DT_RELR* ]] || options+=(--variant packed)
cargo deb --no-build --no-strip --profile "$profile" "${options[@]}" --output "$target/dist/" >/dev/null
(cd "$target/dist" && for deb in *.deb; do sha256sum "$deb" >"$deb.sha256"; done)
say "$(ls "$target"/dist/*.deb)"
