//! Settlement files as they are kept: all of a file or nothing, and each line one row's.

use chrono::NaiveDate;
use tieout::model::money::Currency;
use tieout::model::settlement::{
    Direction, EntryStatus, Finality, LineKind, Problem, Tag, TagKind,
};
use tieout::store::driver::CaseFilter;
use tieout::store::files::{
    FileDriver, FileEnd, FileHead, FileSums, Held, LineMark, LinePlace, LineState, NewLine,
    NewStatement, Part, Sighting, StatementClose, StoredLine, decides,
};
use tokio::sync::mpsc;

use super::world::{Under, World, eur, noon};

/// A store that keeps files as well.
pub trait Keeps: Under + FileDriver {}

impl<D: Under + FileDriver> Keeps for D {}

/// A file of these bytes under this name.
pub fn head(bytes: &str, name: &str) -> FileHead {
    FileHead {
        account: "stripe_live".to_owned(),
        sha256: format!("{bytes:0>64}"),
        shut_sha256: format!("{bytes}{:0>60}", name.len()),
        sighting: Sighting {
            source: "bank".to_owned(),
            name: name.to_owned(),
            raw_sha256: format!("{bytes}{:0>60}", name.len()),
            raw_bytes: 12,
            modified_at: Some(noon()),
        },
        spooled_as: None,
        format: "camt.053".to_owned(),
        version: "08".to_owned(),
        encoding: None,
    }
}

/// The head of the one statement of most files.
pub fn statement() -> NewStatement {
    NewStatement {
        number: 1,
        account: "stripe_live".to_owned(),
        bank_account: "DE02".to_owned(),
        statement_id: "2026-323".to_owned(),
        sequence: "7".to_owned(),
        finality: Finality::Final,
        covers_attempts: false,
        held: None,
    }
}

/// Its end.
pub fn close(lines: u64) -> StatementClose {
    StatementClose {
        number: 1,
        currency: Currency::parse("EUR").ok(),
        from: NaiveDate::from_ymd_opt(2026, 11, 18),
        to: NaiveDate::from_ymd_opt(2026, 11, 18),
        opening_minor: Some(0),
        closing_minor: Some(1),
        entries: lines,
        lines,
        ties: Some(true),
    }
}

/// A booked payment of 19.00 EUR.
pub fn line(position: u64, tag: &str) -> NewLine {
    NewLine {
        position,
        statement: 1,
        entry: position,
        file_line: position + 9,
        kind: LineKind::Movement,
        direction: Direction::Credit,
        minor: Some(1900),
        currency: Currency::parse("EUR").unwrap(),
        gross: None,
        fee: None,
        net: None,
        status: EntryStatus::Booked,
        decides: true,
        itemised: true,
        tags: vec![tag.to_owned()],
        psp_reference: None,
        original: None,
        return_reason: None,
        type_code: None,
        bank_reference: None,
        batch: None,
        order: None,
        booked_on: NaiveDate::from_ymd_opt(2026, 11, 18),
        value_on: None,
        refs: vec![Tag { kind: TagKind::EndToEndId, text: tag.to_owned() }],
        raw: format!("<Ntry>{tag}</Ntry>"),
    }
}

/// A file of one statement with these lines.
pub fn whole(lines: Vec<NewLine>) -> Vec<Part> {
    let count = u64::try_from(lines.len()).unwrap();
    let sums = FileSums {
        statements: 1,
        entries: count,
        lines: count,
        totals: "{}".to_owned(),
        ..FileSums::default()
    };
    vec![
        Part::Statement(Box::new(statement())),
        Part::Lines(lines),
        Part::StatementEnd(Box::new(close(count))),
        Part::Whole(Box::new(sums)),
    ]
}

/// Brings parts in.
pub async fn put<D: Keeps>(store: &D, head: &FileHead, parts: Vec<Part>) -> FileEnd {
    let (sender, receiver) = mpsc::channel(2);
    let send = async move {
        for part in parts {
            if sender.send(part).await.is_err() {
                break;
            }
        }
    };
    let (end, ()) = tokio::join!(store.put_file("r1", head, receiver, noon()), send);
    end.unwrap()
}

