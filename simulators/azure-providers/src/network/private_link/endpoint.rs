//! Private endpoints: an address in a subnet that leads to a private link service, or to a resource
//! of another kind such as a storage account ("What is a private endpoint?").

use std::collections::BTreeSet;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::{
    connection::{AUTOMATIC, MANUAL, of_service, state},
    own_interface::{self, ChosenConfiguration},
    service::{self, approves, visible},
    target,
};
use crate::network::shared::codes::SUBNET_REQUIRED;
use crate::network::shared::{
    addresses::check_room,
    children::{each_child, old_child},
    protocol::protocol,
    type_names::PRIVATE_LINK_SERVICES,
};
use azure_engine::document::{
    self, into_object, items, name, remove_at, stored_reference, take_properties, text,
};
use azure_engine::provider::{
    Acting, AzureState, ChildCollection, Concurrency, Expand, Presenting, Proposal, Protocol, Record, Shape,
    Writing,
};
use azure_engine::refusal::words::Wrong;
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::store::State;
use azure_engine::store::reference::{Reference, Role, is_of};
use azure_engine::types::member_table::Holds::{
    Anything, Children, Derived, Flag, Guid, Object, Text, Texts, Uses, UsesAll,
};
use azure_engine::types::member_table::{Member, pointers};

static MEMBERS: [Member; 11] = [
    Member::new("applicationSecurityGroups", UsesAll("applicationSecurityGroups")),
    Member::new("customDnsConfigs", Derived),
    Member::new("customNetworkInterfaceName", Text).or_text("").fixed_as(interface_name_changed),
    Member::new("ipConfigurations", Children(&ADDRESS)).or_empty(),
    Member::new("ipVersionType", Anything),
    Member::new("isIPv6EnabledPrivateEndpoint", Flag).or_flag(false),
    Member::new(MANUAL, Children(&CONNECTION)).or_empty(),
    Member::new("networkInterfaces", Derived),
    Member::new(AUTOMATIC, Children(&CONNECTION)).or_empty(),
    Member::new("resourceGuid", Guid),
    // The interface holds the address; the endpoint itself only keeps the subnet from being deleted.
    Member::new("subnet", Uses("virtualNetworks/subnets")).role(Role::Model).fixed_as(subnet_changed),
];

static ADDRESS: [Member; 3] =
    [Member::new("groupId", Text), Member::new("memberName", Text), Member::new("privateIPAddress", Text)];

static CONNECTION: [Member; 6] = [
    Member::new("groupIds", Texts),
    Member::new("privateLinkServiceConnectionState", Object(&STATE)),
    Member::new(FOUND, Derived),
    Member::new("privateLinkServiceId", Text),
    Member::new("provisioningState", Derived),
    Member::new("requestMessage", Text),
];

static STATE: [Member; 3] =
    [Member::new("actionsRequired", Text), Member::new("description", Text), Member::new("status", Text)];

fn interface_name_changed(wrong: &Wrong<'_>) -> Refusal {
    let member = wrong.member;
    Code::ours(400, "PrivateEndpointCustomNetworkInterfaceNameCannotBeChanged")
        .details(format_args!("The {member} of a private endpoint cannot be changed."))
}

fn subnet_changed(_: &Wrong<'_>) -> Refusal {
    Code::ours(400, "PrivateEndpointSubnetCannotBeChanged")
        .details("The subnet of a private endpoint cannot be changed.")
}

/// The member with the id of the service that an alias was resolved to; never shown.
const FOUND: &str = "privateLinkServiceFound";

pub(crate) struct PrivateEndpoints;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("endpoint.json"),
    concurrency: Concurrency::Busy,
    child_collections: &[
        ChildCollection { name: AUTOMATIC, writable: false, back_references: &[] },
        ChildCollection { name: MANUAL, writable: false, back_references: &[] },
        ChildCollection { name: "ipConfigurations", writable: false, back_references: &[] },
    ],
    ..protocol("Microsoft.Network/privateEndpoints", "PrivateEndpoint")
};

