//! What people do with cases, by the same verbs of the store as the command line.
//!
//! A form names each case with what it showed: its evidence and its proposal. Where either is
//! another one by now, nothing is done. Who needs a second person, and that a maker is no checker,
//! is held by the store; here it is only told in better words.

use std::collections::HashMap;
use std::rc::Rc;

use axum::http::StatusCode;
use axum::response::Response;

use crate::model::count::counted;
use crate::model::time::Instant;
use crate::run::kick::{Kick, Which, choose};
use crate::run::people::{second_needed, second_needed_for, undone_in_vain};
use crate::store::driver::{CaseFilter, Driver};
use crate::store::people::{
    NewProposal, PeopleDriver, Proposal, ProposalState, SAID_MAX, What, one_line,
};
use crate::store::records::CaseRow;
use crate::web::carrier::Errand;
use crate::web::error::Refused;
use crate::web::form::Fields;
use crate::web::link::Link;
use crate::web::page::on_to;
use crate::web::routes::number_of;
use crate::web::sessions::Person;
use crate::web::site::Site;

/// Cases at once.
pub const MOST: usize = 1_000;

/// The longest name of an owner, in characters.
const OWNER_MAX: usize = 100;

/// The longest reference of an object.
const OBJECT_MAX: usize = 255;

/// What stands where a case has no evidence, or no proposal.
const NONE: &str = "-";

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// A sentence is added to the history.
    Comment,
    /// Somebody has the case from now on, or nobody.
    Assign,
    /// A decision is proposed.
    Propose,
    /// A decision is proposed in the place of one that was carried out.
    Undo,
    /// What is proposed is approved.
    Approve,
    /// What is proposed is turned down, or taken back.
    Reject,
    /// Open cases are decided again, by today's rules and by what the PSP says now.
    Kick,
    /// Cases of one cause become parts of one case.
    Merge,
    /// A part is none any more.
    Split,
}

impl Act {
    /// All.
    pub const ALL: [Self; 9] = [
        Self::Comment,
        Self::Assign,
        Self::Propose,
        Self::Undo,
        Self::Approve,
        Self::Reject,
        Self::Kick,
        Self::Merge,
        Self::Split,
    ];

    /// Those that are done to many cases at once.
    pub const IN_BULK: [Self; 7] = [
        Self::Comment,
        Self::Assign,
        Self::Propose,
        Self::Approve,
        Self::Reject,
        Self::Kick,
        Self::Merge,
    ];

    /// Its word in forms.
    pub fn word(self) -> &'static str {
        match self {
            Self::Comment => "comment",
            Self::Assign => "assign",
            Self::Propose => "propose",
            Self::Undo => "undo",
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::Kick => "kick",
            Self::Merge => "merge",
            Self::Split => "split",
        }
    }

    /// What is said once it is done.
    pub fn done(self) -> &'static str {
        match self {
            Self::Comment => "The comment stands in the history.",
            Self::Assign => "The owner is noted.",
            Self::Propose | Self::Undo => "It is proposed. Nothing is done before it is approved.",
            Self::Approve => {
                "It is approved. The PSP is asked again; then it is carried out, or the case says \
                 what stood against it."
            }
            Self::Reject => "The proposal ended. Nothing was done.",
            Self::Kick => {
                "It is kicked: the PSP is asked again, and today's rules decide within moments. \
                 The history says what comes of it."
            }
            Self::Merge => "What was chosen is part of one case now.",
            Self::Split => "It is no part of another case any more.",
        }
    }

    /// The same of several cases, behind how many they are.
    pub fn done_to_many(self) -> &'static str {
        match self {
            Self::Comment => "the comment stands in each history.",
            Self::Assign => "the owner is noted.",
            Self::Propose | Self::Undo => "proposed. Nothing is done before it is approved.",
            Self::Approve => {
                "approved. The PSP is asked again; then each is carried out, or the case says what \
                 stood against it."
            }
            Self::Reject => "the proposal ended. Nothing was done.",
            Self::Kick => {
                "kicked. The PSP is asked again, and today's rules decide within moments. Each \
                 history says what comes of it."
            }
            Self::Merge => "part of one case now.",
            Self::Split => "part of no other case any more.",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|act| act.word() == text)
    }
}

/// A case as a form showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    case: i64,
    evidence: Option<String>,
    proposal: Option<i64>,
}

