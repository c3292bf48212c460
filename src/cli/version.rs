//! `tieout version`: which program this is, for people and for machines.

use serde_json::json;

use crate::cli::args::Common;
use crate::cli::failure::{Failure, SCHEMA};
use crate::cli::out;
use crate::exit::Exit;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout version
  tieout version --json";

/// Prints the version.
pub fn run(common: &Common) -> Result<Exit, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    if common.json {
        let event = json!({
            "schema": SCHEMA,
            "type": "version",
            "version": version,
            "target": format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        });
        out::stdout(&event.to_string());
    } else {
        out::stdout(&format!("tieout {version}"));
    }
    Ok(Exit::Ok)
}