impl Shape for PrivateEndpoints {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        let services = [AUTOMATIC, MANUAL].into_iter().flat_map(|collection| {
            items(&record.body, &format!("properties/{collection}")).iter().filter_map(move |child| {
                // A disconnected endpoint is no longer a connection of the service.
                if text(child, "properties/privateLinkServiceConnectionState/status") == Some("Disconnected")
                {
                    return None;
                }
                let from = record.id.child(collection, name(child));
                Some(Reference::names(&from, target(child)?))
            })
        });
        pointers(&MEMBERS, &record.id, &record.body).into_iter().chain(services).collect()
    }

    fn owned(&self, azure: &AzureState, record: &Record) -> Vec<ResourceId> {
        vec![interface(azure, record)]
    }
}

impl Writing for PrivateEndpoints {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let id = proposal.id;
        let mut properties = take_properties(&mut proposal.body);
        check_interface_name(azure, &proposal, &properties)?;
        let subnet = subnet(azure, id, &properties)?;
        for collection in [AUTOMATIC, MANUAL] {
            for (me, properties) in each_child(id, &mut properties, collection) {
                check_connection(azure, &proposal, collection, &me, properties)?;
            }
        }
        check_addresses(azure, &proposal, &subnet, &mut properties)?;
        let properties = Value::Object(properties);
        let targets = [AUTOMATIC, MANUAL].iter().flat_map(|collection| items(&properties, collection));
        let targets: Vec<ResourceId> = targets.filter_map(target).collect();
        Code::ours(400, "PrivateEndpointMustHaveOnePrivateLinkServiceConnection").details_when(
            targets.len() != 1,
            format_args!("Private endpoint {id} must have exactly one private link service connection."),
        )?;
        if proposal.old.is_none() {
            check_limits(azure, id, &subnet, targets.first())?;
        }
        Ok(proposal.stored(into_object(properties)))
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, _old: Option<&Value>) {
        let Some(record) = azure.store.get(id) else { return };
        let Some(subnet) = stored_reference(&record.body, "properties/subnet/id") else { return };
        let member = |item: &Value, member: &str| {
            text(item, &format!("properties/{member}")).unwrap_or_default().to_owned()
        };
        let target = connections(record).find_map(target);
        let names = |member: &str| {
            target.as_ref().map_or_else(Vec::new, |target| target::names(azure, target, member))
        };
        let mut wanted: Vec<ChosenConfiguration> = items(&record.body, "properties/ipConfigurations")
            .iter()
            .map(|item| ChosenConfiguration {
                name: name(item).to_owned(),
                subnet: subnet.clone(),
                address: text(item, "properties/privateIPAddress").and_then(|text| text.parse().ok()),
                primary: false,
                group: Some((
                    member(item, "groupId"),
                    member(item, "memberName"),
                    names(&member(item, "groupId")),
                )),
            })
            .collect();
        if wanted.is_empty() {
            let guid = azure.seed.guid("endpoint address", record.id.as_str(), record.incarnation);
            let groups = connections(record).flat_map(|child| items(child, "properties/groupIds"));
            let group = groups.filter_map(Value::as_str).next().unwrap_or_default().to_owned();
            wanted.push(ChosenConfiguration {
                name: format!("privateEndpointIpConfig.{guid}"),
                subnet,
                address: None,
                primary: true,
                group: Some((group.clone(), group.clone(), names(&group))),
            });
        }
        if let Some(first) = wanted.first_mut() {
            first.primary = true;
        }
        let interface = interface(azure, record);
        own_interface::keep(azure, id, "privateEndpoint", &interface, wanted);
    }
}

impl Presenting for PrivateEndpoints {
    fn present(&self, azure: &AzureState, record: &Record, document: &mut document::Object, _expand: Expand) {
        let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) else { return };
        let interface = interface(azure, record);
        let configs = custom_dns(azure, record, &interface);
        properties.insert("networkInterfaces".into(), json!([{ "id": interface }]));
        properties.insert("customDnsConfigs".into(), configs.into());
        // Unlike other children these are no resources: Azure's contract gives them neither an id nor a state.
        for address in
            properties.get_mut("ipConfigurations").and_then(Value::as_array_mut).into_iter().flatten()
        {
            remove_at(address, "id");
            remove_at(address, "properties/provisioningState");
        }
    }

    fn present_child(
        &self,
        _azure: &AzureState,
        _record: &Record,
        _id: &ResourceId,
        properties: &mut document::Object,
    ) {
        properties.remove(FOUND);
        // Recorded: connections are done while their endpoint is still being updated.
        properties.insert("provisioningState".into(), "Succeeded".into());
    }
}

