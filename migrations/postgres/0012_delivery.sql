-- Events on their way to sinks: what each sink still has to get, and how each sink does.

-- The outbox says what happened; where it went, and how often it was tried, is each delivery's.
alter table tieout_outbox drop column attempts;
alter table tieout_outbox drop column next_attempt_at;
-- Set once the event has its deliveries, one for each sink that wants it.
alter table tieout_outbox add column distributed_at timestamptz;
-- What was staged while there were no sinks is news no more; its hand-backs stand as they are.
update tieout_outbox set distributed_at = staged_at, suppressed_at = staged_at,
    suppressed_why = 'staged before there were sinks'
    where delivered_at is null and suppressed_at is null;
drop index tieout_outbox_due;
create index tieout_outbox_new on tieout_outbox (staged_at, event_id)
    where distributed_at is null;

create table tieout_sinks (
    name              text primary key,
    since             timestamptz not null,
    -- Rounds in a row in which it took nothing; when it is tried again.
    failures          integer not null default 0 check (failures >= 0),
    failing_since     timestamptz,
    next_attempt_at   timestamptz,
    last_error        text,
    last_delivered_at timestamptz,
    -- One deliverer at a time: the token grows with every lease, and only its holder marks.
    lease_token       bigint not null default 0,
    lease_owner       text,
    lease_until       timestamptz,
    check ((lease_owner is null) = (lease_until is null)),
    check ((failures = 0) = (failing_since is null))
);

create table tieout_deliveries (
    sink              text not null,
    event_id          text not null references tieout_outbox (event_id) on delete cascade,
    -- The event's own, so that the order within a transaction is kept by an index.
    table_name        text not null,
    key               text not null,
    version           integer not null check (version > 0),
    state             text not null check (state in
        ('waiting', 'dead', 'delivered', 'suppressed', 'purged')),
    attempts          integer not null default 0 check (attempts >= 0),
    -- Not before this; the order of what is due.
    next_attempt_at   timestamptz not null,
    last_error        text,
    ended_at          timestamptz,
    why               text,
    changed_by        text,
    primary key (event_id, sink),
    check ((state in ('waiting', 'dead')) = (ended_at is null)),
    check (state not in ('suppressed', 'purged') or why is not null),
    check (state <> 'purged' or changed_by is not null)
);
create index tieout_deliveries_due on tieout_deliveries (sink, next_attempt_at, event_id)
    where state = 'waiting';
create index tieout_deliveries_open on tieout_deliveries (sink, table_name, key, version)
    where state in ('waiting', 'dead');
create index tieout_deliveries_dead on tieout_deliveries (sink, event_id) where state = 'dead';
