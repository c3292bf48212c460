//! `tieout config init`: from a real database to a commented tieout.toml, with a reason for each
//! choice. It only reads the database; it asks where somebody is there to answer.

use std::collections::BTreeSet;
use std::io::{BufRead, ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};

use chrono_tz::Tz;
use serde_json::{Value, json};

use crate::cli::args::{Common, naming, path, yes_or_no};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::page::{self, wrapped};
use crate::cli::{out, runtime};
use crate::config::init::write::{Address, file};
use crate::config::init::{
    Answers, Choice, OPEN, Proposal, Seen, choose, is_stray, ranked, wants_examples, wants_values,
    words, written_below,
};
use crate::config::{self, FILE_NAME, names};
use crate::exit::{Exit, is_full};
use crate::model::money::{Currency, grouped_text};
use crate::model::near::nearest;
use crate::store::database::Database;
use crate::store::error::StoreError;
use crate::store::inspect::{Inspect, Surveyed};
use crate::store::settings::{DatabaseSettings, holds_password, shown_address};
use crate::store::template::Template;

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout config init --url postgres://localhost/shop
  tieout config init --url sqlite:shop.db --table payments --yes
  tieout config init --url-env DATABASE_URL --processing sent --succeeded paid

It reads the catalogue and a few rows, proposes a mapping with a reason for
each choice, and says what it could not tell. On a terminal it asks; Enter
takes what is proposed, and leaves ??? open. Nothing is written but the file.";

/// The variable that most platforms put the address into.
const DATABASE_URL: &str = "DATABASE_URL";

/// Variables that applications keep Stripe's key in.
const KEYS: [&str; 4] = ["STRIPE_SECRET_KEY", "STRIPE_API_KEY", "STRIPE_KEY", "STRIPE_SECRET"];

/// SQLite's code of a file that is no database of its own; SQLSTATEs have five characters.
const NO_DATABASE: &str = "26";

/// Tables shown to choose from.
const TABLES_SHOWN: usize = 5;

/// Tables named where none is likely.
const TABLES_NAMED: usize = 10;

/// Values of the status that are shown.
const VALUES_SHOWN: usize = 20;

/// Options of `config init`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The database: postgres://…, sqlite:FILE
    #[arg(long, value_name = "URL", env = names::INIT_URL, help_heading = "Database")]
    url: Option<String>,
    /// The environment variable that holds it [default: DATABASE_URL]
    #[arg(
        long, value_name = "NAME", env = names::INIT_URL_ENV, conflicts_with = "url",
        help_heading = "Database"
    )]
    url_env: Option<String>,
    /// PostgreSQL: schemas to look in
    #[arg(long, value_name = "PATH", env = names::INIT_SEARCH_PATH, help_heading = "Database")]
    search_path: Option<String>,
    /// The table or view of payments
    #[arg(long, value_name = "NAME", env = names::INIT_TABLE, help_heading = "Mapping")]
    table: Option<String>,
    /// Columns of its key
    #[arg(
        long, value_name = "COLUMN,…", env = names::INIT_KEY, value_delimiter = ',',
        help_heading = "Mapping"
    )]
    key: Vec<String>,
    /// The status column
    #[arg(long, value_name = "COLUMN", env = names::INIT_STATUS, help_heading = "Mapping")]
    status: Option<String>,
    /// Its values of rows that are stuck
    #[arg(
        long, value_name = "VALUE,…", env = names::INIT_PROCESSING, value_delimiter = ',',
        help_heading = "Mapping"
    )]
    processing: Vec<String>,
    /// Its value of succeeded
    #[arg(long, value_name = "VALUE", env = names::INIT_SUCCEEDED, help_heading = "Mapping")]
    succeeded: Option<String>,
    /// Its value of failed
    #[arg(long, value_name = "VALUE", env = names::INIT_FAILED, help_heading = "Mapping")]
    failed: Option<String>,
    /// Its value of "charge again"
    #[arg(long, value_name = "VALUE", env = names::INIT_RETRYABLE, help_heading = "Mapping")]
    retryable: Option<String>,
    /// The amount's column
    #[arg(long, value_name = "COLUMN", env = names::INIT_AMOUNT, help_heading = "Mapping")]
    amount: Option<String>,
    /// Its unit: minor (cents) or major
    #[arg(
        long, value_name = "UNIT", env = names::INIT_UNIT, value_parser = ["minor", "major"],
        help_heading = "Mapping"
    )]
    unit: Option<String>,
    /// The currency's column, or a code such as EUR
    #[arg(long, value_name = "WORD", env = names::INIT_CURRENCY, help_heading = "Mapping")]
    currency: Option<String>,
    /// The column of creation times
    #[arg(long, value_name = "COLUMN", env = names::INIT_CREATED, help_heading = "Mapping")]
    created: Option<String>,
    /// The column written before every send; once; none
    #[arg(long, value_name = "COLUMN", env = names::INIT_ATTEMPTED, help_heading = "Mapping")]
    attempted: Option<String>,
    /// The column of the PSP's own id; none
    #[arg(long, value_name = "COLUMN", env = names::INIT_REFERENCE, help_heading = "Mapping")]
    reference: Option<String>,
    /// What the PSP is handed to know a row by: {id}, pay_{id}
    #[arg(long, value_name = "TEMPLATE", env = names::INIT_TAG, help_heading = "Mapping")]
    tag: Option<String>,
    /// What times without a zone mean: utc, a zone, epoch_s, epoch_ms
    #[arg(long, value_name = "WORD", env = names::INIT_TIME, help_heading = "Mapping")]
    time: Option<String>,
    /// The PSP account: a name of yours, and which PSP
    #[arg(
        long, value_name = "NAME=PSP", env = names::INIT_ACCOUNT, default_value = "stripe=stripe",
        help_heading = "PSP account"
    )]
    account: String,
    /// The variable that holds its key [default: the one that is set]
    #[arg(long, value_name = "NAME", env = names::INIT_KEY_ENV, help_heading = "PSP account")]
    key_env: Option<String>,
    /// Whether it holds live money [default: as its key says]
    #[arg(
        long, value_name = "BOOL", env = names::INIT_LIVE, value_parser = yes_or_no,
        help_heading = "PSP account"
    )]
    live: Option<bool>,
    /// Where your application puts the tag: metadata[order_id]
    #[arg(long, value_name = "PLACE", env = names::INIT_TAG_AT, help_heading = "PSP account")]
    tag_at: Option<String>,
    /// The zone that finance closes its days in
    #[arg(long, value_name = "ZONE", env = names::INIT_TIMEZONE, help_heading = "File")]
    timezone: Option<String>,
    /// Where the file goes [default: that of --config, or tieout.toml]
    #[arg(
        long, value_name = "FILE", env = names::INIT_OUTPUT, value_parser = path(),
        help_heading = "File"
    )]
    output: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long, env = names::INIT_FORCE, value_parser = yes_or_no, help_heading = "File")]
    force: bool,
    /// Ask nothing; take what is proposed
    #[arg(long, env = names::YES, value_parser = yes_or_no, help_heading = "File")]
    yes: bool,
}

