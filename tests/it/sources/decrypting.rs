//! OpenPGP, as GnuPG and rPGP write it: what is opened, what is refused, and bombs.

use std::io::Write;
use std::path::Path;

use pgp::composed::{
    ArmorOptions, EncryptionCaps, KeyType, MessageBuilder, SecretKeyParamsBuilder, SignedPublicKey,
    SignedSecretKey, SubkeyParamsBuilder,
};
use pgp::crypto::hash::HashAlgorithm;
use pgp::crypto::sym::SymmetricKeyAlgorithm;
use pgp::types::{CompressionAlgorithm, Password};
use tieout::exit::Exit;
use tieout::secret::EnvLookup;
use tieout::settlement::sources::SourceError;
use tieout::settlement::sources::fetch::{Haul, Outcome, fetch};
use tieout::settlement::sources::spool::Spool;

use super::{came, names, told};

pub fn key(name: &str, passphrase: Option<&str>) -> SignedSecretKey {
    let mut rng = rand::thread_rng();
    let subkey = SubkeyParamsBuilder::default()
        .key_type(KeyType::X25519)
        .can_encrypt(EncryptionCaps::All)
        .passphrase(passphrase.map(str::to_owned))
        .build()
        .unwrap();
    let params = SecretKeyParamsBuilder::default()
        .key_type(KeyType::Ed25519)
        .can_sign(true)
        .can_certify(true)
        .primary_user_id(name.to_owned())
        .passphrase(passphrase.map(str::to_owned))
        .subkey(subkey)
        .build()
        .unwrap();
    params.generate(&mut rng).unwrap()
}

struct Place {
    folder: tempfile::TempDir,
    own: SignedSecretKey,
    bank: SignedSecretKey,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        let (own, bank) = (key("shop", Some("a b")), key("bank", None));
        let armored = own.to_armored_string(ArmorOptions::default()).unwrap();
        std::fs::write(folder.path().join("own.asc"), armored).unwrap();
        let public = bank.to_public_key().to_armored_string(ArmorOptions::default()).unwrap();
        std::fs::write(folder.path().join("bank.asc"), public).unwrap();
        Self { folder, own, bank }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path("in").join(name), bytes).unwrap();
    }

    async fn fetch(&self, more: &str, passphrase: &'static str) -> Haul {
        let text = format!(
            "name = 'inbox'\nkind = 'folder'\npath = 'in'\nready = 'rename'\n\
             [decrypt]\nkey_file = 'own.asc'\npassphrase_env = 'P'\n{more}"
        );
        let source = super::source(self.folder.path(), &text);
        let env: EnvLookup = std::sync::Arc::new(move |_name| Some(passphrase.to_owned()));
        let secrets = source.secrets(&env).await.unwrap();
        let spool = Spool::new(self.path("spool"));
        fetch(&source, &secrets, &spool, &|_| false, &mut |_| true)
    }
}

/// How a message is made.
pub struct Making<'a> {
    pub to: &'a SignedPublicKey,
    pub by: Option<&'a SignedSecretKey>,
    pub packed: bool,
    pub armored: bool,
}

