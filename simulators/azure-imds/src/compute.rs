//! `compute` of the instance document. All values are texts; a missing value is an empty text.

use azure_types::ResourceId;
use serde_json::{Map, Value, json};

use azure_engine::document::reading::Documents;
use azure_engine::document::{at, at_mut, items, members, text};
use azure_providers::compute::machine::{full_id, machine_name};

/// A machine's documents: its own, and that of the scale set it is of.
pub(super) struct Machine {
    pub(super) id: ResourceId,
    pub(super) document: Value,
    pub(super) set: Option<(ResourceId, Value)>,
}

impl Machine {
    pub(super) fn read(documents: &dyn Documents, id: &ResourceId) -> Option<Self> {
        let mut document = documents.document(id)?;
        if let Some(Value::Array(disks)) = at_mut(&mut document, "properties/storageProfile/dataDisks") {
            disks.retain(|disk| has_arrived(documents, id, disk));
        }
        let parent = id.parent().filter(|parent| parent.namespace().is_some());
        let named = text(&document, "properties/virtualMachineScaleSet/id");
        let set = parent.or_else(|| ResourceId::parse(named?).ok());
        let set = set.and_then(|set| documents.document(&set).map(|document| (set, document)));
        Some(Self { id: id.clone(), document, set })
    }

    /// A member of the machine, or of the model of its set.
    fn member(&self, path: &str) -> Option<&Value> {
        let model = || at(&self.set.as_ref()?.1, &format!("properties/virtualMachineProfile/{path}"));
        at(&self.document, &format!("properties/{path}")).or_else(model)
    }

    /// The same as a text.
    fn word(&self, path: &str) -> String {
        self.member(path).map(plain).unwrap_or_default()
    }

    /// A member outside `properties`, of the machine or of its set.
    fn outer(&self, path: &str) -> Option<&Value> {
        at(&self.document, path).or_else(|| at(&self.set.as_ref()?.1, path))
    }

    /// A member of the instance view.
    fn seen(&self, path: &str) -> String {
        at(&self.document, &format!("properties/instanceView/{path}")).map(plain).unwrap_or_default()
    }
}

/// Whether a machine has a disk of its list already: one that is being attached is not there yet.
fn has_arrived(documents: &dyn Documents, machine: &ResourceId, disk: &Value) -> bool {
    let disk = text(disk, "managedDisk/id").and_then(|id| documents.document(&ResourceId::parse(id).ok()?));
    let Some(disk) = disk else { return true };
    let machine = full_id(machine);
    let holders = disk.get("managedBy").into_iter().chain(items(&disk, "managedByExtended"));
    holders.filter_map(Value::as_str).any(|holder| holder.eq_ignore_ascii_case(machine.as_str()))
}

/// Every value of the service is a text.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The text of a member, empty where it is missing.
fn word(value: &Value, path: &str) -> String {
    at(value, path).map(plain).unwrap_or_default()
}

/// The same, or a text for what is missing.
fn word_or(value: &Value, path: &str, missing: &str) -> String {
    at(value, path).map_or_else(|| missing.to_owned(), plain)
}

