//! Files to keep: reports as the runs wrote them, and the stored evidence of a case.
//!
//! What an address names is never a path. A report is found by its business date and its run, a
//! file by its name in the manifest.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::report::columns::MANIFEST;
use crate::report::place::{Listed, ListedState};
use crate::store::driver::Driver;
use crate::web::error::Refused;
use crate::web::page::whole;
use crate::web::sessions::Person;
use crate::web::site::Site;

/// Bytes on their way at once.
const CHUNK: usize = 64 * 1024;

/// Chunks that wait for a slow browser.
const AHEAD: usize = 4;

/// A file of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportFile {
    /// Its name.
    pub name: String,
    /// Its hash by the manifest.
    pub sha256: String,
    /// Its records, where it has some.
    pub rows: Option<u64>,
}

/// A run's report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The business date that it is filed under.
    pub day: String,
    /// The run.
    pub run_id: String,
    /// Its files, the manifest last.
    pub files: Vec<ReportFile>,
}

/// The reports there are, the newest first; none where they cannot be read.
pub async fn listed(site: &Site) -> Vec<Listed> {
    let root = site.config.report_dir.clone();
    let read = tokio::task::spawn_blocking(move || {
        if root.exists() { crate::report::list(&root).unwrap_or_default() } else { Vec::new() }
    });
    read.await.unwrap_or_default()
}

/// The report of a run, where there is one.
pub async fn report_of(site: &Site, run_id: &str) -> Option<Report> {
    let is_its = |listed: &Listed| {
        listed.run_id == run_id && matches!(listed.state, ListedState::Whole { .. })
    };
    let found = listed(site).await.into_iter().find(is_its)?;
    let files = files_of(&found.dir).await?;
    Some(Report { day: found.business_date, run_id: found.run_id, files })
}

async fn files_of(dir: &Path) -> Option<Vec<ReportFile>> {
    let text = tokio::fs::read_to_string(dir.join(MANIFEST)).await.ok()?;
    let manifest: serde_json::Value = serde_json::from_str(&text).ok()?;
    let entries = manifest["files"].as_array().cloned().unwrap_or_default();
    let file_of = |entry: &serde_json::Value| {
        Some(ReportFile {
            name: entry["name"].as_str().filter(|name| is_plain(name))?.to_owned(),
            sha256: entry["sha256"].as_str().unwrap_or_default().to_owned(),
            rows: entry["rows"].as_u64(),
        })
    };
    let mut files: Vec<ReportFile> = entries.iter().filter_map(file_of).collect();
    let hash = crate::web::token::hash_of(&text);
    files.push(ReportFile { name: MANIFEST.to_owned(), sha256: hash, rows: None });
    Some(files)
}

/// A name that leads nowhere else.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// One file of a report.
pub async fn report(
    site: &Rc<Site>,
    day: &str,
    run_id: &str,
    name: &str,
) -> Result<Response, Refused> {
    if ![day, run_id, name].into_iter().all(is_plain) {
        return Err(Refused::no_page());
    }
    let dir: PathBuf = site.config.report_dir.join(day).join(run_id);
    let files = files_of(&dir).await.ok_or_else(Refused::no_page)?;
    if !files.iter().any(|file| file.name == name) {
        return Err(Refused::no_page());
    }
    let opened = tokio::fs::File::open(dir.join(name)).await;
    let mut file = opened.map_err(|_gone| Refused::no_page())?;
    let (sender, receiver) = channel(AHEAD);
    site.tasks.spawn_local(async move {
        loop {
            let mut chunk = vec![0_u8; CHUNK];
            let read = match file.read(&mut chunk).await {
                Ok(0) => return,
                Ok(read) => read,
                Err(error) => {
                    // The browser sees a download that broke off, and not a whole one.
                    let _ = sender.send(Err(error)).await;
                    return;
                }
            };
            chunk.truncate(read);
            if sender.send(Ok(Bytes::from(chunk))).await.is_err() {
                return;
            }
        }
    });
    let kind = match name.rsplit('.').next() {
        Some("csv") => "text/csv; charset=utf-8",
        Some("json") => "application/json",
        _other => "application/octet-stream",
    };
    Ok(file_answer(kind, &format!("{run_id}-{name}"), receiver))
}

/// Where a part of a download goes.
pub type Parts = Sender<std::io::Result<Bytes>>;

/// An answer that browsers save under a name. Its parts come as they are made.
pub fn file_answer(
    kind: &'static str,
    name: &str,
    parts: Receiver<std::io::Result<Bytes>>,
) -> Response {
    let parts = stream::unfold(parts, |mut parts| async move {
        let part = parts.recv().await?;
        Some((part, parts))
    });
    let mut answer = whole(StatusCode::OK, kind, Body::from_stream(parts));
    let how = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
    let how = how.unwrap_or_else(|_odd| HeaderValue::from_static("attachment"));
    answer.headers_mut().insert("content-disposition", how);
    answer
}

/// The stored evidence of a case, redacted as it was stored.
pub async fn evidence(person: &Person, number: i64) -> Result<Response, Refused> {
    let case = person.db.case(number).await?.ok_or_else(Refused::no_page)?;
    let hash = case.evidence_sha256.ok_or_else(Refused::no_page)?;
    let text = person.db.evidence(&hash).await?.ok_or_else(Refused::no_page)?;
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let pretty = serde_json::to_string_pretty(&value).unwrap_or(text);
    Ok(whole(StatusCode::OK, "application/json", pretty))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        for fine in ["exceptions.csv", "manifest.json", "2026-11-19"] {
            assert!(is_plain(fine), "{fine}");
        }
        for bad in ["", ".", "..", ".hidden", "a/b", "../x", "a\\b", "a\"b", "a\nb"] {
            assert!(!is_plain(bad), "{bad}");
        }
    }
}
