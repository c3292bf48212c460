-- Who decides carries nothing out: what a run did is a run's to say, and it is under way.

create trigger tieout_case_notes_of_run before insert on tieout_case_notes
when (new.run_id is null and new.kind in ('carried_out', 'refused'))
    or (new.run_id is not null and not exists (select 1 from tieout_runs r
        where r.id = new.run_id and r.state = 'running'))
begin
    select raise(abort, 'tieout_case_notes: what a run did is a run''s to note');
end;
create trigger tieout_proposals_begin before insert on tieout_proposals
when new.ended_run is not null
begin
    select raise(abort, 'tieout_proposals: a proposal begins with no end');
end;
create trigger tieout_proposals_end before update on tieout_proposals
when (new.state in ('refused', 'carried_out')) <> (new.ended_run is not null)
    or (new.ended_run is not null and not exists (select 1 from tieout_runs r
        where r.id = new.ended_run and r.state = 'running'))
begin
    select raise(abort, 'tieout_proposals: it is carried out or refused by a run');
end;
-- A row's case is closed by the run that settled its row; a file's by whoever lets the file count.
create trigger tieout_cases_close before update on tieout_cases
when new.subject_kind = 'row'
    and (new.state, new.closed_at, new.resolution)
        is not (old.state, old.closed_at, old.resolution)
    and not exists (select 1 from tieout_runs r
        where r.id = new.closed_run and r.state = 'running')
begin
    select raise(abort, 'tieout_cases: the case of a row is closed by a run');
end;
