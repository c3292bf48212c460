//! From bytes to text: encodings and line ends, in flat memory.
//!
//! A byte order mark decides; else what the configuration or the XML declaration names; else UTF-8;
//! else, where a byte is none, one of the encodings of Central Europe and the Baltic, where words
//! that banks write show it. Elsewhere such a byte alone is read as cp1252 and the file is flagged.
//! So no row is ever lost to an umlaut, and references, which are ASCII, read the same either way.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use encoding_rs::{
    Encoding, ISO_8859_2, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1250, WINDOWS_1252, WINDOWS_1257,
};

use crate::model::money::Currency;
use crate::model::settlement::Problem;

/// Bytes read at a time: large enough that recognising sees every head in one piece.
const CHUNK: usize = 64 * 1024;

/// No line of any format is nearly so long; a longer one is not text.
const LINE_MAX: usize = 1024 * 1024;

/// A file's text, and what was found about its bytes.
pub struct Source {
    text: Decoded,
    notes: Arc<Notes>,
    currency: Option<Currency>,
}

/// What decoding found; read after the parser has ended.
#[derive(Debug, Default)]
pub struct Notes {
    replaced: AtomicU64,
}

impl Notes {
    /// How many bytes were no UTF-8 and were read as cp1252, or could not be read at all.
    pub fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }
}

impl Source {
    /// Begins to read. `encoding` is a name that a person gave (`iso-8859-1`).
    ///
    /// # Errors
    /// Where the first bytes cannot be read or are an archive's, or the name is of no encoding.
    pub fn open(
        mut input: Box<dyn Read + Send>,
        encoding: Option<&str>,
    ) -> Result<Self, io::Error> {
        let mut head = Vec::with_capacity(CHUNK);
        fill(&mut *input, &mut head)?;
        if head.get(257..262) == Some(b"ustar".as_slice()) {
            let found = "a tar archive; unpack it, and read its files one by one";
            return Err(io::Error::new(io::ErrorKind::InvalidData, found));
        }
        if let Some(found) = packed_again(&head) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, found));
        }
        let (encoding, skip) = match (sniff(&head), encoding) {
            (Some(found), _) => found,
            (None, Some(name)) => (named(name)?, 0),
            (None, None) => (declared(&head).or_else(|| by_words(&head)).unwrap_or(UTF_8), 0),
        };
        head.drain(..skip);
        let notes = Arc::new(Notes::default());
        let decoder = (encoding != UTF_8).then(|| encoding.new_decoder_without_bom_handling());
        let text = Decoded {
            input,
            raw: head,
            at_end: false,
            decoder,
            encoding: encoding.name(),
            out: Vec::new(),
            from: 0,
            notes: Arc::clone(&notes),
        };
        Ok(Self { text, notes, currency: None })
    }

    /// The first text, for recognising; nothing is consumed.
    ///
    /// # Errors
    /// As reading.
    pub fn head(&mut self) -> io::Result<&[u8]> {
        self.text.fill_buf()
    }

    /// As a person says of files that name no currency: it is this.
    pub fn in_currency(mut self, currency: Option<Currency>) -> Self {
        self.currency = currency;
        self
    }

    /// What a person said that amounts are in where the file names no currency.
    pub fn currency(&self) -> Option<Currency> {
        self.currency
    }

    /// The encoding's name.
    pub fn encoding(&self) -> &'static str {
        self.text.encoding
    }

    /// What decoding finds while the text is read.
    pub fn notes(&self) -> Arc<Notes> {
        Arc::clone(&self.notes)
    }

    /// The text, as UTF-8 without a byte order mark.
    pub fn into_text(self) -> Decoded {
        self.text
    }

    /// The text, line by line.
    pub fn into_lines(self) -> Lines {
        Lines::new(self.text)
    }
}

/// What came out of a wrapping and is one itself: one is taken off, and no more.
fn packed_again(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x1f, 0x8b, ..] => Some("gzip within gzip; unpack it once"),
        [b'P', b'K', 3 | 5, 4 | 6, ..] => Some("an archive within another file; unpack it once"),
        _bytes => None,
    }
}

/// Whether a name is one of an encoding.
pub fn is_encoding(name: &str) -> bool {
    Encoding::for_label(name.as_bytes()).is_some()
}

fn named(name: &str) -> Result<&'static Encoding, io::Error> {
    Encoding::for_label(name.as_bytes()).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("`{name}` is no encoding"))
    })
}

