-- Who ended a proposal is known, and what people say is one line.

alter table tieout_proposals
    -- Who took it back or turned it down; of what a run ended, nobody.
    add column ended_by text,
    -- What was approved may be taken back until a run carries it out.
    drop constraint tieout_proposals_check5,
    add constraint tieout_proposals_open_check check (state <> 'open' or approved_by is null);

create or replace function tieout_proposal_guard() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
declare
    is_shown boolean;
begin
    if tg_op = 'INSERT' then
        if new.state = 'open' and new.proposed_by = session_user and new.ended_by is null then
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
    if old.state = 'open' and new.state = 'approved' and new.ended_by is null then
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
    if (new.approved_by, new.approved_at, new.approved_why, new.approved_evidence)
        is distinct from
        (old.approved_by, old.approved_at, old.approved_why, old.approved_evidence)
    then
        raise exception 'what was approved stands' using errcode = 'restrict_violation';
    end if;
    if old.state in ('open', 'approved') and new.state in ('rejected', 'withdrawn') then
        if new.state = 'withdrawn' and old.proposed_by <> session_user then
            raise exception 'what % proposed is theirs to withdraw, and not %''s',
                old.proposed_by, session_user using errcode = 'restrict_violation';
        end if;
        new.ended_by := session_user;
        return new;
    end if;
    if old.state = 'approved' and new.state in ('refused', 'carried_out')
        and new.ended_by is null
    then
        return new;
    end if;
    raise exception 'a proposal that is % does not become %', old.state, new.state
        using errcode = 'restrict_violation';
end
$$;

-- No proposal ends without a word in its case's history, whatever program ends it.
create function tieout_proposal_ended() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
    execute format('insert into %I.tieout_case_notes (case_number, at, kind, by_whom, text, '
        'proposal) values ($1, $2, $3, $4, $5, $6)', tg_table_schema)
        using new.case_number, new.ended_at, new.state, new.ended_by, new.ended_why, new.number;
    return null;
end
$$;
create trigger tieout_proposals_ended after update on tieout_proposals for each row
    when (new.state in ('rejected', 'withdrawn')) execute function tieout_proposal_ended();

-- A break in a sentence could look like another entry of the history. What a run notes may be the
-- words of a database, which no person chose.
create function tieout_one_line_guard() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
declare
    words jsonb := to_jsonb(new);
    word text;
begin
    if coalesce(words ->> 'run_id', words ->> 'ended_run') is not null then
        return new;
    end if;
    foreach word in array tg_argv loop
        if words ->> word ~ '[\u0001-\u001f\u007f-\u009f]' then
            raise exception '% of % is one line, without control characters', word, tg_table_name
                using errcode = 'restrict_violation';
        end if;
    end loop;
    return new;
end
$$;
create trigger tieout_case_notes_line before insert on tieout_case_notes
    for each row execute function tieout_one_line_guard('by_whom', 'text');
create trigger tieout_proposals_line before insert on tieout_proposals
    for each row execute function tieout_one_line_guard('psp_reference', 'why');
create trigger tieout_proposals_answer_line before update on tieout_proposals
    for each row execute function tieout_one_line_guard('approved_why', 'ended_why');

-- Open cases, those that were looked at longest ago first.
create index tieout_cases_unseen on tieout_cases (greatest(looked_at, last_seen_at), number)
    where state = 'open';
