//! Entra ID: authentication of callers of Resource Manager, and their tokens.
//!
//! Serves instance discovery, OpenID configuration, signing keys and the token endpoint for client secrets, client
//! certificates and federated tokens, and Microsoft Graph's documents of service principals. Access tokens are signed,
//! so that their verifier ([`TokenVerifier`]) need not be in this process.

mod application;
mod assertion;
mod audience;
mod claims;
mod directory;
mod discovery;
mod graph;
mod jwt;
mod refusal;
mod requested_claims;
mod routes;
mod scheme;
mod service_principal;
mod token_endpoint;
mod verifier;

pub use application::{Application, ClientSecret, FederatedCredential, RegisteredCertificate};
pub use audience::REGISTRY_AUDIENCE;
pub use directory::{AccessToken, ApplicationSource, Clock, Entra, EntraOptions, IssuedToken};
pub use jwt::{Jwt, KeyError, PublicKey, SigningKey};
pub use scheme::Scheme;
pub use service_principal::{PrincipalKind, ServicePrincipal};
pub use verifier::{AuthFailure, Principal, TokenVerifier};
