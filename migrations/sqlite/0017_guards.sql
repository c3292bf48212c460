-- `insert or replace` takes the old record away without a word to the triggers on DELETE: what is
-- recorded is never written over. The twin of migrations/postgres, where the guards are held to
-- PostgreSQL's own functions.
create trigger tieout_journal_no_replace before insert on tieout_journal
when exists (select 1 from tieout_journal j
    where j.run_id = new.run_id and j.writer = new.writer and j.seq = new.seq)
begin
    select raise(abort, 'tieout_journal is append-only: REPLACE is refused');
end;
