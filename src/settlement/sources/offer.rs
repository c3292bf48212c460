//! What a server offers before anything is agreed on: asked for where nothing could be, so that a
//! person can tell its operator what is missing. Nothing that it says is trusted.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use ssh2::{MethodType, Session};

/// Lines that a server may send before its version.
const LINES_MAX: usize = 50;

/// The longest line, and the longest packet (RFC 4253, sections 4.2 and 6.1).
const LINE_MAX: u64 = 1_024;
const PACKET_MAX: u32 = 35_000;

/// The message that says what it offers, and the random bytes that follow its number.
const KEXINIT: u8 = 20;
const COOKIE: usize = 16;

/// The lists in their order, as people call what is agreed by them.
const LISTS: [(&str, MethodType); 5] = [
    ("key exchange", MethodType::Kex),
    ("host key", MethodType::HostKey),
    ("cipher", MethodType::CryptCs),
    ("cipher", MethodType::CryptSc),
    ("checksum", MethodType::MacCs),
];

/// What of a server's offer has nothing in common with ours: `host key: ssh-rsa`. Of host keys
/// only `wanted` were asked for. None where it does not say what it offers, or where something is
/// in common.
pub(super) fn misfit(stream: TcpStream, session: &Session, wanted: &[&str]) -> Option<String> {
    let lists = offered(stream).ok()?;
    LISTS.iter().zip(lists).find_map(|((name, kind), offered)| {
        let ours = match kind {
            MethodType::HostKey => wanted.to_vec(),
            _other => session.supported_algs(*kind).ok()?,
        };
        let is_common = |name: &str| ours.contains(&name);
        let none = !offered.split(',').any(is_common);
        none.then(|| format!("{name}: {}", offered.replace(',', ", ")))
    })
}

fn offered(mut stream: TcpStream) -> io::Result<Vec<String>> {
    stream.write_all(b"SSH-2.0-tieout\r\n")?;
    let mut input = BufReader::new(stream);
    for _line in 0..LINES_MAX {
        let mut line = Vec::new();
        input.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)?;
        if line.starts_with(b"SSH-") {
            return lists(&packet(&mut input)?).ok_or_else(|| io::ErrorKind::InvalidData.into());
        }
        if line.is_empty() {
            break;
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

fn packet(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = [0_u8; 4];
    input.read_exact(&mut head)?;
    let length = u32::from_be_bytes(head);
    if length > PACKET_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut packet = vec![0_u8; usize::try_from(length).unwrap_or(0)];
    input.read_exact(&mut packet)?;
    Ok(packet)
}

/// The lists of a packet, whose first byte says how much it is padded.
fn lists(packet: &[u8]) -> Option<Vec<String>> {
    let message = packet.get(1..)?;
    let mut rest = message.strip_prefix(&[KEXINIT])?.get(COOKIE..)?;
    let mut lists = Vec::new();
    for _list in LISTS {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let names = after.get(..length)?;
        // It goes to a terminal.
        let is_plain = names.iter().all(u8::is_ascii_graphic);
        lists.push(is_plain.then(|| String::from_utf8_lossy(names).into_owned())?);
        rest = after.get(length..)?;
    }
    Some(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_read_or_nothing_is_said() {
        let mut packet = vec![4, KEXINIT];
        packet.extend([7; COOKIE]);
        for list in ["a,b", "ssh-rsa", "", "c", "d"] {
            packet.extend(u32::try_from(list.len()).unwrap().to_be_bytes());
            packet.extend(list.bytes());
        }
        assert_eq!(lists(&packet).unwrap(), ["a,b", "ssh-rsa", "", "c", "d"]);
        for end in 0..packet.len() {
            assert_eq!(lists(&packet[..end]), None, "{end}");
        }
        let odd: Vec<u8> = packet.iter().map(|b| if *b == b'c' { 0x1b } else { *b }).collect();
        assert_eq!(lists(&odd), None);
    }
}