impl Args {
    fn output(&self) -> &Path {
        self.output.as_deref().unwrap_or(Path::new(FILE_NAME))
    }
}

/// Runs the command.
pub fn run(args: &Args, common: &Common) -> Result<Exit, Failure> {
    let output = args.output.as_deref().or(common.config()).map(Path::to_path_buf);
    let args = &Args { output, ..args.clone() };
    free(args.output(), args.force)?;
    let asks = !args.yes && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let (address, settings) = database(args)?;
    let address = seen_from(address, args.output());
    let mut answers = answers(args)?;
    let made = runtime::block_on(Box::pin(async {
        let db = Database::look(&settings).await.map_err(|error| unopened(args, &error))?;
        let made = make(args, &db, asks, &mut answers).await;
        db.close().await;
        made
    }))??;
    let text = file(&made.proposal, &answers, &address, search_path(args));
    write(args.output(), &text)?;
    if common.json {
        out::stdout(&line("mapping_proposal", body(args, &made, &answers)));
    } else if !common.quiet {
        tell(args, &made.proposal, &answers);
    }
    Ok(Exit::Ok)
}

/// Refuses a place where something stands: without `--force` anything, and with it what is no file.
/// A link stands there even where what it leads to does not.
fn free(output: &Path, force: bool) -> Result<(), Failure> {
    let Ok(there) = output.symlink_metadata() else { return Ok(()) };
    let (what, hint) = match output.metadata() {
        Ok(there) if !there.is_file() => ("is no file".to_owned(), "name a file: --output FILE"),
        Ok(_file) if force => return Ok(()),
        Ok(_file) => {
            ("is there already".to_owned(), "--force to write over it, or --output another")
        }
        Err(error) if there.is_symlink() => {
            let to = output.read_link().unwrap_or_default();
            let why = match error.kind() {
                ErrorKind::NotFound => "is not there".to_owned(),
                _other => format!("cannot be reached ({error})"),
            };
            let hint = "make what it leads to, or take the link away; or --output another";
            (format!("is a link to {}, which {why}", to.display()), hint)
        }
        // Whoever writes it is told why.
        Err(_unknown) => return Ok(()),
    };
    let text = format!("{} {what}; nothing was written", output.display());
    Err(Failure::new(Exit::Usage, text, hint))
}

/// What was proposed, and of which tables.
struct Made {
    proposal: Proposal,
    /// Tables that look like payments, the likeliest first.
    candidates: Vec<String>,
}

