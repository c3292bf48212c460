//! Whether a server is the trusted one: known_hosts in every form that was seen to fool others,
//! fingerprints, keys that were changed, added or revoked.

use std::process::Command;

use tieout::exit::Exit;
use tieout::settlement::sources::known_hosts::KnownHosts;
use tieout::settlement::sources::settings::{Place, Server, Source};
use tieout::settlement::sources::trust::{Standing, Trusted, remember};
use tieout::settlement::sources::{Next, SourceError};

use super::sshd::{Setup, Sshd};
use super::{came, fetch_all};

fn server(source: &Source) -> &Server {
    match &source.place {
        Place::Sftp(server) => server,
        Place::Folder(path) => panic!("a folder at {}", path.display()),
    }
}

/// What fetching says of the server: that it is trusted, or why not.
fn verdict(sshd: &Sshd, more: &str) -> Result<(), Next> {
    let haul = fetch_all(&sshd.source(more), &sshd.spool());
    match haul.ended {
        None => {
            assert_eq!(came(&haul).len(), 1, "{}", sshd.log());
            Ok(())
        }
        Some(SourceError::Trust { next, problem }) => {
            assert!(haul.files.is_empty());
            let error = SourceError::Trust { next, problem };
            assert_eq!(error.exit(), Exit::Trust);
            assert!(error.to_string().ends_with("; nothing was read"), "{error}");
            Err(next)
        }
        Some(other) => panic!("{other}\n{}", sshd.log()),
    }
}

