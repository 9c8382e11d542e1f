//! IP groups: addresses under a name, for the rules of firewalls (Azure REST reference, "Ip Groups").

use azure_engine::document::{Object, items, take_properties};
use azure_engine::provider::{
    AzureState, Concurrency, EtagForm, Expand, Polling, Presenting, Proposal, Protocol, Provider, Record,
    Writing,
};
use azure_engine::refusal::{Code, Result};
use azure_engine::settings::limits::Limit;
use azure_engine::types::member_table::Holds::{Texts, Users};
use azure_engine::types::member_table::Member;
use azure_engine::types::names::NameRule;
use ipnet::IpNet;
use serde_json::Value;
use std::net::IpAddr;

use crate::network::protocol;

const RESOURCE_TYPE: &str = "Microsoft.Network/ipGroups";

struct IpGroups;

const USUAL: Protocol = protocol(RESOURCE_TYPE, "IpGroup");
const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("example.json"),
    concurrency: Concurrency::Busy,
    etag: EtagForm::Guid,
    // Recorded: an update that changes nothing is an operation, a deletion is not.
    unchanged_at_once: false,
    synchronous_delete: true,
    delete_status: 200,
    polling: Polling { segment: "nfvOperations", ..USUAL.polling },
    ..USUAL
};

static MEMBERS: [Member; 3] = [
    Member::new("firewallPolicies", Users("firewallPolicies")).shown_empty(),
    Member::new("firewalls", Users("azureFirewalls")).shown_empty(),
    Member::new("ipAddresses", Texts).or_empty(),
];

static LIMITS: &[Limit] = &[Limit::of("network.addressesPerIpGroup", 5_000)];

static NAMES: [NameRule; 1] = [NameRule {
    of: "*",
    fits: |name| azure_engine::types::names::ordinary(name, 80),
    refusal: |_, name| {
        Code::azures(400, "InvalidResourceName").details(format_args!("Resource name {name} is invalid."))
    },
}];

pub(crate) fn provider() -> Provider {
    Provider { limits: LIMITS, names: &NAMES, ..Provider::new("Microsoft.Network", vec![&IpGroups]) }
}

shape!(IpGroups, PROTOCOL, without Acting);

impl Writing for IpGroups {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let id = proposal.id;
        let properties = Value::Object(take_properties(&mut proposal.body));
        let addresses = items(&properties, "ipAddresses");
        let most = azure.limit("network.addressesPerIpGroup");
        if addresses.len() as u64 > most {
            return Err(Code::ours(400, "IpGroupsIpAddressLimitReached")
                .details(format_args!("IP group {id} can have at most {most} addresses.")));
        }
        if let Some(wrong) = addresses.iter().find(|given| !given.as_str().is_some_and(is_address)) {
            return Err(Code::ours(400, "IpGroupsInvalidIpAddress")
                .details(format_args!("{wrong} of IP group {id} is no address, prefix or range.")));
        }
        let mut body = proposal.body;
        body.insert("properties".into(), properties);
        Ok(Value::Object(body))
    }
}

impl Presenting for IpGroups {
    fn present(&self, _azure: &AzureState, _record: &Record, document: &mut Object, _expand: Expand) {
        // Recorded: spelled unlike its path.
        document.insert("type".into(), "Microsoft.Network/IpGroups".into());
    }
}

/// An address, a prefix, or a range of addresses.
fn is_address(text: &str) -> bool {
    let ends: Vec<Option<IpAddr>> = text.split('-').map(|end| end.trim().parse().ok()).collect();
    match ends.as_slice() {
        [Some(_)] => true,
        [Some(first), Some(last)] => first.is_ipv4() == last.is_ipv4() && first <= last,
        _ => text.parse::<IpNet>().is_ok(),
    }
}
