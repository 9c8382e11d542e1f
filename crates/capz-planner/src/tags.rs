//! Tags of a cluster's resources.

use capz_api::Tags;

use crate::goal::GoalError;

/// The beginning of the tag that says whose a resource is; the cluster's name follows.
const OWNER: &str = "sigs.k8s.io_cluster-api-provider-azure_cluster_";
/// The tag with the role of a resource.
const ROLE: &str = "sigs.k8s.io_cluster-api-provider-azure_role";
/// The value of a tag that says whose something is.
pub const OWNED: &str = "owned";

/// The key of the tag that says that a resource is this cluster's.
pub fn owner_key(cluster: &str) -> String {
    format!("{OWNER}{cluster}")
}

/// The key of the tag by which the cloud controller manager knows a machine of this cluster.
pub fn cloud_provider_key(cluster: &str) -> String {
    format!("kubernetes.io_cluster_{cluster}")
}

/// Whether a document says that the resource is this cluster's.
pub fn are_ours(document: &serde_json::Value, cluster: &str) -> bool {
    let key = owner_key(cluster);
    document["tags"].as_object().is_some_and(|tags| {
        tags.iter().any(|(name, value)| name.eq_ignore_ascii_case(&key) && value.as_str() == Some(OWNED))
    })
}

/// What is said of a resource that has the name of one of ours, and is not ours: it is neither taken over nor deleted.
pub(crate) fn foreign(noun: &str, name: &str, cluster: &str) -> GoalError {
    let key = owner_key(cluster);
    GoalError::NotNow(format!(
        "a {noun} {name} exists already and is not this cluster's: give it the tag {key}={OWNED}, or delete it"
    ))
}

/// The tags of a resource: what users want, then what says whose it is, its role and its name.
pub fn build(cluster: &str, additional: &Tags, role: Option<&str>, name: Option<&str>) -> Tags {
    let mut tags = additional.clone();
    tags.insert(owner_key(cluster), OWNED.to_owned());
    if let Some(role) = role {
        tags.insert(ROLE.to_owned(), role.to_owned());
    }
    if let Some(name) = name {
        tags.insert("Name".to_owned(), name.to_owned());
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn our_tags_win_over_additional_ones() {
        let additional = Tags::from([("Name".into(), "mine".into()), ("team".into(), "a".into())]);
        let tags = build("c", &additional, Some("common"), Some("rg"));
        assert_eq!(
            json!(tags),
            json!({
                "Name": "rg",
                "team": "a",
                "sigs.k8s.io_cluster-api-provider-azure_cluster_c": "owned",
                "sigs.k8s.io_cluster-api-provider-azure_role": "common",
            })
        );
        assert!(are_ours(&json!({ "tags": tags }), "c"));
        assert!(!are_ours(&json!({ "tags": tags }), "d"));
        assert!(!are_ours(&json!({}), "c"));
    }
}
