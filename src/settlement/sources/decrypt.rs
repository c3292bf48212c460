//! OpenPGP: from the message that came to the file in it, as a stream in flat memory.
//!
//! What comes out is written under an unfinished name, and becomes a file only when the message
//! ended and its integrity (and its signature, where one is wanted) held: until then nobody reads
//! it. Bounded against bombs like every other wrapping; the message itself is kept.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use pgp::composed::{
    DecryptionOptions, Deserializable, Message, SignedPublicKey, SignedSecretKey, TheRing,
};
use pgp::errors::Error as PgpError;
use pgp::types::{Password, Seipdv1ReadMode, VerifyingKey};
use sha2::{Digest, Sha256};

use crate::exit::Exit;
use crate::model::transaction::hex;
use crate::secret::{Secret, read_bytes};
use crate::settlement::sources::settings::Decrypt;
use crate::settlement::sources::{BUFFER, Going, SourceError};
use crate::settlement::unwrap::{MOST, RATIO, ROOM};

/// Layers of one message: encrypted, compressed, signed, and one of them twice.
const LAYERS_MAX: usize = 4;

/// Where the bounds end it.
const TOO_MUCH: &str = "more comes out of it than any settlement file of its size holds";

/// What is packed in a way that is not read, and what nothing shows not to have been changed.
const PACKED: &str = "what it holds is packed by bzip2, which is not read: ask the sender for \
                      ZLIB, or for none";
const UNCHECKED: &str = "it is encrypted in the old way, without a code that shows a change (MDC), \
                         which is not opened: ask the sender for one with it";

/// How much of the keys' hash is told: enough to tell two sets of keys apart.
const STAMP: usize = 16;

/// What tells a source's keys from those that its files are opened with later: a hash of the files
/// that they lie in. None where one of those cannot be read.
pub fn keys_stamp(decrypt: &Decrypt) -> Option<String> {
    let mut hash = Sha256::new();
    for file in [Some(&decrypt.key_file), decrypt.signed_by.as_ref()].into_iter().flatten() {
        hash.update(Sha256::digest(read_bytes(file).ok()?));
    }
    Some(hex(&hash.finalize()).chars().take(STAMP).collect())
}

/// Opens messages with one source's key.
pub struct Opener {
    keys: Vec<SignedSecretKey>,
    passphrase: Password,
    signers: Option<Vec<SignedPublicKey>>,
}

impl Opener {
    /// Reads the key, and whose signature is wanted.
    ///
    /// # Errors
    /// Where a file is no such key, or the passphrase does not open it.
    pub fn read(decrypt: &Decrypt, passphrase: Option<&Secret>) -> Result<Self, SourceError> {
        let field = "decrypt.key_file";
        let keys = keys::<SignedSecretKey>(&decrypt.key_file, field, "secret")?;
        let passphrase = passphrase.map_or_else(Password::empty, |secret| secret.expose().into());
        if !keys.iter().any(|key| opens(key, &passphrase)) {
            let shown = decrypt.key_file.display();
            let problem = format!("the passphrase does not open the key {shown}");
            return Err(SourceError::Secret { field, problem, exit: Exit::Auth });
        }
        let signers = decrypt.signed_by.as_ref().map(|file| keys_of_sender(file));
        Ok(Self { keys, passphrase, signers: signers.transpose()? })
    }

