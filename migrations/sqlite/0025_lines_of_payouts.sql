-- A payout is made of the lines of every file that tells of it. Most reports name it on each of
-- their lines and nowhere else, so that no other index leads to them. Lines of banks have none.

create index tieout_lines_payout on tieout_lines (account, batch) where batch is not null;
