-- What fetching and letting files count need to remember.

-- The run that last read a quarantined file's bytes; null: the one that brought them in. Another
-- version, or another configuration, reads them once more.
alter table tieout_files add column tried_run text references tieout_runs (id);

-- A line that a correction took out keeps the row that had it, so that reports of the runs before
-- are built again as they were.
alter table tieout_lines drop constraint tieout_lines_check;
alter table tieout_lines add constraint tieout_lines_has_row check (case state
    when 'matched' then key is not null when 'superseded' then true else key is null end);
