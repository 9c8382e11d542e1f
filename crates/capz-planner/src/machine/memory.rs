//! The configuration that was applied before, as annotations of the AzureMachine record it: without them, withdrawn
//! tags could not be distinguished from tags of other writers, nor the machine's own port from one that another writer
//! set.

use std::collections::BTreeMap;

use capz_api::Tags;
use serde_json::json;

use super::inbound_nat_rule::{SSH_PORT, known_port};
use super::scope::MachineScope;
use crate::observed::{Observation, ObservedResources};
use crate::owner_tags::{Borne, OWNER_TAGS};

/// Additional tags of the virtual machine, and of what belongs to it: `{"<key>": "<value>"}`.
pub const TAGS: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-tags-vm";

/// The annotations once the machine is as desired.
pub fn remembered(scope: &MachineScope<'_>, observed: &ObservedResources) -> BTreeMap<String, String> {
    let tags = json!(scope.additional_tags()).to_string();
    let port = known_port(scope, observed);
    let port = port.map(|port| (SSH_PORT.to_owned(), port.to_string()));
    let borne = match observed.get(&scope.vm()) {
        Observation::Present(held) => Borne::of(scope.cluster.claimant(), held).word(),
        Observation::Absent | Observation::Unknown => None,
    };
    let borne = borne.map(|word| (OWNER_TAGS.to_owned(), word.to_owned()));
    std::iter::once((TAGS.to_owned(), tags)).chain(port).chain(borne).collect()
}

/// The tags in an annotation. An annotation that cannot be read counts as empty: its tags stay in Azure.
pub(crate) fn applied_tags(memory: Option<&String>) -> Tags {
    memory.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}
