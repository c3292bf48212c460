//! Cases: opened once per subject, refreshed, closed; and what is known of accounts.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::model::reason::Reason;
use crate::model::time::{Instant, to_text};
use crate::model::transaction::hex;
use crate::store::driver::{AccountCase, AccountState, CaseCounts, CaseFilter};
use crate::store::effects::RowEffects;
use crate::store::error::StoreError;
use crate::store::people::buckets_of;
use crate::store::records::CaseRow;
use crate::store::sqlite::cells::Cells;
use crate::store::sqlite::journal::insert_evidence;
use crate::store::sqlite::people::end_outrun;
use crate::store::sqlite::sql::{execute, failed, fetch, json_set, rendered};
use crate::store::sqlite::statements::Statement;

const OPENING: &str = "opening cases";
const CLOSING: &str = "closing cases";
const READING: &str = "reading cases";

pub(super) const COLUMNS: &str = "number, subject_kind, table_name, subject, reason, text, \
     state, account, currency, amount_minor, rule, policy_version, evidence_sha256, opened_at, \
     opened_run, last_seen_at, last_run, times_seen, owner, closed_at, resolution";

pub(super) fn case_of(row: &SqliteRow) -> Result<CaseRow, StoreError> {
    let cells = Cells::new(row, READING);
    Ok(CaseRow {
        number: cells.int(0)?,
        subject_kind: cells.text(1)?,
        table: cells.text(2)?,
        subject: cells.text(3)?,
        reason: cells.word(4, Reason::parse)?,
        text: cells.text(5)?,
        open: cells.str(6)? == "open",
        account: cells.opt_text(7)?,
        currency: cells.text(8)?,
        amount_minor: cells.int(9)?,
        rule: cells.opt_text(10)?,
        policy_version: cells.text(11)?,
        evidence_sha256: cells.opt_text(12)?,
        opened_at: cells.at(13)?,
        opened_run: cells.text(14)?,
        last_seen_at: cells.at(15)?,
        last_run: cells.text(16)?,
        times_seen: cells.int(17)?,
        owner: cells.opt_text(18)?,
        closed_at: cells.opt_at(19)?,
        resolution: cells.opt_text(20)?,
    })
}

/// One subject's case as the upsert reads it.
type NewCase = [serde_json::Value; 11];

/// Opens cases, or refreshes those that are open already; their numbers by subject.
async fn put(
    connection: &mut SqliteConnection,
    run_id: &str,
    cases: &[NewCase],
    now: Instant,
) -> Result<HashMap<String, i64>, StoreError> {
    let query = sqlx::query(
        "insert into tieout_cases (subject_kind, table_name, subject, reason, text, account, \
         currency, amount_minor, rule, policy_version, evidence_sha256, state, opened_at, \
         opened_run, last_seen_at, last_run) \
         select j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4, \
         j.value ->> 5, j.value ->> 6, j.value ->> 7, j.value ->> 8, j.value ->> 9, \
         j.value ->> 10, 'open', ?2, ?3, ?2, ?3 from json_each(?1) j where true order by j.key \
         on conflict (subject_kind, table_name, subject) where state = 'open' do update \
         set reason = excluded.reason, text = excluded.text, account = excluded.account, \
         currency = excluded.currency, amount_minor = excluded.amount_minor, \
         rule = excluded.rule, policy_version = excluded.policy_version, \
         evidence_sha256 = excluded.evidence_sha256, last_seen_at = excluded.last_seen_at, \
         last_run = excluded.last_run, times_seen = times_seen + 1 \
         returning subject, number",
    )
    .bind(json_set(cases))
    .bind(to_text(now))
    .bind(run_id.to_owned());
    let mut numbers = HashMap::new();
    for row in fetch(connection, OPENING, query).await? {
        let cells = Cells::new(&row, OPENING);
        numbers.insert(cells.text(0)?, cells.int(1)?);
    }
    Ok(numbers)
}

/// Opens or refreshes the cases of rows; their numbers by key.
pub(super) async fn put_rows(
    connection: &mut SqliteConnection,
    run_id: &str,
    effects: &[&RowEffects],
    now: Instant,
) -> Result<HashMap<String, i64>, StoreError> {
    let cases: Vec<NewCase> = effects
        .iter()
        .map(|effect| {
            let record = &effect.journal;
            [
                "row".into(),
                record.table.clone().into(),
                record.key.clone().into(),
                record.reason.as_str().into(),
                record.text.clone().into(),
                record.account.clone().into(),
                record.currency.clone().into(),
                record.amount_minor.into(),
                record.rule.clone().into(),
                record.policy_version.clone().into(),
                record.evidence_sha256.clone().into(),
            ]
        })
        .collect();
    if cases.is_empty() {
        return Ok(HashMap::new());
    }
    put(connection, run_id, &cases, now).await
}

