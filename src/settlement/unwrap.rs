//! Takes a file out of what it came in: .gz, .zip, or nothing. By its first bytes, never its name.
//!
//! Bounded against bombs: what comes out is at most [`ROOM`] plus [`RATIO`] times what went in, and
//! never more than [`MOST`]. Names inside an archive are shown and never used as paths.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Crc;
use flate2::bufread::GzDecoder;
use flate2::read::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

/// Output that is always allowed: no bank's small file is refused for being blank-padded.
pub const ROOM: u64 = 64 * 1024 * 1024;

/// Output per byte of input. Settlement files reach about 50; deflate itself ends at 1,032.
pub const RATIO: u64 = 250;

/// No file of any bank is larger; a larger one is refused whole.
pub const MOST: u64 = 64 * 1024 * 1024 * 1024;

/// An archive with more files is not a delivery of statements.
pub const MEMBERS: usize = 10_000;

const BUFFER: usize = 256 * 1024;

/// The record at the end of an archive, with the longest comment, and what stands before it in a
/// large one.
const END_MAX: u64 = 22 + 65_535 + 76;

/// A file that can be read, on its own or within an archive.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name within the archive, where there is one.
    pub name: Option<String>,
    path: PathBuf,
    place: Place,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Whole,
    Within { start: u64, compressed: u64, size: u64, crc: u32, deflated: bool },
}

/// What is in the file at `path`: itself, or the files of an archive in their order.
///
/// # Errors
/// Where it cannot be read, or is an archive that cannot be opened.
pub fn members(path: &Path) -> io::Result<Vec<Member>> {
    let kind = std::fs::metadata(path)?;
    if kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    // To open a pipe waits for whoever writes to it, and what is read of one is gone.
    if !kind.is_file() {
        return Err(refused("it is a pipe or a device; write it into a file first".to_owned()));
    }
    let mut file = File::open(path)?;
    let mut magic = [0_u8; 4];
    let read = read_some(&mut file, &mut magic)?;
    if magic.get(..read) == Some(b"PK\x05\x06".as_slice()) {
        return Err(refused("an archive without a file".to_owned()));
    }
    if magic.get(..read) != Some(b"PK\x03\x04".as_slice()) {
        return Ok(vec![Member { name: None, path: path.to_owned(), place: Place::Whole }]);
    }
    let listed = listed(&mut file)?;
    file.seek(SeekFrom::Start(0))?;
    within(path, file, listed)
}

/// How many files an archive lists, by the record at its end; none where that one cannot be found.
/// What opens archives keeps one file for each name.
fn listed(file: &mut File) -> io::Result<Option<u64>> {
    let size = file.seek(SeekFrom::End(0))?;
    let start = size.saturating_sub(END_MAX);
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    file.take(END_MAX).read_to_end(&mut tail)?;
    let number = |at: usize, width: usize| {
        let bytes = tail.get(at..at.saturating_add(width))?;
        Some(bytes.iter().rev().fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte)))
    };
    let has_mark = |at: usize, mark: &[u8]| tail.get(at..at.saturating_add(4)) == Some(mark);
    let is_end = |at: &usize| {
        let comment = number(at.saturating_add(20), 2).and_then(|n| usize::try_from(n).ok());
        let end = comment.map(|comment| at.saturating_add(22).saturating_add(comment));
        has_mark(*at, b"PK\x05\x06") && end == Some(tail.len())
    };
    let Some(end) = (0..tail.len()).rev().find(is_end) else { return Ok(None) };
    let count = number(end.saturating_add(10), 2);
    if count != Some(0xffff) {
        return Ok(count);
    }
    // The count of a large archive is in a record of 56 bytes, before the 20 that say where.
    let large = end.checked_sub(76).filter(|at| has_mark(*at, b"PK\x06\x06"));
    Ok(large.and_then(|at| number(at.saturating_add(32), 8)))
}

