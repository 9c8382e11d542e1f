//! Deleted vaults: stored with their contents until their retention ends, recovered by `createMode`, or purged.

use azure_types::ResourceId;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::contents;
use super::protocol::protocol;
use super::soft_delete::{self, RESOURCE_TYPE, find};
use azure_engine::answer::{Answer, Note};
use azure_engine::document::{Object, text};
use azure_engine::operation::execution::Execution;
use azure_engine::operation::{Completion, OperationStyle, OperationUrls};
use azure_engine::provider::{
    AzureState, EndedOperation, Expand, ExtensionRequest, LiesIn, Pages, Polling, Presenting, Protocol,
    Record, Writing,
};
use azure_engine::refusal::{Code, Handled, Refusal, Result};
use azure_engine::store::State;
use azure_engine::types::protocol::UrlForm;

pub(super) struct DeletedVaults;

const USUAL: Protocol = protocol(RESOURCE_TYPE, "DeletedVault");
const PROTOCOL: Protocol = Protocol {
    tracked: false,
    creatable: false,
    system_data: false,
    shows_state: false,
    lies_in: LiesIn::Subscription,
    pages: Pages::Exact,
    polling: Polling { urls: UrlForm::Apart, ..USUAL.polling },
    ..USUAL
};

/// The hidden member with the vault's document.
const KEPT: &str = "vault";
/// The name of the purge as an operation.
const PURGE: &str = "purge";

shape!(DeletedVaults, PROTOCOL, without Acting);

impl Writing for DeletedVaults {
    fn before_delete(&self, _azure: &AzureState, _record: &Record) -> Result<()> {
        Err(Refusal::method_not_allowed("DELETE"))
    }

    fn after_operation(&self, azure: &mut AzureState, id: &ResourceId, ended: EndedOperation<'_>) {
        if !ended.failed && matches!(ended.completion, Completion::Action(action, _) if action == PURGE) {
            contents::destroy(azure, id.name());
        }
    }
}

impl Presenting for DeletedVaults {
    fn absence_refusal(&self, _azure: &AzureState, id: &ResourceId) -> Option<Refusal> {
        Some(absent(id.name()))
    }

    fn present(&self, _azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        document.insert("id".into(), shown_id(record).into());
    }
}

fn shown_id(record: &Record) -> String {
    let location = text(&record.body, "properties/location").unwrap_or_default();
    let (subscription, name) = (record.id.subscription_id(), record.id.name());
    format!(
        "/subscriptions/{subscription}/providers/Microsoft.KeyVault/locations/{location}/deletedVaults/{name}"
    )
}

pub(super) fn absent(name: &str) -> Refusal {
    // Azure CLI's users quote code and words.
    Code::azures(404, "DeletedVaultNotFound")
        .says(format_args!("The specified deleted vault '{name}' does not exist."))
}

/// The document that the vault had.
pub(super) fn kept(deleted: &Record) -> Value {
    deleted.hidden.get(KEPT).cloned().unwrap_or_default()
}

/// Stores a deleted vault: it can be recovered until its retention ends.
pub(super) fn keep(azure: &mut AzureState, vault: &Record) {
    let now = azure.now();
    let days = SignedDuration::from_hours(24 * soft_delete::retention(&vault.body));
    let over = now.checked_add(days).unwrap_or(now);
    let mut properties = json!({
        "vaultId": vault.id,
        "location": vault.body["location"],
        "tags": vault.body.get("tags").cloned().unwrap_or_else(|| json!({})),
        "deletionDate": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "scheduledPurgeDate": over.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    });
    if soft_delete::is_protected(&vault.body) {
        properties["purgeProtectionEnabled"] = true.into();
    }
    let id = ResourceId::subscription(vault.id.subscription_id()).resource(
        "Microsoft.KeyVault",
        "deletedVaults",
        vault.id.name(),
    );
    let mut record = Record::new(&DeletedVaults, &id, json!({ "properties": properties }), now);
    record.hidden.insert(KEPT.into(), vault.body.clone());
    azure.insert(record);
    contents::close(azure, vault.id.name(), over.as_second());
}

/// `locations/{location}/deletedVaults/{name}` and `.../purge`. The location does not matter (recorded): the name is
/// unique.
pub(super) fn below_a_location(azure: &mut AzureState, request: &ExtensionRequest<'_>) -> Handled<Answer> {
    let (locations, rest) = request.segments.split_first()?;
    if !locations.eq_ignore_ascii_case("locations") || request.scope.group_name().is_some() {
        return None;
    }
    match (request.method, rest) {
        ("GET", [_, deleted, name]) if deleted.eq_ignore_ascii_case("deletedVaults") => Some(
            deleted_here(azure, request.scope, name)
                .map(|record| Answer::ok(azure.present(record, Expand::default()))),
        ),
        ("POST", [_, deleted, name, action])
            if deleted.eq_ignore_ascii_case("deletedVaults") && action.eq_ignore_ascii_case(PURGE) =>
        {
            Some(begin_purge(azure, request.scope, name))
        }
        _ => None,
    }
}

fn deleted_here<'a>(azure: &'a AzureState, subscription: &ResourceId, name: &str) -> Result<&'a Record> {
    find(azure, name)
        .filter(|record| record.id.subscription_id().eq_ignore_ascii_case(subscription.subscription_id()))
        .ok_or_else(|| absent(name))
}

fn begin_purge(azure: &mut AzureState, subscription: &ResourceId, name: &str) -> Result<Answer> {
    let record = deleted_here(azure, subscription, name)?;
    if record.body.pointer("/properties/purgeProtectionEnabled").is_some() {
        return Err(Code::ours(405, "MethodNotAllowed").says("Operation 'DeletedVaultPurge' is not allowed."));
    }
    let id = record.id.clone();
    if let Some(record) = azure.store.get_mut(&id) {
        record.state = State::Deleting;
    }
    let operation_style = OperationStyle { urls: Some(OperationUrls::Location), ..OperationStyle::default() };
    let execution = Execution { operation_style, ..Execution::default() };
    let completion = Completion::Action(PURGE.into(), Value::Null);
    let name = "DeletedVaultPurge".to_owned();
    let started = azure.start(&id, &DeletedVaults, "POST", name, completion, &execution);
    let links = azure.links(&id, &DeletedVaults, &started, true);
    Ok(Answer {
        operation: Some(links),
        note: Note { changes: vec![PURGE.into()], operation_ms: None },
        ..Answer::empty(202)
    })
}
