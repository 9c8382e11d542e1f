//! Export and import of disks and snapshots over the network.

use azure_types::ResourceId;

use super::given::Given;
use super::keys;
use crate::model::error::{Refusal, Result};

const DENY_ALL: &str = "DenyAll";
const ALLOW_PRIVATE: &str = "AllowPrivate";
const DISABLED: &str = "Disabled";

/// What the documents of a disk or a snapshot say; an absent member is left to Azure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkAccess {
    /// `networkAccessPolicy`.
    pub policy: Option<String>,
    /// `publicNetworkAccess`.
    pub public: Option<String>,
    /// The disk access of private endpoints.
    pub disk_access: Option<ResourceId>,
}

impl NetworkAccess {
    /// That of a snapshot: what the class says, without defaults.
    pub(super) fn of_snapshot(given: &Given) -> Self {
        Self {
            policy: given.owned(keys::NETWORK_ACCESS),
            public: given.owned(keys::PUBLIC_ACCESS),
            disk_access: None,
        }
    }

    /// That of a disk: closed unless the class opens it. Azure Stack knows none of it.
    ///
    /// # Errors
    /// Policy and disk access do not fit together.
    pub(super) fn of_disk(given: &Given, is_stack: bool) -> Result<Self> {
        if is_stack {
            return Ok(Self::default());
        }
        let disk_access = given.text(keys::DISK_ACCESS).and_then(|id| ResourceId::parse(id).ok());
        let policy = given.text(keys::NETWORK_ACCESS);
        match (policy, &disk_access) {
            (Some(ALLOW_PRIVATE), None) => Err(Refusal::ConflictingParameters {
                key: keys::NETWORK_ACCESS,
                value: ALLOW_PRIVATE.to_owned(),
                other: "the absence of diskAccessID".to_owned(),
                remedy: "add diskAccessID, or choose another policy",
            }),
            (Some(other), Some(id)) if other != ALLOW_PRIVATE => Err(Refusal::ConflictingParameters {
                key: keys::DISK_ACCESS,
                value: id.as_str().to_owned(),
                other: format!("{}={other}", keys::NETWORK_ACCESS),
                remedy: "set networkAccessPolicy to AllowPrivate, or remove diskAccessID",
            }),
            _ => {
                // A disk access serves no other policy.
                let default = if disk_access.is_some() { ALLOW_PRIVATE } else { DENY_ALL };
                let policy = Some(policy.unwrap_or(default).to_owned());
                let public = Some(given.text(keys::PUBLIC_ACCESS).unwrap_or(DISABLED).to_owned());
                Ok(Self { policy, public, disk_access })
            }
        }
    }
}
