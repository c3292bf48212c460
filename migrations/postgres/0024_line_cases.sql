-- Money of a settlement file that no row explains has a case of its own.

-- What its case says: the reason that the open one has, or `left`, once a person left it as it is,
-- whatever became of that case since. Null: it has none.
alter table tieout_lines add column cased text;

-- Like a row's, a line's case is closed by a run, which knows what the line came to.
create or replace function tieout_case_close_guard() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
declare
    is_runs boolean := false;
begin
    if new.closed_run is not null then
        execute format('select %I.tieout_may_speak_for_run($1, $2)', tg_table_schema)
            into is_runs using tg_table_schema::text, new.closed_run;
    end if;
    if not is_runs then
        raise exception 'the case of a % is closed by a run, and not by %',
            new.subject_kind, session_user using errcode = 'restrict_violation';
    end if;
    return new;
end
$$;
drop trigger tieout_cases_close_guard on tieout_cases;
create trigger tieout_cases_close_guard before update on tieout_cases for each row
    when (new.subject_kind in ('row', 'line') and (new.state, new.closed_at, new.resolution)
        is distinct from (old.state, old.closed_at, old.resolution))
    execute function tieout_case_close_guard();
