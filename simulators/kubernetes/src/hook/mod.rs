//! Dynamic admission: hooks that see a request before it takes effect, and may change or refuse it. A hook is a
//! function in this process ([`Kubernetes::admission_hook`]) or a webhook that a MutatingWebhookConfiguration or a
//! ValidatingWebhookConfiguration registers; both are matched and called in the same way (Kubernetes: "Dynamic
//! Admission Control").

mod admit;
mod condition;
mod function;
mod registration;
mod review;
mod rule;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use serde_json::Value;

pub use function::{AdmissionHook, AdmissionRequest, Decision};

pub(crate) use admit::Admission;

use crate::kubernetes::Kubernetes;
use crate::object::Object;
use crate::registry::Kind;
use crate::selector::LabelSelector;
use crate::verbs::State;
use crate::webhook::{CallError, ClientConfig};
use condition::Condition;
use function::Function;
use rule::Rule;

/// When a hook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Before the object is completed and validated, one hook after the other.
    Mutating,
    /// When it is complete and valid, all hooks at once.
    Validating,
}

/// The operation of a request, as registrations name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }

    /// The kind of this operation's options.
    fn options_kind(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Delete => "DeleteOptions",
        }
    }
}

/// What a hook calls.
enum Call {
    Function(Function),
    /// A webhook; with an invalid `clientConfig` each call fails.
    Webhook(Result<ClientConfig, CallError>),
}

/// A hook, ready to be matched and called.
pub(crate) struct Hook {
    name: String,
    phase: Phase,
    rules: Vec<Rule>,
    namespaces: LabelSelector,
    objects: LabelSelector,
    /// Whether a rule also fits requests for another version of its resource.
    equivalent: bool,
    /// Whether a request is allowed if the hook cannot be called (`failurePolicy: Ignore`).
    optional: bool,
    timeout: Duration,
    /// Whether it may be called for a dry run.
    dry_run: bool,
    /// Whether it is called again if a later hook changed the object (`reinvocationPolicy: IfNeeded`).
    reinvocable: bool,
    conditions: Vec<Condition>,
    call: Call,
}

/// The object of a request, and its operation.
pub(crate) struct Subject<'a> {
    pub(crate) kind: &'a Arc<Kind>,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) operation: Operation,
    pub(crate) object: Option<Value>,
    pub(crate) old: Option<Arc<Object>>,
}

impl Subject<'_> {
    /// Whether the subresource has a type of its own, the same in all versions of the kind.
    fn is_of_its_own(&self) -> bool {
        matches!(self.subresource, "scale" | "binding" | "eviction" | "token")
    }
}

/// The hooks of one server.
pub(crate) type AllHooks = RwLock<Hooks>;

/// The registered hooks, cached until a registration changes.
#[derive(Default)]
pub(crate) struct Hooks {
    functions: Vec<Arc<Hook>>,
    registered: Mutex<Registered>,
}

#[derive(Default)]
struct Registered {
    /// Resource versions of the newest changes of both configurations.
    versions: [u64; 2],
    hooks: Vec<Arc<Hook>>,
}

impl Kubernetes {
    /// Adds a hook that is a function in this process. Functions are called before webhooks, in the order in which they
    /// were added. They see requests through [`Kubernetes::router`] and over sockets, but not writes through this
    /// handle ([`Kubernetes::create`] and its kin).
    pub fn admission_hook(&self, hook: AdmissionHook) {
        self.shared.hooks.write().functions.push(Arc::new(hook.into_hook()));
    }

    /// The hooks whose rules match a request with one of these operations, in the order in which they are called.
    pub(crate) fn hooks_for(
        &self,
        kind: &Arc<Kind>,
        subresource: &str,
        namespace: &str,
        operations: &[Operation],
    ) -> Vec<Arc<Hook>> {
        if registration::is_exempt(kind) {
            return Vec::new();
        }
        let all: Vec<Arc<Hook>> = {
            let hooks = self.shared.hooks.read();
            let mut state = self.shared.state.lock();
            let mut registered = hooks.registered.lock();
            registered.refresh(&mut state);
            hooks.functions.iter().chain(&registered.hooks).cloned().collect()
        };
        if all.is_empty() {
            return all;
        }
        let equivalents = self.equivalents(kind);
        let fits = |hook: &Arc<Hook>| {
            let mut operations = operations.iter();
            operations.any(|operation| {
                hook.matching_kind(kind, &equivalents, subresource, namespace, *operation).is_some()
            })
        };
        all.into_iter().filter(fits).collect()
    }

    /// Drops the cached registrations after the state was replaced.
    pub(crate) fn forget_registrations(&self) {
        *self.shared.hooks.read().registered.lock() = Registered::default();
    }

    /// The same resource in other versions, or in another group that serves the same objects.
    fn equivalents(&self, kind: &Arc<Kind>) -> Vec<Arc<Kind>> {
        let state = self.shared.state.lock();
        let same = |other: &&Arc<Kind>| other.shelf == kind.shelf && !Arc::ptr_eq(other, kind);
        state.registry.kinds().iter().filter(same).cloned().collect()
    }
}

impl Registered {
    fn refresh(&mut self, state: &mut State) {
        let versions = registration::SHELVES.map(|(shelf, _)| state.store.shelf(&shelf.into()).newest());
        if versions != self.versions {
            self.hooks = registration::hooks(state);
            self.versions = versions;
        }
    }
}

impl Hook {
    /// The kind in whose form the hook sees the request; `None` if its rules do not match.
    fn matching_kind(
        &self,
        kind: &Arc<Kind>,
        equivalents: &[Arc<Kind>],
        subresource: &str,
        namespace: &str,
        operation: Operation,
    ) -> Option<Arc<Kind>> {
        let fits = |kind: &Arc<Kind>| {
            self.rules.iter().any(|rule| rule.fits(kind, subresource, namespace, operation))
        };
        if fits(kind) {
            return Some(Arc::clone(kind));
        }
        if self.equivalent { equivalents.iter().find(|other| fits(other)).cloned() } else { None }
    }

    /// Whether its selectors match the labels of the namespace and of the object, new or old.
    fn selects(&self, subject: &Subject<'_>, namespace: Option<&Value>) -> bool {
        let selected = |object: Option<&Value>| object.is_some_and(|object| self.objects.matches(object));
        let by_namespace = self.namespaces.is_empty()
            || namespace.is_none_or(|namespace| self.namespaces.matches(namespace));
        by_namespace
            && (self.objects.is_empty()
                || selected(subject.object.as_ref())
                || selected(subject.old.as_deref().map(Object::value)))
    }
}
