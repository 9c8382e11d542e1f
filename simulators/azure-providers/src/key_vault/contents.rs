//! The contents of all vaults: part of the state, saved with it. A deleted vault keeps its contents.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::item::{Content, Deletion, Item, Kind, Said, Version};
use super::{host, soft_delete};
use azure_engine::provider::{AzureState, Timetable};
use azure_engine::refusal::{Code, Extra, Refusal, Result};

/// "Azure Key Vault REST API Error Codes", and what SDKs' users quote.
const SECRET_NOT_FOUND: Code = Code::azures(404, "SecretNotFound");
const KEY_NOT_FOUND: Code = Code::azures(404, "KeyNotFound");

const SECONDS_A_DAY: i64 = 24 * 3_600;

type Items = BTreeMap<String, Item>;

/// The contents of one vault.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VaultContents {
    /// By kind and lower-case name.
    items: BTreeMap<Kind, Items>,
    /// When a deleted vault is purged.
    over: Option<i64>,
}

/// The contents of all vaults, by lower-case name.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Contents {
    vaults: BTreeMap<String, VaultContents>,
    /// How many versions were ever made.
    made: u64,
    /// When the first deletion is final.
    next: Option<i64>,
}

impl Contents {
    fn items(&self, vault: &str, kind: Kind) -> Option<&Items> {
        self.vaults.get(&vault.to_ascii_lowercase())?.items.get(&kind)
    }

    fn items_mut(&mut self, vault: &str, kind: Kind) -> &mut Items {
        self.vaults.entry(vault.to_ascii_lowercase()).or_default().items.entry(kind).or_default()
    }

    /// Recalculates the time of the next end: after each deletion and each end of one.
    fn look_ahead(&mut self) {
        let deleted = |held: &VaultContents| {
            let items = held.items.values().flat_map(BTreeMap::values);
            items.filter_map(|item| Some(item.deletion?.over)).chain(held.over).min()
        };
        self.next = self.vaults.values().filter_map(deleted).min();
    }
}

impl Timetable for Contents {
    fn name(&self) -> &'static str {
        "vaultContents"
    }

    fn due(&self) -> Option<Timestamp> {
        Timestamp::from_second(self.next?).ok()
    }

    fn attend(&self) -> fn(&mut AzureState) {
        purge_what_is_over
    }

    fn save(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn read(&self, saved: Value) -> Result<Box<dyn Timetable>, serde_json::Error> {
        Ok(Box::new(serde_json::from_value::<Self>(saved)?))
    }
}

fn purge_what_is_over(azure: &mut AzureState) {
    let now = azure.time().as_second();
    let mut vaults = Vec::new();
    if let Some(contents) = azure.timetable_mut::<Contents>() {
        for (name, held) in &mut contents.vaults {
            for items in held.items.values_mut() {
                items.retain(|_, item| item.deletion.is_none_or(|deletion| deletion.over > now));
            }
            if held.over.is_some_and(|over| over <= now) {
                vaults.push(name.clone());
            }
        }
        contents.look_ahead();
    }
    for name in vaults {
        destroy(azure, &name);
    }
}

fn now(azure: &mut AzureState) -> i64 {
    azure.now().as_second()
}

/// Changes the contents; nothing where the state has none, which is never.
fn change<T: Default>(azure: &mut AzureState, change: impl FnOnce(&mut Contents) -> T) -> T {
    azure.revision += 1;
    azure.timetable_mut::<Contents>().map(change).unwrap_or_default()
}

/// How many versions were ever made: what is drawn for the next one is drawn for no other.
pub(super) fn made(azure: &AzureState) -> u64 {
    azure.timetable::<Contents>().map_or(0, |contents| contents.made)
}

/// Notes that a vault of the name exists.
pub(super) fn open(azure: &mut AzureState, vault: &str) {
    change(azure, |contents| {
        contents.vaults.entry(vault.to_ascii_lowercase()).or_default().over = None;
        contents.look_ahead();
    });
}

/// Notes that the vault was deleted, recoverable until `over`.
pub(super) fn close(azure: &mut AzureState, vault: &str, over: i64) {
    change(azure, |contents| {
        contents.vaults.entry(vault.to_ascii_lowercase()).or_default().over = Some(over);
        contents.look_ahead();
    });
}

/// Removes a deleted vault with its contents.
pub(super) fn destroy(azure: &mut AzureState, vault: &str) {
    soft_delete::forget(azure, vault);
    change(azure, |contents| {
        contents.vaults.remove(&vault.to_ascii_lowercase());
        contents.look_ahead();
    });
}

fn absent(kind: Kind, vault: &str, name: &str) -> Refusal {
    let code = match kind {
        Kind::Secrets => SECRET_NOT_FOUND,
        Kind::Keys => KEY_NOT_FOUND,
    };
    let noun = kind.noun();
    code.says(format_args!(
        "A {} with (name/id) {name} was not found in this key vault. If you recently deleted this {} you may be able to \
         recover it using the correct recovery command. Vault: {vault}",
        noun.to_ascii_lowercase(),
        noun.to_ascii_lowercase(),
    ))
}

fn absent_deleted(kind: Kind, name: &str) -> Refusal {
    let code = match kind {
        Kind::Secrets => SECRET_NOT_FOUND,
        Kind::Keys => KEY_NOT_FOUND,
    };
    code.says(format_args!("Deleted {} not found: {name}", kind.noun()))
}

/// An inner code beside the outer one.
pub(super) fn within(mut refusal: Refusal, inner: &str) -> Refusal {
    let inner = Some(serde_json::json!({ "code": inner }));
    refusal.extra = Some(Box::new(Extra { inner, challenge: None }));
    refusal
}

