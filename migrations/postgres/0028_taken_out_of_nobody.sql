-- A line by which money was told to have come back of a row is no row's: where a correction takes it
-- out, the row's case is decided again without it.

drop index tieout_lines_taken_out;
create index tieout_lines_taken_out on tieout_lines (account, file_id, position)
    where state = 'superseded' and again_run is null
    and (key is not null or reason in ('returned', 'late_contradiction'));
