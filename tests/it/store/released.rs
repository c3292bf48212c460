//! Files that count by a person's word: all that is meant by it, once, and nothing else.

use tieout::model::settlement::{EntryStatus, Finality, LineKind, Problem};
use tieout::model::time::later;
use tieout::store::files::{
    AbsentCase, FileEnd, FileState, FileSums, Held, LineMark, LinePlace, NewLine, NewStatement,
    Part, Sighting, StatementClose, decides,
};
use tieout::store::release::{About, Release, Said, Spoken, Word};
use tokio::sync::mpsc;

use super::settled::{Keeps, close, head, line, put, statement, whole};
use super::world::{World, noon};

fn word() -> Word {
    Word { by: "mara".to_owned(), why: "the bank confirms".to_owned() }
}

async fn world<D: Keeps>() -> World<D> {
    let w = World::<D>::new().await;
    w.start("r1", noon()).await;
    w
}

/// Lines by what they are: `tag state row`, of one file.
async fn states<D: Keeps>(w: &World<D>, file: i64) -> Vec<String> {
    let sql = format!(
        "select tag || ' ' || state || ' ' || coalesce(key || '@' || run_id, '-') \
         from tieout_lines where file_id = {file} order by position"
    );
    w.raw.rows(&sql).await.into_iter().map(|row| row[0].clone().unwrap()).collect()
}

fn bad(lines: Vec<NewLine>) -> Vec<Part> {
    let mut parts = whole(lines);
    let Some(Part::Whole(sums)) = parts.pop() else { panic!("{parts:?}") };
    let problem = Problem::error(7, "Bal/CLBD", "19.00 EUR", "18.00 EUR");
    parts.push(Part::Quarantine(Box::new(FileSums {
        problems: vec![problem],
        problems_total: 1,
        ..*sums
    })));
    parts
}

/// Says the word about a file, which waits then.
async fn say<D: Keeps>(store: &D, file: i64) -> Spoken {
    assert_eq!(store.ask_release(file, &word(), noon()).await.unwrap(), Said::Noted);
    assert!(store.undone(noon()).await.unwrap().releases);
    let mut waiting = store.releases_waiting(Some(file)).await.unwrap();
    assert_eq!(waiting.len(), 1);
    waiting.remove(0)
}

/// Says it about held statements, and carries it out.
async fn let_count<D: Keeps>(store: &D, file: i64) -> Release {
    let spoken = say(store, file).await;
    store.release_held("r1", &spoken, noon()).await.unwrap()
}

async fn release<D: Keeps>(store: &D, spoken: &Spoken, parts: Vec<Part>) -> Release {
    let (sender, receiver) = mpsc::channel(2);
    let send = async move {
        for part in parts {
            if sender.send(part).await.is_err() {
                break;
            }
        }
    };
    let done = store.release_quarantined("r1", spoken, receiver, noon());
    let (end, ()) = tokio::join!(done, send);
    end.unwrap()
}