async fn world<D: Keeps>() -> World<D> {
    let w = World::<D>::new().await;
    w.start("r1", noon()).await;
    w
}

async fn counted<D: Keeps>(w: &World<D>, table: &str) -> String {
    w.raw.one(&format!("select cast(count(*) as text) from {table}")).await
}

async fn found<D: Keeps>(w: &World<D>, tag: &str) -> Vec<StoredLine> {
    w.store.lines_of("stripe_live", &[tag.to_owned()], &[]).await.unwrap()
}

pub async fn a_file_comes_in_whole<D: Keeps>() {
    let w = world::<D>().await;
    let fee = NewLine { kind: LineKind::Fee, decides: false, ..line(2, "b") };
    let attempt = NewLine { kind: LineKind::Attempt, decides: false, ..line(3, "c") };
    let end = put(&w.store, &head("1", "a.xml"), whole(vec![line(1, "a"), fee, attempt])).await;
    assert_eq!(end, FileEnd::Loaded { id: 1, held: 0 });
    let states = w.raw.rows("select tag, state from tieout_lines order by position").await;
    let states: Vec<String> = states.into_iter().map(|row| format!("{row:?}")).collect();
    assert!(states[0].contains("open") && states[1].contains("excluded"), "{states:?}");
    assert!(states[2].contains("open"), "{states:?}");
    assert_eq!(found(&w, "b").await, [], "a fee is nobody's");
    let attempt = found(&w, "c").await.remove(0);
    assert_eq!((attempt.decides, attempt.kind), (false, LineKind::Attempt));
    let file = "select state || ' ' || cast(lines as text) || ' ' || format from tieout_files";
    assert_eq!(w.raw.one(file).await, "loaded 3 camt.053");
    assert_eq!(w.raw.one("select state from tieout_statements").await, "live");
    let figures = w.store.file_figures().await.unwrap();
    assert_eq!(figures.newest, [("bank".to_owned(), noon())]);
    let open = ("credit".to_owned(), "EUR".to_owned(), 1_900);
    assert_eq!(figures.unmatched, [open], "neither a fee nor an attempt is a row's money");
    w.finish().await;
}

pub async fn the_same_bytes_are_known<D: Keeps>() {
    let w = world::<D>().await;
    put(&w.store, &head("1", "a.xml"), whole(vec![line(1, "a")])).await;
    let end = put(&w.store, &head("1", "b.xml.gz"), whole(vec![line(1, "a"); 9])).await;
    assert_eq!(end, FileEnd::Known { id: 1 });
    let end = put(&w.store, &head("1", "b.xml.gz"), whole(vec![line(1, "a"); 9])).await;
    assert_eq!(end, FileEnd::Known { id: 1 });
    assert_eq!(counted(&w, "tieout_lines").await, "1");
    assert_eq!(counted(&w, "tieout_file_names").await, "2");
    w.finish().await;
}

pub async fn a_file_that_does_not_end_leaves_nothing<D: Keeps>() {
    let w = world::<D>().await;
    let all = whole(vec![line(1, "a")]);
    for upto in 0..all.len() {
        let end = put(&w.store, &head("1", "a.xml"), all[..upto].to_vec()).await;
        assert_eq!(end, FileEnd::Dropped, "{upto} parts");
        for table in ["tieout_files", "tieout_file_names", "tieout_lines", "tieout_statements"] {
            assert_eq!(counted(&w, table).await, "0", "{table} after {upto} parts");
        }
    }
    w.close("r1", noon()).await;
    let end = put(&w.store, &head("1", "a.xml"), all).await;
    assert_eq!(end, FileEnd::Dropped, "the run is closed");
    assert_eq!(counted(&w, "tieout_files").await, "0");
    w.finish().await;
}

