//! Public zones (Azure REST reference, "Zones", "Record Sets").

use std::collections::BTreeMap;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::names::spell;
use super::protocol::record_set;
use super::record_set::Records::{Given, Made, Many, One};
use super::record_set::fields::Field::{self, Host, Ipv4, Ipv6, Number, Text, Texts};
use super::record_set::{RecordSetRules, RecordSets, fields, record_sets, views};
use azure_engine::document::Object;
use azure_engine::provider::{
    AzureState, EtagForm, Expand, KeyForm, Placement, Polling, Presenting, Proposal, Protocol, Record,
    UrlForm, Writing,
};
use azure_engine::refusal::{Handled, Result};
use azure_engine::types::member_table::Holds::{Anything, Constant, Derived};
use azure_engine::types::member_table::Member;

const RESOURCE_TYPE: &str = "Microsoft.Network/dnsZones";

/// Versions that clients of today use, newest first.
const API_VERSIONS: [&str; 2] = ["2023-07-01-preview", "2018-05-01"];

const NAME_SERVERS: [&str; 4] =
    ["ns1-01.azure-dns.com.", "ns2-01.azure-dns.net.", "ns3-01.azure-dns.org.", "ns4-01.azure-dns.info."];

pub(super) struct Zones;

const USUAL: Protocol = Protocol::new(RESOURCE_TYPE, "DnsZone", &API_VERSIONS);
const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("public_zone.json"),
    placement: Placement::Global,
    etag: EtagForm::Guid,
    etagged: true,
    shows_state: false,
    synchronous: true,
    polling: Polling {
        key: KeyForm::Named("FrontEndAsyncOperation"),
        urls: UrlForm::InGroup("dnsOperationStatuses", "dnsOperationResults"),
        ..USUAL.polling
    },
    ..USUAL
};

static MEMBERS: [Member; 8] = [
    Member::new("maxNumberOfRecordSets", Derived),
    Member::new("maxNumberOfRecordsPerRecordSet", Derived),
    Member::new("nameServers", Derived),
    Member::new("numberOfRecordSets", Derived),
    Member::new("provisioningState", Derived),
    Member::new("registrationVirtualNetworks", Anything),
    Member::new("resolutionVirtualNetworks", Anything),
    Member::new("zoneType", Constant("Public")),
];

/// The records of public zones.
static RULES: RecordSetRules = RecordSetRules {
    zone: RESOURCE_TYPE,
    ttl: "TTL",
    record_sets: "dns.recordSetsPerZone",
    records: "dns.recordsPerRecordSet",
    registered: false,
    made: |zone| {
        let servers = NAME_SERVERS.map(|server| json!({ "nsdname": server }));
        let authority = json!({
            "host": NAME_SERVERS.first(),
            "email": "azuredns-hostmaster.microsoft.com",
            "serialNumber": 1,
            "refreshTime": 3_600,
            "retryTime": 300,
            "expireTime": 2_419_200,
            "minimumTTL": 300,
        });
        vec![
            (zone.child("NS", "@"), json!({ "TTL": 172_800, "NSRecords": servers })),
            (zone.child("SOA", "@"), json!({ "TTL": 3_600, "SOARecord": authority })),
        ]
    },
};

const fn of_type(resource_type: &'static str) -> Protocol {
    Protocol { example: include_str!("public_zone.json"), ..record_set(resource_type, &API_VERSIONS) }
}

static SOA: [Field; 5] = fields::soa("minimumTTL");

/// Types of records ("Overview of DNS zones and records").
pub(super) static RECORD_SETS: [RecordSets; 10] = record_sets! {
    "Microsoft.Network/dnsZones", of_type, &RULES;
    "A": Many("ARecords", &[Ipv4("ipv4Address")]);
    "AAAA": Many("AAAARecords", &[Ipv6("ipv6Address")]);
    "CAA": Many("caaRecords", &[Number("flags", 0, 255), Text("tag"), Text("value")]);
    "CNAME": One("CNAMERecord", &[Host("cname")]);
    "MX": Many("MXRecords", &fields::MX);
    "NS": Given("NSRecords", &[Host("nsdname")]);
    "PTR": Many("PTRRecords", &[Host("ptrdname")]);
    "SOA": Made("SOARecord", &SOA);
    "SRV": Many("SRVRecords", &fields::SRV);
    "TXT": Many("TXTRecords", &[Texts("value")]);
};

shape!(Zones, PROTOCOL, without Acting);

impl Writing for Zones {
    fn before_write(&self, _azure: &AzureState, proposal: Proposal<'_>) -> Result<Value> {
        Ok(proposal.keep(&["location", "tags"]).take())
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, old: Option<&Value>) {
        if old.is_none() {
            RULES.make(azure, id);
        }
    }
}

impl Presenting for Zones {
    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        spell(document, &record.id);
        document.entry("tags").or_insert_with(|| json!({}));
        document.insert(
            "properties".into(),
            json!({
                "maxNumberOfRecordSets": azure.limit("dns.recordSetsPerZone"),
                "nameServers": NAME_SERVERS,
                "numberOfRecordSets": RULES.count(azure, &record.id),
                "zoneType": "Public",
            }),
        );
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
