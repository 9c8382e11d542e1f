//! Volumes are made, compared, grown, changed, validated and deleted.

use csi::v1::controller_server::Controller as _;
use csi::v1::controller_service_capability::{Type, rpc};
use csi::v1::volume_capability::{AccessType, BlockVolume};
use csi::v1::{ControllerGetCapabilitiesRequest, ValidateVolumeCapabilitiesRequest, VolumeContentSource};
use tonic::{Code, Request};

use crate::world::{GIB, World, capability, create};

const NO_KEY: (&str, &str) = ("storeAccountKey", "false");

/// FILE-040. Sections 4.1 and 4.2: what is advertised, and a volume's ID, context and share.
#[tokio::test(start_paused = true)]
async fn a_volume_is_a_share_in_an_account() {
    let world = World::new();
    let driver = world.driver();
    let answer =
        driver.controller.controller_get_capabilities(Request::new(ControllerGetCapabilitiesRequest {}));
    let all: Vec<_> =
        answer.await.unwrap().into_inner().capabilities.into_iter().map(|one| one.r#type).collect();
    let has = |wanted: rpc::Type| {
        all.iter().any(|one| matches!(one, Some(Type::Rpc(rpc)) if rpc.r#type == i32::from(wanted)))
    };
    use rpc::Type as Can;
    for can in [
        Can::CreateDeleteVolume,
        Can::CreateDeleteSnapshot,
        Can::ExpandVolume,
        Can::SingleNodeMultiWriter,
        Can::ModifyVolume,
    ] {
        assert!(has(can), "{can:?}");
    }
    assert!(all.len() == 5 && !has(Can::CloneVolume));

    let class = [NO_KEY, ("csi.storage.k8s.io/pvc/namespace", "shop"), ("skuName", "Premium_LRS")];
    let volume = driver.create(create("pvc-1", 8, &class)).await.unwrap();
    let [share] = &world.shares()[..] else { panic!("one share") };
    let properties = &share["properties"];
    // Premium shares have at least 100 GiB.
    assert_eq!((properties["shareQuota"].as_u64(), volume.capacity_bytes), (Some(100), 100 * GIB));
    assert_eq!(properties["metadata"]["createdBy"], "file.csi.azure.com");
    let account = world.accounts()[0]["name"].as_str().unwrap().to_owned();
    let group = &world.shape.resource_group;
    assert_eq!(volume.volume_id, format!("{group}#{account}#pvc-1###shop"));
    assert_eq!(volume.volume_context["skuName"], "Premium_LRS");
    assert_eq!(volume.volume_context["secretNamespace"], "shop");
    assert_eq!(world.calls("POST", "listKeys"), 0, "keys are listed only for Secrets");
}

/// FILE-041. Section 6: a repeated request finds its share; another size is another volume; a larger limit is not.
#[tokio::test(start_paused = true)]
async fn a_repeated_request_finds_its_share() {
    let world = World::new();
    let first = world.driver().create(create("a", 8, &[NO_KEY])).await.unwrap();
    // By another process.
    let driver = world.driver();
    assert_eq!(driver.create(create("a", 8, &[NO_KEY])).await.unwrap(), first);
    assert_eq!(driver.create(create("a", 9, &[NO_KEY])).await.unwrap_err().code(), Code::AlreadyExists);
    let mut limited = create("a", 4, &[NO_KEY]);
    limited.capacity_range.as_mut().unwrap().limit_bytes = 4 * GIB;
    assert_eq!(driver.create(limited).await.unwrap_err().code(), Code::AlreadyExists);
    let long = "x".repeat(128);
    let one = driver.create(create(&long, 8, &[NO_KEY])).await.unwrap();
    assert_eq!(driver.create(create(&long, 8, &[NO_KEY])).await.unwrap().volume_id, one.volume_id);
    assert_eq!((world.shares().len(), world.accounts().len()), (2, 1));
}

/// FILE-042. Section 4.10: the codes of requests that cannot be served; what is not supported is refused before anything is made.
#[tokio::test(start_paused = true)]
async fn wrong_requests_are_invalid_arguments() {
    let world = World::new();
    let driver = world.driver();
    let refused = async |request| driver.create(request).await.unwrap_err();
    let mut no_use = create("a", 8, &[]);
    no_use.volume_capabilities.clear();
    let mut block = create("a", 8, &[]);
    block.volume_capabilities[0].access_type = Some(AccessType::Block(BlockVolume {}));
    let copy = csi::v1::CreateVolumeRequest {
        volume_content_source: Some(VolumeContentSource::default()),
        ..create("a", 8, &[])
    };
    for request in [
        create("", 8, &[]),
        no_use,
        block,
        copy,
        create("a", 8, &[("odd", "1")]),
        create("a", 8, &[("fsType", "ext4")]),
        create("a", 8, &[("networkEndpointType", "privateEndpoint")]),
        create("a", 8, &[("protocol", "nfs"), ("skuName", "Standard_LRS")]),
        create("a", 8, &[("storageAccount", "absent")]),
    ] {
        let status = refused(request.clone()).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{request:?} {status}");
    }
    assert_eq!((world.accounts().len(), world.calls("PUT", "Microsoft.Storage")), (0, 0));

    assert_eq!(driver.delete("").await.unwrap_err().code(), Code::InvalidArgument);
    driver.delete("fake-vol-id-1").await.unwrap();
    assert_eq!(driver.expand("fake-vol-id-1", 9).await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(driver.modify("fake-vol-id-1", &[]).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(driver.snapshot("s", "fake-vol-id-1").await.unwrap_err().code(), Code::NotFound);
}

/// FILE-043. Section 4.5: a share grows, its performance changes, and it is deleted once; what is missing is not found.
#[tokio::test(start_paused = true)]
async fn a_share_grows_changes_and_goes() {
    let world = World::new();
    let driver = world.driver();
    let class = [NO_KEY, ("skuName", "PremiumV2_LRS")];
    let id = driver.create(create("a", 40, &class)).await.unwrap().volume_id;
    assert_eq!(driver.expand(&id, 50).await.unwrap(), 50);
    assert_eq!(driver.expand(&id, 45).await.unwrap(), 50);
    driver.modify(&id, &[("provisionedIOPS", "4000")]).await.unwrap();
    driver.modify(&id, &[]).await.unwrap();
    assert_eq!(driver.modify(&id, &[("skuName", "x")]).await.unwrap_err().code(), Code::InvalidArgument);
    let share = &world.shares()[0]["properties"];
    assert_eq!((share["shareQuota"].as_u64(), share["provisionedIops"].as_u64()), (Some(50), Some(4000)));

    let validate = async |id: &str, capability| {
        let request = ValidateVolumeCapabilitiesRequest {
            volume_id: id.to_owned(),
            volume_capabilities: vec![capability],
            ..ValidateVolumeCapabilitiesRequest::default()
        };
        driver.controller.validate_volume_capabilities(Request::new(request)).await
    };
    assert!(validate(&id, capability()).await.unwrap().into_inner().confirmed.is_some());
    let mut block = capability();
    block.access_type = Some(AccessType::Block(BlockVolume {}));
    assert!(validate(&id, block).await.unwrap().into_inner().confirmed.is_none());

    driver.delete(&id).await.unwrap();
    driver.delete(&id).await.unwrap();
    assert_eq!(world.shares().len(), 0);
    assert_eq!(validate(&id, capability()).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(driver.expand(&id, 60).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(driver.modify(&id, &[("provisionedIOPS", "1")]).await.unwrap_err().code(), Code::NotFound);
}
