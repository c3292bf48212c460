//! What `doctor` tells of `[monitoring]`: receivers that no run can tell, because what they are
//! configured with is not there. Nobody is sent anything.

use std::path::Path;

use rustix::fs::{Access, access};

use crate::monitor::prometheus::textfile;
use crate::monitor::send::Post;
use crate::monitor::settings::{AlertKind, AlertSettings, MonitoringSettings, Place};
use crate::monitor::watch::Around;
use crate::run::doctor::{Finding, Level};
use crate::secret::{KeySource, SecretError};

/// Where programs are looked for if nothing says so.
const PATH: &str = "/bin:/usr/bin";

/// One finding for each thing that a receiver lacks. A run says nothing of it by itself: nobody
/// waits for who is told of its end.
pub async fn look(settings: &MonitoringSettings, around: &Around) -> Vec<Finding> {
    let post = Post {
        env: around.env.clone(),
        scope: settings.scope.clone(),
        proxy: settings.proxy.clone(),
    };
    let mut found = Vec::new();
    if let Some(check) = &settings.healthcheck {
        let owner =
            Owner { name: "healthcheck".to_owned(), at: "healthcheck of [monitoring]".to_owned() };
        found.extend(lacks_address(&post, &owner, check.place()).await);
    }
    let path = settings.prometheus.as_ref().and_then(|to| to.textfile.as_ref());
    found.extend(
        path.and_then(|path| lacks_folder(&around.folder.join(textfile(path, &settings.scope)))),
    );
    for alert in &settings.alert {
        found.extend(lacking(&post, alert).await);
    }
    found
}

/// Who is to be told.
struct Owner {
    /// As `runs show` calls it: `alert pager`.
    name: String,
    /// Where it stands in the file.
    at: String,
}

async fn lacking(post: &Post, alert: &AlertSettings) -> Vec<Finding> {
    let owner = Owner {
        name: format!("alert {}", alert.name),
        at: format!("[[monitoring.alert]] {}", alert.name),
    };
    if alert.kind == AlertKind::Sendmail {
        return lacks_program(post, &owner, alert).into_iter().collect();
    }
    let mut found: Vec<Finding> =
        lacks_address(post, &owner, alert.place()).await.into_iter().collect();
    if let Some(source) = alert.key() {
        let field = source.field();
        found.extend(lacks_secret(post, &owner, field, &source).await);
    }
    found
}

async fn lacks_address(post: &Post, owner: &Owner, place: Option<Place>) -> Option<Finding> {
    let Some(Place::Named(source)) = place else { return None };
    let field = match &source {
        KeySource::File(_) => "url_file",
        KeySource::Env(_) | KeySource::Command(_) | KeySource::Missing => "url_env",
    };
    if let Some(finding) = lacks_secret(post, owner, field, &source).await {
        return Some(finding);
    }
    let why = post.resolve(Some(Place::Named(source))).await.err()?;
    let text = format!("what {field} names is no address: {why}");
    Some(warned(owner, &text, format!("correct {field} of {}", owner.at)))
}

async fn lacks_secret(
    post: &Post,
    owner: &Owner,
    field: &str,
    source: &KeySource,
) -> Option<Finding> {
    let error = source.read(&post.env).await.err()?;
    let correct = format!("correct {field} of {}", owner.at);
    Some(match error {
        SecretError::NotSet(name) => {
            let next = format!("set {name} here and where the schedule runs, or {correct}");
            warned(owner, &format!("the variable {name} ({field}) is not set"), next)
        }
        SecretError::File { path, why } => {
            let text = format!("{} ({field}) cannot be read: {why}", path.display());
            warned(owner, &text, correct)
        }
        other => warned(owner, &other.to_string(), correct),
    })
}

/// The program that takes the mail, where it is none.
fn lacks_program(post: &Post, owner: &Owner, alert: &AlertSettings) -> Option<Finding> {
    let program = alert.command.as_ref()?.first()?;
    let is_there = if program.contains('/') {
        is_program(Path::new(program))
    } else {
        let folders = (post.env)("PATH").unwrap_or_else(|| PATH.to_owned());
        folders.split(':').any(|folder| is_program(&Path::new(folder).join(program)))
    };
    if is_there {
        return None;
    }
    let text = format!("there is no program `{program}` that could be run");
    let next = format!("install it, or write its whole path in command of {}", owner.at);
    Some(warned(owner, &text, next))
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

/// The folder of the metrics' file, where no file can be put into it.
fn lacks_folder(path: &Path) -> Option<Finding> {
    let owner = Owner {
        name: "prometheus textfile".to_owned(),
        at: "prometheus of [monitoring]".to_owned(),
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let shown = folder.display();
    if !folder.is_dir() {
        let text = format!("there is no folder {shown}");
        return Some(warned(
            &owner,
            &text,
            format!("make it, or correct textfile of {}", owner.at),
        ));
    }
    if access(folder, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let text = format!("this user may not write in {shown}");
        let next = format!("let it write there, or correct textfile of {}", owner.at);
        return Some(warned(&owner, &text, next));
    }
    if path.exists() && !path.is_file() {
        let text = format!("{} is no file", path.display());
        return Some(warned(&owner, &text, format!("correct textfile of {}", owner.at)));
    }
    None
}

fn warned(owner: &Owner, why: &str, next: String) -> Finding {
    Finding {
        what: "monitoring".to_owned(),
        level: Level::Warn,
        code: "receiver",
        text: format!("{} is told of no run: {why}", owner.name),
        next: Some(next),
    }
}
