//! Locks: a locked scope cannot be deleted, or not even changed ("Lock your Azure resources to protect your
//! infrastructure").

use azure_engine::document::text;
use azure_engine::provider::{AzureState, Expand, Listing, Presenting, Protocol, Record};
use azure_engine::refusal::{Code, Result};
use azure_engine::types::member_table::Holds::{Anything, Text, Word};
use azure_engine::types::member_table::Member;
use azure_types::ResourceId;
use serde_json::Value;

use super::protocol::protocol;

const RESOURCE_TYPE: &str = "Microsoft.Authorization/locks";
const READ_ONLY: &str = "ReadOnly";

pub(super) struct Locks;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("lock.json"),
    api_versions: &["2020-05-01", "2017-04-01", "2016-09-01", "2015-01-01"],
    shows_deleted: false,
    ..protocol(RESOURCE_TYPE, "ManagementLock")
};

static MEMBERS: [Member; 3] = [
    Member::new("level", Word(&["NotSpecified", "CanNotDelete", READ_ONLY], false)).required(),
    Member::new("notes", Text),
    Member::new("owners", Anything),
];

shape!(Locks, PROTOCOL, without Writing, Acting);

impl Presenting for Locks {
    fn gather_list<'a>(&self, azure: &'a AzureState, scope: &ResourceId) -> Option<Vec<&'a Record>> {
        Some(azure.store.of_type_below(RESOURCE_TYPE, &ResourceId::subscription(scope.subscription_id())))
    }

    /// Locks of the scope and of what lies in it.
    fn list_entry(&self, azure: &AzureState, record: &Record, listing: &Listing<'_>) -> Option<Value> {
        let scope = record.id.parent()?;
        let filter = listing.query.get("$filter").map(|filter| filter.replace(' ', "").to_ascii_lowercase());
        let fits = match filter.as_deref() {
            Some("atscope()") => scope == *listing.scope,
            _ => scope.is_within(listing.scope),
        };
        fits.then(|| azure.present(record, Expand::default()))
    }
}

/// Refuses what a lock forbids: deleting a scope that is locked or contains a lock, and changing a read-only scope.
///
/// # Errors
/// `ScopeLocked`, with the scopes of the locks.
pub(super) fn check(azure: &AzureState, method: &str, id: &ResourceId) -> Result<()> {
    if id.resource_type().eq_ignore_ascii_case(RESOURCE_TYPE) {
        return Ok(());
    }
    let deletes = method == "DELETE";
    let locks = azure.store.of_type_below(RESOURCE_TYPE, &ResourceId::subscription(id.subscription_id()));
    let held = |lock: &&Record| {
        let only_read = text(&lock.body, "properties/level") == Some(READ_ONLY);
        let scope = lock.id.parent();
        scope.is_some_and(|scope| {
            (deletes || only_read) && (id.is_within(&scope) || deletes && scope.is_within(id))
        })
    };
    let mut scopes: Vec<String> = locks
        .iter()
        .filter(|lock| held(lock))
        .filter_map(|lock| Some(lock.id.parent()?.to_string()))
        .collect();
    scopes.dedup();
    if scopes.is_empty() {
        return Ok(());
    }
    let operation = if deletes { "delete" } else { "write" };
    Err(Code::azures(409, "ScopeLocked").says(format_args!(
        "The scope '{id}' cannot perform {operation} operation because following scope(s) are locked: '{}'. Please remove the \
         lock and try again.",
        scopes.join(",")
    )))
}
