//! The rules of Roles and ClusterRoles.

use crate::kinds::prelude::*;

/// Validates the rules of a Role (`namespaced`) or ClusterRole.
pub(crate) fn validate_rules(namespaced: bool, object: &Value, causes: &mut Causes) {
    for (index, rule) in list_at(object, "/rules").iter().enumerate() {
        let at = |member: &str| format!("rules[{index}].{member}");
        let none = |member: &str| list_at(rule, &format!("/{member}")).is_empty();
        if none("verbs") {
            causes.push(Invalid::required(at("verbs"), "verbs must contain at least one value"));
        }
        if !none("nonResourceURLs") {
            if namespaced {
                let why = "namespaced rules cannot apply to non-resource URLs";
                causes.push(Invalid::value(at("nonResourceURLs"), &rule["nonResourceURLs"], why));
            }
            if !none("apiGroups") || !none("resources") || !none("resourceNames") {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                causes.push(Invalid::value(at("nonResourceURLs"), &rule["nonResourceURLs"], why));
            }
            continue;
        }
        if none("apiGroups") {
            let why = "resource rules must supply at least one api group";
            causes.push(Invalid::required(at("apiGroups"), why));
        }
        if none("resources") {
            let why = "resource rules must supply at least one resource";
            causes.push(Invalid::required(at("resources"), why));
        }
    }
}
