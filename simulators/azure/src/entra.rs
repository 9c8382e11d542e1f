//! Entra ID: who may ask Resource Manager, and the tokens that prove it.
//!
//! Serves instance discovery, OpenID configuration, signing keys and the token endpoint
//! for client secrets, client certificates and federated tokens.
//! Access tokens are signed, so whatever checks them ([`TokenVerifier`]) need not be in this process.

mod application;
mod assertion;
mod claims;
mod directory;
mod discovery;
mod jwt;
mod refusal;
mod requested_claims;
mod routes;
mod token_endpoint;
mod verifier;

pub use application::{Application, ClientSecret, FederatedCredential, RegisteredCertificate};
pub use directory::{AccessToken, ApplicationSource, Clock, Entra, EntraOptions, IssuedToken};
pub use jwt::{KeyError, PublicKey};
pub use verifier::{AuthFailure, Principal, TokenVerifier};

pub(crate) use directory::REGISTRY_AUDIENCE;
pub(crate) use jwt::{Jwt, SigningKey};
