//! Pages of statements that came a file each: whether one between them is lacking.
//!
//! An MT940 of one page that goes on (`:62M:`) says that another file is to come. That is lacking
//! once a later page or statement is there and none begins with what the page ended with.

use chrono::TimeDelta;

use crate::model::money::{Currency, Money};
use crate::model::settlement::Problem;
use crate::model::time::{Instant, earlier};
use crate::run::error::{Doing, RunError};
use crate::run::gaps::note_gaps;
use crate::store::database::Database;
use crate::store::files::{
    AbsentCase, FileDriver, FileFilter, FileRow, StatementRow, StatementState,
};

/// Pages of one statement come within days.
const WITHIN: TimeDelta = TimeDelta::days(92);

/// Files that are read together.
const FILES: i64 = 500;

/// A file of pages has so few statements that this is all of them.
const STATEMENTS: i64 = 1_000;

/// The field of a page that goes on.
const GOES_ON: &str = ":62M:";

/// A page that was to go on, and what is there instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacking {
    /// The page's file.
    pub file: i64,
    /// The page's number, the file's name and its account.
    number: String,
    name: String,
    account: String,
    /// What it ended with, and what comes after it: number and balance.
    ended: String,
    next: (String, String),
}

impl Lacking {
    /// As a file's problem.
    pub fn problem(&self) -> Problem {
        let Self { number, ended, next: (next, begins), .. } = self;
        let expected = format!("the page after {number}, which ended with {ended}");
        let found = format!("{next}, which begins with {begins}: a page between them is lacking");
        Problem::warning(0, GOES_ON, expected, found)
    }

    fn case(&self) -> AbsentCase {
        let Self { number, name, ended, next: (next, begins), .. } = self;
        AbsentCase {
            source: source_of(self.file),
            expected: format!("the page after {number}"),
            account: self.account.clone(),
            text: format!(
                "{name} is page {number}, ended with {ended} and goes on; {next} begins with \
                 {begins}, and no page between them came: ask the bank for it"
            ),
        }
    }
}

/// Money of a statement in this currency; none where it is none.
pub(super) fn shown(minor: i64, currency: &str) -> Option<String> {
    let currency = Currency::parse_any(currency).ok()?;
    Some(Money::new(minor, currency).to_string())
}

/// What stands for a source in the case of a page.
fn source_of(file: i64) -> String {
    format!("file {file}")
}

/// A statement of a file.
struct Page {
    file: FileRow,
    goes_on: bool,
    statement: StatementRow,
}

impl Page {
    /// Its number and that of its page: `45/3`.
    fn number(&self) -> Option<(u64, u64)> {
        let text = self.statement.sequence.as_str();
        let (number, page) = text.split_once('/').unwrap_or((text, "0"));
        Some((number.trim().parse().ok()?, page.trim().parse().ok()?))
    }

    /// Whether both are of one account at the bank, in different files.
    fn is_beside(&self, other: &Self) -> bool {
        let (own, its) = (&self.statement, &other.statement);
        let is_same = own.bank_account == its.bank_account && own.currency == its.currency;
        is_same && self.file.id != other.file.id
    }

    fn balance(&self, minor: Option<i64>) -> Option<String> {
        shown(minor?, &self.statement.currency)
    }

    /// Whether another one begins where this one ended.
    fn is_followed(&self, pages: &[Self]) -> bool {
        let ended = self.statement.closing_minor;
        let mut others = pages.iter().filter(|other| self.is_beside(other));
        ended.is_some() && others.any(|other| other.statement.opening_minor == ended)
    }

    /// What is there instead of the page that goes on, where a later one is.
    fn lacking(&self, pages: &[Self]) -> Option<Lacking> {
        let own = self.number()?;
        let later = pages.iter().filter(|other| self.is_beside(other));
        let later = later.filter_map(|other| Some((other.number()?, other)));
        let (_, next) = later.filter(|(number, _)| *number > own).min_by_key(|(n, _)| *n)?;
        Some(Lacking {
            file: self.file.id,
            number: self.statement.sequence.clone(),
            name: self.file.name.clone(),
            account: self.file.account.clone(),
            ended: self.balance(self.statement.closing_minor)?,
            next: (next.statement.sequence.clone(), next.balance(next.statement.opening_minor)?),
        })
    }
}

fn is_mt940(file: &FileRow) -> bool {
    file.format == "mt940"
}

fn goes_on(file: &FileRow) -> bool {
    file.problems.iter().any(|problem| problem.field == GOES_ON)
}

/// The statements of an account's MT940 files that came of late; none where no page goes on.
async fn pages_of(db: &Database, account: &str, now: Instant) -> Result<Vec<Page>, RunError> {
    let since = earlier(now, WITHIN);
    let mut files: Vec<FileRow> = Vec::new();
    let mut before = None;
    loop {
        let account = Some(account.to_owned());
        let filter = FileFilter { account, before, limit: FILES, ..FileFilter::default() };
        let found = db.files(&filter).await.doing("reading which pages came")?;
        let Some(last) = found.last() else { break };
        before = Some(last.id);
        let is_over = last.received_at < since;
        files.extend(found.into_iter().filter(|file| is_mt940(file) && file.received_at >= since));
        if is_over {
            break;
        }
    }
    let mut pages = Vec::new();
    if !files.iter().any(goes_on) {
        return Ok(pages);
    }
    for file in files {
        let statements = db.statements(file.id, 0, STATEMENTS).await;
        for statement in statements.doing("reading the balances of pages")? {
            if statement.state == StatementState::Live {
                pages.push(Page { file: file.clone(), goes_on: goes_on(&file), statement });
            }
        }
    }
    Ok(pages)
}

/// The pages of an account that are to go on, and that something else came after.
pub async fn lacking(db: &Database, account: &str, now: Instant) -> Result<Vec<Lacking>, RunError> {
    let pages = pages_of(db, account, now).await?;
    let open = pages.iter().filter(|page| page.goes_on && !page.is_followed(&pages));
    Ok(open.filter_map(|page| page.lacking(&pages)).collect())
}

/// Opens a case for each page that is lacking, and for each statement between two others, where the
/// newest file is this run's or a person's word changed its statements, and closes those of what is
/// there now. Whoever brings a file in after this run does the same then.
pub(super) async fn note_pages(
    db: &Database,
    run_id: &str,
    account: &str,
    now: Instant,
    is_changed: bool,
) -> Result<(), RunError> {
    let newest =
        FileFilter { account: Some(account.to_owned()), limit: 1, ..FileFilter::default() };
    let newest = db.files(&newest).await.doing("reading which pages came")?;
    if !is_changed && newest.iter().all(|file| file.run_id != run_id) {
        return Ok(());
    }
    let pages = pages_of(db, account, now).await?;
    let mut told = Vec::new();
    for page in pages.iter().filter(|page| page.goes_on) {
        if page.is_followed(&pages) {
            let source = source_of(page.file.id);
            let closed = db.close_absent_cases(run_id, &source, &[], now).await;
            closed.doing("closing cases about missing pages")?;
        } else if let Some(lacking) = page.lacking(&pages) {
            let put = db.put_absent_case(run_id, &lacking.case(), now).await;
            put.doing("opening a case about a missing page")?;
            told.push((page.statement.bank_account.clone(), lacking.next.0));
        }
    }
    note_gaps(db, run_id, account, now, &told).await
}
