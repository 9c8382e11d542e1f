use proptest::prelude::*;

use super::*;
use crate::model::error::Code;
use crate::parameters::{markdown_rows, snapshot_table};

const SET: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/diskEncryptionSets/e";
const ACCESS: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/diskAccesses/a";

fn place(is_stack: bool) -> ClusterPlace {
    ClusterPlace { subscription: "s".into(), group: "g".into(), location: "westus2".into(), is_stack }
}

fn entries(list: &[(&str, &str)]) -> Entries {
    list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn parse(list: &[(&str, &str)]) -> Result<DiskParameters> {
    DiskParameters::parse(&entries(list), &Entries::new(), &place(false))
}

/// CSI-002. Section 3.4: what holds without any parameter.
#[test]
fn without_parameters_the_defaults_hold() {
    let disk = parse(&[]).unwrap();
    assert_eq!(disk.sku, DiskSku::StandardSsdLrs);
    assert_eq!(disk.caching, Caching::ReadOnly);
    assert_eq!((disk.subscription.as_str(), disk.group.as_str(), disk.region.as_deref()), ("s", "g", None));
    assert_eq!(
        (disk.network.policy.as_deref(), disk.network.public.as_deref()),
        (Some("DenyAll"), Some("Disabled"))
    );
    assert_eq!((disk.max_shares, disk.profile, disk.encryption), (1, Profile::None, None));
    assert_eq!(disk.tags, entries(&[("k8s-azure-created-by", "kubernetes-azure-dd")]));
    let stack = DiskParameters::parse(&Entries::new(), &Entries::new(), &place(true)).unwrap();
    assert_eq!((stack.sku, stack.network), (DiskSku::StandardLrs, NetworkAccess::default()));
}

/// CSI-001. Section 3.4: each parameter, its key in any case.
#[test]
fn parameters_are_read_in_any_case_of_their_keys() {
    let disk = parse(&[
        ("SKUNAME", "UltraSSD_LRS"),
        ("Kind", "Managed"),
        ("fstype", "XFS"),
        ("cachingmode", "None"),
        ("Location", "West US 2"),
        ("resourcegroup", "other"),
        ("subscriptionid", "t"),
        ("diskiopsreadwrite", "1000"),
        ("diskmbpsreadwrite", "200"),
        ("logicalsectorsize", "512"),
        ("diskencryptionsetid", SET),
        ("writeacceleratorenabled", "true"),
        ("perfprofile", "Advanced"),
        ("Device-Setting/queue/nr_requests", "8"),
        ("diskaccessid", ACCESS),
        ("enablebursting", "true"),
        ("enableperformanceplus", "true"),
        ("maxshares", "3"),
        ("attachdiskinitialdelay", "0"),
        ("useragent", "mine"),
        ("enableAsyncAttach", "x"),
        ("zoned", "x"),
    ])
    .unwrap();
    assert_eq!(disk.sku, DiskSku::UltraSsdLrs);
    assert_eq!(disk.file_system.as_deref(), Some("xfs"));
    assert_eq!(
        (disk.region.as_deref(), disk.group.as_str(), disk.subscription.as_str()),
        (Some("westus2"), "other", "t")
    );
    assert_eq!(disk.performance, Performance { iops: Some(1_000), mbps: Some(200) });
    assert_eq!(disk.sector_size, Some(512));
    assert_eq!(disk.encryption.unwrap().kind, "EncryptionAtRestWithCustomerKey");
    assert_eq!(disk.tags["writeacceleratorenabled"], "true");
    assert_eq!(disk.profile, Profile::Advanced(entries(&[("queue/nr_requests", "8")])));
    assert_eq!(disk.network.policy.as_deref(), Some("AllowPrivate"));
    assert!(disk.has_bursting && disk.performance_plus == Some(true));
    assert_eq!(
        (disk.max_shares, disk.attach_delay_ms, disk.user_agent.as_deref()),
        (3, Some(0), Some("mine"))
    );
}

/// CSI-001. Sections 3.4 and 3.18: what is refused, as an invalid argument that names the key.
#[test]
fn mistakes_are_refused_with_key_value_and_remedy() {
    for (list, words) in [
        (vec![("nosuch", "1")], vec!["invalid parameter nosuch in storage class"]),
        (vec![("skuName", "premium_lrs")], vec!["skuName=premium_lrs", "Premium_LRS", "correct or remove"]),
        (vec![("cachingMode", "readonly")], vec!["cachingMode=readonly", "ReadOnly"]),
        (vec![("skuName", "Premium_LRS"), ("storageaccounttype", "Standard_LRS")], vec!["skuName", "twice"]),
        (
            vec![("skuName", "PremiumV2_LRS"), ("cachingMode", "ReadOnly")],
            vec!["PremiumV2_LRS", "None caching mode"],
        ),
        (vec![("skuName", "UltraSSD_LRS"), ("cachingMode", "ReadWrite")], vec!["UltraSSD_LRS"]),
        (vec![("skuName", "Premium_LRS"), ("maxShares", "2"), ("cachingMode", "ReadOnly")], vec!["shared"]),
        (
            vec![("DiskIOPSReadWrite", "1000")],
            vec!["DiskIOPSReadWrite=1000", "StandardSSD_LRS", "UltraSSD_LRS"],
        ),
        (vec![("DiskMBpsReadWrite", "10"), ("skuName", "Premium_LRS")], vec!["DiskMBpsReadWrite"]),
        (vec![("LogicalSectorSize", "512")], vec!["LogicalSectorSize=512"]),
        (vec![("LogicalSectorSize", "1024"), ("skuName", "UltraSSD_LRS")], vec!["512, 4096"]),
        (vec![("DiskIOPSReadWrite", "-1"), ("skuName", "UltraSSD_LRS")], vec!["whole number"]),
        (vec![("subscriptionID", "t")], vec!["resourceGroup", "cross subscription"]),
        (vec![("diskEncryptionType", "EncryptionAtRestWithCustomerKey")], vec!["add diskEncryptionSetID"]),
        (vec![("diskEncryptionSetID", "e")], vec!["/subscriptions/"]),
        (vec![("networkAccessPolicy", "AllowPrivate")], vec!["add diskAccessID"]),
        (vec![("networkAccessPolicy", "AllowAll"), ("diskAccessID", ACCESS)], vec!["AllowPrivate"]),
        (vec![("publicNetworkAccess", "enabled")], vec!["Enabled, Disabled"]),
        (vec![("maxShares", "0")], vec!["maxShares=0"]),
        (vec![("maxShares", "two")], vec!["maxShares=two"]),
        (vec![("enablePerformancePlus", "yes")], vec!["true or false"]),
        (vec![("perfProfile", "fast")], vec!["basic"]),
        (vec![("perfProfile", "advanced")], vec!["device-setting/"]),
        (vec![("perfProfile", "advanced"), ("device-setting/../x", "1")], vec!["below the block device"]),
        (vec![("perfProfile", "advanced"), ("device-setting//etc/x", "1")], vec!["below the block device"]),
        (vec![("attachDiskInitialDelay", "soon")], vec!["attachDiskInitialDelay=soon"]),
        (vec![("tags", "a")], vec!["key1=value1", "tagValueDelimiter"]),
        (vec![("fsType", "zfs")], vec!["fsType=zfs", "ext4"]),
    ] {
        let refusal = parse(&list).unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidArgument, "{list:?}");
        let text = refusal.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{list:?}: {text}");
    }
}

