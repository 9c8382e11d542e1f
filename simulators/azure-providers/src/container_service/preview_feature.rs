//! Members of clusters and pools that need a preview feature, which the subscription has registered ("AKS preview
//! features") or the request's header names.

use azure_engine::document::{at, items, name};
use azure_engine::provider::{AzureState, ResourceRequest};
use azure_engine::refusal::{Code, Refusal, Result};
use azure_types::ResourceId;
use serde_json::Value;

use super::type_names::POOLS;
use super::words::BAD_REQUEST;
use crate::features::{is_registered, offered};

/// The condition under which a member needs a feature.
enum Condition {
    /// The member is present.
    Present,
    /// The member is true.
    On,
    /// The member has this value.
    Text(&'static str),
}

/// The wording of AKS' refusal.
enum Refuses {
    /// hashicorp/terraform-provider-azurerm#13684.
    NotRegistered,
    /// Azure/azure-cli#19385, Azure/AKS-Construction#411.
    NotEnabled,
    /// An add-on, by its name: Azure/azure-quickstart-templates#12928.
    Addon(&'static str),
}

struct Preview {
    member: &'static str,
    condition: Condition,
    feature: &'static str,
    refuses: Refuses,
}

static OF_CLUSTERS: [Preview; 2] = [
    Preview {
        member: "networkProfile/kubeProxyConfig",
        condition: Condition::Present,
        feature: offered::KUBE_PROXY_CONFIGURATION,
        refuses: Refuses::NotRegistered,
    },
    Preview {
        member: "podIdentityProfile/enabled",
        condition: Condition::On,
        feature: offered::POD_IDENTITY,
        refuses: Refuses::Addon("PodIdentity"),
    },
];

static OF_POOLS: [Preview; 2] = [
    Preview {
        member: "kubeletDiskType",
        condition: Condition::Text("Temporary"),
        feature: offered::KUBELET_DISK,
        refuses: Refuses::NotRegistered,
    },
    Preview {
        member: "securityProfile/sshAccess",
        condition: Condition::Text("Disabled"),
        feature: offered::DISABLE_SSH,
        refuses: Refuses::NotEnabled,
    },
];

/// The header that names features, as query options are named.
const HEADER: &str = "akshttpcustomfeatures";

/// Refuses a document of a cluster that needs an unregistered feature.
pub(super) fn check_cluster(azure: &AzureState, request: &ResourceRequest<'_>) -> Result<()> {
    let Some(properties) = request.body.get("properties").filter(|_| is_document(request)) else {
        return Ok(());
    };
    check(azure, request, request.id, properties, &OF_CLUSTERS)?;
    for pool in items(properties, "agentPoolProfiles") {
        let id = request.id.child(POOLS.rsplit('/').next().unwrap_or_default(), name(pool));
        check(azure, request, &id, pool, &OF_POOLS)?;
    }
    Ok(())
}

/// The same for a pool.
pub(super) fn check_pool(azure: &AzureState, request: &ResourceRequest<'_>) -> Result<()> {
    let Some(properties) = request.body.get("properties").filter(|_| is_document(request)) else {
        return Ok(());
    };
    check(azure, request, request.id, properties, &OF_POOLS)
}

fn is_document(request: &ResourceRequest<'_>) -> bool {
    request.method == "PUT" && request.below.is_empty()
}

fn check(
    azure: &AzureState,
    request: &ResourceRequest<'_>,
    id: &ResourceId,
    properties: &Value,
    previews: &[Preview],
) -> Result<()> {
    let old = azure.store.get(id).and_then(|record| record.body.get("properties"));
    let needed = |preview: &&Preview| {
        preview.is_in(properties)
            && !old.is_some_and(|old| preview.is_in(old))
            && !has(azure, request, preview.feature)
    };
    previews.iter().find(needed).map_or(Ok(()), |preview| Err(preview.refusal()))
}

/// Whether this request may use a feature.
fn has(azure: &AzureState, request: &ResourceRequest<'_>, feature: &str) -> bool {
    let subscription = request.id.subscription_id();
    let named = || {
        let header = request.query.get(HEADER).map(String::as_str).unwrap_or_default();
        header.split(',').any(|named| named.trim().eq_ignore_ascii_case(feature))
    };
    is_registered(azure, subscription, feature)
        || (named() && is_registered(azure, subscription, offered::HTTP_CUSTOM_FEATURES))
}

impl Preview {
    fn is_in(&self, properties: &Value) -> bool {
        let value = at(properties, self.member);
        match self.condition {
            Condition::Present => value.is_some_and(|value| !value.is_null()),
            Condition::On => value == Some(&Value::Bool(true)),
            Condition::Text(text) => {
                value.and_then(Value::as_str).is_some_and(|value| value.eq_ignore_ascii_case(text))
            }
        }
    }

    fn refusal(&self) -> Refusal {
        let (feature, how) =
            (self.feature, "Please see https://aka.ms/aks/previews for how to enable features.");
        match self.refuses {
            Refuses::NotRegistered => Code::azures(400, "PreviewFeatureNotRegistered")
                .says(format_args!("Preview feature {feature} not registered.")),
            Refuses::NotEnabled => BAD_REQUEST.says(format_args!("Feature {feature} is not enabled. {how}")),
            Refuses::Addon(addon) => Code::ours(400, "PodIdentityAddonFeatureFlagNotEnabled").says(
                format_args!("{addon} addon is not allowed since feature '{feature}' is not enabled. {how}"),
            ),
        }
    }
}
