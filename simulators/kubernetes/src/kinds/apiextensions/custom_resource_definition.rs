//! CustomResourceDefinitions: defaults and validation. What a definition serves is in
//! [`crate::verbs::lifecycle::definition`].

mod field_path;
mod rules;
mod schema;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["crd", "crds"],
    categories: &["api-extensions"],
    etcd_directory: Some("apiextensions.k8s.io/customresourcedefinitions"),
    status: StatusRule::Subresource,
    generation: Generation::Specification,
    unconditional_update: false,
    derive: default,
    admit: |old, object, _, causes| validate(old, object, causes),
    example: r#"{"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}"#,
    ..BuiltinKind::cluster::<CustomResourceDefinition>()
};

/// The annotation that approves a kind in one of Kubernetes' own groups.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// Sets the names that are derived from others, and the conversion strategy to `None` if it is missing.
fn default(object: &mut Value) {
    let kind = text_at(object, "/spec/names/kind").to_owned();
    let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
    if let Some(Value::Object(names)) = spec.get_mut("names") {
        names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
        names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
    }
    spec.entry("conversion").or_insert_with(|| json!({ "strategy": "None" }));
    if let Some(Value::Object(service)) = spec
        .get_mut("conversion")
        .and_then(|conversion| conversion.pointer_mut("/webhook/clientConfig/service"))
    {
        service.entry("port").or_insert_with(|| 443.into());
    }
}

/// Validates a definition that will be created or will replace `old`.
fn validate(old: Option<&Value>, object: &Value, causes: &mut Causes) {
    let (group, plural) = (text_at(object, "/spec/group"), text_at(object, "/spec/names/plural"));
    let name = text_at(object, "/metadata/name");
    if old.is_none() && name != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Invalid::text("metadata.name", name, why));
    }
    if group.is_empty() {
        causes.push(Invalid::required("spec.group", ""));
    } else if let Err(why) = dns_subdomain(group) {
        causes.push(Invalid::text("spec.group", group, &why));
    } else if !group.contains('.') {
        causes.push(Invalid::text("spec.group", group, "should be a domain with at least one dot"));
    }
    match text_at(object, "/spec/scope") {
        "" => causes.push(Invalid::required("spec.scope", "")),
        other => causes.check_one_of("spec.scope", other, &["Cluster", "Namespaced"]),
    }
    versions(object, causes);
    names(object, causes);
    conversion(object, causes);
    if let Some(old) = old {
        immutable(old, object, causes);
        stored_versions(object, causes);
    }
    approval(old, object, causes);
}

fn versions(object: &Value, causes: &mut Causes) {
    let versions = list_at(object, "/spec/versions");
    let shared = |member: &str| {
        let first = versions.first().and_then(|version| version.get(member));
        versions.iter().all(|version| version.get(member) == first)
    };
    // If all versions have the same value, the server treats it as a top-level field, and its messages name that field.
    let (one_schema, one_set_of_columns) = (shared("schema"), shared("additionalPrinterColumns"));
    let one_set_of_fields = shared("selectableFields");
    for (index, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        let name = text_at(version, "/name");
        if let Err(why) = dns_1035_label(name) {
            causes.push(Invalid::text(format!("{at}.name"), name, &why));
        }
        deprecation(version, &at, causes);
        match version.pointer("/schema/openAPIV3Schema") {
            None => causes.push(Invalid::required(format!("{at}.schema.openAPIV3Schema"), "")),
            Some(_) if one_schema && index > 0 => {}
            Some(document) => {
                let place = if one_schema { "spec.validation".to_owned() } else { format!("{at}.schema") };
                schema::validate(document, &format!("{place}.openAPIV3Schema"), causes);
            }
        }
        scale(version, &at, causes);
        match (one_set_of_fields, one_schema, index) {
            (true, true, 0) => selectable_fields(version, "spec.selectableFields", causes),
            (true, true, _) => {}
            // The server expects a single top-level schema, but the versions have different ones.
            (true, false, 0) if !list_at(version, "/selectableFields").is_empty() => {
                let why = "selectableFields may only be set when validations.schema is included";
                causes.push(Invalid::text("spec.selectableFields", "", why));
            }
            (true, false, _) => {}
            (false, _, _) => selectable_fields(version, &format!("{at}.selectableFields"), causes),
        }
        if one_set_of_columns && index > 0 {
            continue;
        }
        for (number, column) in list_at(version, "/additionalPrinterColumns").iter().enumerate() {
            let place = if one_set_of_columns { "spec" } else { at.as_str() };
            printer_column(column, &format!("{place}.additionalPrinterColumns[{number}]"), causes);
        }
    }
    let printed = Value::Array(versions.to_vec()).to_string();
    let mut names: Vec<&str> = versions.iter().map(|version| text_at(version, "/name")).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() < versions.len() {
        causes.push(Invalid::value("spec.versions", &printed, "must contain unique version names"));
    }
    let stored = versions.iter().filter(|version| version.get("storage") == Some(&Value::Bool(true)));
    if stored.count() != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(Invalid::value("spec.versions", &printed, why));
    }
}

