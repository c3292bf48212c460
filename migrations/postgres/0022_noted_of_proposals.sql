-- A history says of a decision only what its proposal says: that it was proposed, approved, turned
-- down or taken back, and by whom, is no sentence that a person adds.

create function tieout_case_note_proposal_guard() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
declare
    is_so boolean;
begin
    execute format('select exists (select from %I.tieout_proposals p where p.number = $1 '
        'and p.case_number = $2 and case $3 when ''proposed'' then p.proposed_by = $4 '
        'when ''approved'' then p.approved_by = $4 '
        'else p.state = $3 and p.ended_by = $4 end)', tg_table_schema)
        into is_so using new.proposal, new.case_number, new.kind, new.by_whom;
    if not is_so then
        raise exception 'no proposal of C-% was % by %', new.case_number, new.kind, new.by_whom
            using errcode = 'restrict_violation';
    end if;
    return new;
end
$$;
create trigger tieout_case_notes_proposal before insert on tieout_case_notes for each row
    when (new.run_id is null and new.kind in ('proposed', 'approved', 'rejected', 'withdrawn'))
    execute function tieout_case_note_proposal_guard();
