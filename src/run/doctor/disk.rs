//! Where reports and fetched files go: can they be written, and is there room?

use std::path::Path;

use rustix::fs::statvfs;

use crate::exit::Exit;
use crate::report::place::{Obstacle, obstacle, standing};
use crate::run::doctor::{Say, fail, ok, warn};

/// A report of ten thousand rows takes a few MiB; a full disk also stops databases.
const LITTLE: u64 = 1024 * 1024 * 1024;

/// Below this a report may not fit.
const TOO_LITTLE: u64 = 64 * 1024 * 1024;

pub(super) fn look(report_dir: &Path, say: Say<'_>) {
    let shown = report_dir.display();
    if let Some(Obstacle { why, next }) = obstacle(report_dir, "report.dir") {
        let text = format!("reports cannot be written to {shown}: {why}");
        return say(fail("disk", Exit::Config, "report_dir", text, next));
    }
    let there = standing(report_dir).unwrap_or(report_dir);
    let Ok(disk) = statvfs(there) else {
        let text = format!("{shown} can be written; how much is free could not be told");
        return say(warn("disk", "untold", text, format!("df {}", there.display())));
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let little = format!("only {} free for {shown}", size_text(free));
    let next = "free some space, or set report.dir to another disk";
    say(match free {
        free if free < TOO_LITTLE => fail("disk", Exit::Database, "disk_full", little, next),
        free if free < LITTLE => warn("disk", "disk_low", little, next),
        _enough => {
            let text = format!("{shown} can be written, {} free", size_text(free));
            ok("disk", "disk", text)
        }
    });
}

/// Where an SQLite file lies, and its log beside it: told only where there is hardly any room.
pub(super) fn database(file: &Path, say: Say<'_>) {
    let Ok(disk) = statvfs(file) else { return };
    let room = disk.f_bavail.saturating_mul(disk.f_frsize);
    room_for_database(&file.display().to_string(), room, say);
}

fn room_for_database(shown: &str, free: u64, say: Say<'_>) {
    let little = format!("only {} free for {shown} and the log beside it", size_text(free));
    let next = "free some space on the disk of the database";
    match free {
        free if free < TOO_LITTLE => {
            say(fail("disk", Exit::Database, "database_full", little, next));
        }
        free if free < LITTLE => say(warn("disk", "database_low", little, next)),
        _enough => {}
    }
}

/// Where fetched files lie: told only where they cannot, or hardly.
pub(super) fn spool(spool_dir: &Path, say: Say<'_>) {
    let shown = spool_dir.display();
    if let Some(Obstacle { why, next }) = obstacle(spool_dir, "files.spool (TIEOUT_FILES_SPOOL)") {
        let text = format!("what is fetched cannot be written to {shown}: {why}");
        return say(fail("disk", Exit::Partial, "spool", text, next));
    }
    // How much is free where it cannot be told is said of the reports' disk.
    let Ok(disk) = statvfs(standing(spool_dir).unwrap_or(spool_dir)) else { return };
    room_for_spool(&shown.to_string(), disk.f_bavail.saturating_mul(disk.f_frsize), say);
}

fn room_for_spool(shown: &str, free: u64, say: Say<'_>) {
    let little = format!("only {} free for what is fetched, in {shown}", size_text(free));
    let next = "free some space, or set files.spool (TIEOUT_FILES_SPOOL) to another disk";
    match free {
        free if free < TOO_LITTLE => say(fail("disk", Exit::Partial, "spool_full", little, next)),
        free if free < LITTLE => say(warn("disk", "spool_low", little, next)),
        _enough => {}
    }
}

/// `41 GiB`.
fn size_text(bytes: u64) -> String {
    let mut size = bytes;
    let mut unit = "B";
    for bigger in ["KiB", "MiB", "GiB", "TiB"] {
        if size < 1024 {
            break;
        }
        size /= 1024;
        unit = bigger;
    }
    format!("{size} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::doctor::Finding;

    #[test]
    fn what_has_no_room_is_not_said_to_be_writable() {
        let mut found = Vec::new();
        look(Path::new("/proc/tieout"), &mut |finding| found.push(finding));
        assert_eq!(found.len(), 1, "{found:?}");
        let finding = found.first().unwrap();
        assert!(matches!(finding.level, crate::run::doctor::Level::Fail(_)), "{finding:?}");
        assert!(!finding.text.contains("can be written"), "{finding:?}");
        // Whoever may write there, a superuser say, could keep nothing there either.
        assert_eq!(finding.code, "report_dir", "{finding:?}");
        assert!(!finding.text.contains("free"), "{finding:?}");
    }

    #[test]
    fn what_is_no_folder_is_told_as_that() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut found = Vec::new();
        look(&file.path().join("reports"), &mut |finding| found.push(finding));
        let Finding { text, next, .. } = found.first().unwrap();
        assert!(text.ends_with(&format!("{} is no folder", file.path().display())), "{text}");
        let next = next.as_deref().unwrap();
        assert!(next.contains("move it away, or set report.dir"), "{next}");
        assert!(!next.contains("let this user write"), "{next}");
    }

    #[test]
    fn a_link_to_nothing_is_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("reports");
        std::os::unix::fs::symlink(folder.path().join("gone"), &link).unwrap();
        let mut found = Vec::new();
        look(&link, &mut |finding| found.push(finding));
        let Finding { text, next, .. } = found.first().unwrap();
        assert!(text.ends_with(&format!("{} is no folder", link.display())), "{text}");
        assert!(next.as_deref().unwrap().contains("what it leads to is not there"), "{next:?}");
    }

    #[test]
    fn a_full_disk_of_the_spool_is_told() {
        let of = |free: u64| {
            let mut found = Vec::new();
            room_for_spool("spool", free, &mut |finding| found.push(finding));
            found.iter().map(|one| (one.code, one.text.clone())).collect::<Vec<_>>()
        };
        let full = "only 8 KiB free for what is fetched, in spool".to_owned();
        assert_eq!(of(8 * 1024), [("spool_full", full)]);
        let low = "only 64 MiB free for what is fetched, in spool".to_owned();
        assert_eq!(of(TOO_LITTLE), [("spool_low", low)]);
        assert_eq!(of(LITTLE), []);
    }

    #[test]
    fn a_full_disk_of_the_database_is_told() {
        let of = |free: u64| {
            let mut found = Vec::new();
            room_for_database("a.db", free, &mut |finding| found.push(finding));
            found.iter().map(|one| (one.code, one.text.clone())).collect::<Vec<_>>()
        };
        let full = "only 8 KiB free for a.db and the log beside it".to_owned();
        assert_eq!(of(8 * 1024), [("database_full", full)]);
        let low = "only 64 MiB free for a.db and the log beside it".to_owned();
        assert_eq!(of(TOO_LITTLE), [("database_low", low)]);
        assert_eq!(of(LITTLE), []);
        let mut found = Vec::new();
        // No room at all, whoever asks.
        database(Path::new("/proc/version"), &mut |finding| found.push(finding));
        assert_eq!(found.first().map(|one| one.code), Some("database_full"));
    }

    #[test]
    fn sizes_are_told_in_the_unit_that_suits() {
        for (bytes, text) in [(1023, "1023 B"), (1024, "1 KiB"), (44_023_414_784, "41 GiB")] {
            assert_eq!(size_text(bytes), text);
        }
    }
}
