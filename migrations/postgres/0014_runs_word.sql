-- Who decides carries nothing out: what a run did is a run's to say.

-- A run is whoever may write the journal; and it is under way. `home` is the tables' schema.
create function tieout_may_speak_for_run(home text, run text) returns boolean
language plpgsql as $$
declare
    is_running boolean;
begin
    if not has_table_privilege(format('%I.tieout_journal', home), 'insert') then
        return false;
    end if;
    execute format('select exists (select from %I.tieout_runs where id = $1 '
        'and state = ''running'')', home) into is_running using run;
    return is_running;
end
$$;

create or replace function tieout_case_note_guard() returns trigger language plpgsql as $$
declare
    is_runs boolean;
begin
    if new.run_id is null and new.by_whom <> session_user then
        raise exception 'a note is by the session''s user %, and not by %', session_user, new.by_whom
            using errcode = 'restrict_violation';
    end if;
    if new.run_id is null and new.kind in ('carried_out', 'refused') then
        raise exception 'what was carried out or refused is a run''s to note'
            using errcode = 'restrict_violation';
    end if;
    if new.run_id is not null then
        execute format('select %I.tieout_may_speak_for_run($1, $2)', tg_table_schema)
            into is_runs using tg_table_schema::text, new.run_id;
        if not is_runs then
            raise exception 'a note of run % is that run''s to write, and not %''s', new.run_id,
                session_user using errcode = 'restrict_violation';
        end if;
    end if;
    return new;
end
$$;

-- Beside the guard of what was said: how it ended.
create function tieout_proposal_end_guard() returns trigger language plpgsql as $$
declare
    is_runs boolean := false;
begin
    if new.state not in ('refused', 'carried_out') then
        if new.ended_run is not null then
            raise exception 'a proposal that is % was ended by no run', new.state
                using errcode = 'restrict_violation';
        end if;
        return new;
    end if;
    if new.ended_run is not null then
        execute format('select %I.tieout_may_speak_for_run($1, $2)', tg_table_schema)
            into is_runs using tg_table_schema::text, new.ended_run;
    end if;
    if not is_runs then
        raise exception 'a proposal is % by a run, and not by %', new.state, session_user
            using errcode = 'restrict_violation';
    end if;
    return new;
end
$$;
create trigger tieout_proposals_end_guard before insert or update on tieout_proposals
    for each row execute function tieout_proposal_end_guard();

-- A row's case is closed by the run that settled its row; a file's by whoever lets the file count.
create function tieout_case_close_guard() returns trigger language plpgsql as $$
declare
    is_runs boolean := false;
begin
    if new.closed_run is not null then
        execute format('select %I.tieout_may_speak_for_run($1, $2)', tg_table_schema)
            into is_runs using tg_table_schema::text, new.closed_run;
    end if;
    if not is_runs then
        raise exception 'the case of a row is closed by a run, and not by %', session_user
            using errcode = 'restrict_violation';
    end if;
    return new;
end
$$;
create trigger tieout_cases_close_guard before update on tieout_cases for each row
    when (new.subject_kind = 'row' and (new.state, new.closed_at, new.resolution)
        is distinct from (old.state, old.closed_at, old.resolution))
    execute function tieout_case_close_guard();
