//! Virtual networks (Azure REST reference, "Virtual Networks").

pub(crate) mod availability;
pub(crate) mod delegation;
pub(crate) mod peering;
pub(crate) mod subnet;

use std::collections::BTreeMap;

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::{Value, json};

use crate::network::shared::codes::{ADDRESS_FORMAT, PREFIX_FORMAT};
use crate::network::shared::{addresses::prefixes_of, children::each_child, protocol::protocol};
use azure_engine::document::{self, fill, into_object, items, name, take_properties};
use azure_engine::provider::{
    AzureState, ChildCollection, Concurrency, Presenting, Proposal, Protocol, Record, Writing,
};
use azure_engine::refusal::{Code, Handled, Result};
use azure_engine::store::reference::{Role, is_of};
use azure_engine::types::member_table::Holds::{
    Anything, Children, Derived, Flag, Guid, Number, Object, Texts, Uses, Word,
};
use azure_engine::types::member_table::Member;

static MEMBERS: [Member; 15] = [
    Member::new("addressSpace", Anything),
    Member::new("bgpCommunities", Anything),
    Member::new("ddosProtectionPlan", Uses("ddosProtectionPlans")),
    Member::new("defaultPublicNatGateway", Derived),
    Member::new("dhcpOptions", Object(&DHCP_OPTIONS)),
    Member::new("enableDdosProtection", Flag).or_flag(false),
    Member::new("enableVmProtection", Flag),
    Member::new("encryption", Object(&ENCRYPTION)),
    Member::new("flowLogs", Derived),
    Member::new("flowTimeoutInMinutes", Number(4, 30)),
    Member::new("ipAllocations", Anything),
    Member::new("privateEndpointVNetPolicies", Word(&["Disabled", "Basic"], true)),
    Member::new("resourceGuid", Guid),
    Member::new("subnets", Children(&subnet::MEMBERS)),
    Member::new(peering::COLLECTION, Children(&peering::MEMBERS)),
];

static DHCP_OPTIONS: [Member; 1] = [Member::new("dnsServers", Texts).or_empty()];

static ENCRYPTION: [Member; 2] = [
    Member::new("enabled", Flag).or_flag(false),
    Member::new("enforcement", Word(&["AllowUnencrypted", "DropUnencrypted"], true)),
];

pub(crate) struct VirtualNetworks;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("example.json"),
    concurrency: Concurrency::Busy,
    child_collections: &[
        ChildCollection { name: "subnets", writable: true, back_references: &[("ipConfigurations", "")] },
        ChildCollection { name: peering::COLLECTION, writable: true, back_references: &[] },
    ],
    // Recorded: a virtual network written again is answered as created.
    update_status: 201,
    ..protocol("Microsoft.Network/virtualNetworks", "VirtualNetwork")
};

shape!(VirtualNetworks, PROTOCOL, without Acting);

impl Writing for VirtualNetworks {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let id = proposal.id;
        let mut properties = take_properties(&mut proposal.body);
        check_options(id, &properties)?;
        let space = address_space(id, properties.get("addressSpace"))?;
        if properties.contains_key(peering::COLLECTION) {
            peering::check_all(azure, &proposal, &space, &mut properties)?;
        } else {
            let kept = proposal.old_member("properties/virtualNetworkPeerings").cloned();
            properties.insert(peering::COLLECTION.into(), kept.unwrap_or_else(|| json!([])));
        }
        let old = proposal.old_member("properties/subnets").filter(|_| azure.options.keep_omitted_subnets);
        fill(&mut properties, "subnets", old.cloned().unwrap_or_else(|| json!([])));
        let location = proposal.body.get("location").and_then(Value::as_str).unwrap_or_default();
        for (subnet, properties) in each_child(id, &mut properties, "subnets") {
            subnet::check(&subnet, location, properties)?;
        }
        let properties = Value::Object(properties);
        let subnets = items(&properties, "subnets");
        subnet::check_inside(id, &space, subnets)?;
        subnet::check_overlaps(subnets)?;
        let old = proposal.old.map_or(&[][..], |old| items(&old.body, "properties/subnets"));
        for old in old {
            let old_id = id.child("subnets", name(old));
            match subnets.iter().find(|new| name(new).eq_ignore_ascii_case(name(old))) {
                None => check_unused_subnet(azure, &old_id)?,
                Some(new) => {
                    check_allocations(azure, &old_id, &prefixes_of(new))?;
                    delegation::check_change(azure, &old_id, old, new)?;
                }
            }
        }
        Ok(proposal.stored(into_object(properties)))
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, _old: Option<&Value>) {
        peering::note_connections(azure, id);
    }

    fn before_delete(&self, azure: &AzureState, record: &Record) -> Result<()> {
        let mut users = azure.store.referrers(&record.id);
        if let Some(user) = users.find(|user| user.role != Role::Names) {
            return Err(Code::azures(400, "InUseVirtualNetworkCannotBeDeleted").details(format_args!(
                "Virtual network {} is in use by {} and cannot be deleted.",
                record.id, user.from
            )));
        }
        items(&record.body, "properties/subnets")
            .iter()
            .try_for_each(|child| check_unused_subnet(azure, &record.id.child("subnets", name(child))))
    }
}

