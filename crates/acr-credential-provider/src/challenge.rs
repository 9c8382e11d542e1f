//! The registry's challenge: the URL of its token service, and the service of the tokens.
//!
//! <https://distribution.github.io/distribution/spec/auth/token/>

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

use crate::excerpt::excerpt;

/// The URL and the service for exchanging a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// The URL of the registry's token service.
    pub realm: String,
    /// The service of the tokens: the registry.
    pub service: String,
}

/// An answer that is not a challenge of one of Azure's registries.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChallengeError {
    /// Another status than 401, with the registry's message, if any.
    #[error("registry did not issue a valid AAD challenge, status: {status}{}", after_colon(.message))]
    Status {
        /// The status.
        status: u16,
        /// Such as that a firewall blocks this machine, or that there were too many requests.
        message: String,
    },
    /// No challenge.
    #[error("challenge response does not contain header 'Www-Authenticate'")]
    NoHeader,
    /// Several challenges.
    #[error("registry did not issue a valid AAD challenge, authenticate header [{}]", .0.join(", "))]
    SeveralHeaders(Vec<String>),
    /// A scheme without tokens.
    #[error("Www-Authenticate: expected realm: Bearer, actual: {0}")]
    Scheme(String),
    /// Parameters that cannot be parsed.
    #[error("malformed header value: {0}")]
    Malformed(String),
    /// A missing parameter.
    #[error("Www-Authenticate: missing header {0:?}")]
    Missing(&'static str),
}

impl Challenge {
    /// Parses the answer to a request without a token.
    ///
    /// # Errors
    /// It is not a challenge for a bearer token with realm and service.
    pub fn read(status: u16, headers: &HeaderMap, body: &[u8]) -> Result<Self, ChallengeError> {
        if status != 401 {
            return Err(ChallengeError::Status { status, message: message_of(body) });
        }
        let all: Vec<String> = headers
            .get_all(WWW_AUTHENTICATE)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect();
        let header = match &all[..] {
            [] => return Err(ChallengeError::NoHeader),
            [header] => header.trim(),
            _ => return Err(ChallengeError::SeveralHeaders(all)),
        };
        let (scheme, parameters) = header.split_once(char::is_whitespace).unwrap_or((header, ""));
        if !scheme.eq_ignore_ascii_case("Bearer") {
            return Err(ChallengeError::Scheme(scheme.to_ascii_lowercase()));
        }
        let parameters = parse_parameters(parameters)?;
        let parameter = |name: &'static str| {
            let last = parameters.iter().rev().find(|(key, _)| key == name);
            let value = last.map(|(_, value)| value.clone()).filter(|value| !value.is_empty());
            value.ok_or(ChallengeError::Missing(name))
        };
        Ok(Self { service: parameter("service")?, realm: parameter("realm")? })
    }
}

/// The message in a registry's answer: the messages of its errors, otherwise the beginning of the text.
///
/// <https://distribution.github.io/distribution/spec/api/#errors>
fn message_of(body: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Errors {
        errors: Vec<Message>,
    }
    #[derive(serde::Deserialize)]
    struct Message {
        message: String,
    }
    if body.trim_ascii().is_empty() {
        return String::new();
    }
    let messages = serde_json::from_slice::<Errors>(body).map(|all| all.errors).unwrap_or_default();
    let messages: Vec<String> = messages.into_iter().map(|one| one.message).collect();
    let joined = messages.join("; ");
    excerpt(if joined.is_empty() { body } else { joined.as_bytes() })
}

