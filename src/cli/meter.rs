//! How far a download is, on a terminal and nowhere else.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::args::Common;

/// One line that moves.
pub struct Meter {
    bar: ProgressBar,
}

impl Meter {
    /// Shown where a person looks on.
    pub fn new(common: &Common) -> Self {
        let is_person = !common.json && !common.quiet && common.verbose == 0;
        let is_terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        if is_person && is_terminal { Self::shown() } else { Self::hidden() }
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
        }
    }

    /// Not shown.
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden() }
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
        self.bar.set_position(bytes);
    }

    /// Prints something beside it.
    pub fn pause(&mut self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Takes it away until it moves again.
    pub fn clear(&mut self) {
        self.bar.finish_and_clear();
        self.bar.reset();
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
