//! The three forms of logs, each read as the tools that gather them read it.

use regex::Regex;
use serde_json::Value;

use super::configure;
use crate::cli_run::{CAPTURED, Shop};

/// A run that has something to say: nobody told it where to ping.
async fn log_of(form: &str) -> String {
    let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
    configure(&shop, "[monitoring]\nhealthcheck = { url_env = \"NOWHERE\" }\n");
    let ended = shop.tieout(&["run", "--log-format", form, "--log-file", "run.log"], &[]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "", ""));
    let log = std::fs::read_to_string(shop.path().join("run.log")).unwrap();
    assert!(log.contains("Monitoring was not told"), "{log}");
    assert!(!log.contains("sk_test") && !log.contains('\u{1b}'), "{log}");
    log
}

/// What each flag is told to log, and where.
#[tokio::test(flavor = "multi_thread")]
async fn each_flag_logs_what_the_help_says_and_nothing_on_stdout() {
    let asked = "asked stripe_test: 0 rows by list, 1 one by one";
    for (words, env, has_summary, levels) in [
        (&[][..], None, false, &[][..]),
        (&["-v"], None, true, &[]),
        (&["-vv"], None, true, &[" INFO "]),
        (&["-vvv"], None, true, &[" INFO ", "DEBUG "]),
        (&[], Some(("TIEOUT_VERBOSE", "2")), true, &[" INFO "]),
        (&[], Some(("TIEOUT_LOG_FILE", "run.log")), false, &[" INFO "]),
        (&["--log-file", "run.log", "-v"], None, true, &[" INFO "]),
        (&["--log-file", "run.log", "-vvv"], None, true, &[" INFO ", "DEBUG "]),
    ] {
        let shop = Shop::with(&[("pay_1", 1_999, CAPTURED)]).await;
        let env: Vec<(&str, &str)> = env.into_iter().collect();
        let ended = shop.tieout(&[&["run"], words].concat(), &env);
        assert_eq!(ended.code, Some(0), "{words:?}: {}", ended.stderr);
        assert_eq!(ended.stdout.contains("tie-out"), has_summary, "{words:?}: {}", ended.stdout);
        assert!(!ended.stdout.contains(asked), "{words:?}: {}", ended.stdout);
        let log = match std::fs::read_to_string(shop.path().join("run.log")) {
            Ok(log) => {
                assert_eq!(ended.stderr, "", "{words:?}: a log in a file is on stderr too");
                log
            }
            Err(_none) => ended.stderr,
        };
        let there = [" WARN ", " INFO ", "DEBUG "].into_iter().filter(|l| log.contains(l));
        assert_eq!(there.collect::<Vec<_>>(), levels, "{words:?} {env:?}: {log}");
        assert_eq!(log.contains(asked), levels.contains(&" INFO "), "{words:?}: {log}");
        assert!(!log.contains("sk_test"), "{words:?}: {log}");
    }
}

/// The library that reads the database's address quotes the parameters that it does not know.
#[tokio::test(flavor = "multi_thread")]
async fn no_log_quotes_the_address_of_the_database() {
    let shop = Shop::open().await;
    let path = shop.path().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let named = "url_env = \"SHOP_DATABASE\"\nconnect_timeout = \"1s\"";
    std::fs::write(&path, text.replace("url = \"sqlite:shop.db\"", named)).unwrap();
    let passwords = shop.path().join("pgpass");
    std::fs::write(&passwords, "one:two:geheim\n").unwrap();
    std::fs::set_permissions(&passwords, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    let passwords = passwords.to_str().unwrap();
    // A parameter that nobody knows is passed over, and one that is a secret is refused.
    for (parameter, code) in [("sslpasswort=geheim", 14), ("sslpassword=geheim", 10)] {
        let address = format!("postgres://u@127.0.0.1:1/x?sslmode=disable&{parameter}");
        let env = [("SHOP_DATABASE", address.as_str()), ("PGPASSFILE", passwords)];
        for verbose in ["-v", "-vv", "-vvv"] {
            for form in ["text", "json", "logfmt"] {
                let ended = shop.tieout(&["run", verbose, "--log-format", form], &env);
                assert_eq!(ended.code, Some(code), "{}", ended.stderr);
                let said = ended.stdout + &ended.stderr;
                assert!(!said.contains("geheim"), "{verbose} {form}: {said}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_is_one_object_a_line() {
    for line in log_of("json").await.lines() {
        let fields: Value = serde_json::from_str(line).expect(line);
        for name in ["timestamp", "level", "target", "message"] {
            assert!(fields[name].is_string(), "{name}: {line}");
        }
        assert!(
            chrono::DateTime::parse_from_rfc3339(fields["timestamp"].as_str().unwrap()).is_ok()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logfmt_is_pairs() {
    let pair = r#"[a-z_.]+=([^\s"=\\]+|"([^"\\]|\\.)*")"#;
    let line_form = Regex::new(&format!("^{pair}( {pair})*$")).unwrap();
    for line in log_of("logfmt").await.lines() {
        assert!(line_form.is_match(line), "{line}");
        for name in ["ts=", " level=", " target=", " msg="] {
            assert!(line.contains(name), "{name}: {line}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_for_people() {
    for line in log_of("text").await.lines() {
        assert!(line.contains(" INFO ") || line.contains(" WARN "), "{line}");
    }
}

/// Both ends of what is asked for are read by the same tools as the time of the line.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_has_both_its_ends_in_one_form() {
    let ids = ["pay_1", "pay_2", "pay_3", "pay_4", "pay_5", "pay_6", "pay_7", "pay_8"];
    let shop = Shop::with(&ids.map(|id| (id, 500, CAPTURED))).await;
    let ended = shop.tieout(&["run", "--log-format", "json", "--log-file", "run.log"], &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let log = std::fs::read_to_string(shop.path().join("run.log")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    let plans: Vec<Value> = lines.filter(|fields| fields["plan.route"].is_string()).collect();
    assert!(!plans.is_empty(), "{log}");
    for plan in plans {
        let [from, to] = ["plan.from", "plan.to"].map(|end| {
            let text = plan[end].as_str().unwrap_or_else(|| panic!("{end}: {plan}"));
            chrono::DateTime::parse_from_rfc3339(text).unwrap_or_else(|_| panic!("{end}: {plan}"))
        });
        assert!(from < to, "{plan}");
    }
}
