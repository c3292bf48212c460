//! The XML of settlement files: elements by their local names, text from start to end, nothing
//! that reaches outside the file.
//!
//! Namespaces are not looked at: banks leave them out or write wrong ones. A document type is
//! refused (entities of its own could grow without bound), depth and text are capped, and an
//! element that nobody asks for is passed over.

use std::cell::Cell;
use std::io::{self, BufRead, Read};

use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};

use crate::model::settlement::{Problem, RAW_MAX};
use crate::settlement::text::Decoded;

/// ISO 20022 messages are some fifteen deep, their envelopes a few more.
const DEPTH: usize = 64;

/// The longest text of ISO 20022 has a few thousand characters; what is longer is not kept.
const TEXT: usize = 64 * 1024;

/// Most entries' markup is not longer.
const RAW_MOST: usize = 1024;

/// So much of what stands beside the elements is shown.
const SHOWN: usize = 40;

/// One piece of markup or text; no real one comes near.
const PIECE: u64 = 8 * 1024 * 1024;

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// An element began: it is the last of [`Xml::path`].
    Open,
    /// An element ended: it is still the last of the path, and [`Xml::text`] is its text.
    Close,
    /// The document ended, with every element closed.
    End,
}

/// A document, element by element.
pub struct Xml {
    reader: Reader<Counted>,
    buffer: Vec<u8>,
    path: String,
    ends: Vec<usize>,
    closing: bool,
    text: String,
    currency: String,
    beside: Option<Problem>,
}

impl Xml {
    /// Begins to read.
    pub fn new(text: Decoded) -> Self {
        let mut reader = Reader::from_reader(Counted::new(text));
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        // A bare `&` in a name is wrong and moves no money.
        config.allow_dangling_amp = true;
        Self {
            reader,
            buffer: Vec::new(),
            path: String::new(),
            ends: Vec::new(),
            closing: false,
            text: String::new(),
            currency: String::new(),
            beside: None,
        }
    }

    /// The local names of the open elements, joined by `/`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Hands the path out while what it belongs to is changed; [`Self::put_path`] gives it back.
    pub fn take_path(&mut self) -> String {
        std::mem::take(&mut self.path)
    }

    /// See [`Self::take_path`].
    pub fn put_path(&mut self, path: String) {
        self.path = path;
    }

    /// How much of the path stands before the last element's name.
    pub fn above(&self) -> usize {
        self.ends.iter().nth_back(1).copied().unwrap_or(0)
    }

    /// The text of the element that ended, without the blanks around it.
    pub fn text(&self) -> &str {
        // Asked of every element, and there is hardly ever a blank to look for.
        match self.text.as_bytes() {
            [b'!'..=b'~', .., b'!'..=b'~'] => &self.text,
            _other => self.text.trim(),
        }
    }

    /// The `Ccy` of the element that began last.
    pub fn currency(&self) -> &str {
        &self.currency
    }

    /// The line that has been read to.
    pub fn line(&self) -> u64 {
        self.reader.get_ref().line()
    }

    /// The byte of the text that has been read to.
    pub fn byte(&self) -> u64 {
        self.reader.buffer_position()
    }

    /// Keeps the markup from the element on that has just begun.
    pub fn record(&mut self) {
        let name = self.path.get(self.above()..).unwrap_or_default();
        let name = name.strip_prefix('/').unwrap_or(name);
        self.reader.get_mut().record(name);
    }

    /// What was kept.
    pub fn take_raw(&mut self) -> String {
        self.reader.get_mut().take_raw()
    }

    /// Words outside of every element: another message, of which nothing was read.
    pub fn take_beside(&mut self) -> Option<Problem> {
        self.beside.take()
    }

