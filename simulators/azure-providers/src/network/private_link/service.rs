//! Private link services: a load balancer's frontend, offered to private endpoints elsewhere
//! ("What is Azure Private Link service?").

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::{
    connection,
    own_interface::{self, ChosenConfiguration},
    service_connections,
};
use crate::network::shared::codes::SUBNET_REQUIRED;
use crate::network::shared::{
    addresses::check_room, children::each_child, protocol::protocol, type_names::PRIVATE_LINK_SERVICES,
};
use azure_engine::document::{self, at, fill, items, name, stored_reference, take_properties, text};
use azure_engine::provider::{
    Acting, AzureState, ChildCollection, Concurrency, Expand, PartWrite, Presenting, Proposal, Protocol,
    Record, Shape, Writing,
};
use azure_engine::refusal::{Code, Handled, Refusal, Result};
use azure_engine::store::reference::{Role, is_of};
use azure_engine::types::member_table::Holds::{
    Anything, Children, Derived, Flag, Guid, Object, Text, Texts, Uses, UsesAll, Word,
};
use azure_engine::types::member_table::Member;

const FRONTENDS: &str = "loadBalancerFrontendIpConfigurations";
const CONFIGURATIONS: &str = "ipConfigurations";

static MEMBERS: [Member; 13] = [
    Member::new("accessMode", Anything),
    Member::new("alias", Derived),
    Member::new("autoApproval", Object(&SUBSCRIPTIONS)),
    Member::new("destinationIPAddress", Text),
    Member::new("enableProxyProtocol", Flag).or_flag(false),
    Member::new("extendedLocation", Anything),
    Member::new("fqdns", Texts).or_empty(),
    Member::new(CONFIGURATIONS, Children(&CONFIGURATION)).or_empty(),
    Member::new(FRONTENDS, UsesAll("loadBalancers/frontendIPConfigurations")).or_empty(),
    Member::new("networkInterfaces", Derived),
    Member::new("privateEndpointConnections", Derived),
    Member::new("resourceGuid", Guid),
    Member::new("visibility", Object(&SUBSCRIPTIONS)),
];

static SUBSCRIPTIONS: [Member; 1] = [Member::new("subscriptions", Texts).or_empty()];

static CONFIGURATION: [Member; 6] = [
    Member::new("primary", Flag),
    Member::new("privateIPAddress", Text),
    Member::new("privateIPAddressVersion", Word(&["IPv4", "IPv6"], true)),
    Member::new("privateIPAllocationMethod", Word(&["Dynamic", "Static"], true)),
    Member::new("provisioningState", Derived),
    // The interface holds the addresses; the service itself only keeps the subnet from being deleted.
    Member::new("subnet", Uses("virtualNetworks/subnets")).role(Role::Model),
];

pub(crate) struct PrivateLinkServices;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("service.json"),
    concurrency: Concurrency::Busy,
    child_collections: &[ChildCollection { name: CONFIGURATIONS, writable: false, back_references: &[] }],
    ..protocol(PRIVATE_LINK_SERVICES, "PrivateLinkService")
};

impl Shape for PrivateLinkServices {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn owned(&self, azure: &AzureState, record: &Record) -> Vec<ResourceId> {
        vec![own_interface::id(azure, record, None)]
    }
}