impl Acting for PrivateEndpoints {}

fn connections(record: &Record) -> impl Iterator<Item = &Value> {
    [AUTOMATIC, MANUAL]
        .into_iter()
        .flat_map(|collection| items(&record.body, &format!("properties/{collection}")))
}

fn interface(azure: &AzureState, record: &Record) -> ResourceId {
    own_interface::id(azure, record, text(&record.body, "properties/customNetworkInterfaceName"))
}

/// The target of a stored connection.
fn target(connection: &Value) -> Option<ResourceId> {
    stored_reference(connection, &format!("properties/{FOUND}"))
        .or_else(|| stored_reference(connection, "properties/privateLinkServiceId"))
}

/// The names that lead to the endpoint's addresses, once it is connected.
fn custom_dns(azure: &AzureState, record: &Record, interface: &ResourceId) -> Vec<Value> {
    let addresses = own_interface::addresses(azure, interface);
    connections(record)
        .filter(|child| {
            text(child, "properties/privateLinkServiceConnectionState/status") == Some("Approved")
        })
        .filter_map(|child| Some((target(child)?, items(child, "properties/groupIds"))))
        .flat_map(|(target, groups)| {
            let groups: Vec<&str> = groups.iter().filter_map(Value::as_str).collect();
            groups.iter().flat_map(|group| target::names(azure, &target, group)).collect::<Vec<_>>()
        })
        .map(|name| json!({ "fqdn": name, "ipAddresses": addresses }))
        .collect()
}

fn subnet(azure: &AzureState, id: &ResourceId, properties: &document::Object) -> Result<ResourceId> {
    let Some(subnet) = properties.get("subnet").and_then(|subnet| stored_reference(subnet, "id")) else {
        return Err(SUBNET_REQUIRED.details(format_args!("Private endpoint {id} must reference a subnet.")));
    };
    let network = azure.store.holder(&subnet).filter(|network| network.id != subnet);
    match network.and_then(|network| azure.find_child(network, &subnet)) {
        Some(_) => Ok(subnet),
        None => Err(Refusal::invalid_reference(&subnet, id)),
    }
}

/// Checks how many endpoints a virtual network and a service have.
fn check_limits(
    azure: &AzureState,
    id: &ResourceId,
    subnet: &ResourceId,
    service: Option<&ResourceId>,
) -> Result<()> {
    let here = |id: &ResourceId| {
        azure.store.referrers(id).filter(|user| is_of(&user.from, "/privateendpoints/")).count() as u64
    };
    let network = azure.store.holder(subnet);
    let subnets = network.map_or(&[][..], |network| items(&network.body, "properties/subnets"));
    let behind: u64 = network.map_or(0, |network| {
        subnets.iter().map(|subnet| here(&network.id.child("subnets", name(subnet)))).sum()
    });
    let connected = service.map_or(0, |service| of_service(azure, service).len() as u64);
    for (count, limit, what) in [
        (behind, "network.privateEndpointsPerVirtualNetwork", "virtual network"),
        (connected, "network.privateEndpointsPerPrivateLinkService", "private link service"),
    ] {
        let most = azure.limit(limit);
        Code::ours(400, "PrivateEndpointCountLimitReached").details_when(
            count >= most,
            format_args!(
                "Private endpoint {id} cannot be created: a {what} cannot have more than {most} of them."
            ),
        )?;
    }
    Ok(())
}

/// Checks a chosen name of the interface, which must be free.
fn check_interface_name(
    azure: &AzureState,
    proposal: &Proposal<'_>,
    properties: &document::Object,
) -> Result<()> {
    let id = proposal.id;
    let given = properties.get("customNetworkInterfaceName").and_then(Value::as_str).unwrap_or_default();
    match own_interface::existing(azure, id, given).filter(|_| proposal.old.is_none()) {
        None => Ok(()),
        Some(other) => Err(Code::ours(400, "PrivateEndpointCustomNetworkInterfaceNameInUse").details(
            format_args!("Private endpoint {id} cannot name its network interface {given}: {other} exists."),
        )),
    }
}

