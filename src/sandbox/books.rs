//! The objects of one account, and how a payment moves from one situation to the next.
//!
//! The API and the seed share these moves, so that a seeded payment is made of the same parts as
//! one that went through the API: an intent, its charges, their refunds and disputes. A move never
//! asks what a client may do; that is the API's business.

use super::mint::Mint;
use super::objects::{Charge, Dispute, Failure, Head, Intent, Metadata, Record, Refund, Word};
use super::shelf::{Cursor, Shelf, Span};
use super::situations::{Decline, Moment, Move, Situation};

/// A payment as it once stood.
#[derive(Debug)]
pub(super) struct Snapshot {
    intent: Option<Intent>,
    charges: Vec<Charge>,
}

/// The objects of one account, test and live apart.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub(super) intents: Shelf<Intent>,
    pub(super) charges: Shelf<Charge>,
    pub(super) refunds: Shelf<Refund>,
    pub(super) disputes: Shelf<Dispute>,
}

impl Books {
    pub(super) fn len(&self) -> usize {
        self.intents.len() + self.charges.len() + self.refunds.len() + self.disputes.len()
    }

    /// Takes an object away with all that hangs on it, as if it had never been.
    pub(super) fn forget(&mut self, id: &str) {
        if let Some(intent) = self.intents.take(id) {
            intent.charges.iter().for_each(|charge| self.forget(charge));
        }
        if let Some(charge) = self.charges.take(id) {
            charge.refunds.iter().for_each(|refund| self.forget(refund));
            if let Some(dispute) = &charge.dispute {
                self.disputes.take(dispute);
            }
        }
        if let Some(refund) = self.refunds.take(id)
            && let Some(charge) = refund.charge.as_deref().and_then(|id| self.charges.get_mut(id))
        {
            charge.refunds.retain(|kept| kept != id);
            charge.amount_refunded -= refund.head.amount;
            charge.refunded = charge.amount_refunded >= charge.head.amount;
        }
    }

    /// A payment as it stands, to be put back by `restore`.
    pub(super) fn snapshot(&self, id: &str) -> Option<Snapshot> {
        let intent = self.intents.get(id).cloned();
        let ids = match (&intent, self.charges.get(id)) {
            (Some(intent), _) => intent.charges.clone(),
            (None, Some(charge)) => vec![charge.head.id.clone()],
            (None, None) => return None,
        };
        let charges = ids.iter().filter_map(|id| self.charges.get(id).cloned()).collect();
        Some(Snapshot { intent, charges })
    }

    /// Puts a payment back as it stood; what came of it since is gone.
    pub(super) fn restore(&mut self, before: Snapshot) {
        if let Some(intent) = before.intent {
            let now = self.intents.get(&intent.head.id).map(|now| now.charges.clone());
            for id in now.unwrap_or_default() {
                if !intent.charges.contains(&id) {
                    self.forget(&id);
                }
            }
            if let Some(kept) = self.intents.get_mut(&intent.head.id.clone()) {
                *kept = intent;
            }
        }
        for charge in before.charges {
            if let Some(kept) = self.charges.get_mut(&charge.head.id.clone()) {
                *kept = charge;
            }
        }
    }

    /// The object of the same kind that a list shows after this one.
    pub(super) fn older_than(&self, id: &str) -> Option<String> {
        next_in(&self.intents, id)
            .or_else(|| next_in(&self.charges, id))
            .or_else(|| next_in(&self.refunds, id))
    }

