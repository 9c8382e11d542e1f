//! Network security groups (Azure REST reference, "Network Security Groups").

pub(crate) mod rule;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::network::application_security_group;
use crate::network::shared::{
    checks::check_unused, children::take_children, protocol::protocol, resource_guid::resource_guid,
};
use azure_engine::document::{Object, items, known_members, name, strip, take_properties};
use azure_engine::error::{Code, Refusal};
use azure_engine::provider::{AzureState, ChildCollection, Expand, Proposal, Protocol, Record, ResourceType};
use azure_engine::reference::{Reference, is_of};

const IN_USE: Code = Code::azures(400, "InUseNetworkSecurityGroupCannotBeDeleted");
const TOO_MANY_PREFIXES: Code = Code::ours(400, "NetworkSecurityGroupAddressPrefixCountLimitReached");
const TOO_MANY_RULES: Code = Code::ours(400, "NetworkSecurityGroupRuleCountLimitReached");

const MEMBERS: [&str; 8] = [
    "defaultSecurityRules",
    "flowLogs",
    "flushConnection",
    "networkInterfaces",
    "provisioningState",
    "resourceGuid",
    "securityRules",
    "subnets",
];

pub(crate) struct SecurityGroups;

const PROTOCOL: Protocol = Protocol {
    child_collections: &[
        ChildCollection { name: "securityRules", writable: true, back_references: &[] },
        ChildCollection { name: "defaultSecurityRules", writable: false, back_references: &[] },
    ],
    ..protocol("Microsoft.Network/networkSecurityGroups", "NetworkSecurityGroup")
};

impl ResourceType for SecurityGroups {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let id = proposal.id;
        let mut properties = take_properties(&mut proposal.body);
        known_members(&mut properties, &MEMBERS, "NetworkSecurityGroup")?;
        strip(
            &mut properties,
            &[
                "defaultSecurityRules",
                "flowLogs",
                "networkInterfaces",
                "provisioningState",
                "resourceGuid",
                "subnets",
            ],
        );
        resource_guid(azure, &proposal, &mut properties);
        let rules = take_children(id, &mut properties, "securityRules")?
            .unwrap_or_default()
            .into_iter()
            .map(|child| rule::normalise(id, child))
            .collect::<Result<Vec<Value>, Refusal>>()?;
        let most = azure.limit("network.securityRulesPerGroup");
        TOO_MANY_RULES.details_when(
            rules.len() as u64 > most,
            format_args!("Cannot create more than {most} security rules in network security group {id}."),
        )?;
        check_prefixes(azure, id, &rules)?;
        application_security_group::check_rules(azure, id, &rules)?;
        rule::check_conflicts(&rules)?;
        properties.insert("securityRules".into(), rules.into());
        properties.insert("defaultSecurityRules".into(), rule::defaults().into());
        let mut body = proposal.body;
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        items(&record.body, "properties/securityRules")
            .iter()
            .flat_map(|rule| rule::references_of(&record.id.child("securityRules", name(rule)), rule))
            .collect()
    }

    fn check_delete(&self, azure: &AzureState, record: &Record) -> Result<(), Refusal> {
        check_unused(azure, &record.id, IN_USE, |users| {
            format!(
                "Network security group {} cannot be deleted because it is in use by the following resources: {}. In \
                 order to delete the Network security group, remove the association with the resource(s).",
                record.id,
                users.join(", ")
            )
        })
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) else { return };
        for (member, wanted) in [("subnets", "/subnets/"), ("networkInterfaces", "/networkinterfaces/")] {
            let users: Vec<Value> = azure
                .store
                .referrers(&record.id)
                .filter(|referrer| is_of(&referrer.from, wanted))
                .map(|referrer| json!({ "id": referrer.from }))
                .collect();
            if !users.is_empty() {
                properties.insert(member.into(), users.into());
            }
        }
    }
}

/// Sources and destinations of all rules together are bounded, each for itself; single and plural
/// members both count.
fn check_prefixes(azure: &AzureState, id: &ResourceId, rules: &[Value]) -> Result<(), Refusal> {
    let most = azure.limit("network.prefixesPerSecurityGroup");
    for side in ["source", "destination"] {
        let count = |rule: &Value| {
            let one = rule["properties"].get(format!("{side}AddressPrefix")).is_some();
            items(rule, &format!("properties/{side}AddressPrefixes")).len() as u64 + u64::from(one)
        };
        let wanted: u64 = rules.iter().map(count).sum();
        TOO_MANY_PREFIXES.details_when(wanted > most, format_args!(
                    "Network security group {id} has {wanted} {side} addresses and ranges in its rules; it cannot have \
                     more than {most}."
                ))?;
    }
    Ok(())
}
