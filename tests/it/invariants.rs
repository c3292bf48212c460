//! What must hold in tieout's tables after anything at all: plain SQL that shares no code with
//! the product. The names are those of the list of invariants that the tests speak of.
//!
//! Every query answers with what breaks it, so that a failure shows the rows. Adding one: a line
//! in `EVERYWHERE`, and a sample in `every_invariant_can_fail` that it must catch.

use crate::support::raw::Raw;

/// A mapped table whose statuses nobody but tieout changed.
pub struct Mapped<'a> {
    /// The mapping's name.
    pub name: &'a str,
    /// The table in SQL.
    pub relation: &'a str,
    /// The key's text in SQL: `cast(t.id as text)`.
    pub key: &'a str,
    /// The status column as text in SQL: `cast(t.status as text)`.
    pub status: &'a str,
}

const ENDED: &str = "outcome in ('succeeded', 'retryable', 'failed') and applied = 'yes'";

/// Name, what it says, and a query for what breaks it. `{ended}` is [`ENDED`].
const EVERYWHERE: &[(&str, &str, &str)] = &[
    (
        "I1",
        "a row in one state of its own is ended by a change of status at most once",
        "select table_name, key, fingerprint, cast(count(*) as text) from tieout_journal
         where {ended} and status_before <> status_after
         group by table_name, key, fingerprint having count(*) > 1",
    ),
    (
        "I2",
        "records have no gaps: each writer counts from 1",
        "select run_id, writer, cast(count(*) as text), cast(max(seq) as text)
         from tieout_journal group by run_id, writer having count(*) <> max(seq) or min(seq) <> 1",
    ),
    (
        "I2",
        "a run wrote as many records as it says",
        "select r.id, cast(r.journal_count as text) from tieout_runs r where r.journal_count <>
         (select count(*) from tieout_journal j where j.run_id = r.id)
         and not exists (select 1 from tieout_prunes p where p.run_id = r.id)",
    ),
    (
        "I2",
        "every record's evidence is there",
        "select run_id, writer, cast(seq as text) from tieout_journal j where not exists
         (select 1 from tieout_evidence e where e.sha256 = j.evidence_sha256)",
    ),
    (
        "I3",
        "only an end or a review that was carried out changes a status",
        "select run_id, writer, cast(seq as text), outcome, applied from tieout_journal
         where status_before <> status_after
         and (applied <> 'yes' or outcome not in ('succeeded', 'retryable', 'failed', 'review'))",
    ),
    (
        "I4",
        "a decision that was not carried out leaves nothing behind",
        "select run_id, writer, cast(seq as text) from tieout_journal where applied = 'superseded'
         and (status_before <> status_after or handback_number is not null
         or case_number is not null)",
    ),
    (
        "I6",
        "every hand-back has its one record",
        "select h.table_name, h.key, cast(h.number as text) from tieout_handbacks h where 1 <>
         (select count(*) from tieout_journal j where j.table_name = h.table_name
         and j.key = h.key and j.handback_number = h.number and j.run_id = h.run_id
         and j.outcome = 'retryable' and j.applied = 'yes'
         and j.evidence_sha256 = h.evidence_sha256)",
    ),
    (
        "I6",
        "every record of a hand-back has its hand-back",
        "select j.table_name, j.key, cast(j.handback_number as text) from tieout_journal j
         where j.handback_number is not null and not exists (select 1 from tieout_handbacks h
         where h.table_name = j.table_name and h.key = j.key and h.number = j.handback_number)",
    ),
    (
        "I6",
        "hand-backs are numbered without gaps, and counted",
        "select c.table_name, c.key, cast(c.handbacks as text) from tieout_checks c
         where c.handbacks <> (select count(*) from tieout_handbacks h
         where h.table_name = c.table_name and h.key = c.key) or c.handbacks <>
         coalesce((select max(h.number) from tieout_handbacks h
         where h.table_name = c.table_name and h.key = c.key), 0)",
    ),
    (
        "I10",
        "a wait looks again later",
        "select run_id, writer, cast(seq as text) from tieout_journal
         where outcome = 'wait' and applied = 'yes' and reason <> 'watched'
         and (next_check_at is null or next_check_at <= at)",
    ),
    (
        "I10",
        "a row that waits for a person has exactly one open case",
        "select c.table_name, c.key from tieout_checks c where c.state = 'case' and 1 <>
         (select count(*) from tieout_cases k where k.subject_kind = 'row'
         and k.table_name = c.table_name and k.subject = c.key and k.state = 'open')",
    ),
    (
        "I10",
        "a subject has at most one open case",
        "select subject_kind, table_name, subject from tieout_cases where state = 'open'
         group by subject_kind, table_name, subject having count(*) > 1",
    ),
    (
        "I10",
        "a review that was carried out names its case",
        "select run_id, writer, cast(seq as text) from tieout_journal j
         where outcome = 'review' and applied = 'yes' and not exists (select 1 from tieout_cases k
         where k.number = j.case_number and k.subject = j.key and k.table_name = j.table_name)",
    ),
    (
        "I11",
        "a success holds its PSP object, and nobody else does",
        "select j.table_name, j.key, j.psp_reference from tieout_journal j
         where j.outcome = 'succeeded' and j.applied = 'yes' and j.psp_reference is not null
         and not exists (select 1 from tieout_references r where r.account = j.account
         and r.psp_reference = j.psp_reference and r.table_name = j.table_name and r.key = j.key)",
    ),
    (
        "I25",
        "a run that is over holds no lease",
        "select c.table_name, c.key, r.id from tieout_checks c join tieout_runs r
         on r.id = c.lease_run where r.state <> 'running'",
    ),
    (
        "I25",
        "closed runs are numbered from 1 without gaps, and bound",
        "select cast(count(*) as text), cast(max(close_number) as text) from tieout_runs
         where close_number is not null having count(*) <> coalesce(max(close_number), 0)",
    ),
    (
        "I25",
        "the first closed run follows none, every other the one before",
        "select r.id from tieout_runs r where r.close_number is not null
         and coalesce(r.prev_close_hash, '') <> coalesce((select p.close_hash from tieout_runs p
         where p.close_number = r.close_number - 1), '')",
    ),
    (
        "I26",
        "claimed = outcomes + superseded + released + still leased, by table and currency",
        "select run_id, table_name, currency, cast(sum(n) as text), cast(sum(amount) as text)
         from (select run_id, table_name, currency,
           case side when 'claimed' then rows else -rows end as n,
           case side when 'claimed' then amount_minor else -amount_minor end as amount
           from tieout_run_totals
           union all
           select run_id, table_name, currency, -1, -amount_minor from tieout_journal
           union all
           select lease_run, table_name, currency, -1, -amount_minor from tieout_checks
           where lease_run is not null) sides
         group by run_id, table_name, currency having sum(n) <> 0 or sum(amount) <> 0",
    ),
    (
        "I26",
        "every record has a reason and a sentence",
        "select run_id, writer, cast(seq as text) from tieout_journal
         where reason = '' or text = ''",
    ),
    (
        "I28",
        "a closed run never writes again",
        "select j.run_id, j.writer, cast(j.seq as text) from tieout_journal j
         join tieout_runs r on r.id = j.run_id where r.ended_at is not null and j.at > r.ended_at",
    ),
    (
        "I28",
        "the fencing token grew with every claim",
        "select c.table_name, c.key, cast(c.lease_token as text) from tieout_checks c
         where c.lease_token < (select count(*) from tieout_journal j
         where j.table_name = c.table_name and j.key = c.key)",
    ),
    (
        "I30",
        "every end that was carried out staged exactly one event, and no other did",
        "select c.table_name, c.key from tieout_checks c where
         (select count(*) from tieout_journal j where j.table_name = c.table_name
         and j.key = c.key and {ended}) <> (select count(*) from tieout_outbox o
         where o.table_name = c.table_name and o.key = c.key and o.kind <> 'transaction.review'
         and o.run_id not in (select run_id from tieout_prunes))",
    ),
    (
        "I30",
        "an event of review stands for a case of its own",
        "select c.table_name, c.key from tieout_checks c where
         (select count(*) from tieout_cases k where k.subject_kind = 'row'
         and k.table_name = c.table_name and k.subject = c.key) < (select count(*)
         from tieout_outbox o where o.table_name = c.table_name and o.key = c.key
         and o.kind = 'transaction.review')",
    ),
    (
        "I30",
        "events of a row are numbered without gaps, and counted",
        "select c.table_name, c.key, cast(c.events as text) from tieout_checks c
         where c.events <> (select count(*) from tieout_outbox o
         where o.table_name = c.table_name and o.key = c.key) or c.events <>
         coalesce((select max(o.version) from tieout_outbox o
         where o.table_name = c.table_name and o.key = c.key), 0)",
    ),
    (
        "I21",
        "a file's lines are all there, or none is",
        "select cast(f.id as text), cast(f.lines as text) from tieout_files f where f.lines <>
         (select count(*) from tieout_lines l where l.file_id = f.id)",
    ),
    (
        "I14",
        "a line is of a statement of its file, which says how many it has",
        "select cast(l.file_id as text), cast(l.statement as text), cast(count(*) as text)
         from tieout_lines l left join tieout_statements s
         on s.file_id = l.file_id and s.number = l.statement
         group by l.file_id, l.statement, s.lines having s.lines is null or s.lines <> count(*)",
    ),
    (
        "I20",
        "a statement is live once",
        "select account, statement_id, sequence from tieout_statements where state = 'live'
         and (statement_id <> '' or sequence <> '')
         group by account, bank_account, currency, statement_id, sequence, from_on, to_on,
         finality having count(*) > 1",
    ),
    (
        "I11",
        "only lines of live statements decide, and a superseded one decides nothing",
        "select cast(l.file_id as text), cast(l.position as text) from tieout_lines l
         join tieout_statements s on s.file_id = l.file_id and s.number = l.statement
         where (case when l.decides then 1 else 0 end) = 1
         and (s.state = 'held' or l.state = 'excluded')",
    ),
    (
        "I11",
        "a line becomes a row's once, by a run that was there",
        "select cast(l.file_id as text), cast(l.position as text), l.run_id from tieout_lines l
         where l.run_id is not null and (l.key is null
         or not exists (select 1 from tieout_runs r where r.id = l.run_id))",
    ),
    (
        "I11",
        "no line pays two rows: what succeeded by a line is not another row's line",
        "select j.table_name, j.key, j.psp_reference, l.table_name, l.key from tieout_journal j
         join tieout_lines l on l.account = j.account and j.psp_reference =
         cast(l.file_id as text) || ':' || cast(l.position as text)
         where j.outcome = 'succeeded' and j.applied = 'yes' and j.reason <> 'by_person'
         and l.key is not null and (l.table_name <> j.table_name or l.key <> j.key)",
    ),
    (
        "I11",
        "what a row is worth is said once by a run, whatever its lines",
        "select table_name, key, run_id from tieout_lines where key is not null
         group by table_name, key, run_id
         having count(distinct row_minor) > 1 or count(distinct row_currency) > 1",
    ),
    (
        "I14",
        "a line that was looked at in vain says by whom and why, and a run of then",
        "select cast(l.file_id as text), cast(l.position as text) from tieout_lines l
         where (l.seen_run is null) <> (l.seen_reason is null)
         or (l.state = 'open' and l.reason is not null and l.seen_run is null)
         or (l.seen_run is not null
         and not exists (select 1 from tieout_runs r where r.id = l.seen_run))",
    ),
    (
        "I14",
        "a comparison has each row, object and line once, and counts without a gap",
        "select run_id, table_name, key from tieout_compared where local_status is not null
         group by run_id, table_name, key having count(*) > 1
         union all select run_id, account, psp_reference from tieout_compared
         where psp_reference is not null
         group by run_id, account, psp_reference having count(*) > 1
         union all select run_id, cast(file_id as text), cast(position as text)
         from tieout_compared where file_id is not null
         group by run_id, file_id, position having count(*) > 1
         union all select run_id, cast(count(*) as text), cast(max(number) as text)
         from tieout_compared group by run_id having count(*) <> max(number)",
    ),
    (
        "I33",
        "who proposed what needs two people did not approve it",
        "select cast(number as text), proposed_by from tieout_proposals
         where (case when four_eyes then 1 else 0 end) = 1 and approved_by = proposed_by",
    ),
    (
        "I33",
        "a person's decision that was carried out has its one record",
        "select cast(p.number as text), p.what from tieout_proposals p
         join tieout_cases k on k.number = p.case_number
         where p.state = 'carried_out' and p.what <> 'left'
         and p.ended_run not in (select run_id from tieout_prunes) and 1 <>
         (select count(*) from tieout_journal j where j.run_id = p.ended_run
         and j.table_name = k.table_name and j.key = k.subject and j.reason = 'by_person'
         and j.outcome = p.what and j.applied = 'yes')",
    ),
];

