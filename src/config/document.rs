//! A TOML text with the place of every value: read section by section into the rooms' own
//! settings, so that several mistakes are told at once, each at its line.
//!
//! It knows nothing of what settings mean. It never stops at the first mistake.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

use crate::config::problem::{FilePlace, Place, Problem, SECRET_NAMES, may_be_secret, nearest_key};
use crate::config::reading::may_name_a_variable;
use crate::model::near::nearest;

/// The most mistakes told of one section.
const PROBLEMS_MAX: usize = 20;

/// What texts of several lines begin and end with.
const LONG_QUOTES: [&str; 2] = ["\"\"\"", "'''"];

/// A parsed text.
#[derive(Debug)]
pub struct Document<'a> {
    path: PathBuf,
    text: &'a str,
    root: DeTable<'a>,
    /// Where each value stands, by its path: `policy.max_age`, `table.0.map.1.from`.
    places: BTreeMap<String, Range<usize>>,
    problems: Vec<Problem>,
}

/// One table of the text, on its way into a type.
#[derive(Debug)]
pub struct Section<'a> {
    /// As messages name it: `[policy]`, `[[account]] stripe_live`.
    pub label: String,
    /// Its path in the document: `policy`, `account.0`.
    pub path: String,
    table: Spanned<DeTable<'a>>,
}

impl<'a> Section<'a> {
    /// Takes a key out, so that the rest can be read into another type.
    pub fn take(&mut self, key: &str) -> Option<Section<'a>> {
        let value = remove(self.table.as_mut(), key)?;
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Some(Section {
                label: format!("{key} of {}", self.label),
                path: format!("{}.{key}", self.path),
                table: Spanned::new(span, table),
            }),
            other => {
                // Not a table: put back, so that reading the rest names the mistake.
                let key = Spanned::new(span.clone(), key.to_owned().into());
                self.table.as_mut().insert(key, Spanned::new(span, other));
                None
            }
        }
    }

    /// The text of a key, where it is a text.
    pub fn text_of(&self, key: &str) -> Option<&str> {
        self.table.get_ref().get(key).and_then(|value| value.get_ref().as_str())
    }
}

impl<'a> Document<'a> {
    /// Parses a text; where it is not TOML, the first place is the problem (later ones would only
    /// follow from it).
    pub fn parse(path: &Path, text: &'a str) -> Self {
        let parsed = DeTable::parse(text).map(Spanned::into_inner);
        let (root, error) = match parsed {
            Ok(root) => (root, None),
            Err(error) => (DeTable::new(), Some(error)),
        };
        let mut places = BTreeMap::new();
        index(&root, "", &mut places);
        let mut document = Self { path: path.to_owned(), text, root, places, problems: Vec::new() };
        if let Some(error) = error {
            let span = error.span().unwrap_or(0..0);
            let place = Place::File(FilePlace::of(path, &without_values(text), &span));
            let text = format!("not TOML: {}", error.message());
            document.problems.push(Problem { place, text });
        }
        document
    }

    /// Whether the text is TOML at all, so far.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    /// Every leaf with its path and its text, in the order of paths.
    pub fn leaves(&self) -> Vec<(String, String)> {
        let mut leaves = Vec::new();
        collect_leaves(&self.root, "", &mut leaves);
        leaves
    }

    /// A problem at the value of `path`, or at the nearest thing around it.
    pub fn complain(&mut self, path: &str, text: String) {
        let span = self.span_of(path);
        self.complain_at(&span, text);
    }

    /// Something is missing that could stand anywhere.
    pub fn lacks(&mut self, text: String) {
        let place = Place::Whole(self.path.display().to_string());
        self.problems.push(Problem { place, text });
    }

    fn complain_at(&mut self, span: &Range<usize>, text: String) {
        self.complain_in(self.text, span, text);
    }

