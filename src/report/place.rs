//! Where reports stand: `DIR/<business date>/<run id>/`, there whole or not at all.
//!
//! A report is written under a hidden name beside its place and put there by one rename, in
//! exchange for an older one. Whoever looks sees the old report or the new one, never a mixture;
//! what a killed build leaves behind is hidden, has no manifest, and goes with the next build.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::NaiveDate;
use rustix::fs::{Access, access, statvfs};

use crate::report::columns::MANIFEST;
use crate::report::error::ReportError;

/// Longer names do not fit every file system with what is put around them.
const NAME_MAX: usize = 120;

static BUILDS: AtomicU64 = AtomicU64::new(0);

/// A report on its way to its place; dropped before that, it leaves nothing.
pub struct Place {
    day: PathBuf,
    partial: PathBuf,
    last: PathBuf,
}

impl Place {
    /// Makes the hidden directory.
    pub fn begin(root: &Path, date: NaiveDate, run_id: &str) -> Result<Self, ReportError> {
        if !is_plain_name(run_id) {
            return Err(ReportError::BadName { run_id: run_id.to_owned() });
        }
        let day = root.join(date.to_string());
        let last = day.join(run_id);
        std::fs::create_dir_all(&day).map_err(ReportError::file("creating", &last))?;
        remove_left_overs(&day, run_id);
        let build = BUILDS.fetch_add(1, Ordering::Relaxed);
        let partial = day.join(format!("{}{}-{build}", prefix(run_id), std::process::id()));
        std::fs::create_dir(&partial).map_err(ReportError::file("creating", &partial))?;
        Ok(Self { last, day, partial })
    }

    /// The hidden directory.
    pub fn folder(&self) -> &Path {
        &self.partial
    }

    /// Puts the report in its place; says where, and whether it replaced another.
    pub fn finish(self) -> Result<(PathBuf, bool), ReportError> {
        sync_folder(&self.partial)?;
        let replaces = self.last.exists();
        if replaces {
            exchange(&self.partial, &self.last)?;
        } else {
            let failed = ReportError::file("renaming to", &self.last);
            std::fs::rename(&self.partial, &self.last).map_err(failed)?;
        }
        sync_folder(&self.day)?;
        // Dropping self removes what stands under the hidden name: the older report, if any.
        Ok((self.last.clone(), replaces))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Nothing to be done where it fails: the name is hidden, and the next build tries again.
        let _ = std::fs::remove_dir_all(&self.partial);
    }
}

/// Swaps two directories in one step, where the file system can; else in two renames, between
/// which there is no report, and never a wrong one.
fn exchange(partial: &Path, last: &Path) -> Result<(), ReportError> {
    if swap(partial, last).is_ok() {
        return Ok(());
    }
    let mut name = partial.as_os_str().to_owned();
    name.push("-old");
    let old = PathBuf::from(name);
    std::fs::rename(last, &old).map_err(ReportError::file("renaming", last))?;
    std::fs::rename(partial, last).map_err(ReportError::file("renaming to", last))?;
    std::fs::remove_dir_all(&old).map_err(ReportError::file("removing", &old))
}

#[cfg(target_os = "linux")]
fn swap(a: &Path, b: &Path) -> std::io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn swap(_a: &Path, _b: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// A rename is on the disk when its directory is.
fn sync_folder(folder: &Path) -> Result<(), ReportError> {
    let failed = || ReportError::file("writing", folder);
    File::open(folder).map_err(failed())?.sync_all().map_err(failed())
}

/// Stands between a run's id and the number of the process in a hidden name.
const PARTIAL: &str = ".partial-";

fn prefix(run_id: &str) -> String {
    format!(".{run_id}{PARTIAL}")
}

/// The run whose report a path is of, as far as the path shows it.
pub fn run_of(path: &Path) -> Option<&str> {
    let is_of_day = |folder: &&Path| {
        let day = folder.parent().and_then(Path::file_name).and_then(|day| day.to_str());
        day.is_some_and(|day| day.parse::<NaiveDate>().is_ok())
    };
    let name = path.ancestors().find(is_of_day)?.file_name()?.to_str()?;
    let hidden = name.strip_prefix('.').and_then(|name| name.split_once(PARTIAL));
    let run_id = hidden.map_or(name, |(run_id, _)| run_id);
    is_plain_name(run_id).then_some(run_id)
}

/// What keeps files from being made in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// What is wrong there.
    pub why: String,
    /// What to do about it; names the place.
    pub next: String,
}

