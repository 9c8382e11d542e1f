//! Machines of the simulated Azure whose custom data makes them nodes of the simulated Kubernetes.

use std::sync::Arc;
use std::time::Duration;

use azure_simulator::{Azure, Guest, GuestReport, GuestStart};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kubernetes_simulator::Kubernetes;
use serde_json::json;
use simulated_cluster::Shape;

/// A minimal cloud-init for the only command of these machines: join, after a minute.
struct CloudInit(Kubernetes);

impl Guest for CloudInit {
    fn start(&self, start: GuestStart) -> BoxFuture<'static, GuestReport> {
        let kubernetes = self.0.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let data = start.custom_data.map(|data| String::from_utf8(data).unwrap()).unwrap_or_default();
            if !data.starts_with("#cloud-config") || !data.contains("kubeadm join") {
                return GuestReport::failed("there is nothing to do");
            }
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": start.computer_name},
                "status": {"addresses": [{"type": "InternalIP", "address": start.addresses[0].to_string()}]}});
            kubernetes.create(node).unwrap();
            GuestReport::default().extension("bootstrap", Ok("/run/cluster-api/bootstrap-success.complete"))
        }
        .boxed()
    }
}

/// The names of all nodes, in their order.
fn nodes(kubernetes: &Kubernetes) -> Vec<String> {
    kubernetes.list("Node").iter().map(|node| node.name().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn custom_data_makes_machines_nodes() {
    let kubernetes = Kubernetes::new(kubernetes_simulator::Options::default());
    let shape = Shape { pools: Vec::new(), ..Shape::default() };
    let azure = Azure::new(azure_simulator::Options {
        subscription: shape.subscription.clone(),
        region: shape.region.clone(),
        ..Default::default()
    });
    shape.lay_out(&azure).unwrap();
    azure.set_guest(Arc::new(CloudInit(kubernetes.clone())));
    let subnet = shape.network().child("subnets", &shape.subnet);
    let set = |custom_data: &str, prefix: &str| {
        json!({"location": shape.region, "sku": {"name": "Standard_D2s_v5", "capacity": 2},
        "properties": {"upgradePolicy": {"mode": "Manual"}, "virtualMachineProfile": {
            "osProfile": {"computerNamePrefix": prefix, "adminUsername": "capi", "customData": custom_data},
            "networkProfile": {"networkInterfaceConfigurations": [{"name": "nic", "properties": {
                "primary": true, "ipConfigurations": [{"name": "ip", "properties": {"subnet": {"id": subnet}}}]}}]},
            "extensionProfile": {"extensions": [{"name": "bootstrap", "properties": {
                "publisher": "Microsoft.Azure.ContainerUpstream", "type": "CAPZ.Linux.Bootstrapping",
                "typeHandlerVersion": "1.0"}}]},
        }}})
    };
    // "#cloud-config\nruncmd: [kubeadm join]\n"
    let joins = "I2Nsb3VkLWNvbmZpZwpydW5jbWQ6IFtrdWJlYWRtIGpvaW5dCg==";
    azure.put(&shape.scale_set("joining"), set(joins, "joining")).unwrap();
    azure.put(&shape.scale_set("idle"), set("Z28=", "idle")).unwrap();
    assert_eq!(nodes(&kubernetes), [""; 0]);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(nodes(&kubernetes), ["joining000000", "joining000001"]);
    let address =
        kubernetes.get("Node", "", "joining000000").unwrap()["status"]["addresses"][0]["address"].clone();
    let nic = shape.scale_set("joining").child("virtualMachines", "0").child("networkInterfaces", "nic");
    let nic = azure.document(&nic).unwrap();
    assert_eq!(nic["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"], address);
    let of = |name: &str| azure.document(&shape.scale_set(name).child("virtualMachines", "0")).unwrap();
    let resources = of("joining")["resources"].clone();
    assert_eq!(resources[0]["properties"]["provisioningState"], "Succeeded");
    let agent = &of("idle")["properties"]["instanceView"]["vmAgent"];
    assert_eq!(agent["statuses"][0]["displayStatus"], "Not Ready");
    // More machines are more nodes.
    azure.scale(&shape.scale_set("joining"), 3).unwrap();
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(nodes(&kubernetes).len(), 3);
}
