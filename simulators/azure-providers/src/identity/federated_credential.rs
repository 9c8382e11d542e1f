//! Federated credentials of a user-assigned identity: the tokens that sign it in.

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::ids::own_spelling;
use super::protocol::protocol;
use azure_engine::document::{Object, into_object, items, take_properties, text};
use azure_engine::provider::{AzureState, Expand, Presenting, Proposal, Protocol, Record, Writing};
use azure_engine::refusal::{Code, Refusal, Result};

pub(crate) struct FederatedCredentials;

/// Longest issuer, subject and audience, as Azure documents for the members.
const MAX_LENGTH: usize = 600;

/// They came later than identities.
const VERSIONS: [&str; 3] = ["2024-11-30", "2023-01-31", "2022-01-31-preview"];

const PROTOCOL: Protocol = Protocol {
    example: include_str!("federated_credential.json"),
    api_versions: &VERSIONS,
    tracked: false,
    synchronous: true,
    synchronous_delete: true,
    delete_status: 200,
    ..protocol(
        "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials",
        "FederatedIdentityCredential",
    )
};

shape!(FederatedCredentials, PROTOCOL, without Acting);

impl Writing for FederatedCredentials {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let bad = |text: String| Code::azures(400, "BadRequest").says(text);
        let mut properties = take_properties(&mut proposal.body);
        properties.retain(|member, _| matches!(member.as_str(), "issuer" | "subject" | "audiences"));
        let value = Value::Object(properties);
        for member in ["issuer", "subject"] {
            let given = text(&value, member).unwrap_or_default();
            if given.is_empty() || given.len() > MAX_LENGTH {
                return Err(bad(format!(
                    "The federated identity credential's {member} must have 1 to {MAX_LENGTH} characters."
                )));
            }
        }
        let issuer = text(&value, "issuer").unwrap_or_default();
        if url::Url::parse(issuer).is_err() {
            return Err(bad(format!("The issuer '{issuer}' is no URL.")));
        }
        if !matches!(items(&value, "audiences"), [Value::String(audience)] if audience.len() <= MAX_LENGTH) {
            return Err(bad("A federated identity credential has exactly one audience.".into()));
        }
        let identity = proposal.id.parent().unwrap_or_else(|| proposal.id.clone());
        let others: Vec<&Record> = azure
            .store
            .of_type_below(PROTOCOL.resource_type, &identity)
            .into_iter()
            .filter(|other| other.id != *proposal.id)
            .collect();
        let most = azure.limit("managedIdentity.federatedCredentialsPerIdentity");
        if proposal.old.is_none() && others.len() as u64 >= most {
            return Err(bad(format!(
                "Too many federated identity credentials are configured for the managed identity. The limit is {most}."
            )));
        }
        let same = |other: &&Record, member: &str| {
            text(&other.body, &format!("properties/{member}")) == text(&value, member)
        };
        Code::azures(409, "Conflict").says_when(
            others.iter().any(|other| same(other, "issuer") && same(other, "subject")),
            "Issuer and subject combination already exists for this Managed Identity.",
        )?;
        Ok(json!({ "properties": into_object(value) }))
    }
}

impl Presenting for FederatedCredentials {
    fn present(&self, _azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        document.insert("id".into(), own_spelling(&record.id).into());
        if let Some(Value::Object(properties)) = document.get_mut("properties") {
            properties.remove("provisioningState");
        }
    }

    fn absence_refusal(&self, _azure: &AzureState, id: &ResourceId) -> Option<Refusal> {
        let parent = id.parent()?;
        Some(Code::azures(404, "NotFound").says(format_args!(
            "The federated identity credential '{}' of the identity '{}' was not found.",
            id.name(),
            own_spelling(&parent)
        )))
    }
}
