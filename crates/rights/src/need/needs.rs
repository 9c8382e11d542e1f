//! The rights that the configuration of one cluster needs.

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;

use super::subject::{ObjectName, Subject};
use super::{features, scopes};
use crate::azure::{GRANTS, Place};
use crate::kubernetes::{Named, Naming, Role, USUAL};
use crate::{Feature, Program};

/// An action with its reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reasons {
    /// What it is for.
    pub purposes: BTreeSet<&'static str>,
    /// Whether Azure checks it beside a call.
    pub is_join: bool,
}

/// What a cluster needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Needs {
    /// Whose rights they are.
    pub program: Program,
    /// The cluster's name.
    pub cluster: String,
    /// How many Services with load balancers, or objects of volumes, and how many Nodes were known.
    pub known: [usize; 2],
    /// The features in use, each with the reason.
    pub features: BTreeMap<Feature, String>,
    /// The actions in Azure, by scope.
    pub azure: BTreeMap<ResourceId, BTreeMap<&'static str, Reasons>>,
    /// The Lease of the election and the Secret with azure.json, where flags name them.
    pub named: [Option<ObjectName>; 2],
    /// What to know beside.
    pub notes: Vec<String>,
}

/// What a cluster's controller manager needs.
pub fn needs(subject: &Subject<'_>) -> Needs {
    let (features, mut notes) = features::features(subject);
    let places = scopes::Scopes::of(subject, &mut notes);
    let azure = gather(Program::ControllerManager, &features, |place| places.of_place(place));
    let named = [subject.run.election.clone(), subject.run.secret.clone()];
    let served = subject.services.iter().filter(|service| service.wants_load_balancer()).count();
    let known = [served, subject.nodes.len()];
    let cluster = subject.cluster.name.clone();
    Needs { program: Program::ControllerManager, cluster, known, features, azure, named, notes }
}

/// The actions of a program with these features, by scope.
pub(super) fn gather(
    program: Program,
    features: &BTreeMap<Feature, String>,
    scopes: impl Fn(Place) -> Vec<ResourceId>,
) -> BTreeMap<ResourceId, BTreeMap<&'static str, Reasons>> {
    let mut azure: BTreeMap<ResourceId, BTreeMap<&'static str, Reasons>> = BTreeMap::new();
    let grants = GRANTS.iter().filter(|grant| grant.program == program);
    for grant in grants.filter(|grant| grant.is_needed(|feature| features.contains_key(&feature))) {
        for scope in scopes(grant.place) {
            let actions = azure.entry(scope.clone()).or_default();
            for action in grant.actions {
                let reasons = actions.entry(action).or_default();
                reasons.purposes.insert(grant.purpose);
                reasons.is_join |= grant.is_join;
            }
        }
    }
    without_repetitions(&mut azure);
    azure
}

/// A right on a subscription is one on its groups, too.
fn without_repetitions(azure: &mut BTreeMap<ResourceId, BTreeMap<&'static str, Reasons>>) {
    let above = azure.clone();
    for (scope, actions) in azure.iter_mut() {
        let is_above = |other: &ResourceId| other != scope && scope.is_within(other);
        actions.retain(|action, _| {
            !above.iter().any(|(other, actions)| is_above(other) && actions.contains_key(action))
        });
    }
    azure.retain(|_, actions| !actions.is_empty());
}

fn named<'a>(object: &'a Option<ObjectName>, usual: Named<'a>) -> Named<'a> {
    object.as_ref().map_or(usual, |it| Named { name: &it.name, namespace: &it.namespace })
}

impl Needs {
    /// The roles in Kubernetes.
    pub fn kubernetes(&self) -> Vec<Role<'_>> {
        let [lease, secret] = &self.named;
        let naming = Naming { lease: named(lease, USUAL.lease), secret: named(secret, USUAL.secret) };
        let of = |program: &Program| {
            let program = *program;
            self.features.keys().flat_map(move |feature| Role::of(program, *feature, naming))
        };
        self.programs().iter().flat_map(of).collect()
    }

    /// The programs whose roles in Kubernetes belong to it.
    fn programs(&self) -> &'static [Program] {
        match self.program {
            Program::DiskController => &[Program::DiskController, Program::DiskNode],
            _ => &[Program::ControllerManager],
        }
    }

    /// The service accounts that the roles in Kubernetes are bound to.
    pub fn accounts(&self) -> Vec<&'static str> {
        self.programs().iter().map(|program| program.account()).collect()
    }

    /// The roles in Azure: one for each set of actions, with the scopes that have it.
    pub fn azure_roles(&self) -> Vec<AzureRole> {
        let mut roles: Vec<AzureRole> = Vec::new();
        for (scope, actions) in &self.azure {
            let actions: BTreeSet<&'static str> = actions.keys().copied().collect();
            match roles.iter_mut().find(|role| role.actions == actions) {
                Some(role) => role.scopes.push(scope.clone()),
                None => {
                    let place = scope.group_name().unwrap_or("subscription");
                    let name = format!("{} {} {place}", self.program.name(), self.cluster);
                    roles.push(AzureRole { name, actions, scopes: vec![scope.clone()] });
                }
            }
        }
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for role in &mut roles {
            let count = seen.entry(role.name.clone()).or_default();
            *count += 1;
            if *count > 1 {
                // Groups of the same name in two subscriptions.
                role.name = format!("{} {count}", role.name);
            }
        }
        roles
    }
}

/// A role in Azure for one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AzureRole {
    /// Its name.
    pub name: String,
    /// Its actions.
    pub actions: BTreeSet<&'static str>,
    /// Where it is assigned.
    pub scopes: Vec<ResourceId>,
}
