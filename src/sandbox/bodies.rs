//! Bodies that no client should swallow whole: bombs, endless pages, bottomless nesting.
//!
//! Every one is made while it is sent, from one small piece, so that the sandbox itself needs
//! neither the room nor the time that it asks of the client.

use flate2::{Compress, Compression, Crc, FlushCompress};
use hyper::body::Bytes;

use super::wire::Step;

const MIB: usize = 1024 * 1024;

/// Gzip that unpacks to so many MiB of spaces inside a JSON object; about a thousandth as long.
pub(super) fn gzip_bomb(mib: u32) -> Vec<Step> {
    let spaces = vec![b' '; MIB];
    let block = Bytes::from(deflated(&spaces));
    let mut crc = Crc::new();
    let mut one = Crc::new();
    one.update(&spaces);
    (0..mib).for_each(|_| crc.combine(&one));
    let head = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    // An empty final block ends the stream that the full flushes left open.
    let mut tail = vec![0x03, 0x00];
    tail.extend_from_slice(&crc.sum().to_le_bytes());
    tail.extend_from_slice(&mib.wrapping_mul(1024 * 1024).to_le_bytes());
    vec![
        Step::Bytes(Bytes::from(head)),
        Step::Made(Box::new((0..mib).map(move |_| block.clone()))),
        Step::Bytes(Bytes::from(tail)),
    ]
}

/// A JSON text of so many MiB.
pub(super) fn huge(mib: u32) -> Vec<Step> {
    let piece = Bytes::from(vec![b'x'; MIB]);
    vec![
        Step::Bytes(Bytes::from_static(b"{\"object\":\"list\",\"has_more\":false,\"url\":\"")),
        Step::Made(Box::new((0..mib).map(move |_| piece.clone()))),
        Step::Bytes(Bytes::from_static(b"\",\"data\":[]}")),
    ]
}

/// A page of so many well-formed objects.
pub(super) fn many_items(count: u32, object: &'static str) -> Vec<Step> {
    let chunks = (0..count).step_by(1000).map(move |first| {
        let last = first.saturating_add(1000).min(count);
        let items: String = (first..last).map(|n| item(n, object)).collect();
        Bytes::from(items)
    });
    vec![
        Step::Bytes(Bytes::from_static(
            b"{\"object\":\"list\",\"url\":\"/v1\",\"has_more\":false,\"data\":[",
        )),
        Step::Made(Box::new(chunks)),
        Step::Bytes(Bytes::from_static(b"]}")),
    ]
}

/// JSON arrays inside one another, so many.
pub(super) fn deep(depth: u32) -> Vec<Step> {
    let repeated = |byte: u8| {
        let depth = usize::try_from(depth).unwrap_or(usize::MAX);
        let mut left = depth;
        std::iter::from_fn(move || {
            let length = left.min(MIB);
            left -= length;
            (length > 0).then(|| Bytes::from(vec![byte; length]))
        })
    };
    vec![
        Step::Bytes(Bytes::from_static(b"{\"object\":\"list\",\"has_more\":false,\"data\":")),
        Step::Made(Box::new(repeated(b'['))),
        Step::Made(Box::new(repeated(b']'))),
        Step::Bytes(Bytes::from_static(b"}")),
    ]
}

fn item(n: u32, object: &str) -> String {
    let comma = if n == 0 { "" } else { "," };
    let prefix = if object == "charge" { "ch" } else { "pi" };
    format!(
        "{comma}{{\"id\":\"{prefix}_many{n}\",\"object\":\"{object}\",\"amount\":1000,\
         \"currency\":\"usd\",\"created\":{},\"livemode\":false,\"metadata\":{{}},\
         \"status\":\"succeeded\"}}",
        1_700_000_000 + u64::from(n)
    )
}

/// A block that can be repeated: it ends on a byte and looks back at nothing.
fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(MIB / 64);
    let mut compress = Compress::new(Compression::best(), false);
    // The room is ample for spaces, so that one call takes and flushes all of them.
    let _ = compress.compress_vec(bytes, &mut out, FlushCompress::Full);
    out
}
