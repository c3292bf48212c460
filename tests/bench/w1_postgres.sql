-- What a set-based script would do instead of tieout with a bank's file: the same tables and rows
-- (the file and its lines, the work list, statuses, evidence, references, journal, cases), written
-- once and in their last state; evidence says as much as tieout's. `staged` holds the file. The
-- journal's hashes stand alone here: chaining them is not set-based work, so the script is spared
-- it, and the file's checks as well.
insert into tieout_runs (id, command, state, started_at, heartbeat_at, host, pid, version,
    config_sha256, policy_version, scope)
values ('peer', 'run', 'running', now(), now(), 'peer', 1, '0', '0', '0', '{}');

insert into tieout_files (sha256, source, name, account, raw_sha256, raw_bytes, format, state,
    received_at, run_id, statements, entries, lines)
select '0', 'local', 'bank.csv', 'bank', '0', 1, 'table', 'loaded', now(), 'peer', 1, count(*),
    count(*) from staged;

create temporary table decided on commit drop as
select p.id, 'pay_' || p.id as tag, p.amount, p.currency, p.created_at, p.attempted_at, i.image,
    l.n, l.minor,
    case when l.n is null then 'within_grace' when l.lines > 1 then 'duplicate_capture'
        when l.minor <> p.amount then 'amount_mismatch' else 'settled' end as reason,
    format('{"schema":1,"now":"%1$s","asked":"run","row":{"key":{"table":"payments","id":"%2$s"},'
        '"status":"%3$s","processing":true,"kind":"charge","money":{"minor":%4$s,"currency":"%5$s"},'
        '"account":{"known":"bank"},"tag":{"usable":"pay_%2$s"},"created_at":"%6$s",'
        '"attempted_at":"%7$s","attempts":"column","image":%8$s},"evidence":[{"account":"bank",'
        '"route":"file","asked_at":"%1$s","answer":%9$s}],"history":{"first_seen_at":"%1$s",'
        '"fingerprint_seen_at":"%1$s","first_account":null,"aged_from":"%1$s"}}',
        i.now, p.id, p.status, p.amount, p.currency, i.created, i.attempted, to_json(i.image),
        case when l.n is null then format('{"nothing":{"route":"file","kinds":["charge","refund",'
            '"payout"],"from":"%1$s","to":"%1$s","asked_at":"%1$s","counts_as_miss":false,'
            '"lag_secs":0,"listed":0}}', i.now)
        else format('{"found":{"objects":[{"reference":"1:%1$s","kind":"charge","state":"captured",'
            '"status":"movement (1:%1$s)","amount":{"minor":%2$s,"currency":"EUR"},"captured":'
            '{"minor":%2$s,"currency":"EUR"},"created_at":"%3$s","tag":"pay_%4$s"}]}}',
            l.n, l.minor, i.booked, p.id) end) as evidence
from payments p
left join (select tag, count(*) as lines, min(n) as n, min(minor) as minor, min(day) as day
    from staged group by tag) l on l.tag = 'pay_' || p.id