/// Closes the open cases of rows: (key, resolution).
pub(super) async fn close_rows(
    connection: &mut SqliteConnection,
    run_id: &str,
    table: &str,
    closings: &[(&str, &str)],
    now: Instant,
) -> Result<(), StoreError> {
    if closings.is_empty() {
        return Ok(());
    }
    // The numbers first: by a number the row is found without a choice of indexes.
    let query = sqlx::query(
        "select k.number, j.value ->> 1 from json_each(?1) j cross join tieout_cases k \
         on k.subject_kind = 'row' and k.table_name = ?2 and k.subject = j.value ->> 0 \
         and k.state = 'open'",
    )
    .bind(json_set(closings))
    .bind(table.to_owned());
    let mut numbers = Vec::new();
    for row in fetch(connection, CLOSING, query).await? {
        let cells = Cells::new(&row, CLOSING);
        numbers.push((cells.int(0)?, cells.text(1)?));
    }
    close_numbered(connection, run_id, &numbers, now).await
}

/// Closes these cases, (number, resolution), and ends what is proposed of them.
pub(super) async fn close_numbered(
    connection: &mut SqliteConnection,
    run_id: &str,
    ended: &[(i64, String)],
    now: Instant,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "update tieout_cases as c set state = 'closed', closed_at = ?2, closed_run = ?3, \
         resolution = j.value ->> 1 from json_each(?1) j where c.number = j.value ->> 0",
    )
    .bind(json_set(ended))
    .bind(to_text(now))
    .bind(run_id.to_owned());
    execute(&mut *connection, CLOSING, query).await?;
    let numbers: Vec<i64> = ended.iter().map(|(number, _)| *number).collect();
    end_outrun(connection, run_id, &numbers, now).await
}

pub(super) async fn put_account(
    connection: &mut SqliteConnection,
    run_id: &str,
    case: &AccountCase,
    now: Instant,
) -> Result<i64, StoreError> {
    let sha256 = hex(&Sha256::digest(case.evidence.as_bytes()));
    insert_evidence(connection, &[(&sha256, &case.evidence)], now).await?;
    let new: NewCase = [
        "account".into(),
        "".into(),
        case.account.clone().into(),
        case.reason.as_str().into(),
        case.text.clone().into(),
        case.account.clone().into(),
        "".into(),
        0.into(),
        serde_json::Value::Null,
        case.policy_version.clone().into(),
        sha256.into(),
    ];
    let numbers = put(connection, run_id, &[new], now).await?;
    numbers.into_values().next().ok_or_else(|| StoreError::Unexpected {
        doing: OPENING,
        problem: format!("the case of account {} has no number", case.account),
    })
}

pub(super) async fn close_account(
    connection: &mut SqliteConnection,
    run_id: &str,
    account: &str,
    reason: Reason,
    resolution: &str,
    now: Instant,
) -> Result<bool, StoreError> {
    let query = sqlx::query(
        "update tieout_cases set state = 'closed', closed_at = ?3, closed_run = ?4, \
         resolution = ?5 where subject_kind = 'account' and table_name = '' and subject = ?1 \
         and reason = ?2 and state = 'open' and not exists (select 1 from tieout_checks c \
         where c.account = tieout_cases.subject and c.last_reason = tieout_cases.reason \
         and c.state = 'open')",
    )
    .bind(account.to_owned())
    .bind(reason.as_str())
    .bind(to_text(now))
    .bind(run_id.to_owned())
    .bind(resolution.to_owned());
    Ok(execute(connection, CLOSING, query).await? > 0)
}