pub async fn a_quarantined_file_has_no_lines<D: Keeps>() {
    let w = world::<D>().await;
    let mut parts = whole(vec![line(1, "a")]);
    let problem = Problem::error(7, "Bal/CLBD", "19.00 EUR", "18.00 EUR");
    let sums = FileSums {
        lines: 1,
        totals: "{}".to_owned(),
        problems: vec![problem],
        problems_total: 3,
        ..FileSums::default()
    };
    *parts.last_mut().unwrap() = Part::Quarantine(Box::new(sums));
    let end = put(&w.store, &head("1", "a.xml"), parts).await;
    assert_eq!(end, FileEnd::Quarantined { id: 1 });
    assert_eq!(counted(&w, "tieout_lines").await, "0");
    assert_eq!(counted(&w, "tieout_statements").await, "0");
    let filter = CaseFilter { limit: 9, ..CaseFilter::default() };
    let case = w.store.cases(&filter).await.unwrap().remove(0);
    assert_eq!(case.reason.as_str(), "file_quarantined");
    assert_eq!((case.subject_kind.as_str(), case.subject.as_str()), ("file", "1"));
    assert_eq!(
        case.text,
        "a.xml is quarantined, and none of its lines counts: line 7: Bal/CLBD: expected 19.00 \
         EUR, found 18.00 EUR (and 2 more)"
    );
    assert_eq!(case.account.as_deref(), Some("stripe_live"));
    w.finish().await;
}

pub async fn another_issue_is_held<D: Keeps>() {
    let w = world::<D>().await;
    put(&w.store, &head("1", "a.xml"), whole(vec![line(1, "a"), line(2, "b")])).await;
    let end = put(&w.store, &head("2", "a.xml"), whole(vec![line(1, "a"), line(2, "c")])).await;
    let FileEnd::Loaded { id, held: 1 } = end else { panic!("{end:?}") };
    assert_eq!(found(&w, "a").await.len(), 1, "the live one's alone");
    assert_eq!(found(&w, "c").await, []);
    let held = format!(
        "select state || ' ' || held_for || ' ' || cast(rival_file as text) \
         from tieout_statements where file_id = {id}"
    );
    assert_eq!(w.raw.one(&held).await, "held corrected 1");
    let lines =
        format!("select distinct state || ' ' || reason from tieout_lines where file_id = {id}");
    assert_eq!(w.raw.one(&lines).await, "excluded statement_corrected");
    let filter = CaseFilter { limit: 9, ..CaseFilter::default() };
    let case = w.store.cases(&filter).await.unwrap().remove(0);
    assert_eq!(case.reason.as_str(), "statement_corrected");
    // A year on, the same number is another statement.
    let mut later = whole(vec![line(1, "d")]);
    let to = NaiveDate::from_ymd_opt(2027, 11, 18);
    later[2] = Part::StatementEnd(Box::new(StatementClose { from: to, to, ..close(1) }));
    let end = put(&w.store, &head("3", "c.xml"), later).await;
    assert!(matches!(end, FileEnd::Loaded { held: 0, .. }), "{end:?}");
    w.finish().await;
}

pub async fn what_says_it_is_a_copy_is_held<D: Keeps>() {
    let w = world::<D>().await;
    let mut parts = whole(vec![line(1, "a")]);
    let copy = NewStatement { held: Some(Held::Copy), ..statement() };
    parts[0] = Part::Statement(Box::new(copy));
    let end = put(&w.store, &head("1", "a.xml"), parts).await;
    assert_eq!(end, FileEnd::Loaded { id: 1, held: 1 });
    let said = "select state || ' ' || held_for || coalesce(cast(rival_file as text), '') \
                from tieout_statements";
    assert_eq!(w.raw.one(said).await, "held copy");
    assert_eq!(found(&w, "a").await, []);
    w.finish().await;
}

pub async fn two_bring_the_same_bytes_at_once<D: Keeps>() {
    let w = world::<D>().await;
    let other = D::again(&w.place).await;
    let (a, b) = (head("1", "a.xml"), head("1", "b.xml"));
    let (one, two) = tokio::join!(
        put(&w.store, &a, whole(vec![line(1, "a")])),
        put(&other, &b, whole(vec![line(1, "a")])),
    );
    let ends = [one, two];
    assert!(ends.iter().any(|end| matches!(end, FileEnd::Loaded { .. })), "{ends:?}");
    assert!(ends.iter().any(|end| matches!(end, FileEnd::Known { .. })), "{ends:?}");
    assert_eq!(counted(&w, "tieout_lines").await, "1");
    assert_eq!(counted(&w, "tieout_file_names").await, "2");
    w.finish().await;
}

