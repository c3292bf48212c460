//! Where futures run, and how a signal reaches them.
//!
//! The first SIGINT or SIGTERM asks for a clean stop. A second one, or the end of the grace, ends
//! the process at once: every state that leaves is one that the next run finds and heals. What
//! comes within a second of the first is the same word: supervisors tell a process and its group.

use std::future::Future;
use std::io::IsTerminal;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cli::cases::review::restore_terminal;
use crate::cli::failure::Failure;
use crate::cli::page;
use crate::exit::Exit;
use crate::run::shutdown::{Signal, Stop};

/// Deciding one account's rows must not keep another's answer waiting; more threads than this
/// gain nothing, since the work is the network's and the database's.
const WORKERS: usize = 2;

/// Signals so close to the first are that one: `timeout` sends it to the program and to its group.
/// Nobody has read by then that it stops, and wants it to end at once.
const SAME_WORD: Duration = Duration::from_secs(1);

/// How long the last line may take.
const LAST_WORD: Duration = Duration::from_millis(200);

/// Runs a future to its end.
pub fn block_on<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(|error| {
            let text = format!("no threads to work with: {error}; nothing was done");
            Failure::new(Exit::Internal, text, "raise the limit of processes (ulimit -u)")
        })?;
    let ended = runtime.block_on(future);
    // A name that nobody resolves holds a thread for as long as the system's resolver likes;
    // whoever wanted it has given up by now.
    runtime.shutdown_background();
    Ok(ended)
}

/// Listens for signals until it is dropped. Called inside the runtime.
pub struct Listening {
    _task: JoinSet<()>,
}

/// Hands signals to `stop`; `grace` after the first one the process ends, clean or not.
pub fn listen(stop: &Stop, grace: TimeDelta) -> Result<Listening, Failure> {
    let open = |kind| {
        signal(kind).map_err(|error| {
            let text = format!("signals cannot be listened for: {error}; nothing was done");
            Failure::new(Exit::Internal, text, "run it outside of whatever forbids signals")
        })
    };
    let mut streams = (open(SignalKind::interrupt())?, open(SignalKind::terminate())?);
    let grace = grace.to_std().unwrap_or(Duration::from_secs(8));
    stop.ends_within(grace);
    let stop = stop.clone();
    let mut task = JoinSet::new();
    task.spawn(async move {
        let first = next(&mut streams).await;
        if std::io::stderr().is_terminal() {
            page::warn("tieout: stopping: what is decided is applied; again to end at once");
        }
        stop.request(first);
        let began = Instant::now();
        let (last, why) = tokio::select! {
            again = next_after(&mut streams, began) => (again, "a second signal came".to_owned()),
            () = tokio::time::sleep(grace) => (first, format!("{} s were over", grace.as_secs())),
        };
        say_last(last, &why).await;
        end_now(last);
    });
    Ok(Listening { _task: task })
}

/// The last line. Whoever does not read it, or holds the stream, does not keep the process.
async fn say_last(signal: Signal, why: &str) {
    let exit = exit_of(signal);
    let line = format!(
        "tieout: {}: ended at once, since {why}; what was not written stays as it is, and a later \
         run takes it up (exit {})",
        exit.class(),
        exit.code()
    );
    let told = tokio::task::spawn_blocking(move || page::warn(&line));
    let _unread = tokio::time::timeout(LAST_WORD, told).await;
}

/// The next signal that is a word of its own.
async fn next_after(streams: &mut (SignalStream, SignalStream), first: Instant) -> Signal {
    loop {
        let signal = next(streams).await;
        if first.elapsed() >= SAME_WORD {
            return signal;
        }
    }
}

async fn next(streams: &mut (SignalStream, SignalStream)) -> Signal {
    tokio::select! {
        _got = streams.0.recv() => Signal::Interrupt,
        _got = streams.1.recv() => Signal::Terminate,
    }
}

#[expect(
    clippy::disallowed_methods,
    clippy::exit,
    reason = "asked for twice, or the grace is over: a supervisor's SIGKILL would come next"
)]
fn end_now(signal: Signal) {
    restore_terminal();
    std::process::exit(i32::from(exit_of(signal).code()));
}

fn exit_of(signal: Signal) -> Exit {
    match signal {
        Signal::Interrupt => Exit::Interrupted,
        Signal::Terminate => Exit::Terminated,
    }
}
