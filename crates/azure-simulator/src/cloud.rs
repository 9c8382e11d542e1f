//! The cloud's description of itself (`spec/arm-wire.md`, 3.2).

use axum::Json;
use axum::extract::{Request, State};
use serde_json::{Value, json};

use crate::azure::Azure;
use crate::http::base_url;

/// Names under which clients look for the cloud they are configured for.
const NAMES: [&str; 3] = ["AzureCloud", "AzurePublicCloud", "AzureStackCloud"];

pub(crate) async fn endpoints(State(azure): State<Azure>, request: Request) -> Json<Value> {
    let base = base_url(&azure, &request);
    let authority = azure.options().authority.trim_end_matches('/').to_owned();
    let list: Vec<Value> = NAMES
        .iter()
        .map(|name| {
            json!({
                "name": name,
                "portal": base,
                "authentication": {
                    "loginEndpoint": format!("{authority}/"),
                    "audiences": ["https://management.core.windows.net/", "https://management.azure.com/", &base],
                    "tenant": "common",
                    "identityProvider": "AAD",
                },
                "resourceManager": format!("{base}/"),
                "graph": "https://graph.windows.net/",
                "graphAudience": "https://graph.windows.net/",
                "batch": "https://batch.core.windows.net/",
                "suffixes": {
                    "acrLoginServer": "azurecr.io",
                    "keyVaultDns": "vault.azure.net",
                    "sqlServerHostname": "database.windows.net",
                    "storage": "core.windows.net",
                },
            })
        })
        .collect();
    Json(Value::Array(list))
}
