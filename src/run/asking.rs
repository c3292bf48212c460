//! How an account is asked: by its API, or by its settlement files alone.

use crate::decide::policy::{PspFacts, RouteFacts};
use crate::model::evidence::Route;
use crate::model::transaction::Kind;
use crate::psp::account::{Account, OpenError, Surroundings};
use crate::psp::lane::{AccountStop, Counts};
use crate::psp::settings::{AccountSettings, PspKind};

/// One account as a run asks it.
#[derive(Clone)]
pub enum Asking {
    /// Its API; its files, where it has some, besides.
    Api(Account),
    /// Its files.
    Files,
}

impl Asking {
    /// Opens an account; nothing is asked yet.
    ///
    /// # Errors
    /// As [`Account::open`].
    pub fn open(settings: &AccountSettings, around: Surroundings) -> Result<Self, OpenError> {
        match settings.psp {
            PspKind::Stripe => Account::open(settings.clone(), around).map(Self::Api),
            PspKind::Files => {
                settings.check().map_err(OpenError::Settings)?;
                Ok(Self::Files)
            }
        }
    }

    /// What the adapter declares. A file tells of every kind of movement, and of no key's life.
    pub fn facts(&self) -> PspFacts {
        match self {
            Self::Api(account) => account.facts(),
            Self::Files => PspFacts {
                psp: PspKind::Files.as_str().to_owned(),
                kinds: vec![Kind::Charge, Kind::Refund, Kind::Payout],
                tag_max: usize::MAX,
                routes: vec![RouteFacts {
                    route: Route::File,
                    kinds: Vec::new(),
                    counts_as_miss: true,
                    lag: chrono::TimeDelta::zero(),
                    reach: None,
                }],
                charges_by: vec!["charge".to_owned()],
                key_life: None,
            },
        }
    }

    /// The API, where there is one.
    pub fn api(&self) -> Option<&Account> {
        match self {
            Self::Api(account) => Some(account),
            Self::Files => None,
        }
    }

    /// How many requests went out, and how they ended.
    pub fn counts(&self) -> Counts {
        self.api().map(Account::counts).unwrap_or_default()
    }

    /// Why the account is not asked any more, if so.
    pub fn stopped(&self) -> Option<AccountStop> {
        self.api().and_then(Account::stopped)
    }
}
