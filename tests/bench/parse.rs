//! How fast settlement files are parsed, as a ratio to the bare reader of the same file, and how
//! much memory that takes at one and at ten million lines.
//!
//!     cargo bench --bench parse [-- ENTRIES]
//!
//! The peer does nothing but read: every event of quick-xml, every record of csv, every line. Ours
//! reads, adds up and checks. Medians of three. Each memory figure is of a process of its own.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark makes its own files and reports to a person"
)]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use tieout::settlement::ledger::{State, inspect};

const FORMATS: [&str; 6] = ["camt.053", "stripe", "bank_csv", "mt940", "bai2", "nacha"];

/// Lines of the two memory figures.
const MEMORY: [u64; 2] = [1_000_000, 10_000_000];

/// What a child process is told by.
const CHILD: &str = "--memory-of";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [flag, format, entries] = words.as_slice()
        && flag == CHILD
    {
        memory_of(format, entries.parse().unwrap());
        return;
    }
    let entries = words.first().map_or(200_000, |word| word.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let path = folder.path().join(format);
        let mut file = File::create(&path).unwrap();
        std::io::copy(&mut Made::new(format, entries), &mut file).unwrap();
        file.flush().unwrap();
        speed(format, &path, entries);
        std::fs::remove_file(&path).unwrap();
    }
    for format in FORMATS {
        let peaks = MEMORY.map(|lines| child(format, lines));
        let [small, large] = peaks;
        println!(
            "{format}: peak memory {small} KiB at 1M lines, {large} KiB at 10M lines: {} permille",
            large * 1_000 / small
        );
    }
}

fn speed(format: &str, path: &Path, entries: u64) {
    let size = std::fs::metadata(path).unwrap().len();
    let ours = median(|| {
        let found = inspect(Box::new(File::open(path).unwrap()), None, None).unwrap();
        assert_eq!(found.state, State::Ok, "{format}: {:?}", found.sums.problems);
        assert_eq!(found.sums.lines, entries, "{format}");
    });
    let bare = median(|| match format {
        "camt.053" => bare_xml(path),
        "stripe" => bare_csv(path, b','),
        "bank_csv" => bare_csv(path, b';'),
        _lines => bare_lines(path),
    });
    let speed = |took: Duration| u128::from(size) * 1_000 / 1_048_576 / took.as_millis().max(1);
    println!(
        "{format}: {} MiB, {} MiB/s, bare reader {} MiB/s: ratio 0.{:03}",
        size / 1_048_576,
        speed(ours),
        speed(bare),
        bare.as_micros() * 1_000 / ours.as_micros().max(1),
    );
}

fn median(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..3)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[1]
}

fn bare_xml(path: &Path) {
    let mut reader = quick_xml::Reader::from_reader(BufReader::new(File::open(path).unwrap()));
    let mut buffer = Vec::new();
    while reader.read_event_into(&mut buffer).unwrap() != quick_xml::events::Event::Eof {
        buffer.clear();
    }
}

fn bare_csv(path: &Path, delimiter: u8) {
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_path(path).unwrap();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).unwrap() {}
}

fn bare_lines(path: &Path) {
    let mut reader = BufReader::new(File::open(path).unwrap());
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap() > 0 {
        line.clear();
    }
}

fn child(format: &str, lines: u64) -> u64 {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let output = command.args([CHILD, format, &lines.to_string()]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

fn memory_of(format: &str, lines: u64) {
    // The generator says its format by its text, so nothing has to be held for it.
    let found = inspect(Box::new(Made::new(format, lines)), None, None).unwrap();
    assert_eq!((found.state, found.sums.lines), (State::Ok, lines));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    println!("{}", peak.trim().trim_end_matches("kB").trim());
}

/// A file that is made while it is read.
struct Made {
    format: String,
    entries: u64,
    next: u64,
    piece: Vec<u8>,
    from: usize,
}

impl Made {
    fn new(format: &str, entries: u64) -> Self {
        let piece = head(format, entries).into_bytes();
        Self { format: format.to_owned(), entries, next: 0, piece, from: 0 }
    }
}

impl Read for Made {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.from == self.piece.len() {
            self.from = 0;
            self.piece.clear();
            if self.next < self.entries {
                for _entry in 0..100.min(self.entries - self.next) {
                    self.next += 1;
                    self.piece.extend(entry(&self.format, self.next).as_bytes());
                }
            } else if self.next == self.entries {
                self.next += 1;
                self.piece = tail(&self.format, self.entries).into_bytes();
            }
        }
        let mut rest = &self.piece[self.from..];
        let read = rest.read(buffer)?;
        self.from += read;
        Ok(read)
    }
}

/// Every entry is a credit of 12.34.
const MINOR: u64 = 1_234;

fn amount(minor: u64) -> String {
    format!("{}.{:02}", minor / 100, minor % 100)
}

fn head(format: &str, entries: u64) -> String {
    let closing = amount(entries * MINOR);
    let balance = |kind: &str, amount: &str| {
        format!(
            "<Bal><Tp><CdOrPrtry><Cd>{kind}</Cd></CdOrPrtry></Tp><Amt Ccy=\"EUR\">{amount}</Amt>\
             <CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-11-19</Dt></Dt></Bal>\n"
        )
    };
    match format {
        "camt.053" => format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.053.001.08\"><BkToCstmrStmt>\n\
             <GrpHdr><MsgId>M</MsgId></GrpHdr><Stmt><Id>S</Id><Acct><Id><IBAN>DE1</IBAN></Id>\
             <Ccy>EUR</Ccy></Acct>\n{}{}",
            balance("OPBD", "0.00"),
            balance("CLBD", &closing)
        ),
        "stripe" => "automatic_payout_id,automatic_payout_effective_at,balance_transaction_id,\
                     created_utc,available_on_utc,currency,gross,fee,net,reporting_category,\
                     source_id,description,customer_facing_amount,customer_facing_currency,\
                     payment_intent_id,charge_id\n"
            .to_owned(),
        "bank_csv" => "Buchungstag;Wertstellung;Auftraggeber;Buchungstext;Verwendungszweck;IBAN;\
                       Betrag;Saldo;Währung\n"
            .to_owned(),
        "mt940" => ":20:X\n:25:10020030/1234567\n:28C:1\n:60F:C261118EUR0,\n".to_owned(),
        "bai2" => {
            "01,A,B,261119,0200,1,,,2/\n02,A,B,1,261118,2400,USD,2/\n03,1,,010,0,,/\n".to_owned()
        }
        _nacha => {
            let first = "101 031001234 1220999992611190200A094101BANK";
            format!("{first:<94}\n{}", batch_begin(1))
        }
    }
}

