//! Payments that lines of what came back name by the PSP's ids, whatever tag they carry: a refund
//! or a chargeback is of the row whose payment it names, be that known by a line of a file or by
//! what tieout keeps of the row's success; what says that a refund failed is of the refund's row.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::decide::settled::{moves, takes_back};
use crate::model::money::Money;
use crate::model::settlement::{Direction, LineKind};
use crate::model::transaction::{Kind, Transaction};
use crate::report::said::{
    back_id, failed_refund, given_back, ids_of, moved, refund_reference, shared_ids,
};
use crate::run::by_files::Names;
use crate::run::error::{Doing, RunError};
use crate::run::match_lines::{Storing, by_name, is_of, row_of, rows_of, texts_of};
use crate::run::scene::Scene;
use crate::store::driver::Driver;
use crate::store::files::{FileDriver, LinePlace, StoredLine};

/// What is known of the payments that some lines name.
#[derive(Default)]
pub(super) struct NamedPayments {
    /// Their own lines, and those of their refunds and chargebacks.
    lines: Vec<StoredLine>,
    /// By the table's place: rows that one of those lines may be of, and those that succeeded by a
    /// payment of one of the ids.
    rows: Vec<Vec<Transaction>>,
    /// Ids of whole payment runs.
    runs: HashSet<String>,
    /// By an id: the table and the key of the row that succeeded by it.
    taken: Vec<(String, (String, String))>,
    /// What each line that carries one of the ids moved, before fees.
    moved: HashMap<LinePlace, Money>,
    /// Which refund each of those says to have failed, where its report names that for sure.
    failed: HashMap<LinePlace, String>,
    /// What the merchant calls the refund that each of those is of.
    called: HashMap<LinePlace, String>,
}

/// A row, by the table's place and the key.
type Rows<'p> = BTreeMap<(usize, &'p str), &'p Transaction>;

/// A row, and its table's place.
pub(super) type Placed<'p> = (usize, &'p Transaction);

/// By an id: the rows whose payment or refund is called by it.
pub(super) struct RowsByPayment<'p> {
    rows: HashMap<&'p str, Rows<'p>>,
    /// By the id of a payment: what each of its refunds gave back, and the refund's row.
    refunds: HashMap<&'p str, Vec<Refunded<'p>>>,
    /// By the own id of a refund or a chargeback: the payments that it took back.
    taken_back: HashMap<&'p str, Vec<&'p str>>,
    moved: &'p HashMap<LinePlace, Money>,
    failed: &'p HashMap<LinePlace, String>,
    called: &'p HashMap<LinePlace, String>,
}

/// Whose refund it is that a line says to have failed.
pub(super) enum Failed<'p> {
    /// This row's.
    Of(Placed<'p>),
    /// One of several, or of one that no row has beside others.
    Unclear,
    /// No row's.
    Nobodys,
}

/// What a refund gave back, and its row.
struct Refunded<'p> {
    place: LinePlace,
    own: Option<&'p str>,
    /// Its payment.
    of: Option<&'p str>,
    money: Option<Money>,
    row: Option<Placed<'p>>,
}

