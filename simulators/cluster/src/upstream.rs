//! How the program that Cerulean replaces is started over simulators.

use std::path::Path;

/// What upstream's controller manager needs on its command line beside what ours needs. The simulated Kubernetes reads
/// JSON alone; it has no other API server to ask who may ask for metrics; and upstream's own limit on its calls to
/// Kubernetes is no part of what it is compared in.
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
