//! Which of a folder's files are to be fetched, and which are still being written.
//!
//! Pure: listings in, names out. A remote name is data and never a path: one that could lead
//! elsewhere, or that a terminal would not show as it is, is told and never opened.

use std::collections::{BTreeMap, HashSet};

use chrono::DateTime;

use crate::model::time::Instant;
use crate::model::wildcard::fits;

/// Ends of the names that uploaders write under until they are done.
const UNFINISHED: [&str; 6] = [".tmp", ".part", ".filepart", ".filetmp", ".writing", "~"];

/// The longest name that is taken, in bytes; what every file system here can hold.
const NAME_MAX: usize = 255;

/// A file as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Seen {
    /// Its name within the folder.
    pub name: String,
    /// Its bytes.
    pub size: u64,
    /// When it was last written, in microseconds since 1970, where the listing says so. A folder of
    /// this machine does to that: a file that takes another's place within a second is another.
    pub modified: Option<u64>,
    /// What it is.
    pub kind: Kind,
}

impl Seen {
    /// When it was last written, as an instant.
    pub fn written(&self) -> Option<Instant> {
        DateTime::from_timestamp_micros(i64::try_from(self.modified?).ok()?)
    }
}

/// What a name of a listing stands for; a link is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder. It is passed over: an archive often lies in the inbox.
    Folder,
    /// A link, a pipe, a device. It could lead anywhere, or never end.
    Other,
}

/// How whoever writes the files says that one is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Convention {
    /// By renaming it from one of the usual unfinished names: what has another name is whole.
    Rename,
    /// By a second file beside it, named by this template: `{name}.done`, `{stem}.ok`.
    Marker(String),
    /// Not at all: it is whole when two listings show it alike.
    Stable,
}

/// What became of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Picked {
    /// To be fetched, by name.
    pub ready: Vec<Ready>,
    /// Not yet: the file and why.
    pub waiting: Vec<(Seen, &'static str)>,
    /// Never: name and why. Nobody should have to guess why a file is not read.
    pub refused: Vec<(String, &'static str)>,
    /// How many files no pattern fits, and the first of them by name.
    pub unwanted: (usize, Option<String>),
}

/// A file that is whole as far as the listing tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// The file.
    pub seen: Seen,
    /// The file beside it that says so.
    pub marker: Option<String>,
}

/// Picks from a listing; `earlier` is the listing before it, for [`Convention::Stable`].
pub fn pick(
    listing: &[Seen],
    earlier: &[Seen],
    globs: &[String],
    convention: &Convention,
) -> Picked {
    let by_name: BTreeMap<&str, &Seen> =
        listing.iter().map(|seen| (seen.name.as_str(), seen)).collect();
    let earlier: HashSet<&Seen> = earlier.iter().collect();
    let mut picked = Picked::default();
    for seen in by_name.values() {
        let is_wanted = globs.iter().any(|glob| fits(glob, &seen.name));
        let is_other = is_unfinished(&seen.name) || convention.is_marker(&seen.name);
        let why = unsafe_name(&seen.name);
        if !is_wanted && seen.kind == Kind::File && !is_other && why.is_none() {
            let (count, first) = &mut picked.unwanted;
            *count = count.saturating_add(1);
            first.get_or_insert_with(|| seen.name.clone());
        }
        if !is_wanted || seen.kind == Kind::Folder || (is_other && why.is_none()) {
            continue;
        }
        let is_odd = seen.kind == Kind::Other;
        if let Some(why) = why.or(is_odd.then_some("it is no regular file")) {
            picked.refused.push((seen.name.clone(), why));
            continue;
        }
        let (marker, wait) = match convention {
            Convention::Rename => (None, None),
            Convention::Marker(template) => {
                let marker = named(template, &seen.name);
                let wait = unmarked(seen, by_name.get(marker.as_str()).copied());
                (Some(marker), wait)
            }
            Convention::Stable => {
                let is_same = earlier.contains(*seen);
                (None, (!is_same).then_some("it was seen once, or is still growing"))
            }
        };
        match wait {
            Some(why) => picked.waiting.push(((*seen).clone(), why)),
            None => picked.ready.push(Ready { seen: (*seen).clone(), marker }),
        }
    }
    picked
}

