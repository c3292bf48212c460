//! Where metrics go: a file for the node exporter, and a Pushgateway.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::monitor::metrics::Page;
use crate::monitor::send::{Letter, Post};
use crate::monitor::settings::{Address, Place};

/// Writes the file whole under another name, then gives it its own, so that nobody ever reads
/// half of it. Families that this run says nothing about stay.
pub fn write(path: &Path, page: &Page<'_>) -> io::Result<()> {
    // A device is not replaced, and a pipe that nobody reads not waited for.
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
    }
    let old = std::fs::read_to_string(path).unwrap_or_default();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // The node exporter reads `*.prom`; this is none.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = folder.join(format!(".{name}.{}.tmp", std::process::id()));
    let written = replace(&unfinished, path, &page.over(&old));
    if written.is_err() {
        let _gone = std::fs::remove_file(&unfinished);
    }
    written?;
    File::open(folder)?.sync_all()
}

/// Another user reads it, whatever this one's mask is; no secret is in it.
const READABLE: u32 = 0o644;

fn replace(unfinished: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(unfinished)?;
    file.set_permissions(Permissions::from_mode(READABLE))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(unfinished, path)
}

/// The file's path, with the scope in its place.
pub fn textfile(path: &Path, scope: &str) -> PathBuf {
    path.to_str().map_or_else(|| path.to_owned(), |text| text.replace("{scope}", scope).into())
}

/// Pushes by POST: families that this run says nothing about stay as they are there too.
pub async fn push(post: &Post, to: &Address, text: String) -> Result<(), String> {
    let mut url = post.resolve(Some(Place::Written(to.clone()))).await?;
    match url.path_segments_mut() {
        Ok(mut path) => {
            path.pop_if_empty().extend(["metrics", "job", "tieout", "scope", &post.scope]);
        }
        Err(()) => return Err("its address cannot have a path".to_owned()),
    }
    let headers = vec![("content-type", "text/plain; version=0.0.4; charset=utf-8".to_owned())];
    post.insist(&Letter { url, headers, body: text }).await
}
