-- A million cases, half of them open, each with its row's memory, its record and its evidence: for
-- timing `tieout cases list` (with each filter), `tieout cases show C-500000` and
-- `tieout explain 500000` on a database that `tieout db migrate` made, and no other. The mapped
-- table is called `payments`. Both databases read this text:
--
--     psql "$DATABASE_URL" -1 -f tests/bench/cases.sql
--     python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(open(
--         "tests/bench/cases.sql").read())' shop.db

insert into tieout_runs (id, command, state, started_at, heartbeat_at, ended_at, host, pid, version,
    config_sha256, policy_version, scope, journal_count, close_number, close_hash)
values ('bench', 'run', 'complete', '2026-11-19T10:00:00.000000Z', '2026-11-19T10:30:00.000000Z',
    '2026-11-19T11:00:00.000000Z', 'bench', 1, '0', 'c', 'p', '{}', 1000000, 1, 'h');

insert into tieout_evidence (sha256, body, created_at)
with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000)
select 'e' || cast(i as text), '{}', '2026-11-19T10:30:00.000000Z' from n;

insert into tieout_cases (subject_kind, table_name, subject, reason, text, state, account, currency,
    amount_minor, rule, policy_version, evidence_sha256, opened_at, opened_run, last_seen_at,
    last_run, owner)
with recursive n(i) as (select 2 union all select i + 2 from n where i < 1000000)
select 'row', 'payments', cast(i as text),
    case when i % 100 in (0, 1) then 'duplicate_capture' else 'decline_unknown' end,
    'pi_' || cast(i as text) || ' failed with `never_heard_of`, which no rule knows', 'open',
    case when i % 1000 in (0, 1) then 'rare' else 'shop' end,
    case when i % 500 in (0, 1) then 'JPY' else 'EUR' end, i % 100000,
    case when i % 3 = 0 then 'own.some' end, 'p', 'e' || cast(i as text),
    '2026-11-19T10:30:00.000000Z', 'bench', '2026-11-19T10:30:00.000000Z', 'bench',
    case when i % 5000 = 0 then 'mara' end
from n;

insert into tieout_cases (subject_kind, table_name, subject, reason, text, state, account, currency,
    amount_minor, rule, policy_version, evidence_sha256, opened_at, opened_run, last_seen_at,
    last_run, owner, closed_at, closed_run, resolution)
with recursive n(i) as (select 1 union all select i + 2 from n where i < 999999)
select 'row', 'payments', cast(i as text),
    case when i % 100 in (0, 1) then 'duplicate_capture' else 'decline_unknown' end,
    'pi_' || cast(i as text) || ' failed with `never_heard_of`, which no rule knows', 'closed',
    case when i % 1000 in (0, 1) then 'rare' else 'shop' end,
    case when i % 500 in (0, 1) then 'JPY' else 'EUR' end, i % 100000,
    case when i % 3 = 0 then 'own.some' end, 'p', 'e' || cast(i as text),
    '2026-11-19T10:30:00.000000Z', 'bench', '2026-11-19T10:30:00.000000Z', 'bench',
    case when i % 5000 = 0 then 'mara' end,
    '2026-11-19T10:40:00.000000Z', 'bench', 'decided failed: declined_final'
from n;

insert into tieout_checks (table_name, key, state, account, currency, amount_minor, image,
    first_seen_at, fingerprint_seen_at, aged_from, checks, last_outcome, last_reason, last_run)
with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000)
select 'payments', cast(i as text), case when i % 2 = 0 then 'case' else 'closed' end, 'shop', 'EUR',
    i % 100000, 'image', '2026-11-19T10:30:00.000000Z', '2026-11-19T10:30:00.000000Z',
    '2026-11-19T10:30:00.000000Z', 1, 'review', 'decline_unknown', 'bench'
from n;

insert into tieout_journal (run_id, writer, seq, at, table_name, key, account, tag, kind, currency,
    amount_minor, asked, outcome, reason, text, applied, status_before, status_after, fingerprint,
    evidence_sha256, checks, case_number, policy_version, prev_hash, hash)
with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000)
select 'bench', '1', i, '2026-11-19T10:30:00.000000Z', 'payments', cast(i as text), 'shop',
    'pay_' || cast(i as text), 'charge', 'EUR', i % 100000, 'run', 'review', 'decline_unknown',
    'a failure that no rule knows', 'yes', 'processing', 'processing', 'f', 'e' || cast(i as text), 1,
    (i + 1) / 2 + 500000 * (i % 2), 'p', 'h', 'h'
from n;

analyze;