    /// Reads on.
    ///
    /// # Errors
    /// Where the document is not well-formed, breaks off, or holds what is refused.
    pub fn advance(&mut self) -> Result<Node, Problem> {
        if self.closing {
            self.closing = false;
            self.ends.pop();
            self.path.truncate(self.ends.last().copied().unwrap_or(0));
            self.text.clear();
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let node = loop {
            buffer.clear();
            self.reader.get_mut().piece = 0;
            // By reference: an event is large, and is moved for every few bytes of a file.
            match &self.reader.read_event_into(&mut buffer) {
                Ok(event) => match self.take(event) {
                    Ok(Some(node)) => break Ok(node),
                    Ok(None) => {}
                    Err(problem) => break Err(problem),
                },
                Err(error) => break Err(self.broken(&error.to_string())),
            }
        };
        self.buffer = buffer;
        node
    }

    /// Passes over the rest of the element that began last, of which nothing is asked: only that
    /// it is well-formed. The end of it was read then.
    ///
    /// # Errors
    /// As [`Self::advance`].
    pub fn skip(&mut self) -> Result<(), Problem> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut within = 0;
        let passed = loop {
            buffer.clear();
            self.reader.get_mut().piece = 0;
            match &self.reader.read_event_into(&mut buffer) {
                Ok(event) => match self.pass(event, &mut within) {
                    Ok(false) => {}
                    ended => break ended,
                },
                Err(error) => break Err(self.broken(&error.to_string())),
            }
        };
        self.buffer = buffer;
        self.text.clear();
        self.closing = true;
        passed.map(|_ended| ())
    }

    /// Whether this ended the element that is passed over, of which so many are open within it.
    fn pass(&mut self, event: &Event, within: &mut usize) -> Result<bool, Problem> {
        match event {
            Event::Start(start) => {
                *within = within.saturating_add(1);
                self.begin(start, self.ends.len().saturating_add(*within))?;
                Ok(false)
            }
            Event::End(_) => {
                let is_last = *within == 0;
                *within = within.saturating_sub(1);
                Ok(is_last)
            }
            Event::Text(_) | Event::CData(_) => Ok(false),
            other => self.take(other).map(|_node| false),
        }
    }

    fn broken(&self, found: &str) -> Problem {
        let mut place = self.path.clone();
        if place.is_empty() {
            place.push_str("document");
        }
        Problem::error(self.line(), place, "well-formed XML", found)
    }

    fn take(&mut self, event: &Event) -> Result<Option<Node>, Problem> {
        match event {
            Event::Start(start) => self.open(start).map(Some),
            Event::End(_) => {
                self.closing = true;
                Ok(Some(Node::Close))
            }
            Event::Text(text) => {
                self.push(text);
                self.beside(text);
                Ok(None)
            }
            Event::CData(text) => {
                self.push(text);
                Ok(None)
            }
            Event::GeneralRef(reference) => {
                self.reference(reference)?;
                Ok(None)
            }
            Event::DocType(_) => Err(Problem::error(
                self.line(),
                "DOCTYPE",
                "none: it could name files or grow without bound",
                "one; nothing after it was read",
            )),
            Event::Eof if self.ends.is_empty() => Ok(Some(Node::End)),
            Event::Eof => Err(self.broken("the file ends within this element")),
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => Ok(None),
        }
    }

    fn open(&mut self, start: &BytesStart) -> Result<Node, Problem> {
        self.begin(start, self.ends.len().saturating_add(1))?;
        if !self.path.is_empty() {
            self.path.push('/');
        }
        let name = start.local_name();
        self.path.push_str(name.as_ref());
        self.ends.push(self.path.len());
        self.text.clear();
        Ok(Node::Open)
    }

    /// What holds of every element: it is not too deep, and its attributes can be read.
    fn begin(&mut self, start: &BytesStart, depth: usize) -> Result<(), Problem> {
        if depth > DEPTH {
            return Err(self.broken("more elements within one another than any message has"));
        }
        self.currency.clear();
        if start.attributes_raw().trim().is_empty() { Ok(()) } else { self.currency_of(start) }
    }
}

impl Xml {
    fn currency_of(&mut self, start: &BytesStart) -> Result<(), Problem> {
        match start.try_get_attribute("Ccy") {
            Ok(Some(attribute)) => self.currency.push_str(attribute.value.trim()),
            Ok(None) => {}
            Err(error) => return Err(self.broken(&error.to_string())),
        }
        Ok(())
    }

    fn reference(&mut self, reference: &BytesRef) -> Result<(), Problem> {
        match reference.resolve_char_ref() {
            Ok(Some(character)) => {
                let mut bytes = [0; 4];
                let text = character.encode_utf8(&mut bytes);
                self.push(text);
                return Ok(());
            }
            Ok(None) => {}
            Err(error) => return Err(self.broken(&error.to_string())),
        }
        let text = match reference.as_ref() {
            "amp" => "&",
            "lt" => "<",
            "gt" => ">",
            "apos" => "'",
            "quot" => "\"",
            other => return Err(self.broken(&format!("an entity of its own, &{other};"))),
        };
        self.push(text);
        Ok(())
    }

