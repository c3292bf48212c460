-- How a run ended, and when, is said once. What is pruned goes by it, and a run's login could have
-- dated a closed one back. Only what could not be told of its end is noted afterwards.
create function tieout_closed_run_guard() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
    if to_jsonb(new) - 'notes' is distinct from to_jsonb(old) - 'notes'
        or new.notes::jsonb - 'monitoring' is distinct from old.notes::jsonb - 'monitoring'
    then
        raise exception 'run % is closed: UPDATE is refused', old.id
            using errcode = 'restrict_violation';
    end if;
    return new;
end
$$;
create trigger tieout_runs_closed before update on tieout_runs
    for each row when (old.state <> 'running') execute function tieout_closed_run_guard();
