//! The offered features: those of AKS that are still in preview and that a simulated type depends on. Features that
//! have left preview need no registration and are not listed.

/// Kubelets store their data on temporary disks.
pub(crate) const KUBELET_DISK: &str = "Microsoft.ContainerService/KubeletDisk";
/// Nodes without SSH access.
pub(crate) const DISABLE_SSH: &str = "Microsoft.ContainerService/DisableSSHPreview";
/// Other settings of kube-proxy.
pub(crate) const KUBE_PROXY_CONFIGURATION: &str = "Microsoft.ContainerService/KubeProxyConfigurationPreview";
/// The predecessor of workload identities.
pub(crate) const POD_IDENTITY: &str = "Microsoft.ContainerService/EnablePodIdentityPreview";
/// A request's header of the same name may name features for this request alone.
pub(crate) const HTTP_CUSTOM_FEATURES: &str = "Microsoft.ContainerService/AKSHTTPCustomFeatures";

/// All of them, as `Microsoft.Features` lists them.
pub(crate) static OFFERED: [&str; 5] =
    [HTTP_CUSTOM_FEATURES, DISABLE_SSH, POD_IDENTITY, KUBELET_DISK, KUBE_PROXY_CONFIGURATION];
