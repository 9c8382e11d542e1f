//! `Microsoft.ContainerRegistry`: registries, the passwords of their administrators, and the right to pull.

mod credentials;
mod login;
mod login_server;
mod naming;
mod policies;
mod registry;

pub use login::{RegistryAccess, access};

use azure_engine::provider::Provider;
use azure_engine::types::names::NameRule;

pub(crate) fn provider() -> Provider {
    Provider {
        calls: vec![naming::availability],
        names: &NAMES,
        ..Provider::new("Microsoft.ContainerRegistry", vec![&registry::Registries])
    }
}

static NAMES: [NameRule; 1] =
    [NameRule { of: "*", fits: naming::fits, refusal: |_, name| naming::invalid(name) }];
