//! The attributes of a volume (its context in a request), read in any case of their keys and checked.

use std::collections::BTreeMap;

use volume_planner::Code;
use volume_planner::share_id::ShareId;
use volumes_node::filesystems::FileSystem;
use volumes_node::system::OwnerChange;

use super::{Invalid, invalid};

/// Attributes as a request has them.
pub type Entries = BTreeMap<String, String>;

/// How a share is mounted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// SMB 3.
    #[default]
    Smb,
    /// NFS 4.1.
    Nfs,
}

/// An identity that takes the place of the account's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// The machine's managed identity.
    Managed,
    /// A token of a Secret.
    OauthToken,
    /// The token of the pod's service account.
    WorkloadToken,
}

/// What flags decide about reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults {
    /// `--mount-permissions`; 0 leaves them.
    pub permissions: u32,
    /// `--fsgroup-change-policy`; `None` leaves the owner.
    pub owner: Option<OwnerChange>,
}

/// The attributes of a volume; a text that it has not is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The account's subscription.
    pub subscription: String,
    /// The account's resource group.
    pub group: String,
    /// The account.
    pub account: String,
    /// The share.
    pub share: String,
    /// The folder in the share, without slashes at its ends.
    pub folder: String,
    /// Whether a missing folder is made.
    pub creates_folder: bool,
    /// The protocol.
    pub protocol: Protocol,
    /// The host of the share.
    pub server: String,
    /// The domain behind `ACCOUNT.file.`.
    pub suffix: String,
    /// A disk in the share instead of its files: the file and its file system.
    pub disk: Option<(String, FileSystem)>,
    /// The Secret with the key.
    pub secret_name: String,
    /// The Secret's namespace: never empty.
    pub secret_namespace: String,
    /// Whether Azure is not asked for the key.
    pub key_from_secret_only: bool,
    /// Whether the newest key is taken instead of the first.
    pub latest_key: bool,
    /// The client ID of an identity.
    pub client_id: String,
    /// The identity's tenant.
    pub tenant_id: String,
    /// The identity that takes the place of a key.
    pub identity: Option<Identity>,
    /// The permissions of the root of NFS; `None` leaves them.
    pub permissions: Option<u32>,
    /// When the volume's files become the pod's group's; `None` never.
    pub owner: Option<OwnerChange>,
    /// Whether NFS is encrypted.
    pub encrypts: bool,
    /// Whether the volume is in a pod's own definition.
    pub is_inline: bool,
    /// Mount options of such a volume.
    pub inline_options: String,
    /// The pod, if the kubelet says it.
    pub pod: (String, String),
    /// The label of nodes for confidential containers.
    pub confidential_label: String,
    /// The handler of the runtime class for confidential containers.
    pub runtime_handler: String,
    /// The tokens of the pod's service account, as the kubelet gives them.
    pub tokens: String,
}

const LABEL: &str = "kubernetes.azure.com/kata-cc-isolation";
const HANDLER: &str = "kata-cc";

/// Go's `strconv.ParseBool`, which the established driver uses.
fn boolean(key: &str, text: &str) -> Result<bool, Invalid> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "" | "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => invalid(format!("attribute {key} is {text:?}: expected true or false")),
    }
}