/// What a form keeps of a case: `1043.4f0c….7`.
pub fn seen_of(case: &CaseRow, proposal: Option<&Proposal>) -> String {
    let evidence = case.evidence_sha256.as_deref().unwrap_or(NONE);
    let proposal = proposal.map_or_else(|| NONE.to_owned(), |one| one.number.to_string());
    format!("{}.{evidence}.{proposal}", case.number)
}

impl Seen {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let case = parts.next()?.parse().ok()?;
        let evidence = parts.next().filter(|part| *part != NONE).map(str::to_owned);
        let proposal = match parts.next()? {
            NONE => None,
            number => Some(number.parse().ok()?),
        };
        parts.next().is_none().then_some(Self { case, evidence, proposal })
    }
}

/// Everything that an action needs.
struct Acting<'a> {
    person: &'a Person,
    fields: &'a Fields,
    seen: Vec<Seen>,
    cases: Vec<CaseRow>,
    proposals: Vec<Proposal>,
    now: Instant,
}

/// Does what a form says.
pub async fn act(site: &Rc<Site>, person: &Person, fields: &Fields) -> Result<Response, Refused> {
    let act = fields.text("act").and_then(Act::parse);
    let act = act.ok_or_else(|| Refused::words("The form does not say what to do"))?;
    let mut acting = Acting::read(person, fields).await?;
    let done = match act {
        Act::Comment => acting.comment().await?,
        Act::Assign => acting.assign().await?,
        Act::Propose => acting.propose(site, false).await?,
        Act::Undo => acting.propose(site, true).await?,
        Act::Approve => acting.approve(site).await?,
        Act::Reject => acting.reject().await?,
        Act::Kick => Box::pin(acting.kick(site)).await?,
        Act::Merge => acting.merge().await?,
        Act::Split => acting.put_together(None).await?,
    };
    let asked = acting.cases.len();
    if done < asked {
        let text = format!("{}: {}", act.word(), left_words(done, asked));
        let hint = "look at the queue again; what is left can be done anew";
        return Err(Refused::new(StatusCode::CONFLICT, text, hint));
    }
    // A preview leads back to the list that it was made from.
    let back = fields.text("back").and_then(Link::back);
    Ok(on_to(&match (back, acting.cases.as_slice()) {
        (None, [only]) => Link::case(only.number).with("done", act.word()),
        (back, several) => {
            let back = back.unwrap_or_else(|| Link::to("/cases")).with("done", act.word());
            back.with("many", &several.len().to_string())
        }
    }))
}

/// What was not done to all.
fn left_words(done: usize, asked: usize) -> String {
    let why = "changed meanwhile, or was so before";
    match (done, asked) {
        (0, 1) => format!("nothing was done; the case {why}"),
        (0, _several) => format!("nothing was done; each of the {asked} cases {why}"),
        (_some, _all) => format!(
            "done to {done} of {}; each of the other {} {why}",
            counted(asked, "case", "cases"),
            asked.saturating_sub(done)
        ),
    }
}

impl<'a> Acting<'a> {
    async fn read(person: &'a Person, fields: &'a Fields) -> Result<Self, Refused> {
        let seen: Option<Vec<Seen>> = fields.all("seen").map(Seen::read).collect();
        let mut seen = seen.ok_or_else(|| Refused::words("The form names no case"))?;
        seen.sort_by_key(|one| one.case);
        seen.dedup_by_key(|one| one.case);
        if seen.is_empty() || seen.len() > MOST {
            return Err(Refused::words(format!("Expected 1 to {MOST} cases")));
        }
        let numbers: Vec<i64> = seen.iter().map(|one| one.case).collect();
        let limit = i64::try_from(numbers.len()).unwrap_or(i64::MAX);
        let proposals = person.db.proposals(&numbers).await?;
        let filter = CaseFilter { numbers: Some(numbers), limit, ..CaseFilter::default() };
        let cases = person.db.cases(&filter).await?;
        if cases.len() != seen.len() {
            return Err(Refused::stale("A case is gone"));
        }
        let now = person.db.now().await?;
        Ok(Self { person, fields, seen, cases, proposals, now })
    }

    fn numbers(&self) -> Vec<i64> {
        self.cases.iter().map(|case| case.number).collect()
    }

    async fn comment(&self) -> Result<usize, Refused> {
        let text = why(self.fields)?;
        let by = &self.person.name;
        let noted = self.person.db.comment_cases(&self.numbers(), &text, by, self.now).await?;
        Ok(usize::try_from(noted).unwrap_or(usize::MAX))
    }

