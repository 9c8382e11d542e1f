//! The protocol of the kubelet and its credential providers: `credentialprovider.kubelet.k8s.io/v1`.
//!
//! <https://kubernetes.io/docs/reference/config-api/kubelet-credentialprovider.v1/>

use std::collections::BTreeMap;

use cloud_config::Secret;
use serde::Serialize;
use serde_json::Value;

use crate::image;

const API_VERSION: &str = "credentialprovider.kubelet.k8s.io/v1";
const REQUEST: &str = "CredentialProviderRequest";
const RESPONSE: &str = "CredentialProviderResponse";

/// A request of the kubelet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The image to pull.
    pub image: String,
    /// The token of the pod's service account; empty if the kubelet is not configured to send one.
    pub service_account_token: Secret,
    /// The annotations of the service account that the kubelet is configured to send.
    pub annotations: BTreeMap<String, String>,
}

/// An invalid request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It is not a JSON object.
    #[error("the request on standard input is not a JSON object: {0}")]
    Syntax(String),
    /// It has another version of the protocol.
    #[error(
        "group version {0} is not supported: set apiVersion of this provider in the kubelet's \
         CredentialProviderConfig to {API_VERSION}"
    )]
    Version(String),
    /// It has another kind.
    #[error("kind was {0:?}, expected {REQUEST}")]
    Kind(String),
    /// A member has the wrong type.
    #[error("{member} in plugin request is not {expected}")]
    Member {
        /// Its name.
        member: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// It has no image.
    #[error("image in plugin request was empty")]
    NoImage,
}

impl Request {
    /// Parses a request.
    ///
    /// # Errors
    /// It is invalid, has another version, or has no image.
    pub fn parse(bytes: &[u8]) -> Result<Self, RequestError> {
        let value: Value =
            serde_json::from_slice(bytes).map_err(|error| RequestError::Syntax(error.to_string()))?;
        let Value::Object(mut request) = value else {
            return Err(RequestError::Syntax("it is another value".to_owned()));
        };
        let mut text = |member: &'static str| match request.remove(member) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(RequestError::Member { member, expected: "a text" }),
        };
        let version = text("apiVersion")?;
        if version != API_VERSION {
            return Err(RequestError::Version(version));
        }
        let kind = text("kind")?;
        if kind != REQUEST {
            return Err(RequestError::Kind(kind));
        }
        let image = text("image")?;
        if image.is_empty() {
            return Err(RequestError::NoImage);
        }
        let service_account_token = Secret::new(text("serviceAccountToken")?);
        let wrong = RequestError::Member { member: "serviceAccountAnnotations", expected: "a map of texts" };
        let annotations = match request.remove("serviceAccountAnnotations") {
            None | Some(Value::Null) => BTreeMap::new(),
            Some(value) => serde_json::from_value(value).map_err(|_| wrong)?,
        };
        Ok(Self { image, service_account_token, annotations })
    }
}

/// A user and a password; the default is anonymous access, for registries that permit it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// Empty for anonymous access.
    pub username: String,
    /// Empty for anonymous access.
    pub password: Secret,
}

/// The response to the kubelet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// How long the kubelet may cache it, in whole hours. 0 means that it asks again.
    pub cache_hours: u32,
    /// Whether it may be cached for this image only, and not for all images of the registry.
    pub per_image: bool,
    /// Credentials by registry, or by pattern of registries.
    pub auth: BTreeMap<String, Credentials>,
}

impl Response {
    /// Adds credentials under these keys, and under the image's registry if none of them matches the image: the kubelet
    /// ignores keys that do not match its request, and pulls anonymously.
    pub fn add(&mut self, keys: impl IntoIterator<Item = String>, image: &str, credentials: &Credentials) {
        let mut keys: Vec<String> = keys.into_iter().collect();
        if !keys.iter().any(|key| image::fits(key, image)) {
            keys.push(image::registry(image).to_owned());
        }
        self.auth.extend(keys.into_iter().map(|key| (key, credentials.clone())));
    }

