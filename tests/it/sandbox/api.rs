//! The API as an honest client meets it.

use serde_json::{Value, json};
use tieout::sandbox::routes::Route;
use tieout::sandbox::seeds::{Seed, SeedKind};
use tieout::sandbox::settings::{ApiKey, Settings};
use tieout::sandbox::situations::Situation;

use super::{DAWN, KEY, Rig, ids, read};

#[tokio::test]
async fn a_payment_is_made_listed_and_fetched() {
    let rig = Rig::new().await;
    let made = rig.pay("row-1").await;
    assert_eq!(made["status"], "succeeded");
    assert_eq!(made["amount_received"], 1000);
    assert_eq!(made["livemode"], false);
    let id = made["id"].as_str().unwrap();

    let listed = rig.json("/v1/payment_intents?limit=3&expand[]=data.latest_charge").await;
    assert_eq!(ids(&listed), [id]);
    assert_eq!(listed["has_more"], false);
    assert_eq!(listed["url"], "/v1/payment_intents");
    let charge = &listed["data"][0]["latest_charge"];
    assert_eq!(charge["metadata"]["order"], "row-1");
    assert_eq!(charge["payment_intent"], id);
    assert_eq!(charge["captured"], true);
    assert_eq!(charge["outcome"]["type"], "authorized");

    let fetched = rig.json(&format!("/v1/payment_intents/{id}")).await;
    assert_eq!(fetched["id"], id);
    assert_eq!(fetched["latest_charge"], charge["id"]);
    let charges = rig.json(&format!("/v1/charges?payment_intent={id}")).await;
    assert_eq!(ids(&charges), [charge["id"].as_str().unwrap()]);
    assert_eq!(rig.sandbox.count(Route::CreateIntent).received, 1);
}

#[tokio::test]
async fn a_list_is_read_to_its_end_in_both_directions() {
    let rig = Rig::with_payments(250).await;
    let mut seen: Vec<String> = Vec::new();
    let mut query = "limit=100".to_owned();
    loop {
        let page = rig.json(&format!("/v1/payment_intents?{query}")).await;
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        if page["has_more"] == json!(false) {
            break;
        }
        query = format!("limit=100&starting_after={}", seen.last().unwrap());
    }
    let newest_first: Vec<String> = (0..250).rev().map(|n| format!("pi_{n}")).collect();
    assert_eq!(seen, newest_first);
    let before = rig.json("/v1/payment_intents?limit=2&ending_before=pi_10").await;
    assert_eq!(ids(&before), ["pi_12", "pi_11"]);
    assert_eq!(before["has_more"], true);
}

#[tokio::test]
async fn created_filters_bound_a_list() {
    let rig = Rig::with_payments(20).await;
    let cases = [
        ("created[gte]=1700000010&created[lt]=1700000013", "pi_12 pi_11 pi_10"),
        ("created[gt]=1700000010&created[lte]=1700000013", "pi_13 pi_12 pi_11"),
        ("created%5Bgte%5D=1700000018", "pi_19 pi_18"),
        ("created=1700000007", "pi_7"),
        ("created[gte]=1700000013&created[lt]=1700000010", ""),
    ];
    for (filter, expected) in cases {
        let page = rig.json(&format!("/v1/payment_intents?{filter}")).await;
        assert_eq!(ids(&page).join(" "), expected, "{filter}");
        let charges = rig.json(&format!("/v1/charges?{filter}")).await;
        assert_eq!(ids(&charges).len(), ids(&page).len(), "{filter}");
    }
}

#[tokio::test]
async fn what_the_api_does_not_know_is_refused_in_its_words() {
    let rig = Rig::with_payments(1).await;
    let cases = [
        ("/v1/payment_intents?status=succeeded", 400, "parameter_unknown", "status"),
        ("/v1/payment_intents?created[after]=1", 400, "parameter_unknown", "created[after]"),
        ("/v1/charges?status=failed", 400, "parameter_unknown", "status"),
        ("/v1/refunds?limit=101", 400, "parameter_invalid_integer", "limit"),
        ("/v1/payment_intents?limit=0", 400, "parameter_invalid_integer", "limit"),
        ("/v1/payment_intents?limit=x", 400, "parameter_invalid_integer", "limit"),
        ("/v1/payment_intents?created[gte]=x", 400, "parameter_invalid_integer", "created[gte]"),
        ("/v1/payment_intents?starting_after=pi_x", 400, "resource_missing", "starting_after"),
        ("/v1/payment_intents/pi_x", 404, "resource_missing", "intent"),
        ("/v1/charges/ch_x", 404, "resource_missing", "id"),
    ];
    for (path, status, code, param) in cases {
        let (got, body) = read(rig.get(path)).await;
        assert_eq!(got, status, "{path}");
        assert_eq!(body["error"]["type"], "invalid_request_error", "{path}");
        assert_eq!(body["error"]["code"], code, "{path}");
        assert_eq!(body["error"]["param"], param, "{path}");
    }
    let expand = "/v1/payment_intents?expand[]=latest_charge";
    assert_eq!(read(rig.get(expand)).await.0, 400, "a list's expansions start with data.");
    assert_eq!(read(rig.get("/v1/nothing")).await.0, 404);
}

