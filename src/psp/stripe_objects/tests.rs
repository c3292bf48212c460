//! Every status of Stripe's reference with what it means, as one table.

use super::*;
use serde_json::{Value, json};

/// The whole object with `changes` over it.
fn over(base: Value, changes: Value) -> Value {
    let (Value::Object(mut base), Value::Object(changes)) = (base, changes) else { panic!() };
    base.extend(changes);
    Value::Object(base)
}

fn charge(changes: Value) -> Value {
    let base = json!({
        "id": "ch_1", "object": "charge", "created": 1_700_000_100, "livemode": false,
        "amount": 1999, "amount_captured": 1999, "amount_refunded": 0, "refunded": false,
        "captured": true, "disputed": false, "currency": "usd", "status": "succeeded",
        "metadata": {}, "payment_intent": "pi_1", "failure_code": null, "outcome": null,
        "payment_method_details": {"type": "card", "card": {"brand": "visa"}}
    });
    over(base, changes)
}

fn alone(changes: Value) -> Value {
    over(charge(json!({"payment_intent": null})), changes)
}

fn intent(changes: Value) -> Value {
    let base = json!({
        "id": "pi_1", "object": "payment_intent", "created": 1_700_000_000, "livemode": false,
        "amount": 1999, "amount_received": 0, "currency": "usd", "status": "succeeded",
        "metadata": {"tieout_id": "row-1"}, "latest_charge": null, "last_payment_error": null,
        "cancellation_reason": null
    });
    over(base, changes)
}

