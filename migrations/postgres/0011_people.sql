-- Decisions by people: what was proposed and who said yes, the history of a case, and which cases
-- are parts of one.

alter table tieout_cases
    -- When a case that only time or an outage opened was last looked at again, changing nothing.
    add column looked_at timestamptz,
    -- The case that it is a part of: one cause, each row with its own case.
    add column merged_into bigint references tieout_cases (number) on delete set null;
create index tieout_cases_merged on tieout_cases (merged_into) where merged_into is not null;
create index tieout_cases_waiting on tieout_cases (number) where state = 'open';
-- Cases that only time opened, those waiting longest for another look first.
create index tieout_cases_looked on tieout_cases
    (table_name, coalesce(looked_at, last_seen_at), number)
    where state = 'open' and subject_kind = 'row'
    and reason in ('pending_too_long', 'unprovable');

-- What people and runs did with a case. Nothing is ever changed; it goes with its case.
create table tieout_case_notes (
    id                bigint generated always as identity primary key,
    case_number       bigint not null references tieout_cases (number) on delete cascade,
    at                timestamptz not null,
    kind              text not null check (kind in ('assigned', 'comment', 'proposed', 'approved',
        'rejected', 'withdrawn', 'carried_out', 'refused', 'merged', 'parted')),
    by_whom           text not null check (by_whom <> ''),
    text              text not null,
    proposal          bigint,
    run_id            text
);
create index tieout_case_notes_case on tieout_case_notes (case_number, id);

-- Rows that go with their case: the case is gone when the foreign key takes them along.
create function tieout_goes_with_case() returns trigger language plpgsql as $$
declare
    is_there boolean;
begin
    execute format('select exists (select from %I.tieout_cases where number = $1)',
        tg_table_schema) into is_there using old.case_number;
    if is_there then
        raise exception '% is append-only: % is refused', tg_table_name, tg_op
            using errcode = 'restrict_violation';
    end if;
    return old;
end
$$;
create trigger tieout_case_notes_append_only before update on tieout_case_notes
    for each row execute function tieout_append_only();
create trigger tieout_case_notes_no_delete before delete on tieout_case_notes
    for each row execute function tieout_goes_with_case();
create trigger tieout_case_notes_no_truncate before truncate on tieout_case_notes
    for each statement execute function tieout_append_only();

-- Who writes a note is who it is by: the session's user. What a run notes is a run's.
create function tieout_case_note_guard() returns trigger language plpgsql as $$
begin
    if new.run_id is null and new.by_whom <> session_user then
        raise exception 'a note is by the session''s user %, and not by %', session_user, new.by_whom
            using errcode = 'restrict_violation';
    end if;
    return new;
end
$$;
create trigger tieout_case_notes_by before insert on tieout_case_notes
    for each row execute function tieout_case_note_guard();

create table tieout_proposals (
    number            bigint generated always as identity primary key,
    case_number       bigint not null references tieout_cases (number) on delete cascade,
    -- left: the row stays as it is, and the case closes.
    what              text not null check (what in ('succeeded', 'retryable', 'failed', 'left')),
    -- The object that succeeded, or the one to charge by.
    psp_reference     text,
    -- It takes the place of a person's decision: the case is closed.
    undoes            boolean not null,
    why               text not null check (why <> ''),
    -- What the case showed when it was proposed; only that is approved.
    evidence_sha256   text,
    four_eyes         boolean not null,
    proposed_by       text not null check (proposed_by <> ''),
    proposed_at       timestamptz not null,
    state             text not null check (state in
        ('open', 'approved', 'rejected', 'withdrawn', 'refused', 'carried_out')),
    approved_by       text,
    approved_at       timestamptz,
    approved_why      text,
    approved_evidence text,
    ended_at          timestamptz,
    ended_why         text,
    ended_run         text,
    check (psp_reference is null or what in ('succeeded', 'retryable')),
    check ((approved_by is null) = (approved_at is null)),
    check ((approved_by is null) = (approved_why is null)),
    check (approved_by is null or approved_evidence is not distinct from evidence_sha256),
    -- The maker is not the checker.
    constraint tieout_proposals_four_eyes
        check (not four_eyes or approved_by is null or approved_by <> proposed_by),
    check (state not in ('approved', 'refused', 'carried_out') or approved_by is not null),
    check (state not in ('open', 'rejected', 'withdrawn') or approved_by is null),
    check ((state in ('open', 'approved')) = (ended_at is null)),
    check ((ended_at is null) = (ended_why is null))
);
create unique index tieout_proposals_one_live on tieout_proposals (case_number)
    where state in ('open', 'approved');
create index tieout_proposals_case on tieout_proposals (case_number);
create index tieout_proposals_approved on tieout_proposals (number) where state = 'approved';

-- Whoever proposes or approves is the session's user: no program can say that it was another.
create function tieout_proposal_guard() returns trigger language plpgsql as $$
declare
    is_shown boolean;
begin
    if tg_op = 'INSERT' then
        if new.state = 'open' and new.proposed_by = session_user then
            return new;
        end if;
        raise exception 'a proposal begins open, by the session''s user %', session_user
            using errcode = 'restrict_violation';
    end if;
    if (new.number, new.case_number, new.what, new.psp_reference, new.undoes, new.why,
            new.evidence_sha256, new.four_eyes, new.proposed_by, new.proposed_at)
        is distinct from (old.number, old.case_number, old.what, old.psp_reference, old.undoes,
            old.why, old.evidence_sha256, old.four_eyes, old.proposed_by, old.proposed_at)
    then
        raise exception 'what was proposed stands; propose anew'
            using errcode = 'restrict_violation';
    end if;
    if old.state = 'open' and new.state = 'approved' then
        if new.approved_by <> session_user then
            raise exception 'it is approved by the session''s user %, and not by %',
                session_user, new.approved_by using errcode = 'restrict_violation';
        end if;
        execute format('select exists (select from %I.tieout_cases k where k.number = $1 '
            'and k.evidence_sha256 is not distinct from $2 and (k.state = ''open'') <> $3)',
            tg_table_schema)
            into is_shown using new.case_number, new.approved_evidence, new.undoes;
        if not is_shown then
            raise exception 'the case shows something else by now'
                using errcode = 'restrict_violation';
        end if;
        return new;
    end if;
    if old.state = 'open' and new.state in ('rejected', 'withdrawn') then
        return new;
    end if;
    if old.state = 'approved' and new.state in ('refused', 'carried_out')
        and (new.approved_by, new.approved_at, new.approved_why, new.approved_evidence)
            is not distinct from
            (old.approved_by, old.approved_at, old.approved_why, old.approved_evidence)
    then
        return new;
    end if;
    raise exception 'a proposal that is % does not become %', old.state, new.state
        using errcode = 'restrict_violation';
end
$$;
create trigger tieout_proposals_guard before insert or update on tieout_proposals
    for each row execute function tieout_proposal_guard();
create trigger tieout_proposals_no_delete before delete on tieout_proposals
    for each row execute function tieout_goes_with_case();
create trigger tieout_proposals_no_truncate before truncate on tieout_proposals
    for each statement execute function tieout_append_only();

-- A person may be why a row is safe to charge again.
alter table tieout_handbacks drop constraint tieout_handbacks_permit_check;
alter table tieout_handbacks add constraint tieout_handbacks_permit_check
    check (permit in ('absent', 'declined', 'unattempted', 'person'));