fn after_colon(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// Parses `key=value` pairs separated by commas. Values in quotes may contain commas, and have no escapes.
fn parse_parameters(text: &str) -> Result<Vec<(String, String)>, ChallengeError> {
    let malformed = || ChallengeError::Malformed(text.to_owned());
    let mut parameters = Vec::new();
    let mut rest = text;
    loop {
        let (key, after) = rest.split_once('=').ok_or_else(malformed)?;
        let after = after.trim_start();
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or_else(malformed)?,
            None => {
                let end = after.find(',').unwrap_or(after.len());
                let value = after[..end].trim_end();
                if value.is_empty() {
                    return Err(malformed());
                }
                (value, &after[end..])
            }
        };
        parameters.push((key.trim().to_owned(), value.to_owned()));
        let after = after.trim_start();
        if after.is_empty() {
            return Ok(parameters);
        }
        rest = after.strip_prefix(',').ok_or_else(malformed)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, headers: &[&str]) -> Result<Challenge, String> {
        let mut map = HeaderMap::new();
        for header in headers {
            map.append(WWW_AUTHENTICATE, header.parse().unwrap());
        }
        Challenge::read(status, &map, b"").map_err(|error| error.to_string())
    }

    #[test]
    fn a_challenge_is_read_however_it_is_written() {
        let expected =
            Challenge { realm: "https://a.example/oauth2/token".into(), service: "a.example".into() };
        for header in [
            r#"Bearer realm="https://a.example/oauth2/token",service="a.example""#,
            r#"bearer  service = "a.example" , realm= "https://a.example/oauth2/token" "#,
            "Bearer realm=https://a.example/oauth2/token, service=a.example",
            r#"Bearer error="a,b", realm="https://a.example/oauth2/token",service=a.example,scope="x""#,
        ] {
            assert_eq!(read(401, &[header]), Ok(expected.clone()), "{header}");
        }
    }

    /// NODE-131
    #[test]
    fn what_is_no_challenge_is_told_in_its_own_words() {
        for (status, headers, words) in [
            (200, &[][..], "registry did not issue a valid AAD challenge, status: 200"),
            (401, &[], "does not contain header"),
            (401, &["a", "b"], "authenticate header [a, b]"),
            (401, &["auth"], "expected realm: Bearer, actual: auth"),
            (401, &[r#"auth realm="r",service="s""#], "expected realm: Bearer, actual: auth"),
            (401, &[r#"Bearer realm="r""#], "missing header \"service\""),
            (401, &[r#"Bearer service="s""#], "missing header \"realm\""),
            (401, &[r#"Bearer service="s",realm="""#], "missing header \"realm\""),
            (401, &["Bearer"], "malformed header value: "),
        ] {
            let error = read(status, headers).unwrap_err();
            assert!(error.contains(words), "{headers:?}: {error}");
        }
    }

    /// F6: a registry's message about a refusal reaches its user.
    #[test]
    fn the_message_of_a_registry_are_not_lost() {
        let denied =
            r#"{"errors":[{"code":"DENIED","message":"client with IP '192.0.2.1' is not allowed access."}]}"#;
        for (status, body, end) in [
            (403, denied, "status: 403: client with IP '192.0.2.1' is not allowed access."),
            (429, r#"{"errors":[{"message":"a"},{"message":"b"}]}"#, "status: 429: a; b"),
            (502, "<html>\n bad  gateway", "status: 502: <html> bad gateway"),
            (503, "", "status: 503"),
        ] {
            let error = Challenge::read(status, &HeaderMap::new(), body.as_bytes()).unwrap_err().to_string();
            assert!(error.ends_with(end), "{error}");
        }
    }

    /// NODE-133
    #[test]
    fn parameters_are_parsed() {
        let pairs = |text: &str| {
            let pairs = parse_parameters(text).map_err(|error| error.to_string())?;
            Ok::<_, String>(pairs.iter().map(|(key, value)| format!("{key}:{value}")).collect::<Vec<_>>())
        };
        for text in [r#"a="b",c="d""#, r#" a = "b" , c = "d" "#, "a=b,c=d", r#"a=b , c="d""#] {
            assert_eq!(pairs(text), Ok(vec!["a:b".to_owned(), "c:d".to_owned()]), "{text}");
        }
        assert_eq!(pairs(r#"a="", c="d""#), Ok(vec!["a:".to_owned(), "c:d".to_owned()]));
        assert_eq!(pairs(""), Err("malformed header value: ".to_owned()));
        for text in ["a", "a=", "a=,b=c", r#"a="b"#, r#"a="b"c"#, r#"a="b","#] {
            assert!(pairs(text).is_err(), "{text}");
        }
    }
}