/// What OpenSSH's own client says with the same file: whether it goes on to the login.
fn openssh_trusts(sshd: &Sshd, file: &str) -> bool {
    let output = Command::new("sftp")
        .args(["-q", "-b", "/dev/null", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"])
        .args(["-o", &format!("UserKnownHostsFile={}", sshd.path(file).display())])
        .args(["-o", "GlobalKnownHostsFile=/dev/null", "-F", "/dev/null"])
        .args(["-i", &sshd.path("client").display().to_string()])
        .args(["-P", &sshd.port.to_string(), &format!("{}@127.0.0.1", super::sshd::user())])
        .output()
        .unwrap();
    output.status.success()
}

const ALL: [&str; 3] = ["ed25519", "rsa", "ecdsa"];

#[test]
fn known_hosts_is_read_as_openssh_reads_it() {
    let sshd = Sshd::start(Setup { host_keys: &ALL, ..Setup::default() });
    sshd.put("a.xml", "<a/>");
    sshd.keygen("ed25519", "other", "");
    let port = sshd.port;
    let at = format!("[127.0.0.1]:{port}");
    let (ed, rsa, ecdsa) = (sshd.host_key("ed25519"), sshd.host_key("rsa"), sshd.host_key("ecdsa"));
    let other = std::fs::read_to_string(sshd.path("other.pub")).unwrap();
    let wrong = other.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let hashed = {
        std::fs::write(sshd.path("to_hash"), format!("{at} {ed}\n")).unwrap();
        let mut hash = Command::new("ssh-keygen");
        assert!(
            hash.args(["-q", "-H", "-f"]).arg(sshd.path("to_hash")).status().unwrap().success()
        );
        std::fs::read_to_string(sshd.path("to_hash")).unwrap()
    };
    assert!(hashed.starts_with("|1|"), "{hashed}");
    for (text, want) in [
        (format!("{at} {ed}\n"), Ok(())),
        (format!("{at} {rsa}\n"), Ok(())),
        (format!("{at} {ecdsa}\n"), Ok(())),
        (format!("{at} {wrong}\n"), Err(Next::Ask)),
        (format!("{at} {wrong}\n{at} {ed}\n"), Ok(())),
        (hashed, Ok(())),
        (format!("127.0.0.1 {ed}\n"), Ok(())),
        (format!("[127.0.0.*]:{port} {ed}\n"), Ok(())),
        (format!("@revoked {at} {ed}\n"), Err(Next::Replace)),
        (format!("@revoked {at} {ed}\n{at} {ed}\n"), Err(Next::Replace)),
        (format!("@revoked * {ed}\n{at} {rsa}\n"), Ok(())),
        (format!("@cert-authority {at} {wrong}\n{at} {ed}\n"), Ok(())),
        (format!("[other.example]:{port} {ed}\n"), Err(Next::Learn)),
        (String::new(), Err(Next::Learn)),
    ] {
        std::fs::write(sshd.path("known_hosts"), &text).unwrap();
        assert_eq!(verdict(&sshd, ""), want, "{text}");
        assert_eq!(openssh_trusts(&sshd, "known_hosts"), want.is_ok(), "OpenSSH: {text}");
    }
    std::fs::remove_file(sshd.path("known_hosts")).unwrap();
    assert_eq!(verdict(&sshd, ""), Err(Next::Learn), "no file at all");
}

#[test]
fn a_fingerprint_of_any_of_the_servers_keys_does() {
    let sshd = Sshd::start(Setup { host_keys: &ALL, ..Setup::default() });
    sshd.put("a.xml", "<a/>");
    std::fs::remove_file(sshd.path("known_hosts")).unwrap();
    let strange = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    for kind in ALL {
        let own = sshd.fingerprint(kind);
        assert_eq!(verdict(&sshd, &format!("host_key = ['{own}']\n")), Ok(()), "{kind}");
        let two = format!("host_key = ['{strange}', '{own}']\n");
        assert_eq!(verdict(&sshd, &two), Ok(()), "{kind}");
    }
    assert_eq!(verdict(&sshd, &format!("host_key = ['{strange}']\n")), Err(Next::Ask));
    // Where fingerprints are configured, the file trusts nobody; what it revokes stays revoked.
    sshd.trust("known_hosts", &ALL);
    assert_eq!(verdict(&sshd, &format!("host_key = ['{strange}']\n")), Err(Next::Ask));
    let revoked = format!("@revoked * {}\n", sshd.host_key("ed25519"));
    std::fs::write(sshd.path("known_hosts"), revoked).unwrap();
    let own = format!("host_key = ['{}']\n", sshd.fingerprint("ed25519"));
    assert_eq!(verdict(&sshd, &own), Err(Next::Replace));
}

/// The public half of a new key that the server does not hold, as `type base64`.
fn strange(sshd: &Sshd, kind: &str) -> String {
    let name = format!("strange_{kind}");
    sshd.keygen(kind, &name, "");
    let text = std::fs::read_to_string(sshd.path(&format!("{name}.pub"))).unwrap();
    text.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

/// A person confirmed a key beside one that the server gave up: it was refused by the very key that
/// was trusted.
#[test]
fn a_server_is_asked_for_a_trusted_one_of_its_keys() {
    let sshd = Sshd::start(Setup { host_keys: &ALL, ..Setup::default() });
    sshd.put("a.xml", "<a/>");
    let at = format!("[127.0.0.1]:{}", sshd.port);
    let (ed, rsa, ecdsa) = (sshd.host_key("ed25519"), sshd.host_key("rsa"), sshd.host_key("ecdsa"));
    let [no_ed, no_rsa, no_ecdsa] = ["ed25519", "rsa", "ecdsa"].map(|kind| strange(&sshd, kind));
    for (keys, want) in [
        (vec![&no_rsa, &ed], Ok(())),
        (vec![&no_rsa, &no_ed, &ecdsa], Ok(())),
        (vec![&no_ecdsa, &no_ed, &rsa], Ok(())),
        (vec![&no_rsa, &no_ecdsa, &no_ed], Err(Next::Ask)),
    ] {
        let text: String = keys.iter().map(|key| format!("{at} {key}\n")).collect();
        std::fs::write(sshd.path("known_hosts"), &text).unwrap();
        assert_eq!(verdict(&sshd, ""), want, "{text}");
        // A right key counts, whatever else is known: OpenSSH asks for ed25519 first, and for no
        // other where that one is wrong.
        let is_alike = want.is_err() || !keys.contains(&&no_ed);
        assert_eq!(openssh_trusts(&sshd, "known_hosts") == want.is_ok(), is_alike, "{text}");
    }
    let pins = |keys: &[&str]| format!("host_key = ['{}']\n", keys.join("', '"));
    let (own_ed, own_rsa) = (sshd.fingerprint("ed25519"), sshd.fingerprint("rsa"));
    let own_ecdsa = sshd.fingerprint("ecdsa");
    let revoked = format!("@revoked {at} {ed}\n");
    for (text, pins, want) in [
        (revoked.clone(), pins(&[&own_rsa]), Ok(())),
        (revoked.clone(), pins(&[&own_ecdsa]), Ok(())),
        (revoked.clone(), pins(&[&own_ed]), Err(Next::Replace)),
        (format!("{revoked}@revoked {at} {rsa}\n"), pins(&[&own_ed, &own_rsa]), Err(Next::Replace)),
        (format!("{revoked}{at} {no_rsa}\n{at} {ecdsa}\n"), String::new(), Ok(())),
        (format!("{revoked}{at} {ed}\n{at} {no_rsa}\n"), String::new(), Err(Next::Ask)),
    ] {
        std::fs::write(sshd.path("known_hosts"), &text).unwrap();
        assert_eq!(verdict(&sshd, &pins), want, "{pins}{text}");
    }
}

#[test]
fn a_server_without_a_trusted_key_is_told_with_each_that_it_showed() {
    let sshd = Sshd::start(Setup { host_keys: &ALL, ..Setup::default() });
    let (at, ed) = (format!("[127.0.0.1]:{}", sshd.port), sshd.host_key("ed25519"));
    let strange = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let said = |known: &str| {
        std::fs::write(sshd.path("known_hosts"), known).unwrap();
        let source = sshd.source(&format!("host_key = ['{strange}']\n"));
        fetch_all(&source, &sshd.spool()).ended.expect("it is refused").to_string()
    };
    let [ed_shown, ecdsa, rsa] =
        [("ed25519", "ssh-ed25519"), ("ecdsa", "ecdsa-sha2-nistp256"), ("rsa", "ssh-rsa")]
            .map(|(kind, name)| format!("{} ({name})", sshd.fingerprint(kind)));
    let address = format!("127.0.0.1:{}", sshd.port);
    let changed = format!(
        "the host keys of {address} are {ed_shown} and {ecdsa} and {rsa}, and trusted is another: \
         {strange}; either"
    );
    let text = said("");
    assert!(text.starts_with(&changed), "{text}");
    let revoked = format!(
        "the host key of {address} is {ed_shown}, which is revoked; it also shows {ecdsa} and \
         {rsa}, and trusted is another: {strange}; nothing was read"
    );
    assert_eq!(said(&format!("@revoked {at} {ed}\n")), revoked);
}

#[test]
fn what_cannot_be_read_of_known_hosts_trusts_nobody_and_revokes_what_it_may() {
    let sshd = Sshd::plain();
    sshd.put("a.xml", "<a/>");
    let (at, ed) = (format!("[127.0.0.1]:{}", sshd.port), sshd.host_key("ed25519"));
    let right = format!("{at} {ed}\n");
    let cut = &ed[..ed.len() - 4];
    let write = |bytes: &[u8]| std::fs::write(sshd.path("known_hosts"), bytes).unwrap();
    // A comment is in the encoding of whoever wrote it.
    let latin = [b"# M\xfcller\n".as_slice(), right.as_bytes()].concat();
    write(&latin);
    assert_eq!(verdict(&sshd, ""), Ok(()));
    assert!(openssh_trusts(&sshd, "known_hosts"));
    let source = sshd.source("");
    remember(server(&source), b"\0\0\0\x01x", "by mara").unwrap();
    let written = std::fs::read(sshd.path("known_hosts")).unwrap();
    assert!(written.starts_with(&latin), "what stood there stays, byte by byte");
    for (text, want) in [
        (format!("garbage\n{right}"), Ok(())),
        (format!("{at} {cut}\n{right}"), Ok(())),
        (format!("{at} {cut}\n"), Err(Next::Ask)),
        (format!("@revoked other.example {cut}\n{right}"), Ok(())),
        (format!("@revoked {at} {cut}\n{right}"), Err(Next::Mend)),
        (format!("{right}@revoked 127.0.0.1 {cut}\n"), Err(Next::Mend)),
        (format!("@revoked\n{right}"), Err(Next::Mend)),
    ] {
        write(text.as_bytes());
        assert_eq!(verdict(&sshd, ""), want, "{text}");
        let trusted = Trusted::of(server(&source)).unwrap();
        let told = if want == Err(Next::Mend) { 0 } else { 1 };
        assert_eq!(trusted.problems.len(), told, "{text}");
        assert_eq!(trusted.shown().is_err(), want == Err(Next::Mend), "nobody trusts it either");
    }
    let error = fetch_all(&source, &sshd.spool()).ended.unwrap();
    let says = format!("{}:1 may revoke a key of", sshd.path("known_hosts").display());
    assert!(error.to_string().contains(&says), "{error}");
    assert!(error.hint("bank-a").starts_with("mend that line"), "{}", error.hint("bank-a"));
}

#[test]
fn a_changed_key_is_refused_and_an_added_one_is_none() {
    let mut sshd = Sshd::start(Setup { host_keys: &["rsa"], ..Setup::default() });
    sshd.put("a.xml", "<a/>");
    let pinned = format!("host_key = ['{}']\n", sshd.fingerprint("rsa"));
    assert_eq!(verdict(&sshd, ""), Ok(()));
    // The bank adds a key of another type, which clients prefer.
    sshd.restart(Setup { host_keys: &["rsa", "ed25519"], ..Setup::default() });
    assert_eq!(verdict(&sshd, ""), Ok(()));
    assert_eq!(verdict(&sshd, &pinned), Ok(()));
    // It takes the old one away.
    sshd.restart(Setup { host_keys: &["ed25519"], ..Setup::default() });
    assert_eq!(verdict(&sshd, ""), Err(Next::Ask));
    assert_eq!(verdict(&sshd, &pinned), Err(Next::Ask));
}

#[test]
fn what_a_person_trusts_is_written_at_the_end_and_the_rest_stays() {
    let sshd = Sshd::start(Setup { host_keys: &ALL, ..Setup::default() });
    sshd.put("a.xml", "<a/>");
    let source = sshd.source("");
    let server = server(&source);
    let before = "# ours, without a line's end";
    std::fs::write(sshd.path("known_hosts"), before).unwrap();
    let trusted = Trusted::of(server).unwrap();
    let shown = trusted.shown().unwrap();
    let kinds: Vec<&str> = shown.iter().map(|key| key.kind.as_str()).collect();
    assert_eq!(kinds, ["ssh-ed25519", "ecdsa-sha2-nistp256", "ssh-rsa"]);
    for (key, kind) in shown.iter().zip(["ed25519", "ecdsa", "rsa"]) {
        assert_eq!(key.fingerprint, sshd.fingerprint(kind));
        assert_eq!(key.standing, Standing::Unknown);
    }
    remember(server, &shown[0].key, "by mara").unwrap();
    let text = std::fs::read_to_string(sshd.path("known_hosts")).unwrap();
    let line = format!("[127.0.0.1]:{} {} by mara", sshd.port, sshd.host_key("ed25519"));
    assert_eq!(text, format!("{before}\n{line}\n"));
    let (_, problems) = KnownHosts::parse(&text);
    assert_eq!(problems, []);
    assert_eq!(verdict(&sshd, ""), Ok(()));
    assert!(openssh_trusts(&sshd, "known_hosts"));
    let standing: Vec<Standing> =
        Trusted::of(server).unwrap().shown().unwrap().iter().map(|key| key.standing).collect();
    assert_eq!(standing, [Standing::Trusted, Standing::Changed, Standing::Changed]);
    let beside = super::names(&sshd.path(""));
    assert!(!beside.iter().any(|name| name.ends_with(".part")), "{beside:?}");
    // As /dev/null is: who names it wants nothing kept, and it stays what it is.
    std::fs::remove_file(sshd.path("known_hosts")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(sshd.path("known_hosts")).unwrap();
    let refused = remember(server, &shown[0].key, "by mara").unwrap_err().to_string();
    assert!(refused.contains("it is no file"), "{refused}");
    assert!(!std::fs::metadata(sshd.path("known_hosts")).unwrap().is_file());
    drop(socket);
}

#[test]
fn a_server_of_the_last_decade_is_refused_in_words() {
    let lines = "HostKeyAlgorithms ssh-rsa\nKexAlgorithms diffie-hellman-group14-sha1\n\
                 MACs hmac-sha1\nCiphers aes128-cbc\n";
    let sshd = Sshd::start(Setup { host_keys: &["rsa"], lines, ..Setup::default() });
    let haul = fetch_all(&sshd.source(""), &sshd.spool());
    let error = haul.ended.expect("it is refused");
    assert_eq!(error.exit(), Exit::Trust);
    let says = "no safe algorithm in common; it has, for the key exchange: \
                diffie-hellman-group14-sha1";
    assert!(error.to_string().contains(says), "{error}");
    assert!(matches!(error, SourceError::Trust { next: Next::Wait, .. }), "{error:?}");
}
