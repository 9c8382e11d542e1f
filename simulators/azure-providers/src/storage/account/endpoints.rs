//! The host names of accounts, and their regions.

use azure_engine::document::Object;
use azure_engine::provider::{AzureState, Record};
use serde_json::{Value, json};

use super::super::tables::ACCOUNTS;
use super::sku::{is_read_access, kind_of, secondary_region, sku_of};

/// The suffix of all host names.
const SUFFIX: &str = "core.windows.net";

/// The zones of static web sites by region, as their published addresses show them; `z1` elsewhere is our choice.
const WEB_ZONES: [(&str, &str); 20] = [
    ("australiaeast", "z8"),
    ("australiasoutheast", "z26"),
    ("brazilsouth", "z15"),
    ("canadacentral", "z9"),
    ("centralindia", "z29"),
    ("centralus", "z19"),
    ("eastasia", "z7"),
    ("eastus", "z13"),
    ("eastus2", "z20"),
    ("francecentral", "z28"),
    ("japaneast", "z11"),
    ("koreacentral", "z12"),
    ("northcentralus", "z14"),
    ("northeurope", "z16"),
    ("southcentralus", "z21"),
    ("southeastasia", "z23"),
    ("uksouth", "z33"),
    ("westeurope", "z6"),
    ("westus", "z22"),
    ("westus2", "z5"),
];

/// The account of a name, wherever it is: names are unique in all of Azure.
pub(crate) fn find<'a>(azure: &'a AzureState, name: &str) -> Option<&'a Record> {
    azure.store.of_type(ACCOUNTS).find(|record| record.id.name().eq_ignore_ascii_case(name))
}

fn endpoints(name: &str, region: &str, services: impl Iterator<Item = &'static str>) -> Value {
    let zone = WEB_ZONES.iter().find(|(known, _)| *known == region).map_or("z1", |(_, zone)| zone);
    services
        .map(|service| {
            let url = match service {
                "web" => format!("https://{name}.{zone}.web.{SUFFIX}/"),
                _ => format!("https://{name}.{service}.{SUFFIX}/"),
            };
            (service.to_owned(), Value::from(url))
        })
        .collect::<Object>()
        .into()
}

/// Adds endpoints and regions to `properties` that are about to be shown.
pub(super) fn present(record: &Record, region: &str, properties: &mut Object) {
    let (kind, sku, name) = (kind_of(&record.body), sku_of(&record.body), record.id.name());
    let services = kind.services.iter().copied();
    properties.insert("primaryEndpoints".into(), endpoints(name, region, services.clone()));
    properties.insert("primaryLocation".into(), region.into());
    properties.insert("statusOfPrimary".into(), "available".into());
    let Some(secondary) = secondary_region(sku, region) else { return };
    properties.insert("secondaryLocation".into(), secondary.into());
    properties.insert("statusOfSecondary".into(), "available".into());
    if is_read_access(sku) {
        let readable = services.filter(|service| *service != "file");
        let name = format!("{name}-secondary");
        properties.insert("secondaryEndpoints".into(), endpoints(&name, region, readable));
    }
}

/// The possible targets of private endpoints (`privateLinkResources`).
pub(super) fn link_resources(record: &Record) -> Value {
    let shown = kind_of(&record.body).services.iter().map(|service| {
        json!({
            "id": record.id.child("privateLinkResources", service),
            "name": service,
            "type": "Microsoft.Storage/storageAccounts/privateLinkResources",
            "properties": {
                "groupId": service,
                "requiredMembers": [service],
                "requiredZoneNames": [format!("privatelink.{service}.{SUFFIX}")],
            },
        })
    });
    json!({ "value": shown.collect::<Vec<_>>() })
}
