//! Private link services: a load balancer's frontend, offered to private endpoints elsewhere
//! ("What is Azure Private Link service?").

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::{
    connection,
    own_interface::{self, Wanted},
};
use crate::network::shared::codes::SUBNET_REQUIRED;
use crate::network::shared::{
    addresses::check_room, children::take_children, protocol::protocol, resource_guid::resource_guid,
    type_names::PRIVATE_LINK_SERVICES,
};
use azure_engine::document::{
    Object, at, enumeration, fill, into_object, items, known_members, name, reference, references,
    stored_reference, strip, take_properties, text,
};
use azure_engine::error::{Code, Refusal};
use azure_engine::provider::{
    AzureState, ChildCollection, Concurrency, Expand, Proposal, Protocol, Record, ResourceType,
};
use azure_engine::reference::{Reference, Role, is_of};

const CONFIGURATION_COUNT: Code = Code::ours(400, "PrivateLinkServiceInvalidNumberOfIpConfigurations");
const FRONTENDS_CHANGED: Code = Code::ours(400, "PrivateLinkServiceFrontendIpConfigurationsCannotBeChanged");
const FRONTEND_OF_SERVICE: Code =
    Code::ours(400, "LoadBalancerFrontendIPConfigurationInUseByPrivateLinkService");
const HAS_CONNECTIONS: Code =
    Code::azures(400, "PrivateLinkServiceCannotBeDeletedBecauseItHasPrivateEndpointConnections");
const IPV6: Code = Code::ours(400, "PrivateLinkServiceIPv6NotSupported");
const NOT_STANDARD: Code = Code::ours(400, "PrivateLinkServiceRequiresStandardLoadBalancer");
const NO_FRONTEND: Code = Code::ours(400, "PrivateLinkServiceMustHaveLoadBalancerFrontendIpConfiguration");
const POLICIES_ENABLED: Code =
    Code::azures(400, "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled");
const TWO_PRIMARIES: Code = Code::ours(400, "PrivateLinkServiceMustHaveOnePrimaryIpConfiguration");

const FRONTENDS: &str = "loadBalancerFrontendIpConfigurations";
const CONFIGURATIONS: &str = "ipConfigurations";

const MEMBERS: [&str; 14] = [
    "accessMode",
    "alias",
    "autoApproval",
    "destinationIPAddress",
    "enableProxyProtocol",
    "fqdns",
    CONFIGURATIONS,
    FRONTENDS,
    "networkInterfaces",
    "privateEndpointConnections",
    "provisioningState",
    "resourceGuid",
    "visibility",
    "extendedLocation",
];

const CONFIGURATION_MEMBERS: [&str; 6] = [
    "primary",
    "privateIPAddress",
    "privateIPAddressVersion",
    "privateIPAllocationMethod",
    "provisioningState",
    "subnet",
];

pub(crate) struct PrivateLinkServices;

const PROTOCOL: Protocol = Protocol {
    concurrency: Concurrency::Busy,
    child_collections: &[ChildCollection { name: CONFIGURATIONS, writable: false, back_references: &[] }],
    ..protocol(PRIVATE_LINK_SERVICES, "PrivateLinkService")
};

