//! Links of zones to virtual networks (Azure REST reference, "Virtual Network Links").

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::names::spell;
use super::protocol::{ZONES, operation_name, protocol};
use azure_engine::document::{Object, fill, stored_reference, take_properties};
use azure_engine::provider::{
    Acting, AzureState, EtagForm, Expand, Presenting, Proposal, Protocol, Record, Shape, Writing,
};
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::store::State;
use azure_engine::store::reference::Reference;
use azure_engine::types::member_table::Holds::{Derived, Flag, Names, Word};
use azure_engine::types::member_table::Member;

const RESOURCE_TYPE: &str = "Microsoft.Network/privateDnsZones/virtualNetworkLinks";
const NETWORKS: &str = "Microsoft.Network/virtualNetworks";

pub(super) struct Links;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("link.json"),
    ..protocol(RESOURCE_TYPE, "VirtualNetworkLink", EtagForm::QuotedGuid)
};

static MEMBERS: [Member; 4] = [
    Member::new("registrationEnabled", Flag),
    Member::new("resolutionPolicy", Word(&["Default", "NxDomainRedirect"], false)),
    Member::new("virtualNetwork", Names("virtualNetworks")),
    Member::new("virtualNetworkLinkState", Derived),
];

impl Shape for Links {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn operation_name(&self, verb: &str) -> String {
        operation_name(PROTOCOL.noun, verb)
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        // A network may be deleted; its links are deleted with it.
        network(&record.body).map(|to| Reference::names(&record.id, to)).into_iter().collect()
    }
}

impl Writing for Links {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let id = proposal.id;
        let zone = id.parent().unwrap_or_else(|| id.clone());
        let mut properties = take_properties(&mut proposal.body);
        fill(&mut properties, "registrationEnabled", false);
        // Only zones of private link can forward unknown names.
        if zone.name().to_lowercase().split('.').any(|label| label == "privatelink") {
            fill(&mut properties, "resolutionPolicy", "Default");
        }
        let old = proposal.old;
        let body = proposal.keep(&["location", "tags"]).stored(properties);
        let network = network(&body).ok_or_else(|| {
            Code::ours(400, "BadRequest")
                .says(format_args!("The virtual network link {id} names no virtual network."))
        })?;
        let there = azure.store.get(&network).is_some_and(|record| record.resource_type.name() == NETWORKS);
        if !there {
            return Err(Refusal::invalid_reference(&network, id));
        }
        match old.and_then(|old| self::network(&old.body)) {
            Some(old) if old != network => {
                return Err(Code::ours(409, "Conflict")
                    .says("The virtual network of a virtual network link cannot be changed."));
            }
            _ => {}
        }
        check_others(azure, id, &zone, &network, registers(&body))?;
        Ok(body)
    }

    fn after_named_is_gone(&self, azure: &mut AzureState, id: &ResourceId) {
        azure.remove(id);
    }
}

impl Presenting for Links {
    fn present(&self, _azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        spell(document, &record.id);
        let word = if record.state == State::Succeeded { "Completed" } else { "InProgress" };
        if let Some(Value::Object(properties)) = document.get_mut("properties") {
            properties.insert("virtualNetworkLinkState".into(), json!(word));
        }
    }
}

impl Acting for Links {}

fn network(link: &Value) -> Option<ResourceId> {
    stored_reference(link, "properties/virtualNetwork/id")
}

/// Whether a link's network registers its machines in the zone.
pub(super) fn registers(link: &Value) -> bool {
    link.pointer("/properties/registrationEnabled").and_then(Value::as_bool) == Some(true)
}

/// The links of a zone.
pub(super) fn of_zone<'a>(azure: &'a AzureState, zone: &ResourceId) -> Vec<&'a Record> {
    azure.store.of_type_below(RESOURCE_TYPE, zone)
}

/// A zone is linked to a network once, a network has one zone of a name, and it registers its machines in one zone.
fn check_others(
    azure: &AzureState,
    id: &ResourceId,
    zone: &ResourceId,
    network: &ResourceId,
    registers_too: bool,
) -> Result<()> {
    let others: Vec<&Record> = of_zone(azure, zone).into_iter().filter(|link| link.id != *id).collect();
    // Users of Terraform and Ansible quote code and words.
    Code::azures(409, "Conflict").says_when(
        others.iter().any(|link| self::network(&link.body).as_ref() == Some(network)),
        format_args!("Private zone '{}' is already linked to the virtual network '{network}'.", zone.name()),
    )?;
    let mut all = azure.store.of_type(RESOURCE_TYPE).filter(|link| link.id != *id);
    let is_of_that_name = |link: &&Record| {
        let other = link.id.parent();
        other.is_some_and(|other| other != *zone && other.name().eq_ignore_ascii_case(zone.name()))
            && self::network(&link.body).as_ref() == Some(network)
    };
    if all.any(|link| is_of_that_name(&link)) {
        let name = zone.name();
        // Users of Terraform and of Azure's landing zones quote code and words.
        return Err(Code::azures(400, "BadRequest").says(format_args!(
            "A virtual network cannot be linked to multiple zones with overlapping namespaces. You tried to link \
             virtual network with '{name}' and '{name}' zones."
        )));
    }
    let registering = others.iter().filter(|link| registers(&link.body)).count();
    for (count, limit, what) in [
        (others.len(), "privateDns.linksPerZone", "virtual network links"),
        (
            if registers_too { registering } else { 0 },
            "privateDns.registrationLinksPerZone",
            "virtual network links with registration",
        ),
    ] {
        let most = azure.limit(limit);
        Code::ours(400, "VirtualNetworkLinkLimitExceeded").says_when(
            count as u64 >= most,
            format_args!("A private zone cannot have more than {most} {what}."),
        )?;
    }
    let elsewhere = azure.store.of_type(RESOURCE_TYPE).find(|link| {
        link.id != *id && registers(&link.body) && self::network(&link.body).as_ref() == Some(network)
    });
    match elsewhere.filter(|_| registers_too) {
        Some(other) => Err(Code::ours(409, "Conflict").says(format_args!(
            "The virtual network '{network}' registers its machines in another private zone already: {}.",
            other.id
        ))),
        None => Ok(()),
    }
}

/// Whether a zone is there.
pub(super) fn is_zone(azure: &AzureState, id: &ResourceId) -> bool {
    azure.store.get(id).is_some_and(|record| record.resource_type.name() == ZONES)
}
