//! Extensions of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::field_error::Field;
use crate::immutable::{Fixed, Rule, check as check_rules};
use crate::object::object;
use crate::text::{fill, is_set, text};

object! {
    /// An extension of a cluster.
    AksExtension {
        /// The type of the identity that Azure gives the extension.
        #[schemars(extend("enum" = ["SystemAssigned", "UserAssigned"]))]
        aks_assigned_identity_type: String,
        /// Whether Azure upgrades the extension to new minor versions.
        #[schemars(extend("default" = true))]
        auto_upgrade_minor_version: bool,
        /// The settings of the extension.
        configuration_settings: BTreeMap<String, String>,
        /// The type of the extension, as its publisher has registered it.
        #[schemars(required)]
        extension_type: String,
        /// The identity of the extension's resource.
        #[schemars(extend("enum" = ["SystemAssigned"]))]
        identity: String,
        /// The name of the extension.
        #[schemars(required)]
        name: String,
        /// The plan of an extension of the marketplace.
        plan: ExtensionPlan,
        /// The release train that upgrades come from, such as Stable.
        release_train: String,
        /// The scope of the extension.
        scope: ExtensionScope,
        /// The version of the extension, if Azure does not upgrade it.
        version: String,
    }

    /// The plan of an extension of the marketplace.
    ExtensionPlan {
        /// The name of the plan; the name of the object and the product if it is not set.
        name: String,
        /// The product.
        product: String,
        /// A promotion code.
        promotion_code: String,
        /// The publisher.
        publisher: String,
        /// The version of the plan.
        version: String,
    }

    /// The scope of an extension.
    ExtensionScope {
        /// The namespace of the extension's release, for the scope Cluster.
        release_namespace: String,
        /// Cluster or Namespace.
        #[schemars(required, extend("enum" = ["Cluster", "Namespace"]))]
        scope_type: String,
        /// The namespace that is the scope, for the scope Namespace.
        target_namespace: String,
    }
}

/// Of an extension that exists. Azure cannot change these members; without the extension they may be set anew.
const RULES: [Rule; 6] = [
    ("extensionType", Fixed::NotReplaced),
    ("plan", Fixed::NotReplaced),
    ("scope", Fixed::Always),
    ("releaseTrain", Fixed::NotReplaced),
    ("version", Fixed::NotReplaced),
    ("identity", Fixed::Always),
];

/// Names the plans of the extensions of the cluster `name`.
pub(super) fn set_defaults(extensions: &mut [AksExtension], name: &str) {
    for plan in extensions.iter_mut().filter_map(|extension| extension.plan.as_mut()) {
        let product = text(&plan.product).to_owned();
        fill(&mut plan.name, format!("{name}-{product}"));
    }
}

/// Validates the extensions.
pub(super) fn check(extensions: Option<&[AksExtension]>, list: &Field<'_>) {
    let mut names = BTreeSet::new();
    for (index, extension) in extensions.into_iter().flatten().enumerate() {
        let field = list.index(index);
        let name = text(&extension.name);
        field.child("name").duplicate_if(!names.insert(name), name);
        let words = "name the type that the extension's publisher has registered";
        field.child("extensionType").required_if(!is_set(&extension.extension_type), words);
        field.child("version").forbidden_if(
            is_set(&extension.version) && extension.auto_upgrade_minor_version != Some(false),
            "Azure chooses the version: set autoUpgradeMinorVersion to false to choose it",
        );
        if let Some(scope) = &extension.scope {
            check_scope(scope, &field.child("scope"));
        }
    }
}

/// Each scope has a namespace of its own.
fn check_scope(scope: &ExtensionScope, field: &Field<'_>) {
    let release = ("releaseNamespace", &scope.release_namespace);
    let target = ("targetNamespace", &scope.target_namespace);
    let ((needed, value), (other, unused)) = match text(&scope.scope_type) {
        "Cluster" => (release, target),
        "Namespace" => (target, release),
        _ => return,
    };
    let kind = text(&scope.scope_type);
    field.child(needed).required_if(!is_set(value), format_args!("the scope {kind} needs it"));
    field.child(other).forbidden_if(is_set(unused), format_args!("the scope {kind} has no such namespace"));
}

/// Compares extensions of the same name.
pub(super) fn check_changes(old: Option<&[AksExtension]>, new: Option<&[AksExtension]>, list: &Field<'_>) {
    for (index, now) in new.into_iter().flatten().enumerate() {
        let before = old.into_iter().flatten().find(|before| before.name == now.name);
        if let Some(before) = before {
            check_rules(&RULES, &json!(before), &json!(now), &list.index(index));
        }
    }
}
