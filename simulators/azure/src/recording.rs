//! Records exchanges in the form of recorded conversations with Azure: a JSON line for each exchange, which can be
//! replayed to another Azure, or checked against its contract.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::HeaderMap;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use azure_engine::types::member_table::secrets;

/// The replacement of a secret.
const HIDDEN: &str = "(hidden)";
/// Secrets of types that check their members themselves.
const FURTHER: [&str; 5] = ["secret", "password", "clientSecret", "accountSasToken", "serviceSasToken"];
/// Members with keys and passwords in the answers of actions that list or regenerate them.
const LISTED: [&str; 2] = ["value", "key"];
/// The headers of an answer that clients use.
const HEADERS: [&str; 5] = ["content-type", "etag", "location", "azure-asyncoperation", "retry-after"];

/// A file of exchanges.
pub(crate) struct Recording {
    file: Mutex<File>,
    secrets: BTreeSet<&'static str>,
}

impl Recording {
    /// Begins a file. One that is there is replaced.
    pub(crate) fn begin(path: &Path) -> io::Result<Self> {
        let mut found = BTreeSet::from(FURTHER);
        for provider in azure_providers::all() {
            for resource_type in &provider.resource_types {
                found.extend(secrets(resource_type.members()));
                found.extend(secrets(resource_type.envelope()));
            }
        }
        Ok(Self { file: Mutex::new(File::create(path)?), secrets: found })
    }

    /// A document without its secrets. Keys and passwords that an action lists are secrets, too.
    fn masked(&self, value: Value, lists: bool) -> Value {
        match value {
            Value::Object(members) => {
                let is_secret = |name: &str| self.secrets.contains(name) || lists && LISTED.contains(&name);
                let masked = members.into_iter().map(|(name, value)| {
                    let value = if is_secret(&name) && !(lists && value.is_array()) {
                        HIDDEN.into()
                    } else {
                        self.masked(value, lists)
                    };
                    (name, value)
                });
                Value::Object(masked.collect::<Map<_, _>>())
            }
            Value::Array(items) => {
                Value::Array(items.into_iter().map(|item| self.masked(item, lists)).collect())
            }
            other => other,
        }
    }

    fn write(&self, exchange: &Value) {
        // A full disk must not stop the simulation.
        if let Err(error) = writeln!(self.file.lock(), "{exchange}") {
            tracing::error!(%error, "an exchange was not recorded");
        }
    }
}

impl Recording {
    /// Lets a request be answered, and records both sides. Records nothing where a fault loses the answer.
    pub(crate) async fn exchange<F: Future<Output = Response>>(
        &self,
        request: Request,
        answer: impl FnOnce(Request) -> F,
    ) -> Option<Response> {
        let (head, body) = request.into_parts();
        // A body that is too large is refused, and its beginning is of no use.
        let Ok(body) = body.collect().await.map(http_body_util::Collected::to_bytes) else {
            return Some(answer(Request::from_parts(head, Body::empty())).await);
        };
        let text = |headers: &HeaderMap, name: &str| {
            headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        let mut exchange = json!({
            "method": head.method.as_str(), "url": head.uri.path_and_query().map(ToString::to_string),
        });
        if let Some(if_match) = text(&head.headers, "if-match") {
            exchange["if_match"] = if_match.into();
        }
        let action = head.uri.path().rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        let lists = head.method == "POST"
            && ["list", "regenerate", "generate"].iter().any(|verb| action.starts_with(verb));
        let response = answer(Request::from_parts(head, Body::from(body.clone()))).await;
        let (parts, answered) = response.into_parts();
        let answered = answered.collect().await.ok()?.to_bytes();
        let read = |bytes: &Bytes| serde_json::from_slice::<Value>(bytes).ok();
        if let Some(body) = read(&body) {
            exchange["body"] = self.masked(body, false);
        }
        exchange["status"] = parts.status.as_u16().into();
        let headers = HEADERS.into_iter();
        let headers = headers.filter_map(|name| Some((name.to_owned(), text(&parts.headers, name)?.into())));
        exchange["headers"] = headers.collect::<Map<String, Value>>().into();
        if let Some(answered) = read(&answered) {
            exchange["response"] = self.masked(answered, lists);
        }
        self.write(&exchange);
        Some(Response::from_parts(parts, Body::from(answered)))
    }
}