    async fn assign(&self) -> Result<usize, Refused> {
        let owner = self.fields.text("owner").filter(|name| *name != NONE);
        let is_fine =
            |name: &str| name.chars().count() <= OWNER_MAX && !name.contains(char::is_control);
        if owner.is_some_and(|name| !is_fine(name)) {
            let text = format!("An owner has a name of 1 to {OWNER_MAX} characters");
            return Err(Refused::words(text));
        }
        if let Some(case) = self.cases.iter().find(|case| !case.open) {
            return Err(Refused::stale(format!("Case C-{} is closed", case.number)));
        }
        let (numbers, by) = (self.numbers(), &self.person.name);
        self.person.db.assign_cases(&numbers, owner, by, self.now).await?;
        // Those that had this owner before are as they should be.
        Ok(self.cases.len())
    }

    async fn propose(&self, site: &Site, undoes: bool) -> Result<usize, Refused> {
        let why = why(self.fields)?;
        let what = self.fields.text("as").and_then(What::parse);
        let what = what.ok_or_else(|| Refused::words("Say what became of it"))?;
        let object = object(self.fields, what)?;
        if let Some(why) = what.unfit_to_undo().filter(|_| undoes) {
            return Err(Refused::words(why));
        }
        self.as_seen()?;
        let asked = (what, object.as_deref());
        let setup = site.config.setup();
        let needs =
            second_needed_for(&self.person.db, &setup, &self.cases, asked, self.now).await?;
        let mut proposals = Vec::new();
        for case in &self.cases {
            may_be(case, what)?;
            if case.open == undoes || (undoes && !self.was_decided(case.number)) {
                let text = match undoes {
                    true => "no person's decision ended it, so that none is undone",
                    false => "it is closed",
                };
                return Err(Refused::words(format!("Case C-{}: {text}", case.number)));
            }
            if undoes && what == What::Retryable {
                let tables = &site.config.tables;
                if let Some(why) = undone_in_vain(&self.person.db, tables, case).await? {
                    return Err(Refused::words(format!("Case C-{}: {why}", case.number)));
                }
            }
            proposals.push(NewProposal {
                case_number: case.number,
                what,
                psp_reference: object.clone(),
                undoes,
                why: why.clone(),
                evidence_sha256: case.evidence_sha256.clone(),
                four_eyes: needs.contains_key(&case.number),
            });
        }
        let by = &self.person.name;
        Ok(self.person.db.propose(&proposals, by, self.now).await?.len())
    }

    fn was_decided(&self, case: i64) -> bool {
        self.proposals.iter().any(|proposal| {
            proposal.case_number == case
                && proposal.state == ProposalState::CarriedOut
                && proposal.what != What::Left
        })
    }

    async fn approve(&self, site: &Site) -> Result<usize, Refused> {
        let why = why(self.fields)?;
        self.as_seen()?;
        let open = self.open_proposals()?;
        let by = &self.person.name;
        let alone: Vec<&Proposal> = open.values().copied().collect();
        let setup = site.config.setup();
        let alone = second_needed(&self.person.db, &setup, &alone, by, self.now).await?;
        if let Some((number, why)) = alone.iter().min() {
            let text = format!("Case C-{number}: {why}");
            return Err(Refused::forbidden(text, "somebody else signs in and approves it"));
        }
        let is_own = |proposal: &&&Proposal| proposal.four_eyes && proposal.proposed_by == *by;
        if let Some(own) = open.values().find(is_own) {
            let text = format!(
                "Case C-{}: {by} proposed it, and it needs another person than {by}",
                own.case_number
            );
            return Err(Refused::forbidden(text, "somebody else signs in and approves it"));
        }
        self.of_people_here(site, &open)?;
        let seen: Vec<(i64, Option<String>)> = self
            .cases
            .iter()
            .filter_map(|case| {
                let proposal = open.get(&case.number)?;
                Some((proposal.number, case.evidence_sha256.clone()))
            })
            .collect();
        let approved = self.person.db.approve(&seen, &why, by, self.now).await?;
        let cases = open.values().filter(|one| approved.contains(&one.number));
        let cases: Vec<i64> = cases.map(|one| one.case_number).collect();
        if let Some(carrier) = site.carrier.as_ref().filter(|_| !cases.is_empty()) {
            site.waits.borrow_mut().retain(|case, _| !cases.contains(case));
            // Nobody listens any more where the page stops just now: the next run does it.
            let _ = carrier.send(Errand::Approved(cases));
        }
        Ok(approved.len())
    }