/// A byte order mark and its length; UTF-16 without one is seen by its zeros.
fn sniff(head: &[u8]) -> Option<(&'static Encoding, usize)> {
    if let Some(found) = Encoding::for_bom(head) {
        return Some(found);
    }
    match head {
        [first, 0, second, 0, ..] if *first != 0 && *second != 0 => Some((UTF_16LE, 0)),
        [0, first, 0, second, ..] if *first != 0 && *second != 0 => Some((UTF_16BE, 0)),
        _bytes => None,
    }
}

/// What an XML declaration says. UTF-16 in it cannot be true here: its bytes were looked at.
fn declared(head: &[u8]) -> Option<&'static Encoding> {
    let head = head.get(..head.len().min(200)).unwrap_or(head);
    let head = head.trim_ascii_start().strip_prefix(b"<?xml")?;
    let end = head.windows(2).position(|pair| pair == b"?>")?;
    let declaration = String::from_utf8_lossy(head.get(..end)?).into_owned();
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let label = value.get(1..)?.split(quote).next()?;
    let found = Encoding::for_label(label.as_bytes())?;
    (found != UTF_16LE && found != UTF_16BE && found != UTF_8).then_some(found)
}

/// What columns are called in Central Europe, each with a letter that cp1252 has not.
const OF_CENTRAL_EUROPE: &[&str] = &[
    "księgowania",
    "tytuł",
    "płatności",
    "początkowe",
    "końcowe",
    "částka",
    "zůstatek",
    "zaúčtování",
    "účtu",
    "zaúčtovania",
    "čiastka",
    "račun",
    "plačnik",
    "plaćanja",
];

/// And in the Baltic.
const OF_THE_BALTIC: &[&str] =
    &["sąskaitos", "gavėjas", "paaiškinim", "įrašo", "saņēmēj", "valūta", "kredīts"];

/// The encoding in which bytes that are no UTF-8 hold one of these words: in another one no text
/// would come to it.
fn by_words(head: &[u8]) -> Option<&'static Encoding> {
    let error = std::str::from_utf8(head).err()?;
    // A character that the end of the head cuts is none.
    error.error_len()?;
    let has = |encoding: &'static Encoding, words: &[&str]| {
        let (text, _) = encoding.decode_without_bom_handling(head);
        let text = text.to_lowercase();
        words.iter().any(|word| text.contains(word))
    };
    // Where the two differ, one has signs of its own in place of the other's letters.
    let is_windows = head.iter().any(|byte| matches!(byte, 0x80..=0x9f));
    let is_iso = !is_windows && head.iter().any(|byte| matches!(byte, 0xb1 | 0xb6));
    let central = if is_iso { ISO_8859_2 } else { WINDOWS_1250 };
    if has(central, OF_CENTRAL_EUROPE) {
        return Some(central);
    }
    has(WINDOWS_1257, OF_THE_BALTIC).then_some(WINDOWS_1257)
}

