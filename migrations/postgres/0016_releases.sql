-- A person's word that a file may count writes no line of it: a run carries the word out.

create table tieout_releases (
    number            bigint generated always as identity primary key,
    file_id           bigint not null references tieout_files (id),
    -- What the file was when it was said. quarantined: its lines are to be loaded. held: its held
    -- statements are to count.
    what              text not null check (what in ('quarantined', 'held')),
    at                timestamptz not null,
    by_whom           text not null check (by_whom <> ''),
    why               text not null check (why <> ''),
    state             text not null check (state in ('waiting', 'carried_out', 'refused')),
    ended_at          timestamptz,
    ended_why         text,
    ended_run         text references tieout_runs (id),
    check ((state = 'waiting') = (ended_at is null)),
    check ((ended_at is null) = (ended_why is null)),
    check ((ended_at is null) = (ended_run is null))
);
create unique index tieout_releases_one_waiting on tieout_releases (file_id)
    where state = 'waiting';
create index tieout_releases_file on tieout_releases (file_id, number);

-- It is the word of the session's user, it stands as it was said, and a run ends it.
create function tieout_release_guard() returns trigger language plpgsql as $$
declare
    signed text := ' (database user ' || session_user || ')';
    is_runs boolean := false;
begin
    if tg_op = 'INSERT' then
        if new.state = 'waiting' and right(new.by_whom, length(signed)) = signed then
            return new;
        end if;
        raise exception 'a release begins as the word of the session''s user %', session_user
            using errcode = 'restrict_violation';
    end if;
    if old.state <> 'waiting' or new.state = 'waiting'
        or (new.number, new.file_id, new.what, new.at, new.by_whom, new.why)
            is distinct from
            (old.number, old.file_id, old.what, old.at, old.by_whom, old.why)
    then
        raise exception 'what was said of file % stands', old.file_id
            using errcode = 'restrict_violation';
    end if;
    execute format('select %I.tieout_may_speak_for_run($1, $2)', tg_table_schema)
        into is_runs using tg_table_schema::text, new.ended_run;
    if not is_runs then
        raise exception 'a release is carried out or refused by a run, and not by %', session_user
            using errcode = 'restrict_violation';
    end if;
    return new;
end
$$;
create trigger tieout_releases_guard before insert or update on tieout_releases
    for each row execute function tieout_release_guard();
create trigger tieout_releases_no_delete before delete on tieout_releases
    for each row execute function tieout_append_only();
create trigger tieout_releases_no_truncate before truncate on tieout_releases
    for each statement execute function tieout_append_only();

-- What files say decides rows: it is a run's to write, whatever was granted before. Asked once a
-- statement, so that a million lines cost no more than one.
create function tieout_lines_guard() returns trigger language plpgsql as $$
begin
    if not has_table_privilege(format('%I.tieout_journal', tg_table_schema), 'insert') then
        raise exception '% is a run''s to write, and not %''s', tg_table_name, session_user
            using errcode = 'restrict_violation';
    end if;
    return null;
end
$$;
create trigger tieout_files_guard before insert or update on tieout_files
    for each statement execute function tieout_lines_guard();
create trigger tieout_statements_guard before insert or update on tieout_statements
    for each statement execute function tieout_lines_guard();
create trigger tieout_lines_guard before insert or update on tieout_lines
    for each statement execute function tieout_lines_guard();
create trigger tieout_line_tags_guard before insert or update on tieout_line_tags
    for each statement execute function tieout_lines_guard();

-- What runs found out about an account is theirs, and a pause is by who makes it. Rights on single
-- columns cannot say so: pausing locks the whole table.
create function tieout_account_guard() returns trigger language plpgsql as $$
declare
    signed text := ' (database user ' || session_user || ')';
    -- As they were: account, usual_permille, unanswered_since; then the pause.
    account text := new.account;
    usual integer;
    unanswered timestamptz;
    paused timestamptz;
    paused_by text;
    paused_why text;
begin
    if tg_op = 'UPDATE' then
        account := old.account;
        usual := old.usual_permille;
        unanswered := old.unanswered_since;
        paused := old.paused_at;
        paused_by := old.paused_by;
        paused_why := old.paused_why;
    end if;
    if has_table_privilege(format('%I.tieout_journal', tg_table_schema), 'insert') then
        return new;
    end if;
    if (new.account, new.usual_permille, new.unanswered_since)
        is distinct from (account, usual, unanswered)
    then
        raise exception 'what runs found out about account % is theirs, and not %''s', account,
            session_user using errcode = 'restrict_violation';
    end if;
    if new.paused_by is not null
        and (new.paused_at, new.paused_by, new.paused_why)
            is distinct from (paused, paused_by, paused_why)
        and right(new.paused_by, length(signed)) <> signed
    then
        raise exception 'a pause is by the session''s user %, and not by %', session_user,
            new.paused_by using errcode = 'restrict_violation';
    end if;
    return new;
end
$$;
create trigger tieout_accounts_guard before insert or update on tieout_accounts
    for each row execute function tieout_account_guard();