/// Where the database is, as it is written and as it is opened.
fn database(args: &Args) -> Result<(Address, DatabaseSettings), Failure> {
    let named = args.url_env.clone().filter(|name| !name.is_empty());
    let given = args.url.clone().filter(|url| !url.is_empty());
    let (address, url) = match (given, named) {
        (Some(url), _) if holds_password(&url) => (Address::Env(DATABASE_URL.to_owned()), url),
        (Some(url), _) => (Address::Url(url.clone()), url),
        (None, named) => {
            let name = named.unwrap_or_else(|| DATABASE_URL.to_owned());
            let Some(url) = config::variable(&name) else {
                let text = format!("no database was named, and {name} is not set");
                let hint = "tieout config init --url postgres://… (or sqlite:FILE)";
                return Err(Failure::new(Exit::Usage, text, hint));
            };
            let url = beside_the_file(url, args.output());
            (Address::Env(name), url)
        }
    };
    let mut settings = DatabaseSettings::of_url(&url);
    settings.search_path = search_path(args).map(str::to_owned);
    if let Some(path) = settings.search_path.as_ref().filter(|_| url.starts_with("sqlite:")) {
        let text = format!(
            "--search-path {path}: an SQLite file has no schemas, and so no search path; nothing \
             was written"
        );
        return Err(Failure::new(Exit::Usage, text, "leave --search-path out"));
    }
    Ok((address, settings))
}

/// What a variable names, as a run with the file will read it: a relative SQLite path goes from the
/// file's folder, and init must not look at another database than the run.
fn beside_the_file(url: String, output: &Path) -> String {
    let place = url.strip_prefix("sqlite:").map(|it| it.strip_prefix("//").unwrap_or(it));
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    match (place, folder) {
        (Some(place), Some(folder)) if !place.is_empty() && !place.starts_with(['/', ':']) => {
            format!("sqlite:{}", folder.join(place).display())
        }
        _as_it_stands => url,
    }
}

/// The address as the file needs it: a path in it goes from the file's folder, and what was named
/// goes from this one.
fn seen_from(address: Address, output: &Path) -> Address {
    let Address::Url(url) = &address else { return address };
    let Some(place) = url.strip_prefix("sqlite:") else { return address };
    let place = place.strip_prefix("//").unwrap_or(place);
    let folder = output.parent().unwrap_or(Path::new("."));
    let is_here = [Path::new(""), Path::new(".")].contains(&folder);
    if is_here || place.starts_with(['/', ':']) || place.is_empty() {
        return address;
    }
    match std::path::absolute(place) {
        Ok(whole) => Address::Url(format!("sqlite:{}", whole.display())),
        Err(_no_folder) => address,
    }
}

fn answers(args: &Args) -> Result<Answers, Failure> {
    let word = |word: &Option<String>| word.clone().filter(|text| !text.is_empty());
    let (account, psp) = args.account.split_once('=').unwrap_or((&args.account, "stripe"));
    if psp == "files" && !account.is_empty() {
        let text = format!(
            "--account {}: expected NAME=stripe; an account whose files alone are read is written \
             in tieout.toml, as [[account]] with name = \"{account}\" and psp = \"files\"",
            args.account
        );
        let hint = "docs/configuration.md, [[account]], and docs/settlement-files.md";
        return Err(Failure::new(Exit::Usage, text, hint.to_owned()));
    }
    if psp != "stripe" || account.is_empty() {
        let text = format!("--account {}: expected NAME=stripe", args.account);
        return Err(Failure::usage(text));
    }
    if let Some(zone) = word(&args.timezone)
        && zone.parse::<Tz>().is_err()
    {
        let text = format!("--timezone {zone}: expected a name such as Europe/Berlin");
        return Err(Failure::usage(text));
    }
    let set = KEYS.iter().find(|name| config::variable(name).is_some());
    let key_env = word(&args.key_env).unwrap_or_else(|| (*set.unwrap_or(&KEYS[0])).to_owned());
    let key = config::variable(&key_env).unwrap_or_default();
    let is_test = key.starts_with("sk_test_") || key.starts_with("rk_test_");
    Ok(Answers {
        names_table: word(&args.table).is_some(),
        key: args.key.clone(),
        status: word(&args.status),
        processing: args.processing.clone(),
        succeeded: word(&args.succeeded),
        failed: word(&args.failed),
        retryable: word(&args.retryable),
        amount: word(&args.amount),
        unit: word(&args.unit),
        currency: word(&args.currency),
        created: word(&args.created),
        attempted: word(&args.attempted),
        reference: word(&args.reference),
        tag: word(&args.tag),
        tag_at: word(&args.tag_at),
        account: account.to_owned(),
        key_env,
        live: args.live.unwrap_or(!is_test),
        time: word(&args.time),
        timezone: word(&args.timezone),
    })
}

async fn make(
    args: &Args,
    db: &Database,
    asks: bool,
    answers: &mut Answers,
) -> Result<Made, Failure> {
    let failed = |error: StoreError| unread(args, &error);
    let survey = db.survey().await.map_err(failed)?;
    let candidates: Vec<String> =
        likely(args, &survey).iter().map(|one| one.name.clone()).collect();
    let of = table(args, asks, &survey)?;
    answers.names_table |= candidates.first() != Some(&of.name);
    missing_names(answers, of)?;
    let mut seen = seen(db, of, &survey, answers).await.map_err(failed)?;
    let mut proposal = choose::propose(of, &survey, answers, &seen);
    if asks {
        if let Some(status) = ask_status(args, of, &proposal) {
            answers.status = Some(status);
            seen = self::seen(db, of, &survey, answers).await.map_err(failed)?;
            proposal = choose::propose(of, &survey, answers, &seen);
        }
        tell_values(db, of, &proposal, &seen).await;
        ask(args, of, &proposal, answers);
        proposal = choose::propose(of, &survey, answers, &seen);
    }
    Ok(Made { proposal, candidates })
}