    /// Writes the file of a message to `to`.
    ///
    /// # Errors
    /// Where it cannot be decrypted whole; nothing that was written may be used then.
    pub fn open(
        &self,
        name: &str,
        from: &Path,
        to: &mut dyn Write,
        going: Going<'_>,
    ) -> Result<(), SourceError> {
        let sealed = |problem: String| SourceError::Sealed { name: name.to_owned(), problem };
        let local = SourceError::local("reading", from);
        let file = File::open(from).map_err(local)?;
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        if let Some(problem) = behind_armor(from).map_err(SourceError::local("reading", from))? {
            return Err(sealed(problem));
        }
        let (message, _headers) = Message::from_reader(BufReader::with_capacity(BUFFER, file))
            .map_err(|error| sealed(format!("it is no OpenPGP message: {error}")))?;
        let mut message = self.plain(message).map_err(sealed)?;
        let allowed = size.saturating_mul(RATIO).saturating_add(ROOM).min(MOST);
        let mut bounded = Bounded { input: &mut message, left: allowed };
        let mut buffer = vec![0_u8; BUFFER];
        let mut done = 0_u64;
        loop {
            if !going(done.min(size)) {
                return Err(SourceError::Stopped { name: name.to_owned() });
            }
            let read = bounded.read(&mut buffer);
            let read = read.map_err(|error| sealed(in_words(&error.to_string())))?;
            if read == 0 {
                break;
            }
            let written = to.write_all(buffer.get(..read).unwrap_or_default());
            written.map_err(SourceError::local("writing what was decrypted of", name))?;
            done = done.saturating_add(u64::try_from(read).unwrap_or(0));
        }
        self.check_signature(&message).map_err(sealed)
    }

    /// Takes the layers off.
    fn plain<'a>(&self, message: Message<'a>) -> Result<Message<'a>, String> {
        if !message.is_encrypted() {
            return Err("it is not encrypted".to_owned());
        }
        let mut message = self.decrypted(message)?;
        for _layer in 0..LAYERS_MAX {
            if message.is_compressed() {
                let unpacked = message.decompress();
                message = unpacked.map_err(|error| of_unpacking(&error))?;
                continue;
            }
            if let Message::Signed { .. } = &message
                && message.literal_data_header().is_none()
            {
                let unpacked = message.decompress();
                message = unpacked.map_err(|error| of_unpacking(&error))?;
                continue;
            }
            if message.is_literal() || message.is_signed() {
                return Ok(message);
            }
            return Err("it is encrypted twice".to_owned());
        }
        Err("it is wrapped too often".to_owned())
    }

    fn decrypted<'a>(&self, message: Message<'a>) -> Result<Message<'a>, String> {
        let options = DecryptionOptions::new()
            .enable_gnupg_aead()
            .set_seipdv1_read_mode(Seipdv1ReadMode::Streaming);
        let ring = TheRing {
            secret_keys: self.keys.iter().collect(),
            key_passwords: vec![&self.passphrase],
            decrypt_options: options,
            ..TheRing::default()
        };
        match message.decrypt_the_ring(ring, true) {
            Ok((message, _which)) => Ok(message),
            Err(PgpError::MissingKey) => {
                Err("it is not encrypted to the key of this source".to_owned())
            }
            Err(error) => Err(of_reading(&error)),
        }
    }

    fn check_signature(&self, message: &Message<'_>) -> Result<(), String> {
        let Some(signers) = &self.signers else { return Ok(()) };
        let Message::Signed { reader, .. } = message else {
            return Err("it is not signed, and `signed_by` wants it to be".to_owned());
        };
        let mut keys: Vec<&dyn VerifyingKey> = Vec::new();
        for signer in signers {
            keys.push(&signer.primary_key);
            for subkey in &signer.public_subkeys {
                keys.push(&subkey.key);
            }
        }
        let is_good =
            |at: usize| keys.iter().any(|key| message.verify_nested_explicit(at, *key).is_ok());
        match (0..reader.num_signatures()).any(is_good) {
            true => Ok(()),
            false => Err("its signature is not the sender's".to_owned()),
        }
    }
}

/// What the library says where a message does not open to its end, in words that tell what to do.
/// Its own stand behind them; our own bounds have their words.
fn in_words(error: &str) -> String {
    if error.contains(TOO_MUCH) {
        return error.to_owned();
    }
    if error.contains("unsupported compression algorithm") {
        return PACKED.to_owned();
    }
    format!(
        "it was changed, damaged or cut on its way, so nothing in it can be trusted; fetch it \
         again, or ask the sender for it ({error})"
    )
}

/// Whether a layer could not be read, or is none that is known.
fn of_reading(error: &PgpError) -> String {
    let text = error.to_string();
    if text.contains("SymEncryptedData is discouraged") {
        return UNCHECKED.to_owned();
    }
    if text.starts_with("IO error") { in_words(&text) } else { text }
}

