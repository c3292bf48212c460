-- Pruning: a closed run may leave the journal whole, and leaves its chains' heads behind, so that
-- the chain of the runs still verifies. Nobody else may take anything out of it.

create table tieout_prunes (
    run_id            text primary key references tieout_runs (id),
    -- open: within the transaction that prunes it, and never after it.
    state             text not null check (state in ('open', 'done')),
    pruned_at         timestamptz not null,
    pruned_by         text not null,
    records           bigint not null check (records >= 0),
    -- JSON: writer, count and hash of each chain's head.
    heads             text not null
);
create index tieout_prunes_open on tieout_prunes (run_id) where state = 'open';

-- The schema is that of the guarded table, whatever the session's search path says.
create function tieout_unless_pruned() returns trigger language plpgsql as $$
declare
    is_open boolean;
begin
    if tg_table_name = 'tieout_journal' then
        execute format('select exists (select from %I.tieout_prunes '
            'where run_id = $1 and state = ''open'')', tg_table_schema)
            into is_open using old.run_id;
    else
        execute format('select exists (select from %I.tieout_prunes where state = ''open'')',
            tg_table_schema) into is_open;
    end if;
    if is_open then
        return old;
    end if;
    raise exception '% is append-only: % is refused', tg_table_name, tg_op
        using errcode = 'restrict_violation';
end
$$;
drop trigger tieout_journal_append_only on tieout_journal;
create trigger tieout_journal_append_only before update on tieout_journal
    for each row execute function tieout_append_only();
create trigger tieout_journal_no_delete before delete on tieout_journal
    for each row execute function tieout_unless_pruned();
drop trigger tieout_evidence_append_only on tieout_evidence;
create trigger tieout_evidence_append_only before update on tieout_evidence
    for each row execute function tieout_append_only();
create trigger tieout_evidence_no_delete before delete on tieout_evidence
    for each row execute function tieout_unless_pruned();

create function tieout_prune_guard() returns trigger language plpgsql as $$
declare
    is_closed boolean;
begin
    if tg_op = 'INSERT' then
        execute format('select exists (select from %I.tieout_runs '
            'where id = $1 and close_number is not null)', tg_table_schema)
            into is_closed using new.run_id;
        if is_closed and new.state = 'open' then
            return new;
        end if;
    elsif tg_op = 'UPDATE' then
        if old.state = 'open' and new.state = 'done'
            and (new.run_id, new.pruned_at, new.pruned_by, new.records, new.heads)
            = (old.run_id, old.pruned_at, old.pruned_by, old.records, old.heads) then
            return new;
        end if;
    end if;
    raise exception 'tieout_prunes is append-only: % is refused', tg_op
        using errcode = 'restrict_violation';
end
$$;
create trigger tieout_prunes_guard before insert or update or delete on tieout_prunes
    for each row execute function tieout_prune_guard();
create trigger tieout_prunes_no_truncate before truncate on tieout_prunes
    for each statement execute function tieout_append_only();

create function tieout_prune_is_done() returns trigger language plpgsql as $$
declare
    is_open boolean;
begin
    execute format('select exists (select from %I.tieout_prunes where run_id = $1 '
        'and state = ''open'')', tg_table_schema) into is_open using new.run_id;
    if is_open then
        raise exception 'a prune ends in the transaction that began it'
            using errcode = 'restrict_violation';
    end if;
    return null;
end
$$;
create constraint trigger tieout_prunes_done after insert on tieout_prunes
    deferrable initially deferred for each row execute function tieout_prune_is_done();
