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
use crate::network::shared::{children::take_children, protocol::protocol, resource_guid::resource_guid};
use azure_engine::document::{
    Object, at, enumeration, fill, into_object, items, known_members, name, reference, stored_reference,
    strip, take_properties,
};
use azure_engine::error::{Code, Refusal};
use azure_engine::provider::{AzureState, ChildCollection, Expand, Proposal, Protocol, Record, ResourceType};
use azure_engine::reference::{Reference, is_of};

const DIFFERENT_SUBNETS: Code = Code::azures(400, "IpConfigurationsOnSameNicCannotUseDifferentSubnets");
const IN_USE: Code = Code::azures(400, "NicInUse");
const NO_CONFIGURATION: Code = Code::ours(400, "NetworkInterfaceMustHaveAtLeastOneIpConfiguration");
const OF_SERVICE: Code = Code::ours(400, "CannotModifyServiceManagedNetworkInterface");
const OTHER_NETWORK: Code = Code::ours(400, "NetworkInterfaceMustStayInOneVirtualNetwork");
const PRIMARY_REMOVED: Code = Code::azures(400, "IpConfigDeleteNotSupported");
const TWO_PRIMARIES: Code = Code::ours(400, "NetworkInterfaceMustHaveOnePrimaryIpConfiguration");

pub(crate) const RESOURCE_TYPE: &str = "Microsoft.Network/networkInterfaces";

const MEMBERS: [&str; 28] = [
    "allowPort25Out",
    "auxiliaryMode",
    "auxiliarySku",
    "defaultOutboundConnectivityEnabled",
    "disableTcpStateTracking",
    "dnsSettings",
    "dscpConfiguration",
    "enableAcceleratedNetworking",
    "enableIPForwarding",
    "hostedWorkloads",
    "ipConfigurations",
    "macAddress",
    "migrationPhase",
    "networkSecurityGroup",
    "nicType",
    "primary",
    "privateEndpoint",
    "privateLinkService",
    "provisioningState",
    "resourceGuid",
    "tapConfigurations",
    "virtualMachine",
    "virtualMachineScaleSet",
    "vnetEncryptionSupported",
    "workloadType",
    "associatedPrivateEndpoints",
    "internalName",
    "kind",
];

/// What the service says about an interface: clients echo it, and it is not theirs to change.
const DERIVED: [&str; 15] = [
    "allowPort25Out",
    "associatedPrivateEndpoints",
    "defaultOutboundConnectivityEnabled",
    "dscpConfiguration",
    "hostedWorkloads",
    "internalName",
    "kind",
    "macAddress",
    "primary",
    "privateEndpoint",
    "provisioningState",
    "tapConfigurations",
    "virtualMachine",
    "virtualMachineScaleSet",
    "vnetEncryptionSupported",
];

pub(crate) struct NetworkInterfaces;

const PROTOCOL: Protocol = Protocol {
    child_collections: &[ChildCollection { name: "ipConfigurations", writable: false, back_references: &[] }],
    actions: &["effectiveRouteTable", "effectiveNetworkSecurityGroups"],
    synchronous: true,
    ..protocol(RESOURCE_TYPE, "NetworkInterface")
};

