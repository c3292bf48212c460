-- What monitoring remembers from one run to the next. Nothing here ever decides about a row.

-- Numbers of one schedule (a scope): counters, and marks such as the last success.
create table tieout_marks (
    scope             text not null,
    name              text not null,
    value             integer not null,
    primary key (scope, name)
) strict;

-- Conditions that a receiver is told of: a row goes when their end was told.
create table tieout_alerts (
    scope             text not null,
    receiver          text not null,
    condition         text not null,
    text              text not null,
    raised_at         text not null,
    raised_run        text not null,
    told_at           text,
    -- A run is telling it; until then another leaves it alone.
    lease_until       text,
    primary key (scope, receiver, condition)
) strict;
