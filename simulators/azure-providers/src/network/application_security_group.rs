//! Application security groups: names for sets of network interfaces (Azure REST reference,
//! "Application Security Groups").

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;
use serde_json::Value;

use super::shared::protocol::protocol;
use azure_engine::document::{items, name, stored_reference};
use azure_engine::provider::{AzureState, Protocol};
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::store::reference::is_of;
use azure_engine::types::member_table::Holds::Guid;
use azure_engine::types::member_table::Member;

const TOO_MANY_GROUPS: Code = Code::ours(400, "ApplicationSecurityGroupCountLimitReached");

pub(crate) struct ApplicationSecurityGroups;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("application_security_group.json"),
    in_use: Some(|id, user, _| {
        Code::ours(400, "InUseApplicationSecurityGroupCannotBeDeleted").details(format_args!(
            "Application security group {id} cannot be deleted because it is in use by {user}."
        ))
    }),
    ..protocol("Microsoft.Network/applicationSecurityGroups", "ApplicationSecurityGroup")
};

static MEMBERS: [Member; 1] = [Member::new("resourceGuid", Guid)];

shape!(ApplicationSecurityGroups, PROTOCOL, without Writing, Presenting, Acting);

/// The groups that a document lists under `path`.
fn listed(document: &Value, path: &str) -> BTreeSet<ResourceId> {
    items(document, path).iter().filter_map(|item| stored_reference(item, "id")).collect()
}

/// The virtual network of the members of a group, without those of `but`.
fn network_of(azure: &AzureState, group: &ResourceId, but: Option<&ResourceId>) -> Option<ResourceId> {
    // Rules name groups, too, and there may be a thousand of them.
    let members = azure
        .store
        .referrers(group)
        .filter(|user| !is_of(&user.from, "/securityrules/"))
        .filter(|member| but.is_none_or(|but| !member.from.is_within(but)));
    members
        .filter_map(|member| {
            let holder = azure.store.holder(&member.from)?;
            let references = holder.resource_type.references(holder);
            let subnet =
                references.into_iter().find(|one| one.from == member.from && is_of(&one.to, "/subnets/"));
            subnet?.to.parent()
        })
        .next()
}

/// Checks the groups that the IP configurations of one interface are in: not too many, everywhere the
/// same, and all of the interface's network.
pub(crate) fn check_members(
    azure: &AzureState,
    interface: &ResourceId,
    configurations: &[Value],
) -> Result<()> {
    let most = azure.limit("network.applicationSecurityGroupsPerIpConfiguration");
    let mut first: Option<BTreeSet<ResourceId>> = None;
    for configuration in configurations {
        let groups = listed(configuration, "properties/applicationSecurityGroups");
        TOO_MANY_GROUPS.details_when(groups.len() as u64 > most, format_args!(
                    "IP configuration {} of {interface} is in {} application security groups; it cannot be in more than \
                     {most}.",
                    name(configuration),
                    groups.len()
                ))?;
        Code::ours(400, "AllIpConfigurationsOnANicMustBelongToTheSameApplicationSecurityGroups")
            .details_when(
                first.as_ref().is_some_and(|first| *first != groups),
                format_args!(
                    "All IP configurations of {interface} must be in the same application security \
             groups; {} is in others.",
                    name(configuration)
                ),
            )?;
        let network =
            stored_reference(configuration, "properties/subnet/id").and_then(|subnet| subnet.parent());
        for group in &groups {
            let theirs = network_of(azure, group, Some(interface));
            if let (Some(own), Some(theirs)) = (&network, theirs)
                && *own != theirs
            {
                return Err(Code::ours(400, "AllMembersOfApplicationSecurityGroupMustBeFromSameVnet")
                    .details(format_args!(
                        "{interface} is in {own} and cannot join {group}, whose members are in {theirs}."
                    )));
            }
        }
        first.get_or_insert(groups);
    }
    Ok(())
}

/// Checks the groups that the rules of a security group name: not too many, and those of one rule all of
/// one network.
pub(crate) fn check_rules(azure: &AzureState, security_group: &ResourceId, rules: &[Value]) -> Result<()> {
    let per_rule = azure.limit("network.applicationSecurityGroupsPerRule");
    let in_all = azure.limit("network.applicationSecurityGroupsPerSecurityGroup");
    let mut all = BTreeSet::new();
    let mut known: BTreeMap<ResourceId, Option<ResourceId>> = BTreeMap::new();
    for rule in rules {
        let mut networks = BTreeSet::new();
        for side in ["source", "destination"] {
            let groups = listed(rule, &format!("properties/{side}ApplicationSecurityGroups"));
            if groups.len() as u64 > per_rule {
                return Err(too_many(
                    &security_group.child("securityRules", name(rule)),
                    groups.len(),
                    per_rule,
                ));
            }
            networks.extend(groups.iter().filter_map(|group| {
                known.entry(group.clone()).or_insert_with(|| network_of(azure, group, None)).clone()
            }));
            all.extend(groups);
        }
        if networks.len() > 1 {
            let networks: Vec<&str> = networks.iter().map(ResourceId::as_str).collect();
            return Err(Code::azures(400, "AllApplicationSecurityGroupsInSecurityRuleMustBeFromSameVnet")
                .details(format_args!(
                    "Security rule {} of {security_group} names application security groups of several \
             virtual networks ({}).",
                    name(rule),
                    networks.join(", ")
                )));
        }
    }
    if all.len() as u64 > in_all { Err(too_many(security_group, all.len(), in_all)) } else { Ok(()) }
}

fn too_many(id: &ResourceId, named: usize, most: u64) -> Refusal {
    TOO_MANY_GROUPS.details(format_args!(
        "{id} names {named} application security groups; it cannot name more than {most}."
    ))
}
