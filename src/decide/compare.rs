//! A row that may have ended long ago, held against what its PSP lists and what files say of it.
//!
//! It decides nothing: what is stuck is decided by the run's one loop, with all its proofs. Here
//! is only said where three books agree and where they do not, each row in one bucket.

use serde::{Deserialize, Serialize};

use crate::model::evidence::{ObjectState, PspObject};
use crate::model::money::Money;
use crate::model::transaction::Transaction;

/// Where a row, an object or a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Bucket {
    /// All that was asked says the same.
    #[default]
    Agrees,
    /// The row has not ended: the run decides it, or it waits.
    Processing,
    /// The row says that money moved, and neither the PSP nor a file does.
    OnlyHere,
    /// The row and a file say that money moved, and the PSP lists no such object.
    NotAtPsp,
    /// The row and the PSP say that money moved, and no file does yet.
    NotInFile,
    /// Money that the PSP lists, and no row.
    OnlyAtPsp,
    /// Money in a file, and no row.
    OnlyInFile,
    /// One says that money moved, and the other that none did, or that it is gone again.
    StatusDiffers,
    /// Another amount or currency.
    AmountDiffers,
    /// Money moved more than once for one row.
    Duplicate,
    /// Several rows share the tag: whose it is cannot be told.
    Ambiguous,
    /// The row's amount cannot be read.
    Unreadable,
    /// Its row was made outside of the window.
    OtherWindow,
    /// The PSP gave no answer for the whole window.
    NotAsked,
}

impl Bucket {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Agrees,
        Self::Processing,
        Self::OnlyHere,
        Self::NotAtPsp,
        Self::NotInFile,
        Self::OnlyAtPsp,
        Self::OnlyInFile,
        Self::StatusDiffers,
        Self::AmountDiffers,
        Self::Duplicate,
        Self::Ambiguous,
        Self::Unreadable,
        Self::OtherWindow,
        Self::NotAsked,
    ];

    /// Where two books say different things of money that moved. What a file may still bring, and
    /// what nobody can tell, is none.
    pub const DIFFERENCES: [Self; 7] = [
        Self::OnlyHere,
        Self::NotAtPsp,
        Self::OnlyAtPsp,
        Self::OnlyInFile,
        Self::StatusDiffers,
        Self::AmountDiffers,
        Self::Duplicate,
    ];

    /// Reads the stable word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bucket| bucket.as_str() == text)
    }

    /// The stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Processing => "processing",
            Self::OnlyHere => "only_here",
            Self::NotAtPsp => "not_at_psp",
            Self::NotInFile => "not_in_file",
            Self::OnlyAtPsp => "only_at_psp",
            Self::OnlyInFile => "only_in_file",
            Self::StatusDiffers => "status_differs",
            Self::AmountDiffers => "amount_differs",
            Self::Duplicate => "duplicate",
            Self::Ambiguous => "ambiguous",
            Self::Unreadable => "unreadable",
            Self::OtherWindow => "other_window",
            Self::NotAsked => "not_asked",
        }
    }
}

/// What one book says of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Book {
    /// There is none for the row's account and kind.
    None,
    /// It gave no answer.
    Unknown,
    /// Nothing moved.
    Nothing,
    /// It knows of the row, and nothing moved (yet).
    Unmoved,
    /// So much moved, once.
    Moved(Money),
    /// It moved more than once.
    Several,
}

impl Book {
    /// From what moved, object by object, and whether there were others.
    pub fn of(moved: &[Money], others: bool) -> Self {
        match moved {
            [] if others => Self::Unmoved,
            [] => Self::Nothing,
            [only] => Self::Moved(*only),
            _several => Self::Several,
        }
    }

    /// What the lines of files tell of a row.
    pub fn of_objects(objects: &[PspObject]) -> Self {
        let moved: Vec<Money> = objects.iter().filter_map(|object| object.captured).collect();
        let is_moved = |object: &&PspObject| object.state == ObjectState::Captured;
        let untold = objects.iter().filter(is_moved).any(|object| object.captured.is_none());
        if untold { Self::Unmoved } else { Self::of(&moved, !objects.is_empty()) }
    }
}

/// What went back of what one book says that moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Back {
    /// What was given back of it, in minor units.
    pub minor: i64,
    /// A bank took it back, or it was charged back: nobody of the shop gave it.
    pub is_taken: bool,
}

impl Back {
    /// Of what the lines of files tell of a row.
    pub fn of_object(object: &PspObject) -> Self {
        let is_taken = object.disputed || object.returned.is_some();
        Self { minor: object.refunded_minor, is_taken }
    }

    /// Whether a row that says `moved` is wrong about it: it was taken, or nothing is left of it. A
    /// part that the shop gave back itself is no difference.
    pub fn contradicts(self, moved: Option<Money>) -> bool {
        let is_all = self.minor > 0 && moved.is_some_and(|moved| self.minor >= moved.minor);
        self.is_taken || is_all
    }
}

/// The bucket of a succeeded row, where something contradicts what is else agreed of it.
pub fn contradicted(row: &Transaction, found: Bucket, is_contradicted: bool) -> Bucket {
    match found {
        Bucket::Agrees | Bucket::NotInFile if row.succeeded && is_contradicted => {
            Bucket::StatusDiffers
        }
        found => found,
    }
}

