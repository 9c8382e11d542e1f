//! Extensions of a cluster.

use std::collections::BTreeMap;

use crate::object::object;

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
