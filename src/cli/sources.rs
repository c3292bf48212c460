//! `tieout sources`: where settlement files come from. Nothing here fetches a file; `trust` is the
//! only way by which a server's key becomes a trusted one, and a person's.

use std::io::IsTerminal;
use std::time::Duration;

use clap::Subcommand;
use serde_json::{Value, json};

use crate::cli::args::{Common, word, yes_or_no};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::page::{self, say};
use crate::cli::{out, person, runtime};
use crate::clock;
use crate::config::names;
use crate::config::{self, Config};
use crate::exit::Exit;
use crate::model::count::counted;
use crate::model::near::nearest;
use crate::model::time::{to_short_text, to_text};
use crate::run::doctor::sources::label;
use crate::settlement::sources::SourceError;
use crate::settlement::sources::fetch::{Look, look_again};
use crate::settlement::sources::pick::{Convention, Seen};
use crate::settlement::sources::settings::{Place, Server, Source, is_fingerprint};
use crate::settlement::sources::trust::{HostKey, Standing, Trusted, remember};

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout sources list               what is configured; connects to nobody
  tieout sources test               connect, log in, list; fetches nothing
  tieout sources trust bank-a       compare a server's key, then trust it";

/// For `--help`.
const TRUST_EXAMPLES: &str = "\
Examples:
  tieout sources trust bank-a
  tieout sources trust bank-a --fingerprint SHA256:…   as its operator told it
  tieout sources trust bank-a --yes   only where the network between is yours

The key is written to the source's known_hosts file, which OpenSSH reads too.";

/// Files of a source that a screen shows; --json shows all.
const SHOWN: usize = 20;

/// What to do with sources.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what is configured
    List,
    /// Connect, log in and list, without fetching anything
    Test(Test),
    /// Trust the key that a server shows
    #[command(after_help = TRUST_EXAMPLES)]
    Trust(Trust),
}