impl Writing for PrivateLinkServices {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let id = proposal.id;
        let mut properties = take_properties(&mut proposal.body);
        let location = proposal.body.get("location").and_then(Value::as_str).unwrap_or_default();
        let guid = azure.seed.guid("alias", id.as_str(), azure.store.incarnation(id));
        let alias = format!("{}.{guid}.{location}.azure.privatelinkservice", id.name().to_lowercase());
        properties.insert("alias".into(), alias.into());
        check_frontends(azure, &proposal, &properties)?;
        check_configurations(azure, id, &mut properties)?;
        mark_primary(id, &mut properties)?;
        Ok(proposal.stored(properties))
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, _old: Option<&Value>) {
        let Some(record) = azure.store.get(id) else { return };
        let wanted = items(&record.body, &format!("properties/{CONFIGURATIONS}"))
            .iter()
            .filter_map(|item| {
                Some(ChosenConfiguration {
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

    fn before_delete(&self, azure: &AzureState, record: &Record) -> Result<()> {
        match connection::of_service(azure, &record.id).first() {
            None => Ok(()),
            Some(connection) => Err(Code::azures(
                400,
                "PrivateLinkServiceCannotBeDeletedBecauseItHasPrivateEndpointConnections",
            )
            .details(format_args!(
                "Private link service {} cannot be deleted because it has private endpoint \
             connections, such as {}. Delete the connections first.",
                record.id,
                connection.id(azure, &record.id)
            ))),
        }
    }
}

impl Presenting for PrivateLinkServices {
    fn present(&self, azure: &AzureState, record: &Record, document: &mut document::Object, _expand: Expand) {
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
        _id: &ResourceId,
        properties: &mut document::Object,
    ) {
        // Recorded: configurations are done while their service is still being updated.
        properties.insert("provisioningState".into(), "Succeeded".into());
    }

    fn view(&self, azure: &AzureState, record: &Record, below: &[&str]) -> Handled<Value> {
        let etag = Value::from(azure.etag(record));
        service_connections::view_as(azure, &record.id, below, |connection| {
            connection.present(azure, &record.id, &etag)
        })
    }
}

impl Acting for PrivateLinkServices {
    fn write_below(&self, azure: &mut AzureState, id: &ResourceId, write: PartWrite<'_>) -> Handled<bool> {
        service_connections::write_view(azure, id, write)
    }
}

/// The frontends must belong to one standard balancer and to no other service; they are fixed at creation.
fn check_frontends(azure: &AzureState, proposal: &Proposal<'_>, properties: &document::Object) -> Result<()> {
    let id = proposal.id;
    let listed = |list: Option<&Value>| -> BTreeSet<ResourceId> {
        let list = list.and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|item| stored_reference(item, "id")).collect()
    };
    let given = listed(properties.get(FRONTENDS));
    Code::ours(400, "PrivateLinkServiceMustHaveLoadBalancerFrontendIpConfiguration").details_when(
        given.is_empty() && !properties.contains_key("destinationIPAddress"),
        format_args!(
            "Private link service {id} must reference at least one load balancer frontend IP configuration."
        ),
    )?;
    for frontend in &given {
        let user = azure
            .store
            .referrers(frontend)
            .find(|user| user.from != *id && is_of(&user.from, "/privatelinkservices/"));
        if let Some(user) = user {
            return Err(Code::ours(400, "LoadBalancerFrontendIPConfigurationInUseByPrivateLinkService")
                .details(format_args!(
                    "Private link service {id} cannot use frontend IP configuration {frontend}, which is \
             already used by private link service {}.",
                    user.from
                )));
        }
        let balancer = azure.store.holder(frontend).filter(|holder| holder.id != *frontend);
        Code::ours(400, "PrivateLinkServiceRequiresStandardLoadBalancer").details_when(
            balancer
                .and_then(|balancer| text(&balancer.body, "sku/name"))
                .is_some_and(|sku| sku != "Standard"),
            format_args!(
                "Private link service {id} references {frontend}, whose load balancer does not have \
             sku Standard."
            ),
        )?;
    }
    Code::ours(400, "PrivateLinkServiceFrontendIpConfigurationsCannotBeChanged").details_when(
        proposal.old.is_some_and(|old| listed(at(&old.body, &format!("properties/{FRONTENDS}"))) != given),
        format_args!(
            "The load balancer frontend IP configurations of private link service {id} cannot be changed."
        ),
    )
}

/// Checks the addresses of traffic from the service to its balancer.
fn check_configurations(
    azure: &AzureState,
    id: &ResourceId,
    properties: &mut document::Object,
) -> Result<()> {
    let most = azure.limit("network.ipConfigurationsPerPrivateLinkService");
    let count = properties.get(CONFIGURATIONS).and_then(Value::as_array).map_or(0, Vec::len) as u64;
    Code::ours(400, "PrivateLinkServiceInvalidNumberOfIpConfigurations").details_when(
        !(1..=most).contains(&count),
        format_args!("Private link service {id} must have 1 to {most} IP configurations."),
    )?;
    let interface = azure.store.get(id).map(|record| own_interface::id(azure, record, None));
    let mut promised = BTreeSet::new();
    // The number of addresses that each subnet has to provide.
    let mut wanted: BTreeMap<ResourceId, usize> = BTreeMap::new();
    for (me, properties) in each_child(id, properties, CONFIGURATIONS) {
        Code::ours(400, "PrivateLinkServiceIPv6NotSupported").details_when(
            properties.get("privateIPAddressVersion").is_some_and(|version| version == "IPv6"),
            format_args!("IP configuration {me} must have privateIPAddressVersion IPv4."),
        )?;
        let subnet =
            properties.get("subnet").and_then(|subnet| stored_reference(subnet, "id")).ok_or_else(|| {
                SUBNET_REQUIRED.details(format_args!("IP configuration {me} must reference a subnet."))
            })?;
        let network = azure.store.holder(&subnet).filter(|network| network.id != subnet);
        let Some((_, document)) = network.and_then(|network| azure.find_child(network, &subnet)) else {
            return Err(Refusal::invalid_reference(&subnet, &me));
        };
        Code::azures(400, "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled")
            .details_when(
                text(document, "properties/privateLinkServiceNetworkPolicies") != Some("Disabled"),
                format_args!(
                    "Private link service {id} cannot be created in a subnet {subnet} since it has \
             private link service network policies enabled."
                ),
            )?;
        let interface = interface.as_ref();
        if properties.get("privateIPAllocationMethod").is_some_and(|method| method == "Static") {
            own_interface::check_static(azure, &me, interface, &subnet, properties, &mut promised)?;
            continue;
        }
        properties.remove("privateIPAddress");
        if own_interface::address_of(azure, interface, me.name(), &subnet).is_none() {
            let count = wanted.entry(subnet.clone()).or_default();
            *count += 1;
            check_room(azure, &subnet, false, *count)?;
        }
    }
    Ok(())
}

/// Exactly one configuration is primary: the first, where none is marked.
fn mark_primary(id: &ResourceId, properties: &mut document::Object) -> Result<()> {
    let marked = each_child(id, properties, CONFIGURATIONS);
    let marked = marked.filter(|(_, one)| one.get("primary") == Some(&Value::Bool(true))).count();
    Code::ours(400, "PrivateLinkServiceMustHaveOnePrimaryIpConfiguration").details_when(
        marked > 1,
        format_args!("Private link service {id} must have exactly one primary IP configuration."),
    )?;
    for (at, (_, properties)) in each_child(id, properties, CONFIGURATIONS).enumerate() {
        fill(properties, "primary", marked == 0 && at == 0);
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

/// Whether a subscription may see a service: its own, or one that `visibility` lists.
pub(crate) fn visible(record: &Record, subscription: &str) -> bool {
    record.id.subscription_id().eq_ignore_ascii_case(subscription)
        || lists(record, "visibility", subscription)
}

/// Whether connections from a subscription are approved automatically.
pub(crate) fn approves(record: &Record, subscription: &str) -> bool {
    visible(record, subscription) && lists(record, "autoApproval", subscription)
}
