//! ConversionReviews: the request to a conversion webhook, and the validation of its response.
//!
//! Each review is about one object, even when a whole list is read: kube-apiserver does the same.

use serde_json::{Map, Value, json};

use crate::kinds::shared::metadata::metadata_causes;
use crate::object::go::{go_type, group_version_kind};
use crate::object::{metadata, string_at};

/// A version of `apiextensions.k8s.io` with ConversionReviews.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1Beta1,
}

impl ReviewVersion {
    /// The version of this name, if it is supported here.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "apiextensions.k8s.io/v1",
            Self::V1Beta1 => "apiextensions.k8s.io/v1beta1",
        }
    }
}

pub(super) fn question(version: ReviewVersion, uid: &str, to: &str, object: &Value) -> Value {
    json!({
        "kind": "ConversionReview",
        "apiVersion": version.api_version(),
        "request": { "uid": uid, "desiredAPIVersion": to, "objects": [object] },
        // Go's client sends the members that it will read the response into.
        "response": { "uid": "", "convertedObjects": null, "result": { "metadata": {} } },
    })
}

/// The objects of a response.
///
/// # Errors
/// The response is invalid, or says that nothing was converted.
pub(super) fn converted_objects<'a>(
    version: ReviewVersion,
    uid: &str,
    answer: &'a Value,
) -> Result<&'a [Value], String> {
    // In the older version only the result is validated.
    let strict = version == ReviewVersion::V1;
    let (said, expected) =
        (group_version_kind(answer), format!("{}, Kind=ConversionReview", version.api_version()));
    if strict && said != expected {
        return Err(format!("expected webhook response of {expected}, got {said}"));
    }
    let response = answer.get("response").filter(|response| response.is_object());
    let response = response.ok_or("no response provided")?;
    let said = string_at(response, &["uid"]).unwrap_or_default();
    if strict && said != uid {
        return Err(format!("expected response.uid={uid:?}, got {said:?}"));
    }
    let result = |member: &str| string_at(response, &["result", member]).unwrap_or_default();
    match (result("status"), result("message")) {
        ("Success", _) => Ok(crate::object::list_at(response, &["convertedObjects"])),
        (status, "") => Err(format!("response.result.status was '{status}', not 'Success'")),
        (_, message) => Err(message.to_owned()),
    }
}

/// The object of a response: it has the metadata of the original object, except for labels and annotations.
///
/// # Errors
/// The whole message: the response contains another object, or another version.
pub(super) fn check(object: &Value, converted: &Value, to: &str) -> Result<Value, String> {
    let text = |value: &Value, member: &str| string_at(value, &[member]).unwrap_or_default().to_owned();
    if text(converted, "kind").is_empty() {
        return Err(format!("Object 'Kind' is missing in '{converted}'"));
    }
    let wrong =
        |what: &str| format!("conversion webhook for {} returned invalid {what}", group_version_kind(object));
    let version = text(converted, "apiVersion");
    if version != to {
        return Err(wrong(&format!(
            "object at index 0: invalid groupVersion (expected {to}, received {version})"
        )));
    }
    let (expected, kind) = (text(object, "kind"), text(converted, "kind"));
    if kind != expected {
        return Err(wrong(&format!(
            "object at index 0: invalid kind (expected {expected}, received {kind})"
        )));
    }
    for (member, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (before, after) = (metadata(object, member), metadata(converted, member));
        if before != after {
            return Err(wrong(&format!("object: must have the same {name}: {before} != {after}")));
        }
    }
    let metadata = restored_metadata(object, converted).map_err(|why| wrong(&format!("metadata: {why}")))?;
    let mut converted = converted.clone();
    converted["metadata"] = Value::Object(metadata);
    Ok(converted)
}

