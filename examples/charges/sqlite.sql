-- The same as postgres.sql. Times are written as tieout writes its own, so that they compare.
create table charges (
    id                  integer primary key,
    subscription_id     text not null,
    period              text not null,
    amount_cents        bigint not null check (amount_cents > 0),
    currency            text not null,
    payment_method      text not null,
    status              text not null default 'new',
    attempt             integer not null default 0,
    created_at          timestamptz not null
        default (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
    last_attempted_at   timestamptz,
    provider_payment_id text,
    decline_code        text,
    unique (subscription_id, period)
);
create index charges_status on charges (status, created_at);
create index charges_reference on charges (provider_payment_id);
