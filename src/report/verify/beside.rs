//! Two files of one name side by side: where the bytes differ first, and which records do.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use csv::ByteRecord;

use crate::report::error::ReportError;

/// The line on which two files differ first, from 1; none: they are the same, byte for byte.
pub fn first_line(own: &Path, anew: &Path) -> Result<Option<u64>, ReportError> {
    let (mut left, mut right) = (open(own)?, open(anew)?);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut line = 0_u64;
    loop {
        line = line.saturating_add(1);
        read_line(&mut left, &mut ours, own)?;
        read_line(&mut right, &mut theirs, anew)?;
        if ours != theirs {
            return Ok(Some(line));
        }
        if ours.is_empty() {
            return Ok(None);
        }
    }
}

fn open(path: &Path) -> Result<BufReader<File>, ReportError> {
    Ok(BufReader::new(File::open(path).map_err(ReportError::file("reading", path))?))
}

/// With the line's end; nothing at the end of the file.
fn read_line(
    reader: &mut BufReader<File>,
    line: &mut Vec<u8>,
    path: &Path,
) -> Result<(), ReportError> {
    line.clear();
    let read = reader.read_until(b'\n', line);
    read.map(|_bytes| ()).map_err(ReportError::file("reading", path))
}

/// A record that stands otherwise in two files, or in one of them alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Where it begins in the first file, from 1.
    pub line: u64,
    /// The first file's cells.
    pub own: Option<Vec<String>>,
    /// The second file's.
    pub anew: Option<Vec<String>>,
}

/// Two CSV files, read record by record.
pub struct Beside {
    own: Side,
    anew: Side,
    line: u64,
}

impl Beside {
    /// From the header on.
    pub fn open(own: &Path, anew: &Path, delimiter: u8) -> Result<Self, ReportError> {
        Ok(Self { own: Side::open(own, delimiter)?, anew: Side::open(anew, delimiter)?, line: 1 })
    }

    /// The next records that differ; none: both files have ended.
    pub fn differing(&mut self) -> Result<Option<Pair>, ReportError> {
        loop {
            let line = self.line;
            let (is_own, is_anew) = (self.own.read()?, self.anew.read()?);
            if !is_own && !is_anew {
                return Ok(None);
            }
            self.line = line.saturating_add(self.own.lines());
            if is_own && is_anew && self.own.record == self.anew.record {
                continue;
            }
            return Ok(Some(Pair {
                line,
                own: is_own.then(|| self.own.cells()),
                anew: is_anew.then(|| self.anew.cells()),
            }));
        }
    }
}

struct Side {
    path: PathBuf,
    reader: csv::Reader<BufReader<File>>,
    record: ByteRecord,
}

impl Side {
    fn open(path: &Path, delimiter: u8) -> Result<Self, ReportError> {
        let reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(open(path)?);
        Ok(Self { path: path.to_path_buf(), reader, record: ByteRecord::new() })
    }

    /// Whether there is one more.
    fn read(&mut self) -> Result<bool, ReportError> {
        let failed = ReportError::file("reading", &self.path);
        self.reader.read_byte_record(&mut self.record).map_err(|error| failed(error.into()))
    }

    /// How many lines the record takes, with those that its texts hold.
    fn lines(&self) -> u64 {
        let breaks = self.record.iter().flatten().filter(|byte| **byte == b'\n').count();
        u64::try_from(breaks).unwrap_or(u64::MAX).saturating_add(1)
    }

    fn cells(&self) -> Vec<String> {
        self.record.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(own: &str, anew: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (left, right) = (folder.path().join("own"), folder.path().join("anew"));
        std::fs::write(&left, own).unwrap();
        std::fs::write(&right, anew).unwrap();
        (folder, left, right)
    }

    #[test]
    fn the_first_line_that_differs_is_named() {
        for (own, anew, want) in [
            ("", "", None),
            ("a\r\nb\r\n", "a\r\nb\r\n", None),
            ("a\r\nb\r\n", "a\r\nc\r\n", Some(2)),
            ("a\r\nb\r\n", "a\nb\r\n", Some(1)),
            ("a\r\nb\r\n", "a\r\nb", Some(2)),
            ("a\r\n", "a\r\nb\r\n", Some(2)),
            ("a\r\nb\r\n", "a\r\n", Some(2)),
        ] {
            let (_folder, left, right) = files(own, anew);
            assert_eq!(first_line(&left, &right).unwrap(), want, "{own:?} {anew:?}");
        }
    }

    #[test]
    fn every_record_that_differs_comes_with_its_line() {
        let own = "n,t\r\n1,a\r\n2,\"two\r\nlines\"\r\n3,c\r\n4,d\r\n";
        let anew = "n,t\r\n1,A\r\n2,\"two\r\nlines\"\r\n3,C\r\n";
        let (_folder, left, right) = files(own, anew);
        let mut beside = Beside::open(&left, &right, b',').unwrap();
        let mut next = || beside.differing().unwrap();
        let cells = |cells: [&str; 2]| Some(cells.map(str::to_owned).to_vec());
        let pair = |line, own, anew| Some(Pair { line, own, anew });
        assert_eq!(next(), pair(2, cells(["1", "a"]), cells(["1", "A"])));
        assert_eq!(next(), pair(5, cells(["3", "c"]), cells(["3", "C"])));
        assert_eq!(next(), pair(6, cells(["4", "d"]), None));
        assert_eq!(next(), None);
        // Notation alone is no record that differs.
        let (_folder, left, right) = files("a,b\r\n", "\"a\",b\n");
        assert_eq!(Beside::open(&left, &right, b',').unwrap().differing().unwrap(), None);
    }
}
