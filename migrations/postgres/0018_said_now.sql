-- What people say is said now: a word that could be dated back would look as if it had been there
-- before what it answers. Held for every login that may not write the journal; what a run notes is
-- of its batch's time.
--
-- The program asks the server's clock before it begins to write, and one word of thousands of cases
-- takes minutes: so a word may be up to 5 minutes older than its transaction, and older than 5
-- minutes only by what its transaction took. Who keeps one open gains an hour at most.
create function tieout_said_now_guard() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
declare
    said timestamptz := (to_jsonb(new) ->> tg_argv[0])::timestamptz;
    clock timestamptz := clock_timestamp();
begin
    if said is null
        or has_table_privilege(format('%I.tieout_journal', tg_table_schema), 'insert')
    then
        return new;
    end if;
    if said > clock + interval '5 minutes'
        or said < transaction_timestamp() - interval '5 minutes'
        or said < clock - interval '1 hour'
    then
        raise exception '% of % is %, and the server''s clock says %', tg_argv[0], tg_table_name,
            said, clock using errcode = 'restrict_violation';
    end if;
    return new;
end
$$;

create trigger tieout_case_notes_now before insert on tieout_case_notes
    for each row execute function tieout_said_now_guard('at');
create trigger tieout_proposals_now before insert on tieout_proposals
    for each row execute function tieout_said_now_guard('proposed_at');
create trigger tieout_proposals_approved_now before update on tieout_proposals
    for each row when (new.approved_at is distinct from old.approved_at)
    execute function tieout_said_now_guard('approved_at');
create trigger tieout_proposals_ended_now before update on tieout_proposals
    for each row when (new.ended_at is distinct from old.ended_at)
    execute function tieout_said_now_guard('ended_at');
create trigger tieout_releases_now before insert on tieout_releases
    for each row execute function tieout_said_now_guard('at');
create trigger tieout_accounts_now before insert on tieout_accounts
    for each row execute function tieout_said_now_guard('paused_at');
create trigger tieout_accounts_paused_now before update on tieout_accounts
    for each row when (new.paused_at is distinct from old.paused_at)
    execute function tieout_said_now_guard('paused_at');
