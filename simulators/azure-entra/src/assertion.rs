//! Client assertions: signed by an application's certificate, or a token of an issuer it trusts.

use jiff::Timestamp;
use serde_json::Value;

use super::application::Application;
use super::directory::Entra;
use super::jwt::Jwt;
use super::refusal::Refusal;

/// How far the clocks of the client and of Entra may be apart, in seconds.
const MAX_CLOCK_SKEW: i64 = 300;

/// Checks an assertion that `application` is offered by, at the token endpoint of `tenant`
/// (as the URL spells it).
pub(super) fn check(
    entra: &Entra,
    assertion: &str,
    application: &Application,
    tenants: &[&str],
) -> Result<(), Refusal> {
    let now = entra.now();
    let token = Jwt::parse(assertion).ok_or(Refusal::MalformedAssertion)?;
    let claim = |name: &str| token.claims.get(name).and_then(Value::as_str).unwrap_or_default();
    in_time(&token.claims, now)?;
    // An application speaks for itself by naming itself; any other issuer must be a trusted one.
    if claim("iss").eq_ignore_ascii_case(application.client_id()) {
        by_certificate(&token, application, tenants)
    } else {
        by_trust(entra, &token, application)
    }
}

fn in_time(claims: &Value, now: Timestamp) -> Result<(), Refusal> {
    let second = |name: &str| claims.get(name).and_then(Value::as_f64).map(|at| at as i64);
    let expiry = second("exp").ok_or(Refusal::MalformedAssertion)?;
    let at = now.as_second();
    let early = second("nbf").is_some_and(|begin| begin > at.saturating_add(MAX_CLOCK_SKEW));
    if early || expiry.saturating_add(MAX_CLOCK_SKEW) <= at {
        let expiry = Timestamp::from_second(expiry).map_err(|_| Refusal::MalformedAssertion)?;
        return Err(Refusal::AssertionNotInTime { now, expiry });
    }
    Ok(())
}

fn by_certificate(token: &Jwt<'_>, application: &Application, tenants: &[&str]) -> Result<(), Refusal> {
    let client_id = application.client_id();
    let audience = token.claims.get("aud").and_then(Value::as_str).unwrap_or_default();
    // Scheme and host are the caller's business (a proxy may stand between); the path must be the
    // tenant's token endpoint or the tenant's issuer.
    let path =
        audience.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
    let (tenant, rest) = path.split_once('/').unwrap_or((path, ""));
    let is_endpoint = matches!(rest, "oauth2/v2.0/token" | "oauth2/token" | "v2.0" | "");
    if !is_endpoint || !tenants.iter().any(|known| known.eq_ignore_ascii_case(tenant)) {
        return Err(Refusal::WrongAssertionAudience { audience: audience.to_owned() });
    }
    let thumbprint = token.header.x5t_s256.as_deref().or(token.header.x5t.as_deref());
    let thumbprint = thumbprint.or(token.header.kid.as_deref()).unwrap_or_default();
    let Some(certificate) = application.certificate(thumbprint) else {
        return Err(Refusal::UnknownAssertionKey {
            thumbprint: thumbprint.to_owned(),
            client_id: client_id.to_owned(),
        });
    };
    if !token.is_signed_by(certificate.key()) {
        return Err(Refusal::WrongAssertionSignature { client_id: client_id.to_owned() });
    }
    Ok(())
}

fn by_trust(entra: &Entra, token: &Jwt<'_>, application: &Application) -> Result<(), Refusal> {
    let claim = |name: &str| token.claims.get(name).and_then(Value::as_str).unwrap_or_default();
    let (issuer, subject) = (claim("iss"), claim("sub"));
    let mut of_issuer = application.federated().iter().filter(|known| known.issuer == issuer).peekable();
    if of_issuer.peek().is_none() {
        return Err(Refusal::UnknownIssuer { issuer: issuer.to_owned() });
    }
    let Some(credential) = of_issuer.find(|known| known.subject == subject) else {
        return Err(Refusal::UnknownSubject { subject: subject.to_owned() });
    };
    let audiences: Vec<&str> = match token.claims.get("aud") {
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(one)) => vec![one],
        _ => Vec::new(),
    };
    if !audiences.contains(&credential.audience.as_str()) {
        return Err(Refusal::WrongFederatedAudience { audience: audiences.join(", ") });
    }
    let issuers = entra.directory.issuers.read();
    let known = issuers.get(issuer).map_or(&[][..], Vec::as_slice);
    let mut keys = credential.keys.iter().chain(known).peekable();
    if keys.peek().is_some() && !keys.any(|key| token.is_signed_by(key)) {
        return Err(Refusal::WrongAssertionSignature { client_id: application.client_id().to_owned() });
    }
    Ok(())
}
