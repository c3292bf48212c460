-- A million cases are listed and summed up while somebody waits.

-- The sums under a list of open cases, from the index alone.
create index tieout_cases_sums on tieout_cases (currency, amount_minor) where state = 'open';
-- Cases by where their proposals stand: few among many.
create index tieout_proposals_state on tieout_proposals (state, case_number);
