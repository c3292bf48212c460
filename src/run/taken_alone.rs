//! Cases of payments beside which a line was taken: somebody approved, kicked or ran the row of a
//! refund alone, and that row has the line now. What the line says of the payment is told by the
//! next run of all rows, as if that one had taken it.

use crate::model::reason::Reason;
use crate::model::transaction::Kind;
use crate::run::books::{Books, Tell};
use crate::run::by_files::Names;
use crate::run::error::{Doing, RunError};
use crate::run::named_payments::NamedPayments;
use crate::run::people::{self, RowsByTable};
use crate::run::scene::Scene;
use crate::store::files::FileDriver;

/// Lines read at once.
const AT_ONCE: i64 = 5_000;

/// Looks again at the open cases of payments that such lines name.
pub(super) async fn look_beside(
    scene: &Scene<'_>,
    account: &str,
    books: &mut Books,
    tell: Tell<'_>,
) -> Result<(), RunError> {
    let mut after = None;
    loop {
        let lines = scene.db.taken_alone(account, after, AT_ONCE).await;
        let lines = lines.doing("looking for lines that single rows took")?;
        let Some(last) = lines.last() else { return Ok(()) };
        after = Some(last.place);
        let named = Box::pin(NamedPayments::of(scene, account, lines.iter().map(Names::from)));
        let named = named.await?;
        let payments = named.rows();
        let mut beside = RowsByTable::new();
        for line in &lines {
            let (names, way) = (Names::from(line), (line.kind, line.direction));
            let paid = payments.row_of(names, way, Kind::Charge);
            if let Some((table, row)) = paid.or_else(|| payments.paid_before(names)) {
                beside.entry(table).or_default().insert(row.key.id.clone());
            }
        }
        people::look_at_cases_of(scene, books, &beside, Reason::ALL, tell).await?;
    }
}
