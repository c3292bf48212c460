//! How fast a file of 500 MB is fetched, as a ratio to OpenSSH's own `sftp` on the same file and
//! the same server: on loopback, and over a line whose round trip takes 20 ms.
//!
//!     cargo bench --bench sftp [-- MEGABYTES]
//!
//! Both connect and log in. Ours also hashes the file, holds it against its size, and brings it to
//! the disk. Medians of three, taken in turn.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "a benchmark makes its own files and reports to a person"
)]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tieout::settlement::sources::fetch::{Outcome, fetch};
use tieout::settlement::sources::settings::{Around, Secrets, Source, SourceSettings};
use tieout::settlement::sources::spool::Spool;

/// Each way.
const DELAY: Duration = Duration::from_millis(10);

const NAME: &str = "big.csv";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let megabytes: u64 = words.first().map_or(500, |word| word.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::create_dir(folder.join("srv")).unwrap();
    make(&folder.join("srv").join(NAME), megabytes * 1_000_000);
    let (port, mut sshd) = serve(folder);
    compare("loopback", folder, port, megabytes);
    compare("20 ms round trip", folder, delayed(port), megabytes);
    sshd.kill().unwrap();
    sshd.wait().unwrap();
}

/// Lines that do not compress to nothing.
fn make(path: &Path, size: u64) {
    let mut file = std::io::BufWriter::new(File::create(path).unwrap());
    let mut state = 88_172_645_463_325_252_u64;
    let mut written = 0;
    while written < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let line = format!("{state:020};{:016x};EUR;SETTLED\n", state.rotate_left(17));
        file.write_all(line.as_bytes()).unwrap();
        written += u64::try_from(line.len()).unwrap();
    }
    file.flush().unwrap();
}

fn serve(folder: &Path) -> (u16, Child) {
    for key in ["host", "client"] {
        let mut keygen = Command::new("ssh-keygen");
        let keygen = keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(key));
        assert!(keygen.status().unwrap().success());
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let dir = folder.display();
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {dir}/host\nPidFile none\nUsePAM no\n\
         AuthorizedKeysFile {dir}/client.pub\nStrictModes no\nPermitRootLogin yes\n\
         Subsystem sftp internal-sftp\nForceCommand internal-sftp -d {dir}/srv\n"
    );
    std::fs::write(folder.join("sshd_config"), config).unwrap();
    let sshd = if Path::new("/usr/sbin/sshd").exists() { "/usr/sbin/sshd" } else { "sshd" };
    let mut command = Command::new("setpriv");
    let command = command.args(["--pdeathsig", "TERM", "--", sshd, "-D", "-e", "-f"]);
    let command = command.arg(folder.join("sshd_config"));
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    for _wait in 0..500 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return (port, child);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("sshd does not start; as root it needs /run/sshd");
}

/// A line to a port on which every byte takes its time, however many there are.
fn delayed(port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            for end in [&client, &server] {
                end.set_nodelay(true).unwrap();
            }
            pass(client.try_clone().unwrap(), server.try_clone().unwrap());
            pass(server, client);
        }
    });
    own
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let (give, take) = mpsc::channel::<(Instant, Vec<u8>)>();
    std::thread::spawn(move || {
        let mut buffer = vec![0_u8; 256 * 1024];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            if give.send((Instant::now() + DELAY, buffer[..read].to_vec())).is_err() {
                break;
            }
        }
    });
    std::thread::spawn(move || {
        for (due, bytes) in take {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        // The other end may be gone already.
        let _gone = to.shutdown(std::net::Shutdown::Both);
    });
}

fn compare(what: &str, folder: &Path, port: u16, megabytes: u64) {
    let public = std::fs::read_to_string(folder.join("host.pub")).unwrap();
    let known = format!("[127.0.0.1]:{port} {public}");
    std::fs::write(folder.join("known_hosts"), known).unwrap();
    let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
    let user = user.trim();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _round in 0..3 {
        ours.push(fetched(folder, port, user));
        theirs.push(copied(folder, port, user));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let speed = |took: Duration| u128::from(megabytes) * 1_000 / took.as_millis().max(1);
    println!(
        "{what}: {megabytes} MB, tieout {} MB/s, sftp {} MB/s: {} permille of its speed",
        speed(ours),
        speed(theirs),
        theirs.as_micros() * 1_000 / ours.as_micros().max(1),
    );
}

fn fetched(folder: &Path, port: u16, user: &str) -> Duration {
    let spool = folder.join("spool");
    let source = source(folder, port, user);
    let start = Instant::now();
    let secrets = Secrets::default();
    let haul = fetch(&source, &secrets, &Spool::new(&spool), &|_| false, &mut |_| true);
    let took = start.elapsed();
    let [Outcome::Fetched(file)] = haul.files.as_slice() else { panic!("{haul:?}") };
    assert_eq!(file.bytes, std::fs::metadata(folder.join("srv").join(NAME)).unwrap().len());
    std::fs::remove_dir_all(&spool).unwrap();
    took
}

fn source(folder: &Path, port: u16, user: &str) -> Source {
    let text = format!(
        "name = 'big'\nkind = 'sftp'\nhost = '127.0.0.1'\nport = {port}\nuser = '{user}'\n\
         key_file = 'client'\nready = 'rename'\n"
    );
    let settings: SourceSettings = toml::from_str(&text).unwrap();
    let at = |file: &Path| folder.join(file);
    settings.check(Around { at: &at, zone: chrono_tz::UTC }).unwrap()
}

fn copied(folder: &Path, port: u16, user: &str) -> Duration {
    let to = folder.join("copied");
    let batch = folder.join("batch");
    std::fs::write(&batch, format!("get {NAME} {}\n", to.display())).unwrap();
    let known = format!("UserKnownHostsFile={}", folder.join("known_hosts").display());
    let start = Instant::now();
    let status = Command::new("sftp")
        .args(["-q", "-F", "/dev/null", "-o", "BatchMode=yes", "-o", &known, "-i"])
        .arg(folder.join("client"))
        .args(["-P", &port.to_string(), "-b"])
        .arg(&batch)
        .arg(format!("{user}@127.0.0.1"))
        .stdout(Stdio::null())
        .status()
        .unwrap();
    let took = start.elapsed();
    assert!(status.success());
    std::fs::remove_file(&to).unwrap();
    took
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
