//! The node manager of one machine, using that machine's instance metadata.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use azure_simulator::imds::MetadataService;
use bytes::Bytes;
use cloud::Machines;
use cloud_node_manager::resource_manager::ResourceManager;
use cloud_node_manager::source::ThisMachine;
use controllers::{AgentOptions, MachineEventOptions, run_agent};
use http::{Request, Response};
use imds::{Imds, Transport};
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::ServiceExt as _;

use crate::kill_switch::KillSwitch;
use crate::world::World;

/// The metadata service of all machines, without a socket.
#[derive(Debug)]
struct InProcess(Router);

#[async_trait]
impl Transport for InProcess {
    async fn send(
        &self,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, Box<dyn std::error::Error + Send + Sync>> {
        let (head, body) = self.0.clone().oneshot(request.map(Body::from)).await?.into_parts();
        Ok(Response::from_parts(head, to_bytes(body, usize::MAX).await?))
    }
}

impl World {
    /// Runs a node manager on the node's machine, with `--scheduled-events=drain` and otherwise default flags, until
    /// the returned guard is dropped.
    pub fn run_node_manager(&self, node: &str) -> DropGuard {
        let endpoint = format!("http://metadata/instances/{node}").parse().expect("it is an address");
        let transport = InProcess(MetadataService::new(self.azure.clone()).router());
        let machine = Arc::new(ThisMachine::new(Imds::over(endpoint, transport), node));
        let events = MachineEventOptions {
            source: machine.clone(),
            interval: Duration::from_secs(1),
            drains: true,
            approves: false,
        };
        self.run_agent(node, machine, Some(events))
    }

    /// Runs a node manager for a node with `--use-instance-metadata=false` and otherwise default flags, until the
    /// returned guard is dropped.
    pub fn run_node_manager_by_resource_manager(&self, node: &str) -> DropGuard {
        let client = self.client_at(&self.azure, &KillSwitch::never());
        self.run_agent(node, Arc::new(ResourceManager::new(client, &self.cluster().config)), None)
    }

    fn run_agent(
        &self,
        node: &str,
        machine: Arc<dyn Machines>,
        events: Option<MachineEventOptions>,
    ) -> DropGuard {
        let options = AgentOptions {
            node: node.to_owned(),
            node_status_update_frequency: Duration::from_secs(300),
            older_labels: false,
            wait_routes: false,
            events,
            clock: self.clock(),
        };
        let stop = CancellationToken::new();
        let run = run_agent(self.client.clone(), machine, options, stop.clone());
        tokio::spawn(async move { run.await.expect("the options are sound") });
        stop.drop_guard()
    }
}
