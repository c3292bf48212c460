//! Files that count by a person's word: all that is meant by it, once, and nothing else.

use tieout::model::settlement::{EntryStatus, Finality, LineKind, Problem};
use tieout::model::time::later;
use tieout::store::files::{
    AbsentCase, FileEnd, FileState, FileSums, Held, LineMark, LinePlace, NewLine, NewStatement,
    Part, Sighting, decides,
};
use tieout::store::release::{Release, Word};
use tokio::sync::mpsc;

use super::settled::{Keeps, head, line, put, statement, whole};
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

async fn release<D: Keeps>(store: &D, file: i64, parts: Vec<Part>) -> Release {
    let (sender, receiver) = mpsc::channel(2);
    let send = async move {
        for part in parts {
            if sender.send(part).await.is_err() {
                break;
            }
        }
    };
    let word = word();
    let (end, ()) = tokio::join!(store.release_quarantined(file, &word, receiver, noon()), send);
    end.unwrap()
}

pub async fn a_quarantined_file_counts_by_a_persons_word<D: Keeps>() {
    let w = world::<D>().await;
    let lines = || vec![line(1, "a"), line(2, "b")];
    put(&w.store, &head("1", "a.xml"), bad(lines())).await;
    w.store.note_spooled(1, "r1/local/x").await.unwrap();
    // Half of it is nothing.
    let parts = bad(lines());
    for upto in 0..parts.len() {
        let end = release(&w.store, 1, parts[..upto].to_vec()).await;
        assert_eq!(end, Release::Dropped, "{upto}");
        assert_eq!(w.raw.one("select state from tieout_files").await, "quarantined");
    }
    assert_eq!(release(&w.store, 1, bad(lines())).await, Release::Done { added: 2, removed: 0 });
    assert_eq!(states(&w, 1).await, ["a open -", "b open -"]);
    let found = w.store.lines_of("stripe_live", &["a".to_owned()], &[]).await.unwrap();
    assert!(found[0].untied && found[0].decides);
    let said = "select state || ' ' || substr(changed_by, 1, 4) || ' ' || changed_why || ' ' || \
                cast(problems_total as text) || coalesce(spooled_as, '') from tieout_files";
    assert_eq!(w.raw.one(said).await, "released mara the bank confirms 1");
    let case = "select state || ' ' || resolution from tieout_cases";
    assert_eq!(w.raw.one(case).await, "closed released by mara: the bank confirms");
    // A second word does nothing, and the bytes are known.
    assert_eq!(release(&w.store, 1, bad(lines())).await, Release::Nothing);
    assert_eq!(w.store.release_held(1, &word(), noon()).await.unwrap(), Release::Nothing);
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
    let done = w.store.release_held(2, &word(), noon()).await.unwrap();
    assert_eq!(done, Release::Done { added: 2, removed: 1 });
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
    assert_eq!(w.store.release_held(2, &word(), noon()).await.unwrap(), Release::Nothing);
    assert_eq!(w.store.differences(2).await.unwrap(), []);
    let live = "select cast(file_id as text) from tieout_statements where state = 'live'";
    assert_eq!(w.raw.one(live).await, "2");
    assert_eq!(w.raw.one("select state from tieout_files where id = 2").await, "loaded");
    // A third issue is held against what counts of both.
    let third = vec![line(1, "new"), line(2, "a"), line(3, "last")];
    put(&w.store, &head("3", "c.xml"), whole(third)).await;
    let done = w.store.release_held(3, &word(), noon()).await.unwrap();
    assert_eq!(done, Release::Done { added: 1, removed: 3 });
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
    let done = w.store.release_held(2, &word(), noon()).await.unwrap();
    assert_eq!(done, Release::Done { added: 0, removed: 2 });
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
            let statement_id = id.to_owned();
            let head = NewStatement { finality, held, statement_id, ..statement() };
            parts[0] = Part::Statement(Box::new(head));
            parts
        };
        let (loaded, held) = (number * 2 - 1, number * 2);
        put(&w.store, &head(&format!("{loaded}"), "a"), parts(None, "one")).await;
        put(&w.store, &head(&format!("{held}"), "b"), parts(Some(Held::Copy), "two")).await;
        w.store.release_held(held, &word(), noon()).await.unwrap();
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
    let (one, two) = tokio::join!(
        release(&w.store, 1, bad(vec![line(1, "a")])),
        release(&other, 1, bad(vec![line(1, "a")])),
    );
    assert_ne!(one, two);
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
        tokio::join!(w.store.release_held(3, &word, noon()), other.release_held(3, &word, noon()),);
    let mut ends = [format!("{:?}", one.unwrap()), format!("{:?}", two.unwrap())];
    ends.sort();
    assert_eq!(ends, ["Done { added: 1, removed: 1 }", "Nothing"]);
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