/// What stands in the way of a folder that `setting` names. It is made when it is first needed;
/// until then what is there of its path must let it be made.
pub fn obstacle(folder: &Path, setting: &str) -> Option<Obstacle> {
    let Some(there) = standing(folder) else {
        let why = "nothing of its path is there".to_owned();
        return Some(Obstacle { why, next: format!("set {setting} to a folder that exists") });
    };
    let whole = whole(there);
    let shown = whole.display();
    if !there.is_dir() {
        let why = format!("{} is no folder", there.display());
        return Some(Obstacle { why, next: out_of_the_way(&whole, setting) });
    }
    // One without any room, such as /proc, takes no file, whatever its rights say: nothing is full.
    if statvfs(there).is_ok_and(|disk| disk.f_blocks == 0) {
        let why = "its file system keeps no files".to_owned();
        let next = format!(
            "the file system of {shown} keeps no files: set {setting} to a folder on a disk"
        );
        return Some(Obstacle { why, next });
    }
    let errno = access(there, Access::WRITE_OK | Access::EXEC_OK).err()?;
    let why = io::Error::from(errno).to_string();
    Some(Obstacle { why, next: format!("let this user write {shown}, or set {setting}") })
}

/// What is there of a folder's path.
pub fn standing(folder: &Path) -> Option<&Path> {
    let mut folders = folder.ancestors().map(|folder| match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    });
    // A link is there even where what it leads to is not.
    folders.find(|folder| folder.symlink_metadata().is_ok())
}

fn whole(there: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    std::path::absolute(there).unwrap_or_else(|_unknown| here.join(there))
}

/// What to do about what stands where a folder is needed: nobody writes into a file as into one.
fn out_of_the_way(whole: &Path, setting: &str) -> String {
    let shown = whole.display();
    if whole.exists() {
        return format!(
            "{shown} is a file, and stands where a folder is needed: move it away, or set \
             {setting} to another folder"
        );
    }
    match leads_to(whole) {
        Some(end) => format!(
            "{shown} is a link, and what it leads to is not there: make the folder {}, or set \
             {setting} to another one",
            end.display()
        ),
        None => format!(
            "{shown} is a link that leads back to itself, and to no folder: take it away, or set \
             {setting} to another one"
        ),
    }
}

/// As many links as the system follows, one after the other.
const LINKS_MAX: usize = 40;

/// Where a link ends; nowhere, where it comes back to itself.
fn leads_to(link: &Path) -> Option<PathBuf> {
    let mut at = link.to_path_buf();
    for _link in 0..LINKS_MAX {
        match at.read_link() {
            Ok(next) => at = at.parent().unwrap_or(Path::new("")).join(next),
            // A link on the way there may go round as well.
            Err(error) if error.raw_os_error() == Some(LOOP) => return None,
            Err(_no_link) => return Some(at),
        }
    }
    None
}

const LOOP: i32 = rustix::io::Errno::LOOP.raw_os_error();

fn is_plain_name(run_id: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    !run_id.is_empty()
        && run_id.len() <= NAME_MAX
        && !run_id.starts_with('.')
        && run_id.bytes().all(plain)
}

/// Removes what killed builds of this run left. Those of living processes stay.
fn remove_left_overs(day: &Path, run_id: &str) {
    let Ok(entries) = std::fs::read_dir(day) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(&prefix(run_id))) else {
            continue;
        };
        let pid = rest.split('-').next().and_then(|pid| pid.parse::<u32>().ok());
        let is_dead = pid.is_some_and(|pid| !is_alive(pid));
        if is_dead {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Where that cannot be told, a process counts as alive.
fn is_alive(pid: u32) -> bool {
    let processes = Path::new("/proc");
    !processes.join("self").exists() || processes.join(pid.to_string()).exists()
}

/// A directory under the reports' root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Where it stands.
    pub dir: PathBuf,
    /// The business date it is filed under.
    pub business_date: String,
    /// The run.
    pub run_id: String,
    /// What it is.
    pub state: ListedState,
}

/// What a directory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListedState {
    /// A report.
    Whole {
        /// `tied` or `UNTIED`.
        tie_out: String,
        /// The run's exit class.
        exit_class: String,
        /// When the run began.
        started_at: String,
        /// Rows decided.
        rows: u64,
    },
    /// No manifest: not a report.
    Unfinished,
    /// A manifest that cannot be read.
    Unreadable(String),
}

