//! Tests of parameters of shares.

use super::*;
use crate::model::error::Code;
use crate::parameters::markdown_rows;
use crate::parameters::share_table::SHARE_SNAPSHOT_PARAMETERS;

fn entries(pairs: &[(&str, &str)]) -> Entries {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn place() -> ClusterPlace {
    ClusterPlace {
        subscription: "s".into(),
        group: "g".into(),
        location: "westeurope".into(),
        is_stack: false,
    }
}

fn parse(pairs: &[(&str, &str)]) -> Result<ShareParameters> {
    ShareParameters::parse(&entries(pairs), &Entries::new(), &place())
}

/// FILE-004. Section 4.3: what holds without parameters, for both protocols.
#[test]
fn a_class_without_parameters_is_smb_with_a_key() {
    let smb = parse(&[]).unwrap();
    assert_eq!((smb.protocol, smb.identity, smb.stores_key), (Protocol::Smb, MountIdentity::Key, true));
    assert_eq!(
        (smb.account.sku, &smb.account.reach, smb.account.group.as_str()),
        (None, &Reach::Public, "g")
    );
    assert_eq!(smb.secret_namespace, "default");
    for pair in [("protocol", "nfs"), ("fstype", "NFS")] {
        let nfs = parse(&[pair]).unwrap();
        assert_eq!((nfs.protocol, nfs.stores_key), (Protocol::Nfs, false));
        assert_eq!(nfs.account.sku, Some(AccountSku::PREMIUM_LRS));
        assert_eq!(nfs.account.reach, Reach::Subnets(NetworkNames::default()));
    }
    // A named account has the kind that it has.
    assert_eq!(parse(&[("protocol", "nfs"), ("storageAccount", "a")]).unwrap().account.sku, None);
}

/// FILE-004. Section 4.3: values that become something else.
#[test]
fn values_become_what_they_mean() {
    let given = parse(&[
        ("SKUNAME", "premium_zrs"),
        ("sharename", "of-${pvc.metadata.name}"),
        ("folderName", "/a/${pv.metadata.name}/"),
        ("csi.storage.k8s.io/pvc/name", "claim"),
        ("csi.storage.k8s.io/pvc/namespace", "team"),
        ("csi.storage.k8s.io/pv/name", "pv"),
        ("location", "West Europe"),
        ("networkEndpointType", "privateEndpoint"),
        ("subnetName", "pods"),
        ("privateDNSZoneResourceGroup", "dns"),
        ("fsType", "xfs"),
        ("tags", "a=b"),
        ("enableMultichannel", "true"),
    ])
    .unwrap();
    assert_eq!(given.account.sku.map(AccountSku::name), Some("Premium_ZRS"));
    assert_eq!((given.share_name.as_deref(), given.folder.as_deref()), (Some("of-claim"), Some("a/pv")));
    assert_eq!(
        (given.secret_namespace.as_str(), given.account.region.as_deref()),
        ("team", Some("westeurope"))
    );
    let network = NetworkNames { subnets: vec!["pods".into()], ..NetworkNames::default() };
    assert_eq!(given.account.reach, Reach::Private { network, zone_group: Some("dns".into()), link: None });
    assert_eq!(given.disk_file_system.as_deref(), Some("xfs"));
    let subnets = parse(&[("networkEndpointType", "serviceEndpoint"), ("subnetName", "a, b,")]).unwrap();
    let network = NetworkNames { subnets: vec!["a".into(), "b".into()], ..NetworkNames::default() };
    assert_eq!(subnets.account.reach, Reach::Subnets(network));
}

/// FILE-005. Section 4.3: what is refused, with the key, the value and the remedy.
#[test]
fn what_cannot_be_is_refused() {
    let long = "a".repeat(21);
    for (pairs, text) in [
        (&[("odd", "1")][..], "invalid parameter odd in storage class"),
        (&[("protocol", "SMB")], "expected one of smb, nfs"),
        (&[("protocol", "nfs"), ("skuName", "Standard_LRS")], "choose a premium account"),
        (&[("protocol", "nfs"), ("skuName", "StandardV2_LRS")], "choose a premium account"),
        (&[("storageAccount", "a"), ("matchTags", "true")], "storageAccount=a"),
        (&[("allowSharedKeyAccess", "false"), ("storeAccountKey", "true")], "remove one of them"),
        (
            &[("mountWithManagedIdentity", "true"), ("mountWithWorkloadIdentityToken", "true")],
            "choose one of them",
        ),
        (&[("mountWithOAuthToken", "true")], "add the Secret"),
        (&[("mountWithOAuthToken", "true"), ("secretName", "x"), ("protocol", "nfs")], "protocol nfs"),
        (&[("subscriptionID", "other")], "must be provided in cross subscription"),
        (&[("shareNamePrefix", "-a")], "lower-case letters"),
        (&[("shareNamePrefix", &long)], "at most 20"),
        (&[("folderName", "a/../b")], "without . and .."),
        (&[("folderName", "a./b")], "without a dot"),
        (&[("folderName", "a:b")], "path below the share"),
        (&[("networkEndpointType", "privateEndpoint"), ("subnetName", "a,b")], "name one subnet"),
        (&[("privateDNSZoneResourceGroup", "dns")], "add the endpoint"),
        (&[("rootSquashType", "RootSquash")], "add protocol nfs"),
        (&[("enableMultichannel", "true")], "choose a premium skuName"),
        (&[("accountQuota", "99")], "at least 100"),
        (&[("mountPermissions", "0888")], "octal"),
        (&[("tags", "a")], "has no `=`"),
        (&[("skuName", "Premium")], "one of Standard_LRS"),
    ] {
        let refusal = parse(pairs).unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidArgument);
        assert!(refusal.to_string().contains(text), "{refusal}");
    }
}

