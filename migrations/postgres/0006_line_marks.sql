-- What runs found out about lines of settlement files, so that a report built again is the same:
-- which run saw a line first and found no row for it, and what its row was worth.

alter table tieout_lines
    -- The first run that looked for this line's row in vain, and why. Never changed again.
    add column seen_run text,
    add column seen_reason text,
    -- What its row is worth, + being money to the merchant, when the line became the row's.
    add column row_currency text,
    add column row_minor bigint;
drop index tieout_lines_run;
create index tieout_lines_run on tieout_lines (run_id, file_id, position)
    where run_id is not null;
create index tieout_lines_seen on tieout_lines (seen_run, file_id, position)
    where seen_run is not null;
