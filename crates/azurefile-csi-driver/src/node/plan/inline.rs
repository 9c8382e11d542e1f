//! What a volume in a pod's own definition may not have (section 4.6): its author has the rights of the pod's namespace alone, and
//! must get no more by the driver's.

use super::attributes::{Attributes, Entries, Identity, Protocol};
use super::{Invalid, invalid};

/// Options that would mount something of the machine, or read a file of the driver's container.
const LOCAL: [&str; 7] = ["bind", "rbind", "remount", "move", "credentials", "cred", "password_file"];

/// Attributes of an inline volume before they are read: keys differ by more than their case, and the Secret is in the pod's
/// namespace.
///
/// # Errors
/// Two keys differ by their case alone.
pub fn confined(entries: &Entries) -> Result<Entries, Invalid> {
    let mut confined = Entries::new();
    for (key, value) in entries {
        let lower = key.to_ascii_lowercase();
        if confined.insert(lower.clone(), value.clone()).is_some() {
            return invalid(format!(
                "the volume has attribute {lower} twice, in different cases; remove one"
            ));
        }
    }
    let namespace = confined.get("csi.storage.k8s.io/pod.namespace").cloned().unwrap_or_default();
    confined.insert("secretnamespace".to_owned(), namespace);
    Ok(confined)
}

/// Checks an inline volume.
///
/// # Errors
/// It has what such volumes may not have.
pub fn check(attributes: &Attributes) -> Result<(), Invalid> {
    if attributes.protocol == Protocol::Nfs {
        return invalid("protocol nfs is not supported for ephemeral volumes; use a PersistentVolume");
    }
    if attributes.disk.is_some() {
        return invalid(
            "a disk in a share (diskName, fsType) is not supported for ephemeral volumes; use a PersistentVolume",
        );
    }
    for (key, value) in [("server", &attributes.server), ("shareName", &attributes.share)] {
        if value.contains(['/', '\\']) || value == "." || value == ".." {
            return invalid(format!(
                "attribute {key} is {value:?}: an ephemeral volume needs a single name here"
            ));
        }
    }
    for option in attributes.inline_options.split(',').map(str::trim) {
        let name = option.split('=').next().unwrap_or_default();
        if LOCAL.iter().any(|local| local.eq_ignore_ascii_case(name)) {
            return invalid(format!(
                "mount option {option:?} is not supported for ephemeral volumes; remove it"
            ));
        }
    }
    match attributes.identity {
        Some(Identity::Managed) => invalid(
            "mountWithManagedIdentity cannot be used for ephemeral volumes, because any pod would have the machine's rights; use \
             mountWithWorkloadIdentityToken or a Secret",
        ),
        Some(Identity::OauthToken) => invalid(
            "mountWithOAuthToken cannot be used for ephemeral volumes; use a Secret with the account's key",
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use volumes_node::system::OwnerChange;

    use super::super::attributes::Defaults;
    use super::*;

    fn judged(entries: &[(&str, &str)]) -> Result<Attributes, Invalid> {
        let entries = entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let defaults = Defaults { permissions: 0o777, owner: Some(OwnerChange::OnRootMismatch) };
        let attributes = Attributes::read("csi-1", &confined(&entries)?, defaults)?;
        check(&attributes).map(|()| attributes)
    }

    /// FILE-125. Section 4.6, inline ephemeral volumes: all refusals.
    #[test]
    fn inline_volumes_get_no_more_than_their_author_has() {
        for (entries, words) in [
            (&[("protocol", "nfs")][..], "nfs is not supported"),
            (&[("fsType", "ext4"), ("diskName", "d.vhd")], "a disk in a share"),
            (&[("shareName", "a/b")], "shareName is \"a/b\""),
            (&[("shareName", "..")], "shareName is"),
            (&[("server", "..")], "server is"),
            (&[("mountOptions", "ro, Bind")], "mount option \"Bind\""),
            (&[("mountOptions", "rbind")], "mount option \"rbind\""),
            (&[("mountOptions", "credentials=/etc/x")], "credentials=/etc/x"),
            (&[("mountWithManagedIdentity", "true")], "mountWithManagedIdentity cannot"),
            (&[("mountWithOAuthToken", "true"), ("secretName", "s")], "mountWithOAuthToken cannot"),
            (&[("shareName", "a"), ("sharename", "b")], "sharename twice"),
        ] {
            let error = judged(entries).expect_err(words);
            assert!(error.0.contains(words), "{entries:?}: {error}");
        }
    }

    /// Section 4.6: the namespace is the pod's, whatever the volume says.
    #[test]
    fn the_secret_is_in_the_pods_namespace() {
        let entries = [
            ("secretNamespace", "kube-system"),
            ("csi.storage.k8s.io/pod.namespace", "own"),
            ("shareName", "s"),
        ];
        assert_eq!(judged(&entries).unwrap().secret_namespace, "own");
    }
}
