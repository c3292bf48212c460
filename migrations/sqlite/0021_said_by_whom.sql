-- Who ended a proposal is known, and what people say is one line. The twin of migrations/postgres:
-- the same columns.

create table tieout_proposals_new (
    number            integer primary key autoincrement,
    case_number       integer not null references tieout_cases (number) on delete cascade,
    -- left: the row stays as it is, and the case closes.
    what              text not null check (what in ('succeeded', 'retryable', 'failed', 'left')),
    -- The object that succeeded, or the one to charge by.
    psp_reference     text,
    -- It takes the place of a person's decision: the case is closed.
    undoes            integer not null check (undoes in (0, 1)),
    why               text not null check (why <> ''),
    -- What the case showed when it was proposed; only that is approved.
    evidence_sha256   text,
    four_eyes         integer not null check (four_eyes in (0, 1)),
    proposed_by       text not null check (proposed_by <> ''),
    proposed_at       text not null,
    state             text not null check (state in
        ('open', 'approved', 'rejected', 'withdrawn', 'refused', 'carried_out')),
    approved_by       text,
    approved_at       text,
    approved_why      text,
    approved_evidence text,
    ended_at          text,
    ended_why         text,
    ended_run         text,
    -- Who took it back or turned it down; of what a run ended, nobody.
    ended_by          text,
    check (psp_reference is null or what in ('succeeded', 'retryable')),
    check ((approved_by is null) = (approved_at is null)),
    check ((approved_by is null) = (approved_why is null)),
    check (approved_by is null or approved_evidence is evidence_sha256),
    -- The maker is not the checker.
    check (four_eyes = 0 or approved_by is null or approved_by <> proposed_by),
    check (state not in ('approved', 'refused', 'carried_out') or approved_by is not null),
    -- What was approved may be taken back until a run carries it out.
    check (state <> 'open' or approved_by is null),
    check ((state in ('open', 'approved')) = (ended_at is null)),
    check ((ended_at is null) = (ended_why is null))
) strict;
insert into tieout_proposals_new (number, case_number, what, psp_reference, undoes, why,
    evidence_sha256, four_eyes, proposed_by, proposed_at, state, approved_by, approved_at,
    approved_why, approved_evidence, ended_at, ended_why, ended_run)
    select number, case_number, what, psp_reference, undoes, why, evidence_sha256, four_eyes,
    proposed_by, proposed_at, state, approved_by, approved_at, approved_why, approved_evidence,
    ended_at, ended_why, ended_run from tieout_proposals;
-- A number that was given is never given again: the notes name it.
delete from sqlite_sequence where name = 'tieout_proposals_new';
insert into sqlite_sequence (name, seq)
    select 'tieout_proposals_new', seq from sqlite_sequence where name = 'tieout_proposals';
drop table tieout_proposals;
alter table tieout_proposals_new rename to tieout_proposals;
create unique index tieout_proposals_one_live on tieout_proposals (case_number)
    where state in ('open', 'approved');
create index tieout_proposals_case on tieout_proposals (case_number);
create index tieout_proposals_approved on tieout_proposals (number) where state = 'approved';
create index tieout_proposals_state on tieout_proposals (state, case_number);

create trigger tieout_proposals_guard_insert before insert on tieout_proposals
when new.state <> 'open'
begin
    select raise(abort, 'tieout_proposals: a proposal begins open');
end;
create trigger tieout_proposals_begin before insert on tieout_proposals
when new.ended_run is not null or new.ended_by is not null
begin
    select raise(abort, 'tieout_proposals: a proposal begins with no end');
end;
create trigger tieout_proposals_guard_update before update on tieout_proposals
when (new.number, new.case_number, new.what, new.psp_reference, new.undoes, new.why,
        new.evidence_sha256, new.four_eyes, new.proposed_by, new.proposed_at)
    is not (old.number, old.case_number, old.what, old.psp_reference, old.undoes, old.why,
        old.evidence_sha256, old.four_eyes, old.proposed_by, old.proposed_at)
    or not ((old.state = 'open' and new.state = 'approved')
        or (((old.state in ('open', 'approved') and new.state in ('rejected', 'withdrawn'))
                or (old.state = 'approved' and new.state in ('refused', 'carried_out')))
            and (new.approved_by, new.approved_at, new.approved_why, new.approved_evidence)
            is (old.approved_by, old.approved_at, old.approved_why, old.approved_evidence)))
begin
    select raise(abort, 'tieout_proposals: what was said stands; propose anew');
end;
-- What the case shows now is what is approved.
create trigger tieout_proposals_stale before update on tieout_proposals
when new.state = 'approved' and not exists (select 1 from tieout_cases k
    where k.number = new.case_number and k.evidence_sha256 is new.approved_evidence
    and (k.state = 'open') <> new.undoes)
begin
    select raise(abort, 'tieout_proposals: the case shows something else by now');
end;
create trigger tieout_proposals_end before update on tieout_proposals
when (new.state in ('refused', 'carried_out')) <> (new.ended_run is not null)
    or (new.ended_run is not null and not exists (select 1 from tieout_runs r
        where r.id = new.ended_run and r.state = 'running'))
begin
    select raise(abort, 'tieout_proposals: it is carried out or refused by a run');
end;
create trigger tieout_proposals_by before update on tieout_proposals
when (new.state in ('rejected', 'withdrawn')) <> (new.ended_by is not null)
    or (new.state = 'withdrawn' and new.ended_by <> new.proposed_by)
begin
    select raise(abort, 'tieout_proposals: who turns it down is named, and who made it withdraws');
end;
create trigger tieout_proposals_no_delete before delete on tieout_proposals
when exists (select 1 from tieout_cases where number = old.case_number)
begin
    select raise(abort, 'tieout_proposals is append-only: DELETE is refused');
end;
-- No proposal ends without a word in its case's history, whatever program ends it.
create trigger tieout_proposals_ended after update on tieout_proposals
when new.state in ('rejected', 'withdrawn')
begin
    insert into tieout_case_notes (case_number, at, kind, by_whom, text, proposal)
    values (new.case_number, new.ended_at, new.state, new.ended_by, new.ended_why, new.number);
end;

-- A break in a sentence could look like another entry of the history. What a run notes may be the
-- words of a database, which no person chose.
create trigger tieout_case_notes_line before insert on tieout_case_notes
when new.run_id is null and (new.by_whom || new.text)
    glob '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*'
begin
    select raise(abort, 'tieout_case_notes: a sentence is one line, without control characters');
end;
create trigger tieout_proposals_line before insert on tieout_proposals
when (coalesce(new.psp_reference, '') || new.why)
    glob '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*'
begin
    select raise(abort, 'tieout_proposals: a sentence is one line, without control characters');
end;
create trigger tieout_proposals_answer_line before update on tieout_proposals
when new.ended_run is null and (coalesce(new.approved_why, '') || coalesce(new.ended_why, ''))
    glob '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*'
begin
    select raise(abort, 'tieout_proposals: a sentence is one line, without control characters');
end;

-- The sums under a list of all cases or of one run's, from the index alone: by the state first, so
-- that those of open ones read no others.
drop index tieout_cases_sums;
create index tieout_cases_sums on tieout_cases (state, currency, opened_run, amount_minor);
-- Open cases, those that were looked at longest ago first.
create index tieout_cases_unseen on tieout_cases
    (max(coalesce(looked_at, ''), last_seen_at), number) where state = 'open';
