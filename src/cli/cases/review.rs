//! `cases review`: the queue, one case after the other, by keyboard.
//!
//! It says nothing that `propose`, `approve` and the others do not say, and by the same verbs: what
//! is on the screen is what a decision is bound to.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use rustix::io::{Errno, retry_on_intr};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush,
    tcgetattr, tcsetattr,
};

use crate::cli::args::Common;
use crate::cli::cases::decide::{carry_out, may_be};
use crate::cli::cases::kept::kept_of;
use crate::cli::cases::second::{maker, needs_two, not_by, who_may};
use crate::cli::cases::select::{Named, identity, meant, why};
use crate::cli::cases::show::{Known, read, screen};
use crate::cli::failure::Failure;
use crate::cli::{database, out, page, runtime};
use crate::config::Config;
use crate::exit::Exit;
use crate::run::people::{Second, second_needed};
use crate::run::shutdown::Stop;
use crate::store::database::Database;
use crate::store::driver::Driver;
use crate::store::people::{NewProposal, PeopleDriver, What};

/// Options of `cases review`.
#[derive(Debug, clap::Args)]
pub struct Review {
    #[command(flatten)]
    named: Named,
}

/// What the keys are for that decide a case about this, on a line of a screen.
fn deciding_keys(subject_kind: &str) -> Option<&'static str> {
    match What::Left.unfit_for(subject_kind) {
        Some(_ends_by_itself) => None,
        None if What::Failed.unfit_for(subject_kind).is_some() => {
            Some("[l]eave  [y]es to proposal")
        }
        None => {
            Some("[a]s suggested  [p]ick object  [r]etryable  [f]ailed  [l]eave  [y]es to proposal")
        }
    }
}

/// And those of every case.
const KEYS: &str = "[x] reject  [c]omment  [o]wner  [e]vidence  [b]ack  [n]ext  [q]uit";

/// What a key means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Suggested,
    Pick,
    Propose(What),
    Approve,
    Reject,
    Comment,
    Owner,
    Evidence,
    Back,
    Next,
    Quit,
    Help,
}

/// Ctrl-C and Ctrl-D come as bytes while keys are read one by one.
const INTERRUPT: u8 = 3;
const END: u8 = 4;

/// What arrow keys begin with, and keys that are struck with Alt.
const ESCAPE: u8 = 27;

/// No key is longer, in bytes.
const KEY_MAX: usize = 32;

fn step_of(key: u8) -> Step {
    match key {
        b'a' => Step::Suggested,
        b'p' => Step::Pick,
        b'r' => Step::Propose(What::Retryable),
        b'f' => Step::Propose(What::Failed),
        b'l' => Step::Propose(What::Left),
        b'y' => Step::Approve,
        b'x' => Step::Reject,
        b'c' => Step::Comment,
        b'o' => Step::Owner,
        b'e' => Step::Evidence,
        b'b' => Step::Back,
        b'n' | b' ' | b'\n' | b'\r' => Step::Next,
        b'q' | INTERRUPT | END => Step::Quit,
        _other => Step::Help,
    }
}

/// Runs the command.
pub fn review(options: &Review, common: &Common, config: &Config) -> Result<Exit, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let text = "cases review needs a terminal; nothing was done";
        let hint = "scripts use `tieout cases propose`, `approve` and the others";
        return Err(Failure::new(Exit::Usage, text, hint));
    }
    runtime::block_on(Box::pin(async {
        let stop = Stop::new();
        let db = database::open(config).await?;
        let ended = match runtime::listen(&stop, config.limits.grace) {
            Err(failure) => Err(failure),
            Ok(_listening) => {
                let at = Desk { common, config, db: &db, stop: &stop };
                at.work(options).await
            }
        };
        db.close().await;
        ended
    }))?
}

/// Where a person sits.
struct Desk<'a> {
    common: &'a Common,
    config: &'a Config,
    db: &'a Database,
    stop: &'a Stop,
}

