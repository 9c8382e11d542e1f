//! Network interfaces (Azure REST reference, "Network Interfaces").

pub(crate) mod ip_configuration;

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::network::application_security_group;
use crate::network::load_balancer::{
    frontend::public_ip_in_use,
    pool_membership::{check as check_memberships, check_nat_rules},
};
use crate::network::shared::{children::each_child, protocol::protocol};
use azure_engine::document::{self, at, fill, into_object, items, name, stored_reference, take_properties};
use azure_engine::provider::{
    AzureState, ChildCollection, Expand, Presenting, Proposal, Protocol, Record, Writing,
};
use azure_engine::refusal::{Code, Result};
use azure_engine::store::reference::is_of;
use azure_engine::types::member_table::Holds::{
    Anything, Children, Derived, Flag, Guid, Object, Text, Texts, Uses, Word,
};
use azure_engine::types::member_table::Member;

pub(crate) const RESOURCE_TYPE: &str = "Microsoft.Network/networkInterfaces";

static MEMBERS: [Member; 27] = [
    Member::new("allowPort25Out", Derived),
    Member::new("associatedPrivateEndpoints", Derived),
    Member::new(
        "auxiliaryMode",
        Word(&["None", "MaxConnections", "Floating", "AcceleratedConnections"], true),
    ),
    Member::new("auxiliarySku", Word(&["None", "A1", "A2", "A4", "A8"], true)),
    Member::new("defaultOutboundConnectivityEnabled", Derived),
    Member::new("disableTcpStateTracking", Flag).or_flag(false),
    Member::new("dnsSettings", Object(&DNS_SETTINGS)).or_empty(),
    Member::new("dscpConfiguration", Derived),
    Member::new("enableAcceleratedNetworking", Flag).or_flag(false),
    Member::new("enableIPForwarding", Flag).or_flag(false),
    Member::new("hostedWorkloads", Derived),
    Member::new("internalName", Derived),
    Member::new("ipConfigurations", Children(&ip_configuration::MEMBERS)).or_empty(),
    Member::new("kind", Derived),
    Member::new("macAddress", Derived),
    Member::new("migrationPhase", Anything),
    Member::new("networkSecurityGroup", Uses("networkSecurityGroups")),
    Member::new("nicType", Word(&["Standard", "Elastic"], true)),
    Member::new("primary", Derived),
    Member::new("privateEndpoint", Derived),
    Member::new("privateLinkService", Anything),
    Member::new("resourceGuid", Guid),
    Member::new("tapConfigurations", Derived),
    Member::new("virtualMachine", Derived),
    Member::new("virtualMachineScaleSet", Derived),
    Member::new("vnetEncryptionSupported", Derived),
    Member::new("workloadType", Anything),
];

static DNS_SETTINGS: [Member; 5] = [
    Member::new("appliedDnsServers", Derived),
    Member::new("dnsServers", Texts).or_empty(),
    Member::new("internalDnsNameLabel", Text),
    Member::new("internalDomainNameSuffix", Derived),
    Member::new("internalFqdn", Derived),
];

pub(crate) struct NetworkInterfaces;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("example.json"),
    child_collections: &[ChildCollection { name: "ipConfigurations", writable: false, back_references: &[] }],
    actions: &["effectiveRouteTable", "effectiveNetworkSecurityGroups"],
    synchronous: true,
    ..protocol(RESOURCE_TYPE, "NetworkInterface")
};

shape!(NetworkInterfaces, PROTOCOL, without Acting);

