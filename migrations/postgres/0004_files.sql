-- Settlement files: what was fetched, whether it is whole, its statements and lines, and which row
-- each line belongs to. A file's lines are there all or not at all.

create table tieout_files (
    id                bigint generated always as identity primary key,
    -- Of the bytes after decryption and decompression: the same money under another name or
    -- wrapping is the same file.
    sha256            text not null unique,
    source            text not null,
    name              text not null,
    -- The PSP account of the configuration that its lines belong to.
    account           text not null,
    raw_sha256        text not null,
    raw_bytes         bigint not null check (raw_bytes >= 0),
    -- As the source tells it; not a fact of this database's clock.
    modified_at       timestamptz,
    -- Where the bytes are kept, relative to the spool.
    spooled_as        text,
    format            text not null,
    version           text not null default '',
    -- loaded: its lines are here. quarantined: something does not tie, and no line is here; or a
    -- person took it out, and its lines are superseded. released: a person let it count.
    state             text not null check (state in ('loaded', 'quarantined', 'released')),
    received_at       timestamptz not null,
    run_id            text not null references tieout_runs (id),
    statements        bigint not null default 0 check (statements >= 0),
    entries           bigint not null default 0 check (entries >= 0),
    lines             bigint not null default 0 check (lines >= 0),
    -- JSON: entries by currency, {"EUR": {"credits": n, "debits": n, "credit_minor": …}}.
    totals            text not null default '{}',
    -- JSON: the first problems; all are counted.
    problems          text not null default '[]',
    problems_total    bigint not null default 0,
    -- Who changed its state by hand, when and why.
    changed_at        timestamptz,
    changed_by        text,
    changed_why       text,
    check (state <> 'quarantined' or lines = 0 or changed_at is not null),
    check ((changed_at is null) = (changed_by is null)),
    check ((changed_at is null) = (changed_why is null)),
    check (state <> 'released' or changed_at is not null)
);
create index tieout_files_received on tieout_files (received_at);
create index tieout_files_run on tieout_files (run_id);

-- Every name that the same bytes came under: what a listing shows again needs no download.
create table tieout_file_names (
    source            text not null,
    name              text not null,
    raw_sha256        text not null,
    raw_bytes         bigint not null,
    modified_at       timestamptz,
    file_id           bigint not null references tieout_files (id),
    first_seen_at     timestamptz not null,
    run_id            text not null,
    archived_at       timestamptz,
    primary key (source, name, raw_sha256)
);
create index tieout_file_names_file on tieout_file_names (file_id);

create table tieout_statements (
    file_id           bigint not null references tieout_files (id),
    number            bigint not null check (number > 0),
    -- The PSP account of the configuration.
    account           text not null,
    -- As the file writes it: an IBAN, a merchant account.
    bank_account      text not null default '',
    currency          text not null default '',
    statement_id      text not null default '',
    sequence          text not null default '',
    from_on           date,
    to_on             date,
    finality          text not null check (finality in ('final', 'interim', 'notice')),
    covers_attempts   boolean not null,
    opening_minor     bigint,
    closing_minor     bigint,
    entries           bigint not null,
    lines             bigint not null,
    -- Null: it declares nothing that could tie it.
    ties              boolean,
    -- held: a person must say whether it counts. superseded: another took its place, or its file
    -- was taken out.
    state             text not null check (state in ('live', 'held', 'superseded')),
    -- Why it is or was held. corrected: the same statement was loaded in other bytes; the others
    -- are what it says of itself.
    held_for          text check (held_for in
        ('corrected', 'copy', 'duplicate', 'deletion', 'correction', 'test')),
    -- The live statement that this one corrects, or that took its place.
    rival_file        bigint references tieout_files (id),
    rival_number      bigint,
    primary key (file_id, number),
    check (state <> 'held' or held_for is not null),
    check (held_for is null or held_for <> 'corrected' or rival_file is not null),
    check ((rival_file is null) = (rival_number is null))
);
-- Ids are used again after a year: the period is part of what a statement is.
create unique index tieout_statements_one_live on tieout_statements
    (account, bank_account, currency, statement_id, sequence, coalesce(from_on, date '0001-01-01'),
     coalesce(to_on, date '0001-01-01'), finality)
    where state = 'live' and (statement_id <> '' or sequence <> '');
create index tieout_statements_period on tieout_statements (account, to_on) where state = 'live';

create table tieout_lines (
    -- No foreign key: a file and its lines come and go in one transaction, and the check of each
    -- of a million lines would cost more than writing them.
    file_id           bigint not null,
    -- Its place in the file, from 1.
    position          bigint not null check (position > 0),
    statement         bigint not null,
    entry             bigint not null,
    -- The line of the file that it begins on.
    file_line         bigint not null,
    account           text not null,
    kind              text not null check (kind in ('movement', 'payment', 'refund', 'chargeback',
        'chargeback_reversed', 'return', 'fee', 'payout', 'adjustment', 'attempt')),
    direction         text not null check (direction in ('credit', 'debit')),
    currency          text not null,
    -- Null: the file gives this payment of a batch no amount of its own.
    amount_minor      bigint check (amount_minor >= 0),
    gross_currency    text,
    gross_minor       bigint,
    fee_currency      text,
    fee_minor         bigint,
    net_currency      text,
    net_minor         bigint,
    status            text not null check (status in ('booked', 'pending', 'info', 'future')),
    -- True: a booked line of a final statement that holds: only such a line may decide a row.
    decides           boolean not null,
    itemised          boolean not null,
    -- The first reference that the configuration takes for a tag; the others are in tieout_line_tags.
    tag               text,
    psp_reference     text,
    original          text,
    return_reason     text,
    type_code         text,
    bank_reference    text,
    batch             text,
    booked_on         date,
    value_on          date,
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
    matched_at        timestamptz,
    primary key (file_id, position),
    check ((state = 'matched') = (key is not null)),
    check ((key is null) = (table_name is null)),
    check ((key is null) = (run_id is null)),
    check ((key is null) = (matched_at is null))
);
create index tieout_lines_tag on tieout_lines (account, tag) where tag is not null;
create index tieout_lines_open on tieout_lines (account, file_id, position)
    where state = 'open' and decides;
create index tieout_lines_row on tieout_lines (table_name, key) where key is not null;
create index tieout_lines_run on tieout_lines (run_id) where run_id is not null;

-- Further references that a line may be known by: a second tag, the PSP's id, an original's.
create table tieout_line_tags (
    account           text not null,
    text              text not null,
    file_id           bigint not null,
    position          bigint not null,
    primary key (account, text, file_id, position)
);
