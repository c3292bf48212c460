//! Siblings, tags, references, statuses nobody mapped, and mappings that do not fit.

use tieout::model::transaction::{SiblingFact, SiblingState};
use tieout::store::driver::CaseFilter;
use tieout::store::error::StoreError;
use tieout::store::records::ClaimFilter;

use super::world::{
    MAPPING, Under, World, accounts, at, noon, retryable, review, settings, succeeded, succeeded_by,
};

pub async fn siblings_are_found<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=6).await;
    // 1 to 4 are one period; 5 has no period, 6 is alone. 4 is a row that `where` leaves out.
    w.raw.execute("update charges set subscription = 1 where id in (2, 3, 4)").await;
    w.raw.execute("update charges set subscription = null where id = 5").await;
    w.raw.execute("update charges set moto = true, status = 'paid' where id = 4").await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    let third: Vec<_> = claimed.iter().filter(|c| c.row.key.id == "3").cloned().collect();
    w.apply("r1", &mut writer, &third, retryable(noon()), noon()).await;
    let rows: Vec<_> = claimed.iter().map(|c| &c.row).collect();
    let siblings = w.store.siblings(&w.table, &rows).await.unwrap();
    let fact = |id: &str, state, older| SiblingFact { id: id.to_owned(), state, older };
    assert_eq!(
        siblings["2"],
        [
            fact("1", SiblingState::Processing, true),
            fact("3", SiblingState::HandedBack, false),
            fact("4", SiblingState::Succeeded, false),
        ]
    );
    assert_eq!(siblings["1"].iter().filter(|s| s.older).count(), 0);
    assert!(!siblings.contains_key("5") && !siblings.contains_key("6"), "{siblings:?}");
    // Whoever waits for its siblings is unpaid, as long as it is the row that was judged.
    w.raw.execute("update tieout_checks set last_reason = 'sibling_pending' where key = '1'").await;
    let siblings = w.store.siblings(&w.table, &rows).await.unwrap();
    assert_eq!(siblings["2"][0], fact("1", SiblingState::Waiting, true));
    w.raw.execute("update charges set amount = amount + 1 where id = 1").await;
    let siblings = w.store.siblings(&w.table, &rows).await.unwrap();
    assert_eq!(siblings["2"][0], fact("1", SiblingState::Processing, true));
    w.raw.execute("update charges set amount = amount - 1 where id = 1").await;
    // A value of the mapping by which a row is charged again, whoever wrote it.
    w.raw.execute("update charges set status = 'retry' where id = 1").await;
    let siblings = w.store.siblings(&w.table, &rows).await.unwrap();
    assert_eq!(siblings["2"][0], fact("1", SiblingState::HandedBack, true));
    w.raw.execute("update charges set status = 'processing' where id = 1").await;
    // What tieout decided counts where the mapping has no value for it.
    let first: Vec<_> = claimed.iter().filter(|c| c.row.key.id == "1").cloned().collect();
    w.apply("r1", &mut writer, &first, |c| succeeded_by(c, "pi_x"), at(1)).await;
    w.raw.execute("update charges set status = 'archived' where id = 1").await;
    let siblings = w.store.siblings(&w.table, &rows).await.unwrap();
    assert_eq!(siblings["2"][0], fact("1", SiblingState::Succeeded, true));
    w.finish_unmapped().await;
}

pub async fn tags_resolve<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=3).await;
    w.raw.execute("update charges set status = 'paid' where id = 2").await;
    let tags = ["pay_1", "pay_2", "pay_9", "pay_01", "pay_", "1", "PAY_1", "pay_1 "];
    let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
    let found = w.store.resolve_tags(&w.table, "stripe_live", &tags).await.unwrap();
    let mut found: Vec<&str> = found.iter().map(String::as_str).collect();
    found.sort_unstable();
    assert_eq!(found, ["pay_1", "pay_2"]);
    // An account with a template of its own, of two columns; and one that reads two ways.
    let words = "tags = { adyen_live = \"{subscription}-{note}\" }\n    name = \"charges\"";
    let other = w.mapped(&MAPPING.replace("name = \"charges\"", words)).await;
    w.raw.execute("update charges set note = 'a-b' where id = 3").await;
    let tags: Vec<String> = ["3-a-b", "3-a", "pay_3"].iter().map(|tag| (*tag).to_owned()).collect();
    let found = w.store.resolve_tags(&other, "adyen_live", &tags).await.unwrap();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["3-a-b"]);
    // Adjacent columns do not read backwards: such a tag is found by rendering.
    let words = "tags = { adyen_live = \"{subscription}{note}\" }\n    name = \"charges\"";
    let other = w.mapped(&MAPPING.replace("name = \"charges\"", words)).await;
    let tags: Vec<String> = ["3a-b", "3"].iter().map(|tag| (*tag).to_owned()).collect();
    let found = w.store.resolve_tags(&other, "adyen_live", &tags).await.unwrap();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["3a-b"]);
    assert!(w.store.resolve_tags(&w.table, "stripe_live", &[]).await.unwrap().is_empty());
    w.finish_unmapped().await;
}

