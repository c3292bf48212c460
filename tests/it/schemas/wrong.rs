//! Mappings that do not fit: each is refused with its field, the column, its type and what was
//! expected; all misfits of a mapping at once.

use tieout::store::database::Database;
use tieout::store::driver::Driver;
use tieout::store::error::{MappingError, StoreError};
use tieout::store::mapping::TableSettings;
use tieout::store::settings::DatabaseSettings;
use tieout::store::source_table::SourceTable;

use super::world::{accounts, migrated, settings};

const TABLES: &str = "
    create type pay_state as enum ('new', 'sending', 'paid');
    create table payments (
        id bigint primary key, uid uuid not null unique, amount numeric(12, 2), cents integer,
        ratio double precision, tags text[], data jsonb, currency char(3), state pay_state,
        code varchar(4), flag boolean, created_at timestamptz, sent_at timestamp, sent_on date,
        sent_s bigint, memo text, label text generated always as ('x') stored, ref text,
        partly integer, raw bytea);
    create unique index on payments (partly) where partly > 0;
    create unique index on payments (ref);
    create table log (id bigint generated always as identity, payment_id integer not null,
        kind text not null, note text default '');
    create view joined as select p.*, l.kind from payments p join log l on l.payment_id = p.id;
    create view plain as select id, amount, currency, state, created_at, ref from payments;
    create materialized view yesterday as select * from payments;
    create table shops (id bigint primary key, label text);
    create table halves (
        shop_id bigint, id bigint, amount numeric(12, 2), currency char(3), state pay_state,
        created_at timestamptz, primary key (shop_id, id));
    create view owned as
        select h.*, (select s.label from shops s where s.id = h.shop_id) as shop from halves h;
    create view worked_out as
        select id, amount, currency, created_at, memo, upper(code) as code,
            case when state = 'sending' then 'sending' else 'paid' end as state
        from payments;
    create view told as
        select id, amount, currency, created_at,
            case when state = 'sending' then 'sending' else 'paid' end as state
        from payments;
    create function tell() returns trigger language plpgsql as $$ begin return new; end $$;
    create trigger tell instead of update on told for each row execute function tell();
    create domain code3 as text check (value ~ '^[A-Z]{3}$');
    create table typed (code code3, host inet, number bigint, small smallint, wait interval,
        fee numeric(12, 2), seen_at timestamptz, word varchar(9), pay pay_state);
    create table parted (id bigint, amount numeric(12, 2), currency char(3), state pay_state,
        created_at timestamptz, primary key (id, state));
    create table hidden (like payments including all);
    alter table hidden enable row level security;
    create table unread (like payments including all);";

const MAPPING: &str = r#"
[[table]]
name = "payments"
read = "payments"
key = ["id"]
tag = "{id}"
amount = { column = "amount", unit = "major" }
currency = { column = "currency" }
accounts = { "*" = "stripe_live" }
status = "state"
created = "created_at"
mode = "full"
map = [{ from = ["sending"], succeeded = "paid" }]
"#;

/// A case of a fixture: what stands in [`MAPPING`], what takes its place, what is told.
type Case = (String, String, Vec<String>);

fn cases(text: &str) -> Vec<Case> {
    let blocks = text.split("\n\n").filter(|block| !block.trim_start().starts_with('#'));
    blocks
        .map(|block| {
            let mut lines = block.trim().lines();
            let (from, to) = lines.next().unwrap().split_once(" ==> ").unwrap();
            let told = lines.map(|line| line.trim().to_owned()).collect();
            (from.replace("\\n", "\n"), to.replace("\\n", "\n"), told)
        })
        .collect()
}

fn mapping(from: &str, to: &str) -> Vec<TableSettings> {
    assert!(MAPPING.contains(from), "{from}");
    settings(&MAPPING.replacen(from, to, 1))
}

fn told(result: Result<Vec<SourceTable>, StoreError>) -> Vec<String> {
    match result {
        Ok(_) => vec!["it fits".to_owned()],
        Err(StoreError::Mapping(errors)) => errors
            .iter()
            .map(MappingError::to_string)
            .map(|text| text.trim_start_matches("[[table]] payments: ").to_owned())
            .collect(),
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_misfit_is_told_with_its_column_and_type() {
    let (database, store) = migrated().await;
    database.execute(TABLES).await;
    let cases = cases(include_str!("../../../fixtures/schemas/wrong.txt"));
    assert!(cases.len() > 40, "{}", cases.len());
    for (from, to, expected) in cases {
        let found = told(store.map_tables(&mapping(&from, &to), &accounts()).await);
        assert_eq!(found, expected, "{to}");
    }
}

#[tokio::test]
async fn what_a_view_works_out_may_stand_where_it_is_not_written() {
    let (database, store) = migrated().await;
    database.execute(TABLES).await;
    let view = MAPPING.replacen("read = \"payments\"", "read = \"worked_out\"", 1);
    let unwritten = [(", succeeded = \"paid\"", ""), ("\"full\"", "\"observe\"")];
    for (from, to) in unwritten {
        assert!(view.contains(from), "{from}");
        let settings = settings(&view.replacen(from, to, 1));
        assert_eq!(told(store.map_tables(&settings, &accounts()).await), ["it fits"], "{to}");
    }
}

#[tokio::test]
async fn what_the_role_may_not_do_is_told() {
    let (database, _owner) = migrated().await;
    database.execute(TABLES).await;
    database
        .execute(
            "do $$ begin create role tieout_test_clerk login;
               exception when duplicate_object then null; end $$;
             do $$ begin create role tieout_test_keeper;
               exception when duplicate_object then null; end $$;
             create view hidden_asked with (security_invoker = true) as select * from hidden;
             create view hidden_kept as select * from hidden;
             alter view hidden_kept owner to tieout_test_keeper;
             create view hidden_far as select * from hidden_kept;
             create view hidden_shown as select * from hidden;
             grant select on hidden to tieout_test_keeper;
             grant select on payments, hidden, log to tieout_test_clerk;
             grant select on hidden_asked, hidden_kept, hidden_far, hidden_shown
                 to tieout_test_clerk;
             grant update (amount) on payments, hidden to tieout_test_clerk;",
        )
        .await;
    let url = database.url().replace("postgres@", "tieout_test_clerk@");
    let store = Database::connect(&DatabaseSettings::of_url(&url)).await.unwrap();
    for (from, to, expected) in cases(include_str!("../../../fixtures/schemas/barred.txt")) {
        let found = told(store.map_tables(&mapping(&from, &to), &accounts()).await);
        assert_eq!(found, expected, "{to}");
    }
    store.close().await;
}

#[tokio::test]
async fn two_mappings_of_one_name_are_refused() {
    let (database, store) = migrated().await;
    database.execute(TABLES).await;
    let twice = settings(&MAPPING.repeat(2));
    assert_eq!(
        told(store.map_tables(&twice, &accounts()).await),
        ["name: `payments` names two tables; expected a name of its own for \
          each [[table]]"]
    );
}
