use serde_json::json;

use super::*;
use crate::model::error::Code;
use crate::model::id::SnapshotId;
use crate::model::topology::ZONE_LABEL;
use crate::parameters::given::Entries;

const DRIVER: &str = "disk.csi.azure.com";
const G: i64 = 1 << 30;

fn cluster() -> ClusterPlace {
    ClusterPlace { subscription: "s".into(), group: "g".into(), location: "westus2".into(), is_stack: false }
}

fn parameters(list: &[(&str, &str)]) -> DiskParameters {
    let entries = list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    DiskParameters::parse(&entries, &Entries::new(), &cluster()).unwrap()
}

fn zones(names: &[&str]) -> Requirement {
    let segment = |name: &&str| Segments::from([(ZONE_LABEL.to_owned(), format!("westus2-{name}"))]);
    Requirement { preferred: names.iter().map(segment).collect(), requisite: Vec::new() }
}

fn plan_with(
    list: &[(&str, &str)],
    range: (i64, i64),
    requirement: &Requirement,
    source: Option<Source>,
) -> Result<NewDisk> {
    let range = CapacityRange { required_bytes: range.0 * G, limit_bytes: range.1 * G };
    let parameters = parameters(list);
    let request = CreateRequest { name: "pvc-1", range, parameters: &parameters, requirement, source };
    NewDisk::plan(request, &cluster(), DRIVER)
}

/// What Azure answers for a document.
fn answer(disk: &NewDisk, change: impl FnOnce(&mut Value)) -> Value {
    let mut document = disk.document.clone();
    document["id"] = disk.id.to_string().to_lowercase().into();
    document["name"] = disk.id.name().into();
    document["properties"]["provisioningState"] = "Succeeded".into();
    document["properties"]["diskState"] = "Unattached".into();
    change(&mut document);
    document
}

fn snapshot(size: u64) -> Source {
    Source::snapshot(SnapshotId::new("s", "g", "snap"), &json!({ "properties": { "diskSizeGB": size } }))
}

fn clone_of(size: u64, zone: Option<&str>, sku: &str) -> Source {
    let document = json!({ "properties": { "diskSizeGB": size }, "zones": zone, "sku": { "name": sku } });
    let mut document = document;
    document["zones"] = zone.map_or(json!([]), |zone| json!([zone]));
    Source::disk(DiskId::new("s", "g", "origin"), Some(ObservedDisk(&document)))
}

/// Section 3.7: the document of an empty disk, with nothing that the class does not say.
#[test]
fn an_empty_disk_has_the_members_of_its_class() {
    let disk = plan_with(&[("skuName", "Premium_LRS")], (10, 0), &zones(&["2"]), None).unwrap();
    assert_eq!(disk.id, DiskId::new("s", "g", "pvc-1"));
    assert_eq!(
        disk.document,
        json!({
            "location": "westus2",
            "zones": ["2"],
            "sku": { "name": "Premium_LRS" },
            "tags": { "k8s-azure-created-by": "kubernetes-azure-dd" },
            "properties": {
                "creationData": { "createOption": "Empty" },
                "diskSizeGB": 10,
                "networkAccessPolicy": "DenyAll",
                "publicNetworkAccess": "Disabled",
            },
        })
    );
}

/// Section 3.4: members of disks with provisioned performance, keys of customers and sharing.
#[test]
fn an_ultra_disk_has_its_performance() {
    let set = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/diskEncryptionSets/e";
    let access = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/diskAccesses/a";
    let list = [
        ("skuName", "UltraSSD_LRS"),
        ("LogicalSectorSize", "512"),
        ("diskEncryptionSetID", set),
        ("diskAccessID", access),
        ("enableBursting", "true"),
        ("enablePerformancePlus", "true"),
        ("maxShares", "2"),
    ];
    let disk = plan_with(&list, (10, 0), &Requirement::default(), None).unwrap();
    assert_eq!(disk.document.get("zones"), None);
    assert_eq!(
        disk.document["properties"],
        json!({
            "creationData": { "createOption": "Empty", "logicalSectorSize": 512, "performancePlus": true },
            "diskSizeGB": 513,
            "diskIOPSReadWrite": 513,
            "diskMBpsReadWrite": 100,
            "encryption": { "diskEncryptionSetId": set, "type": "EncryptionAtRestWithCustomerKey" },
            "networkAccessPolicy": "AllowPrivate",
            "publicNetworkAccess": "Disabled",
            "diskAccessId": access,
            "burstingEnabled": true,
            "maxShares": 2,
        })
    );
}

