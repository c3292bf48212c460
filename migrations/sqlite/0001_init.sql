-- tieout's own tables, in the same database as the user's, so that one transaction covers both.
-- Instants are RFC 3339 text with Z and six digits, which sorts as time; amounts are minor units.
-- The twin of migrations/postgres: the same columns, held equal by the conformance suite.

create table tieout_runs (
    id                text primary key,
    command           text not null,
    state             text not null check (state in
        ('running', 'complete', 'partial', 'failed', 'interrupted', 'abandoned')),
    started_at        text not null,
    heartbeat_at      text not null,
    ended_at          text,
    host              text not null,
    pid               integer not null,
    version           text not null,
    config_sha256     text not null,
    policy_version    text not null,
    -- JSON: what the command was told to look at.
    scope             text not null,
    exit_code         integer,
    exit_class        text,
    -- JSON: what each account was asked, what the brake counted, what was not examined.
    notes             text not null default '{}',
    journal_count     integer not null default 0,
    close_number      integer unique,
    prev_close_hash   text,
    close_hash        text,
    check ((state = 'running') = (ended_at is null)),
    check ((state = 'running') = (close_number is null)),
    check ((close_number is null) = (close_hash is null))
) strict;
create index tieout_runs_running on tieout_runs (heartbeat_at) where state = 'running';
create index tieout_runs_started on tieout_runs (started_at);

-- Control totals, one side of the tie-out: counted in the transactions that claim and release.
create table tieout_run_totals (
    run_id            text not null references tieout_runs (id),
    table_name        text not null,
    currency          text not null,
    side              text not null check (side in ('claimed', 'released')),
    rows              integer not null check (rows >= 0),
    amount_minor      integer not null,
    primary key (run_id, table_name, currency, side)
) strict;

-- One row per transaction that ever was stuck; never more. It is the work list of every run.
create table tieout_checks (
    table_name          text not null,
    key                 text not null,
    state               text not null check (state in
        ('open', 'case', 'parked', 'watch', 'closed')),
    account             text,
    currency            text not null default '',
    amount_minor        integer not null default 0,
    row_created_at      text,
    -- The row's mapped columns as one text, as tieout last saw them.
    image               text not null,
    first_seen_at       text not null,
    fingerprint_seen_at text not null,
    aged_from           text not null,
    unanswered_since    text,
    unanswered          integer not null default 0 check (unanswered >= 0),
    checks              integer not null default 0 check (checks >= 0),
    -- JSON: the misses kept.
    misses              text not null default '[]',
    handbacks           integer not null default 0 check (handbacks >= 0),
    next_check_at       text,
    watch_from          text,
    watch_step          integer not null default 0 check (watch_step >= 0),
    -- How the row was last ended; waits and reviews leave it.
    ended_as            text check (ended_as in ('succeeded', 'retryable', 'failed')),
    -- How many events were staged for the row: the version of the next is one more.
    events              integer not null default 0 check (events >= 0),
    last_outcome        text,
    last_reason         text,
    last_run            text,
    -- The fencing token grows with every claim; apply writes only while it is unchanged.
    lease_token         integer not null default 0,
    lease_run           text,
    lease_until         text,
    primary key (table_name, key),
    check ((lease_run is null) = (lease_until is null)),
    check (state not in ('open', 'watch') or next_check_at is not null),
    check (state in ('open', 'watch') or next_check_at is null),
    check (state <> 'watch' or watch_from is not null)
) strict;
create index tieout_checks_due on tieout_checks (table_name, next_check_at, key)
    where state in ('open', 'watch');
create index tieout_checks_leased on tieout_checks (lease_run) where lease_run is not null;

create table tieout_evidence (
    sha256            text primary key,
    body              text not null,
    created_at        text not null
) strict;

create table tieout_cases (
    number            integer primary key autoincrement,
    subject_kind      text not null check (subject_kind in ('row', 'line', 'file', 'account')),
    table_name        text not null,
    subject           text not null,
    reason            text not null,
    text              text not null,
    state             text not null check (state in ('open', 'closed')),
    account           text,
    currency          text not null default '',
    amount_minor      integer not null default 0,
    rule              text,
    policy_version    text not null,
    evidence_sha256   text,
    opened_at         text not null,
    opened_run        text not null,
    last_seen_at      text not null,
    last_run          text not null,
    times_seen        integer not null default 1 check (times_seen > 0),
    owner             text,
    closed_at         text,
    closed_run        text,
    resolution        text,
    check ((state = 'closed') = (closed_at is not null)),
    check ((state = 'closed') = (resolution is not null))
) strict;
create unique index tieout_cases_one_open on tieout_cases (subject_kind, table_name, subject)
    where state = 'open';
