//! Siblings, tags, references, statuses nobody mapped, and mappings that do not fit.

use tieout::model::reason::Outcome;
use tieout::model::transaction::{Kind, SiblingFact, SiblingState};
use tieout::store::driver::CaseFilter;
use tieout::store::error::StoreError;
use tieout::store::people::{CaseSum, PeopleDriver, ProposalState};
use tieout::store::records::{ClaimFilter, Tagged};
use tieout::store::replay::ReplayDriver;

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
    let fact =
        |id: &str, state, older| SiblingFact { id: id.to_owned(), state, older, lacks: None };
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
    // What somebody else gave up was asked about by nobody.
    w.raw.execute("update charges set status = 'failed' where id = 1").await;
    let siblings = w.store.siblings(&w.table, &rows).await.unwrap();
    assert_eq!(siblings["2"][0], fact("1", SiblingState::GivenUp, true));
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

pub async fn rows_are_found_by_their_tags<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=6).await;
    // 2 is paid and outside of `where`, 3 is another account's, nobody mapped the account of 4 and
    // the kind of 5. 6 is nobody's who asks.
    for (id, change) in [
        (1, "note = 'paid'"),
        (2, "note = 'back', status = 'paid', moto = true"),
        (3, "note = 'paid', account = 'adyen'"),
        (4, "note = 'paid', account = 'closed'"),
        (5, "note = 'odd'"),
    ] {
        w.raw.execute(&format!("update charges set {change} where id = {id}")).await;
    }
    let words = "kind = { column = \"note\", values = { paid = \"charge\", back = \"refund\" } }";
    // Read backwards; by rendering, where two columns touch; and of a kind that stands for all.
    for (tag, kind) in [("pay_{id}", words), ("pay_{id}{attempt}", words), ("pay_{id}", "")] {
        let mapping = MAPPING.replace("tag = \"pay_{id}\"", &format!("tag = \"{tag}\"\n{kind}"));
        let table = w.mapped(&mapping).await;
        let tags: Vec<String> = ["1", "2", "3", "4", "5", "77", "no"]
            .map(|id| tag.replace("{id}", id).replace("{attempt}", "1"))
            .to_vec();
        let mut found = w.store.rows_tagged(&table, "stripe_live", &tags).await.unwrap();
        found.sort_by(|one, other| one.key.cmp(&other.key));
        let charge = Some(Kind::Charge);
        let kinds = match kind.is_empty() {
            true => [charge; 4],
            false => [charge, Some(Kind::Refund), charge, None],
        };
        let expected: Vec<Tagged> = [("1", 0), ("2", 1), ("4", 3), ("5", 4)]
            .iter()
            .zip(kinds)
            .map(|((key, at), kind)| Tagged { tag: tags[*at].clone(), key: (*key).into(), kind })
            .collect();
        assert_eq!(found, expected, "{tag} {kind}");
        for foreign in [vec!["order_1".to_owned()], Vec::new()] {
            let found = w.store.rows_tagged(&table, "stripe_live", &foreign).await.unwrap();
            assert!(found.is_empty(), "{found:?}");
        }
    }
    w.finish_unmapped().await;
}

