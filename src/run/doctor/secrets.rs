//! Files that hold secrets: may others than their owner read them?

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::run::doctor::{Finding, warn};

/// The rights of a file that everybody has.
const OF_ALL: u32 = 0o007;

/// Those of its group.
const OF_GROUP: u32 = 0o070;

/// Folders of a running system in which files are kept for one service alone, whatever their own
/// rights say: by systemd, or by what runs a container.
const KEPT: [&str; 2] = ["credentials", "secrets"];

/// One finding for each file that others may read; each comes with the setting that names it.
pub(super) fn look(files: &[(String, PathBuf)]) -> Vec<Finding> {
    let open = files.iter().filter(|(_setting, file)| is_open(file));
    let told = open.map(|(setting, file)| {
        let shown = file.display();
        let text = format!("others than its owner may read {shown} ({setting})");
        warn("secrets", "secret_open", text, format!("chmod 600 {shown}"))
    });
    told.collect()
}

/// Whether others may read a file. A group may that root gave its own file to: a service reads what
/// it cannot write.
pub(super) fn is_open(file: &Path) -> bool {
    let Ok(metadata) = std::fs::metadata(file) else { return false };
    if !metadata.is_file() || is_kept(file) {
        return false;
    }
    let mode = metadata.mode();
    mode & OF_ALL != 0 || (mode & OF_GROUP != 0 && metadata.uid() != 0)
}

fn is_kept(file: &Path) -> bool {
    let is_of_system = file.starts_with("/run") || file.starts_with("/var/run");
    is_of_system && file.iter().any(|step| KEPT.iter().any(|kept| step == *kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_for_one_service_is_not_open() {
        for kept in ["/run/credentials/tieout.service/A", "/run/secrets/a", "/var/run/secrets/a"] {
            assert!(is_kept(Path::new(kept)), "{kept}");
        }
        for other in ["/etc/tieout/credentials/A", "/run/a", "secrets/a"] {
            assert!(!is_kept(Path::new(other)), "{other}");
        }
    }
}