pub async fn lines_are_found_by_what_they_carry<D: Keeps>() {
    let w = world::<D>().await;
    let rich = NewLine {
        tags: vec!["first".to_owned(), "second".to_owned(), "first".to_owned()],
        psp_reference: Some("psp_1".to_owned()),
        original: Some("orig_1".to_owned()),
        ..line(1, "")
    };
    let bare = NewLine { tags: Vec::new(), ..line(3, "") };
    put(&w.store, &head("1", "a.xml"), whole(vec![rich, line(2, "second"), bare])).await;
    let ask = async |tags: &[&str], references: &[&str]| {
        let own = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        let (tags, references) = (own(tags), own(references));
        let lines = w.store.lines_of("stripe_live", &tags, &references).await.unwrap();
        lines.iter().map(|line| line.place.position).collect::<Vec<_>>()
    };
    assert_eq!(ask(&["first"], &[]).await, [1]);
    assert_eq!(ask(&["second", "second"], &[]).await, [1, 2]);
    assert_eq!(ask(&["first"], &["psp_1", "orig_1"]).await, [1]);
    assert_eq!(ask(&[], &["orig_1"]).await, [1]);
    assert_eq!(ask(&["third", ""], &[]).await, Vec::<i64>::new());
    assert_eq!(ask(&[], &[]).await, Vec::<i64>::new());
    // What stands in no reference of its own comes back with the line, each text once.
    let both = w.store.lines_of("stripe_live", &["second".to_owned()], &[]).await.unwrap();
    assert_eq!(both.iter().map(|line| line.further.join(" ")).collect::<Vec<_>>(), ["second", ""]);
    let elsewhere = w.store.lines_of("adyen_live", &["first".to_owned()], &[]).await.unwrap();
    assert_eq!(elsewhere, []);
    w.finish().await;
}

pub async fn lines_are_found_by_index<D: Keeps>() {
    let w = world::<D>().await;
    let lines: Vec<NewLine> = (1..=2_000).map(|n| line(n, &format!("t{n}"))).collect();
    put(&w.store, &head("1", "a.xml"), whole(lines)).await;
    let tags: Vec<String> = (1..=2_000).map(|n| format!("t{n}")).collect();
    let plan = w.store.lines_plan("stripe_live", &tags).await.unwrap().join("\n");
    assert!(plan.contains("tieout_lines_tag"), "{plan}");
    for scan in ["Seq Scan on tieout_line", "SCAN l", "SCAN x"] {
        assert!(!plan.contains(scan), "{plan}");
    }
    assert_eq!(w.store.lines_of("stripe_live", &tags, &[]).await.unwrap().len(), 2_000);
    w.finish().await;
}

pub async fn open_lines_come_in_order<D: Keeps>() {
    let w = world::<D>().await;
    let attempt = NewLine { kind: LineKind::Attempt, decides: false, ..line(2, "b") };
    put(&w.store, &head("1", "a.xml"), whole(vec![line(1, "a"), attempt, line(3, "c")])).await;
    let mut after = None;
    let mut seen = Vec::new();
    loop {
        let lines = w.store.open_lines("stripe_live", after, 1).await.unwrap();
        let Some(line) = lines.first() else { break };
        after = Some(line.place);
        seen.push(line.tag.clone().unwrap());
    }
    assert_eq!(seen, ["a", "c"]);
    assert_eq!(w.store.open_lines("adyen_live", None, 9).await.unwrap(), []);
    w.finish().await;
}