/// Where `Processing` and `processing` are one value to the column, a walk from value to value
/// steps over one of them, and a row of it would never be looked at nor told of.
pub async fn a_status_that_folds_spellings_is_refused<D: Under>() {
    let w = World::<D>::new().await;
    let (types, bytewise) = match w.raw.is_sqlite() {
        true => (vec!["text collate nocase", "varchar(20) collate rtrim"], "collate binary"),
        false => {
            w.raw.execute("create extension citext").await;
            w.raw
                .execute(
                    "create collation anycase (provider = icu, \
                     locale = 'und-u-ks-level2', deterministic = false)",
                )
                .await;
            w.raw.execute("create domain loud as citext").await;
            (vec!["citext", "loud", "text collate anycase"], "::text collate \"C\"")
        }
    };
    for (number, status) in types.iter().enumerate() {
        let (table, view) = (format!("folded{number}"), format!("spelled{number}"));
        for sql in [
            format!(
                "create table {table} (id bigint primary key, account text, \
                 status {status} not null, amount bigint, currency text, \
                 created_at timestamptz not null, attempted_at timestamptz, psp_ref text, \
                 subscription bigint, moto boolean not null default false, \
                 attempt integer not null default 1, updated_at timestamptz, version integer)"
            ),
            format!("create index {table}_status on {table} (status)"),
            format!(
                "insert into {table} (id, account, status, amount, currency, created_at) values \
                 (1, 'stripe', 'Processing', 1900, 'EUR', '2026-11-19T11:00:00Z'), \
                 (2, 'stripe', 'processing', 1900, 'EUR', '2026-11-19T11:00:00Z')"
            ),
            format!(
                "create view {view} as select f.id, f.account, f.status {bytewise} as status, \
                 f.amount, f.currency, f.created_at, f.attempted_at, f.psp_ref, f.subscription, \
                 f.moto, f.attempt from {table} f"
            ),
        ] {
            w.raw.execute(&sql).await;
        }
        let read = |words: &str| MAPPING.replace("read = \"charges\"", words);
        let plain = settings(&read(&format!("read = \"{table}\"")));
        let errors = match w.store.map_tables(&[plain], &accounts()).await {
            Err(StoreError::Mapping(errors)) => errors,
            other => panic!("{status}: {other:?}"),
        };
        let [error] = errors.as_slice() else { panic!("{errors:?}") };
        assert_eq!(error.field, "status", "{error}");
        assert!(error.problem.contains("several spellings"), "{error}");
        assert!(error.expected.contains(bytewise), "{error}");
        // The way out that it names: each spelling is a value of its own, and told where nobody
        // mapped it, though the walk over the written column steps over it.
        let seen = read(&format!("read = \"{view}\"\nwrite = \"{table}\""));
        let seen = w.mapped(&seen).await;
        assert!(seen.status_folded && !seen.status_indexed, "{status}");
        let unmapped = w.store.unmapped_statuses(&seen).await.unwrap();
        assert_eq!(unmapped, ["Processing"], "{status}");
        let due = w.store.preview_due(&seen, &ClaimFilter::default(), 9, noon()).await.unwrap();
        let keys: Vec<&str> = due.iter().map(|claimed| claimed.row.key.id.as_str()).collect();
        assert_eq!(keys, ["2"], "{status}");
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
    // tieout's own record alone; and the column alone, by an index that leads with it or without.
    let taken = w.store.taken_references("stripe_live", &asked).await.unwrap();
    assert_eq!(taken.into_iter().collect::<Vec<_>>(), [("pi_own".to_owned(), vec![owner("1")])]);
    let pair = |reference: &str, key: &str| (reference.to_owned(), key.to_owned());
    for change in ["create index charges_ref on charges (psp_ref)", "drop index charges_ref"] {
        w.raw.execute(change).await;
        let stored = w.store.keys_storing(&w.table, "stripe_live", &asked).await.unwrap();
        let all = [pair("pi_mapped", "2"), pair("pi_mapped", "3"), pair("pi_own", "1")];
        assert_eq!(stored, all, "{change}");
    }
    assert!(w.store.keys_storing(&w.table, "stripe_live", &[]).await.unwrap().is_empty());
    assert!(w.store.taken_references("stripe_live", &[]).await.unwrap().is_empty());
    w.finish().await;
}

/// Keys say where to look, and the rows as they are now say whose a line is.
pub async fn rows_are_known_by_tags_and_references<D: Under>() {
    let w = World::<D>::new().await;
    w.stuck(1..=4).await;
    w.raw.execute("update charges set psp_ref = 'pi_mapped' where id in (2, 3)").await;
    let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let ask = async |account: &str, tags: &[&str], references: &[&str], keys: &[&str]| {
        let (tags, references, keys) = (own(tags), own(references), own(keys));
        let rows = w.store.rows_known_by(&w.table, account, &tags, &references, &keys).await;
        let mut ids: Vec<String> = rows.unwrap().into_iter().map(|row| row.key.id).collect();
        ids.sort_unstable();
        ids.join(" ")
    };
    assert_eq!(ask("stripe_live", &["pay_1", "pay_9"], &["pi_mapped"], &["2", "3"]).await, "1 2 3");
    assert_eq!(ask("stripe_live", &[], &["pi_mapped"], &["1", "2", "3", "9"]).await, "2 3");
    assert_eq!(ask("adyen_live", &["pay_1"], &["pi_mapped"], &["2", "3"]).await, "");
    assert_eq!(ask("stripe_live", &[], &[], &[]).await, "");
    // Another reference since.
    w.raw.execute("update charges set psp_ref = 'pi_else' where id = 3").await;
    assert_eq!(ask("stripe_live", &["pay_3"], &["pi_mapped"], &["2", "3"]).await, "2 3");
    assert_eq!(ask("stripe_live", &["pay_4"], &["pi_mapped"], &["2", "3"]).await, "2 4");
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
    // Without an index the first and the last rows are looked at.
    w.raw.execute("drop index charges_status").await;
    let table = w.mapped(MAPPING).await;
    assert!(!table.status_indexed);
    let mut unmapped = w.store.unmapped_statuses(&table).await.unwrap();
    unmapped.sort();
    assert_eq!(unmapped, ["Processing", "stuck"]);
    w.finish_unmapped().await;
}

pub async fn a_misfit_is_named<D: Under>() {
    let w = World::<D>::new().await;
    w.raw.execute("create unique index charges_note on charges (note)").await;
    for (from, to, field, part) in [
        ("read = \"charges\"", "read = \"chargs\"", "read", "chargs"),
        ("key = [\"id\"]", "key = [\"attempt\"]", "key", "unique"),
        ("key = [\"id\"]", "key = [\"note\"]", "key", "(text) may be null"),
        ("key = [\"id\"]", "key = [\"id\", \"psp_ref\"]", "key", "(text) may be null"),
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
                // SQLite tells types in capitals.
                let said = text.contains(part) || text.to_lowercase().contains(part);
                assert!(said && text.contains("charges"), "{to}: {text}");
                assert!(!text.contains("(note)"), "it is no key that is offered: {text}");
            }
            other => panic!("{to}: {other:?}"),
        }
    }
    w.finish().await;
}

