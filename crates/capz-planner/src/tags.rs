//! Tags of a cluster's resources.

use capz_api::Tags;
use ownership::Evidence;
use serde_json::Value;

/// The prefix of the tag that names the owner of a resource; the cluster's name follows.
const OWNER: &str = "sigs.k8s.io_cluster-api-provider-azure_cluster_";
/// The tag with the role of a resource.
const ROLE: &str = "sigs.k8s.io_cluster-api-provider-azure_role";
/// The tag with the ID of the cluster: names of clusters are not unique, IDs are.
pub const ID: &str = "sigs.k8s.io_cluster-api-provider-azure_cluster-id";
/// The value of the owner tag.
pub const OWNED: &str = "owned";
/// The value of the owner tag if the owner has given the resource up on purpose.
pub(crate) const SHARED: &str = "shared";

/// The key of this cluster's owner tag.
pub fn owner_key(cluster: &str) -> String {
    format!("{OWNER}{cluster}")
}

/// The key of the tag by which the cloud controller manager recognizes a machine of this cluster.
pub fn cloud_provider_key(cluster: &str) -> String {
    format!("kubernetes.io_cluster_{cluster}")
}

/// The tags of a resource: the user's tags, then owner, role and name. `id` is the cluster's ID; empty if it is
/// unknown.
pub fn build(cluster: &str, id: &str, additional: &Tags, role: Option<&str>, name: Option<&str>) -> Tags {
    let mut tags = additional.clone();
    tags.insert(owner_key(cluster), OWNED.to_owned());
    if !id.is_empty() {
        tags.insert(ID.to_owned(), id.to_owned());
    }
    if let Some(role) = role {
        tags.insert(ROLE.to_owned(), role.to_owned());
    }
    if let Some(name) = name {
        tags.insert("Name".to_owned(), name.to_owned());
    }
    tags
}

/// The other cluster that the tags of a document name as the owner, and the tag.
pub(crate) fn owner_in(document: &Value, own: &str) -> Option<(String, Evidence)> {
    document["tags"].as_object()?.iter().find_map(|(key, value)| {
        let has_prefix = key.get(..OWNER.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(OWNER));
        let name = has_prefix.then(|| &key[OWNER.len()..])?;
        let evidence = || Evidence::Tag { key: key.clone(), value: OWNED.to_owned() };
        (value == OWNED && !name.eq_ignore_ascii_case(own)).then(|| (name.to_owned(), evidence()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claimant::Claimant;
    use serde_json::json;

    #[test]
    fn another_owner_is_known_by_its_tag() {
        let owner = |tags: Value| owner_in(&json!({ "tags": tags }), "blue").map(|(name, _)| name);
        let key = |name: &str| owner_key(name);
        assert_eq!(owner(json!({ key("green"): "owned" })), Some("green".to_owned()));
        assert_eq!(owner(json!({ key("green").to_uppercase(): "owned" })), Some("GREEN".to_owned()));
        assert_eq!(owner(json!({ key("green"): "shared" })), None);
        assert_eq!(owner(json!({ key("Blue"): "owned", ID: "owned" })), None);
        assert_eq!(owner(json!({ "team": "owned" })), None);
        assert_eq!(owner(Value::Null), None);
    }

    #[test]
    fn our_tags_win_over_additional_ones() {
        let additional = Tags::from([("Name".into(), "mine".into()), ("team".into(), "a".into())]);
        let tags = build("c", "a", &additional, Some("common"), Some("rg"));
        assert_eq!(
            json!(tags),
            json!({
                "Name": "rg",
                "team": "a",
                "sigs.k8s.io_cluster-api-provider-azure_cluster_c": "owned",
                "sigs.k8s.io_cluster-api-provider-azure_cluster-id": "a",
                "sigs.k8s.io_cluster-api-provider-azure_role": "common",
            })
        );
        assert!(Claimant::from("c").owns(&json!({ "tags": tags })));
        assert!(!Claimant::from("d").owns(&json!({ "tags": tags })));
    }
}
