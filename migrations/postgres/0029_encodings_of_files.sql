-- A quarantined file is read once more when a person lets it count, as it was read before.

-- The encoding that was said when it came; empty where nobody said one.
alter table tieout_files add column said_encoding text not null default '';