/// What could not be read. SQLite says of a file only when it reads it that it is none of its own.
fn unread(args: &Args, error: &StoreError) -> Failure {
    let failure = Failure::store(error);
    match error {
        StoreError::Query { code: Some(code), .. } if code == NO_DATABASE => {
            let named = args.url.as_deref().map_or("the file".to_owned(), shown_address);
            let text = format!("{named} is no SQLite database; nothing was written");
            let hint = "name the file that your application keeps its tables in";
            Failure::new(failure.exit, text, hint)
        }
        _other => failure,
    }
}

/// `--search-path`, where it was given.
fn search_path(args: &Args) -> Option<&str> {
    args.search_path.as_deref().filter(|path| !path.trim().is_empty())
}

/// A database that could not be opened. What is wrong was named by a flag or a variable: no file is
/// there yet.
fn unopened(args: &Args, error: &StoreError) -> Failure {
    match (error, search_path(args)) {
        (StoreError::NoSchema { name, known }, Some(path)) => {
            let text =
                format!("--search-path {path}: there is no schema `{name}`; nothing was written");
            let hint = match nearest(name, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("the database's schemas: {}", known.join(", ")),
            };
            Failure::new(Exit::Usage, text, hint)
        }
        (StoreError::Setting { field, problem }, Some(_)) if field == "search_path" => {
            let text = format!("--search-path {problem}; nothing was written");
            Failure::new(Exit::Usage, text, "correct it, as in --search-path 'shop, public'")
        }
        (StoreError::Setting { .. }, _) => {
            let hint = "correct --url, or what the variable of --url-env holds";
            Failure { hint: Some(hint.to_owned()), ..Failure::store(error) }
        }
        _other => Failure::store(error),
    }
}

/// Tables that look like payments, the likeliest first: of the schemas that were named, where some
/// were.
fn likely<'s>(args: &Args, survey: &'s [Surveyed]) -> Vec<&'s Surveyed> {
    let looked_at = in_named_schemas(args, survey).into_iter();
    looked_at.filter(|one| one.closed.is_none()).collect()
}

/// The same, with those of schemas that this login may not look into.
fn in_named_schemas<'s>(args: &Args, survey: &'s [Surveyed]) -> Vec<&'s Surveyed> {
    let path = search_path(args);
    let is_named = |one: &&Surveyed| match (path, schema_of(&one.name)) {
        (None, _) | (_, None) => true,
        (Some(path), Some(schema)) => {
            path.split(',').any(|named| named.trim().trim_matches('"') == schema)
        }
    };
    ranked(survey).into_iter().map(|(one, _)| one).filter(is_named).collect()
}

/// The schema that a relation's name begins with: where it has none, the search path leads to it.
fn schema_of(name: &str) -> Option<&str> {
    let (schema, _) = match name.strip_prefix('"') {
        Some(rest) => rest.split_once("\".")?,
        None => name.split_once('.')?,
    };
    Some(schema)
}

/// Refuses columns that were named by flag and that the table does not have.
fn missing_names(answers: &Answers, of: &Surveyed) -> Result<(), Failure> {
    let mut named: Vec<(&str, &str)> =
        answers.key.iter().map(|column| ("--key", column.as_str())).collect();
    for (flag, name, words) in [
        ("--status", &answers.status, &[][..]),
        ("--amount", &answers.amount, &[]),
        ("--created", &answers.created, &[]),
        ("--attempted", &answers.attempted, &["once", "none"]),
        ("--reference", &answers.reference, &["none"]),
    ] {
        named.extend(
            name.iter().map(|it| (flag, it.as_str())).filter(|(_, it)| !words.contains(it)),
        );
    }
    let is_code = |word: &&String| Currency::parse(word).is_ok();
    let currency = answers.currency.iter().filter(|word| !is_code(word));
    named.extend(currency.map(|word| ("--currency", word.as_str())));
    let tag = answers.tag.as_deref().and_then(|tag| Template::parse(tag).ok());
    named.extend(tag.iter().flat_map(|tag| tag.columns().map(|column| ("--tag", column))));
    let Some((flag, name)) = named.into_iter().find(|(_, it)| of.relation.column(it).is_none())
    else {
        return Ok(());
    };
    let code = if flag == "--currency" { ", and no code of a currency" } else { "" };
    let text = format!("{flag} {name}: it is no column of {}{code}; nothing was written", of.name);
    let names = of.relation.columns.iter().map(|column| column.name.as_str());
    let hint = match nearest(name, names.clone()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("its columns: {}", names.collect::<Vec<_>>().join(", ")),
    };
    Err(Failure::new(Exit::Usage, text, hint))
}

