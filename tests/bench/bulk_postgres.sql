-- What a set-based script would do instead of tieout for rows whose money arrived: the same
-- tables, the same rows, the same bytes of evidence, in one transaction. `psp_answers` holds what
-- the PSP said, loaded before the clock starts. The journal's hashes stand alone here: chaining
-- them is not set-based work, so the script is spared it.
begin;
insert into tieout_runs (id, command, state, started_at, heartbeat_at, host, pid, version,
    config_sha256, policy_version, scope)
values ('peer', 'run', 'running', now(), now(), 'peer', 1, '0', '0', '0', '{}');

insert into tieout_checks (table_name, key, state, account, currency, amount_minor,
    row_created_at, image, first_seen_at, fingerprint_seen_at, aged_from, next_check_at)
select 'charges', c.id::text, 'open', 'stripe', upper(c.currency), c.amount_cents, c.created_at,
    row(c.id, c.amount_cents, c.currency, c.status, c.provider, c.created_at,
        c.last_attempted_at, c.provider_payment_id)::text,
    now(), now(), now(), now()
from charges c
where c.status = 'processing' and c.created_at < now() - interval '20 minutes';

update tieout_checks set lease_token = 1, lease_run = 'peer',
    lease_until = now() + interval '2 minutes', last_run = 'peer'
where table_name = 'charges' and state = 'open';

insert into tieout_run_totals (run_id, table_name, currency, side, rows, amount_minor)
select 'peer', 'charges', currency, 'claimed', count(*), sum(amount_minor)
from tieout_checks where lease_run = 'peer' group by currency;

create temporary table decided on commit drop as
select c.id, k.image, k.currency, k.amount_minor, c.created_at, c.last_attempted_at, p.reference,
    json_build_object('schema', 1, 'row', k.image, 'objects', p.body)::text as evidence
from charges c
join tieout_checks k on k.table_name = 'charges' and k.key = c.id::text
join psp_answers p on p.id = c.id
where c.status = 'processing' and p.amount = c.amount_cents and p.currency = c.currency;

update charges c set status = 'succeeded', updated_at = now(), provider_payment_id = d.reference
from decided d where c.id = d.id and c.status = 'processing';

insert into tieout_evidence (sha256, body, created_at)
select encode(sha256(convert_to(evidence, 'UTF8')), 'hex'), evidence, now() from decided
on conflict do nothing;

insert into tieout_references (account, psp_reference, table_name, key, run_id, at)
select 'stripe', reference, 'charges', id::text, 'peer', now() from decided;

insert into tieout_journal (run_id, writer, seq, at, table_name, key, account, tag, kind,
    currency, amount_minor, asked, outcome, reason, text, applied, status_before, status_after,
    psp_reference, psp_status, psp_currency, psp_amount_minor, fingerprint, evidence_sha256,
    row_created_at, row_attempted_at, checks, policy_version, prev_hash, hash)
select 'peer', '1', row_number() over (order by id), now(), 'charges', id::text, 'stripe',
    id::text, 'charge', currency, amount_minor, 'run', 'succeeded', 'captured',
    reference || ' captured ' || amount_minor || ' ' || currency || ' (exact)', 'yes',
    'processing', 'succeeded', reference, 'succeeded', currency, amount_minor,
    encode(sha256(convert_to(image, 'UTF8')), 'hex'),
    encode(sha256(convert_to(evidence, 'UTF8')), 'hex'),
    created_at, last_attempted_at, 1, '0', 'none',
    encode(sha256(convert_to(image || reference, 'UTF8')), 'hex')
from decided;

insert into tieout_outbox (event_id, table_name, key, version, kind, run_id, staged_at, payload)
select 'evt_' || left(encode(sha256(convert_to('charges' || id, 'UTF8')), 'hex'), 32), 'charges',
    id::text, 1, 'transaction.succeeded', 'peer', now(),
    json_build_object('schema', 'tieout.event/1', 'type', 'transaction.succeeded', 'table',
        'charges', 'key', id::text, 'version', 1, 'account', 'stripe', 'amount_minor',
        amount_minor, 'currency', currency, 'reason', 'captured', 'psp_reference', reference,
        'decided_at', now(), 'hand_back', null)::text
from decided;

update tieout_checks k set state = 'closed', next_check_at = null, lease_run = null,
    lease_until = null, checks = 1, events = 1, last_outcome = 'succeeded',
    last_reason = 'captured',
    image = row(c.id, c.amount_cents, c.currency, c.status, c.provider, c.created_at,
        c.last_attempted_at, c.provider_payment_id)::text
from charges c
where k.table_name = 'charges' and k.key = c.id::text and k.lease_run = 'peer';

update tieout_runs set state = 'complete', ended_at = now(), close_number = 1000000,
    close_hash = 'peer', prev_close_hash = 'peer' where id = 'peer';
commit;
