//! Checking access tokens, as Resource Manager does with every request.

use jiff::Timestamp;

use super::claims::{AccessClaims, TokenHash};
use super::directory::Entra;
use super::jwt::Jwt;

/// Verifies bearer tokens and identifies their principals.
pub trait TokenVerifier: Send + Sync {
    /// Checks signature, validity at `now`, tenant and audience of a token, given without the word
    /// `Bearer`.
    ///
    /// # Errors
    ///
    /// The reason for refusing it.
    fn verify(&self, bearer: &str, now: Timestamp) -> Result<Principal, AuthFailure>;

    /// The same for another service than Resource Manager, which accepts other audiences.
    ///
    /// # Errors
    ///
    /// The reason for refusing it.
    fn verify_for(
        &self,
        bearer: &str,
        now: Timestamp,
        accepts: &dyn Fn(&str) -> bool,
    ) -> Result<Principal, AuthFailure>;

    /// Whether an application is registered whose service principal has this object id. By default every principal
    /// counts as registered.
    fn knows(&self, _object_id: &str) -> bool {
        true
    }
}

/// The principal of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The application (client) id.
    pub client_id: String,
    /// The object id of the service principal, which role assignments name.
    pub object_id: String,
    /// The tenant that issued the token.
    pub tenant_id: String,
    /// The resource that the token is for.
    pub audience: String,
    /// From when on the token is valid: when it was issued.
    pub not_before: Timestamp,
    /// When the token ends.
    pub expires_at: Timestamp,
    /// Whether the client that holds it can answer a challenge of continuous access evaluation.
    pub can_answer_challenges: bool,
}

/// Why a request is not authenticated. The texts are shown to the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthFailure {
    /// No `Authorization` header, or none with a bearer token.
    #[error("Authentication failed. The 'Authorization' header is missing.")]
    Missing,
    /// Not a token, or not signed by this directory.
    #[error("The access token is invalid.")]
    Invalid,
    /// The token ended.
    #[error("The access token expiry UTC time '{expiry}' is earlier than current UTC time '{now}'.")]
    Expired {
        /// When it ended.
        expiry: Timestamp,
        /// The time of the request.
        now: Timestamp,
    },
    /// The token is not valid yet.
    #[error("The access token is not valid before UTC time '{not_before}'; current UTC time is '{now}'.")]
    NotYetValid {
        /// When it begins.
        not_before: Timestamp,
        /// The time of the request.
        now: Timestamp,
    },
    /// The token is for another resource.
    #[error("The access token has been obtained for wrong audience or resource '{audience}'.")]
    WrongAudience {
        /// Its audience.
        audience: String,
    },
    /// The token is of another tenant than the subscription.
    #[error(
        "The access token is from the wrong issuer 'https://sts.windows.net/{tenant}/'. It must match the tenant \
         'https://sts.windows.net/{expected}/' associated with this subscription."
    )]
    WrongTenant {
        /// The tenant of the token.
        tenant: String,
        /// The tenant of the subscription.
        expected: String,
    },
}

impl AuthFailure {
    /// Resource Manager's error code; the status is 401 for all.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing => "AuthenticationFailed",
            Self::Expired { .. } => "ExpiredAuthenticationToken",
            Self::WrongTenant { .. } => "InvalidAuthenticationTokenTenant",
            Self::WrongAudience { .. } => "InvalidAuthenticationTokenAudience",
            Self::Invalid | Self::NotYetValid { .. } => "InvalidAuthenticationToken",
        }
    }

    /// The value of `WWW-Authenticate`; `authority` is such as `https://login.microsoftonline.com/{tenant}`.
    pub fn challenge(&self, authority: &str) -> String {
        let why = match self {
            Self::Missing => {
                "The authentication failed because of missing 'Authorization' header.".to_owned()
            }
            other => other.to_string(),
        };
        format!(
            "Bearer authorization_uri=\"{authority}\", error=\"invalid_token\", error_description=\"{why}\""
        )
    }
}

/// The number of tokens above which the memory starts anew: no simulated cloud has so many live ones.
const MAX_SEEN_TOKENS: usize = 4096;
/// How far the clocks of issuer and verifier may be apart, in seconds.
const MAX_CLOCK_SKEW: i64 = 300;

impl TokenVerifier for Entra {
    fn verify(&self, bearer: &str, now: Timestamp) -> Result<Principal, AuthFailure> {
        self.verify_for(bearer, now, &|audience| self.is_management_audience(audience))
    }

    fn knows(&self, object_id: &str) -> bool {
        let registered = self.directory.applications.read();
        registered.values().any(|application| application.object_id().eq_ignore_ascii_case(object_id))
    }

    fn verify_for(
        &self,
        bearer: &str,
        now: Timestamp,
        accepts: &dyn Fn(&str) -> bool,
    ) -> Result<Principal, AuthFailure> {
        let claims = self.signed_claims(bearer)?;
        let at = |second| Timestamp::from_second(second).map_err(|_| AuthFailure::Invalid);
        let (expiry, not_before) = (at(claims.exp)?, at(claims.nbf)?);
        if expiry <= now {
            return Err(AuthFailure::Expired { expiry, now });
        }
        if claims.nbf > now.as_second().saturating_add(MAX_CLOCK_SKEW) {
            return Err(AuthFailure::NotYetValid { not_before, now });
        }
        if self.tenant(&claims.tid).is_none() {
            let expected = self.home_tenant().to_owned();
            return Err(AuthFailure::WrongTenant { tenant: claims.tid, expected });
        }
        if !accepts(&claims.aud) {
            return Err(AuthFailure::WrongAudience { audience: claims.aud });
        }
        Ok(Principal {
            client_id: claims.appid,
            object_id: claims.oid,
            tenant_id: claims.tid,
            audience: claims.aud,
            not_before,
            expires_at: expiry,
            can_answer_challenges: claims.xms_cc.iter().any(|word| word.eq_ignore_ascii_case("cp1")),
        })
    }
}

impl Entra {
    fn signed_claims(&self, bearer: &str) -> Result<AccessClaims, AuthFailure> {
        let mut hash: TokenHash = [0; 32];
        let digest = ring::digest::digest(&ring::digest::SHA256, bearer.as_bytes());
        for (byte, hashed) in hash.iter_mut().zip(digest.as_ref()) {
            *byte = *hashed;
        }
        let seen = &self.directory.seen.0;
        if let Some(claims) = seen.lock().get(&hash) {
            return Ok(claims.clone());
        }
        let token = Jwt::parse(bearer).ok_or(AuthFailure::Invalid)?;
        let key = &self.directory.key;
        if token.header.kid.as_deref() != Some(key.id()) || !token.is_signed_by(key.public()) {
            return Err(AuthFailure::Invalid);
        }
        let claims: AccessClaims = serde_json::from_value(token.claims).map_err(|_| AuthFailure::Invalid)?;
        let mut seen = seen.lock();
        if seen.len() >= MAX_SEEN_TOKENS {
            seen.clear();
        }
        seen.insert(hash, claims.clone());
        Ok(claims)
    }
}