impl ResourceType for PrivateLinkServices {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value, Refusal> {
        let id = proposal.id;
        let mut properties = take_properties(&mut proposal.body);
        known_members(&mut properties, &MEMBERS, "PrivateLinkService")?;
        strip(
            &mut properties,
            &[
                "alias",
                "networkInterfaces",
                "privateEndpointConnections",
                "provisioningState",
                "resourceGuid",
            ],
        );
        resource_guid(azure, &proposal, &mut properties);
        let location = proposal.body.get("location").and_then(Value::as_str).unwrap_or_default();
        let incarnation = azure.store.incarnation(id);
        let alias = format!(
            "{}.{}.{location}.azure.privatelinkservice",
            id.name().to_lowercase(),
            azure.seed.guid("alias", id.as_str(), incarnation)
        );
        properties.insert("alias".into(), alias.into());
        fill(&mut properties, "fqdns", json!([]));
        fill(&mut properties, "enableProxyProtocol", false);
        for member in ["visibility", "autoApproval"] {
            subscriptions(&mut properties, member)?;
        }
        frontends(azure, &proposal, &mut properties)?;
        configurations(azure, id, &mut properties)?;
        let mut body = proposal.body;
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        let frontends = items(&record.body, &format!("properties/{FRONTENDS}"))
            .iter()
            .filter_map(|item| stored_reference(item, "id"))
            .map(|to| Reference::uses(&record.id, to));
        // The addresses are its interface's; the service itself only keeps the subnet from going.
        let subnets =
            items(&record.body, &format!("properties/{CONFIGURATIONS}")).iter().filter_map(|item| {
                let from = record.id.child(CONFIGURATIONS, name(item));
                let to = stored_reference(item, "properties/subnet/id")?;
                Some(Reference { from, to, role: Role::Model, address: None })
            });
        frontends.chain(subnets).collect()
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, _old: Option<&Value>) {
        let Some(record) = azure.store.get(id) else { return };
        let wanted = items(&record.body, &format!("properties/{CONFIGURATIONS}"))
            .iter()
            .filter_map(|item| {
                Some(Wanted {
                    name: name(item).to_owned(),
                    subnet: stored_reference(item, "properties/subnet/id")?,
                    address: text(item, "properties/privateIPAddress").and_then(|text| text.parse().ok()),
                    primary: at(item, "properties/primary") == Some(&json!(true)),
                    group: None,
                })
            })
            .collect();
        let interface = own_interface::id(azure, record, None);
        own_interface::keep(azure, id, "privateLinkService", &interface, wanted);
    }

    fn owned(&self, azure: &AzureState, record: &Record) -> Vec<ResourceId> {
        vec![own_interface::id(azure, record, None)]
    }

    fn check_delete(&self, azure: &AzureState, record: &Record) -> Result<(), Refusal> {
        match connection::of_service(azure, &record.id).first() {
            None => Ok(()),
            Some(connection) => Err(HAS_CONNECTIONS.details(format_args!(
                    "Private link service {} cannot be deleted because it has private endpoint connections, such as {}. \
                     Delete the connections first.",
                    record.id,
                    connection.id(azure, &record.id)
                ))),
        }
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        let etag = document.get("etag").cloned().unwrap_or_default();
        let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) else { return };
        let interface = own_interface::id(azure, record, None);
        properties.insert("networkInterfaces".into(), json!([{ "id": interface }]));
        let connections: Vec<Value> = connection::of_service(azure, &record.id)
            .iter()
            .map(|connection| connection.present(azure, &record.id, &etag))
            .collect();
        properties.insert("privateEndpointConnections".into(), connections.into());
    }

    fn present_child(
        &self,
        _azure: &AzureState,
        _record: &Record,
        _collection: &str,
        _id: &ResourceId,
        properties: &mut Object,
    ) {
        // Recorded: configurations are done while their service is still being updated.
        properties.insert("provisioningState".into(), "Succeeded".into());
    }

    fn view(&self, azure: &AzureState, record: &Record, below: &[&str]) -> Option<Result<Value, Refusal>> {
        let (collection, rest) = below.split_first()?;
        if !collection.eq_ignore_ascii_case(connection::COLLECTION) {
            return None;
        }
        let connections = connection::of_service(azure, &record.id);
        let etag = Value::from(azure.etag(record));
        match rest {
            [] => {
                let shown: Vec<Value> =
                    connections.iter().map(|each| each.present(azure, &record.id, &etag)).collect();
                Some(Ok(json!({ "value": shown })))
            }
            [wanted] => {
                let id = record.id.child(connection::COLLECTION, wanted);
                let found = connections.iter().find(|each| each.id(azure, &record.id) == id);
                Some(
                    found
                        .map(|found| found.present(azure, &record.id, &etag))
                        .ok_or_else(|| Refusal::child_not_found(&id)),
                )
            }
            _ => None,
        }
    }

    fn write_view(
        &self,
        azure: &mut AzureState,
        id: &ResourceId,
        below: &[&str],
        body: Option<&Value>,
    ) -> Option<Result<bool, Refusal>> {
        match below {
            [collection, wanted] if collection.eq_ignore_ascii_case(connection::COLLECTION) => {
                Some(connection::decide(azure, id, wanted, body))
            }
            _ => None,
        }
    }
}

