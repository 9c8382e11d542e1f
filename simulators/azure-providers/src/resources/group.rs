//! Resource groups (Azure REST reference, "Resource Groups").

use std::collections::BTreeMap;

use azure_types::ResourceId;
use serde_json::Value;

use super::generic::listed;
use super::location::check_region;
use super::protocol::{API_VERSIONS, protocol};
use azure_engine::answer::{Answer, Note, OperationLinks};
use azure_engine::document::drop_nulls;
use azure_engine::document::location::location_of;
use azure_engine::journal::differences;
use azure_engine::operation::Completion;
use azure_engine::operation::execution::Execution;
use azure_engine::provider::{AzureState, Expand, Proposal, Protocol, Record, Source, UrlForm, Writing};
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::settings::actors::Write;
use azure_engine::store::State;
use azure_engine::store::reference::Role;

pub(super) const RESOURCE_TYPE: &str = "Microsoft.Resources/resourceGroups";

/// Longest name of a group, as Azure documents.
const MAX_NAME_LENGTH: usize = 90;

pub(crate) struct ResourceGroups;

const PROTOCOL: Protocol = Protocol {
    api_versions: &API_VERSIONS,
    // Not below a provider: a group has a path of its own.
    creatable: false,
    ..protocol(RESOURCE_TYPE, "ResourceGroup")
};

shape!(ResourceGroups, PROTOCOL, without Presenting, Acting);

impl Writing for ResourceGroups {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        azure.check_tags(&mut proposal.body)?;
        Ok(proposal.keep(&["location", "tags", "managedBy"]).take())
    }
}

/// PUT of a group: synchronous.
pub fn put_group(azure: &mut AzureState, subscription: &str, name: &str, body: Value) -> Result<Answer> {
    let valid = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '(' | ')');
    Code::azures(400, "InvalidResourceGroup").says_when(
        name.len() > MAX_NAME_LENGTH || name.ends_with('.') || !name.chars().all(valid),
        format_args!(
            "The provided resource group name '{name}' has these invalid characters: it may hold \
             letters, digits, '-', '_', '.', '(' and ')', at most {MAX_NAME_LENGTH}, and must \
             not end with '.'."
        ),
    )?;
    let Value::Object(mut body) = body else {
        return Err(Refusal::bad_content("the body must be a JSON object"));
    };
    body.values_mut().for_each(drop_nulls);
    body.retain(|_, value| !value.is_null());
    let id = ResourceId::group(subscription, name);
    let time = azure.now().to_string();
    let old = azure.store.get(&id);
    if old.is_none() {
        azure.check_group_count(subscription, name, &ResourceGroups)?;
    }
    if old.is_some_and(|old| old.state == State::Deleting) {
        azure.require_writable_group(&id)?;
    }
    let location = location_of(&body)?;
    if old.is_none() {
        check_region(azure, &location, None)?;
    }
    if let Some(current) = old.and_then(|old| old.body.get("location")).and_then(Value::as_str)
        && current != location
    {
        return Err(Code::azures(409, "InvalidResourceGroupLocation").says(format_args!(
            "Invalid resource group location '{location}'. The Resource group already exists in location \
                     '{current}'."
        )));
    }
    body.insert("location".into(), location.into());
    let write = Write { id: &id, resource_type: RESOURCE_TYPE, tagged: true, by: None };
    azure.actors.proposed(&write, &time, &mut body)?;
    let stored = ResourceGroups.before_write(azure, Proposal::new(&id, old, body, Source::Put))?;
    let before = old.map(|old| old.body.clone());
    let version = old.map_or(1, |old| old.version + 1);
    let created = old.map(|old| old.created);
    let created = match created {
        Some(created) => created,
        None => azure.now(),
    };
    let changes = differences(before.as_ref(), Some(&stored));
    azure.insert(Record { version, ..Record::new(&ResourceGroups, &id, stored, created) });
    let shown =
        azure.store.get(&id).map(|record| azure.present(record, Expand::default())).unwrap_or_default();
    Ok(Answer {
        status: if before.is_some() { 200 } else { 201 },
        body: Some(shown),
        note: Note { changes, operation_ms: None },
        ..Answer::default()
    })
}

