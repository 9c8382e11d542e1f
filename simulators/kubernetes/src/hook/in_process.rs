//! Hooks that are functions in this process, for controllers that are tested together with the server.

use std::sync::Arc;
use std::time::Duration;

use super::function::{AdmissionRequest, Decision, Function};
use super::hooks::{Hook, HookTarget, Phase};
use super::rule::Rule;
use crate::selector::LabelSelector;
use crate::server::handle::Kubernetes;

/// A hook that is a function in this process: the requests that it matches, and its function.
pub struct AdmissionHook {
    name: String,
    phase: Phase,
    rules: Vec<Rule>,
    function: Function,
}

impl AdmissionHook {
    /// A hook that may change objects before they are completed and validated.
    pub fn mutating<F>(
        name: impl Into<String>,
        function: impl Fn(AdmissionRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Decision> + Send + 'static,
    {
        Self::new(name.into(), Phase::Mutating, Arc::new(move |request| Box::pin(function(request))))
    }

    /// A hook that sees objects as they would be stored, and may refuse them.
    pub fn validating<F>(
        name: impl Into<String>,
        function: impl Fn(AdmissionRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Decision> + Send + 'static,
    {
        Self::new(name.into(), Phase::Validating, Arc::new(move |request| Box::pin(function(request))))
    }

    fn new(name: String, phase: Phase, function: Function) -> Self {
        Self { name, phase, rules: Vec::new(), function }
    }

    /// Matches these operations (`CREATE`, `UPDATE`, `DELETE`, `*`) on these resources (`pods`, `pods/status`, `*`) of
    /// a group, in all its versions. May be called several times; without it the hook matches nothing.
    #[must_use]
    pub fn on(mut self, operations: &[&str], group: &str, resources: &[&str]) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        self.rules.push(Rule {
            operations: owned(operations),
            groups: owned(&[group]),
            versions: owned(&["*"]),
            resources: owned(resources),
            ..Rule::default()
        });
        self
    }

    fn into_hook(self) -> Hook {
        Hook {
            name: self.name,
            phase: self.phase,
            rules: self.rules,
            namespaces: LabelSelector::default(),
            objects: LabelSelector::default(),
            equivalent: false,
            optional: false,
            timeout: Duration::MAX,
            dry_run: true,
            reinvocable: false,
            conditions: Vec::new(),
            call: HookTarget::Function(self.function),
        }
    }
}

impl Kubernetes {
    /// Adds a hook that is a function in this process. Functions are called before webhooks, in the order in which they
    /// were added. They see requests through [`Kubernetes::router`] and over sockets, but not writes through this
    /// handle ([`Kubernetes::create`] and its kin).
    pub fn admission_hook(&self, hook: AdmissionHook) {
        self.shared.hooks.write().functions.push(Arc::new(hook.into_hook()));
    }
}