/// The warning to clients of a deprecated version.
fn deprecation(version: &Value, at: &str, causes: &mut Causes) {
    const LONGEST: usize = 256;
    let Some(words) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let control = words.char_indices().find(|(_, c)| c.is_control()).map(|(index, _)| {
        format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {index}"
        )
    });
    let wrong = match version.get("deprecated").and_then(Value::as_bool) {
        Some(true) => [
            (words.len() > LONGEST).then(|| format!("must be <= {LONGEST} characters long")),
            words.is_empty().then(|| "must not be an empty string".to_owned()),
            control,
        ],
        _ => [Some("can only be set for deprecated versions".to_owned()), None, None],
    };
    for why in wrong.into_iter().flatten() {
        causes.push(Invalid::text(format!("{at}.deprecationWarning"), words, &why));
    }
}

fn scale(version: &Value, at: &str, causes: &mut Causes) {
    let Some(scale) = version.pointer("/subresources/scale") else { return };
    for (member, root) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let field = format!("{at}.subresources.scale.{member}");
        match scale.get(member).and_then(Value::as_str).unwrap_or_default() {
            "" => causes.push(Invalid::required(field, "")),
            path if !path.starts_with(root) => {
                let why = format!("should be a json path under {}", root.trim_end_matches('.'));
                causes.push(Invalid::text(field, path, &why));
            }
            _ => {}
        }
    }
}

/// The members of a version that field selectors may name.
fn selectable_fields(version: &Value, at: &str, causes: &mut Causes) {
    const MOST: usize = 8;
    let Some(schema) = version.pointer("/schema/openAPIV3Schema") else { return };
    let mut known = Vec::new();
    for (index, field) in list_at(version, "/selectableFields").iter().enumerate() {
        let at = format!("{at}[{index}].jsonPath");
        match text_at(field, "/jsonPath") {
            "" => causes.push(Invalid::required(at, "")),
            path => match field_path::selectable(schema, path) {
                Err(why) => causes.push(Invalid::text(at, path, &why)),
                Ok(members) if known.contains(&members) => {
                    causes.push(Invalid::duplicate(at, format!("{path:?}")));
                }
                Ok(members) => known.push(members),
            },
        }
    }
    if known.len() > MOST {
        let message = format!("Too many: {}: must have at most {MOST} items", known.len());
        causes.push(Invalid::new(at, message));
    }
}

fn printer_column(column: &Value, at: &str, causes: &mut Causes) {
    const TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
    if text_at(column, "/name").is_empty() {
        causes.push(Invalid::required(format!("{at}.name"), ""));
    }
    let types = format!("must be one of {}", TYPES.join(","));
    match text_at(column, "/type") {
        "" => causes.push(Invalid::required(format!("{at}.type"), &types)),
        known if TYPES.contains(&known) => {}
        other => causes.push(Invalid::text(format!("{at}.type"), other, &types)),
    }
    if text_at(column, "/jsonPath").is_empty() {
        causes.push(Invalid::required(format!("{at}.JSONPath"), ""));
    }
}

fn names(object: &Value, causes: &mut Causes) {
    let at = |member: &str| format!("spec.names.{member}");
    let text = |member: &str| text_at(object, &format!("/spec/names/{member}"));
    for member in ["plural", "singular"] {
        match text(member) {
            "" => causes.push(Invalid::required(at(member), "")),
            name => causes.check(at(member), name, dns_1035_label),
        }
    }
    for member in ["kind", "listKind"] {
        let in_any_case = |name: &str| {
            dns_1035_label(&name.to_lowercase())
                .map_err(|why| format!("may have mixed case, but should otherwise match: {why}"))
        };
        match text(member) {
            "" => causes.push(Invalid::required(at(member), "")),
            name => causes.check(at(member), name, in_any_case),
        }
    }
    if text("kind") == text("listKind") && !text("kind").is_empty() {
        let why = "kind and listKind may not be the same";
        causes.push(Invalid::text(at("listKind"), text("listKind"), why));
    }
    for member in ["shortNames", "categories"] {
        for (index, name) in list_at(object, &format!("/spec/names/{member}")).iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            causes.check(format!("{}[{index}]", at(member)), name, dns_1035_label);
        }
    }
}