/// Reads until the buffer is full or the input ends; true at the end.
fn fill(input: &mut dyn Read, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let mut filled = buffer.len();
    buffer.resize(CHUNK.max(filled), 0);
    let ended = loop {
        let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) else {
            break Ok(false);
        };
        match input.read(room) {
            Ok(0) => break Ok(true),
            Ok(got) => filled = filled.saturating_add(got),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    buffer.truncate(filled);
    ended
}

/// Text as it is decoded.
pub struct Decoded {
    input: Box<dyn Read + Send>,
    raw: Vec<u8>,
    at_end: bool,
    decoder: Option<encoding_rs::Decoder>,
    encoding: &'static str,
    out: Vec<u8>,
    from: usize,
    notes: Arc<Notes>,
}

impl Decoded {
    /// What is decoded and not consumed yet; nothing is read for it.
    pub fn ready(&self) -> &[u8] {
        self.out.get(self.from..).unwrap_or_default()
    }

    /// What was consumed of the present piece of text, and is still there.
    pub fn passed(&self) -> &[u8] {
        self.out.get(..self.from).unwrap_or_default()
    }

    fn refill(&mut self) -> io::Result<()> {
        self.out.clear();
        self.from = 0;
        while self.out.is_empty() && !self.at_end {
            self.at_end = fill(&mut *self.input, &mut self.raw)?;
            match &mut self.decoder {
                Some(decoder) => {
                    decode(decoder, &self.raw, &mut self.out, self.at_end, &self.notes)?;
                    self.raw.clear();
                }
                // As nearly always: nothing to change, and nothing to copy.
                None if std::str::from_utf8(&self.raw).is_ok() => {
                    std::mem::swap(&mut self.raw, &mut self.out);
                }
                None => {
                    let rest = lenient(&self.raw, &mut self.out, self.at_end, &self.notes);
                    let kept = self.raw.len().saturating_sub(rest);
                    self.raw.drain(..kept);
                }
            }
        }
        Ok(())
    }
}

impl Read for Decoded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut rest = self.fill_buf()?;
        let read = rest.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Decoded {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.from >= self.out.len() {
            self.refill()?;
        }
        Ok(self.out.get(self.from..).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.from = self.from.saturating_add(amount).min(self.out.len());
    }
}

fn decode(
    decoder: &mut encoding_rs::Decoder,
    raw: &[u8],
    out: &mut Vec<u8>,
    last: bool,
    notes: &Notes,
) -> io::Result<()> {
    let room = decoder.max_utf8_buffer_length(raw.len());
    let room = room.ok_or_else(|| io::Error::other("a chunk of text does not fit memory"))?;
    out.resize(room, 0);
    let (_result, _read, written, replaced) = decoder.decode_to_utf8(raw, out, last);
    out.truncate(written);
    if replaced {
        notes.replaced.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// UTF-8 as it stands, and what is none byte by byte as cp1252. How many bytes at the end of `raw`
/// are the beginning of a character whose rest is still to come, is returned.
fn lenient(raw: &[u8], out: &mut Vec<u8>, last: bool, notes: &Notes) -> usize {
    let mut rest = raw;
    loop {
        match std::str::from_utf8(rest) {
            Ok(_) => {
                out.extend_from_slice(rest);
                return 0;
            }
            Err(error) => {
                let (good, bad) = rest.split_at(error.valid_up_to());
                out.extend_from_slice(good);
                if error.error_len().is_none() && !last {
                    return bad.len();
                }
                let (byte, after) = bad.split_at(1.min(bad.len()));
                let (text, _, _) = WINDOWS_1252.decode(byte);
                out.extend_from_slice(text.as_bytes());
                notes.replaced.fetch_add(1, Ordering::Relaxed);
                rest = after;
            }
        }
    }
}

/// A text's lines: LF, CRLF or CR end one. The line number and byte are those of its beginning.
pub struct Lines {
    text: Decoded,
    line: String,
    bytes: Vec<u8>,
    number: u64,
    byte: u64,
    next_byte: u64,
    after_cr: bool,
    is_ended: bool,
}

impl Lines {
    fn new(text: Decoded) -> Self {
        Self {
            text,
            line: String::new(),
            bytes: Vec::new(),
            number: 0,
            byte: 0,
            next_byte: 0,
            after_cr: false,
            is_ended: true,
        }
    }

    /// Reads one more line; false at the end.
    ///
    /// # Errors
    /// Where the input breaks off, or a line is too long to be one.
    pub fn advance(&mut self) -> Result<bool, Problem> {
        self.bytes.clear();
        self.byte = self.next_byte;
        let number = self.number.saturating_add(1);
        let (mut seen, mut has_end) = (false, false);
        loop {
            let chunk = self.text.fill_buf().map_err(|error| unreadable(number, &error))?;
            if chunk.is_empty() {
                break;
            }
            // The LF of a CRLF whose CR ended the line before.
            if self.after_cr && !seen {
                self.after_cr = false;
                if chunk.first() == Some(&b'\n') {
                    self.text.consume(1);
                    self.next_byte = self.next_byte.saturating_add(1);
                    self.byte = self.next_byte;
                    continue;
                }
            }
            seen = true;
            let end = memchr::memchr2(b'\n', b'\r', chunk);
            let length = end.unwrap_or(chunk.len());
            self.bytes.extend_from_slice(chunk.get(..length).unwrap_or_default());
            let ended = end.and_then(|at| chunk.get(at)).copied();
            let used = length.saturating_add(usize::from(ended.is_some()));
            self.text.consume(used);
            self.next_byte = self.next_byte.saturating_add(u64::try_from(used).unwrap_or(0));
            if ended.is_some() {
                has_end = true;
                self.after_cr = ended == Some(b'\r');
                break;
            }
            if self.bytes.len() > LINE_MAX {
                return Err(Problem::error(number, "line", "at most 1 MiB", "a longer one"));
            }
        }
        if !seen {
            return Ok(false);
        }
        self.is_ended = has_end;
        self.number = number;
        self.line.clear();
        self.line.push_str(&String::from_utf8_lossy(&self.bytes));
        Ok(true)
    }

    /// The line, without its end.
    pub fn text(&self) -> &str {
        &self.line
    }

    /// Whether it has an end of its own, and not that of the input alone.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Its number, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Where it begins in the decoded text.
    pub fn byte(&self) -> u64 {
        self.byte
    }
}

/// The input ended in an error: what was read so far cannot be the whole.
pub fn unreadable(line: u64, error: &io::Error) -> Problem {
    Problem::error(line, "file", "readable to its end", error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(bytes: &[u8], encoding: Option<&str>) -> Source {
        Source::open(Box::new(io::Cursor::new(bytes.to_vec())), encoding).unwrap()
    }

    fn text_of(bytes: &[u8], encoding: Option<&str>) -> (String, u64) {
        let source = source(bytes, encoding);
        let notes = source.notes();
        let mut text = String::new();
        source.into_text().read_to_string(&mut text).unwrap();
        (text, notes.replaced())
    }

    #[test]
    fn what_is_wrapped_twice_is_refused() {
        for (bytes, part) in [
            (&b"\x1f\x8b\x08\0"[..], "gzip within gzip"),
            (&b"PK\x03\x04rest"[..], "an archive within"),
        ] {
            let opened = Source::open(Box::new(io::Cursor::new(bytes.to_vec())), None);
            let error = opened.err().unwrap().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn every_encoding_reads_as_the_same_text() {
        let utf16 = |text: &str, big: bool| -> Vec<u8> {
            let units = text.encode_utf16();
            units.flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() }).collect()
        };
        let latin = b"M\xfcller";
        let xml = b"<?xml version='1.0' encoding='ISO-8859-15'?>\xa4";
        for (bytes, pinned, want, replaced) in [
            ("Müller".as_bytes().to_vec(), None, "Müller", 0),
            ("\u{feff}Müller".as_bytes().to_vec(), None, "Müller", 0),
            ("\u{feff}Müller".as_bytes().to_vec(), Some("latin1"), "Müller", 0),
            (latin.to_vec(), None, "Müller", 1),
            (latin.to_vec(), Some("cp1252"), "Müller", 0),
            (b"M\x81ller".to_vec(), Some("ibm866"), "MБller", 0),
            (utf16("\u{feff}Müller", false), None, "Müller", 0),
            (utf16("\u{feff}Müller", true), None, "Müller", 0),
            (utf16("Muller", false), None, "Muller", 0),
            (utf16("Muller", true), None, "Muller", 0),
            (xml.to_vec(), None, "<?xml version='1.0' encoding='ISO-8859-15'?>€", 0),
        ] {
            let got = text_of(&bytes, pinned);
            assert_eq!(got, (want.to_owned(), replaced), "{bytes:?} {pinned:?}");
        }
    }

    #[test]
    fn characters_across_chunks_and_at_the_end_are_whole() {
        for pad in CHUNK - 4..CHUNK + 2 {
            let text = format!("{}ü€𝄞x", "a".repeat(pad));
            assert_eq!(text_of(text.as_bytes(), None), (text, 0));
        }
        assert_eq!(text_of(b"a\xc3", None), ("aÃ".to_owned(), 1), "cut within a character");
    }

    fn lines_of(text: &str) -> Vec<(u64, u64, String)> {
        let mut lines = source(text.as_bytes(), None).into_lines();
        let mut all = Vec::new();
        while lines.advance().unwrap() {
            all.push((lines.number(), lines.byte(), lines.text().to_owned()));
        }
        all
    }

    #[test]
    fn lines_end_in_any_of_three_ways() {
        for end in ["\n", "\r\n", "\r"] {
            let lines = lines_of(&format!("a{end}{end}bc{end}"));
            let width = u64::try_from(end.len()).unwrap();
            let want = [(1, 0, "a"), (2, 1 + width, ""), (3, 1 + 2 * width, "bc")];
            let want: Vec<_> = want.map(|(n, b, t)| (n, b, t.to_owned())).to_vec();
            assert_eq!(lines, want, "{end:?}");
        }
        assert_eq!(lines_of("a\nb").len(), 2, "the last needs no end");
        assert_eq!(lines_of("").len(), 0);
    }

    #[test]
    fn what_is_no_text_is_refused_instead_of_held() {
        let long = "a".repeat(LINE_MAX + CHUNK + 1);
        let mut lines = source(long.as_bytes(), None).into_lines();
        assert_eq!(lines.advance().unwrap_err().field, "line");
    }
}
