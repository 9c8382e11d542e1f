//! DDoS protection plans, which networks and addresses name (Azure REST reference, "Ddos Protection Plans").

use azure_engine::provider::{Protocol, Provider};
use azure_engine::refusal::Code;
use azure_engine::types::member_table::Holds::{Guid, Users};
use azure_engine::types::member_table::Member;
use azure_engine::types::names::NameRule;

use crate::network::protocol;
use crate::plain::Plain;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("example.json"),
    in_use: Some(|id, user, _| {
        Code::ours(400, "InUseDdosProtectionPlanCannotBeDeleted").details(format_args!(
            "DDoS protection plan {id} cannot be deleted because it is in use by {user}."
        ))
    }),
    ..protocol("Microsoft.Network/ddosProtectionPlans", "DdosProtectionPlan")
};

static MEMBERS: [Member; 3] = [
    Member::new("publicIPAddresses", Users("publicIPAddresses")),
    Member::new("resourceGuid", Guid),
    Member::new("virtualNetworks", Users("virtualNetworks")),
];

static PLANS: Plain = Plain::of(&PROTOCOL);

static NAMES: [NameRule; 1] = [NameRule {
    of: "*",
    fits: |name| azure_engine::types::names::ordinary(name, 80),
    refusal: |_, name| {
        Code::azures(400, "InvalidResourceName").details(format_args!("Resource name {name} is invalid."))
    },
}];

pub(crate) fn provider() -> Provider {
    Provider { names: &NAMES, ..Provider::new("Microsoft.Network", vec![&PLANS]) }
}
