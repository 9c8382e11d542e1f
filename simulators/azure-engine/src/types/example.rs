//! Examples of resource types: valid requests, which tests of all types walk.
//!
//! A type has its example beside it as JSON: an object of requests, `PUT {id}` or `POST {id}/{action}`, with their bodies. An id
//! without a leading slash is below the group's providers: `PUT Microsoft.Network/natGateways/nat`. Ids in bodies begin with
//! `{group}` or `{subscription}`; `{tenant}` and `{principal}` stand for a tenant and the object id of a principal.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use serde_json::{Map, Value};

use super::protocol::Protocol;

/// The values of the placeholders in examples.
#[derive(Debug, Clone)]
pub struct ExampleScope {
    /// The group that holds the resources.
    pub group: ResourceId,
    /// The tenant of its subscription.
    pub tenant: String,
    /// The object id of a principal of the tenant.
    pub principal: String,
}

/// A valid request.
#[derive(Debug, Clone, PartialEq)]
pub struct ExampleRequest {
    /// `PUT` or `POST`.
    pub method: String,
    /// The resource, or its action.
    pub path: String,
    /// The newest version of its type.
    pub api_version: &'static str,
    /// The type, in Azure's spelling; of a document within another one, the other's.
    pub resource_type: &'static str,
    /// `Null` for an action without a body.
    pub body: Value,
}

impl ExampleRequest {
    /// Whether the example needs the resource of another one: as its parent, or because its document names it.
    fn needs(&self, other: &Self) -> bool {
        let (path, other) = (self.path.to_ascii_lowercase(), other.path.to_ascii_lowercase());
        is_below(&path, &other) || names(&self.body, &path, &other)
    }
}

/// Whether a path is below another one.
fn is_below(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a document of the resource `own` names `other`, or a part of it. Ids are in lower case.
fn names(document: &Value, own: &str, other: &str) -> bool {
    match document {
        Value::String(text) => {
            let text = text.to_ascii_lowercase();
            (text == other || is_below(&text, other)) && other != own && !is_below(other, own)
        }
        Value::Array(items) => items.iter().any(|item| names(item, own, other)),
        Value::Object(members) => members.values().any(|member| names(member, own, other)),
        _ => false,
    }
}

/// The examples of types, each once, in an order in which all succeed: first PUTs, each after those that it needs, then POSTs.
///
/// # Errors
///
/// An example that is no object of requests.
pub fn example_requests(
    protocols: &[&'static Protocol],
    scope: &ExampleScope,
) -> Result<Vec<ExampleRequest>, serde_json::Error> {
    let mut requests: BTreeMap<(String, String), ExampleRequest> = BTreeMap::new();
    let mut order = Vec::new();
    for protocol in protocols.iter().filter(|protocol| !protocol.example.is_empty()) {
        for (line, body) in serde_json::from_str::<Map<String, Value>>(&filled(protocol.example, scope))? {
            let (method, id) = line.split_once(' ').unwrap_or((&line, ""));
            let path = match id.starts_with('/') {
                true => id.to_owned(),
                false => format!("{}/providers/{id}", scope.group),
            };
            let owner = owner(protocols, &path).unwrap_or(protocol);
            let request = ExampleRequest {
                method: method.to_owned(),
                path: path.clone(),
                api_version: owner.api_versions.first().copied().unwrap_or_default(),
                resource_type: owner.resource_type,
                body,
            };
            let key = (method.to_owned(), path);
            if requests.insert(key.clone(), request).is_none() {
                order.push(key);
            }
        }
    }
    let mut waiting: Vec<ExampleRequest> =
        order.into_iter().filter_map(|key| requests.remove(&key)).collect();
    let (mut puts, posts): (Vec<_>, Vec<_>) = waiting.drain(..).partition(|request| request.method == "PUT");
    let mut ordered = Vec::with_capacity(puts.len() + posts.len());
    while !puts.is_empty() {
        // Examples that need each other are taken as they come.
        let ready = puts.iter().position(|one| !puts.iter().any(|other| one.needs(other)));
        ordered.push(puts.remove(ready.unwrap_or_default()));
    }
    ordered.extend(posts);
    Ok(ordered)
}

fn filled(example: &str, scope: &ExampleScope) -> String {
    let subscription = ResourceId::subscription(scope.group.subscription_id());
    [
        ("{group}", scope.group.as_str()),
        ("{subscription}", subscription.as_str()),
        ("{tenant}", &scope.tenant),
        ("{principal}", &scope.principal),
    ]
    .into_iter()
    .fold(example.to_owned(), |text, (placeholder, value)| text.replace(placeholder, value))
}

/// The type of a path: the longest one that its segments begin with.
fn owner(protocols: &[&'static Protocol], path: &str) -> Option<&'static Protocol> {
    let (_, below) = path.rsplit_once("/providers/")?;
    let segments: Vec<&str> = below.split('/').collect();
    let (namespace, rest) = segments.split_first()?;
    let kinds: Vec<&str> = rest.iter().step_by(2).copied().collect();
    (1..=kinds.len()).rev().find_map(|count| {
        let full = format!("{namespace}/{}", kinds.get(..count)?.join("/"));
        protocols.iter().find(|protocol| protocol.resource_type.eq_ignore_ascii_case(&full)).copied()
    })
}

#[cfg(test)]
mod tests {
    use azure_types::ResourceId;

    use super::{ExampleScope, example_requests};
    use crate::types::protocol::Protocol;

    const VERSIONS: [&str; 1] = ["2025-01-01"];
    const SHOP: Protocol = Protocol {
        example: r#"{ "POST Test.Shop/shops/one/open": null,
            "PUT Test.Shop/shops/one/goods/a": { "properties": {} },
            "PUT Test.Shop/shops/one": { "street": "{group}/providers/Test.Town/streets/main/houses/1" } }"#,
        ..Protocol::new("Test.Shop/shops", "Shop", &VERSIONS)
    };
    const STREET: Protocol = Protocol {
        example: r#"{ "PUT Test.Town/streets/main": { "owner": "{tenant}" } }"#,
        ..Protocol::new("Test.Town/streets", "Street", &VERSIONS)
    };

    #[test]
    fn a_request_comes_after_those_that_it_needs() {
        let scope =
            ExampleScope { group: ResourceId::group("s", "g"), tenant: "t".into(), principal: "p".into() };
        let requests = example_requests(&[&SHOP, &STREET], &scope).unwrap();
        let shown: Vec<String> = requests
            .iter()
            .map(|request| {
                format!("{} {}", request.method, request.path.rsplit("/providers/").next().unwrap())
            })
            .collect();
        let expected = [
            "PUT Test.Town/streets/main",
            "PUT Test.Shop/shops/one",
            "PUT Test.Shop/shops/one/goods/a",
            "POST Test.Shop/shops/one/open",
        ];
        assert_eq!(shown, expected);
        assert_eq!(requests[0].body["owner"], "t");
        assert_eq!(requests[2].resource_type, "Test.Shop/shops");
    }
}
