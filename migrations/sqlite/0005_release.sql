-- What fetching and letting files count need to remember.

-- The run that last read a quarantined file's bytes; null: the one that brought them in. Another
-- version, or another configuration, reads them once more.
alter table tieout_files add column tried_run text references tieout_runs (id);

-- A line that a correction took out keeps the row that had it, so that reports of the runs before
-- are built again as they were. SQLite changes a check only with its table.
drop index tieout_lines_tag;
drop index tieout_lines_open;
drop index tieout_lines_row;
drop index tieout_lines_run;
alter table tieout_lines rename to tieout_lines_before;
create table tieout_lines (
    -- No foreign key: a file and its lines come and go in one transaction, and the check of each
    -- of a million lines would cost more than writing them.
    file_id           integer not null,
    -- Its place in the file, from 1.
    position          integer not null check (position > 0),
    statement         integer not null,
    entry             integer not null,
    -- The line of the file that it begins on.
    file_line         integer not null,
    account           text not null,
    kind              text not null check (kind in ('movement', 'payment', 'refund', 'chargeback',
        'chargeback_reversed', 'return', 'fee', 'payout', 'adjustment', 'attempt')),
    direction         text not null check (direction in ('credit', 'debit')),
    currency          text not null,
    -- Null: the file gives this payment of a batch no amount of its own.
    amount_minor      integer check (amount_minor >= 0),
    gross_currency    text,
    gross_minor       integer,
    fee_currency      text,
    fee_minor         integer,
    net_currency      text,
    net_minor         integer,
    status            text not null check (status in ('booked', 'pending', 'info', 'future')),
    -- True: a booked line of a final statement that holds: only such a line may decide a row.
    decides           integer not null check (decides in (0, 1)),
    itemised          integer not null check (itemised in (0, 1)),
    -- The first reference that the configuration takes for a tag; the others are in tieout_line_tags.
    tag               text,
    psp_reference     text,
    original          text,
    return_reason     text,
    type_code         text,
    bank_reference    text,
    batch             text,
    booked_on         text,
    value_on          text,
    -- JSON: [kind, text] of every reference.
    refs              text not null default '[]',
    raw               text not null,
    -- open: no row yet. matched: a row's. excluded: no row's by its kind (fee, payout, interim).
    state             text not null check (state in ('open', 'matched', 'excluded', 'superseded')),
    -- Why it is open or excluded, as a reason's code, once it was looked at.
    reason            text,
    table_name        text,
    key               text,
    run_id            text,
    matched_at        text,
    primary key (file_id, position),
    check (case state when 'matched' then key is not null when 'superseded' then 1
        else key is null end),
    check ((key is null) = (table_name is null)),
    check ((key is null) = (run_id is null)),
    check ((key is null) = (matched_at is null))
) strict;

insert into tieout_lines (
    file_id, position, statement, entry, file_line, account, kind, direction, currency,
    amount_minor, gross_currency, gross_minor, fee_currency, fee_minor, net_currency,
    net_minor, status, decides, itemised, tag, psp_reference, original, return_reason,
    type_code, bank_reference, batch, booked_on, value_on, refs, raw, state, reason,
    table_name, key, run_id, matched_at)
select
    file_id, position, statement, entry, file_line, account, kind, direction, currency,
    amount_minor, gross_currency, gross_minor, fee_currency, fee_minor, net_currency,
    net_minor, status, decides, itemised, tag, psp_reference, original, return_reason,
    type_code, bank_reference, batch, booked_on, value_on, refs, raw, state, reason,
    table_name, key, run_id, matched_at
from tieout_lines_before;
drop table tieout_lines_before;
create index tieout_lines_tag on tieout_lines (account, tag) where tag is not null;
create index tieout_lines_open on tieout_lines (account, file_id, position)
    where state = 'open' and decides = 1;
create index tieout_lines_row on tieout_lines (table_name, key) where key is not null;
create index tieout_lines_run on tieout_lines (run_id) where run_id is not null;
