#!/usr/bin/env bash
# The tests' services: real components in a throw-away folder, on free loopback ports.
#
#   eval "$(tests/services.sh start)"      all of them; exports TEST_*; then `cargo nextest run`
#   tests/services.sh stop                 stops what this shell started (TIEOUT_TEST_SERVICES)
#   tests/services.sh install              only fetches what is missing
#   tests/services.sh start postgres       some of them, by name
#   tests/services.sh start --defaults postgres    with PostgreSQL's own settings, for benchmarks
#   tests/services.sh start --owner PID    ends them by itself when that process is gone
#
# As root it installs Debian packages; as anybody else it says which and stops. PostgreSQL and
# pgbouncer refuse to run as root and run as the user `postgres` then. The Stripes are programs
# that none of us wrote, pinned in tests/services/, run beside tieout and never part of it.
#
# How to add one: a package in `missing_packages`, a `launch_NAME` that calls `announce`, its name
# in ALL.
set -euo pipefail

readonly ALL="postgres replica pgbouncer localstripe stripe-mock emulate sshd redis beanstalkd sidekiq workers chromium"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here root=${here%/tests}
readonly cache=${CARGO_TARGET_DIR:-$root/target}/test-services
PATH=$PATH:/usr/sbin:/sbin

say() { printf 'services: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# ---------------------------------------------------------------------------------- installing

postgres_bin() { find /usr/lib/postgresql -path '*/bin/initdb' 2>/dev/null | sort -V | tail -1 | xargs -r dirname; }

missing_packages() { # for the services named
    local name
    for name in "$@"; do
        case $name in
            postgres | replica) [ -n "$(postgres_bin)" ] || echo postgresql ;;
            pgbouncer) command -v pgbouncer >/dev/null || echo pgbouncer ;;
            localstripe) python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv ;;
            sshd) command -v sshd >/dev/null || echo openssh-server
                command -v sftp >/dev/null || echo openssh-client
                command -v gpg >/dev/null || echo gpg
                command -v gpg-agent >/dev/null || echo gpg-agent ;;
            workers) missing_for_workers ;;
            stripe-mock | emulate) command -v npm >/dev/null || echo npm ;;
            redis) command -v redis-server >/dev/null || echo redis-server ;;
            beanstalkd) command -v beanstalkd >/dev/null || echo beanstalkd ;;
            sidekiq) command -v sidekiq >/dev/null || echo ruby-sidekiq ;;
            chromium) command -v chromium >/dev/null || echo chromium
                command -v chromedriver >/dev/null || echo chromium-driver ;;
        esac
    done
    # The SSH client is linked to the machine's own OpenSSL, which compiles it four times as fast.
    [ -e /usr/include/openssl/ssl.h ] || echo libssl-dev
    [ -e /usr/include/zlib.h ] || echo zlib1g-dev
    command -v pkg-config >/dev/null || echo pkg-config
    # The units of cron/systemd are held by systemd's own tool.
    command -v systemd-analyze >/dev/null || echo systemd
    # Without authorities the HTTP client refuses to start, even for plain http.
    [ -s /etc/ssl/certs/ca-certificates.crt ] || echo ca-certificates
}

missing_for_workers() { # what examples/ are written in; Redis and Sidekiq are started by their tests
    command -v ruby >/dev/null || echo ruby
    command -v redis-server >/dev/null || echo redis-server
    command -v sidekiq >/dev/null || echo ruby-sidekiq
    /usr/bin/python3 -c 'import psycopg' 2>/dev/null || echo python3-psycopg
    ruby -e 'require "pg"' 2>/dev/null || echo ruby-pg
    ruby -e 'require "sqlite3"' 2>/dev/null || echo ruby-sqlite3
}