    /// The same, where lines are shown as they stand in `shown`: each at its place.
    fn complain_in(&mut self, shown: &str, span: &Range<usize>, text: String) {
        let place = Place::File(FilePlace::of(&self.path, shown, span));
        let problem = Problem { place, text };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn span_of(&self, path: &str) -> Range<usize> {
        let mut path = path;
        loop {
            if let Some(span) = self.places.get(path) {
                return span.clone();
            }
            match path.rsplit_once('.') {
                Some((parent, _)) => path = parent,
                None => return 0..0,
            }
        }
    }

    /// Complains of every value that is left open, with the comment above it: only a person can
    /// answer it. Whether there is one.
    pub fn complain_of_open(&mut self, open: &str) -> bool {
        let mut found = Vec::new();
        collect_texts(&self.root, "", &|_path, text| text == open, &mut found);
        for (path, span) in &found {
            let steps: Vec<&str> = path.split('.').collect();
            let name = steps.iter().rfind(|step| step.parse::<usize>().is_err()).unwrap_or(&"");
            let (setting, of) = match steps.as_slice() {
                ["account" | "table", number, rest @ ..] => {
                    let kind = steps.first().unwrap_or(&"");
                    let own = self.name_of(kind, number);
                    // Within a mapping's values it is the outcome that is open.
                    let setting = rest.first().filter(|step| **step != "map").unwrap_or(name);
                    (setting, format!(" of [[{kind}]] {own}"))
                }
                _plain => (name, String::new()),
            };
            let why = self.comment_above(span);
            let text = format!("`{setting}`{of} is still open: {why}");
            self.complain_at(&span.clone(), text);
        }
        !found.is_empty()
    }

    /// Complains of every text that is odd, by its path and itself, and says why. Whether there is
    /// one. None of them is shown: each may be a secret.
    pub fn complain_of(&mut self, odd: &[(&Sought<'_>, &str)]) -> bool {
        let mut found: Vec<(Range<usize>, &str)> = Vec::new();
        for &(is_odd, why) in odd {
            let mut places = Vec::new();
            collect_texts(&self.root, "", is_odd, &mut places);
            found.extend(places.into_iter().map(|(_path, span)| (span, why)));
        }
        let spans: Vec<Range<usize>> = found.iter().map(|(span, _why)| span.clone()).collect();
        let text = starred(self.text, &spans);
        for (span, why) in &found {
            let place = Place::File(FilePlace::of(&self.path, &text, span));
            self.problems.push(Problem { place, text: (*why).to_owned() });
        }
        !found.is_empty()
    }

    fn name_of(&self, kind: &str, number: &str) -> String {
        let entries = self.root.get(kind).and_then(|value| value.get_ref().as_array());
        let at = number.parse::<usize>().ok();
        let entry = entries.zip(at).and_then(|(entries, at)| entries.get(at));
        let name = entry.and_then(|entry| entry.get_ref().get("name")?.get_ref().as_str());
        name.unwrap_or(number).to_owned()
    }

    /// The comment that stands right above a place, as one sentence.
    fn comment_above(&self, span: &Range<usize>) -> String {
        let before = self.text.get(..span.start).unwrap_or("");
        let mut lines: Vec<&str> = before.lines().collect();
        if !before.ends_with('\n') {
            lines.pop();
        }
        let above = lines.iter().rev().map_while(|line| line.trim().strip_prefix('#'));
        let mut words: Vec<&str> = above.map(str::trim).collect();
        words.reverse();
        match words.is_empty() {
            true => "only you can answer it".to_owned(),
            false => words.join(" "),
        }
    }

    /// Takes one table out of the root.
    pub fn section(&mut self, name: &str) -> Option<Section<'a>> {
        let value = remove(&mut self.root, name)?;
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Some(Section {
                label: format!("[{name}]"),
                path: name.to_owned(),
                table: Spanned::new(span, table),
            }),
            other => {
                let kind = other.type_str();
                self.complain(name, format!("`{name}` is a {kind}; expected a table: [{name}]"));
                None
            }
        }
    }

    /// Whether the file has anything by this name.
    pub fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Takes an array of tables out of the root.
    pub fn entries(&mut self, name: &str) -> Vec<Section<'a>> {
        let Some(value) = remove(&mut self.root, name) else { return Vec::new() };
        let mut entries = Vec::new();
        match value.into_inner() {
            DeValue::Array(array) => {
                for (at, item) in array.into_iter().enumerate() {
                    let span = item.span();
                    let path = format!("{name}.{at}");
                    let DeValue::Table(table) = item.into_inner() else {
                        self.complain(&path, format!("expected [[{name}]] tables"));
                        continue;
                    };
                    let label = match table.get("name").and_then(|name| name.get_ref().as_str()) {
                        Some(own) => format!("[[{name}]] {own}"),
                        None => format!("[[{name}]] number {}", at.saturating_add(1)),
                    };
                    entries.push(Section { label, path, table: Spanned::new(span, table) });
                }
            }
            _other => {
                let text = format!("`{name}` must be written with double brackets: [[{name}]]");
                self.complain(name, text);
            }
        }
        entries
    }