impl NamedPayments {
    /// The payments that these names tell of.
    pub async fn of(
        scene: &Scene<'_>,
        account: &str,
        names: impl Iterator<Item = Names<'_>>,
    ) -> Result<Self, RunError> {
        let ids: HashSet<&str> = names.flat_map(Names::ids).collect();
        if ids.is_empty() {
            return Ok(Self::default());
        }
        let mut ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
        let lines = scene.db.lines_of(account, &ids, &[]).await;
        let mut lines = lines.doing("looking for payments that lines name")?;
        let moved = lines.iter().filter_map(|line| Some((line.place, moved(line)?))).collect();
        let failed = lines.iter().filter_map(|line| {
            let failed = failed_refund(line).filter(|failed| failed.is_sure)?;
            Some((line.place, failed.id))
        });
        let failed = failed.collect();
        let called = lines.iter().filter_map(|line| {
            let called = refund_reference(line)?;
            Some((line.place, called.to_owned()))
        });
        let called = called.collect();
        let refunded = given_back_by(scene, account, &lines, &ids).await?;
        let shared = shared_ids(lines.iter());
        ids.retain(|id| !shared.contains(id));
        let is_one = |line: &StoredLine| !ids_of(line).any(|id| shared.contains(id));
        let is_told = |line: &StoredLine| does_move(line) || back_id(line).is_some();
        lines.retain(|line| line.itemised && is_told(line) && is_one(line));
        lines.extend(refunded);
        let texts = texts_of(lines.iter().map(Names::from));
        let storing = Storing::of(scene, account, &texts).await?;
        let mut rows = rows_of(scene, account, &texts, &storing).await?;
        let runs = storing.runs(scene, account, lines.iter().map(Names::from)).await?;
        let taken = scene.db.taken_references(account, &ids).await;
        let taken = taken.doing("looking for rows that succeeded by a payment")?;
        let taken: Vec<_> = taken
            .into_iter()
            .flat_map(|(id, rows)| rows.into_iter().map(move |row| (id.clone(), row)))
            .collect();
        for (index, table) in scene.tables.iter().enumerate() {
            let of_table = taken.iter().filter(|(_, (name, _))| *name == table.settings.name);
            let keys: Vec<String> = of_table.map(|(_, (_, key))| key.clone()).collect();
            if keys.is_empty() || !is_of(table, account) {
                continue;
            }
            let found = scene.db.rows_known_by(table, account, &[], &[], &keys).await;
            let found = found.doing("reading rows that succeeded by a payment")?;
            if let Some(rows) = rows.get_mut(index) {
                rows.extend(found);
            }
        }
        Ok(Self { lines, rows, runs, taken, moved, failed, called })
    }

    /// Its rows, by the table's place.
    pub fn into_rows(self) -> Vec<Vec<Transaction>> {
        self.rows
    }

    /// The rows of the payments and of their refunds, by their ids.
    pub fn rows(&self) -> RowsByPayment<'_> {
        let (rows, refunds, taken_back) = (HashMap::new(), HashMap::new(), HashMap::new());
        let (failed, called) = (&self.failed, &self.called);
        let mut found =
            RowsByPayment { rows, refunds, taken_back, moved: &self.moved, failed, called };
        let by_name = by_name(&self.rows, &self.runs);
        for line in &self.lines {
            let way = (line.kind, line.direction);
            let row = row_of(Names::from(line), way, &by_name).ok();
            if let Some((table, row)) = row.filter(|(_, row)| moves(way.0, way.1, row.kind)) {
                for id in ids_of(line) {
                    found.rows.entry(id).or_default().insert((table, &row.key.id), row);
                }
            }
            if let (Some(id), Some(of)) = (back_id(line), given_back(line)) {
                found.taken_back.entry(id).or_default().push(of);
            }
            if line.kind == LineKind::Refund {
                let row = row.filter(|(_, row)| row.kind == Kind::Refund);
                for id in Names::from(line).ids() {
                    let (place, money) = (line.place, moved(line));
                    let (own, of) = (back_id(line), given_back(line));
                    let refunded = Refunded { place, own, of, money, row };
                    found.refunds.entry(id).or_default().push(refunded);
                }
            }
        }
        for (id, (name, key)) in &self.taken {
            for (table, rows) in self.rows.iter().enumerate() {
                let is_its = |row: &&Transaction| (&row.key.table, &row.key.id) == (name, key);
                if let Some(row) = rows.iter().find(is_its) {
                    found.rows.entry(id).or_default().insert((table, &row.key.id), row);
                }
            }
        }
        found
    }
}

