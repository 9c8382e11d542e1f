//! Pods of Deployments behind Services.

use std::time::Duration;

use serde_json::json;
use testkit::{World, run};

const SHOP: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: default }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: nginx, ports: [{ name: http, containerPort: 8080 }] }] }
---
apiVersion: v1
kind: Service
metadata: { name: web, namespace: default }
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  selector: { app: web }
  ports: [{ port: 80, targetPort: http }]
";

/// The nodes of the pods that run.
fn nodes_of_pods(world: &World) -> Vec<String> {
    let pods = world.kubernetes.list("Pod");
    let running = pods.iter().filter(|pod| pod["status"]["phase"] == "Running");
    let mut nodes: Vec<String> =
        running.filter_map(|pod| pod["spec"]["nodeName"].as_str().map(str::to_owned)).collect();
    nodes.sort_unstable();
    nodes
}

#[test]
fn traffic_follows_the_pods_of_a_deployment() {
    run(async || {
        let world = World::builder().start().await;
        world.apply(SHOP).await;
        world.settle().await;
        let nodes = nodes_of_pods(&world);
        assert_eq!(nodes.len(), 2);
        assert_ne!(nodes[0], nodes[1]);
        let address = world.address("default/web");
        assert_eq!(world.reached(address, 80), nodes);
        let slice = world.kubernetes.get("EndpointSlice", "default", "web-0").unwrap();
        assert_eq!(slice["ports"][0]["port"], 8080, "a port may be named");

        let none = json!({"spec": {"replicas": 0}});
        world.kubernetes.merge("Deployment", "default", "web", &none).unwrap();
        let stands_idle = |world: &World| world.reached(address, 80).is_empty();
        world.until("no pod answers", Duration::from_secs(60), stands_idle).await;

        world.kubernetes.delete("Deployment", "default", "web").unwrap();
        let gone = |world: &World| {
            world.kubernetes.list("Pod").is_empty() && world.kubernetes.list("ReplicaSet").is_empty()
        };
        world.until("its pods are gone", Duration::from_secs(60), gone).await;
    });
}
