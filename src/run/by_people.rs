//! Hand-backs by people's word of rows that the PSP shows nothing of: all of a run's are counted
//! before the first goes out.
//!
//! Each passed its own gate: the call is over, every route was asked afresh, and where no list
//! proves the absence two people answered for it. What no gate of one row sees is that there are
//! thousands: on the day when the tag is broken, every paid row looks as if it never was sent, and
//! a list of them is approved with one word. So their number is bounded as the brake bounds a run's
//! own. What the PSP itself states to have failed, and an object that is charged once whoever asks,
//! need no tag and are not counted.

use std::collections::BTreeMap;

use crate::decide::brake::handbacks_allowed;
use crate::decide::decision::{Decision, Verdict};
use crate::exit::Exit;
use crate::run::books::{Books, Tell};
use crate::run::drive::give_back;
use crate::run::error::RunError;
use crate::run::gather::Weighed;
use crate::run::people::refuse;
use crate::run::scene::{OpenAccount, Scene};
use crate::store::people::Approved;
use crate::store::records::Claimed;

/// An approved hand-back of such a row.
pub struct Unseen {
    /// The row's table.
    pub table: String,
    /// What people said.
    pub approved: Approved,
    /// The row, decided.
    pub row: Weighed,
}

/// Those of a run, by account.
#[derive(Default)]
pub struct ByPeople {
    accounts: BTreeMap<String, Vec<Unseen>>,
}

/// Whether such a decision rests on what nobody found.
pub fn is_unseen(decision: &Decision) -> bool {
    matches!(decision.verdict, Verdict::Retryable(_)) && decision.seen.is_none()
}

impl ByPeople {
    /// Holds one back. It comes back where there are too many already: one more than are allowed
    /// is kept, so that none of them goes out.
    pub fn hold(&mut self, account: &str, open: &OpenAccount, one: Unseen) -> Option<Unseen> {
        let held = self.accounts.entry(account.to_owned()).or_default();
        if count_of(held) > most(open) {
            return Some(one);
        }
        held.push(one);
        None
    }
}

fn count_of(held: &[Unseen]) -> u64 {
    u64::try_from(held.len()).unwrap_or(u64::MAX)
}

/// The most that any account may hand back in a run, however much was listed.
fn most(open: &OpenAccount) -> u64 {
    handbacks_allowed(u64::MAX, &open.setup.brake)
}

/// Why none of them is carried out.
pub fn too_many(account: &str, open: &OpenAccount) -> String {
    let most = most(open);
    format!(
        "account {account}: more than {most} rows that the PSP shows nothing of would be handed \
         back at once by people's word, and none of them was; find out why it knows none of them, \
         then propose at most {most} at a time (max_handbacks)"
    )
}

/// Lets each account's go out together, or none of them.
pub async fn settle(scene: &Scene<'_>, books: &mut Books, tell: Tell<'_>) -> Result<(), RunError> {
    let accounts = std::mem::take(&mut books.by_people).accounts;
    for (name, held) in accounts {
        let Some(open) = scene.accounts.get(&name) else { continue };
        if scene.stop.requested().is_some() {
            give_back(scene, &claimed_of(held)).await?;
        } else if count_of(&held) > most(open) {
            let text = too_many(&name, open);
            for one in &held {
                refuse(scene, books, &one.approved, &text).await?;
            }
            give_back(scene, &claimed_of(held)).await?;
            books.miss(Exit::Partial, text, tell);
        } else {
            carry(scene, books, open, held, tell).await?;
        }
    }
    Ok(())
}

fn claimed_of(held: Vec<Unseen>) -> Vec<Claimed> {
    held.into_iter().map(|one| one.row.claimed).collect()
}

async fn carry(
    scene: &Scene<'_>,
    books: &mut Books,
    open: &OpenAccount,
    held: Vec<Unseen>,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let mut by_table: BTreeMap<String, Vec<Weighed>> = BTreeMap::new();
    for one in held {
        by_table.entry(one.table).or_default().push(one.row);
    }
    for (name, rows) in by_table {
        let Some(table) = scene.tables.iter().find(|table| table.settings.name == name) else {
            continue;
        };
        books.carry(scene, table, Some(open), rows, tell).await?;
    }
    Ok(())
}