/// What a case must fulfil; pages are left aside.
pub(super) fn conditions(statement: &mut Statement, filter: &CaseFilter) -> String {
    let mut all = vec!["true".to_owned()];
    if filter.open_only {
        all.push("state = 'open'".to_owned());
    }
    let texts = [
        ("reason =", &filter.reason),
        ("opened_run =", &filter.opened_run),
        ("account =", &filter.account),
        ("table_name =", &filter.table),
        ("coalesce(owner, '') =", &filter.owner),
        ("currency =", &filter.currency),
        ("rule =", &filter.rule),
        ("policy_version =", &filter.policy_version),
    ];
    for (column, value) in texts {
        all.extend(
            value.as_ref().map(|text| format!("{column} {}", statement.text(text.as_str()))),
        );
    }
    let times = [("opened_at >=", filter.opened_from), ("opened_at <", filter.opened_to)];
    for (column, at) in times {
        all.extend(at.map(|at| format!("{column} {}", statement.text(to_text(at)))));
    }
    for (column, amount) in
        [("abs(amount_minor) >=", filter.amount_from), ("abs(amount_minor) <=", filter.amount_to)]
    {
        all.extend(amount.map(|amount| format!("{column} {}", statement.int(amount))));
    }
    if let Some(since) = filter.closed_since {
        let since = statement.text(to_text(since));
        all.push(format!("(closed_at is null or closed_at >= {since})"));
    }
    if let Some(numbers) = &filter.numbers {
        let numbers = statement.text(json_set(numbers));
        all.push(format!("number in (select value from json_each({numbers}))"));
    }
    if let Some(whole) = filter.whole {
        let whole = statement.int(whole);
        all.push(format!("(number = {whole} or merged_into = {whole})"));
    }
    if let Some(state) = filter.proposed {
        let state = statement.text(state.as_str());
        all.push(format!(
            "number in (select case_number from tieout_proposals where state = {state})"
        ));
    }
    all.join(" and ")
}

/// Where open cases are, by number.
const WAITING: &str = "tieout_cases indexed by tieout_cases_waiting";

/// When a case was looked at last, as the index of such instants spells it.
pub(super) const UNSEEN_SINCE: &str = "max(coalesce(looked_at, ''), last_seen_at)";

/// Where cases are looked for. SQLite would take the index that begins with the state, and sort
/// all that are open; where the filter names few of them, it finds their index by itself.
pub(super) fn source(filter: &CaseFilter) -> &'static str {
    let names_few =
        filter.reason.is_some() || filter.opened_run.is_some() || filter.whole.is_some();
    match filter.open_only && !names_few {
        true => WAITING,
        false => "tieout_cases",
    }
}

fn listing(filter: &CaseFilter) -> Statement {
    let mut statement = Statement::default();
    let wanted = conditions(&mut statement, filter);
    let after = statement.int(filter.after.unwrap_or(0));
    let limit = statement.int(filter.limit);
    let source = match source(filter) {
        WAITING if filter.longest_unseen => "tieout_cases indexed by tieout_cases_unseen",
        source => source,
    };
    let by = if filter.longest_unseen { format!("{UNSEEN_SINCE}, ") } else { String::new() };
    statement.push(&format!(
        "select {COLUMNS} from {source} where {wanted} and number > {after} \
         order by {by}number limit {limit}"
    ));
    statement
}

pub(super) async fn list(
    connection: &mut SqliteConnection,
    filter: &CaseFilter,
) -> Result<Vec<CaseRow>, StoreError> {
    let query = listing(filter).query();
    fetch(connection, READING, query).await?.iter().map(case_of).collect()
}

/// How SQLite would list these cases, step by step.
pub(super) async fn plan(
    connection: &mut SqliteConnection,
    filter: &CaseFilter,
) -> Result<Vec<String>, StoreError> {
    let rows = fetch(connection, READING, listing(filter).explained().query()).await?;
    rows.iter().map(|row| Cells::new(row, READING).text(3)).collect()
}

/// How many cases the filter means, and their sums by currency; its page is left aside.
pub(super) fn summing(filter: &CaseFilter) -> Statement {
    let mut statement = Statement::default();
    let wanted = conditions(&mut statement, filter);
    let in_index = CaseFilter {
        open_only: filter.open_only,
        opened_run: filter.opened_run.clone(),
        currency: filter.currency.clone(),
        after: filter.after,
        limit: filter.limit,
        ..CaseFilter::default()
    };
    let source = match *filter == in_index {
        true => "tieout_cases indexed by tieout_cases_sums",
        false => source(filter),
    };
    // Grouped by the state first, the index has them in order: nothing is sorted but the groups. A
    // sum beyond 64 bits would be an error of SQLite's: the halves are added by whoever reads.
    let by = if *filter == in_index { "state, currency" } else { "currency" };
    statement.push(&format!(
        "select currency, sum(cases), sum(millions), sum(rest) from (select currency, \
         count(*) as cases, sum(amount_minor / 1000000) as millions, \
         sum(amount_minor % 1000000) as rest from {source} where {wanted} group by {by}) \
         group by currency order by currency"
    ));
    statement
}