/// PATCH of a group: its tags.
pub(crate) fn patch_group(
    azure: &mut AzureState,
    subscription: &str,
    name: &str,
    patch: Value,
) -> Result<Answer> {
    let id = ResourceId::group(subscription, name);
    azure.require_writable_group(&id)?;
    let mut body = azure.store.get(&id).map(|record| record.body.clone()).unwrap_or_default();
    if let Some(tags) = patch.get("tags") {
        body["tags"] = tags.clone();
    }
    put_group(azure, subscription, name, body)
}

/// GET of a group.
pub(crate) fn read_group(azure: &AzureState, subscription: &str, name: &str) -> Result<Answer> {
    let id = ResourceId::group(subscription, name);
    let record = azure.store.get(&id).ok_or_else(|| Refusal::group_not_found(name))?;
    Ok(Answer::ok(azure.present(record, Expand::default())))
}

/// GET of all groups, those whose tags fit `$filter`.
pub(crate) fn list_groups(
    azure: &AzureState,
    subscription: &str,
    query: &BTreeMap<String, String>,
) -> Result<Answer> {
    let groups = azure.store.of_type_below(RESOURCE_TYPE, &ResourceId::subscription(subscription));
    listed(azure, groups, query, |azure, record| azure.present(record, Expand::default()))
}

/// DELETE of a group and all that is in it.
pub fn delete_group(
    azure: &mut AzureState,
    subscription: &str,
    name: &str,
    execution: &Execution,
) -> Result<Answer> {
    let id = ResourceId::group(subscription, name);
    let record = azure.store.get(&id).ok_or_else(|| Refusal::group_not_found(name))?;
    let before = record.body.clone();
    let links = |key: String, retry_after| OperationLinks {
        segment: "operationresults",
        key,
        urls: UrlForm::Job,
        namespace: String::new(),
        group: None,
        location: String::new(),
        result_url: true,
        retry_after,
    };
    if let (State::Deleting, Some(key)) = (record.state, record.operation.clone()) {
        return Ok(Answer { operation: Some(links(key, None)), ..Answer::empty(202) });
    }
    let inside: Vec<ResourceId> = azure.store.below(&id).map(|record| record.id.clone()).collect();
    // Resources that are deleted with others, such as the group of a cluster's nodes, do not block the deletion.
    let taken: Vec<ResourceId> = inside
        .iter()
        .filter_map(|member| azure.store.get(member))
        .flat_map(|record| record.resource_type.owned(azure, record))
        .collect();
    let stays = |user: &ResourceId| !user.is_within(&id) && !taken.iter().any(|taken| user.is_within(taken));
    for member in &inside {
        let children = azure.store.get(member).into_iter().flat_map(|record| {
            record.resource_type.protocol().child_collections.iter().flat_map(|collection| {
                azure_engine::document::items(&record.body, &format!("properties/{}", collection.name))
                    .iter()
                    .map(|child| record.id.child(collection.name, azure_engine::document::name(child)))
            })
        });
        for target in children.chain([member.clone()]) {
            // Peerings of a network do not block it; connections to a service do.
            let holds =
                |role| role != Role::Names || target.resource_type().ends_with("/privateLinkServices");
            let mut users = azure.store.referrers(&target).filter(|user| holds(user.role));
            if let Some(user) = users.find(|user| stays(&user.from)) {
                return Err(Code::azures(409, "ResourceGroupDeletionBlocked").says(format_args!(
                    "Deletion of resource group '{name}' failed as resource {target} is still in use by {}.",
                    user.from
                )));
            }
        }
    }
    for member in inside.iter().chain([&id]) {
        let running = azure.store.get(member).and_then(|record| record.operation.clone());
        if let Some(key) = running {
            azure.supersede(&key, "DeleteResourceGroupOperation");
        }
        if let Some(record) = azure.store.get_mut(member) {
            record.state = State::Deleting;
            record.version += 1;
        }
    }
    let name = "DeleteResourceGroupOperation".to_owned();
    let started = azure.start(&id, &ResourceGroups, "DELETE", name, Completion::Delete, execution);
    let pause = azure
        .operations
        .get(&started.key)
        .filter(|o| o.ended.is_none())
        .and_then(|o| azure.poll_pause(o.due));
    Ok(Answer {
        operation: Some(links(started.key, pause)),
        note: Note {
            changes: differences(Some(&before), None),
            operation_ms: started.latency.and_then(|latency| u64::try_from(latency.as_millis()).ok()),
        },
        ..Answer::empty(202)
    })
}