impl Writing for NetworkInterfaces {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let id = proposal.id;
        if let Some(owner) = proposal.old.and_then(service_owner) {
            return Err(Code::ours(400, "CannotModifyServiceManagedNetworkInterface").details(format_args!(
                "Network interface {id} is managed by {owner} and cannot be modified."
            )));
        }
        let mut properties = take_properties(&mut proposal.body);
        check_configurations(azure, id, proposal.old, &mut properties)?;
        mark_primary(id, proposal.old, &mut properties)?;
        let properties = Value::Object(properties);
        let configurations = items(&properties, "ipConfigurations");
        check_networks(id, proposal.old, configurations)?;
        let listed = |member: &str| -> Vec<ResourceId> {
            let lists = configurations.iter().flat_map(|one| items(one, &format!("properties/{member}")));
            lists.filter_map(|item| stored_reference(item, "id")).collect()
        };
        application_security_group::check_members(azure, id, configurations)?;
        check_memberships(azure, id, &listed("loadBalancerBackendAddressPools"))?;
        check_nat_rules(azure, id, &listed("loadBalancerInboundNatRules"))?;
        proposal.body.remove("kind");
        Ok(proposal.stored(into_object(properties)))
    }

    fn before_delete(&self, azure: &AzureState, record: &Record) -> Result<()> {
        let owner = service_owner(record).map(str::to_owned);
        match owner.or_else(|| machine_of(azure, record).map(|machine| machine.to_string())) {
            None => Ok(()),
            Some(owner) => Err(Code::azures(400, "NicInUse").details(format_args!(
                    "Network Interface {} is used by existing resource {owner}. In order to delete the network interface, \
                     it must be dissociated from the resource. To learn more, see aka.ms/deletenic.",
                    record.id
                ))),
        }
    }
}

impl Presenting for NetworkInterfaces {
    fn present(&self, azure: &AzureState, record: &Record, document: &mut document::Object, _expand: Expand) {
        document.insert("kind".into(), "Regular".into());
        let machine = machine_of(azure, record);
        let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) else { return };
        if let Some(dns) = properties.get_mut("dnsSettings").and_then(Value::as_object_mut) {
            fill(dns, "appliedDnsServers", json!([]));
            fill(dns, "internalDomainNameSuffix", domain_suffix(azure, record));
        }
        for member in ["vnetEncryptionSupported", "defaultOutboundConnectivityEnabled"] {
            fill(properties, member, false);
        }
        for member in ["hostedWorkloads", "tapConfigurations"] {
            fill(properties, member, json!([]));
        }
        fill(properties, "allowPort25Out", true);
        if let Some(machine) = machine {
            properties.insert("macAddress".into(), azure.seed.mac_address(record.id.as_str()).into());
            properties.insert("primary".into(), is_primary(azure, &machine, &record.id).into());
            properties.insert("virtualMachine".into(), json!({ "id": machine }));
        }
    }
}

/// The private endpoint or private link service whose interface this is.
fn service_owner(record: &Record) -> Option<&str> {
    ["privateEndpoint", "privateLinkService"]
        .into_iter()
        .find_map(|member| at(&record.body, &format!("properties/{member}/id"))?.as_str())
}

/// The machine that an interface belongs to.
fn machine_of(azure: &AzureState, record: &Record) -> Option<ResourceId> {
    let mut users = azure.store.referrers(&record.id);
    users.find(|user| is_of(&user.from, "/virtualmachines/")).map(|user| user.from.clone())
}

/// Whether an interface is its machine's primary one: marked so, or the only one.
fn is_primary(azure: &AzureState, machine: &ResourceId, interface: &ResourceId) -> bool {
    let Some(record) = azure.store.get(machine) else { return false };
    let all = items(&record.body, "properties/networkProfile/networkInterfaces");
    all.len() == 1
        || all.iter().any(|nic| {
            stored_reference(nic, "id").as_ref() == Some(interface)
                && at(nic, "properties/primary") == Some(&Value::Bool(true))
        })
}

/// The DNS suffix under which machines of one virtual network resolve each other's names.
fn domain_suffix(azure: &AzureState, record: &Record) -> String {
    let network = items(&record.body, "properties/ipConfigurations")
        .first()
        .and_then(|one| stored_reference(one, "properties/subnet/id")?.parent());
    let network = network.as_ref().unwrap_or(&record.id);
    let number = u128::from(azure.seed.number("domain suffix", network.as_str(), 0)) << 64
        | u128::from(azure.seed.number("domain suffix", network.as_str(), 1));
    let letters: String = (0..26)
        .map(|at| {
            let digit = (number >> (at * 5) & 31) as u32;
            char::from_digit(digit, 36).unwrap_or('0')
        })
        .collect();
    format!("{letters}.cx.internal.cloudapp.net")
}