/// The same of the first by number: as many are read as are counted.
pub(super) fn summing_first(filter: &CaseFilter, most: i64) -> Statement {
    let mut statement = Statement::default();
    let wanted = conditions(&mut statement, filter);
    let most = statement.int(most);
    let source = source(filter);
    statement.push(&format!(
        "select currency, count(*), sum(amount_minor / 1000000), sum(amount_minor % 1000000) \
         from (select currency, amount_minor from {source} where {wanted} order by number \
         limit {most}) group by currency order by currency"
    ));
    statement
}

/// The ages of the first open cases by number: nothing is grouped, since a sort of so many would
/// take longer than to read them.
pub(super) async fn ages_of_first(
    connection: &mut SqliteConnection,
    edges: &[Instant],
    most: i64,
) -> Result<Vec<(usize, i64)>, StoreError> {
    let mut statement = Statement::default();
    let mut counts = vec!["count(*)".to_owned()];
    for edge in edges {
        let edge = statement.text(to_text(*edge));
        counts.push(format!("count(*) filter (where opened_at < {edge})"));
    }
    let (counts, most) = (counts.join(", "), statement.int(most));
    statement.push(&format!(
        "select {counts} from (select opened_at from tieout_cases \
         indexed by tieout_cases_waiting where state = 'open' order by number limit {most})"
    ));
    let row = statement.query().fetch_one(connection).await.map_err(failed(READING))?;
    let cells = Cells::new(&row, READING);
    let older: Result<Vec<i64>, StoreError> =
        (0..=edges.len()).map(|column| cells.int(column)).collect();
    Ok(buckets_of(&older?))
}

pub(super) async fn one(
    connection: &mut SqliteConnection,
    number: i64,
) -> Result<Option<CaseRow>, StoreError> {
    let sql = format!("select {COLUMNS} from tieout_cases where number = ?1");
    let rows = fetch(connection, READING, rendered(&sql).bind(number)).await?;
    rows.first().map(case_of).transpose()
}

pub(super) async fn counts(
    connection: &mut SqliteConnection,
    run_id: &str,
) -> Result<CaseCounts, StoreError> {
    let query = sqlx::query(
        "select (select count(*) from tieout_cases where opened_run = ?1), \
         (select count(*) from tieout_cases where closed_run = ?1), \
         (select count(*) from tieout_cases where state = 'open')",
    )
    .bind(run_id.to_owned());
    let row = query.fetch_one(connection).await.map_err(failed(READING))?;
    let cells = Cells::new(&row, READING);
    let count = |column| cells.int(column).map(|count| u64::try_from(count).unwrap_or(0));
    Ok(CaseCounts { opened: count(0)?, closed: count(1)?, open: count(2)? })
}

pub(super) async fn account_state(
    connection: &mut SqliteConnection,
    account: &str,
) -> Result<AccountState, StoreError> {
    let doing = "reading what is known of an account";
    let query = sqlx::query(
        "select a.paused_at, a.paused_why, a.unanswered_since, a.usual_permille, \
         exists (select 1 from tieout_files f where f.account = n.account) \
         from (select ?1 as account) n left join tieout_accounts a on a.account = n.account",
    )
    .bind(account.to_owned());
    let row = query.fetch_one(connection).await.map_err(failed(doing))?;
    let cells = Cells::new(&row, doing);
    let why = cells.opt_text(1)?.unwrap_or_default();
    Ok(AccountState {
        paused: cells.opt_at(0)?.map(|at| (at, why)),
        unanswered_since: cells.opt_at(2)?,
        usual_permille: cells.opt_small(3)?,
        has_files: cells.int(4)? != 0,
    })
}

pub(super) async fn put_account_state(
    connection: &mut SqliteConnection,
    account: &str,
    unanswered_since: Option<Instant>,
    usual_permille: Option<u32>,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "insert into tieout_accounts (account, unanswered_since, usual_permille) \
         values (?1, ?2, ?3) on conflict (account) do update \
         set unanswered_since = excluded.unanswered_since, \
         usual_permille = coalesce(excluded.usual_permille, tieout_accounts.usual_permille)",
    )
    .bind(account.to_owned())
    .bind(unanswered_since.map(to_text))
    .bind(usual_permille);
    execute(connection, "storing what is known of an account", query).await.map(|_| ())
}
