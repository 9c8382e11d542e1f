//! Hooks, ready to be matched and called.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use super::condition::Condition;
use super::function::Function;
use super::rule::Rule;
use crate::selector::LabelSelector;
use crate::webhook::{CallError, ClientConfig};

/// When a hook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Before the object is completed and validated, one hook after the other.
    Mutating,
    /// When it is complete and valid, all hooks at once.
    Validating,
}

/// What a hook calls.
pub(super) enum HookTarget {
    Function(Function),
    /// A webhook; with an invalid `clientConfig` each call fails.
    Webhook(Result<ClientConfig, CallError>),
}

/// A hook, ready to be matched and called.
pub(crate) struct Hook {
    pub(super) name: String,
    pub(super) phase: Phase,
    pub(super) rules: Vec<Rule>,
    pub(super) namespaces: LabelSelector,
    pub(super) objects: LabelSelector,
    /// Whether a rule also fits requests for another version of its resource.
    pub(super) equivalent: bool,
    /// Whether a request is allowed if the hook cannot be called (`failurePolicy: Ignore`).
    pub(super) optional: bool,
    pub(super) timeout: Duration,
    /// Whether it may be called for a dry run.
    pub(super) dry_run: bool,
    /// Whether it is called again if a later hook changed the object (`reinvocationPolicy: IfNeeded`).
    pub(super) reinvocable: bool,
    pub(super) conditions: Vec<Condition>,
    pub(super) call: HookTarget,
}

/// The hooks of one server.
pub(crate) type AllHooks = RwLock<Hooks>;

/// The registered hooks, cached until a registration changes.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(super) functions: Vec<Arc<Hook>>,
    pub(super) registrations: Mutex<Registrations>,
}

/// The hooks that are registered as objects.
#[derive(Default)]
pub(super) struct Registrations {
    /// Resource versions of the newest changes of both configurations.
    pub(super) versions: [u64; 2],
    pub(super) hooks: Vec<Arc<Hook>>,
}