/// The payments of refunds and chargebacks that are named by their own ids alone, as by what says
/// that they failed, or were undone.
async fn given_back_by(
    scene: &Scene<'_>,
    account: &str,
    lines: &[StoredLine],
    ids: &[String],
) -> Result<Vec<StoredLine>, RunError> {
    let asked: HashSet<&str> = ids.iter().map(String::as_str).collect();
    let is_alone = |line: &&StoredLine| {
        let own: HashSet<&str> = ids_of(line).collect();
        let mut others = Names::from(*line).ids().filter(|id| !own.contains(id));
        line.kind == LineKind::Refund && line.itemised && !others.any(|id| asked.contains(id))
    };
    let is_disputed = |line: &&StoredLine| {
        line.kind == LineKind::Chargeback && line.itemised && back_id(line).is_some()
    };
    let named = lines.iter().filter(|line| is_alone(line) || is_disputed(line));
    let payments = named.filter_map(given_back).filter(|id| !asked.contains(id));
    let payments: BTreeSet<&str> = payments.collect();
    if payments.is_empty() {
        return Ok(Vec::new());
    }
    let payments: Vec<String> = payments.into_iter().map(str::to_owned).collect();
    let found = scene.db.lines_of(account, &payments, &[]).await;
    let mut found = found.doing("looking for payments that lines name")?;
    let shared = shared_ids(found.iter());
    let known: HashSet<LinePlace> = lines.iter().map(|line| line.place).collect();
    found.retain(|line| {
        let is_paid = line.itemised && moves(line.kind, line.direction, Kind::Charge);
        let is_one = !ids_of(line).any(|id| shared.contains(id));
        is_paid && is_one && !known.contains(&line.place)
    });
    Ok(found)
}

fn does_move(line: &StoredLine) -> bool {
    let kinds = [Kind::Charge, Kind::Refund];
    kinds.iter().any(|kind| moves(line.kind, line.direction, *kind))
}

impl<'p> RowsByPayment<'p> {
    /// The one row of a kind of whose payment, or refund, a line tells that it came back.
    pub fn row_of(
        &self,
        names: Names<'_>,
        (kind, way): (LineKind, Direction),
        wanted: Kind,
    ) -> Option<Placed<'p>> {
        let found = names.ids().filter_map(|id| self.rows.get(id)).flatten();
        let found: Rows<'_> = found
            .map(|(key, row)| (*key, *row))
            .filter(|(_, row)| row.kind == wanted && takes_back(kind, way, row.kind))
            .collect();
        let mut found = found.into_iter();
        match (found.next(), found.next()) {
            (Some(((table, _), row)), None) if names.itemised => Some((table, row)),
            _none_or_several => None,
        }
    }

    /// The one row of the payment whose refund a line says to have failed, or whose chargeback to
    /// be undone, where the line names that alone.
    pub fn paid_before(&self, names: Names<'_>) -> Option<Placed<'p>> {
        let payments = names.ids().filter_map(|id| self.taken_back.get(id)).flatten();
        let payments = payments.filter(|payment| !names.ids().any(|id| id == **payment));
        let found: Rows<'_> = payments
            .filter_map(|payment| self.rows.get(*payment))
            .flatten()
            .map(|(key, row)| (*key, *row))
            .filter(|(_, row)| row.kind == Kind::Charge)
            .collect();
        let mut found = found.into_iter();
        match (found.next(), found.next()) {
            (Some(((table, _), row)), None) => Some((table, row)),
            _none_or_several => None,
        }
    }

    /// The row of the refund of which a line says that it failed: by its id, else the only one of
    /// that money that its payment has.
    pub fn failed_refund(
        &self,
        names: Names<'_>,
        way: (LineKind, Direction),
        place: LinePlace,
    ) -> Failed<'p> {
        if let Some(row) = self.row_of(names, way, Kind::Refund) {
            return Failed::Of(row);
        }
        let money = self.moved.get(&place);
        let is_another = |own: &Refunded<'_>| {
            let both = self.called.get(&place).zip(self.called.get(&own.place));
            if both.is_some_and(|(failed, own)| failed != own) {
                return true;
            }
            let named = self.failed.get(&place).filter(|_| own.own.is_some());
            named.is_some_and(|id| [own.own, own.of].into_iter().flatten().all(|known| known != id))
        };
        let is_its = |own: &&Refunded<'_>| {
            money.is_some() && own.money.as_ref() == money && !is_another(own)
        };
        let alike = names.ids().filter_map(|id| self.refunds.get(id)).flatten().filter(is_its);
        // One that is called by several ids is one.
        let alike: BTreeMap<LinePlace, Option<Placed<'p>>> =
            alike.map(|own| (own.place, own.row)).collect();
        let mut rows = alike.values().copied();
        match (rows.next(), alike.len()) {
            (Some(Some(row)), 1) => Failed::Of(row),
            (_, several) if several > 1 && alike.values().any(Option::is_some) => Failed::Unclear,
            _none => Failed::Nobodys,
        }
    }
}