/// Section 3.4: what is turned off is off.
#[test]
fn false_is_not_true() {
    let disk = parse(&[("writeAcceleratorEnabled", "false"), ("enablePerformancePlus", "False")]).unwrap();
    assert_eq!((disk.tags.get("writeacceleratorenabled"), disk.performance_plus), (None, Some(false)));
    assert!(!parse(&[("enableBursting", "yes")]).unwrap().has_bursting);
}

/// CSI-011. Section 2.2: what Azure Stack has not got.
#[test]
fn azure_stack_refuses_what_it_has_not_got() {
    let parse = |list: &[(&str, &str)]| DiskParameters::parse(&entries(list), &Entries::new(), &place(true));
    assert!(parse(&[("skuName", "StandardSSD_LRS")]).unwrap_err().to_string().contains("Azure Stack"));
    assert!(parse(&[("maxShares", "2")]).unwrap_err().to_string().contains("Azure Stack"));
    assert!(parse(&[("maxShares", "1"), ("networkAccessPolicy", "AllowAll")]).is_ok());
}

/// CSI-003. Sections 3.4 and 3.18: without a value, caching is what Azure takes.
#[test]
fn caching_is_none_where_azure_takes_no_other() {
    for (list, expected) in [
        (vec![("skuName", "PremiumV2_LRS")], Caching::None),
        (vec![("skuName", "UltraSSD_LRS")], Caching::None),
        (vec![("skuName", "Premium_ZRS"), ("maxShares", "2")], Caching::None),
        (vec![("skuName", "Premium_ZRS"), ("cachingMode", "")], Caching::ReadOnly),
        (vec![("cachingMode", "ReadWrite")], Caching::ReadWrite),
    ] {
        assert_eq!(parse(&list).unwrap().caching, expected, "{list:?}");
    }
}

