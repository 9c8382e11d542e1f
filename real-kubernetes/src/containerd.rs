//! containerd as a node runs it.

use std::path::{Path, PathBuf};

/// The control group of the containers of every containerd that serves kubelets.
pub(crate) const CONTROL_GROUP: &str = "k8s.io";

/// The folder that has one of each container that runs, or did when containerd was killed; named after it.
pub(crate) fn running(folder: &Path) -> PathBuf {
    folder.join("state/io.containerd.runtime.v2.task").join(CONTROL_GROUP)
}

/// Its configuration, with all files in `folder`. Pods are in a network of their own on each node, which leads nowhere else.
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

/// The network of a node's pods, for the `number`th node.
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
