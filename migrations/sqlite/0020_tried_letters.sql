-- What failed before is asked for apart from what never did, lot by lot: each has an index of its
-- own, or every lot would walk over all of the others that wait.
drop index tieout_deliveries_due;
create index tieout_deliveries_new on tieout_deliveries (sink, next_attempt_at, event_id)
    where state = 'waiting' and last_error is null;
create index tieout_deliveries_tried on tieout_deliveries (sink, next_attempt_at, event_id)
    where state = 'waiting' and last_error is not null;
