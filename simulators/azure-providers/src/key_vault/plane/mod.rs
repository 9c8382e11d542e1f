//! The hosts of vaults (`{vault}.vault.azure.net`): secrets and keys ("Azure Key Vault REST API reference").

mod access;
mod item_path;
mod refusal;
mod requests;
mod shown;

use azure_engine::provider::DataPlane;

use super::host;

/// Requests to vaults carry little.
const MAX_BODY_BYTES: u64 = 1024 * 1024;

pub(super) static PLANES: [DataPlane; 1] = [DataPlane {
    suffix: host::SUFFIX,
    audiences: &["https://vault.azure.net"],
    challenge: |authority| {
        format!(r#"Bearer authorization="{authority}", resource="https://vault.azure.net""#)
    },
    own_authentication: false,
    max_body_bytes: MAX_BODY_BYTES,
    locate: item_path::locate,
    perform: requests::perform,
    refuse: refusal::refuse,
}];