fn entry(format: &str, number: u64) -> String {
    match format {
        "camt.053" => format!(
            "<Ntry>\n <NtryRef>{number}</NtryRef>\n <Amt Ccy=\"EUR\">12.34</Amt>\n \
             <CdtDbtInd>CRDT</CdtDbtInd>\n <Sts><Cd>BOOK</Cd></Sts>\n \
             <BookgDt><Dt>2026-11-19</Dt></BookgDt>\n <ValDt><Dt>2026-11-19</Dt></ValDt>\n \
             <AcctSvcrRef>2026111900000{number}</AcctSvcrRef>\n <BkTxCd><Domn><Cd>PMNT</Cd><Fmly>\
             <Cd>RCDT</Cd><SubFmlyCd>ESCT</SubFmlyCd></Fmly></Domn></BkTxCd>\n \
             <NtryDtls><TxDtls>\n  <Refs><EndToEndId>ORDER-{number}</EndToEndId></Refs>\n  \
             <Amt Ccy=\"EUR\">12.34</Amt>\n  <CdtDbtInd>CRDT</CdtDbtInd>\n  <RltdPties>\
             <Dbtr><Pty><Nm>Erika Muster</Nm></Pty></Dbtr><DbtrAcct><Id>\
             <IBAN>DE02120300000000202051</IBAN></Id></DbtrAcct></RltdPties>\n  \
             <RmtInf><Ustrd>Invoice {number} &amp; thanks</Ustrd></RmtInf>\n \
             </TxDtls></NtryDtls>\n</Ntry>\n"
        ),
        "stripe" => format!(
            "po_1,2026-11-19 00:00:00,txn_{number},2026-11-18 10:00:00,2026-11-19 00:00:00,eur,\
             12.34,0.44,11.90,charge,ch_{number},Order {number},12.34,eur,pi_{number},ch_{number}\n"
        ),
        "bank_csv" => format!(
            "19.11.2026;19.11.2026;Erika Muster;GUTSCHRIFT;Invoice {number} EREF+ORDER-{number};\
             DE02120300000000202051;12,34;{};EUR\n",
            amount(number * MINOR).replace('.', ",")
        ),
        "mt940" => format!(
            ":61:2611191119C12,34NTRFNONREF//B{number}\n:86:166?00GUTSCHRIFT?109251?20EREF+ORDER-\
             {number}?21MREF+M-1\n?22SVWZ+Invoice {number}?30BANKDEFF?31DE02120300000000202051\
             ?32ERIKA MUSTER\n"
        ),
        "bai2" => {
            format!("16,165,{MINOR},Z,B{number},C{number},ACH CREDIT\n88,EREF: ORDER-{number}\n")
        }
        _nacha => {
            let ended = number / BATCH;
            let next = (number > 1 && number % BATCH == 1)
                .then(|| batch_end(BATCH, ended) + &batch_begin(ended + 1));
            format!(
                "{}622031001230111              {MINOR:010}ORDER-{number:<9}\
                 ERIKA MUSTER            003100123{:07}\n",
                next.unwrap_or_default(),
                number % 10_000_000
            )
        }
    }
}

fn tail(format: &str, entries: u64) -> String {
    let sum = entries * MINOR;
    match format {
        "camt.053" => "</Stmt></BkToCstmrStmt></Document>\n".to_owned(),
        "stripe" | "bank_csv" => String::new(),
        "mt940" => format!(":62F:C261119EUR{}\n-\n", amount(sum).replace('.', ",")),
        "bai2" => {
            let records = entries * 2;
            format!(
                "49,{sum},{}/\n98,{sum},1,{}/\n99,{sum},1,{}/\n",
                records + 2,
                records + 4,
                records + 6
            )
        }
        _nacha => {
            let hash = entries * BANK % 10_000_000_000;
            let batches = entries.div_ceil(BATCH);
            // Six digits: a larger file has no true block count, and ours only warns of it.
            let blocks = (entries + batches * 2 + 2).div_ceil(10) % 1_000_000;
            let last = batch_end(entries - (batches - 1) * BATCH, batches);
            format!("{last}9{batches:06}{blocks:06}{entries:08}{hash:010}{:012}{sum:012}\n", 0)
        }
    }
}

/// The receiving bank of every ACH entry.
const BANK: u64 = 3_100_123;

/// So many entries in a batch: its control counts to six digits.
const BATCH: u64 = 100_000;

fn batch_begin(number: u64) -> String {
    format!(
        "5200ACME CORP                           1234567890PPDPAYMENTS        261119   \
         103100123{number:07}\n"
    )
}

fn batch_end(entries: u64, number: u64) -> String {
    let (hash, sum) = (entries * BANK % 10_000_000_000, entries * MINOR);
    format!("8200{entries:06}{hash:010}{:012}{sum:012}1234567890{:25}03100123{number:07}\n", 0, "")
}