/// The metadata of the original object with the labels and annotations of the converted one.
fn restored_metadata(object: &Value, converted: &Value) -> Result<Map<String, Value>, String> {
    let given = match converted.get("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(given)) => given,
        Some(other) => {
            return Err(format!("invalid metadata of type {} in converted object", go_type(other)));
        }
    };
    let mut metadata = object.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    for member in ["labels", "annotations"] {
        let texts = match given.get(member) {
            None | Some(Value::Null) => {
                metadata.remove(member);
                continue;
            }
            Some(Value::Object(texts)) => texts,
            Some(other) => {
                let kind = go_type(other);
                return Err(format!("invalid metadata.{member} of type {kind} in converted object"));
            }
        };
        if let Some((key, value)) = texts.iter().find(|(_, value)| !value.is_string()) {
            let kind = go_type(value);
            return Err(format!(
                "metadata.{member}[{key}] must be a string, but is {kind} in converted object"
            ));
        }
        if metadata.get(member).and_then(Value::as_object) != Some(texts) {
            let causes = metadata_causes(&json!({ "metadata": { member: texts } }));
            match causes.as_slice() {
                [] => {}
                [one] => return Err(one.clone()),
                many => return Err(format!("[{}]", many.join(", "))),
            }
        }
        metadata.insert(member.to_owned(), Value::Object(texts.clone()));
    }
    Ok(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Value {
        json!({ "apiVersion": "example.com/v1", "kind": "Widget", "spec": { "a": 1 },
            "metadata": { "name": "w", "namespace": "n", "uid": "1", "labels": { "a": "b" }, "generation": 3 } })
    }

    /// The result for a response that differs from a valid one by this merge patch.
    fn checked(difference: Value) -> Result<Value, String> {
        let mut converted = object();
        converted["apiVersion"] = json!("example.com/v2");
        json_patch::merge(&mut converted, &difference);
        check(&object(), &converted, "example.com/v2")
    }

    #[test]
    fn metadata_stays_but_for_labels_and_annotations() {
        let changed = json!({ "spec": { "b": 2 }, "metadata": { "generation": 42, "garbage": "x", "finalizers": ["f"],
            "labels": { "a": null, "c": "d" }, "annotations": { "e": "f" } } });
        let converted = checked(changed).unwrap();
        assert_eq!(converted["spec"], json!({ "a": 1, "b": 2 }));
        assert_eq!(
            converted["metadata"],
            json!({ "name": "w", "namespace": "n", "uid": "1", "generation": 3, "labels": { "c": "d" },
                "annotations": { "e": "f" } })
        );
        let without = checked(json!({ "metadata": { "labels": null } })).unwrap();
        assert_eq!(without["metadata"].get("labels"), None);
    }

    #[test]
    fn other_objects_are_refused_in_the_servers_words() {
        let invalid = "conversion webhook for example.com/v1, Kind=Widget returned invalid";
        for (difference, message) in [
            (
                json!({ "apiVersion": "example.com/v3" }),
                "object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v3)",
            ),
            (
                json!({ "kind": "Gadget" }),
                "object at index 0: invalid kind (expected Widget, received Gadget)",
            ),
            (json!({ "metadata": { "name": "x" } }), "object: must have the same name: w != x"),
            (json!({ "metadata": { "namespace": null } }), "object: must have the same namespace: n != "),
            (json!({ "metadata": { "uid": "2" } }), "object: must have the same UID: 1 != 2"),
            (
                json!({ "metadata": { "labels": [] } }),
                "metadata: invalid metadata.labels of type []interface {} in converted object",
            ),
            (
                json!({ "metadata": { "annotations": { "a": 1 } } }),
                "metadata: metadata.annotations[a] must be a string, but is int64 in converted object",
            ),
        ] {
            assert_eq!(checked(difference), Err(format!("{invalid} {message}")));
        }
        let label = checked(json!({ "metadata": { "labels": { "a": "-" } } })).unwrap_err();
        assert!(
            label.starts_with(&format!("{invalid} metadata: metadata.labels: Invalid value: \"-\": ")),
            "{label}"
        );
        let bare = checked(json!({ "kind": null })).unwrap_err();
        assert!(bare.starts_with("Object 'Kind' is missing in '{"), "{bare}");
    }

    #[test]
    fn an_answer_is_for_its_question() {
        let answer = |members: Value| {
            let mut answer = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
                "response": { "uid": "u", "result": { "status": "Success" }, "convertedObjects": [1] } });
            json_patch::merge(&mut answer, &members);
            answer
        };
        let said =
            |version, members: Value| converted_objects(version, "u", &answer(members)).map(<[Value]>::len);
        assert_eq!(said(ReviewVersion::V1, json!({})), Ok(1));
        for (members, message) in [
            (
                json!({ "apiVersion": "apiextensions.k8s.io/v1beta1" }),
                "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got \
                 apiextensions.k8s.io/v1beta1, Kind=ConversionReview",
            ),
            (json!({ "response": null }), "no response provided"),
            (json!({ "response": { "uid": "x" } }), "expected response.uid=\"u\", got \"x\""),
            (
                json!({ "response": { "result": { "status": null } } }),
                "response.result.status was '', not 'Success'",
            ),
            (json!({ "response": { "result": { "status": "Failure", "message": "no" } } }), "no"),
        ] {
            assert_eq!(said(ReviewVersion::V1, members), Err(message.to_owned()));
        }
        // The older version is lenient.
        let other = json!({ "apiVersion": "other/v1", "response": { "uid": "x" } });
        assert_eq!(said(ReviewVersion::V1Beta1, other), Ok(1));
        assert_eq!(
            question(ReviewVersion::V1Beta1, "u", "a/v1", &json!({}))["apiVersion"],
            "apiextensions.k8s.io/v1beta1"
        );
    }
}
