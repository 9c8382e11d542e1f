//! Kubernetes manifests: reads YAML or JSON, and applies objects as `kubectl apply --server-side` does.

use std::error::Error as _;
use std::path::Path;

use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::discovery::{Scope, pinned_kind};
use kube::{Api, Client};
use serde_json::Value;

/// The field manager of [`apply`].
const FIELD_MANAGER: &str = "cerulean";
/// The field manager of `kubectl apply --server-side`.
const KUBECTL: &str = "kubectl";

/// Why manifests could not be read or applied.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The text is neither YAML nor JSON.
    #[error("{source_name} is not valid {format}: {reason}")]
    Syntax {
        /// Where the text came from.
        source_name: String,
        /// `YAML` or `JSON`.
        format: &'static str,
        /// The parser's message.
        reason: String,
    },
    /// A document is not an object.
    #[error("{source_name}, document {number}: expected a Kubernetes object, found {found}")]
    NoObject {
        /// Where the text came from.
        source_name: String,
        /// Which document, from 1.
        number: usize,
        /// The type of value in its place.
        found: &'static str,
    },
    /// A document lacks a required member.
    #[error("{source_name}, document {number}: {field} is missing")]
    Incomplete {
        /// Where the text came from.
        source_name: String,
        /// Which document, from 1.
        number: usize,
        /// The missing member.
        field: String,
    },
    /// The API refuses an object, or does not serve its kind.
    #[error("cannot apply {object}: {reason}")]
    Apply {
        /// Kind and name.
        object: String,
        /// The API's message.
        reason: String,
    },
    /// The API, or a webhook that it calls, does not answer. Trying again may help.
    #[error("cannot apply {object}: {reason}")]
    Unanswered {
        /// Kind and name.
        object: String,
        /// The API's message, or why there was no answer.
        reason: String,
    },
}

impl ManifestError {
    /// The error of applying an object. After a refusal, applying it again does not help.
    fn of(object: String, error: &kube::Error) -> Self {
        let reason = describe_api_error(error);
        match error {
            kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 429 => {
                Self::Apply { object, reason }
            }
            _ => Self::Unanswered { object, reason },
        }
    }
}

/// The members that every object must have.
const REQUIRED: [(&str, &str); 3] =
    [("apiVersion", "/apiVersion"), ("kind", "/kind"), ("metadata.name", "/metadata/name")];

/// Reads all objects of a text: YAML documents or JSON values one after another, and the items of lists, as
/// `kubectl get -o yaml` prints them. Empty documents are skipped.
///
/// # Errors
/// The text is neither YAML nor JSON, or an object lacks `apiVersion`, `kind` or `metadata.name`.
pub fn read(source_name: &str, text: &str) -> Result<Vec<Value>, ManifestError> {
    let mut objects = Vec::new();
    let documents = documents(source_name, text)?.into_iter().filter(|document| !document.is_null());
    for (index, document) in documents.enumerate() {
        take(document, "", &mut objects).map_err(|problem| {
            let (source_name, number) = (source_name.to_owned(), index + 1);
            match problem {
                Problem::Found(found) => ManifestError::NoObject { source_name, number, found },
                Problem::Missing(field) => ManifestError::Incomplete { source_name, number, field },
            }
        })?;
    }
    Ok(objects)
}

fn documents(source_name: &str, text: &str) -> Result<Vec<Value>, ManifestError> {
    let text = text.trim_start_matches('\u{feff}');
    let syntax = |format, reason: String| ManifestError::Syntax {
        source_name: source_name.to_owned(),
        format,
        reason: reason.replace('\n', " "),
    };
    let json = serde_json::Deserializer::from_str(text).into_iter().collect::<Result<Vec<Value>, _>>();
    let is_json = Path::new(source_name).extension().is_some_and(|extension| extension == "json");
    match json {
        Ok(documents) => Ok(documents),
        Err(error) if is_json => Err(syntax("JSON", error.to_string())),
        // A YAML mapping in braces begins like JSON, so only YAML's own parser can report the error.
        Err(_) => serde_saphyr::from_multiple(text).map_err(|error| syntax("YAML", problem_of(&error))),
    }
}

