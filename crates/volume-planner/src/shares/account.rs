//! Which accounts suit a class (section 4.5, step 2).

use std::fmt::Write as _;

use azure_types::ResourceId;
use serde_json::Value;

use crate::model::account_sku::AccountSku;
use crate::model::document::{tag, text};
use crate::model::topology::normalize_region;
use crate::parameters::share::{AccountParameters, Protocol, Reach};

/// The tag of an account that no further share is put into, until one of its shares is deleted.
pub const SKIP_TAG: &str = "skip-matching";

/// What a class asks of an account, with what the cloud configuration adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRequest {
    /// What the class says.
    pub parameters: AccountParameters,
    /// How its shares are mounted.
    pub protocol: Protocol,
    /// The region: the class's, or the cluster's.
    pub region: String,
    /// The subnets that the account has to admit; for a private endpoint none.
    pub subnets: Vec<ResourceId>,
}

impl AccountRequest {
    /// The kind of a new account.
    pub fn new_sku(&self) -> AccountSku {
        let usual = match self.protocol {
            Protocol::Smb => AccountSku::STANDARD_LRS,
            Protocol::Nfs => AccountSku::PREMIUM_LRS,
        };
        self.parameters.sku.unwrap_or(usual)
    }

    /// Azure refuses NFS where HTTPS is demanded.
    pub(super) fn is_https_only(&self) -> bool {
        self.protocol == Protocol::Smb
    }

    pub(super) fn is_private(&self) -> bool {
        matches!(self.parameters.reach, Reach::Private { .. })
    }

    /// In what an account differs from the request; `None` if it suits.
    pub fn differs(&self, account: &Value) -> Option<&'static str> {
        let (wanted, flag) =
            (&self.parameters, |pointer: &str| account.pointer(pointer).and_then(Value::as_bool));
        let is = |pointer: &str, expected: &str| {
            text(account, pointer).is_some_and(|it| it.eq_ignore_ascii_case(expected))
        };
        let differs = |wanted: Option<&str>, pointer: &str| wanted.is_some_and(|wanted| !is(pointer, wanted));
        let region = text(account, "/location").map(normalize_region);
        let large = wanted.has_large_shares.map(|large| if large { "Enabled" } else { "Disabled" });
        let found_large = text(account, "/properties/largeFileSharesState").unwrap_or("Disabled");
        let has_tag = |(key, value): (&String, &String)| tag(account, key) == Some(value.as_str());
        let is_encrypted_twice =
            flag("/properties/encryption/requireInfrastructureEncryption").unwrap_or(false);
        let has_endpoint = account
            .pointer("/properties/privateEndpointConnections")
            .and_then(Value::as_array)
            .is_some_and(|all| !all.is_empty());
        let oauth = "/properties/azureFilesIdentityBasedAuthentication/smbOAuthSettings/isSmbOAuthEnabled";
        let checks = [
            (tag(account, SKIP_TAG).is_some(), "it is full, by its tag skip-matching"),
            (differs(wanted.sku.map(AccountSku::name), "/sku/name"), "skuName"),
            (!is("/kind", self.new_sku().kind()), "the kind of account"),
            (region.as_deref() != Some(self.region.as_str()), "location"),
            (large.is_some_and(|large| !large.eq_ignore_ascii_case(found_large)), "enableLargeFileShares"),
            (wanted.matches_tags && !wanted.tags.iter().all(has_tag), "tags"),
            (flag("/properties/isHnsEnabled").unwrap_or(false), "a hierarchical namespace"),
            (flag("/properties/isNfsV3Enabled").unwrap_or(false), "NFS 3"),
            (
                flag("/properties/supportsHttpsTrafficOnly").unwrap_or(true) != self.is_https_only(),
                "HTTPS only",
            ),
            (
                flag("/properties/allowBlobPublicAccess").unwrap_or(true) != wanted.has_public_blobs,
                "allowBlobPublicAccess",
            ),
            (is_encrypted_twice != wanted.is_encrypted_twice, "requireInfraEncryption"),
            (
                flag("/properties/allowSharedKeyAccess").unwrap_or(true) != wanted.has_keys.unwrap_or(true),
                "allowSharedKeyAccess",
            ),
            (
                wanted.replicates_to_tenants.is_some()
                    && flag("/properties/allowCrossTenantReplication") != wanted.replicates_to_tenants,
                "allowCrossTenantReplication",
            ),
            (differs(wanted.tier.as_deref(), "/properties/accessTier"), "accountAccessTier"),
            (!self.subnets.iter().all(|subnet| admits(account, subnet)), "subnets"),
            (has_endpoint != self.is_private(), "a private endpoint"),
            (wanted.has_oauth_over_smb && !flag(oauth).unwrap_or(false), "SMB with tokens"),
        ];
        checks.into_iter().find_map(|(differs, what)| differs.then_some(what))
    }

    /// In what the file service of an account differs from the request; `None` if it suits, or if the class does not say.
    pub fn differs_in_service(&self, service: &Value) -> Option<&'static str> {
        let flag = |pointer: &str| service.pointer(pointer).and_then(Value::as_bool);
        let multichannel = flag("/properties/protocolSettings/smb/multichannel/enabled").unwrap_or(false);
        let retains = flag("/properties/shareDeleteRetentionPolicy/enabled").unwrap_or(false);
        let (wanted, none) = (&self.parameters, wanted_retention(&self.parameters));
        if wanted.has_multichannel.is_some_and(|wanted| wanted != multichannel) {
            return Some("enableMultichannel");
        }
        none.is_some_and(|wanted| wanted != retains).then_some("disableDeleteRetentionPolicy")
    }

    /// Whether the file service has to be read to know whether an account suits.
    pub fn needs_service(&self) -> bool {
        self.parameters.has_multichannel.is_some() || self.parameters.has_no_retention.is_some()
    }

    /// All wishes in one text: equal for classes that may share accounts, of which one is made for all.
    pub fn wishes(&self) -> String {
        let AccountParameters { tags, matches_tags, .. } = &self.parameters;
        let parameters = AccountParameters {
            // They are no wishes, or stand beside.
            name: None,
            is_random: false,
            quota_gib: None,
            tags: if *matches_tags { tags.clone() } else { Default::default() },
            ..self.parameters.clone()
        };
        let mut text = String::new();
        let _ = write!(text, "{parameters:?} {:?} {} ", self.protocol, self.region);
        for subnet in &self.subnets {
            let _ = write!(text, "{} ", subnet.as_str().to_ascii_lowercase());
        }
        text
    }
}

/// Whether deleted shares are to be kept for a time, if the class says so.
pub(super) fn wanted_retention(parameters: &AccountParameters) -> Option<bool> {
    parameters.has_no_retention.map(|none| !none)
}

/// Whether an account's rules admit a subnet.
fn admits(account: &Value, subnet: &ResourceId) -> bool {
    let rules = account.pointer("/properties/networkAcls/virtualNetworkRules").and_then(Value::as_array);
    rules.into_iter().flatten().any(|rule| {
        let is_it =
            rule.get("id").and_then(Value::as_str).is_some_and(|id| id.eq_ignore_ascii_case(subnet.as_str()));
        let allows = rule
            .get("action")
            .and_then(Value::as_str)
            .is_none_or(|action| action.eq_ignore_ascii_case("Allow"));
        is_it && allows
    })
}

#[cfg(test)]
#[path = "account_tests.rs"]
pub(super) mod tests;
