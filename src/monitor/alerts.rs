//! The receivers of alerts: one digest a run, never a message a row.

use std::process::Stdio;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::io::AsyncWriteExt;

use crate::model::time::to_text;
use crate::model::transaction::hex;
use crate::monitor::conditions::class_of;
use crate::monitor::facts::Facts;
use crate::monitor::send::{Letter, Post};
use crate::monitor::settings::{AlertKind, AlertSettings};
use crate::monitor::words::{digest, headline, severity};
use crate::store::watch::{Alert, Turn};

/// The version of the webhook's JSON; fields are only ever added.
const SCHEMA: &str = "tieout-alert/1";

/// The most that PagerDuty takes.
const SUMMARY_MAX: usize = 1_024;

/// Tells one receiver; what of it was taken comes back, and why not the rest.
pub async fn tell(
    post: &Post,
    to: &AlertSettings,
    facts: &Facts<'_>,
    alerts: &[Alert],
) -> Vec<Result<(), String>> {
    if to.kind == AlertKind::Pagerduty {
        let each = alerts.iter().map(|alert| pagerduty(post, to, facts, alert));
        return futures_util::future::join_all(each).await;
    }
    let told = match to.kind {
        AlertKind::Webhook => webhook(post, to, facts, alerts).await,
        AlertKind::Slack => slack(post, to, facts, alerts).await,
        AlertKind::Sendmail => sendmail(to, facts, alerts).await,
        AlertKind::Pagerduty => Ok(()),
    };
    alerts.iter().map(|_alert| told.clone()).collect()
}

fn as_json(headers: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
    let mut headers = headers;
    headers.push(("content-type", "application/json".to_owned()));
    headers
}

async fn webhook(
    post: &Post,
    to: &AlertSettings,
    facts: &Facts<'_>,
    alerts: &[Alert],
) -> Result<(), String> {
    let url = post.resolve(to.place()).await?;
    let key = to.key().ok_or("its signing key is not configured")?;
    let key = key.read(&post.env).await.map_err(|error| error.to_string())?;
    let of = |turn| {
        let alerts = alerts.iter().filter(move |alert| alert.turn == turn);
        alerts.map(body_of).collect::<Vec<Value>>()
    };
    let body = json!({
        "schema": SCHEMA,
        "scope": facts.scope,
        "run_id": facts.run_id,
        "at": to_text(facts.ended_at),
        "exit": facts.exit.code(),
        "class": facts.exit.class(),
        "raised": of(Turn::Raised),
        "resolved": of(Turn::Resolved),
    })
    .to_string();
    let signature = signature(key.expose(), facts.ended_at.timestamp(), &body)?;
    let headers = as_json(vec![("tieout-signature", signature)]);
    post.send(&Letter { url, headers, body }).await
}

fn body_of(alert: &Alert) -> Value {
    json!({
        "condition": alert.condition,
        "scope": alert.scope,
        "class": class_of(&alert.condition).class(),
        "text": alert.text,
        "since": to_text(alert.raised_at),
    })
}

/// `t=SECONDS,v1=HEX`: HMAC-SHA256 over `SECONDS.BODY`, so that an old message cannot be sent
/// again under a new time.
pub fn signature(key: &str, at: i64, body: &str) -> Result<String, String> {
    let mac = Hmac::<Sha256>::new_from_slice(key.as_bytes());
    let mut mac = mac.map_err(|_length| "its signing key cannot be used".to_owned())?;
    mac.update(format!("{at}.{body}").as_bytes());
    Ok(format!("t={at},v1={}", hex(&mac.finalize().into_bytes())))
}

async fn slack(
    post: &Post,
    to: &AlertSettings,
    facts: &Facts<'_>,
    alerts: &[Alert],
) -> Result<(), String> {
    let url = post.resolve(to.place()).await?;
    let lines = [vec![headline(facts, alerts)], digest(facts, alerts)].concat().join("\n");
    let text = lines.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let body = json!({ "text": text }).to_string();
    post.send(&Letter { url, headers: as_json(Vec::new()), body }).await
}

/// One event a condition: their beginning and end are joined by its key.
async fn pagerduty(
    post: &Post,
    to: &AlertSettings,
    facts: &Facts<'_>,
    alert: &Alert,
) -> Result<(), String> {
    let url = post.resolve(to.place()).await?;
    let key = to.key().ok_or("its routing key is not configured")?;
    let key = key.read(&post.env).await.map_err(|error| error.to_string())?;
    let class = class_of(&alert.condition);
    let mut body = json!({
        "routing_key": key.expose(),
        "event_action": if alert.turn == Turn::Raised { "trigger" } else { "resolve" },
        "dedup_key": format!("tieout/{}/{}", alert.scope, alert.condition),
    });
    if alert.turn == Turn::Raised {
        let summary: String = alert.text.chars().take(SUMMARY_MAX).collect();
        body["payload"] = json!({
            "summary": summary,
            "source": format!("tieout/{}", alert.scope),
            "severity": severity(class),
            "timestamp": to_text(alert.raised_at),
            "component": "tieout",
            "group": alert.scope,
            "class": alert.condition,
            "custom_details": { "run_id": facts.run_id, "exit": facts.exit.code() },
        });
    }
    let headers = as_json(Vec::new());
    post.insist(&Letter { url, headers, body: body.to_string() }).await
}

async fn sendmail(to: &AlertSettings, facts: &Facts<'_>, alerts: &[Alert]) -> Result<(), String> {
    let words = to.command.as_deref().unwrap_or_default();
    let (program, arguments) = words.split_first().ok_or("its command is not configured")?;
    let failed = |error: std::io::Error| format!("`{program}`: {error}");
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read says so by how it ends.
        let _closed = stdin.write_all(mail(to, facts, alerts).as_bytes()).await;
    }
    let status = child.wait().await.map_err(failed)?;
    if status.success() { Ok(()) } else { Err(format!("`{program}` failed ({status})")) }
}

fn mail(to: &AlertSettings, facts: &Facts<'_>, alerts: &[Alert]) -> String {
    let mut lines = vec![
        format!("To: {}", to.to.join(", ")),
        format!("Subject: {}", headline(facts, alerts)),
        "Auto-Submitted: auto-generated".to_owned(),
        "MIME-Version: 1.0".to_owned(),
        "Content-Type: text/plain; charset=utf-8".to_owned(),
        "Content-Transfer-Encoding: 8bit".to_owned(),
    ];
    if let Some(from) = &to.from {
        lines.insert(0, format!("From: {from}"));
    }
    lines.push(String::new());
    lines.extend(digest(facts, alerts));
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_covers_time_and_body() {
        let of = |at, body: &str| signature("whsec_1", at, body).unwrap();
        // printf '1795089600.{}' | openssl dgst -sha256 -hmac whsec_1
        assert_eq!(of(1_795_089_600, "{}"), KNOWN);
        assert_ne!(of(1_795_089_601, "{}"), KNOWN);
        assert_ne!(of(1_795_089_600, "{ }"), KNOWN);
    }

    const KNOWN: &str = "t=1795089600,\
        v1=fac11a92e49ea65c2ba7561bfd41af4a6368d041a7b6fa70d3c93f32f82c9015";
}
