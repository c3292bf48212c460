//! Sorting more records than memory should hold: sorted runs on the disk, merged at the end.
//!
//! The journal comes in the order of its writers, and a report is sorted by row, the same on
//! every database and whatever its collation. Memory stays at the budget; the spilled runs stand
//! in the report's own unfinished directory and go with it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::report::error::ReportError;

/// Bytes held before they are spilled: a million rows of half a kibibyte make some thirty runs.
pub const BUDGET: usize = 16 * 1024 * 1024;

/// Runs merged at once, so that open files stay few.
const MAX_RUNS: usize = 64;

/// What one held record costs besides its bytes.
const OVERHEAD: usize = 64;

type Pair = (Vec<u8>, Vec<u8>);

/// Takes records in any order.
pub struct Sorter {
    folder: PathBuf,
    name: &'static str,
    budget: usize,
    held: Vec<Pair>,
    held_bytes: usize,
    runs: Vec<PathBuf>,
    made: usize,
}

/// Gives them back in the order of their keys.
pub struct Sorted {
    heap: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    heads: Vec<Option<Vec<u8>>>,
    sources: Vec<RunReader>,
}

enum RunReader {
    Held(std::vec::IntoIter<Pair>),
    Spilled(PathBuf, BufReader<File>),
}

impl Sorter {
    /// Spills into `folder` under `name` whatever is over `budget` bytes.
    pub fn new(folder: &Path, name: &'static str, budget: usize) -> Self {
        Self {
            folder: folder.to_path_buf(),
            name,
            budget,
            held: Vec::new(),
            held_bytes: 0,
            runs: Vec::new(),
            made: 0,
        }
    }

    /// Takes one record. Equal keys come back in no promised order, so keys should be unique.
    pub fn push(&mut self, key: Vec<u8>, record: Vec<u8>) -> Result<(), ReportError> {
        let bytes = key.len().saturating_add(record.len()).saturating_add(OVERHEAD);
        self.held_bytes = self.held_bytes.saturating_add(bytes);
        self.held.push((key, record));
        if self.held_bytes > self.budget { self.spill() } else { Ok(()) }
    }

    /// Ends the taking.
    pub fn finish(mut self) -> Result<Sorted, ReportError> {
        self.held.sort_unstable();
        let mut sources = open_all(&self.runs)?;
        sources.push(RunReader::Held(std::mem::take(&mut self.held).into_iter()));
        Sorted::new(sources)
    }

    fn spill(&mut self) -> Result<(), ReportError> {
        self.held.sort_unstable();
        let held = std::mem::take(&mut self.held);
        self.held_bytes = 0;
        let run = self.write_run(held.into_iter().map(Ok))?;
        self.runs.push(run);
        if self.runs.len() < MAX_RUNS {
            return Ok(());
        }
        let old = std::mem::take(&mut self.runs);
        let merged = Sorted::new(open_all(&old)?)?;
        let run = self.write_run(merged)?;
        self.runs.push(run);
        Ok(())
    }

    fn write_run(
        &mut self,
        pairs: impl Iterator<Item = Result<Pair, ReportError>>,
    ) -> Result<PathBuf, ReportError> {
        let path = self.folder.join(format!("{}.{}.sort", self.name, self.made));
        self.made = self.made.saturating_add(1);
        let failed = || ReportError::file("writing", &path);
        let file = File::create_new(&path).map_err(failed())?;
        let mut out = BufWriter::new(file);
        for pair in pairs {
            let (key, record) = pair?;
            for bytes in [key, record] {
                let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                out.write_all(&length.to_le_bytes()).map_err(failed())?;
                out.write_all(&bytes).map_err(failed())?;
            }
        }
        out.flush().map_err(failed())?;
        Ok(path)
    }
}

impl Sorted {
    fn new(sources: Vec<RunReader>) -> Result<Self, ReportError> {
        let heads = sources.iter().map(|_| None).collect();
        let mut sorted = Self { heap: BinaryHeap::new(), heads, sources };
        for index in 0..sorted.sources.len() {
            sorted.refill(index)?;
        }
        Ok(sorted)
    }

    fn refill(&mut self, index: usize) -> Result<(), ReportError> {
        let Some(source) = self.sources.get_mut(index) else { return Ok(()) };
        if let Some((key, record)) = source.read()? {
            self.heap.push(Reverse((key, index)));
            if let Some(head) = self.heads.get_mut(index) {
                *head = Some(record);
            }
        }
        Ok(())
    }