    /// Takes a plain text out of the root.
    pub fn text(&mut self, name: &str) -> Option<String> {
        let value = remove(&mut self.root, name)?;
        match value.get_ref().as_str() {
            Some(text) => Some(text.to_owned()),
            None => {
                let kind = value.get_ref().type_str();
                self.complain(name, format!("`{name}` is a {kind}; expected a text"));
                None
            }
        }
    }

    /// Reads a section into its type; every mistake found in it is kept.
    pub fn read<T: DeserializeOwned>(&mut self, section: Section<'a>) -> Option<T> {
        let (value, is_whole) = self.read_rest(section)?;
        is_whole.then_some(value)
    }

    /// The same, and where keys are mistaken the section without them, so that what else is wrong
    /// in it can be told as well; whether nothing was left out.
    pub fn read_rest<T: DeserializeOwned>(&mut self, section: Section<'a>) -> Option<(T, bool)> {
        let Section { label, path, mut table } = section;
        let mut removed: Vec<String> = Vec::new();
        for _mistake in 0..PROBLEMS_MAX {
            let error = match T::deserialize(Deserializer::from(table.clone())) {
                Ok(value) => return Some((value, removed.is_empty())),
                Err(error) => error,
            };
            let span = error.span().unwrap_or_else(|| self.span_of(&path));
            let secret = secret_at(table.get_ref(), &span).filter(|_| !names_columns(&path));
            let told = Told::of(&error, &table, &span, &label, secret.is_some());
            if told.missing.as_ref().is_none_or(|key| !removed.contains(key)) {
                let at = if told.missing.is_some() {
                    self.header_of(&path, &span)
                } else {
                    span.clone()
                };
                match secret {
                    Some(secret) => {
                        self.complain_in(&starred(self.text, &[secret]), &at, told.text);
                    }
                    None => self.complain_at(&at, told.text),
                }
            }
            removed.extend(told.stands_for);
            // Without the mistaken key the rest can be read, and tell its own mistakes.
            match told.missing {
                Some(_) => return None,
                None => match cut(table.as_mut(), &span) {
                    Some(key) => removed.push(key),
                    None => return None,
                },
            }
        }
        None
    }

    /// The place to mark where a key is missing: the table's first line.
    fn header_of(&self, path: &str, span: &Range<usize>) -> Range<usize> {
        if span.is_empty() { self.span_of(path) } else { span.clone() }
    }

    /// Ends the reading where nothing else is to be told.
    pub fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// Ends the reading: what is left in the root is unknown.
    pub fn finish(mut self, known: &[&str]) -> Vec<Problem> {
        let left: Vec<(String, Range<usize>)> =
            self.root.keys().map(|key| (key.get_ref().clone().into_owned(), key.span())).collect();
        for (key, span) in left {
            let help = match nearest_key(&key, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known at the top: {}", known.join(", ")),
            };
            self.complain_at(&span, format!("unknown key `{key}`; {help}"));
        }
        self.problems.sort_by_key(|problem| match &problem.place {
            Place::Whole(_) | Place::Word(_) => (0, 0),
            Place::File(place) => (place.line, place.column),
        });
        self.problems
    }
}

fn remove<'a>(table: &mut DeTable<'a>, key: &str) -> Option<Spanned<DeValue<'a>>> {
    table.remove(key)
}

fn index(table: &DeTable<'_>, prefix: &str, places: &mut BTreeMap<String, Range<usize>>) {
    for (key, value) in table {
        let path = join(prefix, key.get_ref());
        // A table of its own is marked at its name, a value at itself.
        let span = if value.get_ref().is_table() { key.span() } else { value.span() };
        places.insert(path.clone(), span);
        index_value(value, &path, places);
    }
}