/// Options of `sources test`.
#[derive(Debug, clap::Args)]
pub struct Test {
    /// Which sources; default: all
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// Options of `sources trust`.
#[derive(Debug, clap::Args)]
pub struct Trust {
    /// Which source
    name: String,
    /// The fingerprint that its operator told you; only that key is trusted
    #[arg(long, value_name = "SHA256:…", env = names::TRUST_FINGERPRINT)]
    fingerprint: Option<String>,
    /// Trust the key that is shown, without comparing it to anything
    #[arg(long, env = names::TRUST_YES, value_parser = yes_or_no)]
    yes: bool,
}

/// Runs the command.
pub fn run(command: &Command, common: &Common) -> Result<Exit, Failure> {
    let config = config::load(common.config(), &[])?;
    match command {
        Command::List => list(&config, common),
        Command::Test(options) => test(options, &config, common),
        Command::Trust(options) => trust(options, &config, common),
    }
}

// ----------------------------------------------------------------------------------------- list

fn list(config: &Config, common: &Common) -> Result<Exit, Failure> {
    for source in &config.sources {
        if common.json {
            out::stdout(&line("source", described(source)));
        } else {
            listed(source).iter().for_each(|row| say(row));
        }
    }
    if config.sources.is_empty() && !common.json && !common.quiet {
        say("no [[source]] is configured");
    }
    Ok(Exit::Ok)
}

fn listed(source: &Source) -> Vec<String> {
    let mut rows = vec![format!("{}  {}", label(source), place_text(source))];
    let mut row = |name: &str, text: String| rows.push(format!("    {name:<9} {text}"));
    row("files", format!("{}; {}", source.globs.join(" "), ready_text(source)));
    if let Place::Sftp(server) = &source.place {
        row("host key", trust_text(server));
    }
    let currency = source.currency.map(|currency| currency.code().to_owned());
    let pinned =
        [("format", &source.format), ("currency", &currency), ("account", &source.account)];
    for (name, value) in pinned {
        if let Some(value) = value {
            row(name, value.clone());
        }
    }
    for expected in &source.expected {
        let (by, zone) = (expected.file.by.format("%H:%M"), expected.file.zone);
        let lag = match expected.file.lag_days {
            0 => "the same day".to_owned(),
            1 => "the business day after".to_owned(),
            days => format!("{days} business days after"),
        };
        row("expects", format!("{} by {by} {zone}, {lag}", expected.file.name));
    }
    match &source.archive {
        Some(folder) => row("archive", format!("to {folder}, once committed")),
        None => row("archive", "never: nothing is changed there".to_owned()),
    }
    rows
}

fn place_text(source: &Source) -> String {
    match &source.place {
        Place::Folder(path) => path.display().to_string(),
        Place::Sftp(server) => format!("{}@{} {}", server.user, server.address(), server.path),
    }
}

fn ready_text(source: &Source) -> String {
    match &source.convention {
        Convention::Rename => "whole when they have their name".to_owned(),
        Convention::Marker(name) => format!("whole when {name} is there"),
        Convention::Stable => {
            let secs = source.stable_for.as_secs();
            format!("whole when two looks {secs} s apart agree")
        }
    }
}

fn trust_text(server: &Server) -> String {
    match Trusted::of(server) {
        Ok(trusted) if trusted.fingerprints().is_empty() => "none is trusted yet".to_owned(),
        Ok(trusted) => trusted.fingerprints().join(", "),
        Err(error) => error.to_string(),
    }
}

fn described(source: &Source) -> Value {
    let (kind, host_keys) = match &source.place {
        Place::Folder(_) => ("folder", Vec::new()),
        Place::Sftp(server) => {
            let trusted = Trusted::of(server).map(|trusted| trusted.fingerprints());
            ("sftp", trusted.unwrap_or_default())
        }
    };
    json!({
        "name": source.name,
        "kind": kind,
        "place": place_text(source),
        "state": "listed",
        "host_keys": host_keys,
        "format": source.format,
        "account": source.account,
        "archive": source.archive,
        "expected": source.expected.iter().map(|one| one.file.name.as_str()).collect::<Vec<_>>(),
    })
}

// ----------------------------------------------------------------------------------------- test

fn test(options: &Test, config: &Config, common: &Common) -> Result<Exit, Failure> {
    let mut chosen: Vec<&Source> = Vec::new();
    for name in &options.names {
        chosen.push(named("sources test", name, config)?);
    }
    if options.names.is_empty() {
        chosen = config.sources.iter().collect();
    }
    let mut exit = Exit::Ok;
    for source in &chosen {
        match looked_at(source, common)? {
            Ok(look) => {
                tell_look(source, &look, common);
                tell_unread(source);
            }
            Err(error) => exit = exit.or_stronger(tell_failed(source, &error, common)),
        }
    }
    if chosen.is_empty() && !common.json && !common.quiet {
        say("no [[source]] is configured");
    }
    Ok(exit)
}

fn looked_at(source: &Source, common: &Common) -> Result<Result<Look, SourceError>, Failure> {
    let env: crate::secret::EnvLookup = std::sync::Arc::new(config::named_secret);
    let secrets = runtime::block_on(source.secrets(&env))?;
    let mut waiting = |span: Duration| {
        if !common.json && !common.quiet {
            let secs = span.as_secs();
            page::warn(&format!(
                "{}: a file was written just now: looking again in {secs} s",
                source.name
            ));
        }
    };
    Ok(secrets.and_then(|secrets| look_again(source, &secrets, &mut waiting)))
}

fn tell_look(source: &Source, look: &Look, common: &Common) {
    if common.json {
        let (count, newest) = look.newest();
        let because = |name: &str, why: &str| json!({ "name": name, "why": why });
        let refused = look.refused();
        let body = json!({
            "name": source.name,
            "state": "ok",
            "host_key": look.host_key,
            "files": count,
            "newest_at": newest.map(to_text),
            "ready": look.ready().map(|seen| seen.name.as_str()).collect::<Vec<_>>(),
            "waiting": look.picked.waiting.iter().map(|(s, why)| because(&s.name, why))
                .collect::<Vec<_>>(),
            "refused": refused.map(|(name, why)| because(name, why)).collect::<Vec<_>>(),
            "archive_problem": look.archive,
        });
        return out::stdout(&line("source", body));
    }
    if common.quiet {
        return;
    }
    say(&format!("{}  ok  {}", label(source), look.text()));
    if let Some((count, one)) = look.fits_none() {
        let (what, globs) = (counted(count, "file", "files"), source.globs.join(" "));
        say(&format!(
            "    unwanted {what} there, such as {}: no `glob` ({globs}) fits",
            shown(one)
        ));
    }
    if let Some(why) = &look.archive {
        say(&format!("    archive  {}: no file is put away", page::one_line(why)));
    }
    let ready = look.ready().map(|seen| ("ready", file_text(seen)));
    let waiting = look.picked.waiting.iter();
    let waiting = waiting.map(|(seen, why)| ("waiting", format!("{}: {why}", shown(&seen.name))));
    let refused = look.refused().map(|(name, why)| ("refused", format!("{}: {why}", shown(name))));
    // What is not as it should be comes first: the rest may be long.
    let rows: Vec<(&str, String)> = refused.chain(waiting).chain(ready).collect();
    for (state, text) in rows.iter().take(SHOWN) {
        say(&format!("    {state:<8} {text}"));
    }
    if let Some(more) = rows.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        say(&format!("    and {more} more; --json shows all"));
    }
}

