-- Batch bookings: a statement books a sum, and a notice lists the payments that it is made of.

alter table tieout_lines
    -- The order that a batch was made by (PmtInfId, else MsgId): of bookings that stand for
    -- several payments, and of lines of notices.
    add column order_ref text,
    -- Of a line of a notice: the booking that it is a part of. It decides since.
    add column of_file bigint,
    add column of_position bigint,
    add constraint tieout_lines_part check ((of_file is null) = (of_position is null));
create index tieout_lines_batch on tieout_lines (account, bank_reference)
    where bank_reference is not null
    and (not decides or not itemised or kind = 'return' or of_file is not null);
create index tieout_lines_order on tieout_lines (account, order_ref)
    where order_ref is not null;
create index tieout_lines_parts on tieout_lines (of_file, of_position) where of_file is not null;
-- Bookings that nothing explains yet: few among many open lines, and looked at by every run.
create index tieout_lines_batches on tieout_lines (account, file_id, position)
    where state = 'open' and decides and not itemised and kind = 'movement';
