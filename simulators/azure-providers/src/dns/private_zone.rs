//! Private zones (Azure REST reference, "Private Zones").

use std::collections::BTreeMap;

use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::link;
use super::names::spell;
use super::protocol::{ZONES, operation_name, private_record_set, protocol};
use super::record_set::Records::{Made, Many, One};
use super::record_set::fields::Field::{self, Host, Ipv4, Ipv6, Texts};
use super::record_set::{RecordSetRules, RecordSets, fields, record_sets, views};
use azure_engine::document::Object;
use azure_engine::provider::{
    Acting, AzureState, EtagForm, Expand, Presenting, Proposal, Protocol, Record, Shape, Writing,
};
use azure_engine::refusal::{Code, Handled, Result};
use azure_engine::types::member_table::Holds::Derived;
use azure_engine::types::member_table::Member;

pub(super) struct Zones;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("private_zone.json"),
    ..protocol(ZONES, "PrivateDnsZone", EtagForm::Guid)
};

static MEMBERS: [Member; 7] = [
    Member::new("internalId", Derived),
    Member::new("maxNumberOfRecordSets", Derived),
    Member::new("maxNumberOfVirtualNetworkLinks", Derived),
    Member::new("maxNumberOfVirtualNetworkLinksWithRegistration", Derived),
    Member::new("numberOfRecordSets", Derived),
    Member::new("numberOfVirtualNetworkLinks", Derived),
    Member::new("numberOfVirtualNetworkLinksWithRegistration", Derived),
];

/// The records of private zones.
static RULES: RecordSetRules = RecordSetRules {
    zone: ZONES,
    ttl: "ttl",
    record_sets: "privateDns.recordSetsPerZone",
    records: "privateDns.recordsPerRecordSet",
    registered: true,
    made: |zone| {
        vec![(
            "SOA",
            json!({
                "ttl": 3_600,
                "soaRecord": {
                    "host": "azureprivatedns.net",
                    "email": "azureprivatedns-host.microsoft.com",
                    "serialNumber": 1,
                    "refreshTime": 3_600,
                    "retryTime": 300,
                    "expireTime": 2_419_200,
                    "minimumTtl": 10,
                },
            }),
        )]
        .into_iter()
        .map(|(kind, properties)| (zone.child(kind, "@"), properties))
        .collect()
    },
};

static SOA: [Field; 5] = fields::soa("minimumTtl");

/// Types of records ("Private DNS record types").
pub(super) static RECORD_SETS: [RecordSets; 8] = record_sets! {
    "Microsoft.Network/privateDnsZones", private_record_set, &RULES;
    "A": Many("aRecords", &[Ipv4("ipv4Address")]);
    "AAAA": Many("aaaaRecords", &[Ipv6("ipv6Address")]);
    "CNAME": One("cnameRecord", &[Host("cname")]);
    "MX": Many("mxRecords", &fields::MX);
    "PTR": Many("ptrRecords", &[Host("ptrdname")]);
    "SOA": Made("soaRecord", &SOA);
    "SRV": Many("srvRecords", &fields::SRV);
    "TXT": Many("txtRecords", &[Texts("value")]);
};

impl Shape for Zones {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn operation_name(&self, verb: &str) -> String {
        operation_name(PROTOCOL.noun, verb)
    }
}

impl Writing for Zones {
    fn before_write(&self, _azure: &AzureState, proposal: Proposal<'_>) -> Result<Value> {
        Ok(proposal.keep(&["location", "tags"]).take())
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, old: Option<&Value>) {
        if old.is_none() {
            RULES.make(azure, id);
        }
    }

    fn before_delete(&self, azure: &AzureState, record: &Record) -> Result<()> {
        let links = link::of_zone(azure, &record.id);
        if links.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = links.iter().map(|link| format!("'{}'", link.id)).collect();
        // ARM's own code for resources that contain others.
        Err(Code::azures(409, "CannotDeleteResource").says(format_args!(
            "Cannot delete resource while nested resources exist. Some existing nested resource IDs include: {}. Please \
             delete all nested resources before deleting this resource.",
            ids.join(",")
        )))
    }
}

impl Presenting for Zones {
    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        spell(document, &record.id);
        let links = link::of_zone(azure, &record.id);
        let registering = links.iter().filter(|link| link::registers(&link.body)).count();
        let guid = azure.seed.guid("zone", record.id.as_str(), record.incarnation);
        let Some(Value::Object(properties)) = document.get_mut("properties") else { return };
        for (member, value) in [
            ("internalId", json!(STANDARD.encode(format!("ImmutableZoneIdentity;{guid};0")))),
            ("maxNumberOfRecordSets", json!(azure.limit("privateDns.recordSetsPerZone"))),
            ("maxNumberOfVirtualNetworkLinks", json!(azure.limit("privateDns.linksPerZone"))),
            (
                "maxNumberOfVirtualNetworkLinksWithRegistration",
                json!(azure.limit("privateDns.registrationLinksPerZone")),
            ),
            ("numberOfRecordSets", json!(RULES.count(azure, &record.id))),
            ("numberOfVirtualNetworkLinks", json!(links.len())),
            ("numberOfVirtualNetworkLinksWithRegistration", json!(registering)),
        ] {
            properties.insert(member.into(), value);
        }
    }

    fn view_with_options(
        &self,
        azure: &AzureState,
        record: &Record,
        below: &[&str],
        query: &BTreeMap<String, String>,
    ) -> Handled<Value> {
        views::all(azure, record, below, query)
    }
}

impl Acting for Zones {}