/// CSI-031. Section 3.7, step 7: sizes of sources, with the FIX: limits hold, and the real capacity is reported.
#[test]
fn a_copy_is_at_least_as_large_as_its_source() {
    let none = Requirement::default();
    for (range, source, size, is_resize_required) in [
        ((10, 0), snapshot(20), Ok(20), false),
        ((10, 20), snapshot(20), Ok(20), false),
        ((10, 15), snapshot(20), Err(Code::OutOfRange), false),
        ((30, 0), snapshot(20), Ok(30), false),
        ((30, 0), clone_of(20, None, "Premium_LRS"), Ok(30), true),
        ((20, 0), clone_of(20, None, "Premium_LRS"), Ok(20), false),
        ((10, 0), clone_of(20, None, "Premium_LRS"), Ok(20), false),
    ] {
        let planned = plan_with(&[], range, &none, Some(source.clone()));
        let found = planned.as_ref().map(|disk| disk.size_gib).map_err(Refusal::code);
        assert_eq!(found, size, "{range:?} {source:?}");
        if let Ok(disk) = planned {
            assert_eq!(disk.is_resize_required, is_resize_required, "{range:?} {source:?}");
            let creation = &disk.document["properties"]["creationData"];
            assert_eq!(
                (creation["createOption"].as_str(), creation["sourceResourceId"].as_str()),
                (Some("Copy"), Some(source.resource()))
            );
            let answer = answer(&disk, |_| {});
            let CreateStep::Done(created) = disk.next(Some(ObservedDisk(&answer))).unwrap() else { panic!() };
            assert_eq!(created.capacity_bytes, size.unwrap() << 30);
        }
    }
}

/// CSI-031. Section 3.7: a source that could not be read. Azure may make the copy larger, within the limit.
#[test]
fn a_copy_of_an_unread_source_may_be_larger() {
    let source = Source::disk(DiskId::new("s", "g", "origin"), None);
    let disk = plan_with(&[], (10, 20), &Requirement::default(), Some(source)).unwrap();
    assert!(!disk.is_resize_required && !disk.is_migrated);
    for (size, is_done) in [(9, false), (10, true), (11, true), (20, true), (21, false)] {
        let answer = answer(&disk, |disk| disk["properties"]["diskSizeGB"] = size.into());
        match disk.next(Some(ObservedDisk(&answer))) {
            Ok(CreateStep::Done(created)) => {
                assert!(is_done && created.capacity_bytes == size << 30, "{size}")
            }
            other => assert!(!is_done && other.is_err(), "{size}"),
        }
    }
}

/// CSI-026. Sections 3.7 and 3.18: a clone is in its source's zone; a change to premium v2 is watched.
#[test]
fn a_clone_inherits_its_zone() {
    let source = clone_of(10, Some("3"), "Premium_LRS");
    let disk = plan_with(&[("skuName", "PremiumV2_LRS")], (10, 0), &zones(&["1"]), Some(source)).unwrap();
    assert_eq!((disk.document["zones"].clone(), disk.is_migrated), (json!(["3"]), true));
    let same = plan_with(
        &[("skuName", "Premium_LRS")],
        (10, 0),
        &zones(&["1"]),
        Some(clone_of(10, None, "Premium_LRS")),
    );
    assert!(!same.unwrap().is_migrated);
}

