//! The sender of a request: the administrator, who has one of the server's tokens; a service account with a token that
//! the server signed; or the user of a client certificate. There is no authorization: roles are stored and not
//! evaluated.

mod authenticate;
mod request;
mod review;
mod signing_key;
mod token;
mod user;

pub(crate) use review::answer;
pub(crate) use signing_key::SigningKey;
pub(crate) use token::openid_configuration;
pub(crate) use user::User;
