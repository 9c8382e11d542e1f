//! A rule of a role, and the feature that needs it.

use crate::{Feature, Program};

/// Where a rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// In the whole cluster.
    Cluster,
    /// In the namespace of the election, by default kube-system.
    ElectionNamespace,
    /// In the namespace of the Secret with azure.json, by default kube-system.
    SecretNamespace,
    /// In kube-system.
    KubeSystem,
    /// In each namespace with Secrets of account keys: files have `default`.
    AccountKeyNamespaces,
}

impl Reach {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Cluster,
        Self::ElectionNamespace,
        Self::SecretNamespace,
        Self::KubeSystem,
        Self::AccountKeyNamespaces,
    ];
}

/// A rule of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The programs.
    pub programs: &'static [Program],
    /// The feature that needs it.
    pub feature: Feature,
    /// Where it applies.
    pub reach: Reach,
    /// The API group; empty for the core's.
    pub group: &'static str,
    /// The resources, with subresources.
    pub resources: &'static [&'static str],
    /// The only objects that it applies to, by name; empty for all.
    pub names: &'static [&'static str],
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// What for.
    pub purpose: &'static str,
}