/// Checks one connection and finds its state: unchanged, approved automatically, or pending.
fn check_connection(
    azure: &AzureState,
    proposal: &Proposal<'_>,
    collection: &str,
    me: &ResourceId,
    properties: &mut document::Object,
) -> Result<()> {
    let id = proposal.id;
    let given = properties.remove("privateLinkServiceConnectionState");
    let Some(wanted) = properties.get("privateLinkServiceId").and_then(Value::as_str).map(str::to_owned)
    else {
        return Err(Code::ours(400, "PrivateLinkServiceIdRequired")
            .details(format_args!("Connection {me} must have a privateLinkServiceId.")));
    };
    let service = if wanted.starts_with('/') {
        let to = ResourceId::parse(&wanted)
            .map_err(|_| Refusal::bad_id(&wanted, "properties.privateLinkServiceId"))?;
        let ours = to.resource_type().eq_ignore_ascii_case(PRIVATE_LINK_SERVICES);
        let service = azure.store.get(&to).filter(|service| service.state != State::Deleting);
        // Resources of simulated types must exist; others are accepted without a check.
        if service.is_none() && azure.resource_type(&to.resource_type()).is_some() {
            return Err(Refusal::invalid_reference(&to, id));
        }
        Code::ours(400, "PrivateLinkServiceIdNotSupported").details_when(
            !ours && azure.resource_type(&to.resource_type()).is_some() && !target::takes(&to),
            format_args!("Connection {me} references {to}, whose type private endpoints cannot lead to."),
        )?;
        Code::ours(400, "PrivateEndpointGroupIdsRequired").details_when(
            !ours && properties.get("groupIds").and_then(Value::as_array).is_none_or(Vec::is_empty),
            format_args!("Connection {me} to {to} must have groupIds."),
        )?;
        service.filter(|_| ours)
    } else {
        let service = service::by_alias(azure, &wanted)
            .filter(|service| service.state != State::Deleting)
            .filter(|service| visible(service, id.subscription_id()))
            .ok_or_else(|| {
                Code::ours(400, "PrivateLinkServiceAliasNotFound").details(format_args!(
                    "Private link service with alias {wanted} referenced by {id} was not found."
                ))
            })?;
        properties.insert(FOUND.into(), service.id.as_str().into());
        Some(service)
    };
    let old = old_child(proposal.old, me);
    let before = old.and_then(|old| text(old, "properties/privateLinkServiceId"));
    Code::ours(400, "PrivateLinkServiceIdCannotBeChanged").details_when(
        before.is_some_and(|before| !before.eq_ignore_ascii_case(&wanted)),
        format_args!("The privateLinkServiceId of connection {me} cannot be changed."),
    )?;
    if let (None, Some(service)) = (old, service) {
        azure.check_provisioned(service, &service.id, id)?;
    }
    let kept = old.and_then(|old| old.get("properties")?.get("privateLinkServiceConnectionState").cloned());
    let state = kept.unwrap_or_else(|| {
        let by_right =
            collection == AUTOMATIC || service.is_some_and(|service| approves(service, id.subscription_id()));
        if by_right {
            state("Approved", "Auto Approved", "None")
        } else {
            let message = given
                .as_ref()
                .and_then(|given| text(given, "description"))
                .or_else(|| properties.get("requestMessage").and_then(Value::as_str))
                .unwrap_or("Awaiting Approval");
            state("Pending", message, "None")
        }
    });
    properties.insert("privateLinkServiceConnectionState".into(), state);
    Ok(())
}

/// Checks the addresses that the client chose, or that there is room for one.
fn check_addresses(
    azure: &AzureState,
    proposal: &Proposal<'_>,
    subnet: &ResourceId,
    properties: &mut document::Object,
) -> Result<()> {
    let interface = proposal.old.map(|old| interface(azure, old));
    let (mut promised, mut count) = (BTreeSet::new(), 0);
    for (me, properties) in each_child(proposal.id, properties, "ipConfigurations") {
        own_interface::check_static(azure, &me, interface.as_ref(), subnet, properties, &mut promised)?;
        count += 1;
    }
    match interface.as_ref().and_then(|interface| azure.store.get(interface)) {
        None if count == 0 => check_room(azure, subnet, false, 1),
        _ => Ok(()),
    }
}