fn within(path: &Path, file: File, listed: Option<u64>) -> io::Result<Vec<Member>> {
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(io::Error::other)?;
    let named = u64::try_from(archive.len()).unwrap_or(u64::MAX);
    if let Some(listed) = listed.filter(|listed| *listed > named) {
        return Err(refused(format!(
            "an archive of {listed} files that has {named} names: two files have the same one, and \
             only one of them could be read. Have it packed again with a name for each, or unpack \
             it and bring in its files"
        )));
    }
    if archive.len() > MEMBERS {
        return Err(refused(format!("an archive of {} files; at most {MEMBERS}", archive.len())));
    }
    if archive.index_for_name("[Content_Types].xml").is_some() {
        return Err(refused("a workbook or document of Office; save it as CSV".to_owned()));
    }
    let mut members = Vec::new();
    for index in 0..archive.len() {
        let file = archive.by_index_raw(index).map_err(io::Error::other)?;
        let name = String::from_utf8_lossy(file.name_raw()).into_owned();
        let base = name.rsplit(['/', '\\']).next().unwrap_or_default();
        if !file.is_file() || base.is_empty() || base.starts_with('.') || is_shadow(&name) {
            continue;
        }
        if file.encrypted() {
            return Err(refused(format!("{name} is encrypted with a password")));
        }
        let deflated = match file.compression() {
            CompressionMethod::Stored => false,
            CompressionMethod::Deflated => true,
            other => return Err(refused(format!("{name} is compressed by {other}"))),
        };
        let start = file.data_start().ok_or_else(|| refused(format!("{name} has no beginning")))?;
        let place = Place::Within {
            start,
            compressed: file.compressed_size(),
            size: file.size(),
            crc: file.crc32(),
            deflated,
        };
        members.push(Member { name: Some(name), path: path.to_owned(), place });
    }
    if members.is_empty() {
        return Err(refused("an archive without a file".to_owned()));
    }
    Ok(members)
}

/// macOS puts a shadow of each file beside it.
fn is_shadow(name: &str) -> bool {
    name.starts_with("__MACOSX/")
}

fn refused(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn read_some(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match input.read(rest)? {
            0 => break,
            more => read = read.saturating_add(more),
        }
    }
    Ok(read)
}

impl Member {
    /// Its bytes, decompressed.
    ///
    /// # Errors
    /// Where it cannot be opened. What is wrong further in is an error of reading.
    pub fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        let mut file = File::open(&self.path)?;
        match self.place {
            Place::Whole => gunzipped(file),
            Place::Within { start, compressed, size, crc, deflated } => {
                file.seek(SeekFrom::Start(start))?;
                let packed = Counted::new(file.take(compressed));
                let input = packed.count();
                let packed = BufReader::with_capacity(BUFFER, packed);
                let plain: Box<dyn Read + Send> = if deflated {
                    Box::new(Bounded::new(DeflateDecoder::new(packed), input, ROOM))
                } else {
                    Box::new(packed)
                };
                gunzipped(Verified { input: plain, crc: Crc::new(), size, want: crc, read: 0 })
            }
        }
    }
}

/// What is gzip is unpacked, everything else passes.
fn gunzipped(mut input: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut magic = [0_u8; 2];
    let read = read_some(&mut input, &mut magic)?;
    let whole = io::Cursor::new(magic.get(..read).unwrap_or_default().to_vec()).chain(input);
    if magic != [0x1f, 0x8b] {
        return Ok(Box::new(whole));
    }
    let packed = Counted::new(whole);
    let count = packed.count();
    let plain = Worded(Gzip::new(BufReader::with_capacity(BUFFER, packed)));
    Ok(Box::new(Bounded::new(plain, count, ROOM)))
}

/// The members of a gzip file, one behind the other. Zeros behind the last one fill a block of the
/// tape or disk that it was on, and are passed over, as gzip does it.
struct Gzip<R> {
    /// None only while one makes room for the next.
    member: Option<GzDecoder<R>>,
    is_padded: bool,
}

impl<R: BufRead> Gzip<R> {
    fn new(input: R) -> Self {
        Self { member: Some(GzDecoder::new(input)), is_padded: false }
    }

    /// Behind a member: passes over zeros. Whether nothing else stands there.
    fn is_over(&mut self) -> io::Result<bool> {
        let Some(member) = &mut self.member else { return Ok(true) };
        let input = member.get_mut();
        loop {
            let ahead = input.fill_buf()?;
            let zeros = ahead.iter().take_while(|byte| **byte == 0).count();
            let is_other = zeros < ahead.len();
            self.is_padded |= zeros > 0;
            match () {
                () if is_other && self.is_padded => {
                    let text = "something else than zeros behind them";
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
                }
                () if is_other => return Ok(false),
                () if zeros == 0 => return Ok(true),
                () => input.consume(zeros),
            }
        }
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(member) = &mut self.member else { return Ok(0) };
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() || self.is_over()? {
                return Ok(read);
            }
            self.member = self.member.take().map(|member| GzDecoder::new(member.into_inner()));
        }
    }
}

