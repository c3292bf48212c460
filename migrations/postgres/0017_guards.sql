-- Guards of the tables mean PostgreSQL's own functions and operators, whatever the session's
-- search path says: whoever may create a function in any schema could put one of its own before
-- them, and approve or pause in another's name. The tables are named with their schema throughout.
alter function tieout_append_only() set search_path = pg_catalog, pg_temp;
alter function tieout_unless_pruned() set search_path = pg_catalog, pg_temp;
alter function tieout_prune_guard() set search_path = pg_catalog, pg_temp;
alter function tieout_prune_is_done() set search_path = pg_catalog, pg_temp;
alter function tieout_goes_with_case() set search_path = pg_catalog, pg_temp;
alter function tieout_case_note_guard() set search_path = pg_catalog, pg_temp;
alter function tieout_proposal_guard() set search_path = pg_catalog, pg_temp;
alter function tieout_proposal_end_guard() set search_path = pg_catalog, pg_temp;
alter function tieout_case_close_guard() set search_path = pg_catalog, pg_temp;
alter function tieout_may_speak_for_run(text, text) set search_path = pg_catalog, pg_temp;
alter function tieout_release_guard() set search_path = pg_catalog, pg_temp;
alter function tieout_lines_guard() set search_path = pg_catalog, pg_temp;
alter function tieout_account_guard() set search_path = pg_catalog, pg_temp;
