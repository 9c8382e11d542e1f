//! The resources in Azure of the types that are created for Services, to check that nothing is left after they are
//! deleted.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use serde_json::Value;
use testkit::World;
use testkit::types::{LOAD_BALANCERS, PUBLIC_IPS, SECURITY_GROUPS};

use super::act::PRIVATE_LINKS;

/// The prefix of the names of foreign resources.
const THEIRS: &str = "theirs-";

/// Load balancers, public IPs, security groups and private link services, and the named parts of each.
#[derive(Debug)]
pub(super) struct Inventory(BTreeSet<String>);

impl Inventory {
    pub(super) fn of(world: &World) -> Self {
        let kinds = [LOAD_BALANCERS, PUBLIC_IPS, SECURITY_GROUPS, PRIVATE_LINKS];
        let documents = kinds.into_iter().flat_map(|kind| world.azure.documents_of_type(kind));
        Self(documents.flat_map(|document| parts(&document)).collect())
    }

    /// The additions and removals since then, except foreign parts and load balancers that others use now.
    pub(super) fn differences(&self, world: &World, shared: &BTreeSet<ResourceId>) -> Vec<String> {
        let shared: BTreeSet<String> = shared.iter().map(|id| id.to_string().to_lowercase()).collect();
        let now = Self::of(world);
        let is_theirs = |one: &&String| {
            shared.contains(*one) || one.rsplit('/').next().is_some_and(|name| name.starts_with(THEIRS))
        };
        let left =
            now.0.difference(&self.0).filter(|one| !is_theirs(one)).map(|one| format!("{one} is left"));
        let lost = self.0.difference(&now.0).map(|one| format!("{one} is gone"));
        left.chain(lost).collect()
    }
}

/// A resource and its named parts, by ID in lower case.
fn parts(document: &Value) -> Vec<String> {
    let id = document["id"].as_str().unwrap_or_default().to_lowercase();
    let lists = document["properties"].as_object().into_iter().flatten();
    let mut all: Vec<String> = lists
        .filter(|(kind, _)| kind.as_str() != "defaultSecurityRules")
        .flat_map(|(kind, list)| {
            let names = list.as_array().into_iter().flatten().filter_map(|item| item["name"].as_str());
            let path = format!("{id}/{kind}");
            names.map(|name| format!("{path}/{name}").to_lowercase()).collect::<Vec<_>>()
        })
        .collect();
    all.push(id);
    all
}