pub async fn a_line_is_one_rows<D: Keeps>() {
    let w = world::<D>().await;
    put(&w.store, &head("1", "a.xml"), whole(vec![line(1, "a"), line(2, "b")])).await;
    let place = |position| LinePlace { file: 1, position };
    let mark = |position, key: Option<&str>, reason: Option<&str>| LineMark {
        place: place(position),
        row: key.map(|key| ("charges".to_owned(), key.to_owned())),
        reason: reason.map(str::to_owned),
        worth: None,
    };
    let marks = [mark(1, Some("7"), None), mark(2, None, Some("orphan"))];
    assert_eq!(w.store.mark_lines("r1", &marks, noon()).await.unwrap(), []);
    // Again, and for another row.
    assert_eq!(w.store.mark_lines("r1", &marks, noon()).await.unwrap(), []);
    let other = [mark(1, Some("8"), None), mark(9, Some("8"), None)];
    let left = w.store.mark_lines("r1", &other, noon()).await.unwrap();
    assert_eq!(left, [place(1), place(9)]);
    let taken = found(&w, "a").await.remove(0);
    assert_eq!(taken.row, Some(("charges".to_owned(), "7".to_owned())));
    assert_eq!(taken.state, LineState::Matched);
    let open = w.store.open_lines("stripe_live", None, 9).await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].reason.as_deref(), Some("orphan"));
    let late = [mark(2, Some("9"), None)];
    assert_eq!(w.store.mark_lines("r1", &late, noon()).await.unwrap(), []);
    assert_eq!(w.store.open_lines("stripe_live", None, 9).await.unwrap(), []);
    w.finish().await;
}

pub async fn texts_come_back_as_they_were<D: Keeps>() {
    let w = world::<D>().await;
    let strange = "a\\N\tb\r\nc\\.\u{1F9FE}'\"";
    let full = NewLine {
        tags: vec![strange.to_owned()],
        psp_reference: Some("nul\0here".to_owned()),
        return_reason: Some("AC04".to_owned()),
        type_code: Some("PMNT/RCDT".to_owned()),
        bank_reference: Some("\\N".to_owned()),
        batch: Some(String::new()),
        gross: Some(eur(2000)),
        fee: Some(eur(-100)),
        net: Some(eur(2100)),
        minor: None,
        currency: Currency::NONE,
        value_on: NaiveDate::from_ymd_opt(1999, 12, 31),
        direction: Direction::Debit,
        refs: vec![Tag { kind: TagKind::Text, text: strange.to_owned() }],
        raw: strange.to_owned(),
        ..line(1, "")
    };
    put(&w.store, &head("1", "n\0me.xml"), whole(vec![full])).await;
    let back = found(&w, strange).await.remove(0);
    assert_eq!(back.tag.as_deref(), Some(strange));
    assert_eq!(back.psp_reference.as_deref(), Some("nul\u{2400}here"));
    assert_eq!(back.file_name, "n\u{2400}me.xml");
    assert_eq!(back.bank_reference.as_deref(), Some("\\N"));
    assert_eq!(back.batch.as_deref(), Some(""));
    assert_eq!(
        (back.gross, back.fee, back.net),
        (Some(eur(2000)), Some(eur(-100)), Some(eur(2100)))
    );
    assert_eq!((back.amount, back.currency), (None, Currency::NONE));
    assert_eq!(back.value_on, NaiveDate::from_ymd_opt(1999, 12, 31));
    assert_eq!(back.refs, [Tag { kind: TagKind::Text, text: strange.to_owned() }]);
    assert_eq!((back.received_at, back.file_line), (noon(), 10));
    assert_eq!(w.raw.one("select raw from tieout_lines").await, strange);
    w.finish().await;
}

#[test]
fn only_booked_money_of_a_closed_period_decides() {
    use EntryStatus::{Booked, Pending};
    use Finality::{Final, Interim, Notice};
    assert!(decides(Booked, Final, LineKind::Movement));
    assert!(decides(Booked, Final, LineKind::Chargeback));
    assert!(decides(Booked, Notice, LineKind::Return), "it only opens a case");
    for (status, finality, kind) in [
        (Pending, Final, LineKind::Movement),
        (Booked, Interim, LineKind::Movement),
        (Booked, Notice, LineKind::Movement),
        (Booked, Final, LineKind::Fee),
        (Booked, Final, LineKind::Payout),
        (Booked, Final, LineKind::Attempt),
    ] {
        assert!(!decides(status, finality, kind), "{status:?} {finality:?} {kind:?}");
    }
}
