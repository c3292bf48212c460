//! Rows that are given up for good: no case tells of them, so that the run that ends them does,
//! each of such runs anew.

use std::path::PathBuf;

use crate::run::shop::{Engine, Payment, Ran, Shop, Words, on_both_databases};

on_both_databases!(
    each_run_that_gives_up_rows_is_told,
    a_row_that_ends_beside_an_open_case_is_told,
    what_no_receiver_took_is_told_once_it_is_over,
);

/// A mail's command that takes nothing while this file is there.
const DEAF: &str = "deaf";

/// Gives up what the PSP knows nothing of, at once, and mails it.
async fn shop(engine: Engine, gave_up: &str) -> Shop {
    let mails = "[[monitoring.alert]]\nname = \"ops\"\nkind = \"sendmail\"\n\
                 command = [\"/bin/sh\", \"MAILER\"]\nto = [\"ops@example.com\"]\n\
                 conditions = [\"gave_up\"]\n";
    let words = Words { more: mails.to_owned(), ..Words::default() };
    let words = words.policy("max_retries", "0").policy("gave_up", &format!("\"{gave_up}\""));
    let mut shop = Shop::open_with(engine, words).await;
    let mailer = shop.folder().join("mailer");
    let (deaf, mail) = (shop.folder().join(DEAF), mail(&shop));
    let script = format!("test ! -e {} && cat > {}\n", deaf.display(), mail.display());
    std::fs::write(&mailer, script).unwrap();
    change(&shop, "MAILER", &mailer.display().to_string());
    shop.background(60).await;
    shop
}

fn change(shop: &Shop, from: &str, to: &str) {
    let path = shop.folder().join("tieout.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let changed = text.replace(from, to);
    assert_ne!(changed, text);
    std::fs::write(&path, changed).unwrap();
}

fn mail(shop: &Shop) -> PathBuf {
    shop.folder().join("mail")
}

/// What one more run mailed, if anything, cut to what follows the head.
async fn told(shop: &Shop) -> (Ran, String) {
    let _none_yet = std::fs::remove_file(mail(shop));
    shop.due_now().await;
    let ran = shop.run().await.ended(0);
    let mail = std::fs::read_to_string(mail(shop)).unwrap_or_default();
    let body = mail.split_once("\n\n").map_or("", |(_, body)| body).to_owned();
    (ran, body)
}

/// Runs until this row has this end; what the last run mailed.
async fn told_at(shop: &Shop, id: i64, verdict: &str) -> (Ran, String) {
    for _ in 0..6 {
        let (ran, body) = told(shop).await;
        if ran.verdicts().contains_key(&id.to_string()) && ran.verdict(id) == verdict {
            return (ran, body);
        }
        assert_eq!(body, "", "nothing was given up: {ran:?}");
        shop.a_span_passes().await;
    }
    panic!("row {id} never came to {verdict}");
}

fn run_id(ran: &Ran) -> String {
    ran.of_type("run_start")[0]["run_id"].as_str().unwrap().to_owned()
}

async fn each_run_that_gives_up_rows_is_told(engine: Engine) {
    let shop = shop(engine, "failed").await;
    shop.insert(&[Payment::stuck(1)]).await;
    told(&shop).await;
    shop.a_span_passes().await;
    // The second is one look behind: it ends in the run after the first one's.
    shop.insert(&[Payment::stuck(2)]).await;
    let (first, body) = told_at(&shop, 1, "failed gave_up").await;
    let said = |ran: &Ran, sum: u8| {
        let run = run_id(ran);
        format!("RAISED gave_up (attention): 1 row given up as failed by {run} (so far: {sum})")
    };
    assert!(body.starts_with(&said(&first, 1)), "{body}");
    shop.a_span_passes().await;
    let (second, body) = told(&shop).await;
    assert_eq!(second.verdict(2), "failed gave_up");
    assert!(body.starts_with(&said(&second, 2)), "{body}");
    let (_, body) = told(&shop).await;
    assert!(body.starts_with("RESOLVED gave_up: it held since "), "{body}");
    let (_, body) = told(&shop).await;
    assert_eq!(body, "");
}

async fn a_row_that_ends_beside_an_open_case_is_told(engine: Engine) {
    let shop = shop(engine, "review").await;
    shop.insert(&[Payment::stuck(1)]).await;
    let (_, body) = told_at(&shop, 1, "review gave_up").await;
    let case = "RAISED gave_up (attention): 1 case of rows that were given up; the first: C-1";
    assert!(body.starts_with(&format!("{case} (since")), "{body}");
    change(&shop, "gave_up = \"review\"", "gave_up = \"failed\"");
    shop.insert(&[Payment::stuck(2)]).await;
    let (ran, body) = told_at(&shop, 2, "failed gave_up").await;
    let ended = format!("{case}; 1 row given up as failed by {} (so far: 1)", run_id(&ran));
    assert!(body.starts_with(&ended), "{body}");
    let (_, body) = told(&shop).await;
    assert_eq!(body, "", "the case is open, and was told of");
}

async fn what_no_receiver_took_is_told_once_it_is_over(engine: Engine) {
    let shop = shop(engine, "failed").await;
    let deaf = shop.folder().join(DEAF);
    std::fs::write(&deaf, "").unwrap();
    shop.insert(&[Payment::stuck(1)]).await;
    let (_, body) = told_at(&shop, 1, "failed gave_up").await;
    assert_eq!(body, "");
    std::fs::remove_file(&deaf).unwrap();
    let (ran, body) = told(&shop).await;
    let late = "RAISED gave_up (attention): rows were given up as failed before ";
    assert!(body.starts_with(&format!("{late}{}, untold as yet", run_id(&ran))), "{body}");
    let (_, body) = told(&shop).await;
    assert!(body.starts_with("RESOLVED gave_up: "), "{body}");
    // One that a run was too late to tell, as a signal ended it, is the next one's.
    let marks = "update tieout_marks set value = value + 1 where name = 'given_up'";
    shop.raw.execute(marks).await;
    let (ran, body) = told(&shop).await;
    let next = format!("1 row given up as failed up to {} (so far: 2)", run_id(&ran));
    assert!(body.contains(&next), "{body}");
}