/// Reports under a root, newest business date first, then by run.
///
/// # Errors
/// Where the root cannot be read.
pub fn list(root: &Path) -> Result<Vec<Listed>, ReportError> {
    let mut found = Vec::new();
    for (business_date, day) in folders(root)? {
        if business_date.parse::<NaiveDate>().is_err() {
            continue;
        }
        for (run_id, dir) in folders(&day)? {
            if run_id.starts_with('.') {
                continue;
            }
            let state = state_of(&dir);
            found.push(Listed { dir, business_date: business_date.clone(), run_id, state });
        }
    }
    found.sort_by(|a, b| {
        b.business_date.cmp(&a.business_date).then_with(|| b.run_id.cmp(&a.run_id))
    });
    Ok(found)
}

fn folders(parent: &Path) -> Result<Vec<(String, PathBuf)>, ReportError> {
    let failed = || ReportError::file("reading", parent);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(parent).map_err(failed())? {
        let path = entry.map_err(failed())?.path();
        let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        if let Some(name) = name.filter(|_| path.is_dir()) {
            found.push((name, path));
        }
    }
    Ok(found)
}

fn state_of(dir: &Path) -> ListedState {
    let text = match std::fs::read_to_string(dir.join(MANIFEST)) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return ListedState::Unfinished;
        }
        Err(error) => return ListedState::Unreadable(error.to_string()),
    };
    let json: serde_json::Value = match serde_json::from_str(&text) {
        Ok(json) => json,
        Err(error) => return ListedState::Unreadable(error.to_string()),
    };
    let word = |pointer: &str| {
        json.pointer(pointer).and_then(|value| value.as_str()).unwrap_or("").to_owned()
    };
    let rows = json.pointer("/files/0/rows").and_then(serde_json::Value::as_u64);
    ListedState::Whole {
        tie_out: word("/tie_out"),
        exit_class: word("/exit/class"),
        started_at: word("/started_at"),
        rows: rows.unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_shows_whose_report_it_is_of() {
        for (path, run_id) in [
            ("reports/2026-11-19/r1", Some("r1")),
            ("/a/2026-11-19/r1/rows.csv", Some("r1")),
            ("2026-11-19/.r1.partial-12-0/manifest.json", Some("r1")),
            ("2026-11-18/2026-11-19/r2", Some("r2")),
            ("reports/2026-11-19", None),
            ("reports/archive/r1", None),
            ("r1", None),
        ] {
            assert_eq!(run_of(Path::new(path)), run_id, "{path}");
        }
    }

    #[test]
    fn what_stands_in_the_way_of_a_folder_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        std::fs::create_dir(at("free")).unwrap();
        for (to, link) in [("gone", "link"), ("link", "chain"), ("loop", "loop"), ("b", "a")] {
            symlink(to, at(link)).unwrap();
        }
        symlink("a", at("b")).unwrap();
        symlink("a/x", at("within")).unwrap();
        symlink("free", at("good")).unwrap();
        let gone = format!("is not there: make the folder {}, or set x", at("gone").display());
        for (name, part) in [
            ("file", "is a file, and stands where a folder is needed: move it away, or set x"),
            ("file/below", "is a file, and stands where a folder is needed"),
            ("link", &gone),
            ("chain/2026-11-19/r1", &gone),
            ("loop", "is a link that leads back to itself"),
            ("loop/below", "is a link that leads back to itself"),
            ("a", "is a link that leads back to itself"),
            ("within", "is a link that leads back to itself"),
        ] {
            let Obstacle { why, next } = obstacle(&at(name), "x").unwrap();
            let there = at(name.split('/').next().unwrap());
            assert!(why.ends_with("is no folder"), "{name}: {why}");
            assert!(next.starts_with(&there.display().to_string()), "{name}: {next}");
            assert!(next.contains(part), "{name}: {next}");
        }
        let Obstacle { why, next } = obstacle(Path::new("/proc/tieout"), "x").unwrap();
        assert_eq!(why, "its file system keeps no files");
        assert_eq!(next, "the file system of /proc keeps no files: set x to a folder on a disk");
        for name in ["free", "free/2026-11-19/r1", "good/2026-11-19", "new"] {
            assert_eq!(obstacle(&at(name), "x"), None, "{name}");
        }
    }
}