fn index_value(
    value: &Spanned<DeValue<'_>>,
    path: &str,
    places: &mut BTreeMap<String, Range<usize>>,
) {
    match value.get_ref() {
        DeValue::Table(inner) => index(inner, path, places),
        DeValue::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let path = format!("{path}.{at}");
                places.insert(path.clone(), item.span());
                index_value(item, &path, places);
            }
        }
        _scalar => {}
    }
}

fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
}

fn collect_leaves(table: &DeTable<'_>, prefix: &str, leaves: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let path = join(prefix, key.get_ref());
        collect_value(value.get_ref(), &path, leaves);
    }
}

fn collect_value(value: &DeValue<'_>, path: &str, leaves: &mut Vec<(String, String)>) {
    match value {
        DeValue::Table(inner) => collect_leaves(inner, path, leaves),
        DeValue::Array(items) if items.iter().any(|item| item.get_ref().is_table()) => {
            for (at, item) in items.iter().enumerate() {
                let named = item.get_ref().get("name").and_then(|name| name.get_ref().as_str());
                let step = named.map_or_else(|| at.to_string(), str::to_owned);
                collect_value(item.get_ref(), &format!("{path}.{step}"), leaves);
            }
        }
        scalar => leaves.push((path.to_owned(), scalar_text(scalar))),
    }
}

/// A text in which nothing of these places can be read, quotes and breaks of lines apart. Every
/// byte keeps its place.
fn starred(text: &str, spans: &[Range<usize>]) -> String {
    let mut shown = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match spans.iter().any(|span| span.contains(&at)) {
            true => push_starred(&mut shown, c),
            false => shown.push(c),
        }
    }
    shown
}

fn push_starred(shown: &mut String, c: char) {
    match matches!(c, '"' | '\'' | '\n' | '\r') {
        true => shown.push(c),
        false => shown.push_str(&"*".repeat(c.len_utf8())),
    }
}

/// A text that is no TOML, with the names of its tables and settings alone: nobody can tell where a
/// value ends in it, and each may be a secret. Every byte keeps its place.
fn without_values(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut open = None;
    for line in text.split_inclusive('\n') {
        let names = if open.is_some() { 0 } else { named_at_begin(line) };
        let (names, values) = line.split_at_checked(names).unwrap_or(("", line));
        shown.push_str(names);
        values.chars().for_each(|c| push_starred(&mut shown, c));
        open = open_after(line, open);
    }
    shown
}

/// How much of a line, from its begin, names a table or a setting.
fn named_at_begin(line: &str) -> usize {
    let own = line.trim_start();
    let before = line.len().saturating_sub(own.len());
    let name = own.trim_start_matches('[');
    let brackets = own.len().saturating_sub(name.len());
    if brackets > 0 {
        let end = name.find([']', '#', '=', '\n']).unwrap_or(name.len());
        let (name, rest) = name.split_at_checked(end).unwrap_or((name, ""));
        let closing = rest.len().saturating_sub(rest.trim_start_matches(']').len());
        let is_header = brackets <= 2 && may_name_a_variable(name.trim());
        let shown = [before, brackets, name.len(), closing].into_iter().sum();
        return if is_header { shown } else { 0 };
    }
    let Some((name, value)) = own.split_once('=') else { return 0 };
    // Base64 ends so.
    let is_padding = value.starts_with('=') || (value.trim().is_empty() && !name.ends_with(' '));
    let blanks = value.len().saturating_sub(value.trim_start_matches([' ', '\t']).len());
    match may_name_a_variable(name.trim()) && !is_padding {
        true => [before, name.len(), "=".len(), blanks].into_iter().sum(),
        false => 0,
    }
}

