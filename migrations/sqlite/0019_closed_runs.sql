-- How a run ended, and when, is said once: what is pruned goes by it. Only what could not be told of
-- its end is noted afterwards. The twin of migrations/postgres.
create trigger tieout_runs_closed before update on tieout_runs
when old.state <> 'running' and (
    (new.id, new.command, new.state, new.started_at, new.heartbeat_at, new.ended_at, new.host,
    new.pid, new.version, new.config_sha256, new.policy_version, new.scope, new.exit_code,
    new.exit_class, new.journal_count, new.close_number, new.prev_close_hash, new.close_hash)
    is not
    (old.id, old.command, old.state, old.started_at, old.heartbeat_at, old.ended_at, old.host,
    old.pid, old.version, old.config_sha256, old.policy_version, old.scope, old.exit_code,
    old.exit_class, old.journal_count, old.close_number, old.prev_close_hash, old.close_hash)
    or json_remove(new.notes, '$.monitoring') is not json_remove(old.notes, '$.monitoring'))
begin
    select raise(abort, 'the run is closed: UPDATE is refused');
end;
-- `insert or replace` would take the closed run away without a word to the trigger above.
create trigger tieout_runs_no_replace before insert on tieout_runs
when exists (select 1 from tieout_runs r
    where r.state <> 'running' and (r.id = new.id or r.close_number = new.close_number))
begin
    select raise(abort, 'a closed run of this id or number is there: INSERT is refused');
end;
