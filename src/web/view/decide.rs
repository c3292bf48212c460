//! The forms by which people decide: what is proposed, who approves it, owner and comment.

use crate::store::people::{CaseLinks, Proposal, ProposalState, SAID_MAX, What};
use crate::store::records::CaseRow;
use crate::web::act::{Act, may_be, seen_of};
use crate::web::html::{El, Html, el, of_class};
use crate::web::link::Link;
use crate::web::page::{NOTHING, card, form, hidden, id, small, time};
use crate::web::sessions::Person;

/// What a kick does.
pub const KICKED: &str = "The PSP is asked again, and today's rules decide, as in a run. What is \
    still a person's goes back into its case.";

/// An object that a decision can name: its id, and what it is in words.
pub type Named = (String, String);

/// What the forms of one case need.
#[derive(Debug)]
pub struct Deciding<'a> {
    /// Who looks at it.
    pub person: &'a Person,
    /// The case.
    pub case: &'a CaseRow,
    /// Its proposals, oldest first.
    pub proposals: &'a [Proposal],
    /// The objects that its evidence shows.
    pub objects: &'a [Named],
    /// The case that it is a part of, and its parts.
    pub links: &'a CaseLinks,
    /// This page asks the PSP itself.
    pub can_kick: bool,
    /// Its amount needs a second person.
    pub needs_two: bool,
    /// Why one person is not enough for some ends, whatever its amount.
    pub alone_too_few: Option<String>,
    /// What the open undo, or one by a success, leaves in the row.
    pub keeps: Option<String>,
    /// What carries out what was approved, in words.
    pub carried_by: &'static str,
    /// What stood against carrying it out, where that was tried in vain.
    pub waits_for: Option<String>,
}

