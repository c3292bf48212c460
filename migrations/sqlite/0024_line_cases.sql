-- Money of a settlement file that no row explains has a case of its own.

-- What its case says: the reason that the open one has, or `left`, once a person left it as it is,
-- whatever became of that case since. Null: it has none.
alter table tieout_lines add column cased text;
