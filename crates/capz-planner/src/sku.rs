//! Machine sizes in a region: their capabilities, and the zones in which they are offered. Parsed from the list of
//! `Microsoft.Compute/skus`, of which only a small part is kept.

use std::collections::BTreeSet;

use capz_api::Quantity;
use capz_api::azure_machine::{AzureMachineTemplateStatus, NodeInfo};
use serde_json::Value;

use crate::document::list;
use crate::image::WINDOWS;
use crate::terminal::Terminal;

/// The resource type of machine sizes.
pub const VIRTUAL_MACHINES: &str = "virtualMachines";
/// The resource type of availability sets.
pub const AVAILABILITY_SETS: &str = "availabilitySets";
/// The SKU of availability sets whose machines have managed disks.
pub const ALIGNED: &str = "Aligned";

/// Capabilities of a size, by Azure's names.
pub mod capability {
    /// The number of processors.
    pub const VCPUS: &str = "vCPUs";
    /// The memory in GiB.
    pub const MEMORY_GB: &str = "MemoryGB";
    /// Whether the OS disk can be on the host.
    pub const EPHEMERAL_OS_DISK: &str = "EphemeralOSDiskSupported";
    /// Whether packets can bypass the host's switch.
    pub const ACCELERATED_NETWORKING: &str = "AcceleratedNetworkingEnabled";
    /// Whether data stored on the host can be encrypted there.
    pub const ENCRYPTION_AT_HOST: &str = "EncryptionAtHostSupported";
    /// The largest number of fault domains of an availability set.
    pub const MAX_FAULT_DOMAINS: &str = "MaximumPlatformFaultDomainCount";
    /// Whether UltraSSD_LRS disks can be attached.
    pub const ULTRA_SSD: &str = "UltraSSDAvailable";
    /// Whether trusted launch is unavailable.
    pub const TRUSTED_LAUNCH_DISABLED: &str = "TrustedLaunchDisabled";
    /// The kind of protection from the host.
    pub const CONFIDENTIAL_COMPUTING: &str = "ConfidentialComputingType";
    /// The architecture of the processors.
    pub const ARCHITECTURE: &str = "CpuArchitectureType";

    /// All of them: other capabilities are not kept.
    pub(super) const KEPT: [&str; 10] = [
        VCPUS,
        MEMORY_GB,
        EPHEMERAL_OS_DISK,
        ACCELERATED_NETWORKING,
        ENCRYPTION_AT_HOST,
        MAX_FAULT_DOMAINS,
        ULTRA_SSD,
        TRUSTED_LAUNCH_DISABLED,
        CONFIDENTIAL_COMPUTING,
        ARCHITECTURE,
    ];
}

/// A size, or another SKU, in one region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sku {
    name: Box<str>,
    category: Box<str>,
    capabilities: Vec<(&'static str, Box<str>)>,
    /// Zones in which it is offered to this subscription.
    zones: Vec<Box<str>>,
    /// Zones in which ultra disks can be attached; `None` stands for any place.
    ultra_zones: Vec<Option<Box<str>>>,
}

impl Sku {
    /// Parses a SKU, for this region.
    fn read(document: &Value, location: &str) -> Option<Self> {
        let capabilities = values_of(&document["capabilities"])
            .filter_map(|(name, value)| {
                let name = *capability::KEPT.iter().find(|kept| **kept == name)?;
                Some((name, value.into()))
            })
            .collect();
        let here = list(&document["locationInfo"])
            .find(|place| place["location"].as_str().is_some_and(|it| it.eq_ignore_ascii_case(location)));
        let mut zones: BTreeSet<&str> =
            here.map(|place| texts(&place["zones"]).collect()).unwrap_or_default();
        for restriction in list(&document["restrictions"]) {
            if restriction["type"].as_str() == Some("Location") {
                zones.clear();
            }
            for zone in texts(&restriction["restrictionInfo"]["zones"]) {
                zones.remove(zone);
            }
        }
        let mut ultra_zones = Vec::new();
        for detail in here.into_iter().flat_map(|place| list(&place["zoneDetails"])) {
            if !values_of(&detail["capabilities"]).any(|(name, _)| name == capability::ULTRA_SSD) {
                continue;
            }
            // Azure capitalizes this member, its documentation does not.
            let names: Vec<&str> = texts(&detail["name"]).chain(texts(&detail["Name"])).collect();
            if names.is_empty() {
                ultra_zones.push(None);
            }
            ultra_zones.extend(names.into_iter().map(|name| Some(name.into())));
        }
        Some(Self {
            name: document["name"].as_str()?.into(),
            category: document["resourceType"].as_str().unwrap_or_default().into(),
            capabilities,
            zones: zones.into_iter().map(Into::into).collect(),
            ultra_zones,
        })
    }