impl Deciding<'_> {
    /// The cards beside the evidence.
    pub fn cards(&self) -> Html {
        let open = self.of_state(ProposalState::Open);
        let approved = self.of_state(ProposalState::Approved);
        let decision: Html = match (open, approved) {
            (Some(proposal), _) => self.open(proposal).into(),
            (None, Some(proposal)) => self.approved(proposal).into(),
            (None, None) if self.case.open => self.propose(Act::Propose).into(),
            (None, None) => self.undo().into(),
        };
        let assign = self.case.open.then(|| self.assign());
        decision.with(self.kick()).with(self.comment()).with(assign).with(self.one_cause())
    }

    fn of_state(&self, state: ProposalState) -> Option<&Proposal> {
        self.proposals.iter().find(|proposal| proposal.state == state)
    }

    fn form(&self, act: Act, open: Option<&Proposal>) -> El {
        form(self.person, &Link::to("/cases/act"))
            .at("class", "stack")
            .then(hidden("act", act.word()))
            .then(hidden("seen", &seen_of(self.case, open)))
    }

    /// A proposal that waits: whoever may approve it is shown the button, and nobody else.
    fn open(&self, proposal: &Proposal) -> El {
        let keeps = self.keeps.as_ref();
        let card = card("Proposed")
            .at("id", "proposed")
            .then(said(proposal))
            .then(keeps.map(|keeps| small(format!("The status would be written; {keeps}."))));
        let is_own = proposal.proposed_by == self.person.name;
        let approve = self
            .form(Act::Approve, Some(proposal))
            .then(why_field("why-approve", Act::Approve))
            .then(of_class("button", "main").then("Approve what is shown"))
            .then(small(match self.case.subject_kind.as_str() {
                "row" => format!(
                    "The PSP is asked again first. Where it says something else by then, nothing \
                     is done, and the case says so. {}",
                    self.carried_by
                ),
                _no_row => self.carried_by.to_owned(),
            }));
        let turn_down = if is_own { "Take it back" } else { "Reject" };
        let reject = el("details").then(el("summary").then(turn_down)).then(
            self.form(Act::Reject, Some(proposal))
                .then(why_field("why-reject", Act::Reject))
                .then(el("div").then(of_class("button", "low").then(turn_down))),
        );
        let is_stale = proposal.is_stale(self.case.evidence_sha256.as_ref());
        let kept = match (is_stale, is_own && proposal.four_eyes) {
            (true, _) => Some(
                "It was proposed of other evidence than the case shows now: turn it down, and \
                 propose anew.",
            ),
            (false, true) => Some("You proposed it. It needs a second person, who approves it."),
            (false, false) => None,
        };
        if let Some(words) = kept {
            let words = of_class("p", "note warn").then(words);
            return card.then(words).then(of_class("div", "acts").then(reject));
        }
        card.then(of_class("div", "acts stack").then(approve).then(reject))
    }

    fn approved(&self, proposal: &Proposal) -> El {
        let by = proposal.approved_by.as_deref().unwrap_or(NOTHING);
        let card = card("Approved").then(said(proposal));
        if let Some(why) = &self.waits_for {
            let words = format!(
                "{by} approved it. It was tried, and waits: {why}. It stands; the next run \
                 carries it out."
            );
            return card.then(of_class("p", "note warn").then(words));
        }
        let words = format!("{by} approved it. {}", self.carried_by);
        card.then(of_class("p", "note good").then(words))
    }

    fn propose(&self, act: Act) -> El {
        let heading = if act == Act::Undo { "Undo the decision" } else { "Propose a decision" };
        let about_row = may_be(self.case, What::Failed).is_ok();
        if may_be(self.case, What::Left).is_err() {
            let words = "It is about an account, and ends by itself with its cause.";
            return card("No person decides this").then(small(words));
        }
        let mut form = self.form(act, None).then(outcomes(about_row, act == Act::Undo));
        if about_row {
            form = form.then(object_field(self.objects));
        }
        let keeps = self.keeps.as_ref().filter(|_| act == Act::Undo && about_row);
        let eyes = match (self.needs_two, &self.alone_too_few) {
            (true, _) => "This amount needs two people: somebody else approves it.".to_owned(),
            (false, Some(why)) => format!(
                "Charging it again, or ending it as failed, needs two people whatever its amount: \
                 {why}."
            ),
            (false, None) => {
                "One person is enough for this amount; it is approved in a second step.".to_owned()
            }
        };
        let form = form
            .then(why_field("why", act))
            .then(of_class("button", "main").then("Propose"))
            .then(small(eyes))
            .then(keeps.map(|keeps| small(format!("Of \u{201c}It succeeded\u{201d}: {keeps}."))));
        of_class("section", "card acts").then(el("h2").then(heading)).then(form)
    }

    /// A person's decision that was carried out can be taken back by another one.
    fn undo(&self) -> Option<El> {
        let decided = self.proposals.iter().any(|proposal| {
            proposal.state == ProposalState::CarriedOut && proposal.what != What::Left
        });
        decided.then(|| self.propose(Act::Undo))
    }

    /// What a run would do with it now: no person's decision, and no second person.
    fn kick(&self) -> Option<El> {
        if !self.can_kick || !self.case.open || self.case.subject_kind != "row" {
            return None;
        }
        let is_proposed = self.of_state(ProposalState::Open).is_some();
        let anew = is_proposed
            .then(|| small("Where that changes the case, a proposal has to be made anew."));
        let form = self
            .form(Act::Kick, None)
            .then(why_field("why-kick", Act::Kick))
            .then(el("div").then(of_class("button", "low").then("Kick")))
            .then(small(KICKED))
            .then(anew);
        let heading = el("h2").then("Decide again");
        Some(of_class("section", "card acts").at("id", "kick").then(heading).then(form))
    }

    /// A case becomes a part of another one, or none any more. What has parts is no part.
    fn one_cause(&self) -> Option<El> {
        if !self.case.open || (self.links.part_of.is_none() && !self.links.parts.is_empty()) {
            return None;
        }
        let (act, heading, button) = match self.links.part_of {
            Some(lead) => (Act::Split, format!("Part of C-{lead}"), "Take it out"),
            None => (Act::Merge, "One cause with another case".to_owned(), "Make it a part"),
        };
        let into = (act == Act::Merge).then(into_field);
        let form = self
            .form(act, None)
            .then(into)
            .then(why_field("why-merge", act))
            .then(el("div").then(of_class("button", "low").then(button)));
        let folded = el("details").then(el("summary").then(heading)).then(form);
        Some(of_class("section", "card acts").then(folded))
    }

    fn comment(&self) -> El {
        let form = self
            .form(Act::Comment, None)
            .then(why_field("comment", Act::Comment))
            .then(el("div").then(of_class("button", "low").then("Add comment")));
        of_class("section", "card acts").then(el("h2").then("Comment")).then(form)
    }

    fn assign(&self) -> El {
        let form = self
            .form(Act::Assign, None)
            .then(owner_field(self.case.owner.as_deref()))
            .then(el("div").then(of_class("button", "low").then("Assign")));
        of_class("section", "card acts").then(el("h2").then("Owner")).then(form)
    }
}