    /// Where the database tells nobody apart, whoever proposed it must have signed in here: a name
    /// of the command line and one of the page may be the same person's.
    fn of_people_here(&self, site: &Site, open: &HashMap<i64, &Proposal>) -> Result<(), Refused> {
        if site.service_name.is_some() {
            return Ok(());
        }
        let is_here = |name: &str| site.people.iter().any(|(known, _)| known == name);
        match open.values().find(|proposal| !is_here(&proposal.proposed_by)) {
            None => Ok(()),
            Some(other) => {
                let text = format!(
                    "Case C-{}: {} proposed it on the command line, where nobody is told apart",
                    other.case_number, other.proposed_by
                );
                Err(Refused::forbidden(text, "reject it, and propose it here"))
            }
        }
    }

    async fn reject(&self) -> Result<usize, Refused> {
        let why = why(self.fields)?;
        let open = self.open_proposals()?;
        let numbers: Vec<i64> = open.values().map(|proposal| proposal.number).collect();
        let by = &self.person.name;
        Ok(self.person.db.turn_down(&numbers, &why, by, self.now).await?.len())
    }

    /// Sends open cases of rows to be decided again. The note in their histories comes first, by
    /// the person's own login: whoever may say nothing of a case kicks none.
    async fn kick(&self, site: &Site) -> Result<usize, Refused> {
        let why = why(self.fields)?;
        let Some(carrier) = &site.carrier else {
            return Err(Refused::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "This page carries nothing out ([web] carry_out = false); nothing was done",
                "`tieout cases kick` kicks cases on the command line",
            ));
        };
        self.as_seen()?;
        let mut numbers = self.numbers();
        let which = Which::Numbers(numbers.clone());
        let chosen = choose(&self.person.db, &site.config.setup(), &which, MOST).await?;
        if let Some(case) = chosen.closed.first() {
            return Err(Refused::stale(format!("Case C-{} is closed", case.number)));
        }
        // Of several, the others are kicked, as the preview said.
        numbers.retain(|number| !chosen.spoken_for.contains(number));
        if let Some(number) = chosen.spoken_for.first().filter(|_| numbers.is_empty()) {
            let text = format!(
                "People approved what is to become of case C-{number}: the next run carries it \
                 out. `tieout cases reject` takes the approval back, and then it can be kicked"
            );
            return Err(Refused::words(text));
        }
        if chosen.cases.len() != numbers.len() {
            let text = "No rule decides a case of an account, a file or a line";
            return Err(Refused::words(text));
        }
        let asked = match numbers.as_slice() {
            [only] => format!("C-{only}"),
            several => counted(several.len(), "case", "cases"),
        };
        let by = format!("{} on the review page", self.person.name);
        let (text, name) = (format!("asked for a kick: {why}"), &self.person.name);
        self.person.db.comment_cases(&numbers, &text, name, self.now).await?;
        let kick = Kick { by, why, asked, cases: chosen.cases };
        if carrier.send(Errand::Kick(kick)).is_err() {
            return Err(Refused::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "The page stops just now; nothing was kicked",
                "kick it again once the page is there",
            ));
        }
        Ok(numbers.len())
    }

    /// Makes the cases parts of one. That one is none of them, though a filter may mean it, too.
    async fn merge(&mut self) -> Result<usize, Refused> {
        let text = self.fields.text("into").unwrap_or_default();
        let number = number_of(text);
        let into = number.map_err(|_none| Refused::words("Say of which case, such as C-1043"))?;
        let lead = self.person.db.case(into).await?;
        let lead = lead.ok_or_else(|| Refused::words(format!("There is no case C-{into}")))?;
        if !lead.open {
            return Err(Refused::words(format!("Case C-{into} is closed")));
        }
        self.cases.retain(|case| case.number != into);
        if self.cases.is_empty() {
            return Err(Refused::words(format!("Case C-{into} is no part of itself")));
        }
        if let Some(whole) = self.person.db.case_links(into).await?.part_of {
            let text = format!("Case C-{into} is a part itself, of C-{whole}");
            return Err(Refused::words(text));
        }
        self.put_together(Some(into)).await
    }

    /// Makes the cases parts of one, or parts no more.
    async fn put_together(&self, into: Option<i64>) -> Result<usize, Refused> {
        let why = why(self.fields)?;
        let (numbers, by) = (self.numbers(), &self.person.name);
        let changed = self.person.db.merge_cases(into, &numbers, &why, by, self.now).await?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    /// Each case shows what the form showed.
    fn as_seen(&self) -> Result<(), Refused> {
        for (case, seen) in self.cases.iter().zip(&self.seen) {
            let is_same = case.number == seen.case && case.evidence_sha256 == seen.evidence;
            if !is_same {
                let text = format!("Case C-{} shows something else by now", case.number);
                return Err(Refused::stale(text));
            }
        }
        Ok(())
    }

    /// The open proposal of each case: the very one that the form showed.
    fn open_proposals(&self) -> Result<HashMap<i64, &Proposal>, Refused> {
        let mut open = HashMap::new();
        for seen in &self.seen {
            let found = self.proposals.iter().find(|proposal| {
                proposal.case_number == seen.case && proposal.state == ProposalState::Open
            });
            match found.filter(|proposal| Some(proposal.number) == seen.proposal) {
                Some(proposal) => open.insert(seen.case, proposal),
                None => {
                    let text = format!("Case C-{} has another proposal by now, or none", seen.case);
                    return Err(Refused::stale(text));
                }
            };
        }
        Ok(open)
    }
}