impl Desk<'_> {
    async fn work(&self, options: &Review) -> Result<Exit, Failure> {
        let cases = meant(&options.named.cases, &options.named.select, true, self.db).await?;
        let mut at = 0_usize;
        while let Some(case) = cases.get(at) {
            if self.stop.requested().is_some() {
                break;
            }
            let known = read(case.number, self.config, self.db).await?;
            let place = at.saturating_add(1);
            out::stdout("");
            out::stdout(&format!("── {place} of {} ──", cases.len()));
            screen(&known, self.common).iter().for_each(|line| page::say(line));
            let deciding = deciding_keys(&known.case.subject_kind);
            deciding.into_iter().chain([KEYS]).for_each(out::stdout);
            let step = step_of(key()?);
            match step {
                Step::Quit => break,
                Step::Next => at = place,
                Step::Back => at = at.saturating_sub(1),
                Step::Suggested
                | Step::Pick
                | Step::Propose(_)
                | Step::Approve
                | Step::Reject
                | Step::Comment
                | Step::Owner
                | Step::Evidence
                | Step::Help => match self.take(step, &known).await {
                    Ok(()) => {}
                    // What cannot be done is said, and the next key decides.
                    Err(failure) => self.tell(&failure),
                },
            }
        }
        Ok(Exit::Ok)
    }

    fn tell(&self, failure: &Failure) {
        page::say(&format!("→ {}", failure.text));
        if let Some(hint) = &failure.hint {
            page::say(&format!("  {}", self.common.copyable(hint)));
        }
    }

    async fn take(&self, step: Step, known: &Known) -> Result<(), Failure> {
        match step {
            Step::Suggested => {
                let Some((what, object)) = known.suggested() else {
                    return Err(Failure::usage("nothing that tieout could do is suggested"));
                };
                self.propose(known, what, object).await
            }
            Step::Pick => {
                may_be(&known.case, What::Succeeded)?;
                let object = picked(&known.objects())?;
                self.propose(known, What::Succeeded, Some(object)).await
            }
            Step::Propose(What::Retryable) => {
                may_be(&known.case, What::Retryable)?;
                let given = ask("the object to charge by, by its number; empty: a new attempt")?;
                let object = match given.as_str() {
                    "" => None,
                    number => Some(numbered(&known.objects(), number)?),
                };
                self.propose(known, What::Retryable, object).await
            }
            Step::Propose(what) => self.propose(known, what, None).await,
            Step::Approve => self.approve(known).await,
            Step::Reject => self.reject(known).await,
            Step::Comment => self.comment(known).await,
            Step::Owner => self.assign(known).await,
            Step::Evidence => {
                let raw = known.evidence.as_deref().unwrap_or("null");
                let value: serde_json::Value = serde_json::from_str(raw).unwrap_or_default();
                out::stdout(&serde_json::to_string_pretty(&value).unwrap_or_default());
                wait_for_key()
            }
            Step::Help => Err(Failure::usage("that key means nothing; those that do stand above")),
            Step::Back | Step::Next | Step::Quit => Ok(()),
        }
    }

    async fn propose(
        &self,
        known: &Known,
        what: What,
        object: Option<String>,
    ) -> Result<(), Failure> {
        let case = &known.case;
        may_be(case, what)?;
        let one = std::slice::from_ref(case);
        let needs = needs_two(one, (what, object.as_deref()), self.config, self.db).await?;
        let by = maker(one, &needs, self.db).await?;
        if let Some(why) = needs.get(&case.number).and_then(Second::why) {
            page::say(&format!("another person approves it: {why}"));
        }
        let asked = (what, object.as_deref());
        let kept = kept_of(one, (asked, false), self.config, self.db).await?;
        kept.values().for_each(|kept| page::say(kept));
        let with = object.as_deref().map(|object| format!(" with {object}")).unwrap_or_default();
        let said = ask(&format!("{}{with}: why? (empty: not at all)", what.as_str()))?;
        if said.is_empty() {
            return Ok(());
        }
        let proposal = NewProposal {
            case_number: case.number,
            what,
            psp_reference: object,
            undoes: false,
            why: why(&said)?.to_owned(),
            evidence_sha256: case.evidence_sha256.clone(),
            four_eyes: needs.contains_key(&case.number),
        };
        let now = self.db.now().await.map_err(|e| Failure::store(&e))?;
        let stand = self.db.propose(&[proposal], &by, now).await;
        match stand.map_err(|e| Failure::store(&e))?.is_empty() {
            true => Err(Failure::usage("it has a proposal, or shows something else by now")),
            false => {
                out::stdout(match needs.contains_key(&case.number) {
                    true => "→ proposed; another person approves it",
                    false => "→ proposed; [y] approves it",
                });
                Ok(())
            }
        }
    }

    async fn approve(&self, known: &Known) -> Result<(), Failure> {
        let Some(proposal) = known.open_proposal() else {
            return Err(Failure::usage("nothing is proposed of it"));
        };
        let (by, is_told_apart) = identity(self.db).await?;
        if let Some(why) = not_by(proposal, &by, is_told_apart) {
            let text = format!("{why}; nothing was done");
            return Err(Failure::new(Exit::Usage, text, who_may(is_told_apart)));
        }
        let shown_at = self.db.now().await.map_err(|e| Failure::store(&e))?;
        let alone = second_needed(self.db, &self.config.setup(), &[proposal], &by, shown_at).await;
        if let Some(why) = alone.map_err(|e| Failure::store(&e))?.remove(&known.case.number) {
            let text = format!("{why}; nothing was done");
            return Err(Failure::new(Exit::Usage, text, who_may(is_told_apart)));
        }
        let said = ask("approve: why? (empty: not at all)")?;
        if said.is_empty() {
            return Ok(());
        }
        let seen = [(proposal.number, known.case.evidence_sha256.clone())];
        let now = self.db.now().await.map_err(|e| Failure::store(&e))?;
        let approved = self.db.approve(&seen, why(&said)?, &by, now).await;
        let approved = approved.map_err(|e| Failure::store(&e))?;
        if approved.is_empty() {
            return Err(Failure::usage("it shows something else by now, or somebody was quicker"));
        }
        let cases = std::slice::from_ref(&known.case);
        let (common, config) = (self.common, self.config);
        carry_out(cases, &approved, common, config, self.db, self.stop).await?;
        wait_for_key()
    }

    async fn reject(&self, known: &Known) -> Result<(), Failure> {
        let Some(proposal) = known.open_proposal() else {
            return Err(Failure::usage("nothing is proposed of it"));
        };
        let said = ask("reject: why? (empty: not at all)")?;
        if said.is_empty() {
            return Ok(());
        }
        let (by, _) = identity(self.db).await?;
        let now = self.db.now().await.map_err(|e| Failure::store(&e))?;
        let ended = self.db.turn_down(&[proposal.number], why(&said)?, &by, now).await;
        ended.map_err(|e| Failure::store(&e)).map(|_| ())
    }

    async fn comment(&self, known: &Known) -> Result<(), Failure> {
        let said = ask("comment (empty: none)")?;
        if said.is_empty() {
            return Ok(());
        }
        let (by, _) = identity(self.db).await?;
        let now = self.db.now().await.map_err(|e| Failure::store(&e))?;
        let noted = self.db.comment_cases(&[known.case.number], why(&said)?, &by, now).await;
        noted.map_err(|e| Failure::store(&e)).map(|_| ())
    }

    async fn assign(&self, known: &Known) -> Result<(), Failure> {
        let (by, _) = identity(self.db).await?;
        let said = ask(&format!("owner (empty: {by}; -: nobody)"))?;
        let owner = match said.as_str() {
            "" => Some(by.as_str()),
            "-" => None,
            name => Some(name),
        };
        let now = self.db.now().await.map_err(|e| Failure::store(&e))?;
        let changed = self.db.assign_cases(&[known.case.number], owner, &by, now).await;
        changed.map_err(|e| Failure::store(&e)).map(|_| ())
    }
}

