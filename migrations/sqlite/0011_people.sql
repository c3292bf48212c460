-- Decisions by people: what was proposed and who said yes, the history of a case, and which cases
-- are parts of one. The twin of migrations/postgres: the same columns.

-- When a case that only time or an outage opened was last looked at again, changing nothing.
alter table tieout_cases add column looked_at text;
-- The case that it is a part of: one cause, each row with its own case.
alter table tieout_cases add column merged_into integer references tieout_cases (number)
    on delete set null;
create index tieout_cases_merged on tieout_cases (merged_into) where merged_into is not null;
create index tieout_cases_waiting on tieout_cases (number) where state = 'open';
-- Cases that only time opened, those waiting longest for another look first.
create index tieout_cases_looked on tieout_cases
    (table_name, coalesce(looked_at, last_seen_at), number)
    where state = 'open' and subject_kind = 'row'
    and reason in ('pending_too_long', 'unprovable');

-- What people and runs did with a case. Nothing is ever changed; it goes with its case.
create table tieout_case_notes (
    id                integer primary key autoincrement,
    case_number       integer not null references tieout_cases (number) on delete cascade,
    at                text not null,
    kind              text not null check (kind in ('assigned', 'comment', 'proposed', 'approved',
        'rejected', 'withdrawn', 'carried_out', 'refused', 'merged', 'parted')),
    by_whom           text not null check (by_whom <> ''),
    text              text not null,
    proposal          integer,
    run_id            text
) strict;
create index tieout_case_notes_case on tieout_case_notes (case_number, id);

create trigger tieout_case_notes_append_only before update on tieout_case_notes
begin
    select raise(abort, 'tieout_case_notes is append-only: UPDATE is refused');
end;
create trigger tieout_case_notes_no_delete before delete on tieout_case_notes
when exists (select 1 from tieout_cases where number = old.case_number)
begin
    select raise(abort, 'tieout_case_notes is append-only: DELETE is refused');
end;

create table tieout_proposals (
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
    check (psp_reference is null or what in ('succeeded', 'retryable')),
    check ((approved_by is null) = (approved_at is null)),
    check ((approved_by is null) = (approved_why is null)),
    check (approved_by is null or approved_evidence is evidence_sha256),
    -- The maker is not the checker.
    check (four_eyes = 0 or approved_by is null or approved_by <> proposed_by),
    check (state not in ('approved', 'refused', 'carried_out') or approved_by is not null),
    check (state not in ('open', 'rejected', 'withdrawn') or approved_by is null),
    check ((state in ('open', 'approved')) = (ended_at is null)),
    check ((ended_at is null) = (ended_why is null))
) strict;
create unique index tieout_proposals_one_live on tieout_proposals (case_number)
    where state in ('open', 'approved');
create index tieout_proposals_case on tieout_proposals (case_number);
create index tieout_proposals_approved on tieout_proposals (number) where state = 'approved';

create trigger tieout_proposals_guard_insert before insert on tieout_proposals
when new.state <> 'open'
begin
    select raise(abort, 'tieout_proposals: a proposal begins open');
end;
create trigger tieout_proposals_guard_update before update on tieout_proposals
when (new.number, new.case_number, new.what, new.psp_reference, new.undoes, new.why,
        new.evidence_sha256, new.four_eyes, new.proposed_by, new.proposed_at)
    is not (old.number, old.case_number, old.what, old.psp_reference, old.undoes, old.why,
        old.evidence_sha256, old.four_eyes, old.proposed_by, old.proposed_at)
    or not ((old.state = 'open' and new.state in ('approved', 'rejected', 'withdrawn'))
        or (old.state = 'approved' and new.state in ('refused', 'carried_out')
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
create trigger tieout_proposals_no_delete before delete on tieout_proposals
when exists (select 1 from tieout_cases where number = old.case_number)
begin
    select raise(abort, 'tieout_proposals is append-only: DELETE is refused');
end;

-- A person may be why a row is safe to charge again.
create table tieout_handbacks_new (
    table_name        text not null,
    key               text not null,
    number            integer not null check (number > 0),
    run_id            text not null references tieout_runs (id),
    at                text not null,
    account           text not null,
    fingerprint       text not null,
    permit            text not null check (permit in
        ('absent', 'declined', 'unattempted', 'person')),
    retry             text not null check (retry in ('same_object', 'same_key', 'new_attempt')),
    psp_reference     text,
    same_key_until    text,
    not_before        text,
    charge_before     text not null,
    evidence_sha256   text not null,
    taken_at          text,
    ended_at          text,
    end_reason        text,
    primary key (table_name, key, number),
    check ((retry = 'same_object') = (psp_reference is not null)),
    check ((retry = 'same_key') = (same_key_until is not null)),
    check (same_key_until is null or charge_before <= same_key_until),
    check ((ended_at is null) = (end_reason is null))
) strict;
insert into tieout_handbacks_new select table_name, key, number, run_id, at, account, fingerprint,
    permit, retry, psp_reference, same_key_until, not_before, charge_before, evidence_sha256,
    taken_at, ended_at, end_reason from tieout_handbacks;
drop table tieout_handbacks;
alter table tieout_handbacks_new rename to tieout_handbacks;
create unique index tieout_handbacks_one_open on tieout_handbacks (table_name, key)
    where ended_at is null and taken_at is null;
