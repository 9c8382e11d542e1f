//! `Microsoft.KeyVault`: vaults, deleted vaults that can be recovered, their secrets and keys over Resource Manager,
//! and both under hosts of their own (`{vault}.vault.azure.net`).

mod access_policy;
mod contents;
mod deleted_vault;
mod host;
mod item;
mod key;
mod naming;
mod plane;
mod protocol;
mod secret;
mod soft_delete;
mod vault;

use azure_engine::provider::Provider;
use azure_engine::settings::limits::Limit;
use azure_engine::types::names::NameRule;

pub(crate) fn provider() -> Provider {
    Provider {
        calls: vec![naming::availability],
        extensions: vec![deleted_vault::below_a_location],
        limits: LIMITS,
        names: &NAMES,
        timetable: Some(|| Box::<contents::Contents>::default()),
        data_planes: &plane::PLANES,
        ..Provider::new("Microsoft.KeyVault", vec![&vault::Vaults, &deleted_vault::DeletedVaults])
    }
}

/// "Azure Key Vault service limits".
static LIMITS: &[Limit] =
    &[Limit::of("keyVault.accessPoliciesPerVault", 1_024), Limit::of("keyVault.secretBytes", 25 * 1_024)];

static NAMES: [NameRule; 1] = [NameRule {
    of: "Microsoft.KeyVault/vaults",
    fits: naming::fits,
    refusal: |_, name| naming::invalid(name),
}];