fn paid(charge: Value) -> Value {
    intent(json!({"amount_received": 1999, "latest_charge": charge}))
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn parts(object: Value) -> Parts {
    let id = object["id"].as_str().unwrap().to_owned();
    let text = object.to_string();
    match id.get(..2).unwrap() {
        "pi" => Parts { intent: Some(read(&text)), ..Parts::default() },
        "ch" => Parts { charges: vec![read(&text)], ..Parts::default() },
        _refund => Parts { refund: Some(read(&text)), ..Parts::default() },
    }
}

/// state · status · captured · refunded · capturable · disputed, and of a failure its code, advice,
/// days until it is final and whether it can still be paid.
fn told(object: Value) -> String {
    let object = parts(object).object("tieout_id").unwrap();
    let captured = object.captured.map_or("-".to_owned(), |money| money.to_string());
    let mut text = format!("{} {} {captured}", object.state.as_str(), object.status);
    if object.refunded_minor != 0 {
        text.push_str(&format!(" refunded {}", object.refunded_minor));
    }
    if object.capturable_minor != 0 {
        text.push_str(&format!(" capturable {}", object.capturable_minor));
    }
    if object.disputed {
        text.push_str(" disputed");
    }
    if let ObjectState::Failed(failure) = &object.state {
        let days = failure.final_from.unwrap() - object.created_at;
        let advice = failure.advice.as_deref().unwrap_or("-");
        let payable = if failure.still_payable { "payable" } else { "dead" };
        text.push_str(&format!(": {} {advice} {}d {payable}", failure.code, days.num_days()));
    }
    text
}

fn error(kind: &str, code: &str, decline: Option<&str>, advice: Option<&str>) -> Value {
    json!({"type": kind, "code": code, "decline_code": decline, "advice_code": advice,
           "payment_method": {"id": "pm_1", "object": "payment_method", "type": "card"}})
}

fn holds(table: Vec<(Value, &str)>) {
    for (object, says) in table {
        let name = object.to_string();
        assert_eq!(told(object), says, "{name}");
    }
}

#[test]
fn a_captured_intent_tells_what_was_taken_back() {
    let refunded = json!({"amount_refunded": 1999, "refunded": true});
    let bounced = json!({"failure_balance_transaction": "txn_1"});
    holds(vec![
        (paid(charge(json!({}))), "captured succeeded 19.99 USD"),
        (paid(json!("ch_1")), "captured succeeded 19.99 USD"),
        (
            paid(charge(json!({"amount_refunded": 500}))),
            "captured succeeded 19.99 USD refunded 500",
        ),
        (paid(charge(refunded)), "captured succeeded 19.99 USD refunded 1999"),
        (paid(charge(json!({"disputed": true}))), "captured succeeded 19.99 USD disputed"),
        // A bank debit that bounced after it had succeeded.
        (paid(charge(bounced)), "captured succeeded 19.99 USD refunded 1999"),
        // An amount of a currency that ISO does not know moved all the same.
        (intent(json!({"currency": "zzz", "amount_received": 5})), "captured succeeded -"),
    ]);
}

#[test]
fn a_sum_that_the_intent_leaves_out_is_its_charges_and_never_zero() {
    let unsaid = |charge: Value| intent(json!({"amount_received": null, "latest_charge": charge}));
    holds(vec![
        (unsaid(charge(json!({}))), "captured succeeded 19.99 USD"),
        (unsaid(charge(json!({"amount_captured": 700}))), "captured succeeded 7.00 USD"),
        (unsaid(charge(json!({"captured": false}))), "captured succeeded -"),
        (unsaid(Value::Null), "captured succeeded -"),
    ]);
}

#[test]
fn every_other_status_of_an_intent_has_its_meaning() {
    let standing = |status: &str| intent(json!({"status": status}));
    let canceled =
        |reason: &str| intent(json!({"status": "canceled", "cancellation_reason": reason}));
    holds(vec![
        (standing("processing"), "in_flight processing -"),
        (standing("requires_capture"), "authorized requires_capture -"),
        (
            intent(json!({"status": "requires_capture", "amount_received": 700})),
            "authorized requires_capture 7.00 USD",
        ),
        (standing("requires_action"), "action_required requires_action -"),
        (standing("requires_payment_method"), "unattempted requires_payment_method -"),
        (standing("requires_confirmation"), "unattempted requires_confirmation -"),
        (standing("canceled"), "canceled canceled -"),
        (canceled("void_invoice"), "canceled canceled:void_invoice -"),
        (canceled("abandoned"), "canceled canceled:abandoned -"),
        (canceled("duplicate"), "canceled canceled:duplicate -"),
        (canceled("automatic"), "expired canceled:automatic -"),
        (standing("requires_prayer"), "unknown requires_prayer -"),
    ]);
}

#[test]
fn what_can_still_be_captured_is_told_whatever_the_status() {
    let open = |status: &str, sum: Value| {
        intent(json!({"status": status, "amount_capturable": sum, "latest_charge": "ch_1"}))
    };
    let unsaid = |status: &str, charge: Value| {
        intent(json!({"status": status, "amount_received": null, "latest_charge": charge}))
    };
    let held = || charge(json!({"captured": false, "amount_captured": 0}));
    let captured = json!({"status": "succeeded", "amount_received": 1999, "amount_capturable": 0});
    let yen = json!({"status": "frob", "amount_capturable": 500, "currency": "jpy"});
    let krona = json!({"status": "frob", "amount_capturable": 50_000, "currency": "isk"});
    let nobodys = json!({"status": "frob", "amount_capturable": 5, "currency": "zzz"});
    holds(vec![
        (open("requires_capture", json!(700)), "authorized requires_capture - capturable 700"),
        (open("frob", json!(1999)), "unknown frob - capturable 1999"),
        (open("frob", json!(0)), "unknown frob -"),
        (open("frob", json!(-5)), "unknown frob -"),
        (open("frob", Value::Null), "unknown frob -"),
        (open("canceled", json!(700)), "canceled canceled - capturable 700"),
        (intent(captured), "captured succeeded 19.99 USD"),
        (intent(yen), "unknown frob - capturable 500"),
        (intent(krona), "unknown frob - capturable 500"),
        // An amount of a currency that ISO does not know can be captured all the same.
        (intent(nobodys), "unknown frob - capturable 5"),
        // A server that leaves it to the charge.
        (unsaid("requires_capture", held()), "authorized requires_capture - capturable 1999"),
        (unsaid("frob", held()), "unknown frob - capturable 1999"),
        (unsaid("frob", charge(json!({}))), "unknown frob -"),
        (unsaid("canceled", held()), "canceled canceled -"),
        (unsaid("succeeded", held()), "captured succeeded -"),
    ]);
}

#[test]
fn a_charge_that_is_held_tells_what_was_neither_captured_nor_released() {
    let held =
        |changes: Value| over(alone(json!({"captured": false, "amount_captured": 0})), changes);
    holds(vec![
        (held(json!({"amount_refunded": 500})), "authorized succeeded - capturable 1499"),
        (held(json!({"amount_refunded": 1999})), "authorized succeeded -"),
        (held(json!({"refunded": true})), "canceled succeeded -"),
        (held(json!({"paid": true})), "authorized succeeded - capturable 1999"),
        (held(json!({"status": "frob"})), "unknown frob - capturable 1999"),
        (held(json!({"status": "frob", "paid": true})), "unknown frob - capturable 1999"),
        (held(json!({"status": "frob", "paid": false})), "unknown frob -"),
        (held(json!({"status": "pending"})), "in_flight pending -"),
        (held(json!({"status": "failed"})), "failed failed -: unstated - 0d dead"),
        (alone(json!({"status": "frob"})), "unknown frob -"),
    ]);
}

#[test]
fn readings_that_differ_in_what_can_be_captured_are_read_again() {
    let open = |sum: i64| parts(intent(json!({"status": "frob", "amount_capturable": sum})));
    let mut known = open(1999);
    known.merge(open(1999));
    assert!(!known.moved);
    known.merge(open(0));
    assert!(known.moved);
}

#[test]
fn the_networks_advice_stands_beside_stripes() {
    let words = |object: Value| match parts(object).object("tieout_id").unwrap().state {
        ObjectState::Failed(failure) => failure.words(),
        other => panic!("{other:?}"),
    };
    let status = "requires_payment_method";
    let told = json!({"type": "card_error", "code": "card_declined", "decline_code": "do_not_honor",
                      "advice_code": "try_again_later", "network_advice_code": "02"});
    let of_intent = intent(json!({"status": status, "last_payment_error": told}));
    assert_eq!(words(of_intent), "do_not_honor, advice try_again_later, network advice 02");
    let outcome = json!({"type": "issuer_declined", "reason": "do_not_honor",
                         "network_advice_code": "21"});
    let failed = json!({"status": "failed", "captured": false, "outcome": outcome});
    assert_eq!(words(alone(failed)), "do_not_honor, network advice 21");
}

#[test]
fn a_failed_attempt_of_an_intent_tells_its_code() {
    let declined = error("card_error", "card_declined", Some("insufficient_funds"), None);
    let advised =
        error("card_error", "card_declined", Some("generic_decline"), Some("do_not_try_again"));
    let debit = json!({"type": "card_error", "code": "debit_not_authorized",
                       "payment_method": {"type": "sepa_debit"}});
    let after = |error: Value| {
        intent(json!({"status": "requires_payment_method", "last_payment_error": error}))
    };
    let left = |charge: Value| {
        intent(json!({"status": "requires_payment_method", "latest_charge": charge}))
    };
    let failed = json!({"status": "failed", "captured": false, "failure_code": "expired_card"});
    let status = "requires_payment_method";
    holds(vec![
        (after(declined), &format!("failed {status} -: insufficient_funds - 0d payable")),
        (
            after(advised),
            &format!("failed {status} -: generic_decline do_not_try_again 0d payable"),
        ),
        (after(debit), &format!("failed {status} -: debit_not_authorized - 7d payable")),
        (after(json!({})), &format!("failed {status} -: unstated - 7d payable")),
        // The error was cleared, and the failed charge still tells.
        (left(charge(failed)), &format!("failed {status} -: expired_card - 0d payable")),
        // Known by its id alone: what became of it is not known.
        (left(json!("ch_1")), &format!("unknown {status} -")),
    ]);
}

#[test]
fn every_status_of_a_lone_charge_and_of_a_refund_has_its_meaning() {
    let refund = |changes: Value| {
        let base = json!({
            "id": "re_1", "object": "refund", "created": 1_700_000_000, "amount": 500,
            "currency": "usd", "status": "succeeded", "metadata": {"tieout_id": "row-1"}
        });
        over(base, changes)
    };
    let declined = json!({"type": "issuer_declined", "reason": "do_not_honor",
                          "advice_code": "try_again_later"});
    let blocked = json!({"type": "blocked", "reason": "highest_risk_level"});
    let failed = json!({"status": "failed", "captured": false});
    let failed = |more: Value| over(alone(failed.clone()), more);
    holds(vec![
        (alone(json!({})), "captured succeeded 19.99 USD"),
        (alone(json!({"amount_captured": 700})), "captured succeeded 7.00 USD"),
        (
            alone(json!({"captured": false, "amount_captured": 0})),
            "authorized succeeded - capturable 1999",
        ),
        (
            alone(json!({"captured": false, "amount_captured": 0, "refunded": true,
                         "amount_refunded": 1999})),
            "canceled succeeded -",
        ),
        (alone(json!({"amount_refunded": 1})), "captured succeeded 19.99 USD refunded 1"),
        (alone(json!({"status": "pending"})), "in_flight pending -"),
        (
            failed(json!({"failure_code": "card_declined", "outcome": declined})),
            "failed failed -: do_not_honor try_again_later 0d dead",
        ),
        (
            failed(json!({"failure_code": "card_declined", "outcome": blocked})),
            "failed failed -: blocked - 0d dead",
        ),
        (
            failed(json!({"failure_code": "insufficient_funds",
                          "payment_method_details": {"type": "us_bank_account"}})),
            "failed failed -: insufficient_funds - 7d dead",
        ),
        (failed(json!({})), "failed failed -: unstated - 0d dead"),
        (alone(json!({"status": "half_done"})), "unknown half_done -"),
        (refund(json!({})), "captured succeeded 5.00 USD"),
        (refund(json!({"status": "pending"})), "in_flight pending -"),
        (refund(json!({"status": "requires_action"})), "action_required requires_action -"),
        (
            refund(json!({"status": "failed", "failure_reason": "lost_or_stolen_card"})),
            "failed failed -: lost_or_stolen_card - 0d dead",
        ),
        (refund(json!({"status": "canceled"})), "canceled canceled -"),
        (refund(json!({"status": null})), "unknown none -"),
    ]);
}

#[test]
fn a_charge_folds_into_its_intent_and_a_disagreement_is_read_again() {
    let mut known = parts(paid(json!("ch_1")));
    assert!(!known.is_whole(), "refunds stand on the charge");
    assert_eq!(known.missing_charge(), Some("ch_1"));
    known.merge(parts(charge(json!({"disputed": true, "amount_refunded": 20}))));
    assert!(known.is_whole());
    let object = known.object("tieout_id").unwrap();
    assert_eq!(
        (object.reference.as_str(), object.aliases.as_slice()),
        ("pi_1", &["ch_1".to_owned()][..])
    );
    assert_eq!((object.disputed, object.refunded_minor), (true, 20));
    assert_eq!(object.tag.as_deref(), Some("row-1"));

    let mut moving = parts(intent(json!({"status": "requires_payment_method"})));
    moving.merge(parts(paid(charge(json!({})))));
    assert!(!moving.is_whole(), "two readings of the intent differ");
    let mut behind = parts(intent(json!({"status": "requires_payment_method"})));
    behind.merge(parts(charge(json!({}))));
    assert!(!behind.is_whole(), "the charge took money and the intent does not know yet");
    let mut failed = parts(intent(json!({"status": "requires_payment_method"})));
    failed.merge(parts(charge(json!({"status": "failed", "captured": false}))));
    assert!(failed.is_whole());
}

#[test]
fn json_that_is_not_stripes_is_refused() {
    for text in [
        r#"{"id": "pi_1"}"#,
        r#"{"id": "pi_1", "created": "yesterday"}"#,
        r#"{"id": "pi_1", "object": "payment_intent", "created": 1.5, "amount": 1,
            "currency": "usd", "status": "x"}"#,
        r#"{"id": 7, "object": "payment_intent", "created": 1, "amount": 1,
            "currency": "usd", "status": "x"}"#,
    ] {
        assert!(serde_json::from_str::<Intent>(text).is_err(), "{text}");
    }
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(serde_json::from_str::<Page<Intent>>(&deep).is_err());
    let hidden = format!(r#"{{"object":"list","data":[],"has_more":false,"x":{deep}}}"#);
    // Deep and ignored: refused or skipped, and the stack holds either way.
    let _either = serde_json::from_str::<Page<Intent>>(&hidden);
}
