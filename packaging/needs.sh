#!/usr/bin/env bash
# Refuses a program that asks for a library besides glibc's own and GCC's run time: it would not
# start where that library is not installed.
#
#   packaging/needs.sh FILE
set -euo pipefail

needed=$(LC_ALL=C readelf --dynamic --wide "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
[ -n "$needed" ] || { printf 'needs: %s names no library\n' "$1" >&2; exit 1; }
others=0
for library in $needed; do
    case $library in
    libc.so.* | libm.so.* | libgcc_s.so.* | libdl.so.* | libpthread.so.* | librt.so.* | ld-linux*) ;;
    *)
        printf 'needs: %s asks for %s\n' "$1" "$library" >&2
        others=1
        ;;
    esac
done
exit "$others"
