//! Container registries: the sign-in of Azure's, and enough of the registry itself to push an image and to prove a pull secret by
//! using it.
//!
//! An unauthenticated client is sent to the registry's own token service, which exchanges Entra's tokens for refresh
//! tokens (`/oauth2/exchange`) and those, or passwords, for access tokens (`/oauth2/token`). The rights of an access
//! token follow from the roles that the registry's owner has assigned.
//!
//! * <https://azure.github.io/acr/AAD-OAuth.html>
//! * <https://distribution.github.io/distribution/spec/auth/token/>
//! * <https://github.com/opencontainers/distribution-spec>, version 1.1.1

mod answers;
mod image_store;
mod images;
mod pushes;
mod registries;
mod routes;
mod token_service;

pub use registries::{Registries, Registry, RegistryRequest};
