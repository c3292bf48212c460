//! The routes of the API that the sandbox speaks: method and path to a name, in one table.
//!
//! To add a route: a line in `TABLE`, an arm in `api::execute`.

use serde::{Deserialize, Serialize};

/// A route of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// `POST /v1/payment_intents`
    CreateIntent,
    /// `GET /v1/payment_intents`
    ListIntents,
    /// `GET /v1/payment_intents/search`
    SearchIntents,
    /// `GET /v1/payment_intents/{id}`
    GetIntent,
    /// `POST /v1/payment_intents/{id}`
    UpdateIntent,
    /// `POST /v1/payment_intents/{id}/confirm`
    ConfirmIntent,
    /// `POST /v1/payment_intents/{id}/capture`
    CaptureIntent,
    /// `POST /v1/payment_intents/{id}/cancel`
    CancelIntent,
    /// `POST /v1/charges`
    CreateCharge,
    /// `GET /v1/charges`
    ListCharges,
    /// `GET /v1/charges/search`
    SearchCharges,
    /// `GET /v1/charges/{id}`
    GetCharge,
    /// `POST /v1/charges/{id}/capture`
    CaptureCharge,
    /// `POST /v1/refunds`
    CreateRefund,
    /// `GET /v1/refunds`
    ListRefunds,
    /// `GET /v1/refunds/{id}`
    GetRefund,
    /// `GET /v1/disputes`
    ListDisputes,
    /// `GET /v1/disputes/{id}`
    GetDispute,
    /// `GET /v1/account`
    GetAccount,
    /// `GET /v1/balance`
    GetBalance,
    /// Anything else; answers 404.
    Unknown,
}

/// Method, path, route; `*` stands for an id. A fixed word comes before the `*` it would match.
const TABLE: &[(&str, &str, Route)] = &[
    ("POST", "/v1/payment_intents", Route::CreateIntent),
    ("GET", "/v1/payment_intents", Route::ListIntents),
    ("GET", "/v1/payment_intents/search", Route::SearchIntents),
    ("GET", "/v1/payment_intents/*", Route::GetIntent),
    ("POST", "/v1/payment_intents/*", Route::UpdateIntent),
    ("POST", "/v1/payment_intents/*/confirm", Route::ConfirmIntent),
    ("POST", "/v1/payment_intents/*/capture", Route::CaptureIntent),
    ("POST", "/v1/payment_intents/*/cancel", Route::CancelIntent),
    ("POST", "/v1/charges", Route::CreateCharge),
    ("GET", "/v1/charges", Route::ListCharges),
    ("GET", "/v1/charges/search", Route::SearchCharges),
    ("GET", "/v1/charges/*", Route::GetCharge),
    ("POST", "/v1/charges/*/capture", Route::CaptureCharge),
    ("POST", "/v1/refunds", Route::CreateRefund),
    ("GET", "/v1/refunds", Route::ListRefunds),
    ("GET", "/v1/refunds/*", Route::GetRefund),
    ("GET", "/v1/disputes", Route::ListDisputes),
    ("GET", "/v1/disputes/*", Route::GetDispute),
    ("GET", "/v1/account", Route::GetAccount),
    ("GET", "/v1/balance", Route::GetBalance),
];

/// The route of a request and the id that its path names.
pub(super) fn route_of(method: &str, path: &str) -> (Route, Option<String>) {
    for (known, pattern, route) in TABLE {
        if *known != method {
            continue;
        }
        if let Some(id) = fit(pattern, path) {
            return (*route, id);
        }
    }
    (Route::Unknown, None)
}

fn fit(pattern: &str, path: &str) -> Option<Option<String>> {
    let mut id = None;
    let mut words = path.trim_end_matches('/').split('/');
    for expected in pattern.split('/') {
        let word = words.next()?;
        if expected == "*" && !word.is_empty() {
            id = Some(super::form::decode(word));
        } else if expected != word {
            return None;
        }
    }
    words.next().is_none().then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_their_routes() {
        let cases = [
            ("GET", "/v1/payment_intents", Route::ListIntents, None),
            ("GET", "/v1/payment_intents/", Route::ListIntents, None),
            ("GET", "/v1/payment_intents/search", Route::SearchIntents, None),
            ("GET", "/v1/payment_intents/pi_1", Route::GetIntent, Some("pi_1")),
            ("POST", "/v1/payment_intents/pi_1/confirm", Route::ConfirmIntent, Some("pi_1")),
            ("DELETE", "/v1/payment_intents/pi_1", Route::Unknown, None),
            ("GET", "/v1/payment_intents/pi_1/more/words", Route::Unknown, None),
            ("GET", "/", Route::Unknown, None),
        ];
        for (method, path, route, id) in cases {
            assert_eq!(route_of(method, path), (route, id.map(str::to_owned)), "{method} {path}");
        }
    }
}
