//! NodeGetInfo (sections 3.3, 3.12 and 3.14 of the specification of the drivers).

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use azure_simulator::imds::MetadataService;
use azure_simulator::{Azure, Options};
use azuredisk_csi_driver::node::kubernetes::NodeObject;
use azuredisk_csi_driver::node::machine::{FactSource, Facts, FactsError, Metadata};
use azuredisk_csi_driver::node::{NodeOptions, NodeService};
use bytes::Bytes;
use csi::v1::node_server::Node as _;
use csi::v1::{NodeGetInfoRequest, NodeGetInfoResponse};
use http::{Request as HttpRequest, Response as HttpResponse};
use imds::{Imds, Transport};
use kube::Client;
use kubernetes_simulator::{Fault, Kubernetes};
use serde_json::json;
use simulated_cluster::{NodePool, Shape};
use tonic::{Code, Request, Status};
use tower::ServiceExt as _;
use volumes_node::simulated::{Layout, SimulatedMachine};

const DRIVER_ZONE: &str = "topology.disk.csi.azure.com/zone";
const ZONE: &str = "topology.kubernetes.io/zone";

/// A source that answers with these facts, or not at all.
struct Given(Option<Facts>);

#[async_trait]
impl FactSource for Given {
    async fn read(&self) -> Result<Facts, FactsError> {
        self.0.clone().ok_or_else(|| FactsError::new("the test's source", "it is away"))
    }
}

fn options() -> NodeOptions {
    NodeOptions { node_id: "node-1".to_owned(), ..NodeOptions::default() }
}

async fn info(
    options: NodeOptions,
    metadata: Option<Arc<dyn FactSource>>,
    node: Option<Arc<dyn FactSource>>,
) -> Result<NodeGetInfoResponse, Status> {
    let machine = Arc::new(SimulatedMachine::new(Layout::Scsi));
    let service = NodeService::new(options, machine, metadata, node);
    service.node_get_info(Request::new(NodeGetInfoRequest {})).await.map(tonic::Response::into_inner)
}

async fn of(
    options: NodeOptions,
    metadata: Option<Facts>,
    node: Option<Facts>,
) -> Result<(i64, BTreeMap<String, String>), Status> {
    let info = info(options, Some(Arc::new(Given(metadata))), Some(Arc::new(Given(node)))).await?;
    assert_eq!(info.node_id, "node-1");
    Ok((info.max_volumes_per_node, info.accessible_topology.unwrap().segments.into_iter().collect()))
}

fn facts(zone: &str, size: &str) -> Facts {
    Facts {
        zone: Some(zone.to_owned()),
        size: Some(size.to_owned()),
        region: Some("westus2".to_owned()),
        ..Facts::default()
    }
}

fn zones(zone: &str) -> BTreeMap<String, String> {
    let mut segments = BTreeMap::from([(DRIVER_ZONE.to_owned(), zone.to_owned())]);
    if !zone.is_empty() {
        segments.insert(ZONE.to_owned(), zone.to_owned());
    }
    segments
}

/// Section 3.3: metadata before labels, labels alone, no zones; section 3.12: size and flags.
#[tokio::test]
async fn zone_and_limit_come_from_the_first_source_that_has_them() {
    let metadata = || Some(facts("westus2-1", "Standard_D2s_v3"));
    let node = || Some(facts("westus2-2", "Standard_D8s_v3"));
    let with = |change: fn(&mut NodeOptions)| {
        let mut options = options();
        change(&mut options);
        options
    };
    for (options, metadata, node, limit, zone) in [
        (options(), metadata(), node(), 4, "westus2-1"),
        (options(), None, node(), 16, "westus2-2"),
        (options(), metadata(), None, 4, "westus2-1"),
        (options(), Some(facts("", "")), node(), 16, "westus2-2"),
        (options(), Some(facts("0", "Standard_D2s_v3")), None, 4, ""),
        (options(), Some(facts("westus2-1", "Standard_Unknown")), None, 16, "westus2-1"),
        (with(|options| options.prefers_labels = true), metadata(), node(), 16, "westus2-2"),
        (with(|options| options.supports_zones = false), metadata(), node(), 4, ""),
        (with(|options| options.attach_limit = 7), metadata(), node(), 7, "westus2-1"),
        (with(|options| options.reserved_slots = 3), metadata(), node(), 1, "westus2-1"),
        (with(|options| options.region = Some("eastus".to_owned())), metadata(), node(), 4, ""),
        (
            with(|options| {
                options.supports_zones = false;
                options.attach_limit = 7;
            }),
            None,
            None,
            7,
            "",
        ),
    ] {
        assert_eq!(of(options.clone(), metadata, node).await.unwrap(), (limit, zones(zone)), "{options:?}");
    }
}