pub async fn a_quarantined_file_counts_by_a_persons_word<D: Keeps>() {
    let w = world::<D>().await;
    let lines = || vec![line(1, "a"), line(2, "b")];
    put(&w.store, &head("1", "a.xml"), bad(lines())).await;
    w.store.note_spooled(1, "r1/local/x").await.unwrap();
    // The word alone changes nothing, and is said once.
    let spoken = say(&w.store, 1).await;
    assert_eq!((spoken.file, spoken.about, spoken.at), (1, About::Quarantined, noon()));
    assert!(spoken.word.by.starts_with("mara"), "{spoken:?}");
    let again = w.store.ask_release(1, &word(), noon()).await.unwrap();
    assert_eq!(again, Said::Waits(spoken.clone()));
    assert_eq!(states(&w, 1).await, Vec::<String>::new());
    assert_eq!(w.raw.one("select state from tieout_files").await, "quarantined");
    // Half of it is nothing.
    let parts = bad(lines());
    for upto in 0..parts.len() {
        let end = release(&w.store, &spoken, parts[..upto].to_vec()).await;
        assert_eq!(end, Release::Dropped, "{upto}");
        assert_eq!(w.raw.one("select state from tieout_releases").await, "waiting");
        assert_eq!(w.raw.one("select state from tieout_files").await, "quarantined");
    }
    let done = release(&w.store, &spoken, bad(lines())).await;
    assert_eq!(done, Release::Done { added: 2, removed: 0 });
    assert_eq!(states(&w, 1).await, ["a open -", "b open -"]);
    let found = w.store.lines_of("stripe_live", &["a".to_owned()], &[]).await.unwrap();
    assert!(found[0].untied && found[0].decides);
    let said = "select state || ' ' || substr(changed_by, 1, 4) || ' ' || changed_why || ' ' || \
                cast(problems_total as text) || coalesce(spooled_as, '') from tieout_files";
    assert_eq!(w.raw.one(said).await, "released mara the bank confirms 1");
    let case = "select state || ' ' || closed_run || ' ' || resolution from tieout_cases";
    let case = w.raw.one(case).await;
    assert!(case.starts_with("closed r1 released by mara"), "{case}");
    assert!(case.ends_with(": the bank confirms"), "{case}");
    let ended = "select state || ' ' || ended_why || ' ' || ended_run from tieout_releases";
    assert_eq!(w.raw.one(ended).await, "carried_out carried out r1");
    // Carried out twice it does nothing, nor does a second word; and the bytes are known.
    assert_eq!(release(&w.store, &spoken, bad(lines())).await, Release::Nothing);
    assert_eq!(w.store.release_held("r1", &spoken, noon()).await.unwrap(), Release::Nothing);
    assert_eq!(w.store.ask_release(1, &word(), noon()).await.unwrap(), Said::Nothing);
    assert_eq!(w.store.releases_waiting(None).await.unwrap(), []);
    assert!(!w.store.undone(noon()).await.unwrap().releases);
    let again = put(&w.store, &head("1", "b.xml"), bad(lines())).await;
    assert_eq!(again, FileEnd::Known { id: 1 });
    assert_eq!(states(&w, 1).await.len(), 2);
    w.finish().await;
}

