//! Faults of the simulators, declared as data: which requests a fault affects, how often, and what happens to them.
//!
//! A simulator declares its fault with [`fault!`]: its conditions, and the enum of its actions. [`Faults`] holds those in
//! force and counts the requests that they match. Both simulators read the same JSON, but for the conditions and actions
//! that only one of them has:
//!
//! ```
//! #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
//! #[serde(rename_all = "camelCase")]
//! pub enum FaultAction {
//!     DropAnswer,
//! }
//!
//! faults::fault! {
//!     conditions {
//!         /// HTTP method.
//!         method,
//!     }
//!     action: FaultAction
//! }
//!
//! let fault: Fault = serde_json::from_str(r#"{"method": "P*", "count": 1, "action": "dropAnswer"}"#).unwrap();
//! let mut faults = faults::Faults::of(&[fault]);
//! let mut request = |method: &str| faults.affecting(7, |fault| faults::is_met(&fault.method, method)).is_some();
//! assert_eq!([request("GET"), request("PUT"), request("PUT")], [false, true, false]);
//! ```

pub mod glob;

use ring::digest::{Context, SHA256};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Declares `Fault`, the fault of a simulator: the members that all faults have, the conditions on requests, which are
/// optional texts, and an action of the given type.
#[macro_export]
macro_rules! fault {
    (conditions { $($(#[$meta:meta])* $condition:ident,)* } action: $action:ty) => {
        /// A fault: the requests that it affects and what happens to them. Conditions that are left out match everything;
        /// texts may contain `*` and `?` and are compared ignoring case.
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct Fault {
            /// Its name in the journal.
            #[serde(default)]
            pub name: String,
            $(
                $(#[$meta])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $condition: Option<String>,
            )*
            /// How many matching requests pass before the first is affected.
            #[serde(default)]
            pub skip: u64,
            /// How many matching requests are affected; `None` for all of them.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub count: Option<u64>,
            /// The share of the requests between `skip` and `count` that is affected, drawn from the seed: 0.1 affects
            /// about one in ten. `None` for all of them.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub share: Option<f64>,
            /// What happens to an affected request.
            pub action: $action,
        }

        impl Fault {
            /// A fault that affects every request; the other methods narrow it.
            fn of_all_requests(action: $action) -> Self {
                Self { name: String::new(), $($condition: None,)* skip: 0, count: None, share: None, action }
            }

            /// Skips that many matching requests first.
            #[must_use]
            pub fn after(mut self, skip: u64) -> Self {
                self.skip = skip;
                self
            }

            /// Affects this many requests.
            #[must_use]
            pub fn times(mut self, count: u64) -> Self {
                self.count = Some(count);
                self
            }

            /// Affects that share of all requests, indefinitely.
            #[must_use]
            pub fn some(mut self, share: f64) -> Self {
                self.share = Some(share);
                self.count = None;
                self
            }

            /// Sets its name in the journal.
            #[must_use]
            pub fn named(mut self, name: &str) -> Self {
                self.name = name.to_owned();
                self
            }
        }

        impl $crate::Declaration for Fault {
            type Action = $action;

            fn name(&self) -> &str {
                &self.name
            }

            fn schedule(&self) -> $crate::Schedule {
                $crate::Schedule { skip: self.skip, count: self.count, share: self.share }
            }

            fn action(&self) -> &$action {
                &self.action
            }
        }
    };
}

/// A declared fault, as far as the counting needs it. [`fault!`] implements it.
pub trait Declaration {
    /// What happens to an affected request.
    type Action: Clone;

    /// Its name in the journal.
    fn name(&self) -> &str;

    /// Which of the matching requests it affects.
    fn schedule(&self) -> Schedule;

    /// What happens to an affected request.
    fn action(&self) -> &Self::Action;
}

/// Which of the matching requests a fault affects.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// How many pass before the first is affected.
    pub skip: u64,
    /// How many can be affected after that; `None` for all of them.
    pub count: Option<u64>,
    /// The share of these that is affected; `None` for all of them.
    pub share: Option<f64>,
}

/// Whether a request's text meets a condition. A condition that is left out is met.
pub fn is_met(condition: &Option<String>, text: &str) -> bool {
    condition.as_deref().is_none_or(|pattern| glob::matches(pattern, text))
}

/// Reads one fault or a list of them.
///
/// # Errors
/// One of them is not a fault.
pub fn read<F: DeserializeOwned>(document: Value) -> serde_json::Result<Vec<F>> {
    match document {
        Value::Array(list) => list.into_iter().map(serde_json::from_value).collect(),
        one => serde_json::from_value(one).map(|fault| vec![fault]),
    }
}

/// The effect of a fault on a request.
#[derive(Debug, Clone)]
pub struct Effect<A> {
    /// The fault's name.
    pub name: String,
    /// What happens to the request.
    pub action: A,
}

/// A fault in force, and how many requests it has matched. This is its saved form.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Declared<F> {
    fault: F,
    #[serde(rename = "seen")]
    matched: u64,
}

impl<F: Declaration> Declared<F> {
    /// Whether it can affect no further request.
    fn is_used_up(&self) -> bool {
        let Schedule { skip, count, .. } = self.fault.schedule();
        count.is_some_and(|count| self.matched >= skip.saturating_add(count))
    }
}

/// The faults in force, in the order of their declaration.
#[derive(Debug)]
pub struct Faults<F>(Vec<Declared<F>>);

impl<F> Default for Faults<F> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<F: Declaration + Clone> Faults<F> {
    /// These faults, in force.
    pub fn of(faults: &[F]) -> Self {
        let mut all = Self::default();
        faults.iter().for_each(|fault| all.declare(fault.clone()));
        all
    }

    /// Adds a fault.
    pub fn declare(&mut self, fault: F) {
        self.0.push(Declared { fault, matched: 0 });
    }

    /// The faults with their counts. Those that are used up keep their places, which draws depend on.
    pub fn declared(&self) -> &[Declared<F>] {
        &self.0
    }

    /// Replaces all faults by saved ones.
    pub fn restore(&mut self, declared: Vec<Declared<F>>) {
        self.0 = declared;
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The faults in force, without those that are used up.
    pub fn list(&self) -> Vec<F> {
        let in_force = self.0.iter().filter(|declared| !declared.is_used_up());
        in_force.map(|declared| declared.fault.clone()).collect()
    }

    /// The effect of the first fault that affects a request. Every fault that matches counts the request.
    pub fn affecting(&mut self, seed: u64, matches: impl Fn(&F) -> bool) -> Option<Effect<F::Action>> {
        let mut effect = None;
        let matching = self.0.iter_mut().enumerate().filter(|(_, declared)| matches(&declared.fault));
        for (place, declared) in matching {
            let number = declared.matched;
            let Schedule { skip, share, .. } = declared.fault.schedule();
            let is_due = number >= skip && !declared.is_used_up();
            declared.matched += 1;
            let (name, action) = (declared.fault.name(), declared.fault.action());
            let is_drawn = share.is_none_or(|share| draw(seed, place, name, number) < share);
            if is_due && is_drawn && effect.is_none() {
                effect = Some(Effect { name: name.to_owned(), action: action.clone() });
            }
        }
        effect
    }
}

/// A random number from 0 to 1 that depends only on the arguments, not on earlier draws.
fn draw(seed: u64, place: usize, name: &str, number: u64) -> f64 {
    let mut context = Context::new(&SHA256);
    context.update(&seed.to_be_bytes());
    context.update(format!("fault\0{place} {}\0", name.to_ascii_lowercase()).as_bytes());
    context.update(&number.to_be_bytes());
    let digest = context.finish();
    let drawn = digest.as_ref().iter().take(8).fold(0_u64, |drawn, byte| drawn << 8 | u64::from(*byte));
    (drawn % 1_000_000) as f64 / 1_000_000.0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Faults, is_met};

    #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(tag = "do", rename_all = "camelCase")]
    pub enum FaultAction {
        DropAnswer,
        Throttle { seconds: u32 },
    }

    fault! {
        conditions {
            /// HTTP method.
            method,
            /// Name of the resource.
            resource_type,
        }
        action: FaultAction
    }

    fn dropped() -> Fault {
        Fault::of_all_requests(FaultAction::DropAnswer)
    }

    fn affects(faults: &mut Faults<Fault>, seed: u64) -> bool {
        let matches = |fault: &Fault| is_met(&fault.method, "PUT") && is_met(&fault.resource_type, "disks");
        faults.affecting(seed, matches).is_some()
    }

    #[test]
    fn a_fault_affects_the_requests_between_skip_and_count() {
        let fault =
            Fault { method: Some("put".to_owned()), resource_type: Some("d*".to_owned()), ..dropped() };
        let mut faults = Faults::of(&[fault.after(1).times(2)]);
        assert_eq!([0; 5].map(|_| affects(&mut faults, 1)), [false, true, true, false, false]);
        let other =
            Fault { method: Some("put".to_owned()), resource_type: Some("zones".to_owned()), ..dropped() };
        assert!(!affects(&mut Faults::of(&[other]), 1), "all conditions must be met");
    }

    #[test]
    fn a_used_up_fault_is_not_listed_as_in_force() {
        let mut faults = Faults::of(&[dropped().named("twice").after(1).times(2), dropped().named("always")]);
        let mut listed = Vec::new();
        for _ in 0..4 {
            listed.push(faults.list().len());
            affects(&mut faults, 1);
        }
        assert_eq!(listed, [2, 2, 2, 1]);
        assert_eq!(faults.list()[0].name, "always");
        assert_eq!(faults.declared().len(), 2, "a saved state keeps the place of each, which draws go by");
    }

    #[test]
    fn a_share_is_drawn_from_the_seed() {
        let run = |seed| -> Vec<bool> {
            let mut faults = Faults::of(&[dropped().some(0.25)]);
            (0..400).map(|_| affects(&mut faults, seed)).collect()
        };
        let affected = run(1).into_iter().filter(|affected| *affected).count();
        assert!((70..130).contains(&affected), "{affected}");
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn faults_are_data_and_unknown_members_are_refused() {
        let text = r#"{"resourceType": "kube*", "count": 1, "action": {"do": "throttle", "seconds": 7}}"#;
        let read = |text: &str| super::read::<Fault>(serde_json::from_str(text).unwrap());
        let faults = read(text).unwrap();
        assert_eq!(faults[0].action, FaultAction::Throttle { seconds: 7 });
        assert_eq!(super::read::<Fault>(serde_json::to_value(&faults).unwrap()).unwrap(), faults);
        let problem = read(r#"{"verb": "get", "action": {"do": "dropAnswer"}}"#).unwrap_err().to_string();
        assert!(problem.starts_with("unknown field `verb`, expected one of `name`, `method`"), "{problem}");
    }
}