/// CSI-030. Section 3.7, step 6, FIX: a disk of this name is always compared, and another one is never changed.
#[test]
fn an_existing_disk_is_the_one_or_is_refused() {
    let list = [("skuName", "Premium_LRS"), ("csi.storage.k8s.io/pv/name", "pvc-1")];
    let disk = plan_with(&list, (10, 10), &zones(&["1", "2"]), None).unwrap();
    let step = |change: &dyn Fn(&mut Value)| disk.next(Some(ObservedDisk(&answer(&disk, change))));
    assert_eq!(disk.next(None), Ok(CreateStep::Put));
    let CreateStep::Done(created) = step(&|_| {}).unwrap() else { panic!() };
    assert_eq!((created.capacity_bytes, created.id.clone()), (10 << 30, disk.id.clone()));
    let zone_of = |created: &CreatedDisk| created.topologies[0][&topology::zone_key(DRIVER)].clone();
    assert_eq!(zone_of(&created), "westus2-1");
    // The pod went to another zone meanwhile: the answer names the disk's own.
    let CreateStep::Done(created) = step(&|disk| disk["zones"] = json!(["2"])).unwrap() else { panic!() };
    assert_eq!(zone_of(&created), "westus2-2");
    assert_eq!(
        step(&|disk| disk["properties"]["provisioningState"] = "Creating".into()),
        Ok(CreateStep::Wait)
    );
    assert_eq!(step(&|disk| disk["properties"]["provisioningState"] = "Failed".into()), Ok(CreateStep::Put));
    for (change, words) in [
        (
            &(|disk: &mut Value| disk["properties"]["diskSizeGB"] = 20.into()) as &dyn Fn(&mut Value),
            "capacity 20 GiB instead of 10",
        ),
        (&|disk| disk["properties"]["diskSizeGB"] = 5.into(), "capacity 5 GiB"),
        (&|disk| disk["sku"]["name"] = "Standard_LRS".into(), "SKU Standard_LRS instead of Premium_LRS"),
        (&|disk| disk["location"] = "eastus".into(), "region eastus"),
        (&|disk| disk["zones"] = json!(["3"]), "zone 3 instead of 1"),
        (&|disk| disk["zones"] = json!([]), "zone none instead of 1"),
        (&|disk| disk["properties"]["maxShares"] = 2.into(), "maxShares 2"),
        (&|disk| disk["tags"]["kubernetes.io-created-for-pv-name"] = "pvc-2".into(), "volume pvc-2"),
        (
            &|disk| disk["properties"]["creationData"]["sourceResourceId"] = "/subscriptions/s/x".into(),
            "content source",
        ),
        (
            &|disk| disk["properties"]["encryption"]["diskEncryptionSetId"] = "/e".into(),
            "disk encryption set",
        ),
    ] {
        let refusal = step(change).unwrap_err();
        assert_eq!(refusal.code(), Code::AlreadyExists);
        assert!(refusal.to_string().contains(words), "{refusal}: {words}");
    }
}

/// CSI-030. Section 3.7, step 6: a larger disk is another one, even if the request has no limit.
#[test]
fn a_larger_disk_is_another_one() {
    let disk = plan_with(&[], (10, 0), &Requirement::default(), None).unwrap();
    let larger = answer(&disk, |disk| disk["properties"]["diskSizeGB"] = 20.into());
    assert_eq!(disk.next(Some(ObservedDisk(&larger))).unwrap_err().code(), Code::AlreadyExists);
}

/// Section 6: no name is an invalid argument; a long one, or one that Azure does not take, serves.
#[test]
fn any_name_but_an_empty_one_serves() {
    let (parameters, requirement) = (parameters(&[]), Requirement::default());
    let plan = |name: &str| {
        let request = CreateRequest {
            name,
            range: CapacityRange::default(),
            parameters: &parameters,
            requirement: &requirement,
            source: None,
        };
        NewDisk::plan(request, &cluster(), DRIVER)
    };
    assert_eq!(plan("").unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(plan(&"a".repeat(128)).unwrap().id.name().len(), 80);
    assert_eq!(plan("a/b").unwrap().id, plan("a/b").unwrap().id);
}