/// The quotes of a text of several lines that is open after a line, if one is.
fn open_after(line: &str, open: Option<&'static str>) -> Option<&'static str> {
    let (mut open, mut rest) = (open, line);
    loop {
        if let Some(quotes) = open {
            let Some((_text, after)) = rest.split_once(quotes) else { return open };
            (open, rest) = (None, after);
            continue;
        }
        let (_before, quoted) = rest.split_at_checked(rest.find(['"', '\'', '#'])?)?;
        if quoted.starts_with('#') {
            return None;
        }
        open = LONG_QUOTES.into_iter().find(|quotes| quoted.starts_with(quotes));
        rest = match open {
            Some(quotes) => quoted.strip_prefix(quotes).unwrap_or(""),
            None => after_text(quoted),
        };
    }
}

/// What follows the text of one line that begins here.
fn after_text(quoted: &str) -> &str {
    let quote = quoted.chars().next();
    let mut is_escaped = false;
    for (at, c) in quoted.char_indices().skip(1) {
        match c {
            _any if is_escaped => is_escaped = false,
            '\\' => is_escaped = quote == Some('"'),
            c if Some(c) == quote => return quoted.get(at.saturating_add(1)..).unwrap_or(""),
            _within => {}
        }
    }
    ""
}

/// Whether a text at a path is looked for.
pub type Sought<'s> = dyn Fn(&str, &str) -> bool + 's;

/// Places of texts that are sought, within lists and tables too.
fn collect_texts(
    table: &DeTable<'_>,
    prefix: &str,
    sought: &Sought<'_>,
    found: &mut Vec<(String, Range<usize>)>,
) {
    for (key, value) in table {
        collect_text(value, &join(prefix, key.get_ref()), sought, found);
    }
}

fn collect_text(
    value: &Spanned<DeValue<'_>>,
    path: &str,
    sought: &Sought<'_>,
    found: &mut Vec<(String, Range<usize>)>,
) {
    match value.get_ref() {
        DeValue::Table(inner) => collect_texts(inner, path, sought, found),
        DeValue::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect_text(item, &format!("{path}.{at}"), sought, found);
            }
        }
        scalar if scalar.as_str().is_some_and(|text| sought(path, text)) => {
            found.push((path.to_owned(), value.span()));
        }
        _other => {}
    }
}

fn scalar_text(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => quoted(text),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(at) => at.to_string(),
        DeValue::Array(items) => {
            let texts: Vec<String> = items.iter().map(|item| scalar_text(item.get_ref())).collect();
            format!("[{}]", texts.join(", "))
        }
        DeValue::Table(_) => "{ … }".to_owned(),
    }
}

/// A text as TOML and JSON both write it.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A mistake in the words of tieout.
struct Told {
    text: String,
    /// The key that is missing, where that is the mistake.
    missing: Option<String>,
    /// The known key that an unknown one was probably meant to be.
    stands_for: Option<String>,
}

impl Told {
    fn of(
        error: &Error,
        table: &Spanned<DeTable<'_>>,
        span: &Range<usize>,
        label: &str,
        is_secret: bool,
    ) -> Self {
        let message = error.message();
        let path = path_at(table.get_ref(), span).unwrap_or_default();
        let within = |path: &str| match path.rsplit_once('.') {
            Some((parent, _)) => format!("{parent} of {label}"),
            None => label.to_owned(),
        };
        let ticked = ticked(message);
        let first = ticked.first().copied().unwrap_or("");
        if message.starts_with("unknown field") {
            let known = ticked.get(1..).unwrap_or_default();
            let near = nearest_key(first, known.iter().copied());
            let help = match near {
                _secret if SECRET_NAMES.contains(&first) => {
                    let named = known.iter().filter(|key| names_a_secret(key)).copied();
                    let named: Vec<&str> = named.collect();
                    format!(
                        "a secret does not stand in the file, it is named: {}",
                        named.join(", ")
                    )
                }
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", known.join(", ")),
            };
            let text = format!("unknown key `{first}` in {}; {help}", within(&path));
            return Self { text, missing: None, stands_for: near.map(str::to_owned) };
        }
        if message.starts_with("missing field") {
            let inner =
                if path.is_empty() { label.to_owned() } else { format!("{path} of {label}") };
            let text = format!("`{first}` is missing in {inner}{}", missing_help(first));
            return Self { text, missing: Some(first.to_owned()), stands_for: None };
        }
        let text = if is_secret {
            let expected = message.rsplit_once(", expected ").map_or("another value", |(_, it)| it);
            let expected = plain(&format!("expected {expected}"));
            format!("`{path}` of {label}: {expected}; what stands there is not shown")
        } else if message.starts_with("unknown variant") {
            let known = ticked.get(1..).unwrap_or_default();
            let near = nearest(first, known.iter().copied());
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            format!("`{path}` of {label} is `{first}`; expected {}{near}", known.join(", "))
        } else {
            format!("`{path}` of {label}: {}", plain(message))
        };
        Self { text, missing: None, stands_for: None }
    }
}

