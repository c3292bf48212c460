//! `tieout version`: which program this is, for people and for machines.

use serde_json::json;

use crate::cli::args::Common;
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::out;
use crate::exit::Exit;
use crate::run::COMMIT;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout version
  tieout version --json";

/// Prints the version.
pub fn run(common: &Common) -> Result<Exit, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    if common.json {
        let body = json!({
            "version": version,
            "git_commit": COMMIT,
            "target": format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        });
        out::stdout(&line("version", body));
    } else {
        let commit = COMMIT.map_or(String::new(), |commit| format!(" ({commit})"));
        out::stdout(&format!("tieout {version}{commit}"));
    }
    Ok(Exit::Ok)
}