/// NULL can stand in no map: such a row would never be looked at, and nobody told.
pub async fn rows_without_a_status_are_seen<D: Under>() {
    let charges = |status: &str| {
        format!(
            "create table charges (id bigint primary key, status {status}, amount bigint,
               currency text, created_at timestamptz not null);
             create index charges_status on charges (status)"
        )
    };
    let mapping = "name = \"charges\"\nread = \"charges\"\nkey = [\"id\"]\ntag = \"{id}\"\n\
        amount = { column = \"amount\", unit = \"minor\" }\ncurrency = { column = \"currency\" }\n\
        accounts = { \"*\" = \"stripe_live\" }\nstatus = \"status\"\ncreated = \"created_at\"\n\
        time = \"utc\"\nmode = \"full\"\n\
        map = [{ from = [\"processing\"], succeeded = \"paid\" }]\n";
    let filled = World::<D>::of(&charges("text not null"), mapping).await;
    assert!(
        !filled.table.may_lack_status() && !filled.store.lacks_status(&filled.table).await.unwrap()
    );
    let w = World::<D>::of(&charges("text"), mapping).await;
    w.raw
        .execute(
            "insert into charges values (1, 'processing', 1, 'EUR', '2026-11-19T10:00:00Z'),
             (2, 'paid', 1, 'EUR', '2026-11-19T10:00:00Z')",
        )
        .await;
    assert!(!w.store.lacks_status(&w.table).await.unwrap());
    w.raw.execute("update charges set status = null where id = 1").await;
    assert!(w.store.lacks_status(&w.table).await.unwrap());
    assert!(w.store.unmapped_statuses(&w.table).await.unwrap().is_empty());
    for (test, is_told) in [
        ("is = \"not_null\"", false),
        ("in = [\"processing\", \"paid\"]", false),
        ("not_in = [\"gone\"]", true),
    ] {
        let narrowed = format!("{mapping}where = [{{ column = \"status\", {test} }}]\n");
        let table = w.mapped(&narrowed).await;
        assert_eq!(w.store.lacks_status(&table).await.unwrap(), is_told, "{test}");
    }
    // Without an index the first and the last rows are looked at.
    w.raw.execute("drop index charges_status").await;
    let table = w.mapped(mapping).await;
    assert!(!table.status_indexed && w.store.lacks_status(&table).await.unwrap());
    w.finish_unmapped().await;
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