/// The named table, the chosen one, or the likeliest.
fn table<'s>(args: &Args, asks: bool, survey: &'s [Surveyed]) -> Result<&'s Surveyed, Failure> {
    if let Some(name) = args.table.as_ref().filter(|name| !name.is_empty()) {
        return find(name, survey);
    }
    let likely = likely(args, survey);
    let Some(best) = likely.first() else { return Err(no_payments(args, survey)) };
    if !asks {
        return Ok(best);
    }
    page::warn("Tables that look like payments, the likeliest first:");
    for one in likely.iter().take(TABLES_SHOWN) {
        page::warn(&format!("  {}", one.name));
    }
    loop {
        let name = prompt("table", &best.name, "");
        match find(&name, survey) {
            Ok(found) => return Ok(found),
            Err(failure) => page::warn(&failure.text),
        }
    }
}

/// The table of this name, with its schema or as the search path leads to it.
fn find<'s>(name: &str, survey: &'s [Surveyed]) -> Result<&'s Surveyed, Failure> {
    let plain = |name: &str| name.replace('"', "");
    let whole = |one: &Surveyed| plain(&one.relation.name.to_string());
    let is_it = |one: &&Surveyed| plain(&one.name) == plain(name);
    let mut with_schema = survey.iter().filter(|one| whole(one) == plain(name));
    let found = survey.iter().find(is_it).or_else(|| with_schema.next());
    if let Some(open) = found.filter(|one| one.closed.is_none()) {
        return Ok(open);
    }
    // The search path passes over a schema that is closed.
    let last = |one: &&Surveyed| whole(one).ends_with(&format!(".{}", plain(name)));
    let mut closed = survey.iter().filter(|one| one.closed.is_some());
    if let Some((one, grant)) =
        found.or_else(|| closed.find(last)).and_then(|one| Some((one, one.closed.as_ref()?)))
    {
        let text = format!(
            "`{}` stands in a schema that this login may not look into; nothing was written",
            one.name
        );
        return Err(Failure::new(Exit::Config, text, format!("`{grant}` by the schema's owner")));
    }
    let names: Vec<String> = survey.iter().flat_map(|one| [one.name.clone(), whole(one)]).collect();
    let hint = match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean {near}?"),
        None => "name it as schema.name, or let this role read it".to_owned(),
    };
    Err(Failure::new(Exit::Config, format!("there is no table `{name}` to read"), hint))
}

/// That no table looks like payments, and what may be done.
fn no_payments(args: &Args, survey: &[Surveyed]) -> Failure {
    let open: Vec<&str> =
        survey.iter().filter(|one| one.closed.is_none()).map(|one| one.name.as_str()).collect();
    let path = search_path(args);
    let within = path.map_or(String::new(), |path| format!(" in {path}"));
    let text = format!(
        "{} like payments{within} (a status and an amount); nothing was written",
        none_looks(open.len())
    );
    let closed = in_named_schemas(args, survey);
    let closed = closed.first().and_then(|one| Some((&one.name, one.closed.as_ref()?)));
    let hint = match closed {
        Some((name, grant)) => format!(
            "`{name}` does, in a schema that this login may not look into: `{grant}` by the \
             schema's owner"
        ),
        None => seen_tables(open),
    };
    Failure::new(Exit::Config, text, hint)
}

/// What may be named instead, of the tables and views that this login sees.
fn seen_tables(names: Vec<&str>) -> String {
    let more = if names.len() > TABLES_NAMED { ", …" } else { "" };
    let shown: Vec<&str> = names.into_iter().take(TABLES_NAMED).collect();
    match shown.is_empty() {
        true => "let this login read the table, then name it with --table".to_owned(),
        false => format!("name it with --table; seen: {}{more}", shown.join(", ")),
    }
}

/// That no relation of so many looks like what is looked for.
fn none_looks(relations: usize) -> String {
    match relations {
        0 => "this login sees no table or view that looks".to_owned(),
        1 => "the one table or view that this login sees does not look".to_owned(),
        several => format!("none of the {several} tables and views looks"),
    }
}

/// What the database says of the table.
async fn seen(
    db: &Database,
    of: &Surveyed,
    survey: &[Surveyed],
    answers: &Answers,
) -> Result<Seen, StoreError> {
    let text_times = matches!(db, Database::Sqlite(_));
    let mut seen = Seen { text_times, ..Seen::default() };
    for column in wants_values(of, answers) {
        let read = db.distinct(of, &column).await;
        match read {
            Ok(values) => {
                seen.values.insert(column, values);
            }
            // Without the status nothing is proposed; of another column it is said.
            Err(error) if words::is_the_status(of, answers.status.as_deref(), &column) => {
                return Err(error);
            }
            Err(_unread) => seen.unread.push(column),
        }
    }
    if let Some((table, status)) = written_below(of, survey, answers) {
        // Of what this login may not read there nothing is proposed.
        seen.written = db.distinct(table, &status.name).await.unwrap_or_default();
    }
    for column in wants_examples(of) {
        let examples = db.examples(of, &column).await?;
        seen.examples.insert(column, examples);
    }
    for asked in choose::questions(of, survey, answers, &seen) {
        // What could not be counted is filtered by without a count.
        let tallies = db.beside(of, &asked).await.unwrap_or_default();
        seen.tallies.insert(asked.column, tallies);
    }
    let parents: BTreeSet<&String> = of.parents.iter().map(|(_, parent)| parent).collect();
    let is = |one: &Surveyed, name: &str| one.name.rsplit('.').next() == Some(name);
    for one in survey.iter().filter(|one| parents.iter().any(|name| is(one, name))) {
        if words::has_currency(one) {
            seen.currency_at.push(one.name.clone());
        }
    }
    let short = of.name.rsplit('.').next().unwrap_or(&of.name);
    let points = |one: &&Surveyed| one.parents.iter().any(|(_, parent)| parent == short);
    let histories = survey.iter().filter(points).filter(|one| words::is_history(one));
    seen.histories = histories.map(|one| one.name.clone()).collect();
    Ok(seen)
}

