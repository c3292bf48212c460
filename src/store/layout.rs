//! SQL that people read and paste, in lines that a screen shows whole.

use crate::model::fill::filled;

/// A statement or a comment in lines of at most `width` characters, the later ones indented or
/// comments again. A statement is broken at spaces outside of quotes alone, so that it stays the
/// same; what has lines already stays as it is.
pub fn laid_out(statement: &str, width: usize, indent: usize) -> Vec<String> {
    if statement.contains('\n') {
        return vec![statement.to_owned()];
    }
    match statement.strip_prefix("-- ") {
        Some(comment) => filled(comment.split(' '), width, ("-- ", "-- ")),
        None => filled(words(statement), width, ("", &" ".repeat(indent))),
    }
}

/// What stands between spaces outside of quotes. A doubled quote ends one and begins another.
fn words(statement: &str) -> impl Iterator<Item = &str> {
    let mut quote = None;
    statement.split(move |letter: char| {
        match (quote, letter) {
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _within => {}
        }
        quote.is_none() && letter == ' '
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_has_one_line() {
        let short = "grant select on shop.payments to reader;";
        assert_eq!(laid_out(short, 80, 4), [short]);
    }

    #[test]
    fn a_long_statement_is_broken_outside_of_quotes() {
        let statement =
            r#"create index on "our shop"."x ""y"" z" (a, b) where state = 'in it''s progress';"#;
        let lines = laid_out(statement, 30, 2);
        assert_eq!(
            lines,
            [
                "create index on",
                r#"  "our shop"."x ""y"" z" (a,"#,
                "  b) where state =",
                "  'in it''s progress';"
            ]
        );
        let trimmed: Vec<&str> = lines.iter().map(|line| line.trim_start()).collect();
        assert_eq!(trimmed.join(" "), statement);
    }

    #[test]
    fn a_comment_stays_one_and_what_has_lines_as_it_is() {
        let comment = "-- \"a role\": for looking";
        assert_eq!(laid_out(comment, 14, 4), ["-- \"a role\":", "-- for looking"]);
        let block = "do $$\nbegin\nend\n$$ and more";
        assert_eq!(laid_out(block, 10, 4), [block]);
        let within = laid_out("    if a then", 10, 8);
        assert_eq!(within, ["    if a", "        then"]);
    }
}
