-- Rows that succeeded by a line which a correction took out are looked at again, once.
-- The twin of migrations/postgres: the same columns, held equal by the conformance suite.

-- The run that looked at the row again.
alter table tieout_lines add column again_run text;
create index tieout_lines_taken_out on tieout_lines (account, file_id, position)
    where state = 'superseded' and reason in ('settled', 'tolerance_delta') and again_run is null;