/// One question on the terminal; Enter takes what is proposed.
fn prompt(what: &str, proposed: &str, why: &str) -> String {
    if !why.is_empty() {
        for line in wrapped(why, 76) {
            page::warn(&format!("  {line}"));
        }
    }
    page::warn(&format!("{what} [{proposed}]:"));
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    let typed = line.trim();
    match (read, typed) {
        (Err(_) | Ok(0), _) | (_, "") => proposed.to_owned(),
        (Ok(_), typed) => typed.to_owned(),
    }
}

/// One question that the database does not answer; Enter leaves it open rather than guess.
fn ask_open(what: &str, such_as: &str, why: &str) -> Option<String> {
    let typed = prompt(&format!("{what}, such as {such_as}"), OPEN, why);
    (typed != OPEN).then_some(typed)
}

/// A choice's value as a person types it.
fn plain(value: &str) -> String {
    let inner = value.trim_matches(['[', ']']);
    inner.split(',').map(|part| part.trim().trim_matches('"')).collect::<Vec<_>>().join(",")
}

fn ask_status(args: &Args, of: &Surveyed, proposal: &Proposal) -> Option<String> {
    let choice = proposal.choice("status").filter(|_| args.status.is_none())?;
    let proposed = plain(&choice.value);
    loop {
        let typed = prompt("status column", &proposed, &choice.why);
        if typed == proposed {
            return None;
        }
        match wrong("status", &typed, of, proposal) {
            Some(wrong) => page::warn(&wrong),
            None => return Some(typed),
        }
    }
}

/// The values of the status, before anybody is asked what they mean.
async fn tell_values(db: &Database, of: &Surveyed, proposal: &Proposal, seen: &Seen) {
    let status = proposal.choice("status").filter(|choice| !choice.is_open());
    let Some(column) = status.map(|choice| plain(&choice.value)) else { return };
    // What could not be counted is shown without.
    let counts = db.tallied(of, &column).await.unwrap_or_default();
    let count =
        |(value, rows): &(String, i64)| format!("{value} {}", grouped_text(i128::from(*rows), 0));
    let is_counted = |value: &String| counts.iter().any(|(known, _)| known == value);
    let others = seen.values.get(&column).into_iter().flatten();
    let others = others.filter(|value| !value.is_empty() && !is_counted(value)).cloned();
    let mut shown: Vec<String> = counts.iter().map(count).chain(others).collect();
    if shown.len() > VALUES_SHOWN {
        shown.truncate(VALUES_SHOWN);
        shown.push("…".to_owned());
    }
    if shown.is_empty() {
        return;
    }
    page::warn(&format!("values of {column}, with their rows as far as looked:"));
    for line in wrapped(&shown.join(" · "), 76) {
        page::warn(&format!("  {line}"));
    }
}

/// What to say of an answer that cannot be meant, or hardly.
fn wrong(setting: &str, typed: &str, of: &Surveyed, proposal: &Proposal) -> Option<String> {
    if setting == "tag" {
        let text = format!("`{typed}` names no column: a template such as pay_{{id}}");
        return match is_a_tag(typed) {
            false => Some(text),
            true => missing_column(typed, of),
        };
    }
    if is_target(setting) {
        let known = &proposal.statuses;
        let first: Vec<&str> = known.iter().take(VALUES_SHOWN).map(String::as_str).collect();
        let text = format!(
            "`{typed}` was not seen in the status, which has {}; type it again where it is meant",
            first.join(", ")
        );
        return is_stray(setting, typed, known).then_some(text);
    }
    let is_word = match setting {
        "status" | "created" | "amount" => false,
        "attempted" => matches!(typed, "once" | "none"),
        "psp_reference" => typed == "none",
        _value => true,
    };
    if is_word || of.relation.column(typed).is_some() {
        return None;
    }
    let names = of.relation.columns.iter().map(|column| column.name.as_str());
    let near = match nearest(typed, names) {
        Some(near) => format!("; did you mean {near}?"),
        None => String::new(),
    };
    Some(format!("`{typed}` is no column of {}{near}", of.name))
}