/// The place and the error alone: the parser also prints the lines around it, and advice for programmers.
fn problem_of(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    line.split_once(", set ").map_or(line, |(problem, _advice)| problem).to_owned()
}

enum Problem {
    /// The type of value in the place of an object.
    Found(&'static str),
    /// The required member that is missing.
    Missing(String),
}

/// Adds an object, or the objects of a list; `place` is its position in the document.
fn take(mut object: Value, place: &str, objects: &mut Vec<Value>) -> Result<(), Problem> {
    let found = match &object {
        Value::Object(_) => None,
        Value::Array(_) => {
            Some("a list: put `kind: List` and `items` around it, or separate its entries by ---")
        }
        Value::Null => Some("nothing"),
        _ => Some("plain text"),
    };
    if let Some(found) = found {
        return Err(Problem::Found(found));
    }
    let (api_version, kind) = (text(&object, "/apiVersion").to_owned(), text(&object, "/kind").to_owned());
    if let (Some(item_kind), Some(Value::Array(items))) = (kind.strip_suffix("List"), object.get_mut("items"))
    {
        for (index, mut item) in std::mem::take(items).into_iter().enumerate() {
            // Lists of one kind, as the API returns them, name the kind once for all items.
            if let (Value::Object(members), false) = (&mut item, item_kind.is_empty()) {
                members.entry("apiVersion").or_insert_with(|| api_version.as_str().into());
                members.entry("kind").or_insert_with(|| item_kind.into());
            }
            take(item, &format!("{place}items[{index}]."), objects)?;
        }
        return Ok(());
    }
    if api_version.starts_with("kustomize.config.k8s.io/") {
        return Err(Problem::Found(
            "what kustomize reads: pipe what `kubectl kustomize FOLDER` prints into `-f -`",
        ));
    }
    for (field, pointer) in REQUIRED {
        if text(&object, pointer).is_empty() {
            return Err(Problem::Missing(format!("{place}{field}")));
        }
    }
    objects.push(object);
    Ok(())
}

/// A text member; empty if it is missing or not a text.
fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The API's message, or why there was no answer, in one line. (An error's own text repeats the whole response as a
/// Rust value.)
pub fn describe_api_error(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return match status.message.is_empty() {
            true => format!("{} {}", status.code, status.reason),
            false => status.message.clone(),
        };
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        // Many errors include the text of their cause in their own.
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text.trim_start_matches("ServiceError: ").replace('\n', " ")
}

/// Applies objects in order, server side; namespaced objects without a namespace go to `default`. Returns the objects
/// that the API returned.
///
/// # Errors
/// The first object that the API refuses; objects before it stay applied.
pub async fn apply(client: &Client, objects: &[Value]) -> Result<Vec<DynamicObject>, ManifestError> {
    let how = PatchParams::apply(FIELD_MANAGER).force();
    let mut applied = Vec::with_capacity(objects.len());
    for object in objects {
        applied.push(send(client, object, &how).await?);
    }
    Ok(applied)
}

/// Applies an object as [`apply`] does, but as kubectl would: unknown members are refused, and a later `kubectl apply`
/// continues with the same field manager.
///
/// # Errors
/// The API's error.
pub async fn apply_strictly(client: &Client, object: &Value) -> Result<DynamicObject, ManifestError> {
    send(client, object, &PatchParams::apply(KUBECTL).force().validation_strict()).await
}

async fn send(client: &Client, object: &Value, how: &PatchParams) -> Result<DynamicObject, ManifestError> {
    let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
    let about = format!("{kind} {name}");
    let api_version = text(object, "/apiVersion");
    let found = find_kind(client, api_version, kind).await;
    let Some((resource, scope)) = found.map_err(|error| ManifestError::of(about.clone(), &error))? else {
        let reason = format!("no matches for kind \"{kind}\" in version \"{api_version}\"");
        return Err(ManifestError::Apply { object: about, reason });
    };
    let api: Api<DynamicObject> = match (scope, text(object, "/metadata/namespace")) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
        (Scope::Namespaced, "") => Api::namespaced_with(client.clone(), "default", &resource),
        (Scope::Namespaced, namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    let patched = api.patch(name, how, &Patch::Apply(object)).await;
    patched.map_err(|error| ManifestError::of(about, &error))
}

/// The API of a kind; `None` if the cluster does not serve it.
///
/// # Errors
/// The cluster did not answer.
pub async fn find_kind(
    client: &Client,
    api_version: &str,
    kind: &str,
) -> kube::Result<Option<(ApiResource, Scope)>> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    match pinned_kind(client, &kube::core::GroupVersionKind::gvk(group, version, kind)).await {
        Ok((resource, capabilities)) => Ok(Some((resource, capabilities.scope))),
        Err(kube::Error::Discovery(_)) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_not_answered_is_told_apart_from_who_was_refused() {
        let of = |code: u16| {
            let status = kube::core::Status { code, message: "m".to_owned(), ..Default::default() };
            ManifestError::of("Cluster c".to_owned(), &kube::Error::Api(Box::new(status)))
        };
        let is_refused = |code| matches!(of(code), ManifestError::Apply { .. });
        assert_eq!([400, 403, 422, 429, 500, 503].map(is_refused), [true, true, true, false, false, false]);
    }

    fn names(text: &str) -> Vec<String> {
        let objects = read("stdin", text).unwrap_or_else(|error| panic!("{error}"));
        let of =
            |object: &Value| format!("{} {}", object["kind"], object["metadata"]["name"]).replace('"', "");
        objects.iter().map(of).collect()
    }

    #[test]
    fn documents_are_read_in_their_order() {
        let text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n---\napiVersion: v1\nkind: Service\nmetadata: {name: b}\n";
        assert_eq!(names(text), ["Namespace a", "Service b"]);
    }

    /// What Helm prints: documents of comments alone, a separator at the end, Windows line ends.
    #[test]
    fn comments_separators_and_foreign_line_ends_are_no_objects() {
        let text = "\u{feff}---\r\n# Source: shop/templates/sa.yaml\r\n---\r\n# Source: shop/templates/web.yaml\r\napiVersion: v1\r\nkind: Service\r\nmetadata:\r\n  name: web\r\n---\r\n";
        assert_eq!(names(text), ["Service web"]);
        assert_eq!(names("# nothing here\n"), Vec::<String>::new());
        assert_eq!(names(""), Vec::<String>::new());
    }

    #[test]
    fn lists_are_their_items_and_lend_them_their_kind() {
        let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Service, metadata: {name: a}}\n- {apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}\n";
        assert_eq!(names(list), ["Service a", "Deployment b"]);
        let answer = r#"{"apiVersion": "v1", "kind": "ServiceList", "metadata": {}, "items": [{"metadata": {"name": "c"}}]}"#;
        assert_eq!(names(answer), ["Service c"]);
    }

    #[test]
    fn json_values_may_follow_each_other() {
        let one =
            |name| format!(r#"{{"apiVersion": "v1", "kind": "Service", "metadata": {{"name": "{name}"}}}}"#);
        assert_eq!(names(&format!("{}\n{}", one("a"), one("b"))), ["Service a", "Service b"]);
        assert_eq!(names("{apiVersion: v1, kind: Service, metadata: {name: yaml}}"), ["Service yaml"]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let cases = [
            (
                "apiVersion: v1\nkind: Service\nmetadata: {}\n",
                "shop.yaml, document 1: metadata.name is missing",
            ),
            (
                "kind: List\napiVersion: v1\nitems: [{kind: Service}]",
                "shop.yaml, document 1: items[0].apiVersion is missing",
            ),
            ("hello", "shop.yaml, document 1: expected a Kubernetes object, found plain text"),
            (
                "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n",
                "shop.yaml, document 1: expected a Kubernetes object, found what kustomize reads: \
                 pipe what `kubectl kustomize FOLDER` prints into `-f -`",
            ),
        ];
        for (text, problem) in cases {
            assert_eq!(read("shop.yaml", text).unwrap_err().to_string(), problem);
        }
        let syntax = |name, text| read(name, text).unwrap_err().to_string();
        assert!(syntax("shop.yaml", "a: [").starts_with("shop.yaml is not valid YAML: "));
        assert_eq!(
            syntax("shop.yaml", "kind: a\nkind: b\n"),
            "shop.yaml is not valid YAML: line 2 column 1: duplicate mapping key: kind"
        );
        assert!(syntax("shop.json", "{\"a\": ").starts_with("shop.json is not valid JSON: "));
    }
}
