//! The command line of the program that Cerulean replaces, when it runs against simulators.

use std::path::Path;

/// The arguments that upstream's controller manager needs beside those that ours takes, too. The simulated Kubernetes
/// reads JSON alone; there is no other API server to authorize requests for metrics; and upstream's own limit on its
/// requests to Kubernetes is not part of the comparison.
pub fn upstream_arguments(kubeconfig: &Path) -> Vec<String> {
    let kubeconfig = kubeconfig.display();
    vec![
        "--cloud-provider=azure".to_owned(),
        "--kube-api-content-type=application/json".to_owned(),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--kube-api-qps=1000".to_owned(),
        "--kube-api-burst=1000".to_owned(),
    ]
}
