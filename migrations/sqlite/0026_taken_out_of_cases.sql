-- Rows are looked at again by whatever line of theirs a correction took out, not only by the one
-- that they succeeded by: a case is decided again without it.
-- The twin of migrations/postgres: the same columns, held equal by the conformance suite.

drop index tieout_lines_taken_out;
create index tieout_lines_taken_out on tieout_lines (account, file_id, position)
    where state = 'superseded' and again_run is null and key is not null;