create index tieout_cases_open on tieout_cases (state, reason, number);
create index tieout_cases_opened on tieout_cases (opened_run);
create index tieout_cases_closed on tieout_cases (closed_run) where closed_run is not null;

create table tieout_handbacks (
    table_name        text not null,
    key               text not null,
    number            integer not null check (number > 0),
    run_id            text not null references tieout_runs (id),
    at                text not null,
    account           text not null,
    fingerprint       text not null,
    permit            text not null check (permit in ('absent', 'declined', 'unattempted')),
    retry             text not null check (retry in ('same_object', 'same_key', 'new_attempt')),
    psp_reference     text,
    same_key_until    text,
    not_before        text,
    charge_before     text not null,
    evidence_sha256   text not null,
    taken_at          text,
    ended_at          text,
    end_reason        text,
    primary key (table_name, key, number),
    check ((retry = 'same_object') = (psp_reference is not null)),
    check ((retry = 'same_key') = (same_key_until is not null)),
    check (same_key_until is null or charge_before <= same_key_until),
    check ((ended_at is null) = (end_reason is null))
) strict;
-- One hand-back of a row at a time.
create unique index tieout_handbacks_one_open on tieout_handbacks (table_name, key)
    where ended_at is null and taken_at is null;

create table tieout_journal (
    run_id            text not null references tieout_runs (id),
    writer            text not null,
    seq               integer not null check (seq > 0),
    at                text not null,
    table_name        text not null,
    key               text not null,
    account           text not null,
    tag               text not null,
    kind              text not null,
    currency          text not null,
    amount_minor      integer not null,
    asked             text not null check (asked in ('run', 'kick', 'watch')),
    outcome           text not null check (outcome in
        ('succeeded', 'retryable', 'failed', 'wait', 'review')),
    reason            text not null,
    rule              text,
    text              text not null,
    -- yes: done as decided. superseded: the row had changed. withheld: the mode forbade it.
    applied           text not null check (applied in ('yes', 'superseded', 'withheld')),
    status_before     text not null,
    status_after      text not null,
    psp_reference     text,
    psp_status        text,
    psp_currency      text,
    psp_amount_minor  integer,
    fingerprint       text not null,
    evidence_sha256   text not null,
    row_created_at    text,
    row_attempted_at  text,
    checks            integer not null,
    next_check_at     text,
    handback_number   integer,
    case_number       integer,
    policy_version    text not null,
    prev_hash         text not null,
    hash              text not null,
    primary key (run_id, writer, seq),
    check (applied <> 'superseded' or status_before = status_after),
    check (handback_number is null or (outcome = 'retryable' and applied = 'yes')),
    check (case_number is null or outcome = 'review')
) strict;
create index tieout_journal_row on tieout_journal (table_name, key, at);
-- Which row a PSP's object belongs to: one object explains one row, for ever.
create table tieout_references (
    account           text not null,
    psp_reference     text not null,
    table_name        text not null,
    key               text not null,
    run_id            text not null references tieout_runs (id),
    at                text not null,
    primary key (account, psp_reference)
) strict;
create index tieout_references_row on tieout_references (table_name, key);

create table tieout_outbox (
    event_id          text primary key,
    table_name        text not null,
    key               text not null,
    version           integer not null check (version > 0),
    kind              text not null check (kind in ('transaction.succeeded',
        'transaction.retryable', 'transaction.failed', 'transaction.review')),
    handback_number   integer,
    run_id            text not null references tieout_runs (id),
    staged_at         text not null,
    payload           text not null,
    delivered_at      text,
    suppressed_at     text,
    suppressed_why    text,
    attempts          integer not null default 0,
    next_attempt_at   text,
    unique (table_name, key, version),
    check (delivered_at is null or suppressed_at is null),
    check ((suppressed_at is null) = (suppressed_why is null))
) strict;
create index tieout_outbox_due on tieout_outbox (staged_at, event_id)
    where delivered_at is null and suppressed_at is null;

-- Settings that people change while runs are going: read inside apply.
create table tieout_accounts (
    account           text primary key,
    paused_at         text,
    paused_by         text,
    paused_why        text,
    unanswered_since  text,
    usual_permille    integer,
    check ((paused_at is null) = (paused_by is null))
) strict;

create trigger tieout_journal_no_update before update on tieout_journal
begin
    select raise(abort, 'tieout_journal is append-only: UPDATE is refused');
end;
create trigger tieout_journal_no_delete before delete on tieout_journal
begin
    select raise(abort, 'tieout_journal is append-only: DELETE is refused');
end;
create trigger tieout_evidence_no_update before update on tieout_evidence
begin
    select raise(abort, 'tieout_evidence is append-only: UPDATE is refused');
end;
create trigger tieout_evidence_no_delete before delete on tieout_evidence
begin
    select raise(abort, 'tieout_evidence is append-only: DELETE is refused');
end;