impl Attributes {
    /// Reads the attributes of a volume. Unknown ones are ignored, as other programs add some.
    ///
    /// # Errors
    /// One has another form than it must, or two exclude each other.
    pub fn read(id: &str, entries: &Entries, defaults: Defaults) -> Result<Self, Invalid> {
        let own = ShareId::parse(id, Code::InvalidArgument).unwrap_or_default();
        let mut read = Self {
            subscription: own.subscription,
            group: own.group,
            account: own.account,
            share: own.share,
            permissions: (defaults.permissions > 0).then_some(defaults.permissions),
            owner: defaults.owner,
            confidential_label: LABEL.to_owned(),
            runtime_handler: HANDLER.to_owned(),
            ..Self::default()
        };
        let (mut disk, mut fs_type, mut secret_namespace) = (own.disk, String::new(), own.secret_namespace);
        let (mut claim, mut claim_namespace, mut volume) = (String::new(), String::new(), String::new());
        let mut identities = Vec::new();
        for (key, value) in entries {
            let text = value.clone();
            match key.to_ascii_lowercase().as_str() {
                "subscriptionid" => read.subscription = text,
                "resourcegroup" => read.group = text,
                "storageaccount" => read.account = text,
                "sharename" => read.share = text,
                "foldername" => read.folder = text.trim_matches('/').to_owned(),
                "createfolderifnotexist" => read.creates_folder = text.eq_ignore_ascii_case("true"),
                "protocol" => read.protocol = protocol(key, &text)?,
                "server" => read.server = text.trim().to_owned(),
                "storageendpointsuffix" => read.suffix = text.trim().to_owned(),
                "diskname" => disk = text,
                "fstype" => fs_type = text,
                "secretname" => read.secret_name = text.trim().to_owned(),
                "secretnamespace" => secret_namespace = text,
                "getaccountkeyfromsecret" => read.key_from_secret_only = text.eq_ignore_ascii_case("true"),
                "getlatestaccountkey" => read.latest_key = boolean(key, &text)?,
                "clientid" => read.client_id = text,
                "tenantid" => read.tenant_id = text,
                "mountwithmanagedidentity" if boolean(key, &text)? => identities.push(Identity::Managed),
                "mountwithoauthtoken" if boolean(key, &text)? => identities.push(Identity::OauthToken),
                "mountwithworkloadidentitytoken" if boolean(key, &text)? => {
                    identities.push(Identity::WorkloadToken);
                }
                "mountpermissions" if !text.is_empty() => {
                    let Ok(mode) = u32::from_str_radix(&text, 8) else {
                        return invalid(format!(
                            "attribute {key} is {text:?}: expected an octal number such as 0755"
                        ));
                    };
                    read.permissions = (mode > 0).then_some(mode);
                }
                "fsgroupchangepolicy" if !text.is_empty() => read.owner = owner(key, &text)?,
                "encryptintransit" => read.encrypts = boolean(key, &text)?,
                "csi.storage.k8s.io/ephemeral" => read.is_inline = text.eq_ignore_ascii_case("true"),
                "mountoptions" => read.inline_options = text,
                "csi.storage.k8s.io/pod.name" => read.pod.1 = text,
                "csi.storage.k8s.io/pod.namespace" => read.pod.0 = text,
                "csi.storage.k8s.io/serviceaccount.tokens" => read.tokens = text,
                "csi.storage.k8s.io/pvc/name" => claim = text,
                "csi.storage.k8s.io/pvc/namespace" => claim_namespace = text,
                "csi.storage.k8s.io/pv/name" => volume = text,
                "confidentialcontainerlabel" if !text.is_empty() => read.confidential_label = text,
                "runtimeclasshandler" if !text.is_empty() => read.runtime_handler = text,
                _ => {}
            }
        }
        match fs_type.as_str() {
            "" | "cifs" | "smb" => {}
            "nfs" => read.protocol = Protocol::Nfs,
            "ext2" | "ext3" | "ext4" | "xfs" => read.disk = Some((disk, disk_file_system(&fs_type)?)),
            _ => {
                return invalid(format!(
                    "attribute fsType is {fs_type:?}: expected cifs, smb or nfs, or ext2, ext3, ext4 or xfs for a disk in a share"
                ));
            }
        }
        read.identity = match identities.as_slice() {
            [] => None,
            [one] => Some(*one),
            _ => {
                return invalid(
                    "only one of mountWithManagedIdentity, mountWithOAuthToken and mountWithWorkloadIdentityToken can be true",
                );
            }
        };
        let usual = if claim_namespace.is_empty() { "default" } else { claim_namespace.as_str() };
        read.secret_namespace = if secret_namespace.is_empty() { usual.to_owned() } else { secret_namespace };
        let replaced = |text: &str| {
            let text = text.replace("${pvc.metadata.name}", &claim);
            let text = text.replace("${pvc.metadata.namespace}", &claim_namespace);
            text.replace("${pv.metadata.name}", &volume)
        };
        read.share = replaced(&read.share);
        read.folder = replaced(&read.folder).trim_matches('/').to_owned();
        read.check()?;
        Ok(read)
    }

