//! A leader that is cut off from Kubernetes, and the replica that takes over.

use std::time::Duration;

use crate::world::World;

/// The maximum wait for a write during which the leader is cut off.
const MAX_WAIT_FOR_WRITE: Duration = Duration::from_secs(20);

impl World {
    /// Cuts the leader off from Kubernetes, during a write to Azure if one begins soon. It still reaches Azure, and
    /// works until it notices that it has lost its lease; a second replica takes over.
    ///
    /// The world must have replicas ([`crate::WorldBuilder::replicas`]).
    pub async fn change_leader(&mut self) {
        let begin = tokio::time::Instant::now();
        while self.azure.running_operations() == 0 && begin.elapsed() < MAX_WAIT_FOR_WRITE {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let leader = self.running.take().expect("the controllers are running");
        leader.link.cancel();
        self.retired.push(leader);
        self.start();
    }
}