    /// Moves an intent. An unknown id changes nothing.
    pub(super) fn move_intent(&mut self, id: &str, step: &Move, at: Moment, mint: &mut Mint) {
        let Some(mut intent) = self.intents.get(id).cloned() else { return };
        match step.to {
            Situation::Succeeded => self.succeed(&mut intent, step.amount, at, mint),
            Situation::Processing => {
                self.charge_for(&mut intent, Situation::Processing, step, at, mint);
                intent.head.status = Word::from("processing");
                intent.method_type = Word::from("us_bank_account");
            }
            Situation::RequiresCapture => {
                self.charge_for(&mut intent, Situation::RequiresCapture, step, at, mint);
                intent.head.status = Word::from("requires_capture");
                intent.amount_capturable = intent.head.amount;
                intent.manual_capture = true;
                intent.failure = None;
            }
            Situation::Declined => self.decline(&mut intent, step, at, mint),
            Situation::RequiresAction => intent.head.status = Word::from("requires_action"),
            Situation::RequiresConfirmation => {
                intent.head.status = Word::from("requires_confirmation");
            }
            Situation::RequiresPaymentMethod => {
                intent.head.status = Word::from("requires_payment_method");
                intent.payment_method = None;
                intent.failure = None;
            }
            Situation::Canceled => self.cancel(&mut intent, step, at, mint),
            Situation::Refunded
            | Situation::Disputed
            | Situation::DisputeLost
            | Situation::DisputeWon => {
                if intent.amount_received == 0 {
                    self.succeed(&mut intent, None, at, mint);
                }
                if let Some(charge) = intent.charges.last().cloned() {
                    self.move_charge(&charge, step, at, mint);
                }
            }
        }
        if let Some(kept) = self.intents.get_mut(id) {
            *kept = intent;
        }
    }

    /// Moves a charge. An unknown id, or a situation that only an intent has, changes nothing.
    pub(super) fn move_charge(&mut self, id: &str, step: &Move, at: Moment, mint: &mut Mint) {
        let Some(mut charge) = self.charges.get(id).cloned() else { return };
        match step.to {
            Situation::Succeeded => capture(&mut charge, step.amount),
            Situation::RequiresCapture => charge.head.status = Word::from("succeeded"),
            Situation::Processing => charge.head.status = Word::from("pending"),
            Situation::Declined => {
                charge.head.status = Word::from("failed");
                charge.captured = false;
                charge.amount_captured = 0;
                charge.failure = Some(failure(step.decline.as_ref(), &charge));
            }
            Situation::Canceled if !charge.captured => {
                charge.amount_refunded = charge.head.amount;
                charge.refunded = true;
            }
            Situation::Refunded => {
                capture(&mut charge, None);
                let left = charge.head.amount - charge.amount_refunded;
                let amount = step.amount.unwrap_or(left);
                let refund = self.refund(&mut charge, amount, at, mint);
                self.refunds.put(refund);
            }
            Situation::Disputed | Situation::DisputeLost | Situation::DisputeWon => {
                capture(&mut charge, None);
                self.dispute(&mut charge, step.to, at, mint);
            }
            Situation::Canceled
            | Situation::RequiresAction
            | Situation::RequiresConfirmation
            | Situation::RequiresPaymentMethod => return,
        }
        if let Some(kept) = self.charges.get_mut(id) {
            *kept = charge;
        }
    }

    /// Makes a refund of a charge and counts it there; the caller puts it on the shelf.
    pub(super) fn refund(
        &self,
        charge: &mut Charge,
        amount: i64,
        at: Moment,
        mint: &mut Mint,
    ) -> Refund {
        let head = Head {
            amount,
            metadata: Metadata::default(),
            description: None,
            overlay: None,
            ..head_like(&charge.head, mint.object_id("re"), "succeeded", at)
        };
        charge.amount_refunded += amount;
        charge.refunded = charge.amount_refunded >= charge.head.amount;
        charge.refunds.push(head.id.clone());
        Refund {
            head,
            charge: Some(charge.head.id.clone()),
            intent: charge.intent.clone(),
            ..Refund::default()
        }
    }

    fn succeed(&mut self, intent: &mut Intent, amount: Option<i64>, at: Moment, mint: &mut Mint) {
        let step = Move { to: Situation::Succeeded, amount, ..Move::default() };
        self.charge_for(intent, Situation::Succeeded, &step, at, mint);
        intent.head.status = Word::from("succeeded");
        intent.amount_received = amount.unwrap_or(intent.head.amount);
        intent.amount_capturable = 0;
        intent.failure = None;
    }

    fn decline(&mut self, intent: &mut Intent, step: &Move, at: Moment, mint: &mut Mint) {
        let charge = self.charge_for(intent, Situation::Declined, step, at, mint);
        let mut failure =
            self.charges.get(&charge).and_then(|charge| charge.failure.clone()).unwrap_or_default();
        failure.charge = Some(charge);
        intent.failure = Some(failure);
        intent.head.status = Word::from("requires_payment_method");
        intent.payment_method = None;
    }

