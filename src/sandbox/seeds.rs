//! Objects that are put into the sandbox directly, in any state and of any age.
//!
//! A seed says what a test or a rehearsal wants to find; the rest is made up as the API would.
//! A wrong seed is refused whole, with its place.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::books::Books;
use super::mint::Mint;
use super::objects::{Charge, Head, Intent, Metadata, Refund, Word};
use super::outcomes::{advice_for, decline_by};
use super::situations::{Decline, Moment, Move, Situation};

/// The account that objects and requests belong to when nothing else is said.
pub const DEFAULT_ACCOUNT: &str = "default";

/// An object to be put into the sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Seed {
    /// What it is.
    pub kind: SeedKind,
    /// Its id; none makes one.
    pub id: Option<String>,
    /// When it was created, in Unix seconds; none is now. Its charges and refunds share it.
    pub created: Option<i64>,
    /// Its amount in minor units.
    pub amount: i64,
    /// Its currency, in small letters as Stripe writes it.
    pub currency: String,
    /// Its metadata; an intent's charge gets the same.
    pub metadata: BTreeMap<String, String>,
    /// Where it stands.
    pub situation: Situation,
    /// How much was captured, for `succeeded`, or refunded, for `refunded`; none is all.
    pub moved_amount: Option<i64>,
    /// The decline code of a declined one; its error code and advice follow from it.
    pub decline_code: Option<String>,
    /// The whole decline, where code and advice must not follow from the decline code.
    pub decline: Option<Decline>,
    /// Why it was canceled.
    pub cancellation_reason: Option<String>,
    /// The id of an intent's charge; none makes one.
    pub charge_id: Option<String>,
    /// The intent of a charge or refund.
    pub payment_intent: Option<String>,
    /// The charge of a refund.
    pub charge: Option<String>,
    /// The customer.
    pub customer: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The account.
    pub account: String,
    /// Whether it is seen with live keys or with test keys.
    pub live: bool,
    /// What its `livemode` says; none says the truth.
    pub livemode: Option<bool>,
    /// Members laid over what the API shows of it.
    pub overlay: Map<String, Value>,
}

impl Default for Seed {
    fn default() -> Self {
        Self {
            kind: SeedKind::default(),
            id: None,
            created: None,
            amount: 1000,
            currency: "usd".to_owned(),
            metadata: BTreeMap::new(),
            situation: Situation::Succeeded,
            moved_amount: None,
            decline_code: None,
            decline: None,
            cancellation_reason: None,
            charge_id: None,
            payment_intent: None,
            charge: None,
            customer: None,
            description: None,
            account: DEFAULT_ACCOUNT.to_owned(),
            live: false,
            livemode: None,
            overlay: Map::new(),
        }
    }
}

/// What a seed is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeedKind {
    /// An intent, with the charges that its situation needs.
    #[default]
    Intent,
    /// A charge, alone or of an intent.
    Charge,
    /// A refund, of a charge that is there or of none.
    Refund,
}

impl Seed {
    /// A captured payment with one tag.
    #[must_use]
    pub fn captured(key: &str, tag: &str, amount: i64, currency: &str) -> Self {
        Self {
            amount,
            currency: currency.to_owned(),
            metadata: BTreeMap::from([(key.to_owned(), tag.to_owned())]),
            ..Self::default()
        }
    }

    /// The same, standing elsewhere.
    #[must_use]
    pub fn standing(self, situation: Situation) -> Self {
        Self { situation, ..self }
    }

    /// The same, created then.
    #[must_use]
    pub fn created_at(self, created: i64) -> Self {
        Self { created: Some(created), ..self }
    }
}

/// Many objects like one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fill {
    /// How many.
    pub count: u32,
    /// What they are like; `{n}` in a metadata value is the object's number, from 0.
    #[serde(default)]
    pub like: Seed,
    /// When the first was created, in Unix seconds; none spreads them so that the last is now.
    #[serde(default)]
    pub first_created: Option<i64>,
    /// Milliseconds between two of them.
    #[serde(default = "a_second")]
    pub every_ms: u32,
}

fn a_second() -> u32 {
    1000
}

