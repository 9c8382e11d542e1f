//! DDoS protection plans, which networks and addresses name (Azure REST reference, "Ddos Protection Plans").

use azure_engine::document::{Object, text};
use azure_engine::error::{Code, Refusal};
use azure_engine::member_table::Holds::Derived;
use azure_engine::member_table::Member;
use azure_engine::names::NameRule;
use azure_engine::provider::{AzureState, Expand, Proposal, Protocol, Provider, Record, ResourceType};
use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::network::protocol;

const RESOURCE_TYPE: &str = "Microsoft.Network/ddosProtectionPlans";

struct Plans;

const PROTOCOL: Protocol = protocol(RESOURCE_TYPE, "DdosProtectionPlan");

static MEMBERS: [Member; 4] = [
    Member::new("provisioningState", Derived),
    Member::new("publicIPAddresses", Derived),
    Member::new("resourceGuid", Derived),
    Member::new("virtualNetworks", Derived),
];

/// Who can name a plan, where, and in which member the plan shows it.
const USERS: [(&str, &str, &str); 2] = [
    ("Microsoft.Network/virtualNetworks", "properties/ddosProtectionPlan/id", "virtualNetworks"),
    (
        "Microsoft.Network/publicIPAddresses",
        "properties/ddosSettings/ddosProtectionPlan/id",
        "publicIPAddresses",
    ),
];

static NAMES: [NameRule; 1] = [NameRule {
    of: "*",
    fits: |name| azure_engine::names::ordinary(name, 80),
    refusal: |_, name| BAD_NAME.details(format_args!("Resource name {name} is invalid.")),
}];

const BAD_NAME: Code = Code::azures(400, "InvalidResourceName");
const IN_USE: Code = Code::ours(400, "InUseDdosProtectionPlanCannotBeDeleted");

pub(crate) fn provider() -> Provider {
    Provider { names: &NAMES, ..Provider::new("Microsoft.Network", vec![&Plans]) }
}

impl ResourceType for Plans {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn members(&self) -> &'static [Member] {
        &MEMBERS
    }

    fn write(&self, _azure: &AzureState, proposal: Proposal<'_>) -> Result<Value, Refusal> {
        Ok(Value::Object(proposal.body))
    }

    fn check_delete(&self, azure: &AzureState, record: &Record) -> Result<(), Refusal> {
        let user = USERS.iter().find_map(|(of, path, _)| users(azure, &record.id, of, path).next());
        match user {
            None => Ok(()),
            Some(user) => Err(IN_USE.details(format_args!(
                "DDoS protection plan {} cannot be deleted because it is in use by {user}.",
                record.id
            ))),
        }
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        let guid = azure.seed.guid("resource", record.id.as_str(), record.incarnation);
        let Some(Value::Object(properties)) = document.get_mut("properties") else { return };
        properties.insert("resourceGuid".into(), guid.into());
        for (of, path, member) in USERS {
            let users: Vec<Value> =
                users(azure, &record.id, of, path).map(|user| json!({ "id": user })).collect();
            if !users.is_empty() {
                properties.insert(member.into(), users.into());
            }
        }
    }
}

/// The resources of a type that name a plan.
fn users<'a>(
    azure: &'a AzureState,
    plan: &'a ResourceId,
    of: &'a str,
    path: &'a str,
) -> impl Iterator<Item = &'a ResourceId> {
    let named = move |record: &&Record| {
        text(&record.body, path).is_some_and(|named| named.eq_ignore_ascii_case(plan.as_str()))
    };
    azure.store.of_type(of).filter(named).map(|record| &record.id)
}
