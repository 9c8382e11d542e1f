//! What disks and snapshots are made of (`creationData`): said once, when they are made, and checked against what
//! is there.

use azure_types::ResourceId;
use serde_json::Value;

use crate::compute::tables::codes::{BAD_REQUEST, NOT_FOUND};
use crate::compute::tables::type_names::{DISK_TYPE, SNAPSHOT_TYPE};
use crate::compute::tables::words::missing;
use azure_engine::document::{Object, at, into_object, text};
use azure_engine::error::Refusal;
use azure_engine::provider::{AzureState, Record};
use azure_engine::store::State;

const GIB: u64 = 1 << 30;

/// Bytes behind the content of an uploaded disk.
const FOOTER: u64 = 512;

/// The size of what is not known better: that of a small system.
pub(crate) const USUAL_GIB: i64 = 30;

/// What is to be made.
pub(crate) struct Copy<'a> {
    /// What refusals call it.
    pub(crate) noun: &'static str,
    /// Where it is to be.
    pub(crate) location: &'a str,
}

/// Members that each way of making needs.
const NEEDED: [(&str, &str); 5] = [
    ("Copy", "sourceResourceId"),
    ("CopyStart", "sourceResourceId"),
    ("Restore", "sourceResourceId"),
    ("Import", "sourceUri"),
    ("ImportSecure", "sourceUri"),
];

/// Refuses to change how something came to be. What is not said stays.
fn check_unchanged(name: &str, before: &Value, given: &Value) -> Result<(), Refusal> {
    let changed = |member: &&str| {
        let (before, given) = (text(before, member), text(given, member));
        let same = |before: &str, given: &str| match *member {
            // A URL may hold a signature, in which case matters.
            "sourceUri" => before == given,
            _ => before.eq_ignore_ascii_case(given),
        };
        given.is_some_and(|given| !before.is_some_and(|before| same(before, given)))
    };
    match ["createOption", "sourceResourceId", "sourceUri"].into_iter().find(changed) {
        None => Ok(()),
        Some(member) => Err(fixed(name, member)),
    }
}

/// What a disk or snapshot is of stays as it was when it was made.
pub(crate) fn keep(old: &Record, given: &Value, properties: &mut Object) -> Result<(), Refusal> {
    let before = creation_data(old.body.get("properties"));
    check_unchanged(old.id.name(), &before, &creation_data(Some(given)))?;
    properties.insert("creationData".into(), before);
    Ok(())
}

/// In these words, which call snapshots disks, too, clients look for `existing disk`.
pub(crate) fn fixed(name: &str, member: &str) -> Refusal {
    let text = format!("Changing property '{member}' is not allowed for existing disk '{name}'.");
    BAD_REQUEST.says(text)
}

impl Copy<'_> {
    /// Takes `creationData` out of the properties, complete for its option.
    pub(crate) fn take(&self, properties: &mut Object) -> Result<Object, Refusal> {
        let mut creation = properties.remove("creationData").map(into_object).unwrap_or_default();
        by_id(&mut creation);
        let option = creation.get("createOption").and_then(Value::as_str).unwrap_or_default();
        let needed = NEEDED.iter().find(|(way, _)| *way == option).map(|(_, member)| *member);
        match needed.filter(|member| creation.get(*member).is_none_or(|value| value == "")) {
            None => Ok(creation),
            Some(member) => Err(missing(&format!("{}.creationData.{member}", self.noun))),
        }
    }

    /// The disk or snapshot that is copied. Only a copy in the background reaches into another region.
    pub(crate) fn source<'a>(&self, azure: &'a AzureState, creation: &Object) -> Result<&'a Record, Refusal> {
        let given = creation.get("sourceResourceId").and_then(Value::as_str).unwrap_or_default();
        let record = ResourceId::parse(given).ok().and_then(|id| azure.store.get(&id));
        let Some(record) = record.filter(|record| record.state != State::Deleting) else {
            return Err(NOT_FOUND.says(format_args!("Resource {given} is not found.")));
        };
        if ![DISK_TYPE, SNAPSHOT_TYPE].contains(&record.resource_type.name()) {
            return Err(self.refuse(
                "creationData.sourceResourceId",
                format!("Resource {given} is neither a disk nor a snapshot."),
            ));
        }
        let background = creation.get("createOption").is_some_and(|option| option == "CopyStart");
        if !background && text(&record.body, "location") != Some(self.location) {
            return Err(NOT_FOUND.says(format_args!("Resource {} is not found.", record.id.name())));
        }
        Ok(record)
    }

    /// Writes down the source, and takes its size where no larger one is asked for.
    pub(crate) fn of(
        &self,
        azure: &AzureState,
        source: &Record,
        mut creation: Object,
        properties: &mut Object,
    ) -> Result<(), Refusal> {
        creation.insert("sourceResourceId".into(), source.id.as_str().into());
        let unique = azure.seed.guid("disk", source.id.as_str(), source.incarnation);
        creation.insert("sourceUniqueId".into(), unique.into());
        properties.insert("creationData".into(), Value::Object(creation));
        let Some(least) = at(&source.body, "properties/diskSizeGB").and_then(Value::as_i64) else {
            return Ok(());
        };
        match properties.get("diskSizeGB").and_then(Value::as_i64) {
            Some(size) if size < least => Err(self.refuse(
                "diskSizeGB",
                format!(
                    "The value {size} of parameter '{}.diskSizeGB' is smaller than the {least} GiB of its source {}.",
                    self.noun, source.id
                ),
            )),
            Some(_) => Ok(()),
            None => {
                properties.insert("diskSizeGB".into(), least.into());
                Ok(())
            }
        }
    }

    pub(crate) fn refuse(&self, member: &str, text: String) -> Refusal {
        Refusal::invalid_parameter(&format!("{}.{member}", self.noun), text)
    }
}

/// `creationData` of something that is there, or of what was sent; empty where there is none.
fn creation_data(properties: Option<&Value>) -> Value {
    let creation = properties.and_then(|properties| properties.get("creationData")).cloned();
    let mut creation = creation.map(into_object).unwrap_or_default();
    by_id(&mut creation);
    Value::Object(creation)
}

/// Where older clients name the disk to copy by its id in the place of a URL, Azure knows what they mean.
fn by_id(creation: &mut Object) {
    let uri = creation.get("sourceUri").and_then(Value::as_str).filter(|uri| ResourceId::parse(uri).is_ok());
    if let (Some(uri), false) = (uri.map(str::to_owned), creation.contains_key("sourceResourceId")) {
        creation.remove("sourceUri");
        creation.insert("sourceResourceId".into(), uri.into());
    }
}

/// The size in GiB of what comes from outside: of an upload it is said in bytes, with the footer of the file; what
/// blobs and images hold nobody knows.
pub(crate) fn size_from_outside(properties: &Object) -> Option<i64> {
    let creation = properties.get("creationData")?;
    match text(creation, "createOption")? {
        "Upload" | "UploadPreparedSecure" => {
            let bytes = creation.get("uploadSizeBytes").and_then(Value::as_u64)?.saturating_sub(FOOTER);
            i64::try_from(bytes.div_ceil(GIB)).ok()
        }
        "FromImage" | "Import" | "ImportSecure" => Some(USUAL_GIB),
        _ => None,
    }
}
