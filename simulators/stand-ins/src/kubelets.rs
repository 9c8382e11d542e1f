//! The kubelets of all machines: one for each that runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::kubelet::Kubelet;
use crate::{Machine, Machines, Pace, Running, WallClock};

/// The kubelets of all machines.
pub struct Kubelets;

impl Kubelets {
    /// Runs a kubelet for each running machine until `shutdown`.
    ///
    /// Each registers its Node as a kubelet with `--cloud-provider=external` does: labels for host name, operating
    /// system and architecture, the taint `node.cloudprovider.kubernetes.io/uninitialized`, host name and address,
    /// capacity, condition Ready, and a provider ID only if the machine has one. It then renews its Lease in
    /// `kube-node-lease` every 10 s and its status every 5 minutes or after another client changed it. When a machine
    /// stops or goes, its kubelet ends at once; the Node stays, as it does in a cluster. A machine that starts again
    /// registers again if its Node is gone.
    pub fn spawn(
        client: kube::Client,
        machines: Arc<dyn Machines>,
        clock: WallClock,
        shutdown: CancellationToken,
    ) -> Running {
        Kubelets::spawn_at(Pace::default(), client, machines, clock, shutdown)
    }

    /// As [`Kubelets::spawn`], at another pace.
    pub fn spawn_at(
        pace: Pace,
        client: kube::Client,
        machines: Arc<dyn Machines>,
        clock: WallClock,
        shutdown: CancellationToken,
    ) -> Running {
        Running::to_its_end(follow(pace, client, machines, clock, shutdown))
    }
}

async fn follow(
    pace: Pace,
    client: kube::Client,
    machines: Arc<dyn Machines>,
    clock: WallClock,
    shutdown: CancellationToken,
) {
    let mut running: BTreeMap<String, (Machine, CancellationToken)> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    let mut changed = machines.changed();
    loop {
        changed.mark_unchanged();
        let wanted: BTreeMap<String, Machine> = machines
            .machines()
            .into_iter()
            .filter(|machine| machine.running)
            .map(|machine| (machine.name.clone(), machine))
            .collect();
        running.retain(|name, (machine, stop)| {
            let stays = wanted.get(name) == Some(machine);
            if !stays {
                stop.cancel();
            }
            stays
        });
        for (name, machine) in wanted {
            running.entry(name).or_insert_with(|| {
                let stop = shutdown.child_token();
                let kubelet = Kubelet::new(pace, client.clone(), machine.clone(), Arc::clone(&clock));
                tasks.spawn(stop.clone().run_until_cancelled_owned(kubelet.run()));
                (machine, stop)
            });
        }
        tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_) = tasks.join_next() => {}
            // Without a sender the machines never change again.
            result = changed.changed() => if result.is_err() {
                shutdown.cancelled().await;
                break;
            }
        }
    }
    while tasks.join_next().await.is_some() {}
}
