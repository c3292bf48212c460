//! The blocks around SWIFT messages: `{1:…}{2:…}{4:`, the message, `-}{5:…}`.
//!
//! Nothing of them is read but which message they begin, and whether they end. A service message
//! (`{1:F21…}{4:{177:…}{451:0}}`, that another one was accepted) has blocks in its fourth one and
//! no text: it ends with a brace, and nothing in it is a statement's.

use crate::model::settlement::Problem;

/// Messages of category 9 that banks put between statements, and what they are.
const OTHERS: [(&str, &str); 12] = [
    ("900", "a confirmation of debit"),
    ("910", "a confirmation of credit"),
    ("920", "a request for statements"),
    ("935", "a change of rates"),
    ("985", "an enquiry"),
    ("986", "a status"),
    ("990", "an advice of charges"),
    ("991", "a request for charges"),
    ("992", "a request to cancel"),
    ("995", "a query"),
    ("996", "an answer"),
    ("999", "a free text"),
];

/// The fields of a message from its first entry on, until it is closed: what else looks like a
/// field there is text (`14:20:05`).
const AMONG_ENTRIES: [&str; 8] = ["61", "86", "62", "62F", "62M", "90D", "90C", "NS"];

/// The fields that close it.
const CLOSING: [&str; 5] = ["62", "62F", "62M", "90D", "90C"];

/// Whether a row carries the head of a message and what follows it, as banks write that put a
/// whole message on one row.
pub fn is_run_on(row: &str) -> bool {
    let head = row.split_once(":20:").and_then(|(_, rest)| rest.split_once(":25:"));
    // Where other marks stand between fields, they would be part of what each field says.
    let Some((_, rest)) = head.filter(|_| !row.contains("##:25:")) else { return false };
    [":60F:", ":60M:", ":34F:", ":13D:"].into_iter().any(|field| rest.contains(field))
}

/// The rows that a message on one row would have, were each field on one of its own. `is_field`
/// tells a field's name.
pub fn rows_of(row: &str, is_field: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut rows = Vec::new();
    let (mut begun, mut among) = (0, false);
    let mut cut = |at: usize| {
        rows.extend(row.get(begun..at).filter(|text| !text.is_empty()));
        begun = at;
    };
    for (at, _) in row.match_indices([':', '-']) {
        let rest = row.get(at..).unwrap_or_default();
        if rest.starts_with("-}") {
            among = false;
            cut(at);
            continue;
        }
        let name = rest.get(1..).and_then(|rest| rest.split_once(':')).map(|(name, _)| name);
        let Some(name) = name.filter(|name| name.len() < 4 && is_field(name)) else { continue };
        if among && !AMONG_ENTRIES.contains(&name) {
            continue;
        }
        among = (among || name == "61") && !CLOSING.contains(&name);
        cut(at);
    }
    cut(row.len());
    rows
}

/// What stands outside of messages, as it comes.
#[derive(Debug, Default)]
pub struct Frame {
    /// How many braces are open.
    depth: u32,
    /// The line of a first block whose message has not begun.
    begun: Option<u64>,
    /// The line of the last row of blocks.
    line: u64,
    /// The type of the message that the blocks begin.
    kind: Option<String>,
}