impl Presenting for VirtualNetworks {
    fn present_child(
        &self,
        azure: &AzureState,
        record: &Record,
        id: &ResourceId,
        properties: &mut document::Object,
    ) {
        if is_of(id, "/virtualnetworkpeerings/") {
            peering::present(azure, record, id, properties);
        } else {
            delegation::present(id, &azure.etag(record), record.state.as_str(), properties);
        }
    }

    fn view(&self, azure: &AzureState, record: &Record, below: &[&str]) -> Handled<Value> {
        self.view_with_options(azure, record, below, &BTreeMap::new())
    }

    fn view_with_options(
        &self,
        azure: &AzureState,
        record: &Record,
        below: &[&str],
        query: &BTreeMap<String, String>,
    ) -> Handled<Value> {
        availability::answer(azure, record, below, query)
    }
}

fn address_space(id: &ResourceId, space: Option<&Value>) -> Result<Vec<IpNet>> {
    let bad = |prefix: &str| {
        PREFIX_FORMAT.details(format_args!(
            "Address prefix '{prefix}' of {id} is not formatted correctly: it must be in CIDR notation."
        ))
    };
    let prefixes = space.map_or(&[] as &[Value], |space| items(space, "addressPrefixes"));
    if prefixes.is_empty() {
        return Err(bad(""));
    }
    let mut all: Vec<IpNet> = Vec::with_capacity(prefixes.len());
    for prefix in prefixes {
        let text = prefix.as_str().unwrap_or_default();
        let prefix = text.parse::<IpNet>().map_err(|_| bad(text))?;
        if prefix != prefix.trunc() {
            return Err(subnet::wrong_notation(id, &prefix));
        }
        if let Some(other) = all.iter().find(|other| other.contains(&prefix) || prefix.contains(*other)) {
            return Err(Code::ours(400, "VnetAddressPrefixesOverlap").details(format_args!(
                "Address prefixes {other} and {prefix} of virtual network {id} overlap."
            )));
        }
        all.push(prefix);
    }
    Ok(all)
}

/// Checks the members of a network other than addresses.
fn check_options(id: &ResourceId, properties: &document::Object) -> Result<()> {
    let servers = properties.get("dhcpOptions").map_or(&[][..], |options| items(options, "dnsServers"));
    for server in servers.iter().filter_map(Value::as_str) {
        ADDRESS_FORMAT.details_when(
            server.parse::<std::net::IpAddr>().is_err(),
            format_args!("The DNS server '{server}' of {id} is not a valid IP address."),
        )?;
    }
    Ok(())
}

/// Refuses to remove a subnet that is in use.
fn check_unused_subnet(azure: &AzureState, subnet: &ResourceId) -> Result<()> {
    let users: Vec<&str> = azure.store.referrers(subnet).map(|user| user.from.as_str()).collect();
    Code::azures(400, "InUseSubnetCannotBeDeleted").details_when(
        !users.is_empty(),
        format_args!(
            "Subnet {} is in use by {} and cannot be deleted. In order to delete the subnet, delete all the resources \
             within the subnet. See aka.ms/deletesubnet.",
            subnet.name(),
            users.join(", ")
        ),
    )
}

/// Addresses that are in use stay inside the subnet's prefixes.
fn check_allocations(azure: &AzureState, subnet: &ResourceId, prefixes: &[IpNet]) -> Result<()> {
    let lost = azure
        .store
        .addresses(subnet)
        .into_iter()
        .flatten()
        .find(|(address, _)| !prefixes.iter().any(|prefix| prefix.contains(*address)));
    match lost {
        None => Ok(()),
        Some((address, owner)) => Err(Code::ours(400, "InUsePrefixCannotBeDeleted").details(format_args!(
            "IpPrefix of subnet {subnet} holds {address}, which is in use by {owner}, and cannot be deleted."
        ))),
    }
}