    /// The response as a line of JSON. It contains the passwords: it is only for standard output.
    pub fn to_json(&self) -> String {
        let response = JsonResponse {
            kind: RESPONSE,
            api_version: API_VERSION,
            cache_key_type: if self.per_image { "Image" } else { "Registry" },
            cache_duration: match self.cache_hours {
                0 => "0s".to_owned(),
                hours => format!("{hours}h0m0s"),
            },
            auth: self
                .auth
                .iter()
                .map(|(registry, one)| (registry.as_str(), JsonCredentials::from(one)))
                .collect(),
        };
        // Serialization of texts cannot fail.
        serde_json::to_string(&response).unwrap_or_default() + "\n"
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonResponse<'a> {
    kind: &'static str,
    api_version: &'static str,
    cache_key_type: &'static str,
    cache_duration: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    auth: BTreeMap<&'a str, JsonCredentials<'a>>,
}

#[derive(Serialize)]
struct JsonCredentials<'a> {
    username: &'a str,
    password: &'a str,
}

impl<'a> From<&'a Credentials> for JsonCredentials<'a> {
    fn from(credentials: &'a Credentials) -> Self {
        Self { username: &credentials.username, password: credentials.password.reveal() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Result<Request, String> {
        Request::parse(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_request_is_read_and_its_token_cannot_be_printed() {
        let text = r#"{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1",
            "image":"foo.azurecr.io/a","serviceAccountToken":"hunter2",
            "serviceAccountAnnotations":{"kubernetes.azure.com/acr-client-id":"c"},"later":1}"#;
        let read = request(text).unwrap();
        assert_eq!(read.image, "foo.azurecr.io/a");
        assert_eq!(read.service_account_token.reveal(), "hunter2");
        assert_eq!(read.annotations["kubernetes.azure.com/acr-client-id"], "c");
        assert!(!format!("{read:?}").contains("hunter2"));
    }

    /// NODE-134
    #[test]
    fn other_versions_kinds_and_empty_images_are_refused() {
        let with = |version: &str, kind: &str, image: &str| {
            request(&format!(r#"{{"apiVersion":"{version}","kind":"{kind}","image":{image}}}"#)).unwrap_err()
        };
        let v1 = "credentialprovider.kubelet.k8s.io/v1";
        for version in ["credentialprovider.kubelet.k8s.io/v1beta1", "foo.k8s.io/v1", ""] {
            let error = with(version, REQUEST, r#""a""#);
            assert!(error.starts_with(&format!("group version {version} is not supported")), "{error}");
            assert!(error.contains(v1), "the remedy: {error}");
        }
        assert_eq!(
            with(v1, "CredentialProviderFoo", r#""a""#),
            r#"kind was "CredentialProviderFoo", expected CredentialProviderRequest"#
        );
        assert_eq!(with(v1, REQUEST, r#""""#), "image in plugin request was empty");
        assert_eq!(with(v1, REQUEST, "7"), "image in plugin request is not a text");
        for none in ["", "[]", "{", "null"] {
            assert!(request(none).unwrap_err().contains("is not a JSON object"), "{none}");
        }
    }

    #[test]
    fn responses_are_written_as_the_kubelet_reads_them() {
        let mut response = Response::default();
        assert_eq!(
            response.to_json(),
            "{\"kind\":\"CredentialProviderResponse\",\"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1\",\
             \"cacheKeyType\":\"Registry\",\"cacheDuration\":\"0s\"}\n"
        );
        response.cache_hours = 1;
        response.auth.insert("*.azurecr.*".into(), Credentials::default());
        let (username, password) = ("u".to_owned(), Secret::new("p\"w"));
        response.auth.insert("foo.azurecr.io".into(), Credentials { username, password });
        assert!(response.to_json().ends_with(
            "\"cacheDuration\":\"1h0m0s\",\"auth\":{\"*.azurecr.*\":{\"username\":\"\",\"password\":\"\"},\
             \"foo.azurecr.io\":{\"username\":\"u\",\"password\":\"p\\\"w\"}}}\n"
        ));
        assert!(!format!("{response:?}").contains("p\"w"));
    }
}
