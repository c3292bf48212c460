//! One careful look at an account, for `doctor`: does the key work, do its lists and its search
//! answer, how old is the newest object, which captured objects carry which tags.
//!
//! A few requests, and all of them reads. Whether a key could also write is told from its prefix
//! alone: nothing is tried out with somebody's money.

use crate::model::evidence::Cause;
use crate::model::money::Money;
use crate::model::time::Instant;
use crate::model::transaction::Kind;
use crate::psp::account::Account;
use crate::psp::lane::AccountStop;
use crate::psp::stripe::{ObjectKind, PAGE, PageAsk, Piece, wider_skew};
use crate::psp::stripe_objects::at;

/// Captured objects that are looked for.
const CAPTURED: usize = 100;

/// Pages read for them at most: an account with few captures has many failures.
const PAGES_MAX: usize = 5;

/// What the PSP just made may stand in the database's future.
const AHEAD_SECS: i64 = 86_400;

/// A tag that no application makes: what is asked for is whether the search answers.
const NO_TAG: &str = "tieout-doctor-asks";

/// What a key is, as far as its prefix says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// It may do everything that the account may.
    Secret,
    /// Its rights were chosen when it was made.
    Restricted,
    /// It says nothing of itself.
    Unknown,
}

/// A captured object near the present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedObject {
    /// The PSP's id.
    pub reference: String,
    /// Every id of the same movement, this one too: of an intent's charge, of a charge's intent.
    pub ids: Vec<String>,
    /// The tag that it carries.
    pub tag: Option<String>,
    /// Of which kind the rows are that it may be the movement of.
    pub kind: Kind,
    /// What moved, in ISO minor units.
    pub captured: Money,
    /// When the PSP made it.
    pub created_at: Instant,
}

/// What a probe found.
#[derive(Debug, Clone)]
pub struct Probe {
    /// What the key says of itself.
    pub key: KeyKind,
    /// Each kind that was listed, and why it was not answered.
    pub lists: Vec<(&'static str, Option<String>)>,
    /// Whether the search answered; `None`: it is switched off or was not reached.
    pub search: Option<Result<(), String>>,
    /// PSP minus database, in seconds, by the Date header.
    pub skew_secs: Option<i64>,
    /// When the newest listed object was made.
    pub newest: Option<Instant>,
    /// The newest captured objects of ours.
    pub captured: Vec<CapturedObject>,
    /// The newest refunds of ours that were made, where they were looked at.
    pub refunds: Vec<CapturedObject>,
    /// Why the account is not asked any more, if so.
    pub stopped: Option<AccountStop>,
}

impl Account {
    /// Looks at the account; `refunds`: also at the list of refunds.
    pub async fn probe(&self, refunds: bool) -> Probe {
        let mut probe = Probe {
            key: self.stripe.key_kind().await,
            lists: Vec::new(),
            search: None,
            skew_secs: None,
            newest: None,
            captured: Vec::new(),
            refunds: Vec::new(),
            stopped: None,
        };
        let kinds = self.settings.charges_by.iter().filter_map(|kind| ObjectKind::parse(kind));
        let kinds = kinds.chain(refunds.then_some(ObjectKind::Refund));
        for (place, kind) in kinds.enumerate() {
            let pages = if place == 0 { PAGES_MAX } else { 1 };
            let listed = self.probe_list(kind, pages, &mut probe).await;
            probe.lists.push((kind.as_str(), listed.err().map(|cause| cause.detail)));
        }
        if self.settings.search && self.stopped().is_none() {
            let found = self.stripe.search(ObjectKind::PaymentIntent, NO_TAG).await;
            probe.search = Some(found.map(|_none| ()).map_err(|cause| cause.detail));
        }
        probe.stopped = self.stopped();
        probe
    }

    /// Reads the newest pages of one kind. The first kind gives the captured objects too, and
    /// refunds give those of one page.
    async fn probe_list(
        &self,
        kind: ObjectKind,
        pages: usize,
        probe: &mut Probe,
    ) -> Result<(), Cause> {
        let to = self.now().timestamp().saturating_add(AHEAD_SECS);
        let is_refunds = kind == ObjectKind::Refund;
        let is_sampled = pages > 1 || is_refunds;
        let mut cursor = None;
        for _page in 0..pages {
            let limit = if is_sampled { PAGE } else { 1 };
            let page = self.stripe.list(&PageAsk { kind, from: 0, to, cursor, limit }).await?;
            probe.skew_secs = wider_skew(probe.skew_secs, page.skew_secs);
            let made = page.pieces.iter().filter_map(|piece| at(piece.created)).max();
            probe.newest = probe.newest.max(made);
            cursor = page.pieces.last().map(|piece| piece.id.clone());
            if is_sampled {
                let captured = page.pieces.into_iter().filter(|piece| piece.ours);
                let captured = captured.filter_map(captured_object);
                let all = if is_refunds { &mut probe.refunds } else { &mut probe.captured };
                all.extend(captured);
            }
            if !page.has_more || probe.captured.len() >= CAPTURED {
                break;
            }
        }
        probe.captured.truncate(CAPTURED);
        Ok(())
    }
}

/// A listed object, where it captured something.
fn captured_object(piece: Piece) -> Option<CapturedObject> {
    let mut ids = piece.parts.ids();
    ids.push(piece.id.clone());
    Some(CapturedObject {
        ids,
        kind: match piece.kind {
            ObjectKind::PaymentIntent | ObjectKind::Charge => Kind::Charge,
            ObjectKind::Refund => Kind::Refund,
        },
        captured: piece.captured?,
        created_at: at(piece.created)?,
        reference: piece.id,
        tag: piece.tag,
    })
}
