//! A bad line, a bad server, a file that changes under the reader, a full disk: nothing half comes
//! out, nobody waits without end, and the next run has all.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use tieout::exit::Exit;
use tieout::settlement::sources::SourceError;
use tieout::settlement::sources::fetch::{Haul, fetch};
use tieout::settlement::sources::settings::{Secrets, Source};
use tieout::settlement::sources::spool::Spool;

use super::proxy::{Fault, Proxy};
use super::sshd::Sshd;
use super::{came, fetch_all, names, told};
use crate::support::ports::Refusing;

const LARGE: usize = 8 * 1024 * 1024;

/// A source at the server through another port.
fn through(sshd: &Sshd, port: u16, more: &str) -> Source {
    super::source(&sshd.path(""), &sshd.section_at(port, more))
}

/// Does something that must not wait without end.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(work()));
    told.recv_timeout(Duration::from_secs(50)).expect("it waits without end")
}

#[track_caller]
fn is_unreachable(haul: &Haul, says: &str) {
    match &haul.ended {
        Some(error @ SourceError::Unreachable { .. }) => {
            assert_eq!(error.exit(), Exit::Partial);
            assert!(error.to_string().contains(says), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert!(came(haul).is_empty());
}

#[track_caller]
fn the_next_run_has_it(sshd: &Sshd, size: usize) {
    let haul = fetch_all(&sshd.source(""), &sshd.spool());
    assert_eq!(told(&haul), ["fetched a.xml"], "{}", sshd.log());
    assert_eq!(came(&haul)[0].bytes, size as u64);
    assert_eq!(names(&sshd.path("spool")).len(), 1);
}

#[test]
fn a_server_that_stops_answering_is_given_up_wherever_it_stops() {
    let sshd = Sshd::plain();
    sshd.put("a.xml", vec![b'x'; LARGE]);
    // From the greeting over the key exchange and the login to the reading, side by side.
    let limits = (0..4_500).step_by(250).chain([1_000_000]);
    let bad: Vec<_> = limits
        .map(|limit| {
            let proxy = Proxy::to(sshd.port, Fault::FreezeAfter(limit));
            let source = through(&sshd, proxy.port, "timeout = '8s'\nconnect_timeout = '8s'\n");
            (limit, proxy, source)
        })
        .collect();
    let waiting: Vec<_> = bad
        .into_iter()
        .map(|(limit, proxy, source)| {
            let spool = Spool::new(sshd.path(&format!("spool-{limit}")));
            std::thread::spawn(move || {
                let haul = in_time(move || fetch_all(&source, &spool));
                (limit, haul, proxy.connections.load(Ordering::SeqCst))
            })
        })
        .collect();
    let mut stops = Vec::new();
    for thread in waiting {
        let (limit, haul, connections) = thread.join().unwrap();
        is_unreachable(&haul, "it did not answer in time");
        assert_eq!(connections, 1, "{limit}");
        assert_eq!(names(&sshd.path(&format!("spool-{limit}"))), [""; 0], "nothing half is left");
        let error = haul.ended.unwrap().to_string();
        stops.push(error.split(' ').next().unwrap().to_owned());
    }
    for step in ["greeting", "logging", "reading"] {
        assert!(stops.iter().any(|stop| stop == step), "{step} never stopped: {stops:?}");
    }
    the_next_run_has_it(&sshd, LARGE);
}

#[test]
fn a_line_that_is_cut_leaves_nothing_half() {
    let sshd = Sshd::plain();
    sshd.put("a.xml", vec![b'x'; LARGE]);
    for limit in [0, 21, 600, 2_500, 1_000_000, 5_000_000] {
        let proxy = Proxy::to(sshd.port, Fault::CutAfter(limit));
        let source = through(&sshd, proxy.port, "");
        let haul = fetch_all(&source, &sshd.spool());
        is_unreachable(&haul, "127.0.0.1");
        assert_eq!(names(&sshd.path("spool")), [""; 0], "{limit}: {:?}", haul.ended);
    }
    the_next_run_has_it(&sshd, LARGE);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_there_and_nobody_who_accepts() {
    let sshd = Sshd::plain();
    let gone = Refusing::new();
    let source = through(&sshd, gone.port(), "");
    is_unreachable(&fetch_all(&source, &sshd.spool()), "connecting to 127.0.0.1");
    // A queue that is full: what comes next is neither taken nor refused.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let full = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    for _client in 0..8 {
        waiting.push(std::net::TcpStream::connect_timeout(&full, Duration::from_millis(100)));
    }
    assert!(waiting.iter().any(Result::is_err), "the queue takes them all");
    let source = through(&sshd, full.port(), "connect_timeout = '1s'\n");
    let spool = sshd.spool();
    let haul = in_time(move || fetch_all(&source, &spool));
    is_unreachable(&haul, "connecting to 127.0.0.1");
    let text = sshd.section("").replace("'127.0.0.1'", "'no-such-host.invalid'");
    let nowhere = super::source(&sshd.path(""), &text);
    let spool = sshd.spool();
    is_unreachable(&in_time(move || fetch_all(&nowhere, &spool)), "its name c");
}

#[test]
fn stopping_does_not_wait_for_a_dead_server() {
    let sshd = Sshd::plain();
    sshd.put("a.xml", vec![b'x'; LARGE]);
    let proxy = Proxy::to(sshd.port, Fault::FreezeAfter(u64::MAX));
    // The server may take ten minutes; who is told to stop does not.
    let source = through(&sshd, proxy.port, "timeout = '10min'\n");
    let spool = sshd.spool();
    let frozen = std::sync::Arc::clone(&proxy.frozen);
    let haul = in_time(move || {
        fetch(&source, &Secrets::default(), &spool, &|_| false, &mut |progress| {
            let some_came = progress.bytes > 0;
            frozen.store(some_came, Ordering::SeqCst);
            !some_came
        })
    });
    assert!(matches!(haul.ended, Some(SourceError::Stopped { .. })), "{:?}", haul.ended);
    assert_eq!(names(&sshd.path("spool")), [""; 0]);
}

/// Fetches while something is done to the file, once some of it has come.
fn while_reading(sshd: &Sshd, source: &Source, mut what: impl FnMut() + Send) -> Haul {
    let mut done = false;
    fetch(source, &Secrets::default(), &sshd.spool(), &|_| false, &mut |progress| {
        if progress.bytes > 0 && !done {
            done = true;
            what();
        }
        true
    })
}

#[test]
fn a_file_that_changes_while_it_is_read_is_not_taken() {
    let sshd = Sshd::plain();
    let path = sshd.at("a.xml");
    let folder = "name = 'inbox'\nkind = 'folder'\npath = 'srv'\nready = 'rename'\n";
    let folder = super::source(&sshd.path(""), folder);
    for source in [sshd.source(""), folder] {
        for (name, change) in [("grown", LARGE + 9), ("cut", LARGE / 4), ("emptied", 0)] {
            sshd.put("a.xml", vec![b'x'; LARGE]);
            let haul = while_reading(&sshd, &source, || {
                let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
                file.set_len(change as u64).unwrap();
            });
            let told = told(&haul);
            assert!(told[0].starts_with("failed a.xml: a.xml changed while"), "{name}: {told:?}");
            assert_eq!(names(&sshd.path("spool")), [""; 0], "{name}");
        }
        sshd.put("a.xml", vec![b'x'; LARGE]);
        let replaced = while_reading(&sshd, &source, || {
            sshd.put("new", vec![b'y'; LARGE - 1]);
            std::fs::rename(sshd.at("new"), &path).unwrap();
        });
        assert!(told(&replaced)[0].contains("bytes before and"), "{:?}", told(&replaced));
        sshd.put("a.xml", vec![b'x'; LARGE]);
        let removed = while_reading(&sshd, &source, || std::fs::remove_file(&path).unwrap());
        assert!(told(&removed)[0].starts_with("failed a.xml: looking at"), "{:?}", told(&removed));
        assert_eq!(names(&sshd.path("spool")), [""; 0]);
    }
}

#[test]
fn one_file_that_may_not_be_read_keeps_no_other_back() {
    let sshd = Sshd::plain();
    for name in ["a.xml", "b.xml", "c.xml"] {
        sshd.put(name, name);
    }
    let closed = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(sshd.at("b.xml"), closed).unwrap();
    let haul = fetch_all(&sshd.source(""), &sshd.spool());
    let told = told(&haul);
    assert_eq!((told[0].as_str(), told[2].as_str()), ("fetched a.xml", "fetched c.xml"));
    assert!(told[1].starts_with("failed b.xml: opening ./b.xml"), "{told:?}");
    assert!(told[1].ends_with("permission denied"), "{told:?}");
    let none = fetch_all(&sshd.source("path = 'nowhere'\n"), &sshd.spool()).ended.unwrap();
    assert!(matches!(none, SourceError::Gone { .. }), "{none:?}");
    assert!(none.to_string().contains("listing nowhere"), "{none}");
}

#[test]
fn a_full_disk_is_told_and_nothing_half_is_named() {
    let sshd = Sshd::plain();
    sshd.put("a.xml", vec![b'x'; LARGE]);
    let spool = sshd.path("spool");
    std::fs::create_dir(&spool).unwrap();
    // What is written to it is refused as by a disk that is full.
    let part = spool.join(format!("bank-a.{}.part", std::process::id()));
    symlink("/dev/full", &part).unwrap();
    let haul = fetch_all(&sshd.source(""), &sshd.spool());
    let error = haul.ended.unwrap();
    assert!(matches!(error, SourceError::Local { .. }), "{error:?}");
    assert!(error.to_string().contains("No space left"), "{error}");
    assert!(came(&fetch_all(&sshd.source("glob = ['none']\n"), &sshd.spool())).is_empty());
    assert_eq!(names(&spool), [""; 0]);
    the_next_run_has_it(&sshd, LARGE);
}

#[test]
fn what_a_killed_process_left_is_swept_and_a_living_ones_is_not() {
    let sshd = Sshd::plain();
    sshd.put("a.xml", "<a/>");
    let spool = sshd.path("spool");
    std::fs::create_dir(&spool).unwrap();
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    std::fs::write(spool.join(format!("bank-a.{}.part", gone.id())), "half").unwrap();
    std::fs::write(spool.join("bank-a.1.part"), "of a process that lives").unwrap();
    std::fs::write(spool.join("bank-b.999999999.part"), "of another source").unwrap();
    let haul = fetch_all(&sshd.source(""), &sshd.spool());
    assert_eq!(told(&haul), ["fetched a.xml"]);
    let left = names(&spool);
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(left.contains(&"bank-a.1.part".to_owned()), "{left:?}");
}