fn conversion(object: &Value, causes: &mut Causes) {
    const AT: &str = "spec.conversion";
    let Some(conversion) = object.pointer("/spec/conversion") else { return };
    let webhook = conversion.get("webhook");
    match text_at(conversion, "/strategy") {
        "" => causes.push(Invalid::required(format!("{AT}.strategy"), "")),
        "None" => {
            if webhook.is_some_and(|webhook| webhook.get("clientConfig").is_some()) {
                let why = "should not be set when strategy is not set to Webhook";
                causes.push(Invalid::forbidden(format!("{AT}.webhookClientConfig"), why));
            }
        }
        "Webhook" => {
            let client = webhook.and_then(|webhook| webhook.get("clientConfig"));
            let field = format!("{AT}.webhookClientConfig");
            match client {
                None => causes.push(Invalid::required(field, "required when strategy is set to Webhook")),
                Some(client) if client.get("url").is_some() == client.get("service").is_some() => {
                    causes.push(Invalid::required(field, "exactly one of url or service is required"));
                }
                Some(_) => {}
            }
            let known =
                webhook.map(|webhook| list_at(webhook, "/conversionReviewVersions")).unwrap_or_default();
            let field = format!("{AT}.conversionReviewVersions");
            if known.is_empty() {
                causes.push(Invalid::required(field, ""));
            } else if !known.iter().any(|version| version == "v1" || version == "v1beta1") {
                let printed = Value::Array(known.to_vec()).to_string();
                causes.push(Invalid::value(field, &printed, "must include at least one of v1, v1beta1"));
            }
        }
        other => causes.push(Invalid::unsupported(format!("{AT}.strategy"), other, &["None", "Webhook"])),
    }
}

fn immutable(old: &Value, object: &Value, causes: &mut Causes) {
    let mut fields = vec!["spec.group", "spec.names.plural"];
    if condition(old, "Established") == Some("True") {
        fields.extend(["spec.scope", "spec.names.kind"]);
    }
    for field in fields {
        let pointer = format!("/{}", field.replace('.', "/"));
        let new = text_at(object, &pointer);
        if new != text_at(old, &pointer) {
            causes.push(Invalid::text(field, new, "field is immutable"));
        }
    }
}

/// Versions in which objects may be stored must not be removed.
fn stored_versions(object: &Value, causes: &mut Causes) {
    let versions: Vec<&str> =
        list_at(object, "/spec/versions").iter().map(|version| text_at(version, "/name")).collect();
    for (index, stored) in list_at(object, "/status/storedVersions").iter().enumerate() {
        let stored = stored.as_str().unwrap_or_default();
        if !versions.contains(&stored) {
            let why = format!(
                "missing from spec.versions; {stored} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {stored} and removes \
                 {stored} from status.storedVersions"
            );
            causes.push(Invalid::text(format!("status.storedVersions[{index}]"), stored, &why));
        }
    }
}

fn approval(old: Option<&Value>, object: &Value, causes: &mut Causes) {
    let group = text_at(object, "/spec/group");
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    let approval = |object: &Value| text_at(object, &format!("/metadata/annotations/{APPROVAL}")).to_owned();
    let given = approval(object);
    if !protected || old.is_some_and(|old| approval(old) == given) {
        return;
    }
    let field = format!("metadata.annotations[{APPROVAL}]");
    if given.is_empty() {
        let why = format!(
            "protected groups must have approval annotation {APPROVAL:?}, see \
             https://github.com/kubernetes/enhancements/pull/1111"
        );
        causes.push(Invalid::required(field, &why));
    } else if !given.starts_with("unapproved")
        && given.parse::<http::Uri>().is_ok_and(|uri| uri.host().is_none())
    {
        let why = format!(
            "protected groups must have approval annotation {APPROVAL:?} with either a URL or a reason starting with \
             \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111"
        );
        causes.push(Invalid::text(field, &given, &why));
    }
}

#[cfg(test)]
mod tests;
