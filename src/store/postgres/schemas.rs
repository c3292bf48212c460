//! The schemas that `search_path` names.
//!
//! PostgreSQL passes over one that is not there in silence: then the tables that are meant are not
//! seen, and tieout's own would be made in the next schema that is.

use sqlx::postgres::PgPool;

use crate::store::error::StoreError;
use crate::store::postgres::errors::failed;
use crate::store::settings::DatabaseSettings;

/// How a search path is written.
pub(super) const HOW: &str = "schemas stand between commas; one with a blank or a capital letter \
                              in its name stands in double quotes";

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

impl DatabaseSettings {
    /// Refuses a search path that PostgreSQL cannot read, or that names no schema.
    ///
    /// # Errors
    /// With what is wrong with it. What is no letter is shown as it is written in a file.
    pub fn check_search_path(&self) -> Result<(), StoreError> {
        let is_file = self.url.as_deref().is_some_and(|url| url.starts_with("sqlite:"));
        let Some(path) = self.search_path.as_deref().filter(|_| !is_file) else { return Ok(()) };
        let wrong = match read(path) {
            // A session's settings are handed on in one line, which blanks of other kinds split.
            _any if path.contains(char::is_control) => "a control character stands in it",
            Ok(names) if names.is_empty() => "it names no schema",
            Ok(names) if names.iter().any(String::is_empty) => "a name in it is empty",
            Ok(_names) => return Ok(()),
            Err(wrong) => wrong,
        };
        let problem = format!("`{}`: {wrong}; {HOW}", escaped(path));
        Err(StoreError::Setting { field: "search_path".to_owned(), problem })
    }
}

/// A text on one line.
fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// The schemas of a search path, as the catalogue spells them. Those of the session's user and of
/// the server itself need not be there.
pub(super) fn named(path: &str) -> Vec<String> {
    let mut names = read(path).unwrap_or_default();
    names.retain(|name| name != "$user" && !name.starts_with("pg_"));
    names
}

/// What the server takes for a blank.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// The names of a search path as the server reads them; else what is wrong with it.
fn read(path: &str) -> Result<Vec<String>, &'static str> {
    let mut names = Vec::new();
    let mut rest = path.trim_matches(is_blank);
    if rest.is_empty() {
        return Ok(names);
    }
    loop {
        let (name, after) = first(rest)?;
        names.push(name);
        let after = after.trim_start_matches(is_blank);
        match after.strip_prefix(',') {
            Some(next) => rest = next.trim_start_matches(is_blank),
            None if after.is_empty() => return Ok(names),
            None => return Err("two names in it stand without a comma between them"),
        }
    }
}

/// The name that a text begins with, and what stands behind it.
fn first(text: &str) -> Result<(String, &str), &'static str> {
    let Some(mut rest) = text.strip_prefix('"') else {
        // A double quote within such a name is a letter of it.
        let end = text.find(|c| c == ',' || is_blank(c)).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        return match name.is_empty() {
            true => Err("a name between its commas is missing"),
            // PostgreSQL reads a name without quotes so.
            false => Ok((name.to_ascii_lowercase(), rest)),
        };
    };
    let mut name = String::new();
    loop {
        let unclosed = "a name in it begins with a double quote, and does not end with one";
        let (part, after) = rest.split_once('"').ok_or(unclosed)?;
        name.push_str(part);
        // A quote that is part of the name is written twice.
        match after.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Ok((name, after)),
        }
    }
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
            ("$user", &[]),
            ("tt\"", &["tt\""]),
            ("\"\", shop", &["", "shop"]),
            ("tt,\n\tShop", &["tt", "shop"]),
            ("", &[]),
        ] {
            assert_eq!(named(path), names, "{path}");
        }
    }

    #[test]
    fn a_path_that_no_server_reads_is_refused_before_one_is_asked() {
        let of = |url: &str, path: &str| {
            let search_path = Some(path.to_owned());
            DatabaseSettings { search_path, ..DatabaseSettings::of_url(url) }.check_search_path()
        };
        for (path, part) in [
            ("", "it names no schema"),
            ("  ", "it names no schema"),
            ("\"\"", "a name in it is empty"),
            ("\"\", shop", "a name in it is empty"),
            ("\"tt, shop", "does not end with one"),
            ("tt,, shop", "a name between its commas is missing"),
            ("tt,", "a name between its commas is missing"),
            ("tt shop", "without a comma between them"),
            ("\"tt\"shop", "without a comma between them"),
            ("tt,\tshop", "`tt,\\tshop`: a control character"),
            ("tt,\n\u{1}shop", "`tt,\\n\\u{1}shop`: a control character"),
        ] {
            let told = of("postgres://h/d", path).unwrap_err().to_string();
            assert!(told.contains("`search_path`") && told.contains(part), "{path:?}: {told}");
            assert!(!told.contains(char::is_control), "{path:?}: {told:?}");
            // A file has no schemas, and nobody reads it there.
            assert!(of("sqlite:shop.db", path).is_ok(), "{path:?}");
        }
        for path in ["shop", "\"$user\", public", "\"Über, uns\" , b", "$user", "\"a\"\"b\""] {
            assert!(of("postgres://h/d", path).is_ok(), "{path:?}");
        }
    }
}
