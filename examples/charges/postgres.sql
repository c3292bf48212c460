-- One row is one intended payment, for ever: a retry is the same row again.
create table charges (
    id                  bigint generated always as identity primary key,
    -- What makes a payment this one and no other: the worker inserts or gets by it.
    subscription_id     text not null,
    period              text not null,
    amount_cents        bigint not null check (amount_cents > 0),
    currency            text not null,
    payment_method      text not null,
    -- new, processing, retryable, paid, failed
    status              text not null default 'new',
    -- Part of the idempotency key: it grows with every new try, and never falls.
    attempt             integer not null default 0,
    created_at          timestamptz not null default clock_timestamp(),
    -- Written and committed before every send.
    last_attempted_at   timestamptz,
    provider_payment_id text,
    decline_code        text,
    unique (subscription_id, period)
);
create index charges_status on charges (status, created_at);
create index charges_reference on charges (provider_payment_id);