/// What of the known hosts trusts nobody, since it cannot be read.
fn tell_unread(source: &Source) {
    let Place::Sftp(server) = &source.place else { return };
    let unread = Trusted::of(server).map(|trusted| trusted.problems).unwrap_or_default();
    for problem in unread {
        let (file, line) = (server.known_hosts.display(), problem.line);
        let text = format!(
            "{file}:{line} cannot be read, and says nothing then: {}: expected {}",
            problem.field, problem.expected
        );
        page::warn(&format!("tieout: warning: {}: {text}", source.name));
    }
}

fn file_text(seen: &Seen) -> String {
    let at = seen.written().map(|at| format!("  {}", to_short_text(at))).unwrap_or_default();
    format!("{}  {} bytes{at}", shown(&seen.name), seen.size)
}

/// A remote name as a terminal may show it.
fn shown(name: &str) -> String {
    name.escape_debug().to_string()
}

fn tell_failed(source: &Source, error: &SourceError, common: &Common) -> Exit {
    let exit = error.exit();
    if common.json {
        let body = json!({
            "name": source.name,
            "state": "failed",
            "class": exit.class(),
            "exit": exit.code(),
            "text": error.to_string(),
            "next": error.hint_to_person(&source.name),
        });
        out::stdout(&line("source", body));
    }
    let text = format!("{}: {error}; nothing was fetched", source.name);
    let text = text.replace("; nothing was read; nothing was fetched", "; nothing was read");
    let told = Failure::new(exit, text, error.hint_to_person(&source.name));
    page::warn(&format!("tieout: {}: {}", exit.class(), told.text));
    page::warn(&format!("hint: {}", told.hint.unwrap_or_default()));
    exit
}

// ---------------------------------------------------------------------------------------- trust

fn trust(options: &Trust, config: &Config, common: &Common) -> Result<Exit, Failure> {
    let source = named("sources trust", &options.name, config)?;
    let Place::Sftp(server) = &source.place else {
        let text = format!("`{}` is a folder: there is no key to trust", source.name);
        return Err(Failure::usage(text));
    };
    let wanted = word(options.fingerprint.as_ref());
    if let Some(wanted) = wanted.as_deref().filter(|wanted| !is_fingerprint(wanted)) {
        let text = format!("--fingerprint {wanted}: expected SHA256: and 43 letters or digits");
        return Err(Failure::usage(text));
    }
    let failed = |error: SourceError| {
        let text = format!("{}: {error}", source.name);
        Failure::new(error.exit(), text, error.hint_to_person(&source.name))
    };
    let trusted = Trusted::of(server).map_err(failed)?;
    let keys = trusted.shown().map_err(failed)?;
    show(server, &keys, common);
    let Some(key) = chosen(options, wanted.as_deref(), source, &keys)? else {
        tell_trusted(source, server, None, common);
        tell_stale(server, &trusted.stale(&keys), common);
        return Ok(Exit::Ok);
    };
    if !server.host_keys.is_empty() {
        let text = format!(
            "`host_key` of `{}` says which keys are trusted; nothing was written",
            source.name
        );
        let hint = format!("add \"{}\" to it, in {}", key.fingerprint, config.path.display());
        return Err(Failure::new(Exit::Config, text, hint));
    }
    let day = clock::now().format("%Y-%m-%d");
    let comment = format!("tieout:{} {day} {}", source.name, person::name());
    remember(server, &key.key, &comment).map_err(failed)?;
    tell_trusted(source, server, Some(key), common);
    tell_stale(server, &trusted.stale(&keys), common);
    Ok(Exit::Ok)
}

