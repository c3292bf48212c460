//! `tieout generate`: man pages and completions, made from the command line itself.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::args::path;
use crate::cli::failure::Failure;
use crate::cli::out;
use crate::config::names;
use crate::exit::Exit;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout generate man --dir /usr/local/share/man/man1
  tieout generate man | man -l -
  tieout generate bash > /etc/bash_completion.d/tieout
  tieout generate zsh > ~/.zfunc/_tieout";

/// Options of `generate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to make
    #[arg(value_enum)]
    kind: Kind,
    /// The folder for man pages, as --dir
    #[arg(value_name = "DIR", conflicts_with = "dir", value_parser = path())]
    folder: Option<PathBuf>,
    /// Write the man pages into this folder, a file each, instead of printing them
    #[arg(long, value_name = "DIR", env = names::GENERATE_DIR, value_parser = path())]
    dir: Option<PathBuf>,
}

/// What can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Man pages.
    Man,
    /// Completions for bash.
    Bash,
    /// Completions for zsh.
    Zsh,
    /// Completions for fish.
    Fish,
    /// Completions for `PowerShell`.
    #[value(name = "powershell")]
    PowerShell,
}

/// Runs the command on the whole command line.
pub fn run(args: &Args, command: clap::Command) -> Result<Exit, Failure> {
    let dir =
        args.folder.as_deref().or(args.dir.as_deref()).filter(|dir| !dir.as_os_str().is_empty());
    match (args.kind, dir) {
        (Kind::Man, dir) => man(command, dir)?,
        (_completions, Some(_dir)) => {
            return Err(Failure::usage("--dir is for man pages; completions go to stdout"));
        }
        (Kind::Bash, None) => completions(command, Shell::Bash),
        (Kind::Zsh, None) => completions(command, Shell::Zsh),
        (Kind::Fish, None) => completions(command, Shell::Fish),
        (Kind::PowerShell, None) => completions(command, Shell::PowerShell),
    }
    Ok(Exit::Ok)
}

fn completions(mut command: clap::Command, shell: Shell) {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "tieout", &mut text);
    out::stdout(String::from_utf8_lossy(&text).trim_end());
}

fn man(mut command: clap::Command, dir: Option<&Path>) -> Result<(), Failure> {
    // Flags of every command reach the others here.
    command.build();
    if let Some(dir) = dir {
        let made = std::fs::create_dir_all(dir);
        made.map_err(|error| refused(&dir.display().to_string(), &error))?;
    }
    let mut commands = vec![command];
    while let Some(command) = commands.pop() {
        let mut inner: Vec<_> = command.get_subcommands().cloned().collect();
        inner.reverse();
        commands.extend(inner);
        let (name, text) = page(command)?;
        match dir {
            Some(dir) => std::fs::write(dir.join(&name), &text)
                .map_err(|error| refused(&dir.join(&name).display().to_string(), &error))?,
            None => out::stdout(text.trim_end()),
        }
    }
    Ok(())
}

/// A command's page, and its file's name. The synopsis is what `--help` shows: the library's own
/// leaves out what a flag is given. What it calls EXTRA are the examples.
fn page(mut command: clap::Command) -> Result<(String, String), Failure> {
    let usage = command.render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
    let page = Man::new(command.override_usage(usage));
    let page = page.section("1").manual("tieout").source("tieout");
    let name = page.get_filename();
    let mut text = Vec::new();
    page.render(&mut text).map_err(|error| refused(&name, &error))?;
    let text = String::from_utf8_lossy(&text);
    Ok((name, text.replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n")))
}

fn refused(name: &str, error: &std::io::Error) -> Failure {
    let text = format!("{name} could not be written: {error}; pages after it were not made");
    let exit = Exit::of_file(error, Exit::Usage);
    Failure::new(exit, text, "name a folder that may be written to")
}