    fn cancel(&mut self, intent: &mut Intent, step: &Move, at: Moment, mint: &mut Mint) {
        if let Some(charge) = intent.charges.last().cloned()
            && intent.head.status == "requires_capture"
        {
            self.move_charge(&charge, &Move::to(Situation::Canceled), at, mint);
        }
        intent.head.status = Word::from("canceled");
        intent.amount_capturable = 0;
        intent.canceled_at = Some(at.created);
        intent.cancellation_reason.clone_from(&step.reason);
    }

    /// Moves the intent's open charge, or makes a new one, and gives its id.
    fn charge_for(
        &mut self,
        intent: &mut Intent,
        to: Situation,
        step: &Move,
        at: Moment,
        mint: &mut Mint,
    ) -> String {
        let open = intent.charges.last().filter(|id| {
            self.charges.get(id).is_some_and(|charge| {
                !charge.captured && !charge.refunded && charge.head.status != "failed"
            })
        });
        let id = match open {
            Some(id) => id.clone(),
            None => {
                let id = mint.object_id("ch");
                let charge = Charge {
                    head: Head {
                        metadata: intent.head.metadata.clone(),
                        description: intent.head.description.clone(),
                        overlay: None,
                        ..head_like(&intent.head, id.clone(), "pending", at)
                    },
                    intent: Some(intent.head.id.clone()),
                    payment_method: intent.payment_method.clone(),
                    method_type: method_type(to, &intent.method_type),
                    ..Charge::default()
                };
                self.charges.put(charge);
                intent.charges.push(id.clone());
                id
            }
        };
        let step = Move { to, ..step.clone() };
        self.move_charge(&id, &step, at, mint);
        id
    }

    fn dispute(&mut self, charge: &mut Charge, to: Situation, at: Moment, mint: &mut Mint) {
        let status = match to {
            Situation::DisputeLost => "lost",
            Situation::DisputeWon => "won",
            _ => "needs_response",
        };
        let open = charge.dispute.as_deref().and_then(|id| self.disputes.get_mut(id));
        if let Some(dispute) = open {
            dispute.head.status = Word::from(status);
            return;
        }
        let head = Head {
            metadata: Metadata::default(),
            description: None,
            overlay: None,
            ..head_like(&charge.head, mint.object_id("dp"), status, at)
        };
        charge.dispute = Some(head.id.clone());
        self.disputes.put(Dispute {
            head,
            charge: charge.head.id.clone(),
            intent: charge.intent.clone(),
            reason: Word::from("fraudulent"),
        });
    }
}

fn next_in<T: Record>(shelf: &Shelf<T>, id: &str) -> Option<String> {
    let spot = shelf.spot(id)?;
    let page = shelf.page(Span::ALL, Cursor::OlderThan(spot), 1, |_| true);
    page.items.first().map(|object| object.id().to_owned())
}

fn capture(charge: &mut Charge, amount: Option<i64>) {
    charge.head.status = Word::from("succeeded");
    if charge.captured {
        return;
    }
    let captured = amount.unwrap_or(charge.head.amount);
    charge.captured = true;
    charge.amount_captured = captured;
    // What is not captured of an authorisation is given back at once.
    charge.amount_refunded = charge.head.amount - captured;
    charge.failure = None;
}

fn failure(decline: Option<&Decline>, charge: &Charge) -> Failure {
    let decline = decline.cloned().unwrap_or_else(|| Decline {
        code: "card_declined".to_owned(),
        decline_code: Some("generic_decline".to_owned()),
        advice_code: Some("try_again_later".to_owned()),
    });
    Failure {
        message: format!("The payment was declined ({}).", decline.code),
        code: decline.code,
        decline_code: decline.decline_code,
        advice_code: decline.advice_code,
        charge: Some(charge.head.id.clone()),
        payment_method: charge.payment_method.clone(),
    }
}

fn head_like(head: &Head, id: String, status: &'static str, at: Moment) -> Head {
    Head {
        id,
        created: at.created,
        landed_ms: at.landed_ms,
        status: Word::from(status),
        ..head.clone()
    }
}

fn method_type(to: Situation, known: &Word) -> Word {
    match to {
        Situation::Processing => Word::from("us_bank_account"),
        _ if known.is_empty() => Word::from("card"),
        _ => known.clone(),
    }
}