/// FILE-006. Section 4.3: a VolumeAttributesClass changes operations and bandwidth, and nothing else.
#[test]
fn only_performance_changes() {
    let parse = |pairs: &[(&str, &str)]| ShareModification::parse(&entries(pairs));
    let both = ShareModification { iops: Some(4_000), bandwidth: Some(200) };
    assert_eq!(parse(&[("provisionediops", "4000"), ("provisionedBandwidth", "200")]), Ok(both));
    assert_eq!(parse(&[]), Ok(ShareModification::default()));
    for pairs in [&[("skuName", "Premium_LRS")][..], &[("odd", "1")], &[("provisionedIOPS", "many")]] {
        assert_eq!(parse(pairs).unwrap_err().code(), Code::InvalidArgument);
    }
}

/// FILE-004. The mechanism of mutable parameters over those of the class.
#[test]
fn mutable_parameters_go_before_those_of_the_class() {
    let (class, mutable) = (entries(&[("provisionedIOPS", "1")]), entries(&[("PROVISIONEDIOPS", "2")]));
    assert_eq!(ShareParameters::parse(&class, &mutable, &place()).unwrap().iops, Some(2));
}

/// `docs/shares/parameters.md` is made from the tables: `UPDATE_DOCS=1 cargo test -p volume-planner parameters`.
#[test]
fn the_page_of_parameters_of_shares_is_made_from_the_tables() {
    const HEAD: &str =
        "| parameter | values | without it | what it does | SKUs | can change |\n|---|---|---|---|---|---|\n";
    let text = format!(
        "# Parameters of shares\n\n\
         What classes for shares may say. Keys are read in any case; an empty value counts as absent. A key that has no row, a\n\
         value of another form, two spellings of a key with different values, and parameters that conflict are refused with a\n\
         message that names key, value and remedy. This page is made from the tables of the planner.\n\n\
         ## StorageClass and VolumeAttributesClass\n\n\
         A VolumeAttributesClass takes the parameters that can change, and refuses the others. Its values go before those of\n\
         the StorageClass.\n\n{HEAD}{}\n\
         ## VolumeSnapshotClass\n\n{HEAD}{}",
        markdown_rows(SHARE_PARAMETERS),
        markdown_rows(SHARE_SNAPSHOT_PARAMETERS),
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/shares/parameters.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == text, "{path} is not as the tables say: run with UPDATE_DOCS=1");
}