/// What is broken, in words; empty where everything holds. `place` is a PostgreSQL address, or an
/// SQLite address or path.
pub async fn broken(place: &str, mapped: &[Mapped<'_>]) -> Vec<String> {
    let raw = Raw::open(place).await;
    let mut broken = Vec::new();
    for (name, says, query) in EVERYWHERE {
        let rows = raw.rows(&query.replace("{ended}", ENDED)).await;
        if !rows.is_empty() {
            broken.push(format!("{name}: {says}: {rows:?}"));
        }
    }
    for table in mapped {
        let rows = raw.rows(&as_journalled(table)).await;
        if !rows.is_empty() {
            broken.push(format!("I2: {} has the status of its last change: {rows:?}", table.name));
        }
    }
    raw.close().await;
    broken
}

/// Rows whose status is not what the last record that changed it says.
fn as_journalled(table: &Mapped<'_>) -> String {
    let Mapped { name, relation, key, status } = table;
    format!(
        "select j.key, j.status_after, {status} from tieout_journal j
         join tieout_runs r on r.id = j.run_id join {relation} t on {key} = j.key
         where j.table_name = '{name}' and j.status_before <> j.status_after
         and {status} <> j.status_after and not exists (select 1 from tieout_journal later
         where later.table_name = j.table_name and later.key = j.key
         and later.status_before <> later.status_after
         and (later.at > j.at or (later.at = j.at and later.run_id = j.run_id
         and later.seq > j.seq)))"
    )
}

/// Fails with everything that is broken.
pub async fn assert_invariants(place: &str, mapped: &[Mapped<'_>]) {
    let broken = broken(place, mapped).await;
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::settled::{head, line, put, whole};
    use crate::store::world::{World, at, noon, retryable, review, succeeded, wait};
    use tieout::store::sqlite::SqliteStore;

    /// What each invariant says, and how to break it; in the order of `EVERYWHERE`.
    const BREAKING: &[(&str, &str)] = &[
        (
            "ended by a change of status at most once",
            "insert into tieout_journal select run_id, writer, 9, at, table_name, key, account, tag,
             kind, currency, amount_minor, asked, 'failed', reason, rule, text, applied,
             status_before, 'failed', psp_reference, psp_status, psp_currency, psp_amount_minor,
             fingerprint, evidence_sha256, row_created_at, row_attempted_at, checks, next_check_at,
             handback_number, case_number, policy_version, prev_hash, hash
             from tieout_journal where key = '1'",
        ),
        ("each writer counts from 1", "update tieout_journal set seq = 99 where key = '4'"),
        ("as many records as it says", "update tieout_runs set journal_count = 9"),
        ("evidence is there", "delete from tieout_evidence"),
        (
            "only an end or a review",
            "update tieout_journal set status_after = 'paid' where key = '4'",
        ),
        (
            "leaves nothing behind",
            "update tieout_journal set applied = 'superseded' where key = '3'",
        ),
        ("has its one record", "delete from tieout_journal where key = '3'"),
        ("has its hand-back", "delete from tieout_handbacks"),
        ("numbered without gaps, and counted", "update tieout_handbacks set number = 2"),
        ("looks again later", "update tieout_journal set next_check_at = at where key = '4'"),
        ("exactly one open case", "delete from tieout_cases"),
        (
            "at most one open case",
            "insert into tieout_cases select 99, subject_kind, table_name, subject, reason, text,
             state, account, currency, amount_minor, rule, policy_version, evidence_sha256,
             opened_at, opened_run, last_seen_at, last_run, times_seen, owner, closed_at,
             closed_run, resolution, looked_at, merged_into from tieout_cases",
        ),
        ("names its case", "update tieout_journal set case_number = 77 where key = '2'"),
        ("holds its PSP object", "update tieout_references set key = '4'"),
        ("holds no lease", "update tieout_checks set lease_run = 'r1' where key = '5'"),
        ("numbered from 1", "update tieout_runs set close_number = 7 where id = 'r1'"),
        ("follows none", "update tieout_runs set prev_close_hash = 'x' where id = 'r1'"),
        (
            "claimed = outcomes",
            "update tieout_run_totals set amount_minor = amount_minor + 1 where run_id = 'r1'",
        ),
        ("a reason and a sentence", "update tieout_journal set text = '' where key = '1'"),
        (
            "never writes again",
            "update tieout_journal set at = '2027-01-01T00:00:00.000000Z' where key = '1'",
        ),
        ("the fencing token grew", "update tieout_checks set lease_token = 0 where key = '1'"),
        ("exactly one event", "delete from tieout_outbox where key = '1'"),
        ("an event of review", "delete from tieout_cases"),
        ("events of a row are numbered", "update tieout_outbox set version = 2 where key = '1'"),
        ("all there, or none", "delete from tieout_lines where position = 2"),
        ("of a statement of its file", "update tieout_statements set lines = 7"),
        (
            "live once",
            "drop index tieout_statements_one_live;
             insert into tieout_statements select file_id, 2, account, bank_account, currency,
             statement_id, sequence, from_on, to_on, finality, covers_attempts, opening_minor,
             closing_minor, entries, 0, ties, state, held_for, rival_file, rival_number
             from tieout_statements",
        ),
        (
            "only lines of live statements",
            "update tieout_statements set state = 'held', held_for = 'copy'",
        ),
        (
            "by a run that was there",
            "update tieout_lines set state = 'matched', table_name = 'charges', key = '1',
             run_id = 'nobody', matched_at = '2026-11-19T12:00:00.000000Z' where position = 1",
        ),
        (
            "no line pays two rows",
            "update tieout_journal set psp_reference = '1:1', account = 'stripe_live'
             where key = '1';
             update tieout_lines set state = 'matched', table_name = 'charges', key = '4',
             run_id = 'r1', matched_at = '2026-11-19T12:00:00.000000Z' where position = 1",
        ),
        (
            "is said once by a run",
            "update tieout_lines set state = 'matched', table_name = 'charges', key = '1',
             run_id = 'r1', matched_at = '2026-11-19T12:00:00.000000Z', row_minor = position",
        ),
        (
            "by whom and why",
            "update tieout_lines set reason = 'orphan' where position = 1",
        ),
        (
            "each row, object and line once",
            "insert into tieout_compared (run_id, number, bucket, account)
             values ('r1', 2, 'agrees', 'stripe_live')",
        ),
        (
            "did not approve it",
            "drop trigger tieout_proposals_guard_insert;
             insert into tieout_proposals (case_number, what, undoes, why, four_eyes, proposed_by,
             proposed_at, state, approved_by, approved_at, approved_why)
             values (1, 'failed', 0, 'x', 1, 'mara', '2026-11-19T12:00:00.000000Z', 'approved',
             'mara', '2026-11-19T12:00:00.000000Z', 'x')",
        ),
        (
            "that was carried out has its one record",
            "drop trigger tieout_proposals_guard_insert;
             drop trigger tieout_proposals_begin;
             insert into tieout_proposals (case_number, what, undoes, why, four_eyes, proposed_by,
             proposed_at, state, approved_by, approved_at, approved_why, ended_at, ended_why,
             ended_run)
             values (1, 'failed', 0, 'x', 1, 'mara', '2026-11-19T12:00:00.000000Z', 'carried_out',
             'tom', '2026-11-19T12:00:00.000000Z', 'x', '2026-11-19T12:00:00.000000Z', 'x', 'r1')",
        ),
    ];

    async fn sound() -> World<SqliteStore> {
        let w = World::<SqliteStore>::new().await;
        w.stuck(1..=5).await;
        let mut writer = w.start("r1", noon()).await;
        let claimed = w.claim("r1", 4, noon()).await;
        let decide = |c: &tieout::store::records::Claimed| match c.row.key.id.as_str() {
            "1" => succeeded(c),
            "2" => review(c),
            "3" => retryable(noon())(c),
            _other => wait(noon())(c),
        };
        w.apply("r1", &mut writer, &claimed, decide, noon()).await;
        let lines = whole(vec![line(1, "a"), line(2, "b")]);
        put(&w.store, &head("1", "a.xml"), lines).await;
        w.close("r1", at(1)).await;
        w.start("r2", at(2)).await;
        w.claim("r2", 1, at(2)).await;
        w
    }

    #[tokio::test]
    async fn every_invariant_can_fail() {
        assert_eq!(BREAKING.len(), EVERYWHERE.len());
        for ((name, says, _), (part, tamper)) in EVERYWHERE.iter().zip(BREAKING) {
            assert!(says.contains(part), "{says}: {part}");
            let w = sound().await;
            assert_eq!(broken(&w.place, &[]).await, Vec::<String>::new());
            w.raw
                .execute(&format!(
                    "pragma ignore_check_constraints = on;
                     drop trigger tieout_journal_no_update; drop trigger tieout_journal_no_delete;
                     drop trigger tieout_evidence_no_delete; drop index tieout_cases_one_open;
                     drop trigger tieout_runs_closed;
                     {tamper}"
                ))
                .await;
            let broken = broken(&w.place, &[]).await;
            let found = broken.iter().any(|text| text.starts_with(name) && text.contains(says));
            assert!(found, "nobody noticed: {says}: {broken:?}");
        }
    }

    #[tokio::test]
    async fn a_status_that_nobody_journalled_is_seen() {
        let w = sound().await;
        let mapped = || Mapped {
            name: "charges",
            relation: "charges",
            key: "cast(t.id as text)",
            status: "t.status",
        };
        assert_eq!(broken(&w.place, &[mapped()]).await, Vec::<String>::new());
        w.raw.execute("update charges set status = 'processing' where id = 1").await;
        let broken = broken(&w.place, &[mapped()]).await;
        assert!(broken.len() == 1 && broken[0].starts_with("I2"), "{broken:?}");
    }
}
