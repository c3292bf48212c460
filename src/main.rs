//! The program's entry: words in, exit code out.

use std::panic::catch_unwind;
use std::process::ExitCode;

use tieout::cli;
use tieout::exit::Exit;

/// A run makes and frees many small texts, and one thread often frees what another made.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // A bug must end as the class that schedulers know, not as Rust's own 101.
    let exit = catch_unwind(|| cli::main(std::env::args_os())).unwrap_or(Exit::Internal);
    ExitCode::from(exit.code())
}