/// Section 3.12, trap 1, FIX: never negative; trap 2, FIX: foreign disks are subtracted; trap 5, FIX: the published number.
#[tokio::test]
async fn the_limit_is_what_is_left_for_volumes() {
    let disks = |disks: &[&str], volumes: &[&str], published| Facts {
        data_disks: Some(disks.iter().map(|disk| (*disk).to_owned()).collect()),
        volumes: Some(volumes.iter().map(|disk| (*disk).to_owned()).collect()),
        max_data_disks: published,
        ..facts("westus2-1", "Standard_D2s_v3")
    };
    for (facts, reserved, limit) in [
        (disks(&["/a", "/b"], &["/A"], None), 0, 3),
        (disks(&["/a", "/b"], &["/a", "/b", "/c"], None), 1, 3),
        (disks(&["/a", "/b"], &[], Some(12)), 1, 9),
        (disks(&["/a", "/b"], &[], None), 9, 0),
    ] {
        let options = NodeOptions { reserved_slots: reserved, ..options() };
        assert_eq!(of(options, Some(facts.clone()), None).await.unwrap().0, limit, "{facts:?}");
    }
}

#[tokio::test]
async fn a_node_that_knows_nothing_of_itself_says_so() {
    let status = of(options(), None, None).await.unwrap_err();
    assert_eq!(status.code(), Code::Internal);
    assert!(status.message().contains("neither source of the machine's zone and size answers"), "{status}");
    let status = info(NodeOptions::default(), None, None).await.unwrap_err();
    assert!(status.message().contains("set --nodeid"), "{status}");
}

/// The metadata service without a socket.
#[derive(Debug)]
struct InProcess(Router);

#[async_trait]
impl Transport for InProcess {
    async fn send(
        &self,
        request: HttpRequest<Bytes>,
    ) -> Result<HttpResponse<Bytes>, Box<dyn std::error::Error + Send + Sync>> {
        let (head, body) = self.0.clone().oneshot(request.map(Body::from)).await?.into_parts();
        Ok(HttpResponse::from_parts(head, to_bytes(body, usize::MAX).await?))
    }
}

/// Section 3.12, trap 2, FIX, on the simulated Azure and Kubernetes: a disk of the machine that is no volume takes a slot.
#[tokio::test(start_paused = true)]
async fn foreign_disks_are_those_that_the_node_does_not_name() {
    let azure = Azure::new(Options::default());
    let pools = vec![NodePool::new("workers", "worker", 1)];
    Shape { pools, ..Shape::default() }.lay_out(&azure).unwrap();
    let set = azure.documents_of_type("Microsoft.Compute/virtualMachineScaleSets").remove(0);
    let id: azure_types::ResourceId = set["id"].as_str().unwrap().parse().unwrap();
    let instance = id.child("virtualMachines", "0");
    let group = id.to_string().split("/providers/").next().unwrap().to_owned();
    let disk_ids =
        ["volume", "foreign"].map(|name| format!("{group}/providers/Microsoft.Compute/disks/{name}"));
    for disk in &disk_ids {
        let document = json!({
            "location": set["location"], "zones": ["1"], "sku": { "name": "Premium_LRS" },
            "properties": { "diskSizeGB": 8, "creationData": { "createOption": "Empty" } },
        });
        azure.put(&disk.parse().unwrap(), document).unwrap();
    }
    let disks: Vec<_> = disk_ids
        .iter()
        .enumerate()
        .map(|(lun, id)| json!({ "lun": lun, "createOption": "Attach", "managedDisk": { "id": id } }))
        .collect();
    let document = json!({
        "location": set["location"],
        "properties": { "storageProfile": { "dataDisks": disks } },
    });
    azure.put(&instance, document).unwrap();

    let transport = InProcess(MetadataService::new(azure.clone()).router());
    let service = Imds::over("http://imds/instances/workers_0".parse().unwrap(), transport);
    let metadata: Arc<dyn FactSource> = Arc::new(Metadata::new(Arc::new(service)));
    let kubernetes = Kubernetes::new(kubernetes_simulator::Options::default());
    kubernetes
        .create(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": "node-1", "annotations": { "disk.csi.azure.com/max-data-disks": "10" } },
        }))
        .unwrap();
    let attached = json!({ "status": { "volumesAttached": [
        { "name": format!("kubernetes.io/csi/disk.csi.azure.com^{}", disk_ids[0]), "devicePath": "" },
    ] } });
    kubernetes.merge_status("Node", "", "node-1", &attached).unwrap();
    let node =
        || NodeObject::new(Client::new(kubernetes.router(), "default"), "node-1", "disk.csi.azure.com");

    let limit = async |metadata: &Arc<dyn FactSource>| {
        let info = info(options(), Some(Arc::clone(metadata)), Some(Arc::new(node()))).await.unwrap();
        info.max_volumes_per_node
    };
    assert_eq!(limit(&metadata).await, 9);
    // Section 3.12, trap 1, FIX: a node that takes none says so in an event.
    let reserving = NodeOptions { reserved_slots: 9, ..options() };
    let closed = info(reserving, Some(Arc::clone(&metadata)), Some(Arc::new(node()))).await.unwrap();
    assert_eq!(closed.max_volumes_per_node, 0);
    let events = kubernetes.list("Event");
    let [event] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(event.value()["reason"], "NoVolumeSlot");
    // Without the Node nothing is called foreign, and the size decides.
    kubernetes.inject(Fault::status(503).resource("nodes").times(1_000));
    assert!(limit(&metadata).await > 0);
}