/// The row's bucket.
pub fn bucket(row: &Transaction, psp: Book, files: Book) -> Bucket {
    use Book as B;
    if row.processing {
        return Bucket::Processing;
    }
    let Some(money) = row.money else { return Bucket::Unreadable };
    if psp == B::Several || files == B::Several {
        return Bucket::Duplicate;
    }
    let moved = [psp, files].into_iter().filter_map(|book| match book {
        B::Moved(money) => Some(money),
        B::None | B::Unknown | B::Nothing | B::Unmoved | B::Several => None,
    });
    let mut moved = moved.peekable();
    if !row.succeeded {
        return match (moved.peek(), psp) {
            (Some(_), _) => Bucket::StatusDiffers,
            (None, B::Unknown) => Bucket::NotAsked,
            (None, _) => Bucket::Agrees,
        };
    }
    if moved.any(|other| other != money) {
        return Bucket::AmountDiffers;
    }
    match (psp, files) {
        (B::Unknown, _) => Bucket::NotAsked,
        (B::Unmoved, _) | (B::None, B::Unmoved) => Bucket::StatusDiffers,
        (B::Nothing, B::Moved(_)) => Bucket::NotAtPsp,
        (B::Nothing, _) => Bucket::OnlyHere,
        (B::Moved(_), B::Nothing | B::Unmoved) => Bucket::NotInFile,
        (B::None, B::Nothing | B::None | B::Unknown) => Bucket::OnlyHere,
        (B::Moved(_) | B::None | B::Several, _) => Bucket::Agrees,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::money::Currency;
    use crate::model::transaction::{AccountRef, Attempts, Kind, RowKey, TagState, Transaction};

    fn eur(minor: i64) -> Money {
        Money::new(minor, Currency::parse("EUR").unwrap())
    }

    fn row(status: &str) -> Transaction {
        Transaction {
            key: RowKey { table: "t".into(), id: "1".into() },
            status: status.into(),
            processing: status == "processing",
            succeeded: status == "paid",
            ignored: false,
            kind: Kind::Charge,
            money: Some(eur(500)),
            defects: Vec::new(),
            account: AccountRef::Known("a".into()),
            tag: TagState::Usable("pay_1".into()),
            psp_reference: None,
            natural_key: None,
            idempotency_key: None,
            created_at: chrono::DateTime::UNIX_EPOCH,
            attempted_at: None,
            attempts: Attempts::Once,
            image: String::new(),
        }
    }

    #[test]
    fn three_books_agree_or_say_where_they_do_not() {
        let (same, other) = (Book::Moved(eur(500)), Book::Moved(eur(501)));
        use Book::{None as N, Nothing, Several, Unknown, Unmoved};
        for (status, psp, files, want) in [
            ("processing", same, same, "processing"),
            ("paid", same, same, "agrees"),
            ("paid", same, N, "agrees"),
            ("paid", N, same, "agrees"),
            ("paid", same, Nothing, "not_in_file"),
            ("paid", same, Unmoved, "not_in_file"),
            ("paid", Nothing, same, "not_at_psp"),
            ("paid", Nothing, Nothing, "only_here"),
            ("paid", Nothing, N, "only_here"),
            ("paid", N, Nothing, "only_here"),
            ("paid", N, N, "only_here"),
            ("paid", Unmoved, N, "status_differs"),
            ("paid", N, Unmoved, "status_differs"),
            ("paid", other, N, "amount_differs"),
            ("paid", same, other, "amount_differs"),
            ("paid", Unknown, other, "amount_differs"),
            ("paid", Unknown, same, "not_asked"),
            ("paid", Several, N, "duplicate"),
            ("paid", same, Several, "duplicate"),
            ("failed", Nothing, Nothing, "agrees"),
            ("failed", N, N, "agrees"),
            ("failed", Unmoved, N, "agrees"),
            ("failed", same, N, "status_differs"),
            ("failed", Nothing, same, "status_differs"),
            ("failed", Unknown, Nothing, "not_asked"),
            ("failed", Several, N, "duplicate"),
        ] {
            assert_eq!(
                bucket(&row(status), psp, files).as_str(),
                want,
                "{status} {psp:?} {files:?}"
            );
        }
        let unreadable = Transaction { money: None, ..row("paid") };
        assert_eq!(bucket(&unreadable, same, same), Bucket::Unreadable);
    }

    #[test]
    fn money_that_is_gone_again_contradicts_a_row_that_says_it_moved() {
        let back = |minor, is_taken| Back { minor, is_taken }.contradicts(Some(eur(500)));
        assert!(!back(0, false) && !back(499, false), "the shop gave a part back itself");
        assert!(back(500, false) && back(501, false), "nothing is left");
        assert!(back(0, true) && back(1, true), "somebody else took it");
        for (status, found, want) in [
            ("paid", Bucket::Agrees, Bucket::StatusDiffers),
            ("paid", Bucket::NotInFile, Bucket::StatusDiffers),
            ("paid", Bucket::AmountDiffers, Bucket::AmountDiffers),
            ("failed", Bucket::Agrees, Bucket::Agrees),
        ] {
            assert_eq!(contradicted(&row(status), found, true), want, "{status} {found:?}");
            assert_eq!(contradicted(&row(status), found, false), found);
        }
    }

    #[test]
    fn buckets_read_back() {
        for bucket in Bucket::ALL {
            assert_eq!(Bucket::parse(bucket.as_str()), Some(bucket));
        }
    }
}
