use serde_json::json;

use super::*;
use crate::model::error::Code;

fn cluster() -> ClusterPlace {
    ClusterPlace { subscription: "s".into(), group: "g".into(), location: "westus2".into(), is_stack: false }
}

fn plan(list: &[(&str, &str)], region: Option<&str>, sku: Option<DiskSku>) -> Result<NewSnapshot> {
    let entries = list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let parameters = SnapshotParameters::parse(&entries, &cluster()).unwrap();
    let request = SnapshotRequest {
        name: "snapshot-1",
        source: DiskId::new("s", "disks", "d"),
        source_region: region,
        source_sku: sku,
        parameters: &parameters,
    };
    NewSnapshot::plan(request, &cluster())
}

/// What Azure answers for a document while a copy is this far.
fn answer(document: &Value, percent: f64) -> Value {
    let mut document = document.clone();
    document["properties"]["provisioningState"] = "Succeeded".into();
    document["properties"]["completionPercent"] = percent.into();
    document["properties"]["diskSizeGB"] = 10.into();
    document["properties"]["timeCreated"] = "2026-01-01T00:00:00Z".into();
    document
}

/// Sections 3.6 and 3.17: a snapshot beside its disk.
#[test]
fn a_snapshot_is_made_beside_its_disk() {
    let snapshot = plan(&[("tags", "a=b")], Some("West US 2"), None).unwrap();
    assert_eq!(snapshot.id, SnapshotId::new("s", "disks", "snapshot-1"));
    let Ok(SnapshotStep::Put(id, document)) = snapshot.next(None, None) else { panic!() };
    assert_eq!(id, snapshot.id);
    let disk = DiskId::new("s", "disks", "d").to_string();
    assert_eq!(
        document,
        json!({
            "location": "westus2",
            "tags": { "a": "b", "k8s-azure-created-by": "kubernetes-azure-dd", "source_volume_id": disk },
            "properties": { "creationData": { "createOption": "Copy", "sourceResourceId": disk }, "incremental": true },
        })
    );
    let there = answer(&document, 50.0);
    let Ok(SnapshotStep::Done(facts)) = snapshot.next(Some(ObservedSnapshot(&there)), None) else { panic!() };
    assert_eq!((facts.size_bytes, facts.is_ready, facts.source), (10 << 30, false, disk));
    let elsewhere = plan(&[("resourceGroup", "other"), ("subscriptionID", "t")], None, None).unwrap();
    assert_eq!(elsewhere.id, SnapshotId::new("t", "other", "snapshot-1"));
}

/// CSI-050. Section 3.17: the same name of another disk is taken; one that failed is made again.
#[test]
fn a_name_belongs_to_one_disk() {
    let snapshot = plan(&[], None, None).unwrap();
    let Ok(SnapshotStep::Put(_, document)) = snapshot.next(None, None) else { panic!() };
    let mut other = answer(&document, 100.0);
    other["properties"]["creationData"]["sourceResourceId"] =
        DiskId::new("s", "disks", "other").to_string().into();
    assert_eq!(snapshot.next(Some(ObservedSnapshot(&other)), None).unwrap_err().code(), Code::AlreadyExists);
    other["properties"]["creationData"] = json!({});
    other["tags"] = json!({});
    assert_eq!(snapshot.next(Some(ObservedSnapshot(&other)), None).unwrap_err().code(), Code::AlreadyExists);
    let mut failed = answer(&document, 0.0);
    failed["properties"]["provisioningState"] = "Failed".into();
    assert!(matches!(snapshot.next(Some(ObservedSnapshot(&failed)), None), Ok(SnapshotStep::Put(..))));
}

/// CSI-051. Section 3.17, with its FIX: the steps of a copy to another region, each found again by what Azure has.
#[test]
fn a_copy_to_another_region_goes_on_where_it_was() {
    let list = [("location", "East US"), ("instantAccessDurationMinutes", "60")];
    let snapshot = plan(&list, None, Some(DiskSku::PremiumV2Lrs)).unwrap();
    let local_id = SnapshotId::new("s", "disks", "local_snapshot-1");
    assert_eq!(snapshot.local_id(), Some(&local_id));
    let Ok(SnapshotStep::Put(id, local)) = snapshot.next(None, None) else { panic!() };
    assert_eq!((id, local["location"].as_str()), (local_id.clone(), Some("westus2")));
    assert_eq!(local["properties"]["creationData"]["instantAccessDurationMinutes"], 60);
    // Instant access does not make its data ready to be copied.
    let copying = answer(&local, 10.0);
    let Ok(SnapshotStep::Wait(facts)) = snapshot.next(None, Some(ObservedSnapshot(&copying))) else {
        panic!()
    };
    assert_eq!((facts.id, facts.is_ready), (snapshot.id.clone(), false));
    let local = answer(&local, 100.0);
    let Ok(SnapshotStep::Put(id, copy)) = snapshot.next(None, Some(ObservedSnapshot(&local))) else {
        panic!()
    };
    assert_eq!((&id, copy["location"].as_str()), (&snapshot.id, Some("eastus")));
    let creation = json!({ "createOption": "CopyStart", "sourceResourceId": local_id.to_string() });
    assert_eq!(copy["properties"]["creationData"], creation);
    let early = answer(&copy, 99.0);
    let step = snapshot.next(Some(ObservedSnapshot(&early)), Some(ObservedSnapshot(&local)));
    assert!(matches!(step, Ok(SnapshotStep::Wait(facts)) if !facts.is_ready));
    let copy = answer(&copy, 100.0);
    let step = snapshot.next(Some(ObservedSnapshot(&copy)), Some(ObservedSnapshot(&local)));
    assert!(matches!(step, Ok(SnapshotStep::DeleteLocal(id, facts)) if id == local_id && facts.is_ready));
    let Ok(SnapshotStep::Done(facts)) = snapshot.next(Some(ObservedSnapshot(&copy)), None) else { panic!() };
    assert_eq!(
        (facts.id, facts.source, facts.is_ready),
        (snapshot.id.clone(), DiskId::new("s", "disks", "d").to_string(), true)
    );
}

/// Section 3.6: what does not fit together.
#[test]
fn conflicts_are_invalid_arguments() {
    let apart = plan(&[("location", "eastus"), ("incremental", "false")], None, None);
    assert_eq!(apart.unwrap_err().code(), Code::InvalidArgument);
    let instant = plan(&[("instantAccessDurationMinutes", "60")], None, Some(DiskSku::PremiumLrs));
    assert_eq!(instant.unwrap_err().code(), Code::InvalidArgument);
    // The region is the disk's, not the cluster's.
    assert_eq!(plan(&[("location", "eastus")], Some("eastus"), None).unwrap().local_id(), None);
}