/// Three thousand open cases.
const MANY_CASES: &str = "\
insert into tieout_cases (subject_kind, table_name, subject, reason, text, state, account, \
currency, amount_minor, policy_version, opened_at, opened_run, last_seen_at, last_run) \
with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000) \
select 'row', 'charges', cast(i as text), 'decline_unknown', 'a text', 'open', 'stripe_live', \
'EUR', i, 'p', '2026-11-19T10:00:00.000000Z', 'r' || cast(i as text), \
'2026-11-19T10:00:00.000000Z', 'r' from n";

/// A list reads as many cases as it shows, however many there are: nothing sorts all of them.
pub async fn cases_are_listed_by_indexes<D: Under + PeopleDriver>() {
    let w = World::<D>::new().await;
    w.raw.execute(MANY_CASES).await;
    w.raw.execute("analyze").await;
    let open = CaseFilter { open_only: true, limit: 10, ..CaseFilter::default() };
    let some = |text: &str| Some(text.to_owned());
    for (name, filter) in [
        ("none", open.clone()),
        ("account", CaseFilter { account: some("stripe_live"), ..open.clone() }),
        ("currency", CaseFilter { currency: some("EUR"), ..open.clone() }),
        ("age", CaseFilter { opened_to: Some(noon()), ..open.clone() }),
        ("closed ones too", CaseFilter { open_only: false, ..open.clone() }),
    ] {
        let plan = w.store.case_plan(&filter).await.unwrap().join("\n");
        for walk in ["ORDER BY", "Sort", "Seq Scan"] {
            assert!(!plan.contains(walk), "{name}: {plan}");
        }
        assert_eq!(w.store.cases(&filter).await.unwrap().len(), 10, "{name}");
        let sums = w.store.case_sums(&filter).await.unwrap();
        let expected =
            CaseSum { currency: "EUR".to_owned(), cases: 3_000, amount_minor: 4_501_500 };
        assert_eq!(sums, [expected], "{name}");
    }
    // What names few of them finds these few.
    for (name, index, filter) in [
        ("run", "tieout_cases_opened", CaseFilter { opened_run: some("r7"), ..open.clone() }),
        ("parts", "tieout_cases_merged", CaseFilter { whole: Some(7), ..open.clone() }),
    ] {
        let plan = w.store.case_plan(&filter).await.unwrap().join("\n");
        assert!(plan.contains(index), "{name}: {plan}");
        assert_eq!(w.store.cases(&filter).await.unwrap().len(), 1, "{name}");
        assert_eq!(w.store.case_sums(&filter).await.unwrap()[0].cases, 1, "{name}");
    }
    let proposed = CaseFilter { proposed: Some(ProposalState::Approved), ..open };
    assert_eq!(w.store.cases(&proposed).await.unwrap(), []);
    assert_eq!(w.store.case_sums(&proposed).await.unwrap(), []);
}

/// Where no index holds what is counted, no more cases are read than are counted.
pub async fn the_first_cases_are_counted<D: Under + PeopleDriver>() {
    let w = World::<D>::new().await;
    w.raw.execute(MANY_CASES).await;
    let open = CaseFilter { open_only: true, ..CaseFilter::default() };
    for (most, cases, amount_minor) in [(1_000, 1_000, 500_500), (9_000, 3_000, 4_501_500)] {
        for filter in [open.clone(), CaseFilter::default()] {
            let sums = w.store.case_sums_of_first(&filter, most).await.unwrap();
            let expected = CaseSum { currency: "EUR".to_owned(), cases, amount_minor };
            assert_eq!(sums, [expected], "{most}");
        }
    }
    let one = CaseFilter { opened_run: Some("r7".to_owned()), ..open };
    let sums = w.store.case_sums_of_first(&one, 10).await.unwrap();
    assert_eq!(sums[0], CaseSum { currency: "EUR".to_owned(), cases: 1, amount_minor: 7 });
    let older = "update tieout_cases set opened_at = '2026-11-01T10:00:00.000000Z' \
                 where cast(subject as integer) <= 10";
    w.raw.execute(older).await;
    // The others were opened two hours before noon.
    let edges = [at(60), at(-600)];
    for (most, young) in [(1_000, 990), (9_000, 2_990)] {
        let ages = w.store.open_ages_of_first(&edges, most).await.unwrap();
        assert_eq!(ages, [(1, young), (2, 10)], "{most}");
    }
    w.finish().await;
}

