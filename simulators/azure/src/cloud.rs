//! The cloud's description of itself, in the three forms that it has had.

use axum::Json;
use axum::extract::{Query, Request, State};
use serde_json::{Value, json};
use std::collections::BTreeMap;

use crate::azure::Azure;
use crate::base_url::base_url;

/// Names under which clients look for the cloud they are configured for.
const NAMES: [&str; 3] = ["AzureCloud", "AzurePublicCloud", "AzureStackCloud"];
/// The first version with a list of clouds.
const LIST: &str = "2018-05-01";
/// The first version with the one cloud that was asked.
const ONE: &str = "2020-06-01";

pub(crate) async fn endpoints(
    State(azure): State<Azure>,
    Query(query): Query<BTreeMap<String, String>>,
    request: Request,
) -> Json<Value> {
    let base = base_url(&azure, &request);
    let authority = azure.options().authority.trim_end_matches('/').to_owned();
    // A request without a version gets the form that most clients read. `1.0` is the oldest one.
    let version = query.get("api-version").map_or("2019-05-01", String::as_str);
    let audiences = json!(["https://management.core.windows.net/", "https://management.azure.com/", &base]);
    if version < LIST {
        return Json(json!({
            "galleryEndpoint": format!("{base}/"),
            "graphEndpoint": "https://graph.windows.net/",
            "portalEndpoint": format!("{base}/"),
            "authentication": { "loginEndpoint": format!("{authority}/"), "audiences": audiences },
        }));
    }
    let describe = |name: &str| {
        json!({
            "name": name,
            "portal": base,
            "authentication": {
                "loginEndpoint": format!("{authority}/"),
                "audiences": audiences,
                "tenant": "common",
                "identityProvider": "AAD",
            },
            "resourceManager": format!("{base}/"),
            "gallery": format!("{base}/"),
            "graph": "https://graph.windows.net/",
            "graphAudience": "https://graph.windows.net/",
            "microsoftGraphResourceId": "https://graph.microsoft.com/",
            "batch": "https://batch.core.windows.net/",
            "media": "https://rest.media.azure.net",
            "sqlManagement": "https://management.core.windows.net:8443/",
            "vmImageAliasDoc":
                "https://raw.githubusercontent.com/Azure/azure-rest-api-specs/main/arm-compute/quickstart-templates/aliases.json",
            "suffixes": {
                "acrLoginServer": "azurecr.io",
                "keyVaultDns": "vault.azure.net",
                "mhsmDns": "managedhsm.azure.net",
                "sqlServerHostname": "database.windows.net",
                "storage": "core.windows.net",
            },
        })
    };
    if version >= ONE {
        return Json(describe(NAMES[0]));
    }
    Json(Value::Array(NAMES.iter().map(|name| describe(name)).collect()))
}
