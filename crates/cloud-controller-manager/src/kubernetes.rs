//! The connection to the Kubernetes API.

use std::sync::Arc;

use anyhow::anyhow;
use arm::ProxySettings;
use k8s::Node;
use kube::api::ListParams;
use kube::{Api, Client};
use program::kubernetes::{Address, RequestObserver};

use crate::flags::Flags;

/// The user agent of this program, whose Lease other programs use as well.
const AGENT: &str = concat!("azure-cloud-controller-manager/", env!("CARGO_PKG_VERSION"));

/// A client by the flags and the environment's proxy settings, after a first answer of the API.
///
/// # Errors
/// Those of [`program::kubernetes::connect`].
pub async fn connect(
    flags: &Flags,
    proxy: &ProxySettings,
    observer: Option<&Arc<dyn RequestObserver>>,
) -> anyhow::Result<Client> {
    let (kubeconfig, master, waits) = (&flags.kubeconfig, &flags.master, !flags.dry_run);
    let address = Address { kubeconfig, master, agent: AGENT, waits, observer };
    program::kubernetes::connect(&address, proxy).await
}

/// Lets the API validate `--node-filter-requirements`, because the API parses it.
///
/// # Errors
/// The API cannot parse it. Other failures are left to the watches, which retry.
pub async fn check_selector(client: &Client, selector: &str) -> anyhow::Result<()> {
    if selector.is_empty() {
        return Ok(());
    }
    let parameters = ListParams::default().labels(selector).limit(1);
    match Api::<Node>::all(client.clone()).list_metadata(&parameters).await {
        Err(kube::Error::Api(status)) if status.code == 400 => Err(anyhow!(
            "--node-filter-requirements={selector}: the Kubernetes API says {:?} (pass a label selector, such as \
             kubernetes.io/os=linux)",
            status.message
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::flags;

    /// A proxy that refuses, and returns the request.
    async fn refusing_proxy() -> (String, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let read = stream.read(&mut head).await.unwrap();
            stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await.unwrap();
            String::from_utf8_lossy(&head[..read]).into_owned()
        });
        (address, asked)
    }

    #[tokio::test]
    async fn the_kubernetes_api_is_reached_through_the_proxy() {
        arm::install_crypto_provider();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        std::fs::write(
            &path,
            "{current-context: a, contexts: [{name: a, context: {cluster: a}}], \
             clusters: [{name: a, cluster: {server: 'https://kube.example:6443'}}]}",
        )
        .unwrap();
        let (address, asked) = refusing_proxy().await;
        let url = format!("http://user:hunter2@{address}");
        let proxy =
            ProxySettings::from_environment(|name| (name == "HTTPS_PROXY").then(|| url.clone())).unwrap();
        let arguments = ["x".to_owned(), format!("--kubeconfig={}", path.display()), "--dry-run".to_owned()];
        let line = flags::parse(arguments.map(Into::into)).unwrap();
        let error = crate::in_one_line(&connect(&line.flags, &proxy, None).await.err().unwrap());
        let through = format!(
            "https://kube.example:6443/ through the proxy http://{address} of HTTPS_PROXY cannot be reached"
        );
        assert!(error.contains(&through) && !error.contains("hunter2"), "{error}");
        let asked = asked.await.unwrap().to_ascii_lowercase();
        assert!(asked.starts_with("connect kube.example:6443 http/1.1\r\n"), "{asked}");
        assert!(asked.contains("proxy-authorization: basic "), "{asked}");
    }
}