/// Says what is wrong with a gzip file in words that tell what to do.
struct Worded<R>(R);

impl<R: Read> Read for Worded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => refused(
                "the gzip file was cut, or something that is no gzip stands behind it: fetch it \
                 again, or ask the sender for it"
                    .to_owned(),
            ),
            // Our own bounds, of an archive around it, say what they say.
            io::ErrorKind::InvalidInput => refused(
                "the gzip file was changed or damaged on its way, or something that is no gzip \
                 stands behind it: fetch it again, or ask the sender for it"
                    .to_owned(),
            ),
            _other => error,
        })
    }
}

/// Counts what is read.
struct Counted<R> {
    input: R,
    count: Arc<AtomicU64>,
}

impl<R> Counted<R> {
    fn new(input: R) -> Self {
        Self { input, count: Arc::default() }
    }

    fn count(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.count)
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.count.fetch_add(u64::try_from(read).unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok(read)
    }
}

/// Ends in an error where more comes out than the bounds allow.
struct Bounded<R> {
    input: R,
    packed: Arc<AtomicU64>,
    out: u64,
    room: u64,
}

impl<R> Bounded<R> {
    fn new(input: R, packed: Arc<AtomicU64>, room: u64) -> Self {
        Self { input, packed, out: 0, room }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.out = self.out.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
        let packed = self.packed.load(Ordering::Relaxed);
        let allowed = packed.saturating_mul(RATIO).saturating_add(self.room).min(MOST);
        if self.out > allowed {
            return Err(refused(format!(
                "{packed} compressed bytes hold more than {allowed}: this is no settlement file"
            )));
        }
        Ok(read)
    }
}

/// Holds a file of an archive against its size and checksum there.
struct Verified {
    input: Box<dyn Read + Send>,
    crc: Crc,
    size: u64,
    want: u32,
    read: u64,
}

