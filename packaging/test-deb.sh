#!/usr/bin/env bash
# Installs the package of target/dist into a root of its own, runs it, and purges it: what it
# brings must be there and work, nothing of it may be enabled, and nothing may be left.
#
#   packaging/build.sh && packaging/test-deb.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() { printf 'test-deb: %s\n' "$*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || die "dpkg wants root; nothing was installed"
deb=$(ls "${CARGO_TARGET_DIR:-target}"/dist/*.deb) || die "no package: packaging/build.sh makes it"
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
wants=$root/etc/systemd/system/timers.target.wants
mkdir -p "$root/var/lib/dpkg/"{info,updates} "$root/var/lib/dpkg/triggers" "$wants"
touch "$root/var/lib/dpkg/"{status,available}

# Its dependencies are the machine's own, and so is the shell of its scripts: the root has nothing
# else in it.
dpkg=(dpkg --root="$root" --log="$root/var/lib/dpkg/log" --force-depends --force-not-root
    --force-script-chrootless)
list() { (cd "$root" && find . -mindepth 1 -not -path './var/lib/dpkg*' | sort); }
before=$(list)
"${dpkg[@]}" --install "$deb" >"$root/var/lib/dpkg/said" 2>&1 || die "$(cat "$root/var/lib/dpkg/said")"

for file in usr/bin/tieout etc/tieout/tieout.toml \
    usr/lib/systemd/system/tieout{,-daily}.{service,timer} \
    usr/share/man/man1/tieout{,-run,-db-prune}.1.gz \
    usr/share/bash-completion/completions/tieout usr/share/zsh/vendor-completions/_tieout \
    usr/share/fish/vendor_completions.d/tieout.fish \
    usr/share/doc/tieout/{monitoring/{alerts.yml,dashboard.json},schema/events.json} \
    usr/share/doc/tieout/examples/{python/charge_worker.py,ruby/charge_worker.rb}; do
    [ -s "$root/$file" ] || die "$file is not there"
done
# What its pages link to is there as well.
docs=$root/usr/share/doc/tieout
for page in "$docs"/*.md "$docs"/docs/*.md; do
    { grep -oE '\]\([^)#: ]+' "$page" || true; } | sed 's/^](//;/^https*$/d' | while read -r link; do
        [ -e "${page%/*}/$link" ] || die "${page#"$docs/"} links to $link, which is not there"
    done
done
[ -z "$(find "$root" -path '*.wants/*' -o -type l -lname '*tieout*.timer')" ] || die "a unit is enabled"
for script in preinst postinst; do
    [ ! -e "$root/var/lib/dpkg/info/tieout.$script" ] || die "it brings a $script; none is needed"
done
said=$("$root/usr/bin/tieout" version) || die "the installed program does not run"
[[ $said == "tieout "* ]] || die "the installed program says: $said"
"$root/usr/bin/tieout" schedule print systemd | grep -q '^ExecStart=/usr/bin/tieout ' || die "schedule"
[ "${TIEOUT_PROFILE:-release}" = dev ] || packaging/needs.sh "$root/usr/bin/tieout" || die "the program needs a library besides glibc"
versions=$(readelf --version-info --wide "$root/usr/bin/tieout")
depends=$(dpkg-deb --field "$deb" Depends)
[[ $versions != *GLIBC_ABI_DT_RELR* || $depends == *"libc6 (>= 2.36)"* ]] ||
    die "the program needs glibc 2.36, and the package: $depends"
grep -qx /etc/tieout/tieout.toml "$root/var/lib/dpkg/info/tieout.conffiles" || die "no conffile"

# What somebody enabled is as it was after an upgrade, and gone after a purge.
for timer in tieout.timer tieout-daily.timer; do
    ln -s "/usr/lib/systemd/system/$timer" "$wants/$timer"
done

# A file that its owner changed survives an upgrade, and a removal without --purge.
echo '# mine' >>"$root/etc/tieout/tieout.toml"
"${dpkg[@]}" --install "$deb" >>"$root/var/lib/dpkg/said" 2>&1 </dev/null || die "reinstalling"
grep -qx '# mine' "$root/etc/tieout/tieout.toml" || die "an upgrade overwrote the configuration"
[ -L "$wants/tieout.timer" ] || die "an upgrade disabled a timer"
"${dpkg[@]}" --remove tieout >>"$root/var/lib/dpkg/said" 2>&1 || die "removing"
[ -e "$root/etc/tieout/tieout.toml" ] || die "a removal took the configuration along"
"${dpkg[@]}" --purge tieout >>"$root/var/lib/dpkg/said" 2>&1 || die "purging"
left=$(list)
[ "$left" = "$before" ] || die "left behind: $(comm -13 <(echo "$before") <(echo "$left"))"
printf 'test-deb: %s installs, runs, upgrades, and leaves nothing\n' "$(basename "$deb")"