#[tokio::test]
async fn keys_open_their_accounts_and_modes() {
    let key = |secret: &str, account: &str| ApiKey {
        secret: secret.to_owned(),
        account: account.to_owned(),
    };
    let keys = vec![key("sk_test_a", "one"), key("sk_live_a", "one"), key("rk_test_b", "two")];
    let rig = Rig::with(Settings { keys, ..Settings::default() }).await;
    let at = |account: &str, live: bool| Seed {
        account: account.to_owned(),
        live,
        ..Seed::captured("order", &format!("{account} {live}"), 5, "usd")
    };
    rig.sandbox.seed([at("one", false), at("one", true), at("two", false)]).unwrap();
    let asked = |key: &str| rig.client.get(rig.url("/v1/payment_intents")).bearer_auth(key);
    for (key, tag) in
        [("sk_test_a", "one false"), ("sk_live_a", "one true"), ("rk_test_b", "two false")]
    {
        let (_, listed) = read(asked(key)).await;
        assert_eq!(listed["data"][0]["metadata"]["order"], tag);
        assert_eq!(listed["data"].as_array().unwrap().len(), 1);
        assert_eq!(listed["data"][0]["livemode"], key == "sk_live_a");
    }
    let (_, connected) = read(asked("sk_test_a").header("Stripe-Account", "two")).await;
    assert_eq!(connected["data"][0]["metadata"]["order"], "two false");
    let unknown = asked(KEY).send().await.unwrap();
    assert_eq!(unknown.status(), 401);
    assert!(unknown.headers().contains_key("www-authenticate"));
    let (status, body) = read(rig.client.get(rig.url("/v1/payment_intents"))).await;
    assert_eq!((status, &body["error"]["type"]), (401, &json!("invalid_request_error")));
    let balance = rig.client.get(rig.url("/v1/balance")).basic_auth("sk_live_a", Some(""));
    assert_eq!(read(balance).await.1["livemode"], true);
}

#[tokio::test]
async fn answers_carry_stripes_headers() {
    let rig = Rig::new().await;
    let answer =
        rig.get("/v1/balance").header("Stripe-Version", "2020-08-27").send().await.unwrap();
    assert!(answer.headers()["request-id"].to_str().unwrap().starts_with("req_"));
    assert_eq!(answer.headers()["stripe-version"], "2020-08-27");
    let date = answer.headers()["date"].to_str().unwrap();
    assert!(chrono::DateTime::parse_from_rfc2822(date).is_ok(), "{date}");
    let requests = rig.sandbox.requests();
    assert_eq!(requests[0].version.as_deref(), Some("2020-08-27"));
    assert_eq!(requests[0].status, Some(200));
}

