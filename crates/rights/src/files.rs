//! The files of `deploy/rights`.

use std::collections::BTreeMap;

use crate::azure;
use crate::kubernetes::{Role, USUAL, yaml};
use crate::{Feature, Program};

/// Who may read metrics is up to the cluster's owner, so this role is bound to no account.
const METRICS_READER: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: cloud-controller-manager-metrics-reader
rules:
  - nonResourceURLs: [/metrics]
    verbs: [get]
";

/// All files that come from the tables, by their path below `deploy/rights`.
pub fn files() -> BTreeMap<String, String> {
    let mut files: BTreeMap<String, String> =
        azure::Role::all().iter().map(|role| (role.path(), definition(role))).collect();
    for program in Program::ALL {
        let folder = format!("kubernetes/{}", program.name());
        let mut parts = Vec::new();
        for feature in Feature::ALL {
            let roles = Role::of(program, feature, USUAL);
            if roles.is_empty() {
                continue;
            }
            let head = format!("# Needed if: {}.\n", feature.condition());
            let name = format!("{}.yaml", feature.name());
            files.insert(format!("{folder}/{name}"), format!("{PRINTED}{head}{}", yaml(&roles)));
            parts.push((name, feature.condition()));
        }
        if !parts.is_empty() {
            files.insert(format!("{folder}/kustomization.yaml"), kustomization(&parts));
        }
    }
    let head = "# For callers of /metrics: bind it to the service account of your monitoring.\n";
    files.insert("kubernetes/metrics-reader.yaml".to_owned(), format!("{PRINTED}{head}{METRICS_READER}"));
    files
}

fn definition(role: &azure::Role) -> String {
    format!("{}\n", serde_json::to_string_pretty(&role.definition()).unwrap_or_default())
}

const PRINTED: &str = "# Printed from crates/rights: UPDATE_RIGHTS=1 cargo test -p rights files\n";

/// A kustomization with all features, each in its line.
fn kustomization(parts: &[(String, &str)]) -> String {
    let lines: String =
        parts.iter().map(|(name, condition)| format!("  # {condition}\n  - {name}\n")).collect();
    format!(
        "{PRINTED}# Leave out the features that the cluster does not have.\napiVersion: kustomize.config.k8s.io/v1beta1\n\
         kind: Kustomization\nresources:\n{lines}"
    )
}