/// Each decision comes once, whatever the page's borders, and only from runs that may have it.
pub async fn decisions_are_read_page_by_page<D: Under + ReplayDriver>() {
    let w = World::<D>::new().await;
    w.stuck(1..=5).await;
    for (run, limit, minutes) in [("r1", 3, 0), ("r2", 9, 10), ("r3", 9, 20)] {
        let mut writer = w.start(run, at(minutes)).await;
        let claimed = w.claim(run, limit, at(minutes)).await;
        if !claimed.is_empty() {
            w.apply(run, &mut writer, &claimed, succeeded, at(minutes)).await;
        }
        assert!(w.close(run, at(minutes + 1)).await);
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = w.store.decided_since(at(-60), after, 2).await.unwrap();
        assert!(page.len() <= 2, "{page:?}");
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        seen.extend(page.into_iter().map(|(_, decided)| decided.key));
    }
    seen.sort();
    assert_eq!(seen, ["1", "2", "3", "4", "5"]);
    let late = w.store.decided_since(at(5), None, 9).await.unwrap();
    let mut late: Vec<String> = late.into_iter().map(|(_, decided)| decided.key).collect();
    late.sort();
    assert_eq!(late, ["4", "5"]);
    // What was written to a row, and from which instant on it is remembered so.
    let keys = ["1", "4", "999"].map(str::to_owned);
    let written = w.store.last_written(&w.table.settings.name, &keys).await.unwrap();
    assert_eq!(written.len(), 2, "{written:?}");
    for (key, minutes) in [("1", 0), ("4", 10)] {
        let one = &written[key];
        assert_eq!((one.outcome, one.at), (Outcome::Succeeded, at(minutes)));
        assert_eq!((&*one.status_before, &one.status_after), ("processing", &w.status(key).await));
    }
    w.finish().await;
}

/// A key that a verdict changes names another row after it.
pub async fn a_key_that_changes_with_the_status_is_refused<D: Under>() {
    let w = World::<D>::new().await;
    w.raw
        .execute(
            "create table parted (id bigint not null, status text not null, account text,
               amount bigint, currency text, created_at timestamptz not null,
               attempted_at timestamptz, psp_ref text, subscription bigint,
               moto boolean not null default false, attempt integer not null default 1,
               updated_at timestamptz, version integer, primary key (id, status))",
        )
        .await;
    let read = |table: &str, key: &str| {
        let read = format!("read = \"{table}\"");
        MAPPING.replace("read = \"charges\"", &read).replace("key = [\"id\"]", key)
    };
    for (table, key, problem, way_out) in [
        ("parted", "key = [\"id\", \"status\"]", "holds the status column", "without `status`"),
        ("parted", "key = [\"id\"]", "(id) is no unique key", "without `status`"),
        ("charges", "key = [\"status\", \"id\"]", "holds the status column", "unique index: (id)"),
    ] {
        match w.store.map_tables(&[settings(&read(table, key))], &accounts()).await {
            Err(StoreError::Mapping(errors)) => {
                let [error] = errors.as_slice() else { panic!("{table} {key}: {errors:#?}") };
                let text = error.to_string();
                assert_eq!(error.field, "key", "{text}");
                assert!(text.contains(problem) && text.contains(way_out), "{key}: {text}");
                assert!(!text.contains("(id, status)"), "it is no key that is offered: {text}");
            }
            other => panic!("{table} {key}: {other:?}"),
        }
    }
    w.finish().await;
}
