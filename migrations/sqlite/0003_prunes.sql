-- Pruning: a closed run may leave the journal whole, and leaves its chains' heads behind, so that
-- the chain of the runs still verifies. Nobody else may take anything out of it.
-- The twin of migrations/postgres: the same columns, held equal by the conformance suite.

create table tieout_prunes (
    run_id            text primary key references tieout_runs (id),
    -- open: within the transaction that prunes it, and never after it.
    state             text not null check (state in ('open', 'done')),
    pruned_at         text not null,
    pruned_by         text not null,
    records           integer not null check (records >= 0),
    -- JSON: writer, count and hash of each chain's head.
    heads             text not null
) strict;
create index tieout_prunes_open on tieout_prunes (run_id) where state = 'open';

drop trigger tieout_journal_no_delete;
create trigger tieout_journal_no_delete before delete on tieout_journal
when not exists (select 1 from tieout_prunes where run_id = old.run_id and state = 'open')
begin
    select raise(abort, 'tieout_journal is append-only: DELETE is refused');
end;
drop trigger tieout_evidence_no_delete;
create trigger tieout_evidence_no_delete before delete on tieout_evidence
when not exists (select 1 from tieout_prunes where state = 'open')
begin
    select raise(abort, 'tieout_evidence is append-only: DELETE is refused');
end;

create trigger tieout_prunes_guard_insert before insert on tieout_prunes
when new.state <> 'open' or not exists
    (select 1 from tieout_runs where id = new.run_id and close_number is not null)
begin
    select raise(abort, 'tieout_prunes is append-only: INSERT is refused');
end;
create trigger tieout_prunes_guard_update before update on tieout_prunes
when not (old.state = 'open' and new.state = 'done'
    and (new.run_id, new.pruned_at, new.pruned_by, new.records, new.heads)
    is (old.run_id, old.pruned_at, old.pruned_by, old.records, old.heads))
begin
    select raise(abort, 'tieout_prunes is append-only: UPDATE is refused');
end;
create trigger tieout_prunes_guard_delete before delete on tieout_prunes
begin
    select raise(abort, 'tieout_prunes is append-only: DELETE is refused');
end;