/// Checks every IP configuration by itself, and that no two share a public address.
fn check_configurations(
    azure: &AzureState,
    id: &ResourceId,
    old: Option<&Record>,
    properties: &mut document::Object,
) -> Result<()> {
    let (mut first, mut count) = (None, 0);
    // An address that another configuration keeps is not free for a new one.
    let (mut promised, mut publics) = (BTreeSet::new(), BTreeMap::new());
    for (one, properties) in each_child(id, properties, "ipConfigurations") {
        count += 1;
        ip_configuration::check(azure, id, old, (&one, properties), first.as_ref(), &mut promised)?;
        first = first.or_else(|| properties.get("subnet").cloned());
        let public = properties.get("publicIPAddress").and_then(|public| stored_reference(public, "id"));
        if let Some(public) = public
            && let Some(other) = publics.insert(public.to_lower(), one.clone())
        {
            return Err(public_ip_in_use(&one, &public, &other));
        }
    }
    Code::ours(400, "NetworkInterfaceMustHaveAtLeastOneIpConfiguration").details_when(
        count == 0,
        format_args!("Network interface {id} must have at least one IP configuration."),
    )
}

/// One configuration is primary: the first, where none is marked. It stays so.
fn mark_primary(id: &ResourceId, old: Option<&Record>, properties: &mut document::Object) -> Result<()> {
    let (mut primaries, mut names) = (0, Vec::new());
    for (one, properties) in each_child(id, properties, "ipConfigurations") {
        primaries += usize::from(properties.get("primary") == Some(&Value::Bool(true)));
        names.push(one);
    }
    let old = old.map_or(&[][..], |old| items(&old.body, "properties/ipConfigurations"));
    let was = old.iter().find(|one| at(one, "properties/primary") == Some(&Value::Bool(true)));
    if let Some(was) = was.map(name) {
        let why = "Deletion and renaming of primary IP Configuration is not supported.";
        Code::azures(400, "IpConfigDeleteNotSupported").details_when(
            !names.contains(&id.child("ipConfigurations", was)),
            format_args!("IP Configuration {was} cannot be deleted. {why}"),
        )?;
    }
    Code::ours(400, "NetworkInterfaceMustHaveOnePrimaryIpConfiguration").details_when(
        primaries > 1,
        format_args!(
            "Network interface {id} must have exactly one primary IP configuration; {primaries} are marked."
        ),
    )?;
    for (at, (_, properties)) in each_child(id, properties, "ipConfigurations").enumerate() {
        let marked = properties.get("primary") == Some(&Value::Bool(true));
        properties.insert("primary".into(), (marked || (primaries == 0 && at == 0)).into());
    }
    Ok(())
}

/// All configurations of an interface lie in one subnet, and in one virtual network for its whole life.
fn check_networks(id: &ResourceId, old: Option<&Record>, configurations: &[Value]) -> Result<()> {
    let subnet = |one: &Value| stored_reference(one, "properties/subnet/id");
    let mut subnets = configurations.iter().filter_map(subnet);
    let Some(first) = subnets.next() else { return Ok(()) };
    if let Some(other) = subnets.find(|other| *other != first) {
        return Err(Code::azures(400, "IpConfigurationsOnSameNicCannotUseDifferentSubnets").details(
            format_args!(
                "IP configurations of network interface {id} cannot be in different subnets: {first} \
             and {other}."
            ),
        ));
    }
    let before = old.and_then(|old| items(&old.body, "properties/ipConfigurations").first().and_then(subnet));
    match (before.and_then(|before| before.parent()), first.parent()) {
        (Some(before), Some(now)) if before != now => {
            Err(Code::ours(400, "NetworkInterfaceMustStayInOneVirtualNetwork")
                .details(format_args!("Network interface {id} is in {before} and cannot move to {now}.")))
        }
        _ => Ok(()),
    }
}
