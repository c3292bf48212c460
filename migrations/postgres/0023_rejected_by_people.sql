-- What people proposed is theirs to reject. A login for runs, which proposes nothing, ends what
-- nobody approved of a case that a run closed, and could have turned down what two had decided.

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
        if new.state = 'rejected'
            and has_table_privilege(format('%I.tieout_journal', tg_table_schema), 'insert')
            and not has_any_column_privilege(
                format('%I.tieout_proposals', tg_table_schema), 'insert')
        then
            execute format('select exists (select from %I.tieout_cases k where k.number = $1 '
                'and k.state = ''closed'')', tg_table_schema)
                into is_shown using new.case_number;
            if old.state <> 'open' or old.undoes or not is_shown then
                raise exception 'a run ends what is proposed of a case that it closed, and no more'
                    using errcode = 'restrict_violation';
            end if;
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