cross join lateral (select row(p.id, p.amount, p.currency, p.status, p.created_at, p.attempted_at,
        p.psp_ref)::text as image,
    to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now,
    to_char(p.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as created,
    to_char(p.attempted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as attempted,
    l.day || 'T23:59:59Z' as booked offset 0) i
where p.status = 'processing' and p.created_at < now() - interval '20 minutes';
create unique index on decided (tag);
analyze decided;

insert into tieout_lines (file_id, position, statement, entry, file_line, account, kind, direction,
    currency, amount_minor, status, decides, itemised, tag, booked_on, refs, raw, state, reason,
    table_name, key, run_id, matched_at, row_currency, row_minor, seen_run, seen_reason)
select 1, s.n, 1, s.n, s.n + 1, 'bank', 'movement', 'credit', 'EUR', s.minor, 'booked', true, true,
    s.tag, s.day, '[["merchant_reference","' || s.tag || '"]]',
    s.day || ';' || s.minor || ';' || s.tag,
    case when d.id is null then 'open' else 'matched' end, coalesce(d.reason, 'orphan'),
    case when d.id is not null then 'payments' end, d.id::text,
    case when d.id is not null then 'peer' end, case when d.id is not null then now() end,
    case when d.id is not null then 'EUR' end, d.amount,
    case when d.id is null then 'peer' end, case when d.id is null then 'orphan' end
from staged s left join decided d on d.tag = s.tag;

insert into tieout_statements (file_id, number, account, currency, finality, covers_attempts,
    entries, lines, state)
select 1, 1, 'bank', 'EUR', 'final', false, count(*), count(*), 'live' from staged;

update payments as p set status = 'paid', updated_at = now(), psp_ref = '1:' || d.n
from decided d where d.reason = 'settled' and p.id = d.id and p.status = 'processing';

insert into tieout_checks (table_name, key, state, account, currency, amount_minor,
    row_created_at, image, first_seen_at, fingerprint_seen_at, aged_from, next_check_at, checks,
    events, last_outcome, last_reason, last_run, lease_token)
select 'payments', id::text,
    case reason when 'settled' then 'closed' when 'within_grace' then 'open' else 'case' end,
    'bank', currency, amount, created_at, image, now(), now(), now(),
    case reason when 'within_grace' then now() + interval '5 minutes' end, 1,
    case reason when 'settled' then 1 else 0 end,
    case reason when 'settled' then 'succeeded' when 'within_grace' then 'wait' else 'review' end,
    reason, 'peer', 1
from decided;

insert into tieout_run_totals (run_id, table_name, currency, side, rows, amount_minor)
select 'peer', 'payments', currency, 'claimed', count(*), sum(amount) from decided group by currency;

insert into tieout_evidence (sha256, body, created_at)
select encode(sha256(convert_to(evidence, 'UTF8')), 'hex'), evidence, now() from decided
on conflict do nothing;

insert into tieout_references (account, psp_reference, table_name, key, run_id, at)
select 'bank', '1:' || n, 'payments', id::text, 'peer', now() from decided where reason = 'settled';

insert into tieout_cases (subject_kind, table_name, subject, reason, text, state, account, currency,
    amount_minor, policy_version, evidence_sha256, opened_at, opened_run, last_seen_at, last_run)
select 'row', 'payments', id::text, reason, '1:' || n || ' captured ' || minor, 'open', 'bank',
    currency, amount, '0', encode(sha256(convert_to(evidence, 'UTF8')), 'hex'), now(), 'peer',
    now(), 'peer'
from decided where reason in ('amount_mismatch', 'duplicate_capture');

insert into tieout_journal (run_id, writer, seq, at, table_name, key, account, tag, kind,
    currency, amount_minor, asked, outcome, reason, text, applied, status_before, status_after,
    psp_reference, psp_status, psp_currency, psp_amount_minor, fingerprint, evidence_sha256,
    row_created_at, row_attempted_at, checks, policy_version, prev_hash, hash)
select 'peer', '1', row_number() over (order by id), now(), 'payments', id::text, 'bank', tag,
    'charge', currency, amount, 'run',
    case reason when 'settled' then 'succeeded' when 'within_grace' then 'wait' else 'review' end,
    reason, '1:' || coalesce(n::text, '-') || ' ' || reason || ' ' || amount, 'yes', 'processing',
    case reason when 'settled' then 'paid' else 'processing' end, '1:' || n, 'booked', currency,
    minor, encode(sha256(convert_to(image, 'UTF8')), 'hex'),
    encode(sha256(convert_to(evidence, 'UTF8')), 'hex'), created_at, attempted_at, 1, '0', 'none',
    encode(sha256(convert_to(image || reason, 'UTF8')), 'hex')
from decided;

update tieout_runs set state = 'complete', ended_at = now(), close_number = 1000000,
    close_hash = 'peer', prev_close_hash = 'peer' where id = 'peer';
