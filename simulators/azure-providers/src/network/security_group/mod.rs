//! Network security groups (Azure REST reference, "Network Security Groups").

pub(crate) mod rule;

use azure_types::ResourceId;
use serde_json::Value;

use crate::network::application_security_group;
use crate::network::shared::{children::each_child, protocol::protocol};
use azure_engine::document::{into_object, items, take_properties};
use azure_engine::provider::{AzureState, ChildCollection, Proposal, Protocol, Writing};
use azure_engine::refusal::{Code, Result};
use azure_engine::types::member_table::Holds::{Children, Derived, Flag, Guid, Users};
use azure_engine::types::member_table::Member;

pub(crate) struct SecurityGroups;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("example.json"),
    child_collections: &[
        ChildCollection { name: "securityRules", writable: true, back_references: &[] },
        ChildCollection { name: "defaultSecurityRules", writable: false, back_references: &[] },
    ],
    in_use: Some(|id, _, users| {
        Code::azures(400, "InUseNetworkSecurityGroupCannotBeDeleted").details(format_args!(
            "Network security group {id} cannot be deleted because it is in use by the following resources: {users}. In \
             order to delete the Network security group, remove the association with the resource(s)."
        ))
    }),
    ..protocol("Microsoft.Network/networkSecurityGroups", "NetworkSecurityGroup")
};

static MEMBERS: [Member; 7] = [
    Member::new("defaultSecurityRules", Derived),
    Member::new("flowLogs", Derived),
    Member::new("flushConnection", Flag),
    Member::new("networkInterfaces", Users("networkInterfaces")),
    Member::new("resourceGuid", Guid),
    Member::new("securityRules", Children(&rule::MEMBERS)).or_empty(),
    Member::new("subnets", Users("subnets")),
];

shape!(SecurityGroups, PROTOCOL, without Presenting, Acting);

impl Writing for SecurityGroups {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let id = proposal.id;
        let mut properties = take_properties(&mut proposal.body);
        for (rule, properties) in each_child(id, &mut properties, "securityRules") {
            rule::check(&rule, properties)?;
        }
        properties.insert("defaultSecurityRules".into(), rule::defaults().into());
        let properties = Value::Object(properties);
        let rules = items(&properties, "securityRules");
        let most = azure.limit("network.securityRulesPerGroup");
        Code::ours(400, "NetworkSecurityGroupRuleCountLimitReached").details_when(
            rules.len() as u64 > most,
            format_args!("Cannot create more than {most} security rules in network security group {id}."),
        )?;
        check_prefixes(azure, id, rules)?;
        application_security_group::check_rules(azure, id, rules)?;
        rule::check_conflicts(rules)?;
        Ok(proposal.stored(into_object(properties)))
    }
}

/// Sources and destinations of all rules together are bounded, each for itself; single and plural
/// members both count.
fn check_prefixes(azure: &AzureState, id: &ResourceId, rules: &[Value]) -> Result<()> {
    let most = azure.limit("network.prefixesPerSecurityGroup");
    for side in ["source", "destination"] {
        let count = |rule: &Value| {
            let one = rule["properties"].get(format!("{side}AddressPrefix")).is_some();
            items(rule, &format!("properties/{side}AddressPrefixes")).len() as u64 + u64::from(one)
        };
        let wanted: u64 = rules.iter().map(count).sum();
        Code::ours(400, "NetworkSecurityGroupAddressPrefixCountLimitReached").details_when(
            wanted > most,
            format_args!(
                "Network security group {id} has {wanted} {side} addresses and ranges in its rules; \
             it cannot have more than {most}."
            ),
        )?;
    }
    Ok(())
}