install_packages() {
    local packages
    packages=$(missing_packages "$@" | sort -u | tr '\n' ' ')
    [ -n "${packages// /}" ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        die "the tests need these Debian packages, which are not installed: $packages
services: nothing was started. Install them and run this again:
services:     sudo apt-get install --no-install-recommends $packages"
    fi
    say "installing $packages"
    { # Never a question: continuous integration has no one to answer.
        apt-get -o DPkg::Lock::Timeout=300 -qq update
        # And no service of the machine's own: RUNLEVEL keeps packages from starting theirs.
        # shellcheck disable=SC2086 # a list of words
        RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq -y \
            -o Dpkg::Use-Pty=0 --no-install-recommends install $packages </dev/null
    } >&2 || die "apt-get could not install: $packages"
    packages=$(missing_packages "$@" | sort -u | tr '\n' ' ')
    [ -z "${packages// /}" ] || die "still missing after apt-get: $packages"
}

# Both folders are named by the digest of their lock file, and marked when they are whole.
locked_folder() { echo "$cache/$1-$(cat "${@:2}" | sha256sum | cut -c1-12)"; }
node_folder() { locked_folder node "$here/services/package.json" "$here/services/package-lock.json"; }
python_folder() { locked_folder python "$here/services/requirements.txt"; }

install_node_programs() {
    local folder
    folder=$(node_folder)
    [ ! -e "$folder/.whole" ] || return 0
    say "installing emulate and stripe-stateful-mock from npm"
    rm -rf "$folder" && mkdir -p "$folder"
    cp "$here/services/package.json" "$here/services/package-lock.json" "$folder/"
    (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund </dev/null >&2) ||
        die "npm could not install tests/services/package-lock.json"
    "$(node)" --version >/dev/null || die "npm installed no node for $(uname -m)"
    touch "$folder/.whole"
}

install_python_programs() {
    local folder
    folder=$(python_folder)
    # A virtual environment dies with the interpreter that it was made by.
    [ ! -e "$folder/.whole" ] || ! "$folder/bin/python" -c '' 2>/dev/null || return 0
    say "installing localstripe from PyPI"
    rm -rf "$folder"
    { python3 -m venv "$folder" &&
        "$folder/bin/pip" -q --disable-pip-version-check install --no-input \
            --require-hashes -r "$here/services/requirements.txt" </dev/null; } >&2 ||
        die "pip could not install tests/services/requirements.txt"
    touch "$folder/.whole"
}

install_for() {
    install_packages "$@"
    mkdir -p "$cache"
    local lock
    exec {lock}>"$cache/lock" # two checkouts may share one target folder
    flock "$lock"
    case " $* " in *" localstripe "*) install_python_programs ;; esac
    case " $* " in *" stripe-mock "* | *" emulate "*) install_node_programs ;; esac
    exec {lock}>&-
}

# ------------------------------------------------------------------------------------ starting

run_user=$(id -un)
as_run_user=(env -C /)
if [ "$run_user" = root ]; then
    run_user=postgres
    as_run_user+=(setpriv --reuid=postgres --regid=postgres --init-groups --)
fi
as_user() { "${as_run_user[@]}" "$@"; }

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

free_port() { # free a moment ago; below the ephemeral range, so that no outgoing call takes it
    local port
    while port=$((20000 + RANDOM % 10000)) && answers "$port"; do :; done
    echo "$port"
}

announce() { echo "export $1='$2'" | tee -a "$dir/env"; }

background() { # NAME COMMAND…: a session of its own, that no Ctrl-C of the tests reaches
    local name=$1
    shift
    setsid "$@" >"$dir/$name.log" 2>&1 </dev/null &
    echo "$!" >"$dir/$name.pid"
}

wait_for() { # NAME PORT
    for _ in $(seq 1500); do
        ! answers "$2" || return 0
        [ ! -s "$dir/$1.pid" ] || kill -0 "$(cat "$dir/$1.pid")" 2>/dev/null || break
        sleep 0.02
    done
    sed "s/^/$1: /" "$dir/$1.log" >&2 || true
    die "$1 did not start on port $2; its log is above"
}

# Data of tests needs no disk that survives; a server in an odd zone shows who relies on it.
fast_settings="-c fsync=off -c full_page_writes=off -c synchronous_commit=off -c autovacuum=off"
fast_settings+=" -c max_connections=200 -c shared_buffers=64MB -c timezone=America/St_Johns"

start_server() { # NAME DATA PORT
    as_user "$(postgres_bin)/pg_ctl" -D "$2" -w -t 60 -s -l "$2.log" \
        -o "-c listen_addresses=127.0.0.1 -p $3 -k $dir/pg $fast_settings" start >&2 ||
        { sed "s/^/$1: /" "$2.log" >&2; die "$1 did not start on port $3; its log is above"; }
}

