//! The dead-man's switch, in the form that healthchecks.io has: `/start`, then `/<exit code>`,
//! both with the run's id, so that overlapping runs are told apart.

use reqwest::Url;

use crate::monitor::send::{Letter, Post};

/// What a ping says.
pub enum Ping {
    /// The run began.
    Start,
    /// It ended, with its summary.
    End {
        /// Its exit code.
        code: u8,
        /// Counts and reasons.
        body: String,
    },
}

/// Pings.
pub async fn ping(post: &Post, url: Url, run_id: &str, ping: Ping) -> Result<(), String> {
    let (step, body) = match ping {
        Ping::Start => ("start".to_owned(), String::new()),
        Ping::End { code, body } => (code.to_string(), body),
    };
    let url = below(url, &step, run_id)?;
    let headers = vec![("content-type", "text/plain; charset=utf-8".to_owned())];
    post.insist(&Letter { url, headers, body }).await
}

/// The address of a step below the check's own.
fn below(mut url: Url, step: &str, run_id: &str) -> Result<Url, String> {
    match url.path_segments_mut() {
        Ok(mut path) => {
            path.pop_if_empty().push(step);
        }
        Err(()) => return Err("its address cannot have a path".to_owned()),
    }
    url.query_pairs_mut().append_pair("rid", run_id);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_stands_below_the_checks_own_address() {
        for (url, want) in [
            ("https://hc-ping.com/abc", "https://hc-ping.com/abc/3?rid=r1"),
            ("https://hc-ping.com/abc/", "https://hc-ping.com/abc/3?rid=r1"),
            ("https://hc.example/k/slug?create=1", "https://hc.example/k/slug/3?create=1&rid=r1"),
        ] {
            assert_eq!(below(Url::parse(url).unwrap(), "3", "r1").unwrap().as_str(), want);
        }
        assert!(below(Url::parse("mailto:x@example.com").unwrap(), "3", "r1").is_err());
    }
}