impl ResourceType for NetworkInterfaces {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let id = proposal.id;
        if let Some(owner) = proposal.old.and_then(service_owner) {
            return Err(OF_SERVICE.details(format_args!(
                "Network interface {id} is managed by {owner} and cannot be modified."
            )));
        }
        let mut properties = take_properties(&mut proposal.body);
        known_members(&mut properties, &MEMBERS, "NetworkInterface")?;
        strip(&mut properties, &DERIVED);
        resource_guid(azure, &proposal, &mut properties);
        reference(&mut properties, "networkSecurityGroup")?;
        enumeration(&mut properties, "nicType", &["Standard", "Elastic"], true)?;
        enumeration(
            &mut properties,
            "auxiliaryMode",
            &["None", "MaxConnections", "Floating", "AcceleratedConnections"],
            true,
        )?;
        enumeration(&mut properties, "auxiliarySku", &["None", "A1", "A2", "A4", "A8"], true)?;
        for member in ["disableTcpStateTracking", "enableAcceleratedNetworking", "enableIPForwarding"] {
            fill(&mut properties, member, false);
        }
        let mut dns = properties.remove("dnsSettings").map(into_object).unwrap_or_default();
        strip(&mut dns, &["appliedDnsServers", "internalDomainNameSuffix", "internalFqdn"]);
        fill(&mut dns, "dnsServers", json!([]));
        properties.insert("dnsSettings".into(), Value::Object(dns));
        let configurations = ip_configurations(azure, &proposal, &mut properties)?;
        check_networks(id, proposal.old, &configurations)?;
        let listed = |member: &str| -> Vec<ResourceId> {
            let lists = configurations.iter().flat_map(|one| items(one, &format!("properties/{member}")));
            lists.filter_map(|item| stored_reference(item, "id")).collect()
        };
        application_security_group::check_members(azure, id, &configurations)?;
        check_memberships(azure, id, &listed("loadBalancerBackendAddressPools"))?;
        check_nat_rules(azure, id, &listed("loadBalancerInboundNatRules"))?;
        properties.insert("ipConfigurations".into(), configurations.into());
        let mut body = proposal.body;
        strip(&mut body, &["kind"]);
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        let group = stored_reference(&record.body, "properties/networkSecurityGroup/id");
        items(&record.body, "properties/ipConfigurations")
            .iter()
            .flat_map(|child| ip_configuration::references_of(&record.id, child))
            .chain(group.map(|to| Reference::uses(&record.id, to)))
            .collect()
    }

    fn check_delete(&self, azure: &AzureState, record: &Record) -> Result<(), Refusal> {
        let owner = service_owner(record).map(str::to_owned);
        match owner.or_else(|| machine_of(azure, record).map(|machine| machine.to_string())) {
            None => Ok(()),
            Some(owner) => Err(IN_USE.details(format_args!(
                    "Network Interface {} is used by existing resource {owner}. In order to delete the network interface, \
                     it must be dissociated from the resource.",
                    record.id
                ))),
        }
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
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

    fn view(&self, azure: &AzureState, record: &Record, below: &[&str]) -> Option<Result<Value, Refusal>> {
        match below {
            [word] if word.eq_ignore_ascii_case("loadBalancers") => {
                let balancers: Vec<Value> =
                    balancers_of(record).iter().filter_map(|id| azure.document(id)).collect();
                Some(Ok(json!({ "value": balancers })))
            }
            _ => None,
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

/// The load balancers whose pools or NAT rules an interface is in.
fn balancers_of(record: &Record) -> BTreeSet<ResourceId> {
    let configurations = items(&record.body, "properties/ipConfigurations").iter();
    configurations
        .flat_map(|one| {
            items(one, "properties/loadBalancerBackendAddressPools")
                .iter()
                .chain(items(one, "properties/loadBalancerInboundNatRules"))
        })
        .filter_map(|item| stored_reference(item, "id")?.parent())
        .collect()
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

/// Machines of one virtual network find each other by names under one suffix.
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

fn ip_configurations(
    azure: &AzureState,
    proposal: &Proposal<'_>,
    properties: &mut Object,
) -> Result<Vec<Value>, Refusal> {
    let id = proposal.id;
    let children = take_children(id, properties, "ipConfigurations")?.unwrap_or_default();
    NO_CONFIGURATION.details_when(
        children.is_empty(),
        format_args!("Network interface {id} must have at least one IP configuration."),
    )?;
    let old = proposal.old_member("properties/ipConfigurations").and_then(Value::as_array);
    // An address that another configuration keeps is not free for a new one.
    let mut promised = BTreeSet::new();
    let mut normal = Vec::with_capacity(children.len());
    let first = children.first().and_then(|child| child.get("properties")?.get("subnet")).cloned();
    for mut child in children {
        ip_configuration::take_subnet(&mut child, first.as_ref());
        let named = child.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let old = old.into_iter().flatten().find(|old| name(old).eq_ignore_ascii_case(&named));
        normal.push(ip_configuration::normalise(azure, id, old, child, &mut promised)?);
    }
    let mut publics = BTreeMap::new();
    for one in &normal {
        let me = id.child("ipConfigurations", name(one));
        let Some(public) = stored_reference(one, "properties/publicIPAddress/id") else { continue };
        if let Some(other) = publics.insert(public.to_lower(), me.clone()) {
            return Err(public_ip_in_use(&me, &public, &other));
        }
    }
    if let Some(before) =
        old.into_iter().flatten().find(|one| at(one, "properties/primary") == Some(&true.into()))
        && !normal.iter().any(|one| name(one).eq_ignore_ascii_case(name(before)))
    {
        return Err(PRIMARY_REMOVED.details(format_args!(
            "IP Configuration {} cannot be deleted. Deletion and renaming of primary IP Configuration is not \
                 supported.",
            name(before)
        )));
    }
    let marked = |one: &Value| at(one, "properties/primary") == Some(&Value::Bool(true));
    let primaries = normal.iter().filter(|one| marked(one)).count();
    TWO_PRIMARIES.details_when(
        primaries > 1,
        format_args!(
            "Network interface {id} must have exactly one primary IP configuration; {primaries} are marked."
        ),
    )?;
    for (at, one) in normal.iter_mut().enumerate() {
        let primary = marked(one) || (primaries == 0 && at == 0);
        if let Some(properties) = one.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert("primary".into(), primary.into());
        }
    }
    Ok(normal)
}

/// All configurations of an interface lie in one subnet, and in one virtual network for its whole life.
fn check_networks(id: &ResourceId, old: Option<&Record>, configurations: &[Value]) -> Result<(), Refusal> {
    let subnet = |one: &Value| stored_reference(one, "properties/subnet/id");
    let mut subnets = configurations.iter().filter_map(subnet);
    let Some(first) = subnets.next() else { return Ok(()) };
    if let Some(other) = subnets.find(|other| *other != first) {
        return Err(DIFFERENT_SUBNETS.details(format_args!(
            "IP configurations of network interface {id} cannot be in different subnets: {first} and {other}."
        )));
    }
    let before = old.and_then(|old| items(&old.body, "properties/ipConfigurations").first().and_then(subnet));
    match (before.and_then(|before| before.parent()), first.parent()) {
        (Some(before), Some(now)) if before != now => Err(OTHER_NETWORK
            .details(format_args!("Network interface {id} is in {before} and cannot move to {now}."))),
        _ => Ok(()),
    }
}