    /// The name, such as `Standard_D2s_v3`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Azure's value of a capability.
    pub fn capability(&self, name: &str) -> Option<&str> {
        self.capabilities.iter().find(|(known, _)| *known == name).map(|(_, value)| &**value)
    }

    /// Whether it has this capability.
    pub fn can(&self, name: &str) -> bool {
        self.capability(name).is_some_and(|value| value.eq_ignore_ascii_case("True"))
    }

    /// The amount of a capability; `None` if Azure gives none, or no number.
    pub fn amount(&self, name: &str) -> Option<f64> {
        self.capability(name)?.parse().ok()
    }

    /// Zones in which it is offered to this subscription.
    pub fn zones(&self) -> impl Iterator<Item = &str> {
        self.zones.iter().map(|zone| &**zone)
    }

    /// Whether a machine in this zone, or without a zone, can have ultra disks.
    pub fn has_ultra_disks(&self, zone: Option<&str>) -> bool {
        self.ultra_zones.iter().any(|known| known.is_none() || known.as_deref() == zone)
            || (zone.is_none() && self.can(capability::ULTRA_SSD))
    }
}

/// All sizes of a region.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Skus {
    location: String,
    skus: Vec<Sku>,
}

impl Skus {
    /// Parses Azure's list for a region.
    pub fn read<'a>(location: &str, documents: impl IntoIterator<Item = &'a Value>) -> Self {
        let skus = documents.into_iter().filter_map(|document| Sku::read(document, location)).collect();
        Self { location: location.to_owned(), skus }
    }

    /// The SKU with this name.
    ///
    /// # Errors
    /// It does not exist in this region.
    pub fn get(&self, name: &str, category: &str) -> Result<&Sku, Terminal> {
        self.skus.iter().find(|sku| *sku.name == *name).ok_or_else(|| {
            let location = &self.location;
            Terminal::configuration(format!(
                "resource sku with name '{name}' and category '{category}' not found in location '{location}'"
            ))
        })
    }

    /// Zones of the region: those in which any size is offered to this subscription.
    pub fn zones(&self) -> BTreeSet<String> {
        self.skus
            .iter()
            .filter(|sku| sku.category.eq_ignore_ascii_case(VIRTUAL_MACHINES))
            .flat_map(|sku| sku.zones().map(str::to_owned))
            .collect()
    }
}

/// The capacity of a machine of a template, for scaling from zero.
///
/// # Errors
/// Azure does not give it for this size; the message names what is missing.
pub fn template_status(size: &Sku, os_type: Option<&str>) -> Result<AzureMachineTemplateStatus, String> {
    let missing = |name: &str| format!("the size {} has no usable capability {name}", size.name());
    let amount = |name: &str| size.amount(name).filter(|amount| *amount > 0.0).ok_or_else(|| missing(name));
    amount(capability::VCPUS)?;
    let processors = size.capability(capability::VCPUS).unwrap_or_default().to_owned();
    let memory = amount(capability::MEMORY_GB)?;
    let architecture = match size.capability(capability::ARCHITECTURE) {
        Some("x64") => "amd64",
        Some("Arm64") => "arm64",
        _ => return Err(missing(capability::ARCHITECTURE)),
    };
    let system = if os_type == Some(WINDOWS) { "windows" } else { "linux" };
    let quantity = |text: String| Quantity(Value::String(text));
    Ok(AzureMachineTemplateStatus {
        capacity: Some(
            [("cpu".to_owned(), quantity(processors)), ("memory".to_owned(), quantity(gibibytes(memory)))]
                .into(),
        ),
        node_info: Some(NodeInfo {
            architecture: Some(architecture.to_owned()),
            operating_system: Some(system.to_owned()),
            ..NodeInfo::default()
        }),
        ..AzureMachineTemplateStatus::default()
    })
}

/// Memory as Kubernetes writes it, in the largest unit in which it is an integer.
fn gibibytes(amount: f64) -> String {
    if amount.fract() != 0.0 {
        return format!("{:.0}Mi", (amount * 1024.0).floor());
    }
    if amount % 1024.0 == 0.0 { format!("{:.0}Ti", amount / 1024.0) } else { format!("{amount:.0}Gi") }
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    list(value).filter_map(Value::as_str)
}

/// Capabilities in a document: names and values.
fn values_of(value: &Value) -> impl Iterator<Item = (&str, &str)> {
    list(value).filter_map(|item| Some((item["name"].as_str()?, item["value"].as_str()?)))
}

#[cfg(test)]
pub(crate) mod tests;