pub async fn of_a_correction_only_the_difference_counts<D: Keeps>() {
    let w = world::<D>().await;
    // Two lines that say the same are two.
    let first = vec![line(1, "a"), line(2, "twice"), line(3, "twice"), line(4, "gone")];
    put(&w.store, &head("1", "a.xml"), whole(first)).await;
    let mark = |position, key: &str| LineMark {
        place: LinePlace { file: 1, position },
        row: Some(("charges".to_owned(), key.to_owned())),
        reason: None,
        worth: None,
    };
    let marks = [mark(1, "1"), mark(2, "2"), mark(4, "4")];
    assert_eq!(w.store.mark_lines("r1", &marks, noon()).await.unwrap(), []);
    let second =
        vec![line(1, "new"), line(2, "twice"), line(3, "a"), line(4, "twice"), line(5, "twice")];
    put(&w.store, &head("2", "b.xml"), whole(second)).await;
    let found = w.store.differences(2).await.unwrap();
    assert_eq!((found.len(), found[0].same, found[0].held_for), (1, 3, Some(Held::Corrected)));
    let places = |lines: &[tieout::store::files::StoredLine]| {
        lines.iter().map(|line| line.place.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(places(&found[0].added), ["2:1", "2:5"]);
    assert_eq!(places(&found[0].removed), ["1:4"]);
    assert_eq!(found[0].removed[0].row, Some(("charges".to_owned(), "4".to_owned())));
    assert_eq!(let_count(&w.store, 2).await, Release::Done { added: 2, removed: 1 });
    // What counts is the second issue, each line of it once; what is gone keeps row and run.
    assert_eq!(
        states(&w, 1).await,
        ["a matched 1@r1", "twice matched 2@r1", "twice open -", "gone superseded 4@r1"]
    );
    assert_eq!(
        states(&w, 2).await,
        ["new open -", "twice excluded -", "a excluded -", "twice excluded -", "twice open -"]
    );
    let gone = w.store.lines_of("stripe_live", &["gone".to_owned()], &[]).await.unwrap();
    assert_eq!(gone, []);
    assert_eq!(w.store.ask_release(2, &word(), noon()).await.unwrap(), Said::Nothing);
    assert_eq!(w.store.differences(2).await.unwrap(), []);
    let live = "select cast(file_id as text) from tieout_statements where state = 'live'";
    assert_eq!(w.raw.one(live).await, "2");
    assert_eq!(w.raw.one("select state from tieout_files where id = 2").await, "loaded");
    // A third issue is held against what counts of both.
    let third = vec![line(1, "new"), line(2, "a"), line(3, "last")];
    put(&w.store, &head("3", "c.xml"), whole(third)).await;
    assert_eq!(let_count(&w.store, 3).await, Release::Done { added: 1, removed: 3 });
    let counting = "select cast(file_id as text) || ' ' || tag from tieout_lines \
                    where state in ('open', 'matched') order by file_id, position";
    let counting: Vec<_> = w.raw.rows(counting).await.into_iter().flatten().flatten().collect();
    assert_eq!(counting, ["1 a", "2 new", "3 last"]);
    w.finish().await;
}

pub async fn a_deletion_takes_the_other_out<D: Keeps>() {
    let w = world::<D>().await;
    put(&w.store, &head("1", "a.xml"), whole(vec![line(1, "a"), line(2, "b")])).await;
    let mut parts = whole(vec![line(1, "a"), line(2, "b")]);
    let deletion = NewStatement { held: Some(Held::Deletion), ..statement() };
    parts[0] = Part::Statement(Box::new(deletion));
    put(&w.store, &head("2", "b.xml"), parts).await;
    let found = w.store.differences(2).await.unwrap();
    assert_eq!((found[0].same, found[0].added.len(), found[0].removed.len()), (0, 0, 2));
    assert_eq!(let_count(&w.store, 2).await, Release::Done { added: 0, removed: 2 });
    assert_eq!(states(&w, 1).await, ["a superseded -", "b superseded -"]);
    assert_eq!(states(&w, 2).await, ["a excluded -", "b excluded -"]);
    // What comes in its place is a first issue again.
    let end = put(&w.store, &head("3", "c.xml"), whole(vec![line(1, "c")])).await;
    assert_eq!(end, FileEnd::Loaded { id: 3, held: 0 });
    w.finish().await;
}

pub async fn what_is_released_decides_as_what_is_loaded<D: Keeps>() {
    let w = world::<D>().await;
    let all = |finality: Finality| -> Vec<NewLine> {
        let mut lines = Vec::new();
        for kind in LineKind::ALL {
            for status in [EntryStatus::Booked, EntryStatus::Pending, EntryStatus::Info] {
                let position = u64::try_from(lines.len()).unwrap() + 1;
                let decides = decides(status, finality, kind);
                let tag = format!("{}-{}", kind.as_str(), status.as_str());
                lines.push(NewLine { kind, status, decides, ..line(position, &tag) });
            }
        }
        lines
    };
    let finalities = [Finality::Final, Finality::Interim, Finality::Notice];
    for (number, finality) in (1_i64..).zip(finalities) {
        let parts = |held: Option<Held>, id: &str| {
            let mut parts = whole(all(finality));
            // Of two accounts: one statement under two ids would be held beside itself.
            let (statement_id, bank_account) = (id.to_owned(), id.to_owned());
            let head = NewStatement { finality, held, statement_id, bank_account, ..statement() };
            parts[0] = Part::Statement(Box::new(head));
            parts
        };
        let (loaded, held) = (number * 2 - 1, number * 2);
        put(&w.store, &head(&format!("{loaded}"), "a"), parts(None, "one")).await;
        put(&w.store, &head(&format!("{held}"), "b"), parts(Some(Held::Copy), "two")).await;
        let done = let_count(&w.store, held).await;
        assert!(matches!(done, Release::Done { .. }), "{done:?}");
        let sql = |file: i64| {
            format!(
                "select tag || ' ' || state || ' ' || case when decides then 'd' else '' end \
                 from tieout_lines where file_id = {file} order by position"
            )
        };
        let (wanted, found) = (w.raw.rows(&sql(loaded)).await, w.raw.rows(&sql(held)).await);
        assert_eq!(found, wanted, "{finality:?}");
    }
    w.finish().await;
}

pub async fn two_say_the_same_word_at_once<D: Keeps>() {
    let w = world::<D>().await;
    let other = D::again(&w.place).await;
    put(&w.store, &head("1", "a.xml"), bad(vec![line(1, "a")])).await;
    let spoken = say(&w.store, 1).await;
    let (one, two) = tokio::join!(
        release(&w.store, &spoken, bad(vec![line(1, "a")])),
        release(&other, &spoken, bad(vec![line(1, "a")])),
    );
    assert_ne!(one, two);
    assert_eq!(states(&w, 1).await, ["a open -"]);
    let parts = |id: &str| {
        let mut parts = whole(vec![line(1, id)]);
        let head = NewStatement { statement_id: "same".to_owned(), ..statement() };
        parts[0] = Part::Statement(Box::new(head));
        parts
    };
    put(&w.store, &head("2", "b.xml"), parts("b")).await;
    put(&w.store, &head("3", "c.xml"), parts("c")).await;
    let word = word();
    let (one, two) =
        tokio::join!(w.store.ask_release(3, &word, noon()), other.ask_release(3, &word, noon()));
    let said = [one.unwrap(), two.unwrap()];
    assert_eq!(said.iter().filter(|said| **said == Said::Noted).count(), 1, "{said:?}");
    let spoken = w.store.releases_waiting(Some(3)).await.unwrap().remove(0);
    let (one, two) = tokio::join!(
        w.store.release_held("r1", &spoken, noon()),
        other.release_held("r1", &spoken, noon()),
    );
    let mut ends = [format!("{:?}", one.unwrap()), format!("{:?}", two.unwrap())];
    ends.sort();
    assert_eq!(ends, ["Done { added: 1, removed: 1 }", "Nothing"]);
    w.finish().await;
}

/// What the bank has corrected since takes the place of nothing.
pub async fn an_older_issue_does_not_follow_a_later_one<D: Keeps>() {
    let w = world::<D>().await;
    for (bytes, tag) in [("1", "a"), ("2", "b"), ("3", "c")] {
        put(&w.store, &head(bytes, "s.xml"), whole(vec![line(1, tag)])).await;
    }
    let later = async |file: i64| w.store.differences(file).await.unwrap()[0].later;
    assert_eq!((later(2).await, later(3).await), (None, None));
    assert_eq!(let_count(&w.store, 3).await, Release::Done { added: 1, removed: 1 });
    assert_eq!(later(2).await, Some(3));
    assert_eq!(let_count(&w.store, 2).await, Release::Later(3));
    assert_eq!(states(&w, 2).await, ["b excluded -"]);
    assert_eq!(states(&w, 3).await, ["c open -"]);
    // The word ends, once, and the file's case says why.
    let spoken = w.store.releases_waiting(None).await.unwrap().remove(0);
    assert_eq!((spoken.file, spoken.about), (2, About::Held));
    assert!(w.store.refuse_release("r1", &spoken, "3 is later", noon()).await.unwrap());
    assert!(!w.store.refuse_release("r1", &spoken, "3 is later", noon()).await.unwrap());
    assert_eq!(w.store.releases_waiting(None).await.unwrap(), []);
    let case = "select reason || ': ' || text from tieout_cases \
                where subject = '2' and state = 'open'";
    let case = w.raw.one(case).await;
    assert!(case.starts_with("statement_corrected: s.xml stays held: "), "{case}");
    assert!(case.ends_with("was not carried out: 3 is later"), "{case}");
    // So it is where the later one deletes it.
    let mut parts = whole(vec![line(1, "c")]);
    parts[0] =
        Part::Statement(Box::new(NewStatement { held: Some(Held::Deletion), ..statement() }));
    put(&w.store, &head("4", "s.xml"), parts).await;
    assert_eq!(let_count(&w.store, 4).await, Release::Done { added: 0, removed: 1 });
    assert_eq!(later(2).await, Some(4));
    assert_eq!(let_count(&w.store, 2).await, Release::Later(4));
    w.finish().await;
}

/// A file of several statements, of which one was corrected since.
pub async fn of_a_file_only_what_no_later_issue_has_counts<D: Keeps>() {
    let w = world::<D>().await;
    let both = |first: &str, second: &str| {
        let named = |number: u64| {
            let statement_id = format!("S{number}");
            Part::Statement(Box::new(NewStatement { number, statement_id, ..statement() }))
        };
        let end = |number: u64| Part::StatementEnd(Box::new(StatementClose { number, ..close(1) }));
        let sums = FileSums {
            statements: 2,
            entries: 2,
            lines: 2,
            totals: "{}".to_owned(),
            ..FileSums::default()
        };
        vec![
            named(1),
            Part::Lines(vec![line(1, first)]),
            end(1),
            named(2),
            Part::Lines(vec![NewLine { statement: 2, ..line(2, second) }]),
            end(2),
            Part::Whole(Box::new(sums)),
        ]
    };
    put(&w.store, &head("1", "a.xml"), both("a", "b")).await;
    put(&w.store, &head("2", "b.xml"), both("c", "d")).await;
    let mut parts = whole(vec![line(1, "e")]);
    let head_of = NewStatement { statement_id: "S1".to_owned(), ..statement() };
    parts[0] = Part::Statement(Box::new(head_of));
    put(&w.store, &head("3", "c.xml"), parts).await;
    assert_eq!(let_count(&w.store, 3).await, Release::Done { added: 1, removed: 1 });
    let found = w.store.differences(2).await.unwrap();
    assert_eq!((found[0].later, found[1].later), (Some(3), None));
    assert_eq!(let_count(&w.store, 2).await, Release::Done { added: 1, removed: 1 });
    assert_eq!(states(&w, 1).await, ["a superseded -", "b superseded -"]);
    assert_eq!(states(&w, 2).await, ["c excluded -", "d open -"]);
    assert_eq!(states(&w, 3).await, ["e open -"]);
    let case = "select state from tieout_cases where subject = '2'";
    assert_eq!(w.raw.one(case).await, "open", "a statement of it is held");
    w.finish().await;
}

/// A word stands as it was said, and only a run that is under way ends it.
pub async fn a_word_is_ended_by_a_run<D: Keeps>() {
    let w = world::<D>().await;
    put(&w.store, &head("1", "a.xml"), whole(vec![line(1, "a")])).await;
    put(&w.store, &head("2", "b.xml"), whole(vec![line(1, "b")])).await;
    assert_eq!(w.store.ask_release(1, &word(), noon()).await.unwrap(), Said::Nothing);
    assert_eq!(w.store.ask_release(9, &word(), noon()).await.unwrap(), Said::Nothing);
    let spoken = say(&w.store, 2).await;
    for sql in [
        "update tieout_releases set why = 'another'",
        "update tieout_releases set by_whom = 'another'",
        "update tieout_releases set file_id = 1",
        "update tieout_releases set state = 'carried_out', ended_at = at, ended_why = 'x', \
         ended_run = 'r9'",
        "delete from tieout_releases",
        "insert into tieout_releases (file_id, what, at, by_whom, why, state, ended_at, \
         ended_why, ended_run) select 1, what, at, by_whom, why, 'carried_out', at, 'x', 'r1' \
         from tieout_releases",
    ] {
        assert!(w.raw.try_execute(sql).await.is_err(), "{sql}: it is allowed");
    }
    // Of a run that is not under way, or of none.
    assert_eq!(w.store.release_held("r9", &spoken, noon()).await.unwrap(), Release::Dropped);
    assert!(!w.store.refuse_release("r9", &spoken, "x", noon()).await.unwrap());
    assert_eq!(states(&w, 2).await, ["b excluded -"]);
    let done = w.store.release_held("r1", &spoken, noon()).await.unwrap();
    assert_eq!(done, Release::Done { added: 1, removed: 1 });
    w.finish().await;
}

/// What is quarantined and holds a statement, once it is loaded, says so in its case.
pub async fn a_released_file_may_hold_a_statement<D: Keeps>() {
    let w = world::<D>().await;
    put(&w.store, &head("1", "a.xml"), whole(vec![line(1, "a")])).await;
    put(&w.store, &head("2", "b.xml"), bad(vec![line(1, "b")])).await;
    let spoken = say(&w.store, 2).await;
    let done = release(&w.store, &spoken, bad(vec![line(1, "b")])).await;
    assert_eq!(done, Release::Done { added: 1, removed: 0 });
    assert_eq!(states(&w, 2).await, ["b excluded -"]);
    let case = "select state || ' ' || reason from tieout_cases where subject = '2'";
    assert_eq!(w.raw.one(case).await, "open statement_corrected");
    // And waits for another word.
    let spoken = say(&w.store, 2).await;
    assert_eq!(spoken.about, About::Held);
    w.finish().await;
}

pub async fn names_and_missing_files_are_remembered<D: Keeps>() {
    let w = world::<D>().await;
    put(&w.store, &head("1", "a.xml"), whole(vec![line(1, "a")])).await;
    put(&w.store, &head("2", "bad.xml"), bad(vec![line(1, "a")])).await;
    let own = head("1", "a.xml").sighting;
    let archive = Sighting { name: "all.zip".to_owned(), ..own.clone() };
    w.store.note_name("r1", &archive, 1, noon()).await.unwrap();
    let touched = Some(later(noon(), chrono::TimeDelta::hours(1)));
    let again = Sighting { modified_at: touched, ..own.clone() };
    w.store.note_name("r1", &again, 1, noon()).await.unwrap();
    w.store.note_archived("bank", "a.xml", &own.raw_sha256, noon()).await.unwrap();
    let known = w.store.known_names("bank").await.unwrap();
    let names: Vec<&str> = known.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["a.xml", "all.zip", "bad.xml"]);
    assert_eq!((known[0].modified_at, known[0].archived_at), (touched, Some(noon())));
    assert_eq!((known[1].file, known[1].archived_at, known[1].raw_bytes), (1, None, 12));
    assert_eq!((known[2].state, known[2].is_settled), (FileState::Quarantined, false));
    assert_eq!(known[0].read_by, known[2].read_by);
    assert_eq!(w.store.known_names("elsewhere").await.unwrap(), []);
    // Cases about what is not there: one for each kind of file, closed when all is there.
    let case = |expected: &str, text: &str| AbsentCase {
        source: "bank".to_owned(),
        expected: expected.to_owned(),
        account: "stripe_live".to_owned(),
        text: text.to_owned(),
    };
    for text in ["one is missing", "two are missing"] {
        w.store.put_absent_case("r1", &case("S_%d.xml", text), noon()).await.unwrap();
    }
    w.store.put_absent_case("r1", &case("T_%d.xml", "none"), noon()).await.unwrap();
    let other = AbsentCase { source: "bank2".to_owned(), ..case("S_%d.xml", "none") };
    w.store.put_absent_case("r1", &other, noon()).await.unwrap();
    let but = [case("S_%d.xml", "").subject()];
    assert_eq!(w.store.close_absent_cases("r1", "bank", &but, noon()).await.unwrap(), 1);
    assert_eq!(w.store.close_absent_cases("r1", "bank", &but, noon()).await.unwrap(), 0);
    let open = "select subject || ' ' || text || ' ' || cast(times_seen as text) \
                from tieout_cases where state = 'open' and reason = 'file_missing' \
                order by subject";
    let open: Vec<String> = w.raw.rows(open).await.into_iter().flatten().flatten().collect();
    assert_eq!(open, ["bank2: S_%d.xml none 1", "bank: S_%d.xml two are missing 2"]);
    w.finish().await;
}
