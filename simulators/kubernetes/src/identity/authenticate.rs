//! Who sent a request.

use certificate_authority::ClientCertificate;
use http::Request;
use http::header::AUTHORIZATION;

use super::token;
use super::user::User;
use crate::server::handle::Kubernetes;

impl Kubernetes {
    /// The sender of a request; `None` if the request is not authenticated.
    pub(crate) fn caller<B>(&self, request: &Request<B>) -> Option<User> {
        if let Some(client) = request.extensions().get::<ClientCertificate>() {
            return Some(User::of_certificate(client));
        }
        let open = self.shared.options.tokens.is_empty();
        let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = header.and_then(|value| value.split_once(' '));
        let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let user = bearer.and_then(|(_, token)| self.bearer(token.trim(), &[]).ok());
        user.map(|(user, _)| user).or_else(|| open.then(User::administrator))
    }

    /// Authenticates a token. Returns its user and its audiences among the requested ones; if none are requested, it
    /// must be valid for this server.
    pub(super) fn bearer(&self, token: &str, audiences: &[String]) -> Result<(User, Vec<String>), String> {
        if self.shared.options.tokens.iter().any(|known| known.reveal() == token) {
            return Ok((User::administrator(), audiences.to_vec()));
        }
        token::verify(self, token, audiences)
    }
}
