//! The contents of shares and containers, and of deleted ones: stored beside the resources and saved with them.

use std::collections::BTreeMap;

use azure_engine::document::Object;
use azure_engine::provider::{AzureState, Timetable};
use azure_types::ResourceId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sparse::Bytes;

/// One file, directory or blob.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    /// Nothing for a directory.
    pub(super) bytes: Option<Bytes>,
    /// `Content-Type` and the like, by header.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) etag: String,
    pub(super) modified: Timestamp,
}

/// A deleted share that can be restored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeletedShare {
    /// Its former id.
    pub(super) id: ResourceId,
    /// Distinguishes it from others of its name.
    pub(super) version: String,
    /// Its document.
    pub(super) body: Value,
    /// Its hidden state.
    pub(super) hidden: Object,
    /// When it was deleted.
    pub(super) deleted: Timestamp,
    /// When it is removed for good.
    pub(super) until: Timestamp,
}

/// Files and directories by path, or blobs by name.
pub(super) type Entries = BTreeMap<String, Entry>;

/// The contents of all shares and containers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Contents {
    /// By the lower-case id of the share or container; of a snapshot with its time behind, of a deleted share with its
    /// version.
    entries: BTreeMap<String, Entries>,
    deleted: Vec<DeletedShare>,
    /// Names that cannot be used until a time, because their former resource is still being deleted.
    going: BTreeMap<String, Timestamp>,
    /// How many etags there were.
    changes: u64,
}

impl Timetable for Contents {
    fn name(&self) -> &'static str {
        "storageContents"
    }

    fn due(&self) -> Option<Timestamp> {
        self.deleted.iter().map(|share| share.until).chain(self.going.values().copied()).min()
    }

    fn attend(&self) -> fn(&mut AzureState) {
        |azure| {
            let now = azure.now();
            let Some(contents) = azure.timetable_mut::<Contents>() else { return };
            contents.going.retain(|_, until| *until > now);
            let (gone, kept) = contents.deleted.drain(..).partition(|share| share.until <= now);
            contents.deleted = kept;
            let gone: Vec<DeletedShare> = gone;
            for share in gone {
                contents.entries.remove(&copy_key(&share.id, &share.version));
            }
        }
    }

    fn save(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn read(&self, saved: Value) -> Result<Box<dyn Timetable>, serde_json::Error> {
        Ok(Box::new(serde_json::from_value::<Self>(saved)?))
    }
}

fn copy_key(id: &ResourceId, part: &str) -> String {
    format!("{}@{part}", id.to_lower())
}

fn change(azure: &mut AzureState, change: impl FnOnce(&mut Contents)) {
    azure.revision += 1;
    if let Some(contents) = azure.timetable_mut::<Contents>() {
        change(contents);
    }
}

/// The contents of a share or container, or of a snapshot of it.
pub(super) fn entries<'a>(
    azure: &'a AzureState,
    id: &ResourceId,
    snapshot: Option<&str>,
) -> Option<&'a Entries> {
    let key = snapshot.map_or_else(|| id.to_lower(), |time| copy_key(id, time));
    azure.timetable::<Contents>()?.entries.get(&key)
}

/// The same, to be changed.
pub(super) fn entries_mut<'a>(azure: &'a mut AzureState, id: &ResourceId) -> Option<&'a mut Entries> {
    azure.revision += 1;
    Some(azure.timetable_mut::<Contents>()?.entries.entry(id.to_lower()).or_default())
}

/// Another etag with each call.
pub(super) fn next_etag(azure: &mut AzureState) -> String {
    let Some(contents) = azure.timetable_mut::<Contents>() else { return String::new() };
    contents.changes += 1;
    let count = contents.changes;
    let digits = azure.seed.number("content etag", "", count) >> 16;
    format!("\"0x8DD{digits:012X}\"")
}

/// The file or directory at a path, ignoring case.
pub(super) fn find<'a>(entries: &'a Entries, path: &str) -> Option<(&'a String, &'a Entry)> {
    if let Some(found) = entries.get_key_value(path) {
        return Some(found);
    }
    entries.iter().find(|(known, _)| known.eq_ignore_ascii_case(path))
}

