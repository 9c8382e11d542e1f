//! The account of a new share: one that suits, else one that is made, under a name that follows from the class.
//!
//! A repeated request, and another replica at the same time, make the same account. Volumes of classes with the same wishes share
//! accounts; a further one is made only if Azure has said of all others that they are full.

use std::collections::BTreeSet;

use serde_json::Value;

use super::account::AccountRequest;
use crate::model::document::text;
use crate::model::share_names::account_name;

/// Where a share is put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Into this account.
    Use(String),
    /// Into an account of this name, which is made first.
    Make(String),
}

impl AccountRequest {
    /// The account for a share of this name. `accounts` are those of the group, as Azure lists them; `refused` are the names of those
    /// that Azure has not put the share into, or whose file services do not suit; `preferred` is taken if it suits.
    pub fn choose(
        &self,
        accounts: &[Value],
        refused: &BTreeSet<String>,
        preferred: Option<&str>,
        share: &str,
    ) -> Choice {
        let name = |account: &Value| text(account, "/name").unwrap_or_default().to_owned();
        // Classes with the same wishes share accounts. The wishes name subscription and group.
        let wishes = self.wishes();
        let own = |number: usize| account_name(&[&wishes], number);
        // Numbers are used in turn, so that those of the listed accounts are the first ones.
        let series: BTreeSet<String> = (0..=accounts.len() + refused.len()).map(own).collect();
        let suits = |account: &&Value| {
            let name = name(account);
            let is_possible = !refused.contains(&name) && self.differs(account).is_none();
            is_possible && (!self.parameters.is_created || series.contains(&name))
        };
        let mut suitable: Vec<String> = accounts.iter().filter(suits).map(name).collect();
        suitable.sort();
        if let Some(preferred) = preferred.filter(|name| suitable.iter().any(|one| one == name)) {
            return Choice::Use(preferred.to_owned());
        }
        let at = if self.parameters.is_random { spread(share, suitable.len()) } else { 0 };
        if let Some(name) = suitable.get(at) {
            return Choice::Use(name.clone());
        }
        let taken: BTreeSet<String> = accounts.iter().map(name).chain(refused.iter().cloned()).collect();
        let free = (0..).map(own).find(|name| !taken.contains(name));
        Choice::Make(free.unwrap_or_default())
    }
}

/// A place among so many for a name: always the same, and all places are used.
fn spread(name: &str, places: usize) -> usize {
    let sum = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    if places == 0 { 0 } else { (sum % places as u64) as usize }
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
