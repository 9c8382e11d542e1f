//! Registries (Azure REST reference, "Registries").

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::login_server::{self, RESOURCE_TYPE, SUFFIX};
use super::policies::{MEMBERS, check};
use super::{credentials, naming};
use crate::network::service_connections;
use azure_engine::answer::{Answer, Note};
use azure_engine::document::{Object, fill, take_properties, text};
use azure_engine::operation::execution::Execution;
use azure_engine::operation::{Completion, OperationStyle, OperationUrls};
use azure_engine::provider::{
    Acting, Action, AzureState, Expand, KeyForm, PartWrite, Polling, Presenting, Proposal, Protocol, Record,
    UrlForm, Writing,
};
use azure_engine::refusal::{Code, Handled, Result};

/// Versions that clients of today use, newest first.
const API_VERSIONS: [&str; 6] =
    ["2025-04-01", "2023-11-01-preview", "2023-07-01", "2023-01-01-preview", "2022-12-01", "2019-05-01"];

/// The only group that private endpoints connect to, and the zone of its names.
const LINK_GROUP: &str = "registry";
const LINK_ZONE: &str = "privatelink.azurecr.io";

pub(super) struct Registries;

const USUAL: Protocol = Protocol::new(RESOURCE_TYPE, "Registry", &API_VERSIONS);
const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("registry.json"),
    // Recorded: there at once, with 200.
    synchronous: true,
    synchronous_delete: true,
    create_status: 200,
    delete_status: 200,
    system_data: true,
    actions: &["importImage", "listCredentials", "regenerateCredential"],
    polling: Polling { key: KeyForm::Guid, urls: UrlForm::Apart, ..USUAL.polling },
    ..USUAL
};

shape!(Registries, PROTOCOL);

impl Writing for Registries {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        if proposal.old.is_none() {
            naming::check_free(azure, proposal.id)?;
        }
        let given = proposal.body.get("sku").and_then(|sku| text(sku, "name")).unwrap_or_default();
        let sku =
            ["Basic", "Standard", "Premium"].into_iter().find(|known| known.eq_ignore_ascii_case(given));
        let sku = sku.ok_or_else(|| {
            Code::ours(400, "InvalidSku").says(format_args!(
                "The SKU '{given}' of a registry is not one of Basic, Standard and Premium."
            ))
        })?;
        let properties = take_properties(&mut proposal.body);
        proposal.body.insert("sku".into(), json!({ "name": sku, "tier": sku }));
        let stored = proposal.keep(&["location", "tags", "identity", "sku"]).stored(properties);
        check(sku, &stored["properties"])?;
        Ok(stored)
    }
}

impl Presenting for Registries {
    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        fill(document, "tags", json!({}));
        let connections = service_connections::list(azure, &record.id);
        let location = azure.location(&record.id);
        let Some(Value::Object(properties)) = document.get_mut("properties") else { return };
        let created = record.created.to_string();
        let own_data = properties.get("dataEndpointEnabled").and_then(Value::as_bool) == Some(true);
        let name = record.id.name().to_lowercase();
        let hosts = if own_data { vec![format!("{name}.{location}.data.{SUFFIX}")] } else { Vec::new() };
        properties.insert("dataEndpointHostNames".into(), hosts.into());
        properties.insert("loginServer".into(), login_server::of(&name).into());
        properties.insert(service_connections::COLLECTION.into(), connections.into());
        if let Some(policies) = properties.get_mut("policies") {
            for policy in ["retentionPolicy", "softDeletePolicy"] {
                policies[policy]["lastUpdatedTime"] = created.as_str().into();
            }
        }
        properties.insert("creationDate".into(), created.into());
    }

    fn view(&self, azure: &AzureState, record: &Record, below: &[&str]) -> Handled<Value> {
        match below {
            [word] if word.eq_ignore_ascii_case("listUsages") => Some(Ok(usages(record))),
            [word] if word.eq_ignore_ascii_case("privateLinkResources") => Some(Ok(json!({ "value": [{
                "id": format!("{}/privateLinkResources/{LINK_GROUP}", record.id),
                "name": LINK_GROUP,
                "type": format!("{RESOURCE_TYPE}/privateLinkResources"),
                "properties": {
                    "groupId": LINK_GROUP,
                    "requiredMembers": [LINK_GROUP, format!("{LINK_GROUP}_data_{}", azure.location(&record.id))],
                    "requiredZoneNames": [LINK_ZONE],
                },
            }] }))),
            _ => service_connections::view(azure, &record.id, below),
        }
    }
}

impl Acting for Registries {
    fn write_below(&self, azure: &mut AzureState, id: &ResourceId, write: PartWrite<'_>) -> Handled<bool> {
        service_connections::write_view(azure, id, write)
    }

    fn act(&self, azure: &mut AzureState, id: &ResourceId, action: &str, body: &Value) -> Handled<Action> {
        let answered = |answer: Value| Action::answered(Answer::ok(answer));
        match action.to_ascii_lowercase().as_str() {
            "listcredentials" => {
                let record = azure.store.get(id)?;
                Some(credentials::list(azure, record).map(answered))
            }
            "regeneratecredential" => Some(credentials::regenerate(azure, id, body).map(answered)),
            "importimage" => Some(import(azure, id, body)),
            _ => None,
        }
    }
}

/// The use of a registry's size and webhooks ("Azure Container Registry SKU features and limits").
fn usages(record: &Record) -> Value {
    const GIB: u64 = 1 << 30;
    let (size, webhooks) = match text(&record.body, "sku/name") {
        Some("Premium") => (500 * GIB, 500),
        Some("Standard") => (100 * GIB, 10),
        _ => (10 * GIB, 2),
    };
    json!({ "value": [
        { "name": "Size", "limit": size, "currentValue": 0, "unit": "Bytes" },
        { "name": "Webhooks", "limit": webhooks, "currentValue": 0, "unit": "Count" },
    ] })
}

/// POST `importImage`: an operation that is followed by `Location` alone (recorded). Nothing is fetched from outside.
fn import(azure: &mut AzureState, id: &ResourceId, body: &Value) -> Result<Action> {
    if text(body, "source/sourceImage").is_none_or(str::is_empty) {
        return Err(Code::ours(400, "InvalidImportSource").says("The source of an import names no image."));
    }
    let operation_style = OperationStyle { urls: Some(OperationUrls::Location), ..OperationStyle::default() };
    let execution = Execution { operation_style, ..Execution::default() };
    let report = Completion::Report(json!({ "status": "Succeeded" }));
    let name = "ImportImage".to_owned();
    let held = azure.store.get(id).and_then(|record| record.operation.clone());
    let started = azure.start(id, &Registries, "POST", name, report.clone(), &execution);
    // The registry is not busy with it.
    if let Some(record) = azure.store.get_mut(id) {
        record.operation = held;
    }
    let links = azure.links(id, &Registries, &started, true);
    let note = Note { changes: vec!["importImage".into()], operation_ms: None };
    Ok(Action {
        completion: report,
        answer: Some(Answer { operation: Some(links), note, ..Answer::empty(202) }),
    })
}