#[tokio::test]
async fn payment_methods_bring_about_what_they_are_named_for() {
    let rig = Rig::new().await;
    let cases = [
        ("pm_card_visa", 200, "succeeded", "", "", ""),
        ("pm_of_the_users_own", 200, "succeeded", "", "", ""),
        ("pm_card_chargeDeclined", 402, "", "card_declined", "generic_decline", "try_again_later"),
        (
            "pm_card_visa_chargeDeclinedInsufficientFunds",
            402,
            "",
            "card_declined",
            "insufficient_funds",
            "try_again_later",
        ),
        (
            "pm_card_visa_chargeDeclinedStolenCard",
            402,
            "",
            "card_declined",
            "stolen_card",
            "do_not_try_again",
        ),
        (
            "pm_card_chargeDeclinedExpiredCard",
            402,
            "",
            "expired_card",
            "expired_card",
            "do_not_try_again",
        ),
        (
            "pm_card_chargeDeclinedIncorrectCvc",
            402,
            "",
            "incorrect_cvc",
            "incorrect_cvc",
            "confirm_card_data",
        ),
        ("pm_sandbox_decline.do_not_honor.none", 402, "", "card_declined", "do_not_honor", ""),
        (
            "pm_sandbox_decline.new_code.do_not_try_again",
            402,
            "",
            "card_declined",
            "new_code",
            "do_not_try_again",
        ),
        ("pm_usBankAccount", 200, "processing", "", "", ""),
        ("pm_card_authenticationRequired", 200, "requires_action", "", "", ""),
        ("pm_card_createDispute", 200, "succeeded", "", "", ""),
    ];
    for (method, status, state, code, decline, advice) in cases {
        let (got, body) = read(rig.paying_by(method, method)).await;
        assert_eq!(got, status, "{method}");
        if status == 200 {
            assert_eq!(body["status"], state, "{method}");
            continue;
        }
        let error = &body["error"];
        assert_eq!(error["type"], "card_error", "{method}");
        assert_eq!(error["code"], code, "{method}");
        assert_eq!(error["decline_code"], decline, "{method}");
        assert_eq!(error["advice_code"].as_str().unwrap_or(""), advice, "{method}");
        let intent = &error["payment_intent"];
        assert_eq!(intent["status"], "requires_payment_method", "{method}");
        assert_eq!(intent["last_payment_error"]["decline_code"], decline, "{method}");
        assert_eq!(intent["payment_method"], Value::Null, "{method}");
        let charge = error["charge"].as_str().unwrap();
        let charge = rig.json(&format!("/v1/charges/{charge}")).await;
        assert_eq!(charge["status"], "failed", "{method}");
        assert_eq!(charge["failure_code"], code, "{method}");
        assert_eq!(charge["outcome"]["reason"], decline, "{method}");
        assert_eq!(charge["paid"], false, "{method}");
        assert_eq!(charge["metadata"]["order"], method, "{method}");
    }
    assert_eq!(rig.json("/v1/disputes").await["data"][0]["status"], "needs_response");
}