impl Convention {
    /// Whether a name is one that says that another file is whole.
    fn is_marker(&self, name: &str) -> bool {
        match self {
            Self::Marker(template) => {
                fits(&template.replace("{name}", "*").replace("{stem}", "*"), name)
            }
            Self::Rename | Self::Stable => false,
        }
    }
}

/// Why a file is not whole yet, with what has its marker's name. One that is older than its file
/// was made for the file that had the name before; where a listing tells no times, it counts.
fn unmarked(seen: &Seen, marker: Option<&Seen>) -> Option<&'static str> {
    let Some(marker) = marker else { return Some("its marker file is not there") };
    if marker.kind != Kind::File {
        return Some("what has the name of its marker is no regular file");
    }
    let is_stale =
        matches!((marker.modified, seen.modified), (Some(mark), Some(own)) if mark < own);
    is_stale.then_some("its marker file is older than it: it was made for another one")
}

/// A marker's name from its template.
fn named(template: &str, name: &str) -> String {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    template.replace("{name}", name).replace("{stem}", stem)
}

fn is_unfinished(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    name.starts_with('.') || UNFINISHED.iter().any(|end| lower.ends_with(end))
}

/// Why a name must not be used; none where it can lead nowhere else and is shown as it is.
pub fn unsafe_name(name: &str) -> Option<&'static str> {
    if name.is_empty() || name == "." || name == ".." {
        return Some("its name is no file's");
    }
    if name.len() > NAME_MAX {
        return Some("its name is longer than 255 bytes");
    }
    if name.contains(['/', '\\', '\0']) {
        return Some("its name is a path");
    }
    if name.contains('\u{fffd}') {
        return Some("its name is not UTF-8");
    }
    if name.chars().any(|c| c.is_control() || is_invisible(c)) {
        return Some("its name holds characters that nobody sees");
    }
    None
}

