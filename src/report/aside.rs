//! Work on a thread of its own while the database is read: what came last is rendered, sorted and
//! written, and the next page is fetched meanwhile.

use std::future::Future;
use std::panic::resume_unwind;
use std::path::Path;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::spawn_blocking;

use crate::report::error::ReportError;

/// Pages that wait to be taken in: one more stays in each hand, and memory stays flat.
const WAITING: usize = 1;

/// Reads pages and takes them in, side by side; what the taking comes to.
///
/// # Errors
/// The reading's, or the taking's, which ends the reading, too.
pub async fn side_by_side<P, T, R>(
    folder: &Path,
    take: impl FnOnce(Pages<P>) -> Result<T, ReportError> + Send + 'static,
    read: impl FnOnce(Sender<P>) -> R,
) -> Result<T, ReportError>
where
    P: Send + 'static,
    T: Send + 'static,
    R: Future<Output = Result<(), ReportError>>,
{
    let (sender, receiver) = channel(WAITING);
    let taking = spawn_blocking(move || take(Pages(receiver)));
    // The sender goes with the reading: then the pages are at their end.
    let read = read(sender).await;
    let taken = match taking.await {
        Ok(taken) => taken,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(ended) => Err(ReportError::file("writing", folder)(std::io::Error::other(ended))),
        },
    };
    read.and(taken)
}

/// Pages as they come; they end where the reading does.
pub struct Pages<P>(Receiver<P>);

impl<P> Iterator for Pages<P> {
    type Item = P;

    fn next(&mut self) -> Option<P> {
        self.0.blocking_recv()
    }
}
