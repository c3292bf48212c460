//! Why a report could not be built or read. A report that does not verify is not an error: it is
//! an answer, listed finding by finding.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::exit::is_full;
use crate::report::place::{obstacle, run_of};
use crate::store::error::StoreError;

/// A report that could not be built or read. Nothing half-written ever stands in its place.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// No such run.
    #[error("there is no run {run_id}; no report was written")]
    NoRun {
        /// The id asked for.
        run_id: String,
    },
    /// The run goes on: its totals still move.
    #[error("run {run_id} is still running; no report was written")]
    StillRunning {
        /// The run.
        run_id: String,
    },
    /// The run's id cannot be a directory's name.
    #[error("run id {run_id:?} cannot name a directory; no report was written")]
    BadName {
        /// The id.
        run_id: String,
    },
    /// What the run left behind cannot be read.
    #[error("the {field} of run {run_id} cannot be read; no report was written")]
    Unreadable {
        /// The run.
        run_id: String,
        /// `notes` or `scope`.
        field: &'static str,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The database gave no answer.
    #[error("the journal of run {run_id} could not be read; no report was written")]
    Store {
        /// The run.
        run_id: String,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// A file or directory.
    #[error("{doing} {} failed", path.display())]
    File {
        /// `writing`, `reading`, …
        doing: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// No room to build it anew.
    #[error("building the report anew under {} failed; it was not verified", path.display())]
    Anew {
        /// Where it was to be built.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// No manifest: what stands there is not a report.
    #[error("{} is not a report: it has no manifest.json", path.display())]
    NotAReport {
        /// The directory.
        path: PathBuf,
    },
    /// A manifest that this version cannot read.
    #[error("the manifest of {} cannot be read: {problem}", path.display())]
    Manifest {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

/// What stands in the way of a file or a folder, and who moves it away.
fn mend(path: &Path, error: &std::io::Error) -> String {
    if is_full(error) {
        return "make room on that disk, or set report.dir to another one".to_owned();
    }
    // A file that is there is in nobody's way, unless a folder was to be.
    let is_file = path.is_file() && error.kind() != ErrorKind::AlreadyExists;
    let folder = if is_file { path.parent().unwrap_or(path) } else { path };
    if let Some(found) = obstacle(folder, "report.dir") {
        return found.next;
    }
    match error.kind() {
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            "set report.dir to another folder".to_owned()
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "let this user write there, or set report.dir to another folder".to_owned()
        }
        _other => "check that the report directory exists and can be written".to_owned(),
    }
}

impl ReportError {
    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoRun { .. } => Some("`tieout runs list` shows the runs there are".to_owned()),
            Self::StillRunning { run_id } => Some(format!(
                "when it has ended: `tieout report build {run_id}`; a dead run is closed by the \
                 next `tieout run`"
            )),
            Self::BadName { .. } => {
                Some("give runs ids of letters, digits, `-`, `_` and `.`".to_owned())
            }
            Self::Unreadable { .. } => None,
            Self::Store { source, .. } => source.hint(),
            Self::File { path, .. } => Some(self.hint_of(run_of(path).unwrap_or("RUN"))),
            Self::Anew { .. } => {
                Some("make room there, or let TMPDIR name another folder for it".to_owned())
            }
            Self::NotAReport { path } | Self::Manifest { path, .. } => {
                let run_id = run_of(path).unwrap_or("RUN");
                Some(format!("build it again with `tieout report build {run_id}`"))
            }
        }
    }

    /// The same of this run's report, which is to be built then.
    pub fn hint_of(&self, run_id: &str) -> String {
        let then = format!("`tieout report build {run_id}`");
        match self {
            Self::File { path, source, .. } => format!("{}; then {then}", mend(path, source)),
            _another => match self.hint() {
                Some(hint) => format!("{hint}; then {then}"),
                None => then,
            },
        }
    }

    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File { doing, path, source }
    }

    pub(in crate::report) fn store(run_id: &str) -> impl FnOnce(StoreError) -> Self {
        let run_id = run_id.to_owned();
        move |source| Self::Store { run_id, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_the_way_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let below = |above: &Path| above.join("2026-11-19/r1");
        let of = |path: &Path, kind: ErrorKind| {
            ReportError::file("creating", path)(kind.into()).hint().unwrap()
        };
        let is_file = format!("{} is a file", file.path().display());
        for (above, kind, part) in [
            (file.path(), ErrorKind::NotADirectory, is_file.as_str()),
            (file.path(), ErrorKind::StorageFull, "make room on that disk"),
            (folder.path(), ErrorKind::PermissionDenied, "let this user write there"),
            (folder.path(), ErrorKind::NotFound, "exists and can be written"),
            (Path::new("/proc/x"), ErrorKind::NotFound, "the file system of /proc keeps no files"),
        ] {
            let hint = of(&below(above), kind);
            assert!(hint.contains(part), "{kind:?}: {hint}");
            assert!(hint.ends_with("then `tieout report build r1`"), "{kind:?}: {hint}");
        }
        let whole = of(file.path(), ErrorKind::AlreadyExists);
        assert!(whole.contains("move it away"), "{whole}");
        assert!(whole.ends_with("then `tieout report build RUN`"), "{whole}");
        // A file that is to be there stands in nobody's way.
        let own = of(file.path(), ErrorKind::TimedOut);
        assert!(own.starts_with("check that the report directory exists"), "{own}");
    }
}