/// The object that a person picks by its number on the screen.
fn picked(objects: &[String]) -> Result<String, Failure> {
    match objects {
        [] => Err(Failure::usage("the evidence shows no object")),
        [only] => Ok(only.clone()),
        several => numbered(several, &ask("which object succeeded, by its number")?),
    }
}

fn numbered(objects: &[String], number: &str) -> Result<String, Failure> {
    let place = number.trim_matches(['[', ']']).parse::<usize>().ok();
    let object = place.and_then(|place| place.checked_sub(1)).and_then(|at| objects.get(at));
    object.cloned().ok_or_else(|| {
        Failure::usage(format!("{number}: expected the number of an object on the screen"))
    })
}

/// Asks for a line. Ctrl-C takes the question back, and so does a line that Ctrl-D ends; they end
/// nothing else. What was typed before the question is asked is no answer to it.
fn ask(question: &str) -> Result<String, Failure> {
    let _restored = Restored::after(|terminal| {
        terminal.local_modes.remove(LocalModes::ISIG);
        // A backspace takes a letter, however many bytes it has.
        terminal.input_modes.insert(InputModes::IUTF8);
        terminal.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT;
    })?;
    forget_typed()?;
    out::stdout(&format!("{question}:"));
    let mut line = Vec::new();
    while !matches!(line.last(), Some(&(b'\n' | INTERRUPT))) {
        let mut some = [0_u8; 512];
        let count = read_some(&mut some)?;
        let read = some.get(..count).filter(|read| !read.is_empty());
        let Some(read) = read else { break };
        line.extend_from_slice(read);
    }
    if line.last() != Some(&b'\n') {
        out::stdout("");
        return Err(Failure::usage("taken back; nothing was done"));
    }
    let line = String::from_utf8(without_keys(line));
    let line = line.map_err(|_| Failure::usage("that is no UTF-8; nothing was done"))?;
    Ok(line.trim().to_owned())
}

