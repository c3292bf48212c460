//! The schemas that `search_path` names.
//!
//! PostgreSQL passes over one that is not there in silence: then the tables that are meant are not
//! seen, and tieout's own would be made in the next schema that is.

use sqlx::postgres::PgPool;

use crate::store::error::StoreError;
use crate::store::postgres::errors::failed;

const LOOKING: &str = "looking for the schemas of search_path";

/// The first of these schemas that is not there.
const MISSING: &str = "\
select n.name from unnest($1::text[]) with ordinality as n(name, at)
where not exists (select from pg_namespace s where s.nspname = n.name) order by n.at limit 1";

const KNOWN: &str = "\
select nspname::text from pg_namespace
where nspname <> 'information_schema' and nspname not like 'pg\\_%' order by 1";

/// Refuses a search path of which a schema is not there.
pub(super) async fn require(pool: &PgPool, path: &str) -> Result<(), StoreError> {
    let named = named(path);
    if named.is_empty() {
        return Ok(());
    }
    let missing: Option<String> = sqlx::query_scalar(MISSING)
        .bind(named)
        .fetch_optional(pool)
        .await
        .map_err(failed(LOOKING))?;
    let Some(name) = missing else { return Ok(()) };
    let known = sqlx::query_scalar(KNOWN).fetch_all(pool).await.map_err(failed(LOOKING))?;
    Err(StoreError::NoSchema { name, known })
}

/// The schemas of a search path, as the catalogue spells them. Those of the session's user and of
/// the server itself need not be there.
fn named(path: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut is_quoted = false;
    let mut chars = path.chars().peekable();
    while let Some(c) = chars.next() {
        let Some(name) = names.last_mut() else { break };
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                name.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => names.push(String::new()),
            c if is_quoted => name.push(c),
            c if c.is_whitespace() => {}
            // PostgreSQL reads a name without quotes so.
            c => name.push(c.to_ascii_lowercase()),
        }
    }
    names.retain(|name| !name.is_empty() && name != "$user" && !name.starts_with("pg_"));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemas_of_a_path_are_read_as_the_server_reads_them() {
        for (path, names) in [
            ("shop", &["shop"][..]),
            (" Shop , public", &["shop", "public"]),
            ("\"Shop\", \"a,b\"", &["Shop", "a,b"]),
            ("\"a\"\"b\"", &["a\"b"]),
            ("\"$user\", public, pg_temp", &["public"]),
            ("$user,,", &[]),
            ("", &[]),
        ] {
            assert_eq!(named(path), names, "{path}");
        }
    }
}
