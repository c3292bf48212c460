//! How far a download or a count is, on a terminal and nowhere else.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::args::Common;

/// A count that grows, of what nobody counted before.
pub struct Counter {
    bar: ProgressBar,
}

impl Counter {
    /// Shown where a person looks on.
    pub fn new(common: &Common) -> Self {
        if !is_watched(common) {
            return Self { bar: ProgressBar::hidden() };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{prefix} {pos}");
        Self {
            bar: match style {
                Ok(style) => bar.with_style(style),
                Err(_bad_template) => bar,
            },
        }
    }

    /// How many of what.
    pub fn show(&self, what: &str, count: u64) {
        if self.bar.prefix() != what {
            self.bar.set_prefix(what.to_owned());
        }
        self.bar.set_position(count);
    }

    /// Prints something beside it.
    pub fn pause(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A person looks on, and asked for nothing that a moving line would stand in the way of.
fn is_watched(common: &Common) -> bool {
    let is_person = !common.json && !common.quiet && common.verbose == 0;
    is_person && std::io::stdout().is_terminal() && std::io::stderr().is_terminal()
}

/// One line that moves.
pub struct Meter {
    bar: ProgressBar,
    /// Whether it stands there: to take away what does not would draw it once, empty.
    stands: bool,
}

impl Meter {
    /// Shown where a person looks on.
    pub fn new(common: &Common) -> Self {
        if is_watched(common) { Self::shown() } else { Self::hidden() }
    }

    /// Shown.
    pub fn shown() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(
            "{prefix} {bytes}/{total_bytes} {bytes_per_sec} {wide_msg}",
        );
        Self {
            bar: match style {
                Ok(style) => bar.with_style(style),
                Err(_bad_template) => bar,
            },
            stands: false,
        }
    }

    /// Not shown.
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), stands: false }
    }

    /// How far one file is.
    pub fn show(&mut self, source: &str, name: &str, bytes: u64, size: u64) {
        if self.bar.prefix() != source {
            self.bar.set_prefix(source.to_owned());
        }
        if self.bar.message() != name {
            // A remote name is shown as a terminal may show it.
            self.bar.set_message(name.escape_debug().to_string());
            self.bar.reset_elapsed();
        }
        self.bar.set_length(size);
        if !self.stands && self.bar.is_finished() {
            self.bar.reset();
        }
        self.stands = true;
        self.bar.set_position(bytes);
    }

    /// Prints something beside it.
    pub fn pause(&mut self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Takes it away until it moves again.
    pub fn clear(&mut self) {
        if self.stands {
            self.bar.finish_and_clear();
            self.stands = false;
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