/// The items of a kind in a vault, by name: the present ones, or the deleted ones.
pub(super) fn all<'a>(
    azure: &'a AzureState,
    vault: &str,
    kind: Kind,
    deleted: bool,
) -> impl Iterator<Item = &'a Item> {
    let items = azure.timetable::<Contents>().and_then(|contents| contents.items(vault, kind));
    items.into_iter().flat_map(BTreeMap::values).filter(move |item| item.deletion.is_some() == deleted)
}

/// One of them.
pub(super) fn item<'a>(
    azure: &'a AzureState,
    vault: &str,
    kind: Kind,
    name: &str,
    deleted: bool,
) -> Result<&'a Item> {
    all(azure, vault, kind, deleted)
        .find(|item| item.name.eq_ignore_ascii_case(name))
        .ok_or_else(|| if deleted { absent_deleted(kind, name) } else { absent(kind, vault, name) })
}

/// One version, the latest where none is named.
pub(super) fn version<'a>(
    azure: &'a AzureState,
    vault: &str,
    kind: Kind,
    name: &str,
    id: Option<&str>,
) -> Result<&'a Version> {
    let item = item(azure, vault, kind, name, false)?;
    let shown = id.map_or_else(|| name.to_owned(), |id| format!("{name}/{id}"));
    item.version(id).ok_or_else(|| absent(kind, vault, &shown))
}

/// Names of secrets and keys: 1 to 127 letters, digits and hyphens.
fn check_name(kind: Kind, name: &str) -> Result<()> {
    let fits = (1..=127).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if fits {
        return Ok(());
    }
    Err(Code::azures(400, "BadParameter").says(format_args!(
        "The request URI contains an invalid name: {name} ({} names have 1 to 127 letters, digits and hyphens).",
        kind.noun()
    )))
}

/// Adds a version: of a new item, or of an existing one.
pub(super) fn add(
    azure: &mut AzureState,
    vault: &str,
    kind: Kind,
    name: &str,
    content: Content,
    said: Said,
) -> Result<Version> {
    check_name(kind, name)?;
    if item(azure, vault, kind, name, true).is_ok() {
        let refusal = Code::azures(409, "Conflict").says(format_args!(
            "{} {name} is currently in a deleted but recoverable state, and its name cannot be reused; in this state, the \
             {} can only be recovered or purged.",
            kind.noun(),
            kind.noun().to_ascii_lowercase(),
        ));
        return Err(within(refusal, "ObjectIsDeletedButRecoverable"));
    }
    let (now, seed) = (now(azure), azure.seed);
    let made = change(azure, |contents| {
        contents.made += 1;
        contents.made
    });
    let id = seed.guid("vault version", &format!("{vault}/{}/{name}", kind.collection()), made);
    let mut version = Version::new(id.replace('-', ""), content, now);
    version.say(said, now);
    let kept = version.clone();
    change(azure, |contents| {
        let items = contents.items_mut(vault, kind);
        let new = || Item { name: name.to_owned(), versions: Vec::new(), deletion: None };
        items.entry(name.to_ascii_lowercase()).or_insert_with(new).versions.push(kept);
    });
    Ok(version)
}

/// Changes the attributes of a version.
pub(super) fn update(
    azure: &mut AzureState,
    vault: &str,
    kind: Kind,
    name: &str,
    id: Option<&str>,
    said: Said,
) -> Result<Version> {
    let id = version(azure, vault, kind, name, id)?.id.clone();
    let now = now(azure);
    change(azure, |contents| {
        let item = contents.items_mut(vault, kind).get_mut(&name.to_ascii_lowercase());
        let versions = item.into_iter().flat_map(|item| &mut item.versions);
        for version in versions.filter(|version| version.id == id) {
            version.say(said.clone(), now);
        }
    });
    version(azure, vault, kind, name, Some(&id)).cloned()
}

/// Deletes an item; it can be recovered if its vault has soft delete.
pub(super) fn delete(azure: &mut AzureState, vault: &str, kind: Kind, name: &str) -> Result<Item> {
    item(azure, vault, kind, name, false)?;
    let days = host::find(azure, vault).map_or(90, |record| soft_delete::retention(&record.body));
    let at = now(azure);
    let deletion = Deletion { at, over: at.saturating_add(days * SECONDS_A_DAY) };
    change(azure, |contents| {
        if let Some(item) = contents.items_mut(vault, kind).get_mut(&name.to_ascii_lowercase()) {
            item.deletion = Some(deletion);
        }
        contents.look_ahead();
    });
    item(azure, vault, kind, name, true).cloned()
}

/// Recovers a deleted item.
pub(super) fn recover(azure: &mut AzureState, vault: &str, kind: Kind, name: &str) -> Result<Item> {
    item(azure, vault, kind, name, true)?;
    change(azure, |contents| {
        if let Some(item) = contents.items_mut(vault, kind).get_mut(&name.to_ascii_lowercase()) {
            item.deletion = None;
        }
        contents.look_ahead();
    });
    item(azure, vault, kind, name, false).cloned()
}

/// Purges a deleted item.
pub(super) fn purge(azure: &mut AzureState, vault: &str, kind: Kind, name: &str) -> Result<()> {
    item(azure, vault, kind, name, true)?;
    Code::azures(403, "Forbidden").says_when(
        host::find(azure, vault).is_some_and(|record| soft_delete::is_protected(&record.body)),
        "Operation \"purge\" is not allowed because purge protection is enabled for this \
             vault. Key Vault service will automatically purge it after the retention period has \
             passed.",
    )?;
    change(azure, |contents| {
        contents.items_mut(vault, kind).remove(&name.to_ascii_lowercase());
        contents.look_ahead();
    });
    Ok(())
}