fn of_unpacking(error: &PgpError) -> String {
    let text = error.to_string();
    match text.starts_with("IO error") {
        true => in_words(&text),
        false => format!("it cannot be unpacked: {text}"),
    }
}

fn keys_of_sender(file: &Path) -> Result<Vec<SignedPublicKey>, SourceError> {
    keys::<SignedPublicKey>(file, "decrypt.signed_by", "public")
}

fn keys<K: Deserializable>(
    file: &Path,
    field: &'static str,
    kind: &str,
) -> Result<Vec<K>, SourceError> {
    let shown = file.display();
    let refused = |problem: String| SourceError::Secret { field, problem, exit: Exit::Config };
    let bytes = read_bytes(file)
        .map_err(|error| refused(format!("the key file {shown} cannot be read: {error}")))?;
    let read = K::from_reader_many(bytes.as_slice()).map(|(keys, _headers)| keys);
    let keys = read.and_then(Iterator::collect::<Result<Vec<K>, PgpError>>);
    match keys {
        Ok(keys) if !keys.is_empty() => Ok(keys),
        Ok(_none) => Err(refused(format!("{shown} holds no {kind} OpenPGP key"))),
        Err(error) => Err(refused(format!("{shown} holds no {kind} OpenPGP key: {error}"))),
    }
}

/// Whether a passphrase opens one of a key's parts; the first may lie elsewhere, on a card.
fn opens(key: &SignedSecretKey, passphrase: &Password) -> bool {
    let of_subkeys = || {
        key.secret_subkeys
            .iter()
            .any(|subkey| matches!(subkey.key.unlock(passphrase, |_, _| Ok(())), Ok(Ok(()))))
    };
    matches!(key.primary_key.unlock(passphrase, |_, _| Ok(())), Ok(Ok(()))) || of_subkeys()
}

/// What an armored message ends with, but for the name of what was armored.
const END: &[u8] = b"-----END PGP ";

/// The dashes that such a line ends with.
const DASHES: usize = 5;

/// How much of what should not be there is told.
const FOUND_MAX: usize = 40;

/// What lies behind the end of an armored message, in words: the library leaves it unread, so that
/// a second message there, a file's other half, would be lost without a word. Of a binary message
/// it says so itself.
fn behind_armor(from: &Path) -> std::io::Result<Option<String>> {
    let mut input = BufReader::with_capacity(BUFFER, File::open(from)?);
    if input.fill_buf()?.first().is_none_or(|first| first & 0x80 != 0) {
        return Ok(None);
    }
    let (mut line, mut offset) = (1_u64, 0_u64);
    let (mut matched, mut dashes) = (0_usize, 0_usize);
    for byte in input.by_ref().bytes() {
        let byte = byte?;
        if matched < END.len() {
            let is_next = END.get(matched) == Some(&byte);
            matched = match byte {
                _next if is_next => matched.saturating_add(1),
                // More dashes than the line begins with.
                b'-' => matched.min(DASHES),
                _other => 0,
            };
        } else if dashes < DASHES {
            dashes = if byte == b'-' { dashes.saturating_add(1) } else { 0 };
        } else if !byte.is_ascii_whitespace() {
            let mut found = vec![byte];
            input.take(u64::try_from(FOUND_MAX).unwrap_or(0)).read_to_end(&mut found)?;
            let found = String::from_utf8_lossy(&found).into_owned();
            let found: String = found.lines().next().unwrap_or_default().escape_debug().collect();
            return Ok(Some(format!(
                "line {line}, byte {offset}: expected nothing behind the line that ends the \
                 message, found \"{found}\"; what lies there would not be read: ask for one \
                 message a file"
            )));
        }
        line = line.saturating_add(u64::from(byte == b'\n'));
        offset = offset.saturating_add(1);
    }
    Ok(None)
}

/// Ends in an error where more comes out than may.
struct Bounded<R> {
    input: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.input.read(buffer)?;
        let count = u64::try_from(read).unwrap_or(u64::MAX);
        match self.left.checked_sub(count) {
            Some(left) => {
                self.left = left;
                Ok(read)
            }
            None => Err(std::io::Error::other(TOO_MUCH)),
        }
    }
}