/// Whether such a decision is one of this kind of case.
pub fn may_be(case: &CaseRow, what: What) -> Result<(), Refused> {
    let Some(why) = what.unfit_for(&case.subject_kind) else { return Ok(()) };
    Err(Refused::words(format!("Case C-{}: {why}", case.number)))
}

/// One line that says why; what was typed on several becomes one.
fn why(fields: &Fields) -> Result<String, Refused> {
    let typed = fields.whole("why").unwrap_or_default();
    let why = typed.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = one_line(&why).map(str::to_owned);
    why.ok_or_else(|| Refused::words(format!("Say why, in 1 to {SAID_MAX} characters")))
}

fn object(fields: &Fields, what: What) -> Result<Option<String>, Refused> {
    // A choice among those that were found; one that was typed stands above it.
    let typed = fields.text("other_object").or_else(|| fields.text("object"));
    let Some(object) = typed.filter(|_| matches!(what, What::Succeeded | What::Retryable)) else {
        return Ok(None);
    };
    if object.len() > OBJECT_MAX || object.contains(char::is_control) {
        return Err(Refused::words(format!("An object has an id of at most {OBJECT_MAX} bytes")));
    }
    Ok(Some(object.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_form_keeps_of_a_case_is_read_back() {
        let seen = |text: &str| Seen::read(text);
        let whole = Seen { case: 7, evidence: Some("4f0c".to_owned()), proposal: Some(3) };
        assert_eq!(seen("7.4f0c.3"), Some(whole));
        let bare = Seen { case: 7, evidence: None, proposal: None };
        assert_eq!(seen("7.-.-"), Some(bare));
        for bad in ["", "7", "7.-", "x.-.-", "7.-.x", "7.-.-.-"] {
            assert_eq!(seen(bad), None, "{bad}");
        }
    }

    #[test]
    fn why_is_one_line() {
        let read = |text: &str| why(&Fields::read(text));
        assert_eq!(read("why=+two%0D%0Alines+").unwrap(), "two lines");
        assert!(read("why=+").is_err());
        assert!(read("").is_err());
        assert!(read(&format!("why={}", "x".repeat(SAID_MAX + 1))).is_err());
        assert!(read(&format!("why={}", "%C3%BC".repeat(SAID_MAX))).is_ok());
    }

    #[test]
    fn an_object_goes_with_what_needs_one() {
        let fields = Fields::read("object=pi_1&other_object=");
        assert_eq!(object(&fields, What::Succeeded).unwrap().as_deref(), Some("pi_1"));
        assert_eq!(object(&fields, What::Failed).unwrap(), None);
        let other = Fields::read("object=pi_1&other_object=pi_2");
        assert_eq!(object(&other, What::Retryable).unwrap().as_deref(), Some("pi_2"));
    }

    #[test]
    fn every_act_has_a_word_and_is_read_by_it() {
        for act in Act::ALL {
            assert_eq!(Act::parse(act.word()), Some(act));
            assert!(act.done().ends_with('.'));
            assert!(act.done_to_many().ends_with('.'));
        }
    }

    #[test]
    fn what_was_not_done_to_all_is_told() {
        for (done, asked, words) in [
            (0, 1, "nothing was done; the case changed meanwhile, or was so before"),
            (0, 14, "nothing was done; each of the 14 cases changed meanwhile, or was so before"),
            (
                3,
                14,
                "done to 3 of 14 cases; each of the other 11 changed meanwhile, or was so before",
            ),
        ] {
            assert_eq!(left_words(done, asked), words);
        }
    }
}
