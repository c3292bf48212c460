//! Redis and beanstalkd: what is pushed is popped by those who were made for it.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::{deliver, event_ids, fresh, ids, lines_of, of_sink, sold, until};
use crate::run::shop::{Engine, at_text, tieout_now};
use crate::support::{need_env, ports};

/// A worker as an application would have it.
const WORKER: &str = r#"
require "sidekiq"
class TakeEvent
  include Sidekiq::Worker
  def perform(event)
    line = Sidekiq.dump_json("jid" => jid, "id" => event["id"], "event" => event)
    File.open(ENV.fetch("JOBS"), "a") { |file| file.write(line + "\n") }
  end
end
"#;

fn sidekiq_sink(url: &str, queue: &str) -> String {
    format!(
        "[[sink]]\nname = \"worker\"\nkind = \"sidekiq\"\nurl = \"{url}\"\nqueue = \"{queue}\"\n\
         class = \"TakeEvent\"\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn sidekiq_pops_and_runs_the_jobs() {
    let (url, queue) = (need_env("TEST_REDIS_URL"), fresh("billing"));
    let shop = sold(Engine::Sqlite, &sidekiq_sink(&url, &queue), 3).await;
    let ran = deliver(&shop, &[]).await.ended(0);
    assert_eq!(of_sink(&ran, "worker")["delivered"], 3);
    std::fs::write(shop.folder().join("worker.rb"), WORKER).unwrap();
    let jobs = shop.folder().join("jobs.ndjson");
    let mut sidekiq = tokio::process::Command::new(need_env("TEST_SIDEKIQ"))
        .args(["-r", "./worker.rb", "-q", &queue, "-c", "1", "-e", "test"])
        .current_dir(shop.folder())
        .env("REDIS_URL", &url)
        .env("JOBS", &jobs)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let lines = || std::fs::read_to_string(&jobs).unwrap_or_default().matches('\n').count();
    until("three jobs", || lines() == 3).await;
    sidekiq.kill().await.unwrap();
    let done = lines_of(&jobs);
    assert_eq!(ids(&done), event_ids(&shop).await);
    for job in &done {
        assert_eq!(job["jid"].as_str().unwrap().len(), 24, "{job}");
        assert_eq!(job["event"]["type"], "transaction.succeeded");
        assert_eq!(job["event"]["schema"], "tieout.event/1");
    }
    // Nothing is left, and nothing is sent twice.
    let ran = deliver(&shop, &[]).await.ended(0);
    assert_eq!(of_sink(&ran, "worker")["delivered"], 0);
    let asked = redis(&url, &["LLEN", &format!("queue:{queue}")]).await;
    assert_eq!(asked, ["0"]);
    shop.check(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_sent_again_is_the_same_job() {
    let (url, queue) = (need_env("TEST_REDIS_URL"), fresh("again"));
    let shop = sold(Engine::Sqlite, &sidekiq_sink(&url, &queue), 1).await;
    deliver(&shop, &[]).await.ended(0);
    // As if it had been killed before it marked.
    let past = at_text(tieout_now() - 1);
    shop.raw
        .execute(&format!(
            "update tieout_outbox set delivered_at = null; update tieout_deliveries set \
             state = 'waiting', ended_at = null, next_attempt_at = '{past}'"
        ))
        .await;
    deliver(&shop, &[]).await.ended(0);
    let jobs = redis(&url, &["LRANGE", &format!("queue:{queue}"), "0", "-1"]).await;
    let jobs: Vec<Value> = jobs.iter().map(|job| serde_json::from_str(job).unwrap()).collect();
    assert_eq!(jobs.len(), 2);
    assert_eq!(jobs[0]["jid"], jobs[1]["jid"]);
    assert_eq!(jobs[0]["args"], jobs[1]["args"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn resque_has_its_documented_payload() {
    let (url, queue) = (need_env("TEST_REDIS_URL"), fresh("resque"));
    let sink = format!(
        "[[sink]]\nname = \"worker\"\nkind = \"resque\"\nurl = \"{url}\"\nqueue = \"{queue}\"\n\
         class = \"TakeEvent\"\n"
    );
    let shop = sold(Engine::Sqlite, &sink, 2).await;
    deliver(&shop, &[]).await.ended(0);
    let queues = redis(&url, &["SMEMBERS", "resque:queues"]).await;
    assert!(queues.contains(&queue), "{queues:?}");
    // As a worker of Resque's takes them: from the left.
    let mut taken = Vec::new();
    for _each in 0..2 {
        let job = redis(&url, &["LPOP", &format!("resque:queue:{queue}")]).await.remove(0);
        let job: Value = serde_json::from_str(&job).unwrap();
        let fields: Vec<&String> = job.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["args", "class"]);
        assert_eq!(job["class"], "TakeEvent");
        assert_eq!(job["args"].as_array().unwrap().len(), 1);
        taken.push(job["args"][0].clone());
    }
    assert_eq!(ids(&taken), event_ids(&shop).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_redis_refuses_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let port = ports::free().to_string();
    let _server = tokio::process::Command::new(need_env("TEST_REDIS_SERVER"))
        .args(["--bind", "127.0.0.1", "--port", &port, "--save", "", "--requirepass", "s3cr3t w"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    until("Redis", || std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok()).await;
    let sink = |password: &str| {
        format!(
            "[[sink]]\nname = \"worker\"\nkind = \"sidekiq\"\nqueue = \"q\"\nclass = \"C\"\n\
             url_command = [\"printf\", \"%s\", \"redis://:{password}@127.0.0.1:{port}/1\"]\n"
        )
    };
    let mut shop = sold(Engine::Sqlite, &sink("wrong-s3cr3t"), 1).await;
    let ran = deliver(&shop, &[]).await.ended(12);
    assert_eq!(of_sink(&ran, "worker")["state"], "failing");
    assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("s3cr3t"), "{}", ran.stderr);
    let doctor = shop.tieout(&["doctor", "--json"]).await;
    assert!(!doctor.stdout.contains("s3cr3t"), "{}", doctor.stdout);
    shop.words.sinks = sink("s3cr3t%20w") + super::BY_HAND;
    shop.write_words();
    // Left alone for a while, unless a person says so.
    let ran = deliver(&shop, &[]).await.ended(3);
    assert_eq!(of_sink(&ran, "worker")["state"], "left_alone");
    let ran = deliver(&shop, &["--now"]).await.ended(0);
    assert_eq!(of_sink(&ran, "worker")["delivered"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn beanstalkd_hands_out_what_was_put() {
    let (url, tube) = (need_env("TEST_BEANSTALKD_URL"), fresh("charges"));
    let sink = format!(
        "[[sink]]\nname = \"tube\"\nkind = \"beanstalkd\"\nurl = \"{url}\"\ntube = \"{tube}\"\n\
         ttr = \"90s\"\n"
    );
    let shop = sold(Engine::Sqlite, &sink, 3).await;
    let ran = deliver(&shop, &[]).await.ended(0);
    assert_eq!(of_sink(&ran, "tube")["delivered"], 3);
    let mut stream = BufReader::new(TcpStream::connect(host_of(&url)).await.unwrap());
    assert!(told(&mut stream, &format!("watch {tube}")).await.starts_with("WATCHING"));
    let mut taken = Vec::new();
    for _each in 0..3 {
        let answer = told(&mut stream, "reserve-with-timeout 5").await;
        let words: Vec<&str> = answer.split(' ').collect();
        assert_eq!(words[0], "RESERVED", "{answer}");
        let mut body = vec![0; words[2].parse::<usize>().unwrap() + 2];
        stream.read_exact(&mut body).await.unwrap();
        taken.push(serde_json::from_slice(&body).unwrap());
        assert_eq!(told(&mut stream, &format!("delete {}", words[1])).await, "DELETED");
    }
    assert_eq!(ids(&taken), event_ids(&shop).await);
    assert_eq!(told(&mut stream, "reserve-with-timeout 0").await, "TIMED_OUT");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_looks_at_every_server_and_sends_nothing() {
    let (redis_url, tube_url) = (need_env("TEST_REDIS_URL"), need_env("TEST_BEANSTALKD_URL"));
    let queue = fresh("doctor");
    let sinks = format!(
        "{}[[sink]]\nname = \"tube\"\nkind = \"beanstalkd\"\nurl = \"{tube_url}\"\n\
         tube = \"{queue}\"\n[[sink]]\nname = \"gone\"\nkind = \"beanstalkd\"\n\
         url = \"beanstalk://127.0.0.1:1\"\ntube = \"t\"\n",
        sidekiq_sink(&redis_url, &queue)
    );
    let shop = sold(Engine::Sqlite, &sinks, 1).await;
    let ran = shop.tieout(&["doctor", "--json"]).await.ended(3);
    let checks = ran.of_type("check");
    let state = |what: &str| {
        let check = checks.iter().find(|check| check["what"] == what);
        check.unwrap_or_else(|| panic!("{what}: {}", ran.stdout))["state"].clone()
    };
    assert_eq!(state("worker sidekiq"), json!("ok"));
    assert_eq!(state("tube beanstalkd"), json!("ok"));
    assert_eq!(state("gone beanstalkd"), json!("fail"));
    assert_eq!(redis(&redis_url, &["EXISTS", &format!("queue:{queue}")]).await, ["0"]);
    assert_eq!(shop.count("tieout_deliveries").await, 0);
}

fn host_of(url: &str) -> String {
    let url = reqwest::Url::parse(url).unwrap();
    format!("{}:{}", url.host_str().unwrap(), url.port().unwrap())
}

async fn told(stream: &mut BufReader<TcpStream>, words: &str) -> String {
    stream.write_all(format!("{words}\r\n").as_bytes()).await.unwrap();
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    line.trim_end().to_owned()
}

/// Asks Redis by its own protocol, without a client of the product's.
async fn redis(url: &str, words: &[&str]) -> Vec<String> {
    let mut stream = BufReader::new(TcpStream::connect(host_of(url)).await.unwrap());
    let mut command = format!("*{}\r\n", words.len());
    for word in words {
        command += &format!("${}\r\n{word}\r\n", word.len());
    }
    stream.write_all(command.as_bytes()).await.unwrap();
    let mut wanted = 1;
    let mut texts = Vec::new();
    while texts.len() < wanted {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let line = line.trim_end();
        let rest = &line[1..];
        match &line[..1] {
            "*" => wanted = rest.parse().unwrap(),
            "$" => {
                let mut body = vec![0; rest.parse::<usize>().expect(line) + 2];
                stream.read_exact(&mut body).await.unwrap();
                body.truncate(body.len() - 2);
                texts.push(String::from_utf8(body).unwrap());
            }
            ":" | "+" => texts.push(rest.to_owned()),
            _error => panic!("{words:?}: {line}"),
        }
    }
    texts
}
