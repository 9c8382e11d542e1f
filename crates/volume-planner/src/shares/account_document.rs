//! The documents of a new account and of its file service.

use serde_json::{Value, json};

use super::account::{AccountRequest, wanted_retention};
use crate::model::document::object;
use crate::parameters::tags;

/// The tag that says which driver made an account.
const CREATED_BY: &str = "azure";
/// For how long Azure keeps deleted shares where a class asks for it.
const RETENTION_DAYS: u64 = 7;

impl AccountRequest {
    /// The document of a new account (section 4.5, step 3).
    pub fn document(&self) -> Value {
        let wanted = &self.parameters;
        let mut all = wanted.tags.clone();
        tags::set(&mut all, tags::CREATED_BY, CREATED_BY);
        let rules: Vec<Value> =
            self.subnets.iter().map(|subnet| json!({ "id": subnet, "action": "Allow" })).collect();
        let is_closed = !rules.is_empty() || self.is_private();
        let encryption = json!({
            "keySource": "Microsoft.Storage",
            "requireInfrastructureEncryption": true,
            "services": { "file": { "enabled": true }, "blob": { "enabled": true } },
        });
        let properties = object([
            ("minimumTlsVersion", Some("TLS1_2".into())),
            ("supportsHttpsTrafficOnly", Some(self.is_https_only().into())),
            ("allowBlobPublicAccess", Some(wanted.has_public_blobs.into())),
            ("allowSharedKeyAccess", wanted.has_keys.map(Value::from)),
            ("allowCrossTenantReplication", wanted.replicates_to_tenants.map(Value::from)),
            ("publicNetworkAccess", wanted.public_access.clone().map(Value::from)),
            // FIX: with the first request. Azure does not take it later, and an account without it suits no request.
            ("accessTier", wanted.tier.clone().map(Value::from)),
            ("largeFileSharesState", wanted.has_large_shares.map(|large| if large { "Enabled" } else { "Disabled" }.into())),
            ("encryption", wanted.is_encrypted_twice.then_some(encryption)),
            ("networkAcls", is_closed.then(|| json!({ "defaultAction": "Deny", "bypass": "AzureServices", "virtualNetworkRules": rules }))),
            (
                "azureFilesIdentityBasedAuthentication",
                wanted.has_oauth_over_smb.then(|| {
                    json!({ "directoryServiceOptions": "None", "smbOAuthSettings": { "isSmbOAuthEnabled": true } })
                }),
            ),
        ]);
        let sku = self.new_sku();
        json!({ "location": self.region, "kind": sku.kind(), "sku": { "name": sku.name() }, "tags": all, "properties": properties })
    }

    /// The document of its file service, if the class says something of it.
    pub fn service_document(&self) -> Option<Value> {
        let multichannel = self
            .parameters
            .has_multichannel
            .map(|enabled| json!({ "smb": { "multichannel": { "enabled": enabled } } }));
        let retention = wanted_retention(&self.parameters).map(|enabled| match enabled {
            true => json!({ "enabled": true, "days": RETENTION_DAYS }),
            false => json!({ "enabled": false }),
        });
        if multichannel.is_none() && retention.is_none() {
            return None;
        }
        let properties =
            object([("protocolSettings", multichannel), ("shareDeleteRetentionPolicy", retention)]);
        Some(json!({ "properties": properties }))
    }
}