impl Frame {
    /// A row outside of messages. What stands behind the `{4:` that begins a message's text is
    /// given back.
    pub fn row<'a>(&mut self, row: &'a str, line: u64) -> Option<&'a str> {
        self.line = line;
        let Some((before, rest)) = row.split_once("{4:") else {
            self.blocks(row);
            return None;
        };
        self.blocks(before);
        if rest.trim_start().starts_with('{') {
            self.depth = self.depth.saturating_add(1);
            self.begun = None;
            return self.row(rest, line);
        }
        (self.depth, self.begun) = (0, None);
        Some(rest)
    }

    fn blocks(&mut self, row: &str) {
        for (at, brace) in row.match_indices(['{', '}']) {
            let rest = row.get(at..).unwrap_or_default();
            if brace == "}" {
                self.depth = self.depth.saturating_sub(1);
                continue;
            }
            self.depth = self.depth.saturating_add(1);
            if rest.starts_with("{1:") {
                (self.begun, self.kind) = (Some(self.line), None);
            }
            if rest.starts_with("{2:I") || rest.starts_with("{2:O") {
                self.kind = rest.get(4..7).map(str::to_owned);
            }
        }
    }

    /// A field of a message came: its blocks are over, whatever they lack.
    pub fn field(&mut self) {
        (self.depth, self.begun) = (0, None);
    }

    /// The message that began has ended: what it is, where its type is known to be no statement's.
    pub fn end(&mut self) -> Option<String> {
        let kind = self.kind.take()?;
        let (kind, name) = OTHERS.into_iter().find(|(other, _)| *other == kind)?;
        Some(format!("MT{kind}, {name}"))
    }

    /// The file ended, with or without the end of its last line.
    pub fn cut(&self, has_line_end: bool) -> Option<Problem> {
        let is_open = self.depth > 0 && !has_line_end;
        let expected = match self.begun {
            Some(line) => format!("the message (`{{4:`) of the blocks that begin on line {line}"),
            None if is_open => "a brace that ends each block".to_owned(),
            None => return None,
        };
        let field = if self.begun.is_some() { "{1:" } else { "{5:" };
        Some(Problem::error(self.line, field, expected, "none: the file was cut"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_do_not_end_were_cut() {
        let cut = |rows: &[&str]| {
            let mut frame = Frame::default();
            for row in rows {
                frame.row(row, 7);
            }
            frame.cut(false).map(|problem| problem.field)
        };
        let ack = "{1:F21X}{4:{177:2407021200}{451:0}}";
        for rows in [&["{5:{CHK:1}}"][..], &[], &[ack], &["}", "{5:{MAC:1}}"], &["{1:F01X}{4:"]] {
            assert_eq!(cut(rows), None, "{rows:?}");
        }
        for (rows, field) in [
            (&["{1:F01X"][..], "{1:"),
            (&["{1:F01X}", "{2:I940X}"], "{1:"),
            (&["{1:F01X}{2:I940X}{"], "{1:"),
            (&["{5:{CHK:1}"], "{5:"),
            (&["{1:F21X}{4:{177:1}"], "{5:"),
            (&[ack, "{1:F01X}{2:"], "{1:"),
        ] {
            assert_eq!(cut(rows).as_deref(), Some(field), "{rows:?}");
        }
    }

    #[test]
    fn a_message_on_one_row_is_cut_into_its_fields() {
        let head = "{1:F01X}{2:I940X}{4::20:1:25:2:60F:C261119EUR1,";
        for (row, is) in [
            (format!("{head}:62F:C261119EUR1,-}}"), true),
            (":20:1:25:2:28C:3:34F:EUR0,:13D:2611191200".to_owned(), true),
            (":20:1".to_owned(), false),
            (":86:paid at 10:20:30, 11:25:10".to_owned(), false),
            (":20:1##:25:2##:60F:C261119EUR1,##:62F:C261119EUR1,##-".to_owned(), false),
            ("{1:F01X}{2:I103X}{4::20:1:23B:CRED:32A:261119EUR1,-}".to_owned(), false),
        ] {
            assert_eq!(is_run_on(&row), is, "{row}");
        }
        let row = format!(
            "{head}:61:2611191119D1,NTRFA:86:at 14:20:05 C:\\25:61:2611191119C1,NTRFB-\
             :62F:C261119EUR1,:86:closed-}}{{1:F01X}}{{2:I940X}}{{4::20:2"
        );
        let is_field = |name: &str| ["20", "25", "60F", "61", "86", "62F"].contains(&name);
        let want = [
            "{1:F01X}{2:I940X}{4:",
            ":20:1",
            ":25:2",
            ":60F:C261119EUR1,",
            ":61:2611191119D1,NTRFA",
            ":86:at 14:20:05 C:\\25",
            ":61:2611191119C1,NTRFB-",
            ":62F:C261119EUR1,",
            ":86:closed",
            "-}{1:F01X}{2:I940X}{4:",
            ":20:2",
        ];
        assert_eq!(rows_of(&row, is_field), want);
    }

    #[test]
    fn what_stands_between_statements_is_named() {
        let mut frame = Frame::default();
        assert_eq!(frame.row("{1:F01X}{2:O9101234X}{4:", 1), Some(""));
        assert_eq!(frame.end().as_deref(), Some("MT910, a confirmation of credit"));
        assert_eq!(frame.end(), None, "once");
        assert_eq!(frame.row("{1:F21X}{4:{451:0}}{1:F01X}{2:I940X}{4::20:X", 2), Some(":20:X"));
        assert_eq!(frame.end(), None, "a statement");
    }
}
