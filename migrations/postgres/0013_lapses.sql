-- Hand-backs lapse by their own time, whether or not anybody was to be told of them.

-- Every run asks for those that nobody took in time.
create index tieout_handbacks_late on tieout_handbacks (charge_before)
    where ended_at is null and taken_at is null;