/// Marks that turn or hide what stands beside them (Unicode's bidi controls and zero widths).
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(name: &str, size: u64) -> Seen {
        Seen { name: name.to_owned(), size, modified: Some(7), kind: Kind::File }
    }

    fn names(picked: &Picked) -> Vec<&str> {
        picked.ready.iter().map(|ready| ready.seen.name.as_str()).collect()
    }

    fn globs(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn unfinished_names_and_others_are_left_alone() {
        let listing: Vec<Seen> = [
            "b.xml",
            "a.xml",
            "a.xml.part",
            "a.XML.TMP",
            ".a.xml",
            "a.xml~",
            "a.csv",
            "notes.txt",
            "c.xml.filepart",
            "d.xml.writing",
        ]
        .into_iter()
        .map(|name| seen(name, 1))
        .collect();
        let picked = pick(&listing, &[], &globs("*.xml*,*.csv"), &Convention::Rename);
        assert_eq!(names(&picked), ["a.csv", "a.xml", "b.xml"]);
        assert_eq!(picked.waiting, []);
        assert_eq!(picked.refused, []);
    }

    #[test]
    fn a_marker_says_that_its_file_is_whole() {
        let listing = [seen("a.xml", 5), seen("b.xml", 5), seen("a.xml.done", 0), seen("b.ok", 0)];
        let by_name = Convention::Marker("{name}.done".to_owned());
        let picked = pick(&listing, &[], &globs("*.xml"), &by_name);
        assert_eq!(names(&picked), ["a.xml"]);
        assert_eq!(picked.ready[0].marker.as_deref(), Some("a.xml.done"));
        assert_eq!(picked.waiting, [(seen("b.xml", 5), "its marker file is not there")]);
        // The markers themselves are no files to fetch, also where every name is wanted.
        let every = pick(&listing, &[], &globs("*"), &by_name);
        assert_eq!(names(&every), ["a.xml"]);
        assert_eq!(every.waiting.len(), 2, "{every:?}");
        let by_stem = Convention::Marker("{stem}.ok".to_owned());
        assert_eq!(names(&pick(&listing, &[], &globs("*.xml"), &by_stem)), ["b.xml"]);
    }

    #[test]
    fn a_marker_of_the_file_before_is_no_sign() {
        let at = |name: &str, modified: Option<u64>| Seen { modified, ..seen(name, 5) };
        let by_name = Convention::Marker("{name}.done".to_owned());
        let picked = |marker: Seen, own: Option<u64>| {
            pick(&[at("a.csv", own), marker], &[], &globs("*.csv"), &by_name)
        };
        let stale = picked(at("a.csv.done", Some(6)), Some(7));
        assert_eq!(names(&stale), [""; 0]);
        let why = "its marker file is older than it: it was made for another one";
        assert_eq!(stale.waiting, [(at("a.csv", Some(7)), why)]);
        for (marker, own) in
            [(Some(7), Some(7)), (Some(8), Some(7)), (None, Some(7)), (Some(7), None)]
        {
            assert_eq!(names(&picked(at("a.csv.done", marker), own)), ["a.csv"]);
        }
        for kind in [Kind::Folder, Kind::Other] {
            let marker = Seen { kind, ..at("a.csv.done", Some(8)) };
            let odd = picked(marker, Some(7));
            assert_eq!(names(&odd), [""; 0]);
            let why = "what has the name of its marker is no regular file";
            assert_eq!(odd.waiting, [(at("a.csv", Some(7)), why)]);
        }
    }

    #[test]
    fn without_a_sign_two_listings_must_agree() {
        let once = [seen("a.xml", 5), seen("b.xml", 5), seen("c.xml", 5)];
        let mut again = [seen("a.xml", 5), seen("b.xml", 6), seen("c.xml", 5)];
        again[2].modified = Some(8);
        let first = pick(&once, &[], &globs("*"), &Convention::Stable);
        assert_eq!(names(&first), [""; 0]);
        let second = pick(&again, &once, &globs("*"), &Convention::Stable);
        assert_eq!(names(&second), ["a.xml"]);
        assert_eq!(second.waiting.len(), 2);
    }

    #[test]
    fn a_name_that_is_more_than_a_name_is_told_and_never_opened() {
        let long = "x".repeat(256);
        let bad = [
            "../x",
            "a/b",
            "a\\b",
            "",
            "..",
            "a\0b",
            "a\r\nb",
            "\u{202e}lmx.a",
            "a\u{200b}",
            "a\u{2028}b",
            "a\u{fffd}",
            &long,
        ];
        for name in bad {
            let picked = pick(&[seen(name, 1)], &[], &globs("*"), &Convention::Rename);
            assert_eq!(picked.ready, [], "{name:?}");
            assert_eq!(picked.refused.len(), 1, "{name:?}");
        }
        let folder = Seen { kind: Kind::Folder, ..seen("archive", 1) };
        let picked = pick(&[folder], &[], &globs("*"), &Convention::Rename);
        assert_eq!(picked, Picked::default());
        let link = Seen { kind: Kind::Other, ..seen("link.xml", 1) };
        let picked = pick(&[link], &[], &globs("*"), &Convention::Rename);
        assert_eq!(picked.refused, [("link.xml".to_owned(), "it is no regular file")]);
        for name in ["-rf.xml", "Überweisung 1.xml", "A.XML", "a.xml", &"é".repeat(127)] {
            let picked = pick(&[seen(name, 1)], &[], &globs("*"), &Convention::Rename);
            assert_eq!(names(&picked), [name]);
        }
    }
}
