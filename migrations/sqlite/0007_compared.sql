-- The twin of migrations/postgres: the same columns.
-- A window compared whole: each row, object at the PSP and line of a file in it, once.
create table tieout_compared (
    run_id            text not null references tieout_runs (id),
    number            integer not null check (number > 0),
    bucket            text not null,
    account           text not null,
    table_name        text,
    key               text,
    tag               text not null default '',
    local_status      text,
    currency          text not null default '',
    local_minor       integer,
    psp_reference     text,
    psp_status        text,
    psp_currency      text,
    psp_minor         integer,
    file_id           integer,
    position          integer,
    file_currency     text,
    file_minor        integer,
    at                text,
    note              text not null default '',
    primary key (run_id, number),
    check ((key is null) = (table_name is null)),
    check ((file_id is null) = (position is null))
) strict;
