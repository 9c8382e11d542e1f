//! The ID of a volume: `GROUP#ACCOUNT#SHARE#DISK#UUID#NAMESPACE#SUBSCRIPTION` (section 4.2).

/// The parts of an ID; those that it has not are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VolumeId {
    /// The account's resource group.
    pub group: String,
    /// The account.
    pub account: String,
    /// The share, perhaps with a folder behind a slash.
    pub share: String,
    /// The file of a disk in the share.
    pub disk: String,
    /// The namespace of the Secret with the key.
    pub secret_namespace: String,
    /// The account's subscription, if it is not the cluster's.
    pub subscription: String,
}

impl VolumeId {
    /// Reads an ID; `None` if it is another driver's form, or has a path in it that leads elsewhere.
    pub fn parse(id: &str) -> Option<Self> {
        let parts: Vec<&str> = id.split('#').collect();
        if parts.len() < 3 {
            return None;
        }
        let part = |at: usize| parts.get(at).copied().unwrap_or_default().to_owned();
        // Volumes that the kubelet's own code made have no group and, in the fifth part, the namespace.
        let namespace = if part(0).is_empty() && parts.len() < 6 { part(4) } else { part(5) };
        let id = Self {
            group: part(0),
            account: part(1),
            share: part(2),
            disk: part(3),
            secret_namespace: namespace,
            subscription: part(6),
        };
        let leads_elsewhere = |text: &str| text.split(['/', '\\']).any(|segment| segment == "..");
        (!leads_elsewhere(&id.disk) && !leads_elsewhere(&id.secret_namespace)).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 4.2.
    #[test]
    fn ids_have_at_least_three_parts() {
        let read = |id: &str| {
            VolumeId::parse(id).map(|id| {
                [id.group, id.account, id.share, id.disk, id.secret_namespace, id.subscription].join("|")
            })
        };
        for (id, parts) in [
            ("g#a#s###", Some("g|a|s|||")),
            ("g#a#s#d.vhd#u#ns#sub", Some("g|a|s|d.vhd|ns|sub")),
            ("g#a#s", Some("g|a|s|||")),
            ("#a#s#d#ns", Some("|a|s|d|ns|")),
            ("g#a", None),
            ("pvc-1", None),
            ("g#a#s#../../etc#u#ns", None),
            ("g#a#s#d#u#a/../b", None),
        ] {
            assert_eq!(read(id).as_deref(), parts, "{id}");
        }
    }
}
