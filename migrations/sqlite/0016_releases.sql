-- A person's word that a file may count writes no line of it: a run carries the word out. The twin
-- of migrations/postgres: the same columns. A file knows no users, so that nothing here says whose
-- a line or an account's figures are.

create table tieout_releases (
    number            integer primary key autoincrement,
    file_id           integer not null references tieout_files (id),
    -- What the file was when it was said. quarantined: its lines are to be loaded. held: its held
    -- statements are to count.
    what              text not null check (what in ('quarantined', 'held')),
    at                text not null,
    by_whom           text not null check (by_whom <> ''),
    why               text not null check (why <> ''),
    state             text not null check (state in ('waiting', 'carried_out', 'refused')),
    ended_at          text,
    ended_why         text,
    ended_run         text references tieout_runs (id),
    check ((state = 'waiting') = (ended_at is null)),
    check ((ended_at is null) = (ended_why is null)),
    check ((ended_at is null) = (ended_run is null))
) strict;
create unique index tieout_releases_one_waiting on tieout_releases (file_id)
    where state = 'waiting';
create index tieout_releases_file on tieout_releases (file_id, number);

-- It stands as it was said, and a run that is under way ends it.
create trigger tieout_releases_begin before insert on tieout_releases
when new.state <> 'waiting'
begin
    select raise(abort, 'tieout_releases: a release begins as a word that waits');
end;
create trigger tieout_releases_end before update on tieout_releases
when old.state <> 'waiting' or new.state = 'waiting'
    or (new.number, new.file_id, new.what, new.at, new.by_whom, new.why)
        is not (old.number, old.file_id, old.what, old.at, old.by_whom, old.why)
    or not exists (select 1 from tieout_runs r
        where r.id = new.ended_run and r.state = 'running')
begin
    select raise(abort, 'tieout_releases: what was said stands, and a run ends it');
end;
create trigger tieout_releases_no_delete before delete on tieout_releases
begin
    select raise(abort, 'tieout_releases is append-only: DELETE is refused');
end;
