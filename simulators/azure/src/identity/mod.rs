//! `Microsoft.ManagedIdentity`: user-assigned identities and whom they trust, the identities that
//! resources have, and what a directory must know of either.

mod assignment;
mod federated_credential;
mod user_assigned;

use azure_types::ResourceId;
use serde_json::{Value, json};

pub(crate) use assignment::assigned;

use crate::engine::answer::Answer;
use crate::engine::document::items;
use crate::engine::error::Refusal;
use crate::engine::limits::Limit;
use crate::engine::names::NameRule;
use crate::engine::resource_type::{
    Concurrency, Extension, Protocol, Provider, ResourceType as _, WireDialect,
};
use crate::engine::state::AzureState;
use crate::entra::{Application, FederatedCredential};

/// Versions that clients of today use, newest first.
const API_VERSIONS: [&str; 4] = ["2024-11-30", "2023-01-31", "2022-01-31-preview", "2018-11-30"];

/// What most of the provider's types have in common.
const fn protocol(resource_type: &'static str, noun: &'static str) -> Protocol {
    Protocol::new(resource_type, noun, &API_VERSIONS, WireDialect::Manager, Concurrency::Conflict)
}

pub(crate) fn provider() -> Provider {
    Provider {
        namespace: "Microsoft.ManagedIdentity",
        resource_types: vec![
            &user_assigned::UserAssignedIdentities,
            &federated_credential::FederatedCredentials,
        ],
        calls: Vec::new(),
        extensions: vec![own_identity],
        policies: &[],
        limits: LIMITS,
        unlimited: &[],
        names: NAMES,
        members: &[],
        since: &[],
    }
}

static LIMITS: &[Limit] = &[Limit::of("managedIdentity.federatedCredentialsPerIdentity", 20)];

static NAMES: &[NameRule] = &[
    NameRule {
        of: "*/federatedIdentityCredentials",
        fits: |name| fits(name, 3, 120),
        refusal: |_, name| bad_name(name, 3, 120),
    },
    NameRule { of: "*", fits: |name| fits(name, 3, 128), refusal: |_, name| bad_name(name, 3, 128) },
];

fn fits(name: &str, shortest: usize, longest: usize) -> bool {
    (shortest..=longest).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

fn bad_name(name: &str, shortest: usize, longest: usize) -> Refusal {
    Refusal::new(
        400,
        "InvalidResourceName",
        format!(
            "The resource name '{name}' is invalid. It must begin with a letter or digit, hold only letters, digits, '-' \
             and '_', and be {shortest} to {longest} characters long."
        ),
    )
}

/// The id of something of this provider in the provider's own spelling.
fn own_spelling(id: &ResourceId) -> String {
    id.as_str().replacen("/resourceGroups/", "/resourcegroups/", 1)
}

/// Who an identity is: the same for its whole life, another when it was deleted and made anew.
struct Ids {
    principal: String,
    client: String,
}

impl Ids {
    fn of(azure: &AzureState, id: &ResourceId, incarnation: u64) -> Self {
        Self {
            principal: azure.seed.guid("principal", id.as_str(), incarnation),
            client: azure.seed.guid("client", id.as_str(), incarnation),
        }
    }
}

/// `{scope}/providers/Microsoft.ManagedIdentity/identities/default`: the identity of a resource itself.
fn own_identity(azure: &mut AzureState, asked: &Extension<'_>) -> Option<Result<Answer, Refusal>> {
    let [kind, name] = asked.segments else { return None };
    if !kind.eq_ignore_ascii_case("identities") || !name.eq_ignore_ascii_case("default") {
        return None;
    }
    if asked.method != "GET" {
        return Some(Err(Refusal::method_not_allowed(asked.method)));
    }
    let Some(record) = azure.store.get(asked.scope).filter(|record| assignment::is_own(&record.body)) else {
        let text = format!("The resource '{}' has no identity of its own.", asked.scope);
        return Some(Err(Refusal::new(404, "NotFound", text)));
    };
    let ids = Ids::of(azure, &record.id, record.incarnation);
    Some(Ok(Answer::ok(json!({
        "id": format!("{}/providers/Microsoft.ManagedIdentity/identities/default", record.id),
        "name": "default",
        "type": "Microsoft.ManagedIdentity/identities",
        "location": azure.location(&record.id),
        "properties": {
            "tenantId": azure.tenant_of(record.id.subscription_id()),
            "principalId": ids.principal,
            "clientId": ids.client,
        },
    }))))
}

/// A user-assigned identity as the directory knows it: whom its credentials let in.
pub(crate) fn application(azure: &AzureState, client_id: &str) -> Option<Application> {
    let mut identities = azure
        .store
        .all()
        .filter(|record| record.resource_type.name() == user_assigned::UserAssignedIdentities.name());
    let (record, ids) = identities
        .by_ref()
        .map(|record| (record, Ids::of(azure, &record.id, record.incarnation)))
        .find(|(_, ids)| ids.client.eq_ignore_ascii_case(client_id))?;
    let tenant = azure.tenant_of(record.id.subscription_id());
    let application = Application::new(ids.client, ids.principal).in_tenant(tenant);
    let credentials =
        azure.store.of_type_below(federated_credential::FederatedCredentials.name(), &record.id);
    Some(credentials.into_iter().fold(application, |application, credential| {
        let text = |member: &str| {
            let value = credential.body.get("properties").and_then(|properties| properties.get(member));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let audience = items(&credential.body, "properties/audiences").first().and_then(Value::as_str);
        application.with_federated(FederatedCredential {
            issuer: text("issuer"),
            subject: text("subject"),
            audience: audience.unwrap_or(FederatedCredential::AUDIENCE).to_owned(),
            keys: Vec::new(),
        })
    }))
}
