//! The conformance suite of the store: every case runs on every database.
//!
//! A case is an async function over a [`world::World`]; adding one is the function and its name
//! in the list below. Adding a database is an `impl world::Under` and a line at the macro's end.
//! Where the invariants are checked by other topics' tests too, they stand in `invariants.rs`.

mod applies;
mod chains;
mod claims;
mod files;
mod letters;
mod lookups;
mod patience;
mod pool;
pub mod released;
pub mod settled;
mod unleased;
mod watches;
pub mod world;

use tieout::store::postgres::PgStore;
use tieout::store::sqlite::SqliteStore;

macro_rules! cases {
    ($database:ty: $($room:ident :: $case:ident),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $case() {
                super::$room::$case::<$database>().await;
            }
        )+
    };
}

macro_rules! conformance {
    ($($name:ident: $database:ty),+ $(,)?) => {
        $(
            mod $name {
                use super::*;
                cases! { $database:
                    chains::migrating_twice_changes_nothing,
                    chains::runs_open_live_and_close,
                    chains::an_abandoned_run_is_closed_and_never_writes_again,
                    chains::one_silent_run_is_closed_by_name,
                    chains::an_account_is_paused_and_resumed,
                    chains::the_journal_is_append_only,
                    chains::a_closed_run_is_not_changed,
                    chains::verifying_finds_every_changed_field,
                    chains::verifying_finds_what_was_taken_away,
                    chains::old_runs_are_pruned_whole,
                    chains::a_run_that_ended_a_watched_row_is_kept,
                    chains::heads_that_a_prune_left_are_held_against_the_chain,
                    chains::accounts_are_remembered,
                    claims::stuck_rows_are_taken_in_once,
                    claims::a_changed_row_is_taken_in_again,
                    claims::claims_go_by_the_oldest_due,
                    claims::rows_that_are_taken_in_are_claimed_in_their_time,
                    claims::the_claim_walks_indexes,
                    claims::a_table_of_one_status_is_written_by_its_key,
                    claims::every_row_gets_its_turn,
                    claims::what_comes_back_goes_behind,
                    unleased::only_stuck_rows_that_nobody_took_in_are_new,
                    unleased::a_new_row_is_taken_in_with_its_decision,
                    unleased::a_new_row_that_changed_is_due_for_another_run,
                    unleased::who_takes_a_new_row_in_first_has_it,
                    unleased::what_a_run_took_in_so_it_decides_once,
                    unleased::new_rows_of_a_paused_account_are_left_alone,
                    claims::windows_narrow,
                    claims::accounts_narrow,
                    claims::named_rows_are_due_now,
                    claims::what_a_run_leaves_is_still_due,
                    claims::times_ahead_are_counted,
                    claims::two_claimers_share_no_row,
                    claims::a_lapsed_lease_is_taken_over,
                    claims::released_rows_are_due_again,
                    claims::rows_that_left_are_closed,
                    claims::a_preview_writes_nothing,
                    claims::watched_rows_come_whatever_their_status,
                    claims::a_hand_back_is_taken_when_the_status_leaves,
                    claims::a_hand_back_without_a_status_is_taken_by_a_change,
                    claims::rows_without_a_key_hold_up_no_other,
                    claims::a_watch_that_a_view_hides_goes_on,
                    claims::a_hand_back_of_a_row_that_is_gone_ends,
                    applies::a_success_writes_everything,
                    applies::evidence_that_is_stored_stays,
                    applies::a_reference_that_is_empty_is_none,
                    applies::a_wait_writes_no_status_but_compares,
                    applies::any_mapped_column_supersedes,
                    applies::money_seen_as_a_row_left_is_held_against_its_end,
                    applies::a_pause_holds_up_to_the_commit,
                    applies::a_pause_holds_its_own_rows_alone,
                    applies::a_lost_lease_supersedes_and_ties_out,
                    applies::modes_withhold,
                    applies::a_review_opens_one_case,
                    applies::a_hand_back_is_numbered,
                    applies::one_reference_explains_one_row,
                    applies::one_refused_row_of_fifty_is_a_case,
                    applies::of_a_natural_key_one_is_paid_whoever_writes_it,
                    applies::nobody_is_charged_again_beside_what_a_sibling_became,
                    applies::nobody_is_charged_again_beside_what_was_given_up_since,
                    applies::what_may_still_be_paid_ends_hand_backs_beside_it,
                    applies::who_is_paid_beside_a_case_is_decided_anew,
                    applies::what_a_mode_withholds_ends_hand_backs_beside_it,
                    applies::a_trigger_that_meddles_is_a_case,
                    applies::a_table_that_refuses_every_row_opens_no_case,
                    applies::rows_that_are_refused_beside_written_ones_are_cases,
                    applies::a_trigger_that_names_what_is_not_there_leaves_its_table,
                    applies::a_case_is_opened_though_its_status_is_refused,
                    applies::what_was_not_carried_out_is_named,
                    applies::a_closed_run_writes_nothing,
                    applies::a_write_to_another_table_than_the_views_is_undone,
                    applies::a_row_that_its_view_hides_once_written_is_a_case,
                    applies::a_row_that_a_trigger_takes_away_is_decided,
                    applies::a_trigger_that_comes_after_the_write_is_a_case,
                    applies::a_row_whose_key_changes_with_the_write_is_a_case,
                    applies::composite_keys_and_views,
                    letters::what_is_due_is_found_by_its_key_whatever_the_statistics,
                    letters::new_letters_and_tried_ones_are_apart,
                    letters::a_sink_that_took_something_begins_its_back_off_anew,
                    letters::what_waits_for_its_time_is_counted_apart,
                    letters::what_is_undone_is_one_read,
                    lookups::siblings_are_found,
                    lookups::tags_resolve,
                    lookups::shared_tags_are_found,
                    lookups::rows_are_found_by_their_tags,
                    lookups::a_status_that_folds_spellings_is_refused,
                    lookups::references_resolve,
                    lookups::rows_are_known_by_tags_and_references,
                    lookups::unmapped_statuses_are_seen,
                    lookups::rows_without_a_status_are_seen,
                    lookups::closed_cases_are_read_since,
                    lookups::cases_are_listed_by_indexes,
                    lookups::the_first_cases_are_counted,
                    lookups::decisions_are_read_page_by_page,
                    lookups::a_misfit_is_named,
                    lookups::a_key_that_changes_with_the_status_is_refused,
                    settled::a_file_comes_in_whole,
                    settled::the_same_bytes_are_known,
                    settled::a_file_that_does_not_end_leaves_nothing,
                    settled::a_quarantined_file_has_no_lines,
                    settled::another_issue_is_held,
                    settled::what_says_it_is_a_copy_is_held,
                    settled::two_bring_the_same_bytes_at_once,
                    settled::lines_are_found_by_what_they_carry,
                    settled::lines_are_found_by_index,
                    settled::open_lines_come_in_order,
                    settled::a_line_is_one_rows,
                    settled::texts_come_back_as_they_were,
                    released::a_quarantined_file_counts_by_a_persons_word,
                    released::of_a_correction_only_the_difference_counts,
                    released::a_deletion_takes_the_other_out,
                    released::what_is_released_decides_as_what_is_loaded,
                    released::two_say_the_same_word_at_once,
                    released::an_older_issue_does_not_follow_a_later_one,
                    released::of_a_file_only_what_no_later_issue_has_counts,
                    released::a_word_is_ended_by_a_run,
                    released::a_released_file_may_hold_a_statement,
                    released::names_and_missing_files_are_remembered,
                    watches::numbers_outlive_a_run,
                    watches::each_condition_is_told_by_one_run,
                    watches::more_cases_than_were_told_of_are_told_anew,
                    watches::what_is_of_the_database_is_told_once_for_all_schedules,
                    watches::what_two_schedules_told_ends_for_both,
                    watches::what_no_receiver_took_is_left_for_the_next,
                    watches::what_waits_is_counted,
                    watches::a_closed_run_is_told_what_monitoring_could_not_do,
                }
            }
        )+
    };
}

conformance! {
    sqlite: SqliteStore,
    postgres: PgStore,
}