/// Checks one of the two lists of subscriptions.
fn subscriptions(properties: &mut Object, member: &str) -> Result<(), Refusal> {
    let Some(value) = properties.remove(member) else { return Ok(()) };
    let mut object = into_object(value);
    object.retain(|member, _| member == "subscriptions");
    let listed = object.get("subscriptions").and_then(Value::as_array);
    if !listed.is_none_or(|listed| listed.iter().all(Value::is_string)) {
        return Err(Refusal::bad_format(format!(
            "Member '{member}.subscriptions' must be an array of texts."
        )));
    }
    fill(&mut object, "subscriptions", json!([]));
    properties.insert(member.into(), Value::Object(object));
    Ok(())
}

/// The frontends must be of one standard balancer, and no other service's; they are chosen once.
fn frontends(azure: &AzureState, proposal: &Proposal<'_>, properties: &mut Object) -> Result<(), Refusal> {
    let id = proposal.id;
    let given = references(properties, FRONTENDS)?;
    NO_FRONTEND.details_when(
        given.is_empty() && !properties.contains_key("destinationIPAddress"),
        format_args!(
            "Private link service {id} must reference at least one load balancer frontend IP configuration."
        ),
    )?;
    fill(properties, FRONTENDS, json!([]));
    for frontend in &given {
        let user = azure
            .store
            .referrers(frontend)
            .find(|user| user.from != *id && is_of(&user.from, "/privatelinkservices/"));
        if let Some(user) = user {
            return Err(FRONTEND_OF_SERVICE.details(format_args!(
                    "Private link service {id} cannot use frontend IP configuration {frontend}, which is already used by \
                     private link service {}.",
                    user.from
                )));
        }
        let balancer = azure.store.holder(frontend).filter(|holder| holder.id != *frontend);
        NOT_STANDARD.details_when(balancer.and_then(|balancer| text(&balancer.body, "sku/name")).is_some_and(|sku| sku != "Standard"), format_args!(
                    "Private link service {id} references {frontend}, whose load balancer does not have sku Standard."
                ))?;
    }
    let set = |frontends: &[ResourceId]| frontends.iter().map(ResourceId::to_lower).collect::<BTreeSet<_>>();
    if let Some(old) = proposal.old {
        let before: Vec<ResourceId> = items(&old.body, &format!("properties/{FRONTENDS}"))
            .iter()
            .filter_map(|item| stored_reference(item, "id"))
            .collect();
        FRONTENDS_CHANGED.details_when(
            set(&before) != set(&given),
            format_args!(
                "The load balancer frontend IP configurations of private link service {id} cannot be changed."
            ),
        )?;
    }
    Ok(())
}

