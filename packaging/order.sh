#!/usr/bin/env bash
# Writes packaging/functions.order: the functions that a run with nothing due calls.
#
# The linker puts them side by side (build.rs), so that such a run, which is nearly every run, has
# few pages of the program in memory. A name holds the compiler's hash: after another compiler, or
# other versions of the dependencies, less of the list is found, and nothing else is lost. Call it
# again when `cargo bench --bench idle` says more than 15 MiB.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly order=$PWD/packaging/functions.order
for tool in valgrind sqlite3 python3; do
    command -v "$tool" >/dev/null || { echo "order.sh: $tool is needed: apt-get install $tool" >&2; exit 1; }
done

# As people build it, but for the names.
cargo rustc --release --locked --bin tieout -- -Cstrip=none
readonly program=$PWD/target/release/tieout
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

sqlite3 shop.db "create table payments (id integer primary key, status text not null,
        amount_cents integer not null, currency text not null, created_at text not null,
        attempted_at text, psp_reference text);
    create index payments_status on payments (status);
    with recursive n (i) as (select 1 union all select i + 1 from n where i < 1000)
    insert into payments select i, 'paid', 1000 + i, 'EUR', '2026-01-01T00:00:00Z', null, null from n"
cat >tieout.toml <<'EOF'
business_timezone = "UTC"
[database]
url = "sqlite://shop.db"
[report]
dir = "reports"
[[account]]
name = "stripe"
psp = "stripe"
mode = "full"
livemode = false
key_env = "KEY"
tag = "metadata[tieout_id]"
[[table]]
name = "payments"
read = "payments"
key = ["id"]
tag = "pay_{id}"
kind = { const = "charge" }
amount = { column = "amount_cents", unit = "minor" }
currency = { column = "currency" }
account = { const = "stripe" }
status = "status"
created = "created_at"
attempted = "attempted_at"
psp_reference = "psp_reference"
time = "utc"
mode = "full"
ignore = ["paid", "failed", "retryable"]
[[table.map]]
from = ["processing"]
succeeded = "paid"
failed = "failed"
retryable = "retryable"
EOF
export KEY=sk_test_order
"$program" db migrate
"$program" run
valgrind --quiet --tool=callgrind --demangle=no --callgrind-out-file=calls "$program" run

python3 - calls "$order" <<'EOF'
import re
import sys

calls, order = sys.argv[1:]
objects, names, ours, here = {}, {}, set(), ""
for line in open(calls):
    found = re.match(r"(c?ob|c?fn)=\((\d+)\)(?: (.*))?", line)
    if not found:
        continue
    word, number, name = found.groups()
    known = objects if word.endswith("ob") else names
    if name:
        # A function that calls itself is counted by depth.
        known[number] = re.sub(r"'\d+$", "", name)
    if word == "ob":
        here = known[number]
    elif word == "fn" and here.endswith("/tieout"):
        ours.add(known[number])
with open(order, "w") as file:
    file.write("".join(name + "\n" for name in sorted(ours)))
print(f"{len(ours)} functions")
EOF