launch_postgres() {
    postgres_port=$(free_port)
    install -d -o "$run_user" "$dir/pg"
    as_user test -w "$dir/pg" || die "the user $run_user cannot enter $dir; set TMPDIR to a folder that it can"
    as_user "$(postgres_bin)/initdb" -D "$dir/pg/primary" -U postgres -A trust -E UTF8 \
        --locale=C.UTF-8 --no-sync >"$dir/initdb.log" 2>&1 || { cat "$dir/initdb.log" >&2; die "initdb failed"; }
    # Two people with passwords; everybody else is whom they say they are.
    local people="host all tieout_web_mara,tieout_web_jonas,tieout_web_reader 127.0.0.1/32 scram-sha-256"
    as_user sed -i "1i $people" "$dir/pg/primary/pg_hba.conf"
    start_server postgres "$dir/pg/primary" "$postgres_port"
    announce TEST_POSTGRES_URL "postgres://postgres@127.0.0.1:$postgres_port/postgres"
}

launch_replica() { # a streaming standby, with a slot so that it never falls off the log's end
    local port
    port=$(free_port)
    as_user "$(postgres_bin)/pg_basebackup" -h 127.0.0.1 -p "${postgres_port:?replica needs postgres before it}" \
        -U postgres -D "$dir/pg/replica" -R -X stream -C -S tieout_replica -c fast --no-sync \
        >"$dir/basebackup.log" 2>&1 || { cat "$dir/basebackup.log" >&2; die "pg_basebackup failed"; }
    start_server replica "$dir/pg/replica" "$port"
    announce TEST_POSTGRES_REPLICA_URL "postgres://postgres@127.0.0.1:$port/postgres"
}

# Three of them: two in transaction mode, which tieout must notice and refuse, of which one drops
# a session's settings in silence and takes its server connections in turn; and one in session
# mode, which must do, and which refuses every setting of the start.
launch_pgbouncer() {
    start_pgbouncer transaction TEST_PGBOUNCER_URL "ignore_startup_parameters = extra_float_digits"
    start_pgbouncer transaction TEST_PGBOUNCER_LENIENT_URL "server_round_robin = 1
ignore_startup_parameters = extra_float_digits, options"
    start_pgbouncer session TEST_PGBOUNCER_SESSION_URL ""
}

start_pgbouncer() { # MODE VARIABLE MORE-SETTINGS
    local port name=pgbouncer-$2
    port=$(free_port)
    install -d -o "$run_user" "$dir/$name"
    cat >"$dir/$name/ini" <<END
[databases]
* = host=127.0.0.1 port=${postgres_port:?pgbouncer needs postgres before it} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = any
pool_mode = $1
default_pool_size = $([ "$1" = session ] && echo 20 || echo 4)
max_client_conn = 500
$3
END
    background "$name" "${as_run_user[@]}" "$(command -v pgbouncer)" "$dir/$name/ini"
    wait_for "$name" "$port"
    announce "$2" "postgres://postgres@127.0.0.1:$port/postgres"
}

# Their own commands bind every interface; these bind loopback alone.
launch_localstripe() {
    local port
    port=$(free_port)
    mkdir -p "$dir/localstripe-tmp" # it keeps its state in the temporary folder
    background localstripe env TMPDIR="$dir/localstripe-tmp" "$(python_folder)/bin/python" -c "
from aiohttp import web
from localstripe.server import app
web.run_app(app, host='127.0.0.1', port=$port)"
    to_wait+=("localstripe $port")
    announce TEST_LOCALSTRIPE_URL "http://127.0.0.1:$port"
}

# By its path: npm 9, which Debian 12 has, links no commands of optional packages.
node() { echo "$(node_folder)"/node_modules/node-linux-*/bin/node; }

launch_stripe-mock() {
    local port
    port=$(free_port)
    background stripe-mock "$(node)" -e "
require('$(node_folder)/node_modules/stripe-stateful-mock').createExpressApp().listen($port, '127.0.0.1')"
    to_wait+=("stripe-mock $port")
    announce TEST_STRIPE_MOCK_URL "http://127.0.0.1:$port"
}

launch_emulate() {
    local port
    port=$(free_port)
    background emulate "$(node)" "$(node_folder)/node_modules/emulate/dist/index.js" \
        start --service stripe --port "$port"
    to_wait+=("emulate $port")
    announce TEST_EMULATE_URL "http://127.0.0.1:$port"
}

