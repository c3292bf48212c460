-- A report that names the zone of its days proves nothing of the days of another one.

-- The words that its rows name it by, one a line.
alter table tieout_files add column zones text not null default '';