fn ask(args: &Args, of: &Surveyed, proposal: &Proposal, answers: &mut Answers) {
    let one = |what: &str, setting: &str, given: bool| -> Option<String> {
        if given {
            return None;
        }
        let choice = proposal.choice(setting);
        let (proposed, why) = match choice {
            Some(choice) => (plain(&choice.value), choice.why.clone()),
            None => ("none".to_owned(), why_none(setting, proposal)),
        };
        let typed = prompt(what, &proposed, &why);
        (typed != proposed).then_some(typed)
    };
    let split = |text: String| text.split(',').map(|part| part.trim().to_owned()).collect();
    if let Some(typed) = one("values of stuck rows", "from", !args.processing.is_empty()) {
        answers.processing = split(typed);
    }
    for (what, setting, given, answer) in [
        ("value of succeeded", "succeeded", args.succeeded.is_some(), &mut answers.succeeded),
        ("value of failed", "failed", args.failed.is_some(), &mut answers.failed),
        ("value of charge again", "retryable", args.retryable.is_some(), &mut answers.retryable),
        ("creation column", "created", args.created.is_some(), &mut answers.created),
        ("last-attempt column", "attempted", args.attempted.is_some(), &mut answers.attempted),
        ("PSP id column", "psp_reference", args.reference.is_some(), &mut answers.reference),
        ("tag template", "tag", args.tag.is_some(), &mut answers.tag),
    ] {
        let mut typed = one(what, setting, given);
        while let Some(wrong) =
            typed.as_deref().and_then(|typed| wrong(setting, typed, of, proposal))
        {
            page::warn(&wrong);
            let again = one(what, setting, given);
            // A word that no row has yet may be meant: who types it twice means it.
            let is_meant = is_target(setting) && again == typed;
            typed = again;
            if is_meant {
                break;
            }
        }
        if let Some(typed) = typed {
            *answer = Some(typed);
        }
    }
    ask_amount(args, of, proposal, answers);
    let open = proposal.choice("currency").is_some_and(Choice::is_open);
    if open && args.currency.is_none() {
        let why = proposal.choice("currency").map_or("", |choice| choice.why.as_str());
        answers.currency = ask_open("currency code or column", "EUR", why);
    }
    if args.tag_at.is_none() {
        let why = "where your application puts that tag at the PSP";
        answers.tag_at = ask_open("tag's place", "metadata[order_id]", why);
        while let Some(wrong) = answers.tag_at.as_deref().filter(|it| !is_a_place(it)) {
            page::warn(&format!("`{wrong}` is no place: metadata[KEY], as in metadata[order_id]"));
            answers.tag_at = ask_open("tag's place", "metadata[order_id]", "");
        }
    }
    if args.timezone.is_none() {
        let why = "the zone that finance closes its days in";
        answers.timezone = ask_open("business time zone", "Europe/Berlin", why);
        while let Some(wrong) = answers.timezone.as_deref().filter(|it| it.parse::<Tz>().is_err()) {
            page::warn(&format!("`{wrong}` is no time zone: a name such as Europe/Berlin"));
            answers.timezone = ask_open("business time zone", "Europe/Berlin", "");
        }
    }
}

/// The amount's column and its unit, as far as they are open.
fn ask_amount(args: &Args, of: &Surveyed, proposal: &Proposal, answers: &mut Answers) {
    let Some(choice) = proposal.choice("amount").filter(|choice| choice.is_open()) else { return };
    let is_named = !choice.value.contains(&format!("column = \"{OPEN}\""));
    if !is_named && args.amount.is_none() {
        answers.amount = ask_open("amount column", "amount", &choice.why);
        while let Some(wrong) =
            answers.amount.as_deref().and_then(|typed| wrong("amount", typed, of, proposal))
        {
            page::warn(&wrong);
            answers.amount = ask_open("amount column", "amount", "");
        }
    }
    if args.unit.is_some() || (!is_named && answers.amount.is_none()) {
        return;
    }
    let why = match is_named {
        true => choice.why.as_str(),
        false => "minor are cents, major whole units; left open, its name and type may tell",
    };
    answers.unit = ask_open("its unit", "minor or major", why);
    while let Some(typed) = answers.unit.as_deref().filter(|it| !["minor", "major"].contains(it)) {
        page::warn(&format!("`{typed}` is no unit: minor (cents) or major (whole units)"));
        answers.unit = ask_open("its unit", "minor or major", "");
    }
}

/// Why nothing is proposed for a setting, with what could be meant.
fn why_none(setting: &str, proposal: &Proposal) -> String {
    let of = |text: &String| text.strip_prefix(&format!("{setting}: ")).map(str::to_owned);
    let told = proposal.untold.iter().find_map(of);
    told.unwrap_or_else(|| "no value was found that says it".to_owned())
}

/// Whether rows have different tags by this template. What stands at the PSP is asked for next.
fn is_a_tag(text: &str) -> bool {
    Template::parse(text).is_ok_and(|template| template.columns().next().is_some())
}

/// What to say of a tag that names a column which is not there.
fn missing_column(tag: &str, of: &Surveyed) -> Option<String> {
    let template = Template::parse(tag).ok()?;
    let missing = template.columns().find(|column| of.relation.column(column).is_none())?;
    Some(format!("`{missing}` is no column of {}", of.name))
}

