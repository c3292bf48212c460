//! Logging in: keys in every form, agents, passwords, two ways at once; and what a person reads
//! where it fails.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use tieout::exit::Exit;
use tieout::secret::EnvLookup;
use tieout::settlement::sources::SourceError;
use tieout::settlement::sources::fetch::{Haul, fetch};
use tieout::settlement::sources::settings::Source;

use super::sshd::{Sshd, user};
use super::{came, fetch_all};
use crate::support::{need_env, ports};

/// Fetches, with the secrets that the settings name; the only passphrase is this one.
async fn fetch_with(sshd: &Sshd, source: &Source, secret: &'static str) -> Haul {
    let env: EnvLookup = std::sync::Arc::new(move |_name| Some(secret.to_owned()));
    let secrets = source.secrets(&env).await.unwrap();
    assert!(!format!("{secrets:?}").contains(secret));
    fetch(source, &secrets, &sshd.spool(), &|_| false, &mut |_| true)
}

#[track_caller]
fn is_in(sshd: &Sshd, haul: &Haul, what: &str) {
    assert!(haul.ended.is_none(), "{what}: {:?}\n{}", haul.ended, sshd.log());
    assert_eq!(came(haul).len(), 1, "{what}");
}

#[track_caller]
fn is_refused(haul: Haul, says: &[&str]) {
    let error = haul.ended.expect("it is refused");
    assert_eq!(error.exit(), Exit::Auth, "{error}");
    for part in says {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    assert!(haul.files.is_empty());
}

/// Rewrites a private key in another form.
fn converted(sshd: &Sshd, name: &str, format: &str, passphrase: &str) {
    let mut command = Command::new("ssh-keygen");
    let command = command.args(["-q", "-p", "-m", format, "-P", "", "-N", passphrase, "-f"]);
    assert!(command.arg(sshd.path(name)).stdout(Stdio::null()).status().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_of_key_lets_us_in() {
    let sshd = Sshd::plain();
    sshd.put("a.xml", "<a/>");
    for (name, kind, format, passphrase) in [
        ("ed", "ed25519", None, ""),
        ("ed_locked", "ed25519", None, "a b\u{fc}"),
        ("rsa", "rsa", None, ""),
        ("rsa_pem", "rsa", Some("PEM"), ""),
        ("rsa_pem_locked", "rsa", Some("PEM"), "a b\u{fc}"),
        ("rsa_pkcs8_locked", "rsa", Some("PKCS8"), "a b\u{fc}"),
        ("ecdsa", "ecdsa", None, ""),
    ] {
        sshd.keygen(kind, name, if format.is_none() { passphrase } else { "" });
        if let Some(format) = format {
            converted(&sshd, name, format, passphrase);
        }
        sshd.authorize(&format!("{name}.pub"));
        let own = if passphrase.is_empty() { "" } else { "passphrase_env = 'P'\n" };
        let source = sshd.source(&format!("key_file = '{name}'\n{own}"));
        is_in(&sshd, &fetch_with(&sshd, &source, "a b\u{fc}").await, name);
    }
    // What is wrong with a key is said of the key.
    let locked = sshd.source("key_file = 'ed_locked'\npassphrase_env = 'P'\n");
    let wrong = fetch_with(&sshd, &locked, "wr0ng").await;
    is_refused(wrong, &["ed_locked cannot be opened: the passphrase is wrong"]);
    let unasked = sshd.source("key_file = 'ed_locked'\n");
    is_refused(fetch_all(&unasked, &sshd.spool()), &["wants a passphrase and none is configured"]);
    let public = sshd.source("key_file = 'ed.pub'\n");
    is_refused(fetch_all(&public, &sshd.spool()), &["or it is no private key"]);
    let none = fetch_all(&sshd.source("key_file = 'none'\n"), &sshd.spool()).ended.unwrap();
    assert_eq!(none.exit(), Exit::Config);
    assert!(none.to_string().contains("none cannot be read"), "{none}");
}

#[test]
fn a_key_that_the_server_does_not_know_is_refused_with_what_it_takes() {
    let sshd = Sshd::plain();
    sshd.keygen("ed25519", "stranger", "");
    let source = sshd.source("key_file = 'stranger'\n");
    let haul = fetch_all(&source, &sshd.spool());
    is_refused(haul, &["does not take the key", "stranger", "the server takes publickey"]);
    let text = sshd.section("").replace(&format!("'{}'", user()), "'no-such-user'");
    let source = super::source(&sshd.path(""), &text);
    is_refused(fetch_all(&source, &sshd.spool()), &["as no-such-user", "does not take the key"]);
}

/// An agent of the test's own.
struct Agent(Child);

impl Agent {
    fn with(sshd: &Sshd, keys: &[&str]) -> Self {
        let socket = sshd.path("agent");
        let mut command = Command::new("ssh-agent");
        let command = command.args(["-D", "-a"]).arg(&socket).stdout(Stdio::null());
        let agent = Self(command.stderr(Stdio::null()).spawn().unwrap());
        for _wait in 0..500 {
            if socket.exists() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        for key in keys {
            let mut add = Command::new("ssh-add");
            let add = add.arg("-q").arg(sshd.path(key)).env("SSH_AUTH_SOCK", &socket);
            assert!(add.status().unwrap().success(), "ssh-add {key}");
        }
        agent
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// `sources test` in a process of its own, since an agent is found by the environment.
fn test_with_agent(sshd: &Sshd, socket: &Path) -> (Option<i32>, String) {
    let text = sshd.section("agent = true\n").replace("key_file = 'client'\n", "");
    super::command::configure(&sshd.path(""), &text);
    let mut command = Command::new(crate::support::tieout_bin());
    let command = command.args(["sources", "test"]).current_dir(sshd.path("")).env_clear();
    let output = command.env("SSH_AUTH_SOCK", socket).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn an_agent_lets_us_in_by_any_of_its_keys() {
    let sshd = Sshd::plain();
    sshd.put("a.xml", "<a/>");
    sshd.keygen("ed25519", "stranger", "");
    let agent = Agent::with(&sshd, &["stranger", "client"]);
    let (code, text) = test_with_agent(&sshd, &sshd.path("agent"));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("1 file visible"), "{text}");
    drop(agent);
    let (code, text) = test_with_agent(&sshd, &sshd.path("gone"));
    assert_eq!(code, Some(12), "{text}");
    assert!(text.contains("no SSH agent answers"), "{text}");
}

#[test]
fn an_agent_with_more_keys_than_are_tried_says_so() {
    let sshd = Sshd::plain();
    sshd.put("a.xml", "<a/>");
    let strangers = ["s1", "s2", "s3", "s4", "s5"];
    for stranger in strangers {
        sshd.keygen("ed25519", stranger, "");
    }
    let agent = Agent::with(&sshd, &["s1", "s2", "s3", "s4", "client", "s5"]);
    let (code, text) = test_with_agent(&sshd, &sshd.path("agent"));
    assert_eq!(code, Some(0), "the fifth: {text}");
    drop(agent);
    std::fs::remove_file(sshd.path("agent")).unwrap();
    let agent = Agent::with(&sshd, &["s1", "s2", "s3", "s4", "s5", "client"]);
    let (code, text) = test_with_agent(&sshd, &sshd.path("agent"));
    assert_eq!(code, Some(12), "{text}");
    let says = "the agent holds 6 keys, of which 5 were tried: name the right one as `key_file`";
    assert!(text.contains(says), "{text}");
    drop(agent);
}

/// A server in a root folder of its own, with a user and a password that the machine does not
/// have. Only root may change its root.
fn with_password(lines: &str) -> (Sshd, Child) {
    assert!(
        rustix::process::getuid().is_root(),
        "this test needs root: sshd checks passwords, and a folder is made its root"
    );
    let sshd = Sshd::plain();
    let root = sshd.path("root");
    let daemon = need_env("TEST_SSHD");
    let script = r#"
        set -eu
        root=$1 daemon=$2
        mkdir -p "$root/etc/pam.d" "$root/dev" "$root/run/sshd" "$root/bin" "$root/home/bank"
        modules=$(find -L /lib /usr/lib -name pam_unix.so -o -name pam_permit.so 2>/dev/null |
            sort -u)
        needed=$(ldd "$daemon" /bin/sh $modules | grep -o '/[^ ]*\.so[^ :]*' | sort -u)
        for file in "$daemon" /bin/sh $needed $modules \
            $(find /usr/lib/openssh /usr/libexec -name 'sshd-*' 2>/dev/null); do
            mkdir -p "$root$(dirname "$file")" && cp -L "$file" "$root$file"
        done
        find -L /lib /usr/lib -name 'libnss_files.so*' \
            -exec cp -L --parents {} "$root" ';' 2>/dev/null || true
        mknod -m 666 "$root/dev/null" c 1 3
        echo 'root:x:0:0::/:/bin/sh
sshd:x:100:65534::/run/sshd:/bin/sh
bank:x:1000:1000::/home/bank:/bin/sh' >"$root/etc/passwd"
        echo 'root:x:0:
bank:x:1000:' >"$root/etc/group"
        hash=$(openssl passwd -6 -salt tieout 's3 cret')
        echo "root:*:1:0:99999:7:::
bank:$hash:20000:0:99999:7:::" >"$root/etc/shadow"
        echo 'passwd: files
group: files
shadow: files' >"$root/etc/nsswitch.conf"
        echo 'auth required pam_unix.so nodelay
account required pam_permit.so
session required pam_permit.so' >"$root/etc/pam.d/sshd"
        cp "$3/host_ed25519" "$3/client.pub" "$root/etc/"
        echo "<a/>" >"$root/home/bank/a.xml"
    "#;
    let mut shell = Command::new("bash");
    let shell = shell.args(["-c", script, "root"]).arg(&root).arg(&daemon).arg(sshd.path(""));
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let port = ports::free();
    let config = format!(
        // Of what stands there twice, the first counts.
        "{lines}\nPort {port}\nListenAddress 127.0.0.1\nHostKey /etc/host_ed25519\n\
         PidFile none\nAuthorizedKeysFile /etc/client.pub\nStrictModes no\nUsePAM no\n\
         LogLevel VERBOSE\nSubsystem sftp internal-sftp\nForceCommand internal-sftp\n"
    );
    std::fs::write(root.join("etc/sshd_config"), config).unwrap();
    let log = std::fs::File::create(sshd.path("log")).unwrap();
    let child = Command::new("setpriv")
        .args(["--pdeathsig", "TERM", "--", "chroot"])
        .arg(&root)
        .args([&daemon, "-D", "-e", "-f", "/etc/sshd_config"])
        .stderr(log)
        .spawn()
        .unwrap();
    for _wait in 0..500 {
        if sshd.log().contains("Server listening") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(sshd.log().contains("Server listening"), "{}", sshd.log());
    let known = format!("[127.0.0.1]:{port} {}\n", sshd.host_key("ed25519"));
    std::fs::write(sshd.path("known_hosts"), known).unwrap();
    std::fs::write(sshd.path("port"), port.to_string()).unwrap();
    (sshd, child)
}

fn bank(sshd: &Sshd, more: &str) -> Source {
    let port = std::fs::read_to_string(sshd.path("port")).unwrap();
    let text = format!(
        "name = 'bank-a'\nkind = 'sftp'\nhost = '127.0.0.1'\nport = {port}\nuser = 'bank'\n\
         ready = 'rename'\nglob = ['*.xml']\n{more}"
    );
    super::source(&sshd.path(""), &text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_lets_us_in_alone_or_after_a_key() {
    let (sshd, mut child) = with_password("PasswordAuthentication yes");
    let password = "password_env = 'P'\n";
    is_in(&sshd, &fetch_with(&sshd, &bank(&sshd, password), "s3 cret").await, "a password");
    let wrong = fetch_with(&sshd, &bank(&sshd, password), "s3cret").await;
    is_refused(wrong, &["does not take the password", "publickey, password"]);
    child.kill().unwrap();
    child.wait().unwrap();
    let (sshd, mut child) = with_password("AuthenticationMethods publickey,password");
    let both = "key_file = 'client'\npassword_env = 'P'\n";
    is_in(&sshd, &fetch_with(&sshd, &bank(&sshd, both), "s3 cret").await, "a key and a password");
    let one = fetch_all(&bank(&sshd, "key_file = 'client'\n"), &sshd.spool());
    assert!(matches!(one.ended, Some(SourceError::Refused { .. })), "{:?}", one.ended);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_answers_the_question_of_a_server_alone_or_after_a_key() {
    let (sshd, mut child) = with_password("UsePAM yes\nPasswordAuthentication no");
    let password = "password_env = 'P'\n";
    is_in(&sshd, &fetch_with(&sshd, &bank(&sshd, password), "s3 cret").await, "an answer");
    let wrong = fetch_with(&sshd, &bank(&sshd, password), "s3cret").await;
    is_refused(wrong, &["does not take the password", "publickey, keyboard-interactive"]);
    child.kill().unwrap();
    child.wait().unwrap();
    // Only once the key is taken does it say what it wants next.
    let lines = "UsePAM yes\nAuthenticationMethods publickey,keyboard-interactive";
    let (sshd, mut child) = with_password(lines);
    let both = "key_file = 'client'\npassword_env = 'P'\n";
    is_in(&sshd, &fetch_with(&sshd, &bank(&sshd, both), "s3 cret").await, "a key and an answer");
    child.kill().unwrap();
    child.wait().unwrap();
}
