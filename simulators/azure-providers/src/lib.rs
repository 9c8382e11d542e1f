//! The resource providers of the simulated Azure: a folder for each namespace, with tables and the special rules of
//! types. A further provider is a module that [`all`] names. They use documents and the engine, and no HTTP.

/// The shape of a type that is its protocol alone; the hooks that it does without keep their defaults.
macro_rules! shape {
    ($resource_type:ty, $protocol:expr $(, without $($hooks:ident),+)?) => {
        $($(impl azure_engine::provider::$hooks for $resource_type {})+)?
        impl azure_engine::provider::Shape for $resource_type {
            fn protocol(&self) -> &'static azure_engine::types::protocol::Protocol {
                &$protocol
            }
        }
    };
}

pub mod authorization;
pub mod compute;
pub mod container_registry;
pub mod container_service;
mod ddos_protection;
mod dns;
mod features;
pub mod identity;
mod ip_groups;
mod key_vault;
mod kubernetes_configuration;
mod name_availability;
mod network;
mod plain;
mod resource_health;
pub mod resources;
pub mod storage;

use azure_engine::provider::Provider;
use azure_engine::types::example::{ExampleRequest, ExampleScope, example_requests};
use azure_engine::types::protocol::Protocol;

/// All of them.
pub fn all() -> Vec<Provider> {
    vec![
        resources::provider(),
        network::provider(),
        compute::provider(),
        identity::provider(),
        authorization::provider(),
        resource_health::provider(),
        key_vault::provider(),
        dns::provider(),
        container_service::provider(),
        kubernetes_configuration::provider(),
        storage::provider(),
        ip_groups::provider(),
        ddos_protection::provider(),
        features::provider(),
        container_registry::provider(),
    ]
}

/// The examples of all types, in an order in which all succeed.
///
/// # Errors
///
/// An example that is no object of requests.
pub fn examples(scope: &ExampleScope) -> Result<Vec<ExampleRequest>, serde_json::Error> {
    let providers = all();
    let types = providers.iter().flat_map(|provider| &provider.resource_types);
    let protocols: Vec<&'static Protocol> = types.map(|resource_type| resource_type.protocol()).collect();
    example_requests(&protocols, scope)
}