impl Fill {
    /// The objects, as seen at this second.
    pub fn seeds(&self, now: i64) -> impl Iterator<Item = Seed> {
        let every = i64::from(self.every_ms);
        let spread = i64::from(self.count).saturating_mul(every) / 1000;
        let first = self.first_created.unwrap_or(now.saturating_sub(spread));
        (0..self.count).map(move |n| {
            let mut seed = self.like.clone();
            for value in seed.metadata.values_mut() {
                if value.contains("{n}") {
                    *value = value.replace("{n}", &n.to_string());
                }
            }
            seed.created = Some(first.saturating_add(i64::from(n).saturating_mul(every) / 1000));
            seed
        })
    }
}

/// Says why a seed cannot be planted, if so. `planned` holds the ids of its batch so far.
pub(super) fn check(
    books: Option<&Books>,
    seed: &Seed,
    planned: &mut HashSet<String>,
) -> Result<(), String> {
    let fits = match seed.kind {
        SeedKind::Intent => true,
        SeedKind::Charge => !matches!(
            seed.situation,
            Situation::RequiresAction
                | Situation::RequiresConfirmation
                | Situation::RequiresPaymentMethod
        ),
        SeedKind::Refund => refund_status(seed.situation).is_some(),
    };
    if !fits {
        return Err(format!("a {:?} cannot stand at {:?}", seed.kind, seed.situation));
    }
    let makes_charge = !matches!(
        seed.situation,
        Situation::RequiresAction
            | Situation::RequiresConfirmation
            | Situation::RequiresPaymentMethod
            | Situation::Canceled
    );
    if seed.charge_id.is_some() && !(seed.kind == SeedKind::Intent && makes_charge) {
        return Err("it makes no charge that could have the charge_id".to_owned());
    }
    if seed.amount < 0 || seed.moved_amount.is_some_and(|moved| moved < 0) {
        return Err("an amount is below zero".to_owned());
    }
    for id in [&seed.id, &seed.charge_id].into_iter().flatten() {
        let there = books.is_some_and(|books| {
            books.intents.has(id) || books.charges.has(id) || books.refunds.has(id)
        });
        if there || !planned.insert(id.clone()) {
            return Err(format!("the id {id:?} is there already"));
        }
    }
    Ok(())
}

/// Puts one checked seed into the books and gives its id.
pub(super) fn plant(books: &mut Books, seed: Seed, now: i64, mint: &mut Mint) -> String {
    let created = seed.created.unwrap_or(now);
    // An object of the past was indexed long ago.
    let at = Moment { created, landed_ms: created.saturating_mul(1000) };
    let id = seed.id.clone();
    match seed.kind {
        SeedKind::Intent => {
            let id = id.unwrap_or_else(|| mint.object_id("pi"));
            plant_intent(books, seed, id, at, mint)
        }
        SeedKind::Charge => {
            let id = id.unwrap_or_else(|| mint.object_id("ch"));
            plant_charge(books, seed, id, at, mint)
        }
        SeedKind::Refund => {
            let id = id.unwrap_or_else(|| mint.object_id("re"));
            plant_refund(books, seed, id, at)
        }
    }
}

fn plant_intent(books: &mut Books, seed: Seed, id: String, at: Moment, mint: &mut Mint) -> String {
    let step = step_of(&seed);
    let charge_id = seed.charge_id.clone();
    let overlay = (!seed.overlay.is_empty()).then(|| Box::new(seed.overlay.clone()));
    let intent = Intent {
        head: head_of(seed, id.clone(), "requires_payment_method", at),
        payment_method: (step.to != Situation::RequiresPaymentMethod)
            .then(|| "pm_card_visa".to_owned()),
        ..Intent::default()
    };
    books.intents.put(intent);
    books.move_intent(&id, &step, at, mint);
    if let Some(charge_id) = charge_id {
        rename_charge(books, &id, charge_id);
    }
    if let Some(intent) = books.intents.get_mut(&id) {
        intent.head.overlay = overlay;
    }
    id
}

