//! The queue as CSV, whole: however many cases there are, a page of them is in memory.

use std::rc::Rc;

use axum::body::Bytes;
use axum::response::Response;
use tokio::sync::mpsc::channel;

use crate::report::past::with_undone;
use crate::report::queue;
use crate::store::database::Database;
use crate::store::driver::{CaseFilter, Driver};
use crate::web::download::{Parts, file_answer};
use crate::web::error::{Refused, chain};
use crate::web::filter::Asked;
use crate::web::form::Fields;
use crate::web::sessions::Person;
use crate::web::site::Site;

/// Cases read at once.
const PAGE: i64 = 1_000;

/// How a line ends, by RFC 4180.
const END: &str = "\r\n";

/// Pages that wait for a slow browser.
const AHEAD: usize = 2;

/// All cases that the filter means.
pub async fn cases(site: &Rc<Site>, person: &Person, query: &Fields) -> Result<Response, Refused> {
    let asked = Asked::of_address(query, person.db.now().await?)?;
    let filter = CaseFilter { limit: PAGE, ..asked.filter };
    let (sender, receiver) = channel(AHEAD);
    let db = person.db.clone();
    site.tasks.spawn_local(async move { write(db, filter, sender).await });
    Ok(file_answer("text/csv; charset=utf-8", "cases.csv", receiver))
}

async fn write(db: Database, mut filter: CaseFilter, parts: Parts) {
    let mut text = queue::header() + END;
    loop {
        let read = match db.cases(&filter).await {
            Ok(page) => with_undone(&db, page).await,
            Err(error) => Err(error),
        };
        let page = match read {
            Ok(page) => page,
            Err(error) => {
                // The browser sees a download that broke off, and not a whole one.
                let broken = std::io::Error::other(chain(&error));
                let _ = parts.send(Err(broken)).await;
                return;
            }
        };
        for case in &page {
            text.push_str(&queue::line(case));
            text.push_str(END);
        }
        let last = page.last().map(|case| case.number);
        if parts.send(Ok(Bytes::from(std::mem::take(&mut text)))).await.is_err() {
            return;
        }
        let Some(last) = last else { return };
        filter.after = Some(last);
    }
}