/// The addresses from which the service speaks to its balancer.
fn configurations(azure: &AzureState, id: &ResourceId, properties: &mut Object) -> Result<(), Refusal> {
    let given = take_children(id, properties, CONFIGURATIONS)?.unwrap_or_default();
    let most = azure.limit("network.ipConfigurationsPerPrivateLinkService");
    CONFIGURATION_COUNT.details_when(
        given.is_empty() || given.len() as u64 > most,
        format_args!("Private link service {id} must have 1 to {most} IP configurations."),
    )?;
    let mut kept = Vec::with_capacity(given.len());
    let mut promised = BTreeSet::new();
    // How many addresses each subnet is to give.
    let mut wanted: BTreeMap<ResourceId, usize> = BTreeMap::new();
    for mut child in given {
        let mut properties = take_properties(&mut child);
        known_members(&mut properties, &CONFIGURATION_MEMBERS, "PrivateLinkServiceIpConfiguration")?;
        strip(&mut properties, &["provisioningState"]);
        let me = id.child(CONFIGURATIONS, child.get("name").and_then(Value::as_str).unwrap_or_default());
        enumeration(&mut properties, "privateIPAllocationMethod", &["Dynamic", "Static"], true)?;
        enumeration(&mut properties, "privateIPAddressVersion", &["IPv4", "IPv6"], true)?;
        IPV6.details_when(
            properties.get("privateIPAddressVersion") == Some(&json!("IPv6")),
            format_args!("IP configuration {me} must have privateIPAddressVersion IPv4."),
        )?;
        let Some(subnet) = reference(&mut properties, "subnet")? else {
            return Err(
                SUBNET_REQUIRED.details(format_args!("IP configuration {me} must reference a subnet."))
            );
        };
        let network = azure.store.holder(&subnet).filter(|network| network.id != subnet);
        let Some((_, document)) = network.and_then(|network| azure.find_child(network, &subnet)) else {
            return Err(Refusal::invalid_reference(&subnet, &me));
        };
        POLICIES_ENABLED.details_when(text(document, "properties/privateLinkServiceNetworkPolicies") != Some("Disabled"), format_args!(
                    "Private link service {id} cannot be created in a subnet {subnet} since it has private link service \
                     network policies enabled."
                ))?;
        if properties.get("privateIPAllocationMethod") == Some(&json!("Static")) {
            let interface = proposed_interface(azure, id);
            own_interface::check_static(azure, &me, interface.as_ref(), &subnet, &properties, &mut promised)?;
        } else {
            properties.remove("privateIPAddress");
            if own_interface::address_of(azure, proposed_interface(azure, id).as_ref(), me.name(), &subnet)
                .is_none()
            {
                let count = wanted.entry(subnet.clone()).or_default();
                *count += 1;
                check_room(azure, &subnet, false, *count)?;
            }
        }
        child.insert("properties".into(), Value::Object(properties));
        kept.push(Value::Object(child));
    }
    primary(id, &mut kept)?;
    properties.insert(CONFIGURATIONS.into(), kept.into());
    Ok(())
}

fn proposed_interface(azure: &AzureState, id: &ResourceId) -> Option<ResourceId> {
    azure.store.get(id).map(|record| own_interface::id(azure, record, None))
}

/// Exactly one configuration is the primary one: the first, where none says so.
fn primary(id: &ResourceId, configurations: &mut [Value]) -> Result<(), Refusal> {
    let marked =
        configurations.iter().filter(|item| at(item, "properties/primary") == Some(&json!(true))).count();
    TWO_PRIMARIES.details_when(
        marked > 1,
        format_args!("Private link service {id} must have exactly one primary IP configuration."),
    )?;
    for (at, item) in configurations.iter_mut().enumerate() {
        if let Some(properties) = item.get_mut("properties").and_then(Value::as_object_mut) {
            fill(properties, "primary", marked == 0 && at == 0);
        }
    }
    Ok(())
}

/// The service that an alias names, in any subscription.
pub(crate) fn by_alias<'a>(azure: &'a AzureState, alias: &str) -> Option<&'a Record> {
    all(azure).find(|record| {
        text(&record.body, "properties/alias").is_some_and(|known| known.eq_ignore_ascii_case(alias))
    })
}

/// Every private link service.
pub(crate) fn all(azure: &AzureState) -> impl Iterator<Item = &Record> {
    azure.store.of_type(PRIVATE_LINK_SERVICES)
}

/// Whether a service's list (`visibility` or `autoApproval`) holds a subscription.
fn lists(record: &Record, list: &str, subscription: &str) -> bool {
    items(&record.body, &format!("properties/{list}/subscriptions"))
        .iter()
        .filter_map(Value::as_str)
        .any(|listed| listed == "*" || listed.eq_ignore_ascii_case(subscription))
}

/// Whether a subscription may know of a service: its own, or one that `visibility` lists.
pub(crate) fn visible(record: &Record, subscription: &str) -> bool {
    record.id.subscription_id().eq_ignore_ascii_case(subscription)
        || lists(record, "visibility", subscription)
}

/// Whether connections from a subscription need no decision.
pub(crate) fn approves(record: &Record, subscription: &str) -> bool {
    visible(record, subscription) && lists(record, "autoApproval", subscription)
}
