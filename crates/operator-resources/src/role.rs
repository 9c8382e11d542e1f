//! Role assignments: their names, and the built-in roles.

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::Refusal;
use crate::member::optional_text;
use crate::reference::{ObjectName, Reference};
use crate::table::Kind;

/// The operator's namespace of names that it derives.
const NAMES: Uuid = Uuid::from_u128(0x9a329043_7ad7_4b1c_812f_9c7a93d6392a);

/// The name in Azure of a role assignment that states none, which must be a UUID: the operator derives it from owner,
/// kind, namespace and name, unless the name is a UUID already.
pub(crate) fn assignment_name(
    kind: &Kind,
    namespace: &str,
    name: &str,
    owner: Option<&Reference>,
    operator_spec: &Map<String, Value>,
) -> Result<String, Refusal> {
    let path = "spec.operatorSpec.namingConvention";
    match optional_text(operator_spec, "namingConvention", "spec.operatorSpec")? {
        Some(word) if word.eq_ignore_ascii_case("random") => {
            return Err(Refusal::value(path, word, "write a UUID in spec.azureName, or remove it"));
        }
        Some(word) if !word.eq_ignore_ascii_case("stable") => {
            return Err(Refusal::value(path, word, "write stable, or a UUID in spec.azureName"));
        }
        _ => {}
    }
    if Uuid::parse_str(name).is_ok() {
        return Ok(name.to_owned());
    }
    let nothing = ObjectName { group: String::new(), kind: String::new(), name: String::new() };
    let owner = match owner {
        Some(Reference::Object(owner)) => owner,
        // An owner by ID counts as one without group, kind and name.
        _ => &nothing,
    };
    let seed = format!(
        "{}/{}:{namespace}/{}:{}/{}:{namespace}/{name}",
        owner.group, owner.kind, owner.name, kind.kind, kind.group
    );
    Ok(named_uuid(&seed).to_string())
}

/// The UUID (version 5) of a text in the operator's namespace.
fn named_uuid(text: &str) -> Uuid {
    let mut context = ring::digest::Context::new(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(NAMES.as_bytes());
    context.update(text.as_bytes());
    let digest = context.finish();
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(digest.as_ref()) {
        *to = *from;
    }
    uuid::Builder::from_sha1_bytes(bytes).into_uuid()
}

/// Built-in roles that clusters are given, with the names of their definitions.
const ROLES: [(&str, &str); 24] = [
    ("AcrPull", "7f951dda-4ed3-4680-a7ca-43fe172d538d"),
    ("AcrPush", "8311e382-0749-4cb8-b61a-304f252e45ec"),
    ("Azure Kubernetes Service Cluster Admin Role", "0ab0b1a8-8aac-4efd-b8c2-3ee1fb270be8"),
    ("Azure Kubernetes Service Cluster User Role", "4abbcc35-e782-43d8-92c5-2d3f1bd2253f"),
    ("Azure Kubernetes Service Contributor Role", "ed7f3fbd-7b88-4dd4-9017-9adb7ce333f8"),
    ("Azure Kubernetes Service RBAC Admin", "3498e952-d568-435e-9b2c-8d77e338d7f7"),
    ("Azure Kubernetes Service RBAC Cluster Admin", "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"),
    ("Azure Kubernetes Service RBAC Reader", "7f6c6a51-bcf8-42ba-9220-52d62157d7db"),
    ("Azure Kubernetes Service RBAC Writer", "a7ffa36f-339b-4b5c-8bdf-e2c188b2c0eb"),
    ("Contributor", "b24988ac-6180-42a0-ab88-20f7382dd24c"),
    ("DNS Zone Contributor", "befefa01-2a29-4197-83a8-272ff33ce314"),
    ("Key Vault Administrator", "00482a5a-887f-4fb3-b363-3b7fe8e74483"),
    ("Key Vault Crypto Service Encryption User", "e147488a-f6f5-4113-8e2d-b22465e65bf6"),
    ("Key Vault Crypto User", "12338af0-0e69-4776-bea7-57ae8d297424"),
    ("Key Vault Secrets User", "4633458b-17de-408a-b874-0445c86b69e6"),
    ("Managed Identity Operator", "f1a07417-d97a-45cb-824c-7a7467783830"),
    ("Monitoring Metrics Publisher", "3913510d-42f4-4e42-8a64-420c390055eb"),
    ("Network Contributor", "4d97b98b-1d4f-4787-a291-c67834d212e7"),
    ("Owner", "8e3af657-a8ff-443c-a75c-2fe8c4bcb635"),
    ("Private DNS Zone Contributor", "b12aa53e-6015-4669-85d0-8515ebb3ae7f"),
    ("Reader", "acdd72a7-3385-48ef-bd42-f606fba81ae7"),
    ("Storage Blob Data Contributor", "ba92f5b4-2d11-453d-a403-e96b0029c9fe"),
    ("Storage Blob Data Reader", "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1"),
    ("User Access Administrator", "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9"),
];

/// The ID of a built-in role's definition, as the subscription of the assignment shows it.
pub(crate) fn definition(role: &str, subscription: Option<&str>, path: &str) -> Result<String, Refusal> {
    let known = ROLES.iter().find(|(name, _)| name.eq_ignore_ascii_case(role));
    let (_, name) = known.ok_or_else(|| {
        let names: Vec<&str> = ROLES.iter().map(|(name, _)| *name).collect();
        let remedy =
            format!("write {{armId: <ID of the role's definition>}}; known by name are {}", names.join(", "));
        Refusal::value(&format!("{path}.wellKnownName"), role, remedy)
    })?;
    let scope = subscription.map(|subscription| format!("/subscriptions/{subscription}")).unwrap_or_default();
    Ok(format!("{scope}/providers/Microsoft.Authorization/roleDefinitions/{name}"))
}