#[tokio::test]
async fn a_bank_debit_settles_later() {
    let rig = Rig::new().await;
    let (_, made) = read(rig.paying_by("pm_sandbox_processing.succeeded.0", "bank")).await;
    assert_eq!(made["status"], "processing");
    let path =
        format!("/v1/payment_intents/{}?expand[]=latest_charge", made["id"].as_str().unwrap());
    loop {
        let now = rig.json(&path).await;
        if now["status"] == "succeeded" {
            assert_eq!(now["latest_charge"]["id"], made["latest_charge"]);
            assert_eq!(now["latest_charge"]["captured"], true);
            break;
        }
        assert_eq!(now["status"], "processing");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_authorisation_is_captured_in_part_or_canceled() {
    let rig = Rig::new().await;
    let form = [
        ("amount", "900"),
        ("currency", "EUR"),
        ("confirm", "true"),
        ("payment_method", "pm_card_visa"),
        ("capture_method", "manual"),
    ];
    let open = |rig: &Rig| read(rig.post("/v1/payment_intents", &form));
    let (_, held) = open(&rig).await;
    assert_eq!((&held["status"], &held["currency"]), (&json!("requires_capture"), &json!("eur")));
    assert_eq!(held["amount_capturable"], 900);
    let path = format!("/v1/payment_intents/{}", held["id"].as_str().unwrap());
    let too_much = rig.post(&format!("{path}/capture"), &[("amount_to_capture", "901")]);
    assert_eq!(read(too_much).await.0, 400);
    let (_, taken) =
        read(rig.post(&format!("{path}/capture"), &[("amount_to_capture", "600")])).await;
    assert_eq!((&taken["status"], &taken["amount_received"]), (&json!("succeeded"), &json!(600)));
    let (status, again) = read(rig.post(&format!("{path}/cancel"), &[])).await;
    assert_eq!((status, &again["error"]["code"]), (400, &json!("payment_intent_unexpected_state")));

    let (_, held) = open(&rig).await;
    let path = format!("/v1/payment_intents/{}", held["id"].as_str().unwrap());
    let reason = [("cancellation_reason", "abandoned"), ("expand[]", "latest_charge")];
    let (_, gone) = read(rig.post(&format!("{path}/cancel"), &reason)).await;
    assert_eq!(gone["status"], "canceled");
    assert_eq!(gone["cancellation_reason"], "abandoned");
    assert_eq!(gone["latest_charge"]["refunded"], true);
    assert_eq!(gone["latest_charge"]["captured"], false);
}

#[tokio::test]
async fn an_intent_is_made_now_and_paid_later() {
    let rig = Rig::new().await;
    let form = [("amount", "5"), ("currency", "usd"), ("metadata[order]", "cart")];
    let (_, cart) = read(rig.post("/v1/payment_intents", &form)).await;
    assert_eq!(cart["status"], "requires_payment_method");
    assert_eq!(cart["last_payment_error"], Value::Null);
    assert_eq!(cart["latest_charge"], Value::Null);
    let path = format!("/v1/payment_intents/{}", cart["id"].as_str().unwrap());
    assert_eq!(read(rig.post(&format!("{path}/confirm"), &[])).await.0, 400);
    let decline = [("payment_method", "pm_card_chargeDeclined")];
    assert_eq!(read(rig.post(&format!("{path}/confirm"), &decline)).await.0, 402);
    let pay = [("payment_method", "pm_card_visa")];
    let (_, paid) = read(rig.post(&format!("{path}/confirm"), &pay)).await;
    assert_eq!((&paid["status"], &paid["last_payment_error"]), (&json!("succeeded"), &Value::Null));
    let charges =
        rig.json(&format!("/v1/charges?payment_intent={}", cart["id"].as_str().unwrap())).await;
    assert_eq!(charges["data"].as_array().unwrap().len(), 2);
    let (_, tagged) =
        read(rig.post(&path, &[("metadata[order]", "new"), ("metadata[x]", "1")])).await;
    assert_eq!(tagged["metadata"], json!({ "order": "new", "x": "1" }));
}

#[tokio::test]
async fn charges_and_refunds_stand_alone_too() {
    let rig = Rig::new().await;
    let form =
        [("amount", "700"), ("currency", "usd"), ("source", "tok_visa"), ("metadata[o]", "c")];
    let (_, charge) = read(rig.post("/v1/charges", &form)).await;
    assert_eq!((&charge["status"], &charge["captured"]), (&json!("succeeded"), &json!(true)));
    assert_eq!(charge["payment_intent"], Value::Null);
    let id = charge["id"].as_str().unwrap();
    let part = [("charge", id), ("amount", "200"), ("metadata[refund]", "r1")];
    let (_, refund) = read(rig.post("/v1/refunds", &part)).await;
    assert_eq!((&refund["status"], &refund["amount"]), (&json!("succeeded"), &json!(200)));
    assert_eq!(refund["metadata"]["refund"], "r1");
    let (_, rest) = read(rig.post("/v1/refunds", &[("charge", id)])).await;
    assert_eq!(rest["amount"], 500);
    let (status, over) = read(rig.post("/v1/refunds", &[("charge", id)])).await;
    assert_eq!((status, &over["error"]["code"]), (400, &json!("charge_already_refunded")));
    let charge = rig.json(&format!("/v1/charges/{id}?expand[]=refunds")).await;
    assert_eq!((&charge["refunded"], &charge["amount_refunded"]), (&json!(true), &json!(700)));
    assert_eq!(ids(&charge["refunds"]).len(), 2);
    let listed = rig.json(&format!("/v1/refunds?charge={id}&expand[]=data.charge")).await;
    assert_eq!(listed["data"][1]["charge"]["id"], id);

    let held = [("amount", "9"), ("currency", "usd"), ("source", "tok_visa"), ("capture", "false")];
    let (_, held) = read(rig.post("/v1/charges", &held)).await;
    assert_eq!(held["captured"], false);
    let path = format!("/v1/charges/{}/capture", held["id"].as_str().unwrap());
    assert_eq!(read(rig.post(&path, &[])).await.1["captured"], true);
    assert_eq!(read(rig.post(&path, &[])).await.1["error"]["code"], "charge_already_captured");
    let failing = [("amount", "9"), ("currency", "usd"), ("source", "tok_chargeDeclined")];
    assert_eq!(read(rig.post("/v1/charges", &failing)).await.0, 402);
    assert_eq!(rig.sandbox.objects(SeedKind::Charge)[0]["status"], "failed");
}

#[tokio::test]
async fn every_situation_can_be_seeded() {
    use Situation::*;
    let rig = Rig::new().await;
    // Status of the intent, status of its charge, captured, and what else tells it apart.
    let cases = [
        (Succeeded, "succeeded", "succeeded", true, "/amount_received", json!(1000)),
        (
            Processing,
            "processing",
            "pending",
            false,
            "/payment_method_types/0",
            json!("us_bank_account"),
        ),
        (
            RequiresCapture,
            "requires_capture",
            "succeeded",
            false,
            "/amount_capturable",
            json!(1000),
        ),
        (
            RequiresAction,
            "requires_action",
            "",
            false,
            "/next_action/type",
            json!("use_stripe_sdk"),
        ),
        (
            RequiresConfirmation,
            "requires_confirmation",
            "",
            false,
            "/last_payment_error",
            Value::Null,
        ),
        (
            RequiresPaymentMethod,
            "requires_payment_method",
            "",
            false,
            "/payment_method",
            Value::Null,
        ),
        (
            Declined,
            "requires_payment_method",
            "failed",
            false,
            "/last_payment_error/code",
            json!("card_declined"),
        ),
        (Canceled, "canceled", "", false, "/canceled_at", json!(DAWN)),
        (Refunded, "succeeded", "succeeded", true, "/latest_charge/refunded", json!(true)),
        (Disputed, "succeeded", "succeeded", true, "/latest_charge/disputed", json!(true)),
        (DisputeLost, "succeeded", "succeeded", true, "/latest_charge/disputed", json!(true)),
        (DisputeWon, "succeeded", "succeeded", true, "/latest_charge/disputed", json!(true)),
    ];
    for (situation, status, charge, captured, pointer, value) in cases {
        let seed = Seed::captured("order", "x", 1000, "usd").standing(situation).created_at(DAWN);
        let id = rig.sandbox.seed([seed]).unwrap().remove(0);
        let seen = rig.json(&format!("/v1/payment_intents/{id}?expand[]=latest_charge")).await;
        let attempt = &seen["latest_charge"];
        assert_eq!(seen["status"], status, "{situation:?}");
        assert_eq!(attempt["status"].as_str().unwrap_or(""), charge, "{situation:?}");
        assert_eq!(attempt["captured"].as_bool().unwrap_or(false), captured, "{situation:?}");
        assert_eq!(seen.pointer(pointer), Some(&value), "{situation:?}");
    }
    let disputes = rig.json("/v1/disputes").await;
    let states: Vec<&str> = disputes["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["status"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["won", "lost", "needs_response"]);
}

#[tokio::test]
async fn a_seed_may_say_anything_and_is_refused_whole() {
    let rig = Rig::new().await;
    let odd = Seed {
        id: Some("pi_odd".to_owned()),
        charge_id: Some("ch_odd".to_owned()),
        decline_code: Some("fraudulent".to_owned()),
        situation: Situation::Declined,
        livemode: Some(true),
        overlay: json!({ "status": "unheard_of", "processing": { "x": 1 } })
            .as_object()
            .unwrap()
            .clone(),
        ..Seed::default()
    };
    let part = Seed {
        situation: Situation::Refunded,
        moved_amount: Some(300),
        ..Seed::captured("order", "part", 1000, "usd")
    };
    let of_charge =
        Seed { kind: SeedKind::Refund, charge: Some("ch_odd".to_owned()), ..Seed::default() };
    let ids = rig.sandbox.seed([odd, part, of_charge]).unwrap();
    let seen = rig.json("/v1/payment_intents/pi_odd").await;
    assert_eq!(seen["status"], "unheard_of");
    assert_eq!(seen["processing"]["x"], 1);
    assert_eq!(seen["livemode"], true);
    assert_eq!(seen["latest_charge"], "ch_odd");
    assert_eq!(seen["last_payment_error"]["charge"], "ch_odd");
    let path = format!("/v1/payment_intents/{}?expand[]=latest_charge", ids[1]);
    let part = rig.json(&path).await;
    assert_eq!(part["latest_charge"]["amount_refunded"], 300);
    assert_eq!(part["latest_charge"]["refunded"], false);
    assert_eq!(rig.json("/v1/refunds?charge=ch_odd").await["data"][0]["id"], ids[2].as_str());

    let before = rig.sandbox.objects(SeedKind::Intent).len();
    let wrong =
        Seed { kind: SeedKind::Charge, situation: Situation::RequiresAction, ..Seed::default() };
    let error = rig.sandbox.seed([Seed::default(), wrong]).unwrap_err().to_string();
    assert!(error.starts_with("object 2 of the seed cannot be made"), "{error}");
    let twice = Seed { id: Some("pi_odd".to_owned()), ..Seed::default() };
    assert!(rig.sandbox.seed([twice]).is_err());
    assert_eq!(rig.sandbox.objects(SeedKind::Intent).len(), before);
}

#[tokio::test]
async fn search_finds_by_tag_whatever_its_case_and_pages() {
    let rig = Rig::with_payments(5).await;
    let search = |query: &str| {
        rig.get("/v1/payment_intents/search").query(&[("query", query), ("limit", "2")])
    };
    let (_, one) = read(search("metadata['order']:'ROW-3'")).await;
    assert_eq!((&one["object"], ids(&one)), (&json!("search_result"), vec!["pi_3"]));
    assert_eq!(one["next_page"], Value::Null);
    let (_, both) = read(search("metadata['order']:'row-3' AND currency:'usd'")).await;
    assert!(ids(&both).is_empty());
    let (_, first) = read(search("status:'succeeded'")).await;
    assert_eq!((ids(&first), &first["has_more"]), (vec!["pi_4", "pi_3"], &json!(true)));
    let next = first["next_page"].as_str().unwrap();
    let (_, second) = read(search("status:'succeeded'").query(&[("page", next)])).await;
    assert_eq!(ids(&second), ["pi_2", "pi_1"]);
    assert_eq!(read(search("status:succeeded")).await.0, 400);
    let charges = rig.get("/v1/charges/search").query(&[("query", "metadata['order']:'row-1'")]);
    assert_eq!(read(charges).await.1["data"][0]["payment_intent"], "pi_1");
    rig.pay("row-3").await;
    let (_, two) = read(search("metadata['order']:'row-3'")).await;
    assert_eq!(ids(&two).len(), 2);
}

#[tokio::test]
async fn the_same_seed_and_requests_give_the_same_bytes() {
    let mut runs = Vec::new();
    for seed in [5, 5, 6] {
        let settings = Settings { seed, frozen_at: Some(DAWN), ..Settings::default() };
        let rig = Rig::with(settings).await;
        rig.pay("a").await;
        read(rig.paying_by("pm_card_chargeDeclined", "b")).await;
        let list = rig.get("/v1/payment_intents?expand[]=data.latest_charge").send().await.unwrap();
        let headers = format!("{:?} {:?}", list.headers()["date"], list.headers()["request-id"]);
        runs.push((headers, list.text().await.unwrap()));
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0].1, runs[2].1);
}

#[tokio::test]
async fn spelled_out_methods_reach_what_stripes_names_do_not() {
    let rig = Rig::new().await;
    let (status, blocked) = read(rig.paying_by("pm_sandbox_blocked", "a")).await;
    assert_eq!(status, 402);
    let charge = blocked["error"]["charge"].as_str().unwrap();
    let charge = rig.json(&format!("/v1/charges/{charge}")).await;
    assert_eq!(charge["outcome"]["type"], "blocked");
    assert_eq!(charge["outcome"]["network_status"], "not_sent_to_network");

    let (_, refunded) = read(rig.paying_by("pm_sandbox_refund", "b")).await;
    assert_eq!(refunded["status"], "succeeded");
    let refunds =
        rig.json(&format!("/v1/refunds?payment_intent={}", refunded["id"].as_str().unwrap())).await;
    assert_eq!(refunds["data"][0]["amount"], 1000);

    let alone = rig.post(
        "/v1/payment_intents",
        &[
            ("amount", "5"),
            ("currency", "eur"),
            ("confirm", "true"),
            ("off_session", "true"),
            ("payment_method", "pm_sandbox_action"),
        ],
    );
    let (status, refused) = read(alone).await;
    assert_eq!((status, &refused["error"]["code"]), (402, &json!("authentication_required")));

    let (_, bank) = read(rig.paying_by("pm_sandbox_processing.declined.0", "c")).await;
    let path = format!("/v1/payment_intents/{}", bank["id"].as_str().unwrap());
    let failed = loop {
        let now = rig.json(&path).await;
        if now["status"] != "processing" {
            break now;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    assert_eq!(failed["status"], "requires_payment_method");
    assert_eq!(failed["last_payment_error"]["decline_code"], "insufficient_funds");
    assert_eq!(failed["last_payment_error"]["charge"], bank["latest_charge"]);
}
