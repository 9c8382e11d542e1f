//! A platform engineer who follows our guides: a folder with their files, and a shell.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::tools::Tools;
use crate::e2e::machines::{GATEWAY, Machines, PUBLIC_REGISTRY};
use crate::program::root;

/// The tag of the images.
pub const TAG: &str = "e2e";
/// The cluster's name in Azure.
pub const CLUSTER: &str = "installed";

/// A platform engineer who follows the guide.
pub struct Reader {
    /// With the files that the guide mentions.
    pub folder: PathBuf,
    /// The values of the established release.
    pub values: PathBuf,
    environment: Vec<(String, String)>,
}

impl Reader {
    /// Writes the reader's files. `environment` leads the controller manager to Azure.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn new(folder: &Path, environment: &Value) -> anyhow::Result<Self> {
        let own = folder.join("reader");
        std::fs::create_dir_all(&own)?;
        std::os::unix::fs::symlink(root().join("deploy"), own.join("deploy"))?;
        std::fs::copy("/etc/kubernetes/azure.json", own.join("azure.json"))?;
        std::fs::write(own.join("images.yaml"), images().to_string())?;
        let values = folder.join("values.json");
        std::fs::write(&values, established_values(environment).to_string())?;
        let variables = environment.as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let environment =
            variables.map(|variable| (text(&variable["name"]), text(&variable["value"]))).collect();
        Ok(Self { folder: own, values, environment })
    }

    /// The variables of the reader's shell.
    pub fn variables(&self, machines: &Machines, tools: &Tools<'_>) -> Vec<(String, String)> {
        let kubeconfig = machines.cluster.servers.kubeconfig.display().to_string();
        let mut variables = self.environment.clone();
        for (_, excepted) in variables.iter_mut().filter(|(name, _)| name == "NO_PROXY") {
            // The reader's kubeconfig names the API server itself.
            *excepted = format!("{excepted},{GATEWAY}");
        }
        variables.extend([
            ("KUBECONFIG".to_owned(), kubeconfig),
            ("CLUSTER".to_owned(), CLUSTER.to_owned()),
            ("REVISION".to_owned(), "1".to_owned()),
            ("PATH".to_owned(), tools.path()),
        ]);
        variables
    }
}

/// The values with which the established release was installed: those that people set, and what leads to this Azure.
fn established_values(environment: &Value) -> Value {
    json!({
        "infra": {"clusterName": CLUSTER},
        "cloudControllerManager": {
            "allocateNodeCidrs": "false",
            "configureCloudRoutes": "false",
            "clusterCIDR": "10.244.0.0/16",
            "logVerbosity": "2",
            "env": environment,
        },
        "cloudNodeManager": {"waitRoutes": "false"},
    })
}

/// The reader's `images.yaml`.
fn images() -> Value {
    let image = json!({"imageRepository": PUBLIC_REGISTRY, "imageTag": TAG});
    json!({"cloudControllerManager": image, "cloudNodeManager": image})
}
