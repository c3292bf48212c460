//! `tieout doctor`: everything that a run stands on, and the next command where something is
//! wrong. It only reads, and may be run in production at any time.

use serde_json::json;

use crate::cli::args::Common;
use crate::cli::events::line;
use crate::cli::failure::{self, Failure};
use crate::cli::page::wrapped;
use crate::cli::watched::around;
use crate::cli::{out, runtime};
use crate::config::{self, Config};
use crate::exit::Exit;
use crate::monitor::receivers;
use crate::run::doctor::{Finding, Level, examine, open_secrets, sources};
use crate::run::shutdown::Stop;
use crate::store::layout::laid_out;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout doctor             every line ok, warn or FAIL, with the next command
  tieout doctor --quiet     only what is not ok
  tieout doctor --json      one event a line, each with a stable code

It writes nothing, anywhere: it looks at the configuration, the database,
the role's rights, each mapped table, the clocks, each PSP account, the disk,
and whether those whom [monitoring] names could be told; none of them is.
Exit 0 where nothing FAILs; else 3, 10, 12, 13, 14 or 15 by what failed.";

/// The column of what was looked at, at least this wide.
const WHAT: usize = 12;

/// What terminals have had for fifty years.
const WIDTH: usize = 80;

/// Runs the command.
pub fn run(common: &Common) -> Result<Exit, Failure> {
    let mut screen = Screen::new(common);
    let config = match config::load(common.config(), &[]) {
        Ok(config) => config,
        Err(error) => {
            screen.put(&Finding {
                what: "config".to_owned(),
                level: Level::Fail(Exit::Config),
                code: "config",
                text: "it cannot be used; nothing else was looked at".to_owned(),
                next: Some("tieout config check".to_owned()),
            });
            return Err(error.into());
        }
    };
    screen.widen(&config);
    screen.put(&Finding {
        what: "config".to_owned(),
        level: Level::Ok,
        code: "config",
        text: format!(
            "{} (accounts {}, tables {})",
            config.path.display(),
            config.accounts.len(),
            config.tables.len()
        ),
        next: None,
    });
    open_secrets(&config.secret_files).iter().for_each(|finding| screen.put(finding));
    let setup = config.setup();
    let exit = runtime::block_on(Box::pin(async {
        let stop = Stop::new();
        let _listening = runtime::listen(&stop, config.limits.grace)?;
        let lacking = receivers::look(&config.monitoring, &around(&config, &stop)).await;
        lacking.iter().for_each(|finding| screen.put(finding));
        let mut say = |finding: Finding| screen.put(&finding);
        Ok::<Exit, Failure>(examine(&setup, &config.database, &stop, &mut say).await)
    }))??;
    screen.end(exit);
    if exit != Exit::Ok && common.quiet {
        let failure = Failure::new(exit, "doctor found what a run would fail on", "tieout doctor");
        return Ok(failure::tell(&failure, common));
    }
    Ok(exit)
}

/// A finding for programs.
pub fn event(finding: &Finding) -> String {
    let body = json!({
        "what": finding.what,
        "state": finding.level.as_str().to_ascii_lowercase(),
        "code": finding.code,
        "text": finding.text,
        "next": finding.next,
        "exit": match finding.level {
            Level::Fail(exit) => Some(exit.code()),
            Level::Ok | Level::Warn => None,
        },
    });
    line("check", body)
}

/// The screen, or the events.
struct Screen<'a> {
    common: &'a Common,
    what: String,
    width: usize,
}

impl<'a> Screen<'a> {
    fn new(common: &'a Common) -> Self {
        Self { common, what: String::new(), width: WHAT }
    }

    /// Gives the longest name room.
    fn widen(&mut self, config: &Config) {
        let names = config.tables.iter().map(|table| table.name.as_str());
        let names = names.chain(config.accounts.keys().map(String::as_str));
        let sources = config.sources.iter().map(sources::label);
        let widths = names.map(|name| name.chars().count());
        let widths = widths.chain(sources.map(|label| label.chars().count()));
        let longest = widths.max().unwrap_or(0);
        self.width = longest.clamp(WHAT, 24);
    }

    fn put(&mut self, finding: &Finding) {
        if self.common.json {
            let next = finding.next.as_deref().map(|next| self.common.copyable(next).into_owned());
            return out::stdout(&event(&Finding { next, ..finding.clone() }));
        }
        if self.common.quiet && finding.level == Level::Ok {
            return;
        }
        let what = if finding.what == self.what { "" } else { finding.what.as_str() };
        let lead = format!("{what:<width$}  {:<4}  ", finding.level.as_str(), width = self.width);
        self.what.clone_from(&finding.what);
        let indent = lead.chars().count();
        let mut lines = wrapped(&finding.text, WIDTH.saturating_sub(indent).max(30)).into_iter();
        out::stdout(format!("{lead}{}", lines.next().unwrap_or_default()).trim_end());
        for more in lines {
            out::stdout(&format!("{:indent$}{more}", ""));
        }
        if let Some(next) = finding.next.as_deref().map(|next| self.common.copyable(next)) {
            tell_next(&next, indent, WIDTH);
        }
    }

    fn end(&self, exit: Exit) {
        if self.common.json {
            let body = json!({ "exit": exit.code(), "class": exit.class() });
            out::stdout(&line("doctor_end", body));
        } else if !self.common.quiet {
            out::stdout(&format!("exit {} ({})", exit.code(), exit.class()));
        }
    }
}

/// Tells what to do next, behind an arrow, in lines of at most so many characters.
pub(super) fn tell_next(next: &str, indent: usize, width: usize) {
    let room = width.saturating_sub(indent.saturating_add(2)).max(30);
    for (at, line) in next_lines(next, room).iter().enumerate() {
        let mark = if at == 0 { "→" } else { " " };
        out::stdout(&format!("{:indent$}{mark} {line}", ""));
    }
}

/// How what is to be copied into a shell begins.
const COMMANDS: [&str; 2] = ["tieout ", "psql "];

/// How what is to be copied into an SQL client begins; everything else is advice.
const STATEMENTS: [&str; 5] = ["create ", "alter ", "drop ", "grant ", "revoke "];

/// What to do next, in lines of at most so many characters. It is there to be copied: a command is
/// never broken, and a statement only where that changes nothing.
fn next_lines(next: &str, width: usize) -> Vec<String> {
    let begins =
        |word: &&str| next.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
    if next.contains('\n') || COMMANDS.iter().any(begins) {
        return vec![next.to_owned()];
    }
    if STATEMENTS.iter().any(begins) {
        return laid_out(next, width, 2);
    }
    wrapped(next, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_broken_and_a_command_is_not() {
        let advice = "name them in [[table.map]] or leave the rows out by where";
        let lines = next_lines(advice, 40);
        assert_eq!(lines, ["name them in [[table.map]] or leave the", "rows out by where"]);
        let command = "tieout deliver purge --sink x";
        assert_eq!(next_lines(command, 20), [command]);
        let statement = next_lines("CREATE INDEX a ON b (c, \"d e\", f)", 20);
        assert_eq!(statement, ["CREATE INDEX a ON b", "  (c, \"d e\", f)"]);
    }
}