# Each test starts one of its own, with its own keys, algorithms and rights; here it is only seen
# to start at all. As root it wants the folder that it locks its child into.
launch_sshd() {
    [ "$(id -u)" != 0 ] || mkdir -p /run/sshd
    ssh-keygen -q -t ed25519 -N '' -f "$dir/sshd-key"
    "$(command -v sshd)" -t -f /dev/null -h "$dir/sshd-key" 2>"$dir/sshd.log" ||
        { sed 's/^/sshd: /' "$dir/sshd.log" >&2; die "sshd does not start; its words are above"; }
    announce TEST_SSHD "$(command -v sshd)"
}

# Shared by tests that have queues of their own; one that stops a server starts another by itself.
launch_redis() {
    local port program
    port=$(free_port)
    program=$(command -v redis-server)
    background redis "$program" --bind 127.0.0.1 --port "$port" --save '' --appendonly no --dir "$dir"
    to_wait+=("redis $port")
    announce TEST_REDIS_URL "redis://127.0.0.1:$port/0"
    announce TEST_REDIS_SERVER "$program"
}

launch_beanstalkd() {
    local port
    port=$(free_port)
    background beanstalkd "$(command -v beanstalkd)" -l 127.0.0.1 -p "$port"
    to_wait+=("beanstalkd $port")
    announce TEST_BEANSTALKD_URL "beanstalk://127.0.0.1:$port"
}

# Each test starts one with a worker of its own.
launch_sidekiq() { announce TEST_SIDEKIQ "$(command -v sidekiq)"; }

# Programs that each test starts for itself: /usr/bin/python3, ruby, redis-server, sidekiq.
launch_workers() { announce TEST_WORKERS /usr/bin/python3; }

# The driver starts a browser of its own for each test, with a folder of its own.
launch_chromium() {
    local port
    port=$(free_port)
    background chromium env HOME="$dir" "$(command -v chromedriver)" --port="$port"
    to_wait+=("chromium $port")
    announce TEST_WEBDRIVER_URL "http://127.0.0.1:$port"
}

start() {
    local owner='' names=() name waiting
    while [ $# -gt 0 ]; do
        case $1 in
            --defaults) fast_settings='' ;;
            --owner) owner=${2:?--owner wants a process id} && shift ;;
            -*) die "unknown option $1" ;;
            *) case " $ALL " in *" $1 "*) names+=("$1") ;; *) die "unknown service $1; there are: $ALL" ;; esac ;;
        esac
        shift
    done
    # shellcheck disable=SC2206 # a list of words
    [ ${#names[@]} -gt 0 ] || names=($ALL)
    install_for "${names[@]}"
    dir=$(mktemp -d "${TMPDIR:-/tmp}/tieout-services.XXXXXX")
    chmod 755 "$dir" # the user postgres must get in
    trap '[ $? = 0 ] || stop "$dir"' EXIT
    announce TIEOUT_TEST_SERVICES "$dir"
    to_wait=()
    for name in "${names[@]}"; do "launch_$name"; done
    # shellcheck disable=SC2086 # a name and a port
    for waiting in ${to_wait[@]+"${to_wait[@]}"}; do wait_for $waiting; done
    if [ -n "$owner" ]; then # no descriptor stays open, else $(…) around this would never end
        setsid bash -c 'tail --pid="$1" -f /dev/null; exec "$2" stop "$3"' \
            watch "$owner" "$here/services.sh" "$dir" >/dev/null 2>&1 </dev/null &
    fi
}

# ------------------------------------------------------------------------------------ stopping

stop() { # DIR
    local dir=${1:-${TIEOUT_TEST_SERVICES:-}} file server
    case $dir in */tieout-services.??????) ;; *) die "nothing to stop: TIEOUT_TEST_SERVICES is not set" ;; esac
    for file in "$dir"/*.pid; do
        [ ! -s "$file" ] || kill -- "-$(cat "$file")" 2>/dev/null || true
    done
    for server in "$dir"/pg/*/postmaster.pid; do
        [ ! -s "$server" ] || kill -QUIT "$(head -1 "$server")" 2>/dev/null || true
    done
    mkdir -p "$cache/last-logs" # for the reader of a failed test
    cp "$dir"/*.log "$dir"/pg/*.log "$cache/last-logs/" 2>/dev/null || true
    for _ in $(seq 100); do rm -rf "$dir" 2>/dev/null && break || sleep 0.05; done
}

case ${1:-} in
    install) shift && install_for ${@:-$ALL} ;;
    start) shift && start "$@" ;;
    stop) shift && stop "$@" ;;
    *) sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
esac