    fn pop(&mut self) -> Result<Option<Pair>, ReportError> {
        let Some(Reverse((key, index))) = self.heap.pop() else { return Ok(None) };
        let record = self.heads.get_mut(index).and_then(Option::take).unwrap_or_default();
        self.refill(index)?;
        Ok(Some((key, record)))
    }
}

impl Drop for Sorted {
    fn drop(&mut self) {
        for source in &self.sources {
            if let RunReader::Spilled(path, _) = source {
                // Where it fails, the unfinished report's directory is removed with it.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

impl Iterator for Sorted {
    type Item = Result<Pair, ReportError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.pop().transpose()
    }
}

impl RunReader {
    fn read(&mut self) -> Result<Option<Pair>, ReportError> {
        match self {
            Self::Held(pairs) => Ok(pairs.next()),
            Self::Spilled(path, file) => {
                read_pair(file).map_err(ReportError::file("reading", path))
            }
        }
    }
}

fn open_all(paths: &[PathBuf]) -> Result<Vec<RunReader>, ReportError> {
    let open = |path: &PathBuf| {
        let file = File::open(path).map_err(ReportError::file("reading", path))?;
        Ok(RunReader::Spilled(path.clone(), BufReader::new(file)))
    };
    paths.iter().map(open).collect()
}

fn read_pair(file: &mut BufReader<File>) -> std::io::Result<Option<Pair>> {
    let mut length = [0; 8];
    match file.read(&mut length[..1])? {
        0 => return Ok(None),
        _one => file.read_exact(&mut length[1..])?,
    }
    let key = read_bytes(file, u64::from_le_bytes(length))?;
    file.read_exact(&mut length)?;
    let record = read_bytes(file, u64::from_le_bytes(length))?;
    Ok(Some((key, record)))
}

fn read_bytes(file: &mut BufReader<File>, length: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = file.take(length).read_to_end(&mut bytes)?;
    if u64::try_from(read).ok() == Some(length) {
        Ok(bytes)
    } else {
        Err(std::io::ErrorKind::UnexpectedEof.into())
    }
}

/// Joins texts to one key that sorts as the tuple of them does, byte by byte. No text can run
/// into the next: a zero byte ends each, and one inside is marked by 0xFF, which UTF-8 lacks.
pub fn tuple_key(texts: &[&str], number: i64) -> Vec<u8> {
    let mut key = Vec::new();
    for text in texts {
        for byte in text.bytes() {
            key.push(byte);
            if byte == 0 {
                key.push(0xFF);
            }
        }
        key.push(0);
    }
    // Flipping the sign's bit puts negative numbers first.
    let mut number = number.to_be_bytes();
    number[0] ^= 0x80;
    key.extend_from_slice(&number);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(count: u32, budget: usize) -> Vec<u32> {
        let folder = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(folder.path(), "t", budget);
        for n in 0..count {
            let shuffled = n.wrapping_mul(2_654_435_761);
            sorter.push(shuffled.to_be_bytes().to_vec(), vec![7; (n % 50) as usize]).unwrap();
        }
        let pairs = sorter.finish().unwrap();
        let keys =
            pairs.map(|pair| u32::from_be_bytes(pair.unwrap().0.try_into().unwrap())).collect();
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 0, "spilled runs are removed once they are merged");
        keys
    }

    #[test]
    fn spilled_or_not_the_order_is_the_same() {
        let in_memory = sorted(5_000, usize::MAX);
        assert!(in_memory.is_sorted());
        assert_eq!(in_memory.len(), 5_000);
        assert_eq!(sorted(5_000, 10_000), in_memory, "some thirty runs");
        assert_eq!(sorted(5_000, 2_000), in_memory, "more runs than are merged at once");
        assert_eq!(sorted(0, 10), Vec::<u32>::new());
    }

    #[test]
    fn keys_sort_as_tuples_whatever_stands_in_them() {
        let keys = [
            tuple_key(&["", "z"], 1),
            tuple_key(&["a", "b"], -1),
            tuple_key(&["a", "b"], 2),
            tuple_key(&["a", "b"], 10),
            tuple_key(&["a", "b\0"], 1),
            tuple_key(&["a", "b\0c"], 1),
            tuple_key(&["a", "ba"], 1),
            tuple_key(&["a\0", ""], 1),
            tuple_key(&["ab", ""], 1),
            tuple_key(&["é", ""], 1),
        ];
        assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
    }
}