/// `succeeded with pi_1 by mara: confirmed`.
fn said(proposal: &Proposal) -> Html {
    let undoes = if proposal.undoes { "in the place of the earlier decision: " } else { "" };
    let object =
        proposal.psp_reference.as_ref().map(|object| Html::from(" with ").with(id(object)));
    let line = el("p")
        .then(undoes)
        .then(el("strong").then(proposal.what.as_str()))
        .then(object)
        .then(" by ")
        .then(el("strong").then(&proposal.proposed_by))
        .then(": ")
        .then(&proposal.why);
    let eyes = if proposal.four_eyes { " · needs a second person" } else { "" };
    let when = of_class("p", "small soft").then(time(proposal.proposed_at)).then(eyes);
    Html::from(line).with(when)
}

/// The same on one line of a list.
pub fn proposed_words(proposal: &Proposal) -> String {
    let object = proposal.psp_reference.as_deref().map(|object| format!(" with {object}"));
    format!(
        "{}{} by {}: {}",
        proposal.what.as_str(),
        object.unwrap_or_default(),
        proposal.proposed_by,
        proposal.why
    )
}

/// What became of it, to choose from.
pub fn outcomes(about_row: bool, undoes: bool) -> El {
    let words = |what: What| match what {
        What::Succeeded => {
            ("It succeeded", "needs an object that captured exactly the row's amount")
        }
        What::Retryable => {
            ("Charge again", "refused while any object under the tag is captured, or still can be")
        }
        What::Failed => ("It failed for good", "the row ends as failed"),
        What::Left => ("Leave it as it is", "the case closes, and nothing is written"),
    };
    let mut set = el("fieldset").then(el("legend").then("What became of it"));
    let is_fit = |what: &What| {
        (about_row || *what == What::Left) && !(undoes && what.unfit_to_undo().is_some())
    };
    for what in What::ALL.into_iter().filter(is_fit) {
        let (name, meaning) = words(what);
        let input = el("input")
            .at("type", "radio")
            .at("name", "as")
            .at("value", what.as_str())
            .flag("required", true);
        let label = of_class("label", "choice")
            .then(input)
            .then(name)
            .then(of_class("span", "small").then(meaning));
        set = set.then(label);
    }
    set
}

/// The object that a decision names: one of those that were found, or another one.
pub fn object_field(objects: &[Named]) -> Html {
    let mut select = el("select").at("id", "object").at("name", "object");
    select = select.then(el("option").at("value", "").then("none"));
    for (object, words) in objects {
        select = select.then(el("option").at("value", object).then(words));
    }
    let found = (!objects.is_empty()).then(|| {
        el("div").then(el("label").at("for", "object").then("Object at the PSP")).then(select)
    });
    let input = el("input")
        .at("id", "other_object")
        .at("name", "other_object")
        .at("maxlength", "255")
        .at("autocomplete", "off");
    let label =
        if objects.is_empty() { "Object at the PSP, by its id" } else { "Another, by its id" };
    let other = el("div").then(el("label").at("for", "other_object").then(label)).then(input);
    Html::from(found).with(other)
}

/// Why: it stands in the records for good.
pub fn why_field(id: &'static str, act: Act) -> El {
    let label = match act {
        Act::Comment => "What is to be known",
        Act::Merge => "What they have in common (kept in the records)",
        Act::Assign
        | Act::Propose
        | Act::Undo
        | Act::Approve
        | Act::Reject
        | Act::Kick
        | Act::Split => "Why (kept in the records)",
    };
    let area = el("textarea")
        .at("id", id)
        .at("name", "why")
        .at("maxlength", SAID_MAX)
        .at("rows", 2)
        .flag("required", true);
    el("div").then(el("label").at("for", id).then(label)).then(area)
}

/// The case that others become parts of.
pub fn into_field() -> El {
    let input = el("input")
        .at("id", "into")
        .at("name", "into")
        .at("maxlength", "20")
        .at("placeholder", "C-1043")
        .at("autocomplete", "off")
        .flag("required", true);
    let label = el("label").at("for", "into").then("Becomes a part of case");
    el("div").then(label).then(input)
}

/// Who has it.
pub fn owner_field(owner: Option<&str>) -> Html {
    let input = el("input")
        .at("id", "owner")
        .at("name", "owner")
        .at("maxlength", "100")
        .at("autocomplete", "off")
        .at("value", owner.unwrap_or_default());
    let label = el("label").at("for", "owner").then("Name; empty for nobody");
    Html::from(el("div").then(label).then(input))
}