    fn check(&self) -> Result<(), Invalid> {
        check_folder(&self.folder)?;
        if let Some((disk, _)) = &self.disk {
            if !disk.ends_with(".vhd") || disk.split(['/', '\\']).any(|segment| segment == "..") {
                return invalid(format!(
                    "attribute diskName is {disk:?}: expected the name of a file that ends with .vhd"
                ));
            }
            if self.protocol == Protocol::Nfs {
                return invalid("a disk in a share (fsType ext2, ext3, ext4 or xfs) needs protocol smb");
            }
        }
        for (key, host) in [("server", &self.server), ("storageEndpointSuffix", &self.suffix)] {
            let is_host =
                |letter: char| letter.is_ascii_alphanumeric() || ['.', '-', '_', ':'].contains(&letter);
            if host.starts_with('-') || !host.chars().all(is_host) {
                return invalid(format!("attribute {key} is {host:?}: expected a host name or an address"));
            }
        }
        if self.identity == Some(Identity::OauthToken) {
            if self.protocol == Protocol::Nfs {
                return invalid(
                    "mountWithOAuthToken is not possible with NFS, which has no logins; remove it",
                );
            }
            if self.secret_name.is_empty() {
                return invalid("mountWithOAuthToken needs secretName, the Secret with the key oauthtoken");
            }
            if self.creates_folder {
                return invalid(
                    "createFolderIfNotExist needs the account's key, and mountWithOAuthToken has none",
                );
            }
        }
        Ok(())
    }

    /// Whether the token of the pod's service account is needed.
    pub fn needs_token(&self) -> bool {
        self.identity == Some(Identity::WorkloadToken)
            || (!self.client_id.is_empty() && self.identity != Some(Identity::Managed))
    }

    /// The host of the share.
    pub fn host(&self, suffix: &str) -> String {
        match self.server.as_str() {
            "" => {
                let suffix = if self.suffix.is_empty() { suffix } else { &self.suffix };
                format!("{}.file.{suffix}", self.account)
            }
            server => server.to_owned(),
        }
    }

    /// What is mounted, in the form of the protocol's helper.
    pub fn source(&self, host: &str) -> String {
        let folder = if self.folder.is_empty() { String::new() } else { format!("/{}", self.folder) };
        match self.protocol {
            Protocol::Smb => format!("//{host}/{}{folder}", self.share),
            Protocol::Nfs => format!("{host}:/{}/{}{folder}", self.account, self.share),
        }
    }
}

/// The host for which tickets are made: that of the public name, to which the private one is an alias.
pub fn ticket_host(host: &str) -> String {
    host.replacen(".privatelink.file.", ".file.", 1)
}

fn protocol(key: &str, text: &str) -> Result<Protocol, Invalid> {
    match text {
        "" | "smb" => Ok(Protocol::Smb),
        "nfs" => Ok(Protocol::Nfs),
        _ => invalid(format!("attribute {key} is {text:?}: expected smb or nfs")),
    }
}

fn disk_file_system(text: &str) -> Result<FileSystem, Invalid> {
    text.parse().map_err(|error| Invalid(format!("attribute fsType is {text:?}: {error}")))
}

/// A policy for the owner of files (the flag and the attribute).
///
/// # Errors
/// The text is no policy.
pub fn owner(key: &str, text: &str) -> Result<Option<OwnerChange>, Invalid> {
    match text {
        "None" => Ok(None),
        "Always" => Ok(Some(OwnerChange::Always)),
        "" | "OnRootMismatch" => Ok(Some(OwnerChange::OnRootMismatch)),
        _ => invalid(format!("{key} is {text:?}: expected None, Always or OnRootMismatch")),
    }
}