/// How many bytes were written to files.
pub(super) fn used_bytes(azure: &AzureState, id: &ResourceId) -> u64 {
    let entries = entries(azure, id, None).into_iter().flat_map(BTreeMap::values);
    entries.filter_map(|entry| entry.bytes.as_ref()).map(Bytes::written).sum()
}

/// Copies the contents of a share under a snapshot's time.
pub(super) fn copy(azure: &mut AzureState, id: &ResourceId, part: &str) {
    change(azure, |contents| {
        if let Some(entries) = contents.entries.get(&id.to_lower()).cloned() {
            contents.entries.insert(copy_key(id, part), entries);
        }
    });
}

/// Removes a snapshot.
pub(super) fn forget_copy(azure: &mut AzureState, id: &ResourceId, part: &str) {
    change(azure, |contents| drop(contents.entries.remove(&copy_key(id, part))));
}

/// Removes the contents of a deleted resource, with everything deleted in it before. A share that can be restored keeps
/// everything.
pub(super) fn forget(azure: &mut AzureState, id: &ResourceId) {
    let own = id.to_lower();
    let is_account = id.type_and_name_pairs().len() == 1;
    change(azure, |contents| {
        let below = format!("{own}/");
        if is_account {
            contents.deleted.retain(|share| !share.id.to_lower().starts_with(&below));
            contents.going.retain(|key, _| !key.starts_with(&below));
            contents.entries.retain(|key, _| !key.starts_with(&below));
            return;
        }
        let kept: Vec<String> = contents
            .deleted
            .iter()
            .filter(|share| share.id == *id)
            .map(|share| copy_key(&share.id, &share.version))
            .collect();
        let copies = format!("{own}@");
        contents.entries.retain(|key, _| {
            (*key != own && !key.starts_with(&copies)) || kept.iter().any(|kept| kept == key)
        });
    });
}

/// Stores a deleted share with its contents.
pub(super) fn keep(azure: &mut AzureState, share: DeletedShare) {
    change(azure, |contents| {
        if let Some(entries) = contents.entries.remove(&share.id.to_lower()) {
            contents.entries.insert(copy_key(&share.id, &share.version), entries);
        }
        contents.deleted.push(share);
    });
}

/// Restores a deleted share, perhaps under another name.
pub(super) fn take(
    azure: &mut AzureState,
    share: &ResourceId,
    version: &str,
    to: &ResourceId,
) -> Option<DeletedShare> {
    azure.revision += 1;
    let contents = azure.timetable_mut::<Contents>()?;
    let at = contents.deleted.iter().position(|known| known.id == *share && known.version == version)?;
    let taken = contents.deleted.remove(at);
    if let Some(entries) = contents.entries.remove(&copy_key(&taken.id, &taken.version)) {
        contents.entries.insert(to.to_lower(), entries);
    }
    contents.going.remove(&to.to_lower());
    Some(taken)
}

/// The deleted shares of an account that can be restored.
pub(super) fn deleted_shares<'a>(
    azure: &'a AzureState,
    account: &ResourceId,
) -> impl Iterator<Item = &'a DeletedShare> {
    let below = format!("{}/", account.to_lower());
    let deleted = azure.timetable::<Contents>().map_or(&[][..], |contents| &contents.deleted);
    deleted.iter().filter(move |share| share.id.to_lower().starts_with(&below))
}

/// Keeps a name from being used until a time.
pub(super) fn hold_name(azure: &mut AzureState, id: &ResourceId, until: Timestamp) {
    change(azure, |contents| {
        contents.going.insert(id.to_lower(), until);
    });
}

/// Whether a name is still blocked.
pub(super) fn is_going(azure: &AzureState, id: &ResourceId) -> bool {
    let now = azure.time();
    let until = azure.timetable::<Contents>().and_then(|contents| contents.going.get(&id.to_lower()));
    until.is_some_and(|until| *until > now)
}