/// CSI-006. Section 2.5: variables stand for claim and volume, and the side-car's values become tags.
#[test]
fn variables_are_replaced_in_tags_and_names() {
    let disk = parse(&[
        ("tags", "owner=${pvc.metadata.namespace}/${pvc.metadata.name};v=${pv.metadata.name}"),
        ("tagValueDelimiter", ";"),
        ("diskName", "d-${pvc.metadata.name}-${other}"),
        ("csi.storage.k8s.io/pvc/name", "claim"),
        ("csi.storage.k8s.io/pvc/namespace", "space"),
        ("csi.storage.k8s.io/pv/name", "pvc-1"),
    ])
    .unwrap();
    assert_eq!(
        disk.tags,
        entries(&[
            ("k8s-azure-created-by", "kubernetes-azure-dd"),
            ("kubernetes.io-created-for-pvc-name", "claim"),
            ("kubernetes.io-created-for-pvc-namespace", "space"),
            ("kubernetes.io-created-for-pv-name", "pvc-1"),
            ("owner", "space/claim"),
            ("v", "pvc-1"),
        ])
    );
    assert_eq!(disk.disk_name.as_deref(), Some("d-claim-${other}"));
}

/// CSI-007. Section 3.5: mutable parameters go before those of the class, whatever their spelling.
#[test]
fn mutable_parameters_replace_those_of_the_class() {
    let class = entries(&[("skuName", "Premium_LRS"), ("cachingMode", "None")]);
    let of = |mutable: &[(&str, &str)]| DiskParameters::parse(&class, &entries(mutable), &place(false));
    let disk = of(&[("storageAccountType", "PremiumV2_LRS"), ("diskiopsreadwrite", "4000")]).unwrap();
    assert_eq!((disk.sku, disk.performance.iops), (DiskSku::PremiumV2Lrs, Some(4_000)));
    assert_eq!(of(&[("cachingMode", "ReadOnly")]), Err(Refusal::FixedParameter { key: "cachingMode" }));
}

proptest! {
    /// A key and value from anywhere are taken or refused as an argument, and the tables hold for both.
    #[test]
    fn any_entry_is_taken_or_refused(
        at in 0..DISK_PARAMETERS.len(),
        upper in any::<bool>(),
        value in "[ -~]{0,12}|true|Premium_LRS|[0-9]{1,20}",
    ) {
        let row = &DISK_PARAMETERS[at];
        let key = if upper { row.key.to_uppercase() } else { row.key.to_lowercase() };
        match parse(&[(key.as_str(), value.as_str())]) {
            Ok(_) => {
                prop_assert!(value.is_empty() || row.form.admits(&value));
            }
            Err(refusal) => prop_assert_eq!(refusal.code(), Code::InvalidArgument),
        }
    }
}

/// `docs/volumes/parameters.md` is made from the tables: `UPDATE_DOCS=1 cargo test -p volume-planner parameters`.
#[test]
fn the_page_of_parameters_is_made_from_the_tables() {
    const HEAD: &str =
        "| parameter | values | without it | what it does | SKUs | can change |\n|---|---|---|---|---|---|\n";
    let text = format!(
        "# Parameters of volumes\n\n\
         What the disk driver reads from classes. Keys are read in any case; an empty value counts as absent. A key that has\n\
         no row, a value of another form, two spellings of a key with different values, and parameters that conflict are\n\
         refused with a message that names key, value and remedy. This page is made from the tables that the driver reads.\n\n\
         ## StorageClass and VolumeAttributesClass\n\n\
         A VolumeAttributesClass takes the parameters that can change, and refuses the others. Its values go before those of\n\
         the StorageClass.\n\n{HEAD}{}\n\
         ## VolumeSnapshotClass\n\n{HEAD}{}",
        markdown_rows(DISK_PARAMETERS),
        markdown_rows(snapshot_table::SNAPSHOT_PARAMETERS),
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/volumes/parameters.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
        std::fs::write(path, &text).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == text, "{path} is not as the tables say: run with UPDATE_DOCS=1");
}
