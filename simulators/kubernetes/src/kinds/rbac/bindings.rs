//! What RoleBindings and ClusterRoleBindings have in common.

use crate::kinds::prelude::*;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(crate) const COLUMNS: &[Column] = &[
    NAME,
    Column::derived("Role", |object| {
        format!("{}/{}", text_at(object, "/roleRef/kind"), text_at(object, "/roleRef/name"))
    }),
    AGE,
    Column::derived("Users", |object| subjects(object, "User")).wide(),
    Column::derived("Groups", |object| subjects(object, "Group")).wide(),
    Column::derived("ServiceAccounts", |object| subjects(object, "ServiceAccount")).wide(),
];

pub(crate) const DEFAULTS: &[Row] = &[("roleRef.apiGroup", r#""rbac.authorization.k8s.io""#)];

fn subjects(object: &Value, kind: &str) -> String {
    let named = list_at(object, "/subjects").iter().filter(|subject| text_at(subject, "/kind") == kind);
    let names: Vec<String> = named
        .map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", text_at(subject, "/namespace"), text_at(subject, "/name")),
            _ => text_at(subject, "/name").to_owned(),
        })
        .collect();
    names.join(", ")
}

/// Sets the group of subjects that have one.
pub(crate) fn group_subjects(object: &mut Value) {
    for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if matches!(text_at(subject, "/kind"), "User" | "Group")
            && let Some(subject) = subject.as_object_mut()
        {
            subject.entry("apiGroup").or_insert_with(|| GROUP.into());
        }
    }
}

/// Validates a RoleBinding (`namespaced`) or ClusterRoleBinding.
pub(crate) fn validate_binding(namespaced: bool, object: &Value, causes: &mut Causes) {
    causes.check_one_of("roleRef.apiGroup", text_at(object, "/roleRef/apiGroup"), &[GROUP]);
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    causes.check_one_of("roleRef.kind", text_at(object, "/roleRef/kind"), kinds);
    required(object, "/roleRef/name", causes);
    for (index, subject) in list_at(object, "/subjects").iter().enumerate() {
        let at = |member: &str| format!("subjects[{index}].{member}");
        let (name, group) = (text_at(subject, "/name"), text_at(subject, "/apiGroup"));
        if name.is_empty() {
            causes.push(Invalid::required(at("name"), ""));
        }
        match text_at(subject, "/kind") {
            "ServiceAccount" => {
                if !name.is_empty() {
                    causes.check(at("name"), name, dns_subdomain);
                }
                causes.check_one_of(at("apiGroup"), group, &[""]);
                if text_at(subject, "/namespace").is_empty() && !namespaced {
                    causes.push(Invalid::required(at("namespace"), ""));
                }
            }
            "User" | "Group" => causes.check_one_of(at("apiGroup"), group, &[GROUP]),
            other => {
                let supported = ["ServiceAccount", "User", "Group"];
                causes.push(Invalid::unsupported(at("kind"), other, &supported));
            }
        }
    }
}

/// An update must not bind another role.
pub(crate) fn keep_role(old: &Value, new: &Value, causes: &mut Causes) {
    if old.get("roleRef") != new.get("roleRef") {
        let at = |member: &str| text_at(new, &format!("/roleRef/{member}"));
        let value = format!(
            "{{\"APIGroup\":{:?},\"Kind\":{:?},\"Name\":{:?}}}",
            at("apiGroup"),
            at("kind"),
            at("name")
        );
        causes.push(Invalid::value("roleRef", &value, "cannot change roleRef"));
    }
}