/// What is typed beyond the key was meant for no question that is asked later.
fn wait_for_key() -> Result<(), Failure> {
    out::stdout("any key goes on");
    key()?;
    forget_typed()
}

/// Drops what was typed and not read.
fn forget_typed() -> Result<(), Failure> {
    tcflush(std::io::stdin().as_fd(), QueueSelector::IFlush).map_err(unreadable)
}

/// The terminal as it was before this process changed it, while it is changed.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Gives the terminal back as it was: for the end that no value outlives.
pub fn restore_terminal() {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(before) = before.take() {
        // A terminal that is gone needs nothing back.
        let _gone = tcsetattr(std::io::stdin().as_fd(), OptionalActions::Now, &before);
    }
}

/// The terminal as it was; it is that again however the reading ends.
struct Restored {
    before: Termios,
    /// Nothing was changed before.
    is_first: bool,
}

impl Restored {
    fn after(change: impl FnOnce(&mut Termios)) -> Result<Self, Failure> {
        let stdin = std::io::stdin();
        let before = tcgetattr(stdin.as_fd()).map_err(unreadable)?;
        let mut changed = before.clone();
        change(&mut changed);
        let mut known = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = known.is_none();
        known.get_or_insert_with(|| before.clone());
        drop(known);
        let restored = Self { before, is_first };
        tcsetattr(stdin.as_fd(), OptionalActions::Now, &changed).map_err(unreadable)?;
        Ok(restored)
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let _gone = tcsetattr(std::io::stdin().as_fd(), OptionalActions::Now, &self.before);
        if self.is_first {
            BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }
}

fn unreadable(error: Errno) -> Failure {
    Failure::usage(format!("the terminal gives no keys: {error}"))
}

/// Unbuffered: what is not asked for yet stays the terminal's.
fn read_some(into: &mut [u8]) -> Result<usize, Failure> {
    retry_on_intr(|| rustix::io::read(std::io::stdin().as_fd(), &mut *into)).map_err(unreadable)
}

/// One key, without the line's end; the end of the input quits. What a terminal sends as several
/// bytes is read whole and means nothing: its rest would be keys that nobody struck.
fn key() -> Result<u8, Failure> {
    let _restored = Restored::after(|terminal| {
        let by_line = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        terminal.local_modes.remove(by_line);
    })?;
    let mut byte = [END];
    read_some(&mut byte)?;
    let [first] = byte;
    let mut read = vec![first];
    if is_whole(&read) {
        return Ok(first);
    }
    let _brief = Restored::after(|terminal| {
        // A tenth of a second: Escape alone has no rest.
        terminal.special_codes[SpecialCodeIndex::VMIN] = 0;
        terminal.special_codes[SpecialCodeIndex::VTIME] = 1;
    })?;
    while !is_whole(&read) && read.len() < KEY_MAX && read_some(&mut byte)? > 0 {
        read.extend(byte);
    }
    Ok(ESCAPE)
}

/// Whether a key that begins so has no more bytes: a letter of UTF-8, an arrow, a key with Alt.
fn is_whole(read: &[u8]) -> bool {
    match read {
        [] | [ESCAPE] | [ESCAPE, b'O'] => false,
        [ESCAPE, b'O', ..] => true,
        // The function keys of a console.
        [ESCAPE, b'[', b'[', rest @ ..] => !rest.is_empty(),
        [ESCAPE, b'[', rest @ ..] => rest.iter().any(|byte| (0x40..=0x7e).contains(byte)),
        [ESCAPE, rest @ ..] => is_whole(rest),
        [first, rest @ ..] => {
            let more = match first {
                0xc0..=0xdf => 1,
                0xe0..=0xef => 2,
                0xf0..=0xf7 => 3,
                _alone => 0,
            };
            rest.len() >= more
        }
    }
}

/// A line without the arrows and the like that were struck while it was typed.
fn without_keys(line: Vec<u8>) -> Vec<u8> {
    let (mut typed, mut struck) = (Vec::with_capacity(line.len()), Vec::new());
    for byte in line {
        if struck.is_empty() && byte != ESCAPE {
            typed.push(byte);
            continue;
        }
        struck.push(byte);
        if is_whole(&struck) {
            struck.clear();
        }
    }
    typed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_screen_means_something_and_no_two_the_same() {
        let mut seen = Vec::new();
        for line in [deciding_keys("row").unwrap(), KEYS] {
            assert!(line.chars().count() <= 80, "{line}");
            for part in line.split('[').skip(1) {
                let step = step_of(part.as_bytes()[0]);
                assert_ne!(step, Step::Help, "{part}");
                assert!(!seen.contains(&step), "{part}");
                seen.push(step);
            }
        }
        assert_eq!(seen.len(), 13);
        assert_eq!(deciding_keys("line"), Some("[l]eave  [y]es to proposal"));
        assert_eq!(deciding_keys("account"), None);
        assert_eq!(step_of(INTERRUPT), Step::Quit);
        assert_eq!(step_of(b'?'), Step::Help);
    }

    #[test]
    fn a_key_of_several_bytes_is_one_key() {
        for whole in ["a", "\n", "\u{3}", "ü", "€", "🙂", "\u{1b}[A", "\u{1b}OP", "\u{1b}[1;5C"]
        {
            assert_whole(whole);
        }
        for whole in ["\u{1b}x", "\u{1b}ü", "\u{1b}[3~", "\u{1b}[[A", "\u{1b}\u{1b}[D"] {
            assert_whole(whole);
        }
        assert!(!is_whole(b"\x1b"), "more may come");
        assert_eq!(step_of(ESCAPE), Step::Help);
    }

    /// All of it is a key, and nothing shorter is.
    fn assert_whole(key: &str) {
        let bytes = key.as_bytes();
        let first = (1..=bytes.len()).find(|end| is_whole(&bytes[..*end]));
        assert_eq!(first, Some(bytes.len()), "{key:?}");
    }

    #[test]
    fn a_line_is_what_was_typed_without_arrows() {
        for (line, typed) in [
            ("called\n", "called\n"),
            ("cal\u{1b}[Dled\n", "called\n"),
            ("\u{1b}[A\u{1b}OHgrüß\u{1b}[3~e", "grüße"),
            ("x\u{1b}b y", "x y"),
            ("never mind\u{1b}", "never mind"),
        ] {
            assert_eq!(without_keys(line.as_bytes().to_vec()), typed.as_bytes(), "{line:?}");
        }
    }

    #[test]
    fn objects_are_picked_by_their_number() {
        let objects = ["pi_1".to_owned(), "pi_2".to_owned()];
        assert_eq!(numbered(&objects, "2").unwrap(), "pi_2");
        assert_eq!(numbered(&objects, "[1]").unwrap(), "pi_1");
        for wrong in ["0", "3", "x", ""] {
            assert!(numbered(&objects, wrong).is_err(), "{wrong}");
        }
    }
}
