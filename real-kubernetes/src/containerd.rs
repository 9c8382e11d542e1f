//! The configuration of a node's containerd.

use std::path::{Path, PathBuf};

/// The control group that containerd creates for the containers of kubelets, on any machine.
pub(crate) const CONTROL_GROUP: &str = "k8s.io";

/// The folder with an entry for each running container, also for those that ran when containerd was killed; entries are
/// named after their containers.
pub(crate) fn running(folder: &Path) -> PathBuf {
    folder.join("state/io.containerd.runtime.v2.task").join(CONTROL_GROUP)
}

/// The configuration, with all files in `folder`. Each node has its own pod network, which is not connected to others.
pub(crate) fn configuration(folder: &Path, plugins: &Path, sandbox_image: &str) -> String {
    let (folder, plugins) = (folder.display(), plugins.display());
    format!(
        r#"version = 2
root = "{folder}/containerd"
state = "{folder}/state"

[grpc]
  address = "{folder}/containerd.sock"

[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"

[plugins."io.containerd.grpc.v1.cri"]
  # Not every machine lets its processes be spared more than their parents.
  restrict_oom_score_adj = true
  sandbox_image = "{sandbox_image}"

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder}/network"
"#
    )
}

/// The configuration of the pod network of the `number`th node.
pub(crate) fn network(folder: &Path, number: usize) -> String {
    let pods = format!("10.244.{number}.0/24");
    let addresses = serde_json::json!({
        "type": "host-local", "dataDir": folder.join("addresses"), "subnet": pods, "routes": [{"dst": "0.0.0.0/0"}],
    });
    let list = serde_json::json!({
        "cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipMasq": false, "ipam": addresses}],
    });
    format!("{list:#}\n")
}
