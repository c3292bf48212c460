//! The bytes of an answer as they leave: in one piece, in drops, cut, or never ending.
//!
//! A `Script` is a body made of steps; a `Line` is a TCP stream that a script can tell to reset or
//! to close its half. Neither knows what the bytes mean.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Sleep;

/// What a script asks of the connection under it.
#[derive(Debug, Default)]
pub(super) struct Wire {
    reset: AtomicBool,
    half_close: AtomicBool,
    pub(super) go_away: Notify,
}

impl Wire {
    /// From now on closing the connection is a reset.
    pub(super) fn reset(&self) {
        self.reset.store(true, Ordering::Release);
    }

    fn half_close(&self) {
        self.half_close.store(true, Ordering::Release);
    }
}

/// A TCP stream that does what its `Wire` asks.
#[derive(Debug)]
pub(super) struct Line {
    stream: TcpStream,
    wire: Arc<Wire>,
}

impl Line {
    pub(super) fn new(stream: TcpStream, wire: Arc<Wire>) -> Self {
        Self { stream, wire }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.wire.reset.load(Ordering::Acquire) {
            // Without lingering the kernel answers with a reset instead of a close.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() && self.wire.half_close.swap(false, Ordering::AcqRel) {
            return Pin::new(&mut self.stream).poll_shutdown(cx);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.wire.reset.load(Ordering::Acquire) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// One step of a body.
pub(super) enum Step {
    /// Bytes, all at once.
    Bytes(Bytes),
    /// Bytes as they are made, so that a body of any size needs no room.
    Made(Box<dyn Iterator<Item = Bytes> + Send>),
    /// Silence for a while.
    Pause(Duration),
    /// The connection is reset.
    Reset,
    /// The answer ends unfinished; the connection is not reset.
    End,
    /// This side of the connection is closed; the other stays.
    HalfClose,
    /// Silence for good.
    Hang,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Made(_) => f.write_str("Made"),
            Self::Pause(time) => write!(f, "Pause({time:?})"),
            Self::Reset => f.write_str("Reset"),
            Self::End => f.write_str("End"),
            Self::HalfClose => f.write_str("HalfClose"),
            Self::Hang => f.write_str("Hang"),
        }
    }
}

/// A body that goes over the wire step by step.
#[derive(Debug)]
pub(super) struct Script {
    steps: VecDeque<Step>,
    pause: Option<Pin<Box<Sleep>>>,
    wire: Arc<Wire>,
}

/// The connection ends here on purpose.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox cut the connection, as told")]
pub(super) struct Cut;

impl Script {
    pub(super) fn new(steps: impl IntoIterator<Item = Step>, wire: Arc<Wire>) -> Self {
        Self { steps: steps.into_iter().collect(), pause: None, wire }
    }

    /// One piece, with a length that is known beforehand.
    pub(super) fn whole(body: Bytes, wire: Arc<Wire>) -> Self {
        let piece = (!body.is_empty()).then_some(Step::Bytes(body));
        Self::new(piece, wire)
    }
}

impl Body for Script {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        loop {
            if let Some(pause) = &mut self.pause {
                if pause.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                self.pause = None;
            }
            match self.steps.pop_front() {
                None => return Poll::Ready(None),
                Some(Step::Bytes(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Step::Made(mut chunks)) => {
                    if let Some(bytes) = chunks.next() {
                        self.steps.push_front(Step::Made(chunks));
                        return Poll::Ready(Some(Ok(Frame::data(bytes))));
                    }
                }
                Some(Step::Pause(time)) => self.pause = Some(Box::pin(tokio::time::sleep(time))),
                Some(Step::Reset) => {
                    self.wire.reset();
                    return Poll::Ready(Some(Err(Cut)));
                }
                Some(Step::End) => return Poll::Ready(Some(Err(Cut))),
                Some(Step::HalfClose) => self.wire.half_close(),
                Some(Step::Hang) => {
                    // Nobody wakes this again; it ends when the client or the sandbox goes.
                    self.steps.push_front(Step::Hang);
                    return Poll::Pending;
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.steps.is_empty() && self.pause.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let mut total = 0;
        for step in &self.steps {
            match step {
                Step::Bytes(bytes) => total += u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                Step::Pause(_) => {}
                Step::Made(_) | Step::Reset | Step::End | Step::HalfClose | Step::Hang => {
                    return SizeHint::new();
                }
            }
        }
        SizeHint::with_exact(total)
    }
}
