//! An OpenSSH sshd of a test's own: it ends with the test, however that ends.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::{need_env, ports};

/// How the server is set up.
pub struct Setup<'a> {
    /// Types of its host keys.
    pub host_keys: &'a [&'a str],
    /// More lines of its configuration.
    pub lines: &'a str,
    /// Arguments of internal-sftp.
    pub sftp: &'a str,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self { host_keys: &["ed25519"], lines: "", sftp: "" }
    }
}

/// A server that runs.
pub struct Sshd {
    folder: TempDir,
    child: Child,
    pub port: u16,
}

impl Sshd {
    pub fn plain() -> Self {
        Self::start(Setup::default())
    }

    pub fn start(setup: Setup<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        open_to_all(folder.path());
        let srv = folder.path().join("srv");
        std::fs::create_dir(&srv).unwrap();
        open_to_all(&srv);
        for kind in setup.host_keys {
            keygen(folder.path(), kind, &format!("host_{kind}"), "");
        }
        keygen(folder.path(), "ed25519", "client", "");
        let own = std::fs::read(folder.path().join("client.pub")).unwrap();
        std::fs::write(folder.path().join("authorized_keys"), own).unwrap();
        let (child, port) = launch(folder.path(), &setup);
        let sshd = Self { folder, child, port };
        sshd.trust("known_hosts", setup.host_keys);
        sshd
    }

    /// The same machine with other keys or another configuration, on the same port.
    pub fn restart(&mut self, setup: Setup<'_>) {
        end(&mut self.child);
        for kind in setup.host_keys {
            if !self.path(&format!("host_{kind}")).exists() {
                keygen(self.folder.path(), kind, &format!("host_{kind}"), "");
            }
        }
        self.child = launch_at(self.folder.path(), &setup, self.port).expect("the port is free");
    }

    /// The server is gone, until it is started again.
    pub fn stop(&mut self) {
        end(&mut self.child);
    }

    /// A file beside the server's folder: keys and the like.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A file in the server's folder.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join("srv").join(name)
    }

    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.at(name), bytes).unwrap();
    }

    /// Makes a new key pair.
    pub fn keygen(&self, kind: &str, name: &str, passphrase: &str) {
        keygen(self.folder.path(), kind, name, passphrase);
    }

    /// Lets one more key in.
    pub fn authorize(&self, public: &str) {
        let mut keys = std::fs::read_to_string(self.path("authorized_keys")).unwrap();
        keys.push_str(&std::fs::read_to_string(self.path(public)).unwrap());
        std::fs::write(self.path("authorized_keys"), keys).unwrap();
    }

    /// The public half of a host key, as `type base64`.
    pub fn host_key(&self, kind: &str) -> String {
        let text = std::fs::read_to_string(self.path(&format!("host_{kind}.pub"))).unwrap();
        text.split(' ').take(2).collect::<Vec<_>>().join(" ").trim().to_owned()
    }

    /// A host key's fingerprint, as OpenSSH itself prints it.
    pub fn fingerprint(&self, kind: &str) -> String {
        let public = self.path(&format!("host_{kind}.pub"));
        let output = Command::new("ssh-keygen").arg("-lf").arg(public).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split(' ').nth(1).unwrap().to_owned()
    }

    /// Writes a known_hosts file with these keys of the server.
    pub fn trust(&self, file: &str, kinds: &[&str]) {
        let line = |kind: &&str| format!("[127.0.0.1]:{} {}\n", self.port, self.host_key(kind));
        let text: String = kinds.iter().map(line).collect();
        std::fs::write(self.path(file), text).unwrap();
    }

    /// The section of a source at this server; `more` stands at its end.
    pub fn section(&self, more: &str) -> String {
        self.section_at(self.port, more)
    }

    /// The same through another port, whose key is taken for the server's.
    pub fn section_at(&self, port: u16, more: &str) -> String {
        if port != self.port {
            let text = std::fs::read_to_string(self.path("known_hosts")).unwrap();
            let own = format!("[127.0.0.1]:{} ", self.port);
            let lines = text.lines().filter_map(|line| line.strip_prefix(&own));
            let other: String = lines.map(|key| format!("[127.0.0.1]:{port} {key}\n")).collect();
            std::fs::write(self.path("known_hosts"), format!("{text}{other}")).unwrap();
        }
        let user = user();
        let key = if more.contains("key_file") { "" } else { "key_file = 'client'\n" };
        let ready = if more.contains("ready") { "" } else { "ready = 'rename'\n" };
        format!(
            "name = 'bank-a'\nkind = 'sftp'\nhost = '127.0.0.1'\nport = {port}\nuser = '{user}'\n\
             {key}{ready}{more}"
        )
    }

    /// A source at this server.
    pub fn source(&self, more: &str) -> tieout::settlement::sources::settings::Source {
        super::source(self.folder.path(), &self.section(more))
    }

    /// A spool of its own.
    pub fn spool(&self) -> tieout::settlement::sources::spool::Spool {
        tieout::settlement::sources::spool::Spool::new(self.path("spool"))
    }

    /// What the server wrote of itself, for a test that fails.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Whom the tests log in as: as root somebody who may not do everything, else oneself, since sshd
/// lets nobody else in then.
pub fn user() -> String {
    if rustix::process::getuid().is_root() {
        return "nobody".to_owned();
    }
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn open_to_all(folder: &Path) {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
}

fn keygen(folder: &Path, kind: &str, name: &str, passphrase: &str) {
    let path = folder.join(name);
    let mut command = Command::new("ssh-keygen");
    let made = command.args(["-q", "-t", kind, "-N", passphrase, "-C", "test", "-f"]).arg(path);
    assert!(made.status().unwrap().success(), "ssh-keygen -t {kind}");
}

fn launch(folder: &Path, setup: &Setup<'_>) -> (Child, u16) {
    for _taken in 0..20 {
        // Free a moment ago; where somebody took it meanwhile, another one.
        let port = ports::free();
        if let Some(child) = launch_at(folder, setup, port) {
            return (child, port);
        }
    }
    let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    panic!("sshd did not start:\n{log}");
}

fn launch_at(folder: &Path, setup: &Setup<'_>, port: u16) -> Option<Child> {
    let dir = folder.display();
    let keys: String =
        setup.host_keys.iter().map(|kind| format!("HostKey {dir}/host_{kind}\n")).collect();
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\n{keys}PidFile none\n\
         AuthorizedKeysFile {dir}/authorized_keys\nStrictModes no\nUsePAM no\nUseDNS no\n\
         PasswordAuthentication no\nAllowTcpForwarding no\nLogLevel VERBOSE\nMaxStartups 100\n\
         {}\nSubsystem sftp internal-sftp\nForceCommand internal-sftp -d {dir}/srv {}\n",
        setup.lines, setup.sftp
    );
    std::fs::write(folder.join("sshd_config"), config).unwrap();
    let log = std::fs::File::create(folder.join("log")).unwrap();
    // However the test ends, the server does too.
    let mut child = Command::new("setpriv")
        .args(["--pdeathsig", "TERM", "--"])
        .arg(need_env("TEST_SSHD"))
        .args(["-D", "-e", "-f"])
        .arg(folder.join("sshd_config"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("setpriv of util-linux");
    for _wait in 0..500 {
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        if log.contains("Server listening") {
            return Some(child);
        }
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    end(&mut child);
    None
}

fn end(child: &mut Child) {
    // It may have ended by itself.
    let _ended = child.kill();
    let _reaped = child.wait();
}