fn plant_charge(books: &mut Books, seed: Seed, id: String, at: Moment, mint: &mut Mint) -> String {
    let step = step_of(&seed);
    let intent = seed.payment_intent.clone();
    let overlay = (!seed.overlay.is_empty()).then(|| Box::new(seed.overlay.clone()));
    let charge = Charge {
        head: head_of(seed, id.clone(), "pending", at),
        intent: intent.clone(),
        payment_method: Some("card_visa".to_owned()),
        method_type: Word::from("card"),
        ..Charge::default()
    };
    books.charges.put(charge);
    if let Some(intent) = intent.as_deref().and_then(|id| books.intents.get_mut(id)) {
        intent.charges.push(id.clone());
    }
    books.move_charge(&id, &step, at, mint);
    if let Some(charge) = books.charges.get_mut(&id) {
        charge.head.overlay = overlay;
    }
    id
}

fn plant_refund(books: &mut Books, seed: Seed, id: String, at: Moment) -> String {
    let status = refund_status(seed.situation).unwrap_or("succeeded");
    let overlay = (!seed.overlay.is_empty()).then(|| Box::new(seed.overlay.clone()));
    let charge = seed.charge.clone();
    let mut intent = seed.payment_intent.clone();
    let failed = status == "failed";
    let failure_reason = failed.then(|| seed.decline_code.clone()).flatten();
    let mut head = head_of(seed, id.clone(), status, at);
    head.overlay = overlay;
    if let Some(kept) = charge.as_deref().and_then(|id| books.charges.get_mut(id)) {
        kept.refunds.push(id.clone());
        if matches!(status, "succeeded" | "pending") {
            kept.amount_refunded += head.amount;
            kept.refunded = kept.amount_refunded >= kept.head.amount;
        }
        intent = intent.or_else(|| kept.intent.clone());
    }
    books.refunds.put(Refund { head, charge, intent, reason: None, failure_reason });
    id
}

/// Gives an intent's charge the id that the seed asked for.
fn rename_charge(books: &mut Books, intent: &str, wanted: String) {
    let Some(intent) = books.intents.get_mut(intent) else { return };
    let Some(made) = intent.charges.last_mut() else { return };
    let Some(mut charge) = books.charges.take(made) else { return };
    if let Some(failure) = &mut intent.failure {
        failure.charge = Some(wanted.clone());
    }
    for id in &charge.refunds {
        if let Some(refund) = books.refunds.get_mut(id) {
            refund.charge = Some(wanted.clone());
        }
    }
    if let Some(dispute) = charge.dispute.as_deref().and_then(|id| books.disputes.get_mut(id)) {
        dispute.charge.clone_from(&wanted);
    }
    made.clone_from(&wanted);
    charge.head.id = wanted;
    books.charges.put(charge);
}

fn refund_status(situation: Situation) -> Option<&'static str> {
    match situation {
        Situation::Succeeded => Some("succeeded"),
        Situation::Processing => Some("pending"),
        Situation::RequiresAction => Some("requires_action"),
        Situation::Declined => Some("failed"),
        Situation::Canceled => Some("canceled"),
        Situation::RequiresCapture
        | Situation::RequiresConfirmation
        | Situation::RequiresPaymentMethod
        | Situation::Refunded
        | Situation::Disputed
        | Situation::DisputeLost
        | Situation::DisputeWon => None,
    }
}

fn step_of(seed: &Seed) -> Move {
    let by_code = seed.decline_code.as_deref().map(|code| decline_by(code, advice_for(code)));
    Move {
        to: seed.situation,
        amount: seed.moved_amount,
        decline: seed.decline.clone().or(by_code),
        reason: seed.cancellation_reason.clone(),
    }
}

fn head_of(seed: Seed, id: String, status: &'static str, at: Moment) -> Head {
    Head {
        id,
        created: at.created,
        landed_ms: at.landed_ms,
        amount: seed.amount,
        currency: seed.currency,
        customer: seed.customer,
        description: seed.description,
        metadata: Metadata::of(seed.metadata),
        status: Word::from(status),
        livemode: seed.livemode.unwrap_or(seed.live),
        overlay: None,
    }
}