impl Making<'_> {
    pub fn of(&self, bytes: &[u8]) -> Vec<u8> {
        let mut rng = rand::thread_rng();
        let builder = MessageBuilder::from_bytes("", bytes.to_vec());
        let mut builder = builder.seipd_v1(&mut rng, SymmetricKeyAlgorithm::AES256);
        builder.encrypt_to_key(&mut rng, &self.to.public_subkeys[0]).unwrap();
        if let Some(by) = self.by {
            builder.sign(&by.primary_key, Password::empty(), HashAlgorithm::Sha256);
        }
        if self.packed {
            builder.compression(CompressionAlgorithm::ZLIB);
        }
        if self.armored {
            return builder.to_armored_string(&mut rng, ArmorOptions::default()).unwrap().into();
        }
        builder.to_vec(&mut rng).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_opened_and_the_original_kept() {
    let place = Place::new();
    let to = place.own.to_public_key();
    let text = ":20:STARTSUMSE\r\n".repeat(200_000);
    let plain = Making { to: &to, by: None, packed: false, armored: false };
    let messages = [
        ("a.pgp", plain.of(text.as_bytes())),
        ("b.pgp", Making { packed: true, ..plain }.of(text.as_bytes())),
        ("c.asc", Making { armored: true, ..plain }.of(text.as_bytes())),
        ("d.pgp", Making { by: Some(&place.bank), packed: true, ..plain }.of(text.as_bytes())),
        ("e.pgp", plain.of(b"")),
    ];
    for (name, bytes) in &messages {
        place.put(name, bytes);
    }
    let haul = place.fetch("", "a b").await;
    assert_eq!(came(&haul).len(), messages.len(), "{:?}", told(&haul));
    for (file, (name, bytes)) in came(&haul).into_iter().zip(&messages) {
        let want = if *name == "e.pgp" { "" } else { text.as_str() };
        assert_eq!(std::fs::read_to_string(file.readable()).unwrap(), want, "{name}");
        assert_eq!(&std::fs::read(&file.path).unwrap(), bytes, "{name}");
    }
    let spool = Spool::new(place.path("spool"));
    for file in came(&haul) {
        spool.forget(&file.sha256).unwrap();
    }
    assert_eq!(names(&place.path("spool")), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_the_sender_signed_is_taken_where_that_is_wanted() {
    let place = Place::new();
    let to = place.own.to_public_key();
    let stranger = key("stranger", None);
    let plain = Making { to: &to, by: None, packed: false, armored: false };
    place.put("a.pgp", &Making { by: Some(&place.bank), ..plain }.of(b"good"));
    place.put("b.pgp", &Making { by: Some(&stranger), ..plain }.of(b"evil"));
    place.put("c.pgp", &plain.of(b"unsigned"));
    place.put("d.pgp", &Making { by: Some(&place.bank), packed: true, ..plain }.of(b"good"));
    let haul = place.fetch("signed_by = 'bank.asc'\n", "a b").await;
    let told = told(&haul);
    assert_eq!(
        (told[0].as_str(), told[3].as_str()),
        ("fetched a.pgp", "fetched d.pgp"),
        "{told:?}"
    );
    assert!(told[1].contains("its signature is not the sender's"), "{told:?}");
    assert!(told[2].contains("it is not signed"), "{told:?}");
    let left = names(&place.path("spool"));
    assert_eq!(left.iter().filter(|name| name.ends_with(".plain")).count(), 2, "{left:?}");
    assert!(!left.iter().any(|name| name.ends_with(".part")), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_opened_whole_is_refused_in_words() {
    let place = Place::new();
    let to = place.own.to_public_key();
    let plain = Making { to: &to, by: None, packed: false, armored: false };
    let good = plain.of(&b"some text, long enough to be changed ".repeat(1_000));
    let mut changed = good.clone();
    let at = changed.len() / 2;
    changed[at] ^= 1;
    let other = key("other", None);
    let to_other = Making { to: &other.to_public_key(), ..plain }.of(b"for somebody else");
    place.put("changed.pgp", &changed);
    place.put("cut.pgp", &good[..good.len() - 30]);
    place.put("other.pgp", &to_other);
    place.put("plain.xml", b"<Document/>");
    place.put("empty.pgp", b"");
    let haul = place.fetch("", "a b").await;
    assert!(haul.ended.is_none(), "{:?}", haul.ended);
    for file in &haul.files {
        let Outcome::Sealed { fetched, error: error @ SourceError::Sealed { .. } } = file else {
            panic!("{:?}", told(&haul));
        };
        assert_eq!(error.exit(), Exit::Partial);
        // It lies in the spool as it came, for whoever has the right key.
        assert_eq!(fetched.readable(), fetched.path);
        let came = std::fs::read(place.path("in").join(&fetched.seen.name)).unwrap();
        assert_eq!(std::fs::read(&fetched.path).unwrap(), came);
    }
    let told = told(&haul);
    assert!(
        told.iter().any(|one| one.contains("not encrypted to the key of this source")),
        "{told:?}"
    );
    assert!(
        told.iter().any(|one| one.contains("plain.xml cannot be decrypted: it is no")),
        "{told:?}"
    );
    let words = "changed.pgp cannot be decrypted: it was changed, damaged or cut on its way";
    assert!(told.iter().any(|one| one.contains(words)), "{told:?}");
    assert_eq!(told.len(), 5);
    let left = names(&place.path("spool"));
    assert!(!left.iter().any(|name| name.contains('.')), "{left:?}");
    let wrong = place.fetch("", "wrong").await.ended.unwrap();
    assert_eq!(wrong.exit(), Exit::Auth);
    assert!(wrong.to_string().contains("the passphrase does not open the key"), "{wrong}");
    std::fs::write(place.path("own.asc"), "nonsense").unwrap();
    let broken = place.fetch("", "a b").await.ended.unwrap();
    assert_eq!(broken.exit(), Exit::Config);
    assert!(broken.to_string().contains("holds no secret OpenPGP key"), "{broken}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_behind_an_armored_message_is_lost_without_a_word() {
    let place = Place::new();
    let to = place.own.to_public_key();
    let armored = Making { to: &to, by: Some(&place.bank), packed: false, armored: true };
    let (first, second) = (armored.of(b"the first"), armored.of(b"the second"));
    let lines = first.iter().filter(|byte| **byte == b'\n').count();
    place.put("space.asc", &[&first[..], b" \r\n\t\n"].concat());
    place.put("two.asc", &[&first[..], &second[..]].concat());
    place.put("tail.asc", &[&first[..], b"\n-- \nThe bank\n"].concat());
    let glued = [first.trim_ascii_end(), b"ORD-2;5.00\n"].concat();
    place.put("glued.asc", &glued);
    for more in ["", "signed_by = 'bank.asc'"] {
        let haul = place.fetch(more, "a b").await;
        let told = told(&haul);
        let behind = |name: &str| {
            let start = format!("sealed {name}: ");
            let one = told.iter().find(|one| one.starts_with(&start)).unwrap();
            one.split_once("decrypted: ").unwrap().1.to_owned()
        };
        assert_eq!(came(&haul).len(), 1, "{told:?}");
        assert_eq!(read(came(&haul)[0].readable()), "the first");
        let want = format!(
            "line {}, byte {}: expected nothing behind the line that ends the message, found \
             \"-----BEGIN PGP MESSAGE-----\"; ",
            lines + 1,
            first.len()
        );
        assert!(behind("two.asc").starts_with(&want), "{told:?}");
        assert!(behind("tail.asc").contains("found \"-- \"; "), "{told:?}");
        assert!(behind("glued.asc").starts_with(&format!("line {lines}, ")), "{told:?}");
        assert!(behind("glued.asc").contains("found \"ORD-2;5.00\"; "), "{told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bomb_ends_in_an_error_and_not_on_the_disk() {
    let place = Place::new();
    let to = place.own.to_public_key();
    let bomb = Making { to: &to, by: None, packed: true, armored: false };
    place.put("bomb.pgp", &bomb.of(&vec![0_u8; 100 * 1024 * 1024]));
    let haul = place.fetch("", "a b").await;
    let told = told(&haul);
    assert!(told[0].contains("more comes out of it than any settlement file"), "{told:?}");
    assert_eq!(names(&place.path("spool")).len(), 1, "the message alone");
}

/// What the tool of most banks writes.
#[tokio::test(flavor = "multi_thread")]
async fn what_gnupg_writes_is_opened() {
    let place = Place::new();
    let home = place.path("gnupg");
    std::fs::create_dir(&home).unwrap();
    let gpg = |words: &[&str], input: &[u8]| -> Vec<u8> {
        let mut command = std::process::Command::new("gpg");
        command.arg("--homedir").arg(&home).args(["--batch", "--quiet", "--yes"]).args(words);
        // Into a file: the agent that it starts keeps its outputs open.
        let output = std::fs::File::create(home.join("output")).unwrap();
        command.stdin(std::process::Stdio::piped()).stdout(output);
        let mut child = command.spawn().expect("gpg: tests/services.sh installs it");
        child.stdin.take().unwrap().write_all(input).unwrap();
        assert!(child.wait().unwrap().success(), "gpg {words:?}");
        std::fs::read(home.join("output")).unwrap()
    };
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&home, mode).unwrap();
    let loopback = ["--pinentry-mode", "loopback", "--passphrase", "a b"];
    let made = [&loopback[..], &["--quick-gen-key", "shop", "rsa2048", "default", "never"]];
    gpg(&made.concat(), b"");
    let sub = ["--list-keys", "--with-colons"];
    let listed = String::from_utf8(gpg(&sub, b"")).unwrap();
    let print = listed.lines().find_map(|line| line.strip_prefix("fpr:::::::::")).unwrap();
    let print = print.trim_end_matches(':').to_owned();
    gpg(&[&loopback[..], &["--quick-add-key", &print, "rsa2048", "encr", "never"]].concat(), b"");
    let secret = gpg(&[&loopback[..], &["--armor", "--export-secret-keys"]].concat(), b"");
    std::fs::write(place.path("own.asc"), secret).unwrap();
    let text = ":20:STARTSUMSE\r\n".repeat(100_000);
    let to = ["--trust-model", "always", "-r", "shop"];
    for (name, words) in [
        ("a.gpg", vec!["--encrypt"]),
        ("b.asc", vec!["--armor", "--encrypt"]),
        ("c.gpg", vec!["--compress-algo", "none", "--encrypt"]),
        ("d.gpg", [&loopback[..], &["--sign", "--encrypt"]].concat()),
    ] {
        place.put(name, &gpg(&[&to[..], &words].concat(), text.as_bytes()));
    }
    let packed = ["--compress-algo", "bzip2", "--encrypt"];
    place.put("e.gpg", &gpg(&[&to[..], &packed].concat(), text.as_bytes()));
    let unchecked = ["--rfc2440", "--disable-mdc", "--cipher-algo", "3DES", "--encrypt"];
    place.put("f.gpg", &gpg(&[&to[..], &unchecked].concat(), text.as_bytes()));
    let mut over = std::process::Command::new("gpgconf");
    assert!(over.arg("--homedir").arg(&home).args(["--kill", "all"]).status().unwrap().success());
    let haul = place.fetch("", "a b").await;
    assert_eq!(came(&haul).len(), 4, "{:?}", told(&haul));
    for file in came(&haul) {
        assert_eq!(read(file.readable()), text, "{}", file.seen.name);
    }
    // What is whole, and not read, is not said to be damaged.
    let told = told(&haul);
    for words in ["e.gpg cannot be decrypted: what it holds is packed by bzip2", "code that shows"]
    {
        assert!(told.iter().any(|one| one.contains(words)), "{words}: {told:?}");
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
