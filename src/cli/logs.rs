//! Logs, for whoever looks into a run afterwards: on stderr or in a file, never on stdout.
//!
//! Quiet by default, so that a good run from cron prints nothing. A message reads by itself; its
//! facts are fields. Rooms never put a secret, a body or a customer's data into one.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::IsTerminal;
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

use crate::cli::args::{Common, LogFormat};
use crate::cli::failure::Failure;
use crate::config::{names, variable};
use crate::exit::Exit;

/// Begins to log. Called once.
pub fn start(common: &Common) -> Result<(), Failure> {
    let Some(filter) = filter(common) else { return Ok(()) };
    let (writer, may_colour) = match common.log_file() {
        Some(path) => {
            let file = File::options().create(true).append(true).open(path).map_err(|error| {
                Failure::new(
                    Exit::Config,
                    format!(
                        "the log file {} cannot be opened: {error}; nothing was done",
                        path.display()
                    ),
                    "name a file that may be written with --log-file, or leave it out",
                )
            })?;
            (BoxMakeWriter::new(Arc::new(file)), false)
        }
        None => (BoxMakeWriter::new(std::io::stderr), std::io::stderr().is_terminal()),
    };
    let colours = may_colour && !common.no_color && variable(names::NO_COLOR).is_none();
    let layer = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(colours);
    let layer: Box<dyn Layer<Registry> + Send + Sync> = match common.log_format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
        LogFormat::Logfmt => layer.with_ansi(false).event_format(Logfmt).boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(filter));
    // A second start in one process (a test) keeps the first.
    let _second = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}

/// A log that is kept has at least what was planned and asked.
const KEPT: u8 = 2;

/// Whoever reads the database's address and `.pgpass` warns of what it does not understand there,
/// and quotes it: a secret, as often as not. Nothing that is asked for turns this on.
const ADDRESSES: &str = "sqlx_postgres::options";

fn filter(common: &Common) -> Option<Targets> {
    let asked = common.log_file().map_or(common.verbose, |_file| common.verbose.max(KEPT));
    // What the libraries say is worth reading only when everything is.
    let (own, others) = match asked {
        0 => return None,
        1 => (LevelFilter::WARN, LevelFilter::WARN),
        KEPT => (LevelFilter::INFO, LevelFilter::WARN),
        _more => (LevelFilter::DEBUG, LevelFilter::DEBUG),
    };
    let targets = Targets::new().with_target("tieout", own).with_default(others);
    Some(targets.with_target(ADDRESSES, LevelFilter::OFF))
}

/// `ts=… level=info msg="…" key=value`.
struct Logfmt;

impl<S, N> FormatEvent<S, N> for Logfmt
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let at = crate::model::time::to_text(crate::clock::now());
        let level = event.metadata().level().as_str().to_ascii_lowercase();
        write!(writer, "ts={at} level={level} target={}", event.metadata().target())?;
        let mut line = Line(String::new());
        event.record(&mut line);
        writer.write_str(&line.0)?;
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            if let Some(fields) = extensions.get::<FormattedFields<N>>()
                && !fields.is_empty()
            {
                write!(writer, " {fields}")?;
            }
        }
        writeln!(writer)
    }
}

struct Line(String);

impl Line {
    fn put(&mut self, field: &Field, value: &str) {
        let name = if field.name() == "message" { "msg" } else { field.name() };
        let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '=' | '\\');
        // Writing to a String never fails.
        let _ = if !value.is_empty() && value.chars().all(plain) {
            write!(self.0, " {name}={value}")
        } else {
            write!(self.0, " {name}={}", serde_json::Value::from(value))
        };
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, &format!("{value:?}"));
    }
}