/// Section 4.3, `folderName`.
fn check_folder(folder: &str) -> Result<(), Invalid> {
    if folder.is_empty() {
        return Ok(());
    }
    for segment in folder.split('/') {
        let is_bad = |letter: char| letter.is_control() || r#"\:*?"<>|"#.contains(letter);
        if segment.is_empty()
            || segment == "."
            || segment == ".."
            || segment.ends_with(['.', ' '])
            || segment.contains(is_bad)
        {
            return invalid(format!(
                "attribute folderName is {folder:?}: {segment:?} is no name of a folder (not empty, no . or .., none of \\ : * ? \" \
                 < > |, no dot or blank at its end)"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: Defaults = Defaults { permissions: 0o777, owner: Some(OwnerChange::OnRootMismatch) };

    fn read(id: &str, entries: &[(&str, &str)]) -> Result<Attributes, Invalid> {
        let entries = entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Attributes::read(id, &entries, DEFAULTS)
    }

    /// Sections 4.4 and 4.7: sources.
    #[test]
    fn sources_have_the_form_of_their_protocol() {
        for (entries, source) in [
            (&[][..], "//acc.file.core.windows.net/share"),
            (&[("folderName", "/a/b/")], "//acc.file.core.windows.net/share/a/b"),
            (&[("protocol", "nfs")], "acc.file.core.windows.net:/acc/share"),
            (&[("fsType", "nfs"), ("FOLDERNAME", "x")], "acc.file.core.windows.net:/acc/share/x"),
            (&[("server", "1.2.3.4"), ("shareName", "other")], "//1.2.3.4/other"),
            (&[("storageEndpointSuffix", "core.chinacloudapi.cn")], "//acc.file.core.chinacloudapi.cn/share"),
            (
                &[
                    ("folderName", "${pvc.metadata.namespace}/${pvc.metadata.name}"),
                    ("csi.storage.k8s.io/pvc/name", "c"),
                    ("csi.storage.k8s.io/pvc/namespace", "n"),
                ],
                "//acc.file.core.windows.net/share/n/c",
            ),
        ] {
            let read = read("g#acc#share###", entries).unwrap();
            assert_eq!(read.source(&read.host("core.windows.net")), source, "{entries:?}");
        }
        assert_eq!(ticket_host("a.privatelink.file.core.windows.net"), "a.file.core.windows.net");
    }

    /// FILE-110. Sections 4.3, 4.4 and 4.10: what is wrong is an invalid argument that names key and value.
    #[test]
    fn mistakes_name_the_attribute() {
        for (entries, words) in [
            (&[("protocol", "SMB")][..], "protocol is \"SMB\": expected smb or nfs"),
            (&[("fsType", "zfs")], "fsType is \"zfs\""),
            (&[("fsType", "ext4")], "diskName is \"\""),
            (&[("fsType", "ext4"), ("diskName", "../x.vhd")], "diskName is \"../x.vhd\""),
            (&[("mountPermissions", "9")], "mountPermissions is \"9\""),
            (&[("fsGroupChangePolicy", "always")], "expected None, Always or OnRootMismatch"),
            (&[("encryptInTransit", "yes")], "encryptInTransit is \"yes\""),
            (&[("folderName", "a/../b")], "folderName is"),
            (&[("folderName", "a//b")], "folderName is"),
            (&[("folderName", "a:b")], "folderName is"),
            (&[("folderName", "a.")], "folderName is"),
            (&[("server", "-o")], "server is \"-o\""),
            (&[("server", "h/x")], "server is \"h/x\""),
            (&[("mountWithManagedIdentity", "true"), ("mountWithOAuthToken", "true")], "only one of"),
            (&[("mountWithOAuthToken", "true")], "needs secretName"),
            (
                &[("mountWithOAuthToken", "true"), ("secretName", "s"), ("protocol", "nfs")],
                "not possible with NFS",
            ),
        ] {
            let error = read("g#acc#share###", entries).expect_err(words);
            assert!(error.0.contains(words), "{entries:?}: {error}");
        }
    }

    /// Section 4.6: the Secret's namespace is the explicit one, the claim's, or `default`.
    #[test]
    fn the_namespace_of_the_secret_has_an_order() {
        let claim = ("csi.storage.k8s.io/pvc/namespace", "claim");
        for (id, entries, namespace) in [
            ("g#a#s", &[][..], "default"),
            ("g#a#s", &[claim], "claim"),
            ("g#a#s###own", &[claim], "own"),
            ("g#a#s###own", &[claim, ("secretNamespace", "said")], "said"),
        ] {
            assert_eq!(read(id, entries).unwrap().secret_namespace, namespace, "{id} {entries:?}");
        }
    }
}
