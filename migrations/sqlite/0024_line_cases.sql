-- Money of a settlement file that no row explains has a case of its own.

-- The case that a person left the line by: it asks nobody again, whatever becomes of that case.
alter table tieout_lines add column left_case integer;