pub async fn shared_tags_are_found<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=9).await;
    // 2 is paid and shares with 1; 4 shares with 3 at another account, 6 with 5 as a refund, and
    // 8 with 7 at an account that nobody mapped. 9 has no tag.
    for (id, change) in [
        (2, "subscription = 1, status = 'paid', moto = true"),
        (4, "subscription = 3, account = 'adyen'"),
        (6, "subscription = 5, note = 'back'"),
        (8, "subscription = 7, account = 'closed'"),
        (9, "subscription = null"),
    ] {
        w.raw.execute(&format!("update charges set {change} where id = {id}")).await;
    }
    let words = "kind = { column = \"note\", values = { paid = \"charge\", back = \"refund\" } }";
    let mapping =
        MAPPING.replace("tag = \"pay_{id}\"", &format!("tag = \"s-{{subscription}}\"\n{words}"));
    w.raw.execute("update charges set note = 'paid' where note is null").await;
    for indexed in [true, false] {
        if !indexed {
            w.raw.execute("drop index charges_subscription").await;
        }
        let table = w.mapped(&mapping).await;
        let due = w.store.preview_due(&table, &ClaimFilter::default(), 99, noon()).await.unwrap();
        let stripe = due.iter().map(|claimed| &claimed.row);
        let stripe: Vec<_> = stripe.filter(|row| row.account.text() == "stripe_live").collect();
        assert_eq!(stripe.len(), 6, "{stripe:?}");
        let found = w.store.shared_tags(&table, "stripe_live", &stripe).await.unwrap();
        let mut found: Vec<&str> = found.iter().map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, ["1", "7"]);
        assert!(w.store.shared_tags(&table, "stripe_live", &[]).await.unwrap().is_empty());
    }
    w.finish_unmapped().await;
}

pub async fn references_resolve<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=3).await;
    w.raw.execute("update charges set psp_ref = 'pi_mapped' where id in (2, 3)").await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 1, noon()).await;
    w.apply("r1", &mut writer, &claimed, |c| succeeded_by(c, "pi_own"), noon()).await;
    let asked: Vec<String> =
        ["pi_own", "pi_mapped", "pi_nobody"].iter().map(|r| (*r).to_owned()).collect();
    let found = w.store.resolve_references(&w.table, "stripe_live", &asked).await.unwrap();
    let owner = |id: &str| ("charges".to_owned(), id.to_owned());
    assert_eq!(found["pi_own"], [owner("1")]);
    assert_eq!(found["pi_mapped"], [owner("2"), owner("3")]);
    assert!(!found.contains_key("pi_nobody"));
    w.finish().await;
}

pub async fn unmapped_statuses_are_seen<D: Under>() {
    let w = World::<D>::new().await;
    assert!(w.store.unmapped_statuses(&w.table).await.unwrap().is_empty());
    w.stuck(1..=3).await;
    w.raw.execute("update charges set status = 'new' where id = 1").await;
    assert!(w.store.unmapped_statuses(&w.table).await.unwrap().is_empty(), "ignored is known");
    w.raw.execute("update charges set status = 'Processing' where id = 2").await;
    w.raw.execute("update charges set status = 'stuck' where id = 3").await;
    let mut unmapped = w.store.unmapped_statuses(&w.table).await.unwrap();
    unmapped.sort();
    assert_eq!(unmapped, ["Processing", "stuck"]);
    // Without an index the table is not walked for it.
    w.raw.execute("drop index charges_status").await;
    let table = w.mapped(MAPPING).await;
    assert!(!table.status_indexed);
    assert!(w.store.unmapped_statuses(&table).await.unwrap().is_empty());
    w.finish_unmapped().await;
}

pub async fn a_misfit_is_named<D: Under>() {
    let w = World::<D>::new().await;
    for (from, to, field, part) in [
        ("read = \"charges\"", "read = \"chargs\"", "read", "chargs"),
        ("key = [\"id\"]", "key = [\"attempt\"]", "key", "unique"),
        ("status = \"status\"", "status = \"state\"", "status", "no column `state`"),
        ("column = \"amount\", unit", "column = \"note_\", unit", "amount.column", "note_"),
        ("adyen = \"adyen_live\"", "adyen = \"braintree\"", "accounts", "braintree"),
        ("version = \"+1\"", "updated_at2 = \"+1\"", "set.always.updated_at2", "no column"),
        ("table = \"charge_events\"", "table = \"events\"", "history.table", "events"),
        ("column = \"moto\"", "column = \"motto\"", "where", "motto"),
    ] {
        assert!(MAPPING.contains(from), "{from}");
        let mapping = settings(&MAPPING.replace(from, to));
        match w.store.map_tables(&[mapping], &accounts()).await {
            Err(StoreError::Mapping(errors)) => {
                let found = errors.iter().find(|e| e.field.starts_with(field));
                let found = found.unwrap_or_else(|| panic!("{to}: {errors:#?}"));
                let text = found.to_string();
                assert!(text.contains(part) && text.contains("charges"), "{to}: {text}");
            }
            other => panic!("{to}: {other:?}"),
        }
    }
    w.finish().await;
}

pub async fn closed_cases_are_read_since<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=3).await;
    let mut writer = w.start("r1", noon()).await;
    let claimed = w.claim("r1", 9, noon()).await;
    w.apply("r1", &mut writer, &claimed, review, noon()).await;
    for (id, minute) in [("1", 10), ("2", 20)] {
        let ids = Some(vec![id.to_owned()]);
        let filter = ClaimFilter { ids, ..ClaimFilter::default() };
        let mut writer = w.start(id, at(minute)).await;
        let claimed = w.claim_with(id, &filter, 9, at(minute)).await;
        w.apply(id, &mut writer, &claimed, succeeded, at(minute)).await;
    }
    let read = async |minute: Option<i64>| {
        let closed_since = minute.map(at);
        let filter = CaseFilter { closed_since, limit: 9, ..CaseFilter::default() };
        let cases = w.store.cases(&filter).await.unwrap();
        cases.into_iter().map(|case| case.subject).collect::<Vec<_>>()
    };
    assert_eq!(read(None).await, ["1", "2", "3"]);
    assert_eq!(read(Some(10)).await, ["1", "2", "3"], "at that instant counts");
    assert_eq!(read(Some(11)).await, ["2", "3"]);
    assert_eq!(read(Some(21)).await, ["3"], "the open ones are always read");
    w.finish().await;
}