    fn beside(&mut self, text: &str) {
        if !self.ends.is_empty() || self.beside.is_some() {
            return;
        }
        let words = text.trim_matches(|c: char| !c.is_alphanumeric());
        if !words.is_empty() {
            let found: String = words.chars().take(SHOWN).collect();
            let expected = "nothing beside its elements";
            self.beside = Some(Problem::error(self.line(), "document", expected, found));
        }
    }

    fn push(&mut self, text: &str) {
        if self.text.len() < TEXT {
            self.text.push_str(text);
        }
    }
}

/// Counts lines, keeps what is recorded, and ends a piece that nothing ends.
struct Counted {
    text: Decoded,
    lines: Cell<Passed>,
    /// Whether the present piece of text may have a carriage return; nearly no file has any.
    has_cr: bool,
    piece: u64,
    raw: String,
    /// Up to where the present piece of text is kept, while it is recorded.
    kept: Option<usize>,
}

/// Line ends so far. They are counted when somebody asks, or before the text is gone: markup
/// passes in pieces of a few bytes, and counting within each would cost more than reading it.
#[derive(Clone, Copy, Default)]
struct Passed {
    lf: usize,
    cr: usize,
    /// Up to where the present piece of text is counted.
    upto: usize,
}

impl Counted {
    fn new(text: Decoded) -> Self {
        let (lines, raw) = (Cell::default(), String::new());
        Self { text, lines, has_cr: true, piece: 0, raw, kept: None }
    }

    fn record(&mut self, name: &str) {
        self.raw.clear();
        self.raw.reserve(RAW_MOST);
        self.raw.push('<');
        self.raw.push_str(name);
        self.raw.push('>');
        self.kept = Some(self.text.passed().len());
    }

    fn take_raw(&mut self) -> String {
        self.keep();
        self.kept = None;
        std::mem::take(&mut self.raw)
    }

    /// Keeps what was passed since; of all of it at most [`RAW_MAX`], in whole characters.
    fn keep(&mut self) {
        let Some(kept) = &mut self.kept else { return };
        let fresh = self.text.passed().get(*kept..).unwrap_or_default();
        *kept = kept.saturating_add(fresh.len());
        let room = RAW_MAX.saturating_sub(self.raw.len());
        let fits = fresh.get(..room).unwrap_or(fresh);
        match std::str::from_utf8(fits) {
            Ok(text) => self.raw.push_str(text),
            Err(cut) => {
                let whole = fits.get(..cut.valid_up_to()).unwrap_or_default();
                self.raw.push_str(&String::from_utf8_lossy(whole));
            }
        }
    }

    fn count(&self) -> Passed {
        let mut lines = self.lines.get();
        let passed = self.text.passed();
        let fresh = passed.get(lines.upto..).unwrap_or_default();
        let ends = |byte| memchr::memchr_iter(byte, fresh).count();
        lines.lf = lines.lf.saturating_add(ends(b'\n'));
        if self.has_cr {
            lines.cr = lines.cr.saturating_add(ends(b'\r'));
        }
        lines.upto = passed.len();
        self.lines.set(lines);
        lines
    }

    fn line(&self) -> u64 {
        let Passed { lf, cr, .. } = self.count();
        u64::try_from(lf.max(cr)).unwrap_or(u64::MAX).saturating_add(1)
    }
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut rest = self.fill_buf()?;
        let read = rest.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Counted {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.piece > PIECE {
            return Err(io::Error::other("a piece of markup or text of more than 8 MiB"));
        }
        if self.text.ready().is_empty() {
            let counted = self.count();
            self.lines.set(Passed { upto: 0, ..counted });
            self.keep();
            self.kept = self.kept.map(|_| 0);
            let fresh = self.text.fill_buf()?;
            self.has_cr = memchr::memchr(b'\r', fresh).is_some();
            return Ok(fresh);
        }
        Ok(self.text.ready())
    }

    fn consume(&mut self, amount: usize) {
        self.piece = self.piece.saturating_add(u64::try_from(amount).unwrap_or(u64::MAX));
        self.text.consume(amount);
    }
}