/// Keys that say where a secret is to be read.
fn names_a_secret(key: &str) -> bool {
    ["_env", "_file", "_command"].iter().any(|end| key.ends_with(end)) && key != "ca_file"
}

/// A mode has no default: nobody should find out later how far tieout went.
fn missing_help(key: &str) -> &'static str {
    match key {
        "mode" => "; expected observe, succeed_only or full (there is no default)",
        "livemode" => "; expected true for live money, false for test data",
        _ => "",
    }
}

/// The words between backticks.
fn ticked(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).collect()
}

/// serde's words for types, in those of TOML.
fn plain(message: &str) -> String {
    let mut text = message.to_owned();
    for (from, to) in [
        ("expected u32", "expected a whole number, at least 0"),
        ("expected u64", "expected a whole number, at least 0"),
        ("expected i64", "expected a whole number"),
        ("expected a boolean", "expected true or false"),
        ("expected a sequence", "expected a list"),
        ("expected a map", "expected a table"),
        ("expected a string", "expected a text"),
        ("invalid type: ", "this is "),
        ("invalid value: ", "this is "),
        ("this is string", "this is the text"),
        ("this is integer", "this is the number"),
        ("this is boolean", "this is"),
        ("sequence, expected", "a list, expected"),
        ("map, expected", "a table, expected"),
    ] {
        text = text.replace(from, to);
    }
    text
}

/// The path of the deepest key around `span`, inside `table`.
fn path_at(table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let name = key.get_ref().to_string();
        if key.span() == *span {
            return Some(name);
        }
        value_path_at(value, span).map(|inner| join_steps(&name, &inner))
    })
}

fn join_steps(name: &str, inner: &str) -> String {
    if inner.is_empty() { name.to_owned() } else { format!("{name}.{inner}") }
}

fn value_path_at(value: &Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<String> {
    let deeper = match value.get_ref() {
        DeValue::Table(inner) => path_at(inner, span),
        DeValue::Array(items) => items.iter().enumerate().find_map(|(at, item)| {
            value_path_at(item, span).map(|inner| join_steps(&at.to_string(), &inner))
        }),
        _scalar => None,
    };
    let contains = value.span().start <= span.start && span.end <= value.span().end;
    deeper.or_else(|| contains.then(String::new))
}

/// Whether what stands below a section's keys may be called as its columns are.
fn names_columns(path: &str) -> bool {
    ["table.", "format."].iter().any(|section| path.starts_with(section))
}

/// The whole value around `span`, or of the key there, where its setting may hold a secret.
fn secret_at(table: &DeTable<'_>, span: &Range<usize>) -> Option<Range<usize>> {
    table.iter().find_map(|(key, value)| {
        let whole = value.span();
        let is_meant = key.span() == *span || whole == *span;
        let is_within = whole.start <= span.start && span.end <= whole.end;
        let is_it = is_meant || (is_within && !value.get_ref().is_table());
        match is_it && may_be_secret(key.get_ref()) {
            true => Some(whole),
            false => secret_in(value.get_ref(), span),
        }
    })
}

fn secret_in(value: &DeValue<'_>, span: &Range<usize>) -> Option<Range<usize>> {
    match value {
        DeValue::Table(inner) => secret_at(inner, span),
        DeValue::Array(items) => items.iter().find_map(|item| secret_in(item.get_ref(), span)),
        _scalar => None,
    }
}

/// Removes the deepest entry of a table that `span` points at; its key.
fn cut(table: &mut DeTable<'_>, span: &Range<usize>) -> Option<String> {
    let mut found: Option<String> = None;
    for (key, value) in table.iter_mut() {
        if key.span() == *span {
            found = Some(key.get_ref().to_string());
            break;
        }
        let contains = value.span().start <= span.start && span.end <= value.span().end;
        if let Some(inner) = cut_value(value, span) {
            return Some(inner);
        }
        if contains {
            found = Some(key.get_ref().to_string());
            break;
        }
    }
    let key = found?;
    remove(table, &key)?;
    Some(key)
}

fn cut_value(value: &mut Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<String> {
    match value.get_mut() {
        DeValue::Table(inner) => cut(inner, span),
        DeValue::Array(items) => items.iter_mut().find_map(|item| cut_value(item, span)),
        _scalar => None,
    }
}