impl Read for Verified {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.crc.update(buffer.get(..read).unwrap_or_default());
        self.read = self.read.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
        let ended = read == 0 && !buffer.is_empty();
        if self.read > self.size
            || (ended && (self.read < self.size || self.crc.sum() != self.want))
        {
            return Err(refused("it is not what its archive says it is".to_owned()));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use zip::write::SimpleFileOptions;

    fn gz(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        for (at, (name, bytes)) in files.iter().enumerate() {
            let method =
                [CompressionMethod::Deflated, CompressionMethod::Stored].into_iter().nth(at % 2);
            let options = SimpleFileOptions::default().compression_method(method.unwrap());
            writer.start_file(*name, options).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn read_all(bytes: &[u8]) -> io::Result<Vec<(Option<String>, Vec<u8>)>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        let mut all = Vec::new();
        for member in members(&path)? {
            let mut plain = Vec::new();
            member.open()?.read_to_end(&mut plain)?;
            all.push((member.name, plain));
        }
        Ok(all)
    }

    #[test]
    fn the_same_bytes_come_out_of_every_wrapping() {
        let text = b":20:x\r\n".repeat(50_000);
        let plain = vec![(None, text.clone())];
        assert_eq!(read_all(&text).unwrap(), plain);
        assert_eq!(read_all(&gz(&text)).unwrap(), plain);
        let twice = [gz(&text[..7]), gz(&text[7..])].concat();
        assert_eq!(read_all(&twice).unwrap(), plain, "gzip files joined");
        for zeros in [1, 2, 10, 511, BUFFER, 2 * BUFFER + 1] {
            let padded = [gz(&text), vec![0; zeros]].concat();
            assert_eq!(read_all(&padded).unwrap(), plain, "{zeros} zeros behind it");
            let padded = [twice.clone(), vec![0; zeros]].concat();
            assert_eq!(read_all(&padded).unwrap(), plain, "{zeros} zeros behind two");
        }
        let packed = gz(&text);
        let archive = zipped(&[
            ("a.sta", text.as_slice()),
            ("b/c.sta.gz", packed.as_slice()),
            ("__MACOSX/._a.sta", b"x".as_slice()),
            (".hidden", b"x".as_slice()),
        ]);
        let want = vec![(Some("a.sta".into()), text.clone()), (Some("b/c.sta.gz".into()), text)];
        assert_eq!(read_all(&archive).unwrap(), want);
        assert_eq!(read_all(b"").unwrap(), vec![(None, Vec::new())]);
    }

    #[test]
    fn what_is_no_file_and_what_holds_none_is_said() {
        let error = members(Path::new("/dev/null")).unwrap_err();
        assert!(error.to_string().contains("a pipe or a device"), "{error}");
        let error = read_all(&zipped(&[])).unwrap_err();
        assert_eq!(error.to_string(), "an archive without a file");
    }

    #[test]
    fn a_bomb_ends_in_an_error_and_not_in_memory() {
        let zeros = vec![0_u8; 4 * 1024 * 1024];
        let bomb = gz(&zeros);
        for (room, is_refused) in [(1024, true), (4 * 1024 * 1024, false)] {
            let packed = Counted::new(io::Cursor::new(bomb.clone()));
            let count = packed.count();
            let mut plain = Bounded::new(Gzip::new(BufReader::new(packed)), count, room);
            let read = io::copy(&mut plain, &mut io::sink());
            let refused = read.is_err_and(|e| e.to_string().contains("no settlement file"));
            assert_eq!(refused, is_refused, "{room}");
        }
    }

    #[test]
    fn two_files_of_one_name_are_never_one() {
        let archive = zipped(&[("a.sta", b"first"), ("b.sta", b"second"), ("c.sta", b"third")]);
        assert_eq!(read_all(&archive).unwrap().len(), 3);
        let mut same = archive;
        for at in 0..same.len() - 5 {
            if same.get(at..at + 5) == Some(b"b.sta".as_slice()) {
                same[at] = b'a';
            }
        }
        let error = read_all(&same).unwrap_err().to_string();
        assert!(error.contains("an archive of 3 files that has 2 names"), "{error}");
    }

    #[test]
    fn a_workbook_is_no_archive_of_files() {
        let workbook = zipped(&[("[Content_Types].xml", b"<x/>"), ("xl/workbook.xml", b"<x/>")]);
        let error = read_all(&workbook).unwrap_err().to_string();
        assert!(error.contains("save it as CSV"), "{error}");
    }

    #[test]
    fn what_is_wrong_with_a_gzip_file_is_said_in_words() {
        let text = b"some text, long enough to be cut ".repeat(100);
        let packed = gz(&text);
        let error = |bytes: &[u8]| read_all(bytes).unwrap_err().to_string();
        let behind = error(&[packed.as_slice(), b"x".as_slice()].concat());
        assert!(behind.contains("something that is no gzip stands behind it"), "{behind}");
        let more = b"a line of text that is longer".as_slice();
        let words = error(&[packed.as_slice(), more].concat());
        assert!(words.contains("something that is no gzip stands behind it"), "{words}");
        assert!(error(&packed[..packed.len() - 3]).contains("was cut"));
        for zeros in [1, 10, 511, BUFFER] {
            let zeros = vec![0; zeros];
            for more in [more, packed.as_slice(), b"x".as_slice()] {
                let padded = error(&[packed.as_slice(), zeros.as_slice(), more].concat());
                assert!(padded.contains("something that is no gzip stands behind it"), "{padded}");
            }
            // What was cut and filled up is no whole member.
            let filled = error(&[&packed[..packed.len() - 8], zeros.as_slice()].concat());
            assert!(filled.contains("was cut") || filled.contains("damaged"), "{filled}");
        }
        let mut changed = packed;
        let at = changed.len() - 6;
        changed[at] ^= 1;
        assert!(error(&changed).contains("changed or damaged"));
    }

    #[test]
    fn what_is_cut_or_changed_is_noticed() {
        let text = b"some text, long enough to be cut ".repeat(100);
        let packed = gz(&text);
        assert!(read_all(&packed[..packed.len() - 3]).is_err());
        let archive = zipped(&[("a", &[]), ("b", &text)]);
        assert!(read_all(&archive[..archive.len() - 30]).is_err());
        let at = archive.windows(4).position(|w| w == b"some").unwrap();
        let mut changed = archive;
        changed[at + 40] ^= 1;
        let error = read_all(&changed).unwrap_err();
        assert!(error.to_string().contains("not what its archive says"), "{error}");
    }
}
