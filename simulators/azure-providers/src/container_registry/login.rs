//! Authentication at a registry, for the service under its own host.

use std::fmt;

use azure_types::ResourceId;
use serde_json::Value;

use super::{credentials, login_server};
use crate::authorization::{Plane, may};
use azure_engine::provider::AzureState;

/// The action that pulls, which the roles AcrPull and AcrPush have.
const PULL: &str = "Microsoft.ContainerRegistry/registries/pull/read";
/// The action that pushes, which the role AcrPush has.
const PUSH: &str = "Microsoft.ContainerRegistry/registries/push/write";

/// The identities that may sign in at one registry.
pub struct RegistryAccess {
    id: ResourceId,
    /// Whether anonymous pull is enabled.
    pub anonymous: bool,
    admin: Option<(String, [String; 2])>,
}

impl fmt::Debug for RegistryAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Passwords are read only through their own method.
        f.debug_struct("RegistryAccess").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The registry behind a host, if there is one.
pub fn access(azure: &AzureState, host: &str) -> Option<RegistryAccess> {
    let name = host.strip_suffix(login_server::SUFFIX)?.strip_suffix('.')?;
    let record = login_server::find(azure, name)?;
    let anonymous =
        record.body.pointer("/properties/anonymousPullEnabled").and_then(Value::as_bool) == Some(true);
    let admin = credentials::has_admin(record)
        .then(|| (record.id.name().to_lowercase(), credentials::passwords(azure, record)));
    Some(RegistryAccess { id: record.id.clone(), anonymous, admin })
}

impl RegistryAccess {
    /// Whether a principal, by its object id, may pull.
    pub fn may_pull(&self, azure: &AzureState, object_id: &str) -> bool {
        may(azure, object_id, Plane::Control, PULL, &self.id)
    }

    /// Whether a principal, by its object id, may push.
    pub fn may_push(&self, azure: &AzureState, object_id: &str) -> bool {
        may(azure, object_id, Plane::Control, PUSH, &self.id)
    }

    /// Whether these are the administrator's name and one of the passwords.
    pub fn is_admin(&self, user: &str, password: &str) -> bool {
        let known = |(name, passwords): &(String, [String; 2])| {
            name.eq_ignore_ascii_case(user) && passwords.iter().any(|known| known == password)
        };
        self.admin.as_ref().is_some_and(known)
    }
}