/// Whether a tag can stand there at the PSP.
fn is_a_place(text: &str) -> bool {
    let key = text.strip_prefix("metadata[").and_then(|rest| rest.strip_suffix(']'));
    key.is_some_and(|key| !key.is_empty() && !key.contains(['[', ']']))
}

/// Whether a setting names a value that is written.
fn is_target(setting: &str) -> bool {
    matches!(setting, "succeeded" | "failed" | "retryable")
}

/// Writes the file whole or not at all; through a link, which stays one.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let whole = path.canonicalize().unwrap_or_else(|_new| path.to_path_buf());
    let mut partial = whole.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, &whole));
    written.map_err(|error| {
        let text = format!("{} could not be written: {error}", path.display());
        let hint = match is_full(&error) {
            true => "make room there, or name another place: --output FILE",
            false => "name a place that this user may write: --output FILE",
        };
        Failure::new(Exit::of_file(&error, Exit::Config), text, hint)
    })
}

/// What could not be told, of the table and of what stands around it.
fn untold(args: &Args, made: &Proposal, answers: &Answers) -> Vec<String> {
    let mut untold = made.untold.clone();
    if answers.tag_at.is_none() {
        untold.push("tag of [[account]]: where your application puts the tag at the PSP".into());
    }
    if answers.timezone.is_none() {
        untold.push("business_timezone: the zone that finance closes its days in".into());
    }
    untold.extend(untold_key(args, answers));
    if args.url.as_deref().is_some_and(holds_password) {
        let url = args.url.as_deref().map(shown_address).unwrap_or_default();
        untold.push(format!(
            "[database]: the address of {url} holds a password, which does not stand in the file; \
             put it into {DATABASE_URL}"
        ));
    }
    untold
}

/// What is guessed of the account where its key is not at hand.
fn untold_key(args: &Args, answers: &Answers) -> Option<String> {
    if config::variable(&answers.key_env).is_some() {
        return None;
    }
    let live = match args.live {
        Some(_) => String::new(),
        None => format!("livemode = {}", answers.live),
    };
    let is_named = args.key_env.as_deref().is_some_and(|name| !name.is_empty());
    match (is_named, live.is_empty()) {
        (true, true) => None,
        (true, false) => Some(format!("{live} is a guess: {} is not set here", answers.key_env)),
        (false, is_said) => {
            let live = if is_said { live } else { format!(" and {live}") };
            Some(format!(
                "key_env = \"{}\"{live} of [[account]]: a guess, as none of {} is set here",
                answers.key_env,
                KEYS.join(", ")
            ))
        }
    }
}

/// The relation that is read.
fn read_of(made: &Proposal) -> String {
    made.choice("read").map_or(String::new(), |choice| plain(&choice.value))
}

/// The event: the file's lines, each with its reason, and what could not be told.
fn body(args: &Args, made: &Made, answers: &Answers) -> Value {
    let proposal = &made.proposal;
    let one = |section: &str, setting: &str, choice: &Choice| {
        json!({
            "section": section,
            "setting": setting,
            "value": choice.value,
            "why": choice.why,
            "open": choice.is_open(),
        })
    };
    let lines = proposal.lines.iter().map(|(setting, choice)| one("table", setting, choice));
    let map = proposal.map.iter().map(|(setting, choice)| one("table.map", setting, choice));
    let set = proposal.set.iter().map(|(part, column, template)| {
        let value = Value::from(template.as_str()).to_string();
        let why = "written with the status, in the same statement".to_owned();
        one("table.set", &format!("{part}.{column}"), &Choice { value, why })
    });
    json!({
        "file": args.output().display().to_string(),
        "table": read_of(proposal),
        "name": proposal.name,
        "candidates": made.candidates,
        "settings": lines.chain(map).chain(set).collect::<Vec<Value>>(),
        "could_not_tell": untold(args, proposal, answers),
    })
}

fn tell(args: &Args, made: &Proposal, answers: &Answers) {
    page::say(&format!(
        "wrote {} · {} as {} · mode succeed_only",
        args.output().display(),
        read_of(made),
        made.name
    ));
    let untold = untold(args, made, answers);
    if !untold.is_empty() {
        out::stdout("could not be told, or should be looked at:");
    }
    for text in &untold {
        for (at, line) in wrapped(text, 76).iter().enumerate() {
            out::stdout(&format!("{} {line}", if at == 0 { "  -" } else { "   " }));
        }
    }
    out::stdout("next:");
    for line in ["config check --connect", "db migrate", "doctor", "run --dry-run"] {
        let command = format!("  tieout {line}");
        // The default's name is found without being named.
        let is_default = args.output().strip_prefix(".").unwrap_or(args.output()) == FILE_NAME;
        match is_default {
            true => out::stdout(&command),
            false => out::stdout(&naming(&command, args.output())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_relation_is_not_spoken_of_as_of_many() {
        for (relations, begins) in
            [(0, "this login sees no"), (1, "the one table"), (2, "none of the 2 tables")]
        {
            assert!(none_looks(relations).starts_with(begins), "{}", none_looks(relations));
        }
    }
}
