//! `tieout serve`: the review page, in a browser.

use std::net::SocketAddr;

use clap::Args as ClapArgs;
use serde_json::json;

use crate::cli::args::{Common, word, yes_or_no};
use crate::cli::events::line;
use crate::cli::failure::Failure;
use crate::cli::{database, out, page, runtime};
use crate::config::web::is_name;
use crate::config::{Config, names};
use crate::exit::Exit;
use crate::run::shutdown::Stop;
use crate::web::error::ServeError;
use crate::web::{self, Served, token};

/// For `--help`.
pub const EXAMPLES: &str = "\
Examples:
  tieout serve                              on this machine alone
  tieout serve --listen 127.0.0.1:9000
  tieout serve --new-token mara             a token, and the lines for [web]

PostgreSQL: people sign in with logins of the server, and no token is needed.
docs/web.md tells who is who, and how to put it behind a proxy.";

/// Options of `serve`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// The address and port to listen on [default: listen of [web], 127.0.0.1:8042]; port 0 takes
    /// a free one
    #[arg(long, value_name = "ADDRESS", env = names::SERVE_LISTEN)]
    listen: Option<String>,
    /// Listen on an address that other machines reach; a proxy with TLS must stand before it
    #[arg(long, env = names::SERVE_BEYOND_LOOPBACK, value_parser = yes_or_no)]
    beyond_loopback: bool,
    /// Make a token for somebody, print it with the lines for [web], and end
    #[arg(long, value_name = "NAME", env = names::SERVE_NEW_TOKEN)]
    new_token: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args, common: &Common) -> Result<Exit, Failure> {
    if let Some(name) = word(args.new_token.as_ref()) {
        return new_token(&name, common);
    }
    let mut config = crate::config::load(common.config(), &[])?;
    if let Some(text) = word(args.listen.as_ref()) {
        config.web.listen = text.parse::<SocketAddr>().map_err(|_odd| {
            Failure::usage(format!("--listen {text}: expected an address such as 127.0.0.1:8042"))
        })?;
    }
    runtime::block_on(Box::pin(serve(config, args, common)))?
}

/// Nothing of the token is kept: who loses it gets another one.
fn new_token(name: &str, common: &Common) -> Result<Exit, Failure> {
    if !is_name(name) || name.contains(['"', '\\']) {
        return Err(Failure::usage(format!("--new-token {name}: that is no name")));
    }
    let made = token::fresh().ok_or_else(|| {
        Failure::new(Exit::Internal, "the system gives no random numbers; nothing was made", "")
    })?;
    let hash = token::hash_of(&made);
    if common.json {
        let body = json!({ "name": name, "token": made, "token_sha256": hash });
        out::stdout(&line("web_token", body));
        return Ok(Exit::Ok);
    }
    for text in [
        format!("token  {made}"),
        common
            .copyable(&format!("It is shown this once: hand it to {name} alone. In tieout.toml:"))
            .into_owned(),
        String::new(),
        "[[web.person]]".to_owned(),
        format!("name = \"{name}\""),
        format!("token_sha256 = \"{hash}\""),
    ] {
        out::stdout(&text);
    }
    Ok(Exit::Ok)
}

async fn serve(config: Config, args: &Args, common: &Common) -> Result<Exit, Failure> {
    let stop = Stop::new();
    let _listening = runtime::listen(&stop, config.limits.grace)?;
    let db = database::open(&config).await?;
    let kind = db.kind();
    let ready = |served: &Served| announce(served, kind, common);
    let ended = Box::pin(web::serve(config, db.clone(), args.beyond_loopback, &stop, ready)).await;
    db.close().await;
    match ended {
        Ok(()) => Ok(stop.exit().unwrap_or(Exit::Ok)),
        Err(error) => Err(failure(&error)),
    }
}

fn announce(served: &Served, kind: &str, common: &Common) {
    if common.json {
        let body = json!({ "url": served.url, "address": served.address.to_string() });
        out::stdout(&line("serving", body));
    } else if !common.quiet {
        page::say(&format!("review page  {} · {kind}", served.url));
        out::stdout("Ctrl-C ends it.");
    }
}

fn failure(error: &ServeError) -> Failure {
    Failure::of(error, error.exit(), error.hint())
}
