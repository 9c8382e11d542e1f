//! AzureClusterIdentity: the identity with which a cluster's resources are created, and the namespaces that may use it.

use std::collections::BTreeMap;

use serde_json::json;

use crate::common::{Condition, LabelRequirement, LabelSelector, SecretReference};
use crate::field_error::FieldErrors;
use crate::immutable::{Fixed, check as check_rules};
use crate::object::object;
use crate::text::{is_set, text};

object! {
    /// The identity with which a cluster's resources are created.
    AzureClusterIdentitySpec {
        /// The namespaces whose clusters may use the identity. If it is not set, no namespace may; if it is empty, all
        /// may.
        allowed_namespaces: AllowedNamespaces,
        /// The file with the certificate, for ServicePrincipalCertificate; it takes precedence over clientSecret.
        cert_path: String,
        /// The client id (application id).
        #[serde(rename = "clientID")]
        #[schemars(required)]
        client_id: String,
        /// The Secret with the client secret, or with the certificate.
        #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
        client_secret: SecretReference,
        /// The id of the identity, for UserAssignedMSI. Deprecated.
        #[serde(rename = "resourceID")]
        resource_id: String,
        /// The tenant.
        #[serde(rename = "tenantID")]
        #[schemars(required)]
        tenant_id: String,
        /// The credential type of the identity.
        #[serde(rename = "type")]
        #[schemars(required, extend("enum" = [
            "ServicePrincipal", "UserAssignedMSI", "ManualServicePrincipal", "ServicePrincipalCertificate",
            "WorkloadIdentity", "UserAssignedIdentityCredential"
        ]))]
        kind: String,
        /// The cloud of the credentials at userAssignedIdentityCredentialsPath: public, china or usgovernment.
        user_assigned_identity_credentials_cloud_type: String,
        /// The file with credentials, for UserAssignedIdentityCredential.
        user_assigned_identity_credentials_path: String,
    }

    /// Namespaces, by name or by label.
    AllowedNamespaces {
        /// Names of namespaces.
        list: Vec<String>,
        /// Labels of namespaces.
        #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
        selector: LabelSelector,
    }

    /// The observed state of an identity.
    AzureClusterIdentityStatus {
        /// Conditions of the identity.
        conditions: Vec<Condition>,
    }
}

/// Validates an identity; `old` is its previous version.
pub fn validate(new: &AzureClusterIdentitySpec, old: Option<&AzureClusterIdentitySpec>) -> FieldErrors {
    let kind = text(&new.kind);
    let (path, cloud) =
        (&new.user_assigned_identity_credentials_path, &new.user_assigned_identity_credentials_cloud_type);
    FieldErrors::of(|object| {
        let spec = object.child("spec");
        for (member, value, wanted) in [
            ("resourceID", &new.resource_id, "UserAssignedMSI"),
            ("userAssignedIdentityCredentialsPath", path, "UserAssignedIdentityCredential"),
            ("userAssignedIdentityCredentialsCloudType", cloud, "UserAssignedIdentityCredential"),
        ] {
            spec.child(member).forbidden_if(
                is_set(value) && kind != wanted,
                format_args!("it is only for identities of the type {wanted}; this one is {kind}"),
            );
        }
        if let Some(old) = old {
            check_rules(&[("type", Fixed::Always)], &json!(old), &json!(new), &spec);
        }
    })
}

/// Whether clusters of a namespace with these labels may use an identity.
pub fn is_allowed(
    allowed: Option<&AllowedNamespaces>,
    namespace: &str,
    labels: &BTreeMap<String, String>,
) -> bool {
    let Some(allowed) = allowed else { return false };
    if allowed.list.is_none() && allowed.selector.is_none() {
        return true;
    }
    if allowed.list.iter().flatten().any(|name| name == namespace) {
        return true;
    }
    allowed.selector.as_ref().is_some_and(|selector| is_selected(selector, labels))
}

/// A selector without a requirement selects nothing here, unlike elsewhere in Kubernetes, so that an unfinished one
/// does not open the identity to all namespaces.
fn is_selected(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let wanted = selector.match_labels.iter().flatten();
    let requirements = selector.match_expressions.as_deref().unwrap_or_default();
    if wanted.clone().next().is_none() && requirements.is_empty() {
        return false;
    }
    wanted.clone().all(|(key, value)| labels.get(key) == Some(value))
        && requirements.iter().all(|requirement| holds(requirement, labels))
}

/// Whether a requirement holds; one with an unknown operator does not.
fn holds(requirement: &LabelRequirement, labels: &BTreeMap<String, String>) -> bool {
    let Some(key) = &requirement.key else { return false };
    let values = requirement.values.as_deref().unwrap_or_default();
    let value = labels.get(key);
    match requirement.operator.as_deref() {
        Some("In") => value.is_some_and(|value| values.contains(value)),
        Some("NotIn") => value.is_none_or(|value| !values.contains(value)),
        Some("Exists") => value.is_some(),
        Some("DoesNotExist") => value.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{AllowedNamespaces, AzureClusterIdentitySpec, is_allowed, validate};

    /// CAPZ-157: the namespaces that may use an identity.
    #[test]
    fn namespaces_are_allowed_by_name_or_label() {
        let labels = [("team".to_owned(), "a".to_owned())].into();
        for (allowed, expected) in [
            (json!(null), false),
            (json!({}), true),
            (json!({ "list": ["a"] }), true),
            (json!({ "list": ["b"] }), false),
            (json!({ "list": [] }), false),
            (json!({ "list": ["b"], "selector": {} }), false),
            (json!({ "selector": { "matchLabels": { "team": "a" } } }), true),
            (json!({ "selector": { "matchLabels": { "team": "b" } } }), false),
            (
                json!({ "list": ["b"], "selector": { "matchExpressions": [{ "key": "team", "operator": "Exists" }] } }),
                true,
            ),
            (
                json!({ "selector": { "matchExpressions": [{ "key": "team", "operator": "NotIn", "values": ["a"] }] } }),
                false,
            ),
            (json!({ "selector": { "matchExpressions": [{ "key": "team", "operator": "Likes" }] } }), false),
        ] {
            let parsed: Option<AllowedNamespaces> = serde_json::from_value(allowed.clone()).unwrap();
            assert_eq!(is_allowed(parsed.as_ref(), "a", &labels), expected, "{allowed}");
        }
    }

    /// CAPZ-158: only members of one type, and a type that stays.
    #[test]
    fn members_fit_the_type_which_stays() {
        let spec = |value| serde_json::from_value::<AzureClusterIdentitySpec>(value).unwrap();
        let principal = spec(json!({ "type": "ServicePrincipal", "resourceID": "x" }));
        assert_eq!(
            validate(&principal, None).message(),
            "spec.resourceID: Forbidden: it is only for identities of the type UserAssignedMSI; this one is ServicePrincipal"
        );
        let msi = spec(json!({ "type": "UserAssignedMSI", "resourceID": "x" }));
        assert!(validate(&msi, None).is_empty());
        assert!(
            validate(&msi, Some(&principal))
                .message()
                .starts_with("spec.type: Invalid value: \"UserAssignedMSI\"")
        );
    }
}