/// The whole `compute`, as the newest version has it.
pub(super) fn document(machine: &Machine) -> Map<String, Value> {
    let empty = json!({});
    let tags: Vec<(&String, String)> =
        members(machine.outer("tags").unwrap_or(&empty)).map(|(name, value)| (name, plain(value))).collect();
    let tag_text: Vec<String> = tags.iter().map(|(name, value)| format!("{name}:{value}")).collect();
    let tags_list: Vec<Value> =
        tags.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let set_name = machine.set.as_ref().map_or("", |(id, _)| id.name());
    let set_id = machine.set.as_ref().map_or("", |(id, _)| id.as_str());
    let image = machine.member("storageProfile/imageReference").unwrap_or(&empty);
    let windows = machine.member("osProfile/windowsConfiguration").is_some()
        || machine.word("storageProfile/osDisk/osType") == "Windows";
    let system = if windows { "Windows" } else { "Linux" };
    let size = match machine.word("hardwareProfile/vmSize") {
        size if size.is_empty() => machine.outer("sku/name").map(plain).unwrap_or_default(),
        size => size,
    };
    let zone = items(&machine.document, "zones").first().map(plain).unwrap_or_default();
    let location = machine.outer("location").map(plain).unwrap_or_default();
    let physical_zone = if zone.is_empty() { String::new() } else { format!("{location}-az{zone}") };
    let keys = machine.member("osProfile/linuxConfiguration/ssh/publicKeys").and_then(Value::as_array);
    let keys: Vec<Value> = keys
        .into_iter()
        .flatten()
        .map(|key| json!({ "keyData": word(key, "keyData"), "path": word(key, "path") }))
        .collect();
    let computer_name = match machine.word("osProfile/computerName") {
        name if name.is_empty() => machine.seen("computerName"),
        name => name,
    };
    let compute = json!({
        "additionalCapabilities": {
            "hibernationEnabled": word_or(&machine.document, "properties/additionalCapabilities/hibernationEnabled", "false"),
        },
        "azEnvironment": "AzurePublicCloud",
        "customData": "",
        "evictionPolicy": machine.word("evictionPolicy"),
        "extendedLocation": {
            "name": machine.outer("extendedLocation/name").map(plain).unwrap_or_default(),
            "type": machine.outer("extendedLocation/type").map(plain).unwrap_or_default(),
        },
        "host": { "id": machine.word("host/id") },
        "hostGroup": { "id": machine.word("hostGroup/id") },
        "isHostCompatibilityLayerVm": "false",
        "licenseType": machine.word("licenseType"),
        "location": location,
        "name": machine_name(&machine.id),
        "offer": word(image, "offer"),
        "osProfile": {
            "adminUsername": machine.word("osProfile/adminUsername"),
            "computerName": computer_name,
            "disablePasswordAuthentication":
                machine.member("osProfile/linuxConfiguration/disablePasswordAuthentication").map_or("false".into(), plain),
        },
        "osType": system,
        "physicalZone": physical_zone,
        "placementGroupId": machine.seen("placementGroupId"),
        "plan": {
            "name": machine.outer("plan/name").map(plain).unwrap_or_default(),
            "product": machine.outer("plan/product").map(plain).unwrap_or_default(),
            "publisher": machine.outer("plan/publisher").map(plain).unwrap_or_default(),
        },
        "platformFaultDomain": machine.seen("platformFaultDomain"),
        "platformSubFaultDomain": machine.seen("platformSubFaultDomain"),
        "platformUpdateDomain": machine.seen("platformUpdateDomain"),
        "priority": machine.word("priority"),
        "provider": "Microsoft.Compute",
        "publicKeys": keys,
        "publisher": word(image, "publisher"),
        "resourceGroupName": machine.id.group_name().unwrap_or_default(),
        "resourceId": machine.id,
        "securityProfile": {
            "encryptionAtHost": machine.member("securityProfile/encryptionAtHost").map_or("false".into(), plain),
            "secureBootEnabled":
                machine.member("securityProfile/uefiSettings/secureBootEnabled").map_or("false".into(), plain),
            "securityType": machine.word("securityProfile/securityType"),
            "virtualTpmEnabled":
                machine.member("securityProfile/uefiSettings/vTpmEnabled").map_or("false".into(), plain),
        },
        "sku": word(image, "sku"),
        "storageProfile": storage(machine, image, system),
        "subscriptionId": machine.id.subscription_id(),
        "tags": tag_text.join(";"),
        "tagsList": tags_list,
        "userData": machine.word("userData"),
        "version": word(image, "version"),
        "virtualMachineScaleSet": { "id": set_id },
        "vmId": machine.word("vmId"),
        "vmScaleSetName": set_name,
        "vmSize": size,
        "zone": zone,
    });
    match compute {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn disk(disk: &Value, system: Option<&str>) -> Value {
    let mut shown = json!({
        "caching": word_or(disk, "caching", "None"),
        "createOption": word(disk, "createOption"),
        "diskSizeGB": word(disk, "diskSizeGB"),
        "image": { "uri": word(disk, "image/uri") },
        "managedDisk": {
            "id": word(disk, "managedDisk/id"),
            "storageAccountType": word(disk, "managedDisk/storageAccountType"),
        },
        "name": word(disk, "name"),
        "vhd": { "uri": word(disk, "vhd/uri") },
        "writeAcceleratorEnabled": word_or(disk, "writeAcceleratorEnabled", "false"),
    });
    match system {
        Some(system) => {
            shown["diffDiskSettings"] = json!({ "option": word(disk, "diffDiskSettings/option") });
            shown["encryptionSettings"] =
                json!({ "enabled": word_or(disk, "encryptionSettings/enabled", "false") });
            shown["osType"] = system.into();
        }
        None => {
            shown["bytesPerSecondThrottle"] = "".into();
            shown["diskCapacityBytes"] = "".into();
            shown["isSharedDisk"] = "false".into();
            shown["isUltraDisk"] = "false".into();
            shown["lun"] = word(disk, "lun").into();
            shown["opsPerSecondThrottle"] = "".into();
        }
    }
    shown
}

fn storage(machine: &Machine, image: &Value, system: &str) -> Value {
    let empty = json!({});
    let data: Vec<Value> = machine
        .member("storageProfile/dataDisks")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|data| disk(data, None))
        .collect();
    json!({
        "dataDisks": data,
        "imageReference": {
            "communityGalleryImageId": word(image, "communityGalleryImageId"),
            "exactVersion": word(image, "exactVersion"),
            "id": word(image, "id"),
            "offer": word(image, "offer"),
            "publisher": word(image, "publisher"),
            "sharedGalleryImageId": word(image, "sharedGalleryImageId"),
            "sku": word(image, "sku"),
            "version": word(image, "version"),
        },
        "osDisk": disk(machine.member("storageProfile/osDisk").unwrap_or(&empty), Some(system)),
        "resourceDisk": { "size": "" },
    })
}