/// A key that was written down before opens the door still, whoever holds it by now.
fn tell_stale(server: &Server, stale: &[(u64, String)], common: &Common) {
    if common.json || common.quiet {
        return;
    }
    let file = server.known_hosts.display();
    for (line, key) in stale {
        say(&format!(
            "{key} is still trusted, and the server does not show it: take line {line} out of \
             {file} where the server has given that key up"
        ));
    }
}

fn show(server: &Server, keys: &[HostKey], common: &Common) {
    if common.json || common.quiet {
        return;
    }
    say(&format!("{} shows", server.address()));
    for key in keys {
        let standing = standing(key.standing);
        say(&format!("    {}  {}  {standing}", key.fingerprint, key.kind));
    }
}

fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Trusted => "trusted",
        Standing::Unknown => "unknown",
        Standing::Changed => "NOT the trusted one",
        Standing::Revoked => "REVOKED",
    }
}

/// The key to trust; none where it is trusted already.
fn chosen<'a>(
    options: &Trust,
    wanted: Option<&str>,
    source: &Source,
    keys: &'a [HostKey],
) -> Result<Option<&'a HostKey>, Failure> {
    let refused = |text: String| {
        let text = format!("{}: {text}; nothing was trusted", source.name);
        Failure::new(Exit::Trust, text, "ask its operator, by another way than this line")
    };
    let key = match wanted {
        Some(wanted) => keys.iter().find(|key| key.fingerprint == wanted).ok_or_else(|| {
            let shown: Vec<&str> = keys.iter().map(|key| key.fingerprint.as_str()).collect();
            refused(format!("it shows {}, and not {wanted}", shown.join(", ")))
        })?,
        None => match keys.iter().find(|key| key.standing == Standing::Trusted) {
            Some(_known) => return Ok(None),
            None => keys.first().ok_or_else(|| refused("it shows no key".to_owned()))?,
        },
    };
    match (key.standing, wanted) {
        (Standing::Trusted, _) => return Ok(None),
        (Standing::Revoked, _) => {
            return Err(refused(format!("{} is marked as revoked", key.fingerprint)));
        }
        (Standing::Unknown | Standing::Changed, Some(_compared)) => return Ok(Some(key)),
        (Standing::Changed, None) if options.yes => {
            let text = "another key is trusted, and --yes compares nothing: --fingerprint does";
            return Err(refused(text.to_owned()));
        }
        (Standing::Unknown, None) if options.yes => return Ok(Some(key)),
        (Standing::Unknown | Standing::Changed, None) => {}
    }
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        let text = "there is no terminal to ask on; add --fingerprint SHA256:… as its operator \
                    told it, or --yes; nothing was trusted; nothing was done";
        return Err(Failure::usage(text));
    }
    if key.standing == Standing::Changed {
        page::warn("Another key is trusted. If nobody announced a new one, stop here.");
    }
    page::warn(&format!("Did its operator tell you {}? [yes/N]", key.fingerprint));
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    let is_yes = read.is_ok() && [key.fingerprint.as_str(), "yes"].contains(&answer.trim());
    if is_yes { Ok(Some(key)) } else { Err(refused("the key was not confirmed".to_owned())) }
}

fn tell_trusted(source: &Source, server: &Server, key: Option<&HostKey>, common: &Common) {
    let file = server.known_hosts.display();
    if common.json {
        let body = json!({
            "name": source.name,
            "state": "trusted",
            "host_key": key.map(|key| key.fingerprint.as_str()),
            "changed": key.is_some(),
        });
        return out::stdout(&line("source", body));
    }
    if common.quiet {
        return;
    }
    match key {
        Some(key) => say(&format!("{} is trusted from now on; written to {file}", key.fingerprint)),
        None => say("it is trusted already; nothing was changed"),
    }
}

/// A source by its name.
pub fn named<'a>(command: &str, name: &str, config: &'a Config) -> Result<&'a Source, Failure> {
    let found = config.sources.iter().find(|source| source.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = config.sources.iter().map(|source| source.name.as_str()).collect();
        let help = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "no [[source]] is configured.".to_owned(),
            None => format!("configured: {}.", names.join(", ")),
        };
        let text = format!("{command} {name}: there is no such source; {help}");
        Failure::usage(format!("{text} Nothing was done"))
    })
}
