//! The Kubernetes API behind a proxy, over real sockets.

use arm::ProxySettings;
use azure_simulator::tunnel::Tunnels;
use cloud_controller_manager::{flags, in_one_line, kubernetes};
use kubernetes_simulator::Kubernetes;
use tokio_util::sync::CancellationToken;

struct Fixture {
    proxy: Tunnels,
    files: tempfile::TempDir,
    kubeconfig: String,
    stop: CancellationToken,
}

impl Fixture {
    /// An API server that is reachable as `kubernetes.example` only through the proxy.
    async fn new() -> Self {
        arm::install_crypto_provider();
        let kubernetes = Kubernetes::new(kubernetes_simulator::Options::default());
        let stop = CancellationToken::new();
        let address = kubernetes.serve_https(([127, 0, 0, 1], 0).into(), stop.clone()).await.unwrap();
        let proxy = Tunnels::start(address, stop.clone()).await.unwrap();
        let kubeconfig = kubernetes.kubeconfig("https://kubernetes.example:6443").unwrap();
        let server = "server: \"https://kubernetes.example:6443\"";
        assert!(kubeconfig.contains(server), "{kubeconfig}");
        let kubeconfig = kubeconfig.replace(server, &format!("{server}\n    tls-server-name: localhost"));
        Self { proxy, files: tempfile::tempdir().unwrap(), kubeconfig, stop }
    }

    async fn reach(&self, kubeconfig: &str, variables: &[(&str, &str)]) -> Result<(), String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let path = self.files.path().join("kubeconfig");
        std::fs::write(&path, kubeconfig).unwrap();
        let arguments =
            ["program".to_owned(), format!("--kubeconfig={}", path.display()), "--dry-run".to_owned()];
        let line = flags::parse(arguments.map(Into::into)).unwrap();
        let proxy = ProxySettings::from_environment(variable).map_err(|error| error.to_string())?;
        let connected = kubernetes::connect(&line.flags, &proxy, None).await;
        connected.map(|_| ()).map_err(|error| in_one_line(&error))
    }
}

#[tokio::test]
async fn the_kubernetes_api_is_reached_through_the_proxy_that_was_chosen() {
    let fixture = Fixture::new().await;
    let url = format!("http://user:hunter2@{}", fixture.proxy.address());
    for name in ["HTTPS_PROXY", "https_proxy"] {
        // Empty entries and stars are common there.
        let variables = [(name, url.as_str()), ("NO_PROXY", "*.svc,,.cluster.local,10.0.0.0/8,")];
        fixture.reach(&fixture.kubeconfig, &variables).await.unwrap();
    }
    let own = fixture
        .kubeconfig
        .replace("    tls-server-name", &format!("    proxy-url: {url}\n    tls-server-name"));
    fixture.reach(&own, &[("HTTPS_PROXY", "http://127.0.0.1:1")]).await.unwrap();
    {
        let asked = fixture.proxy.asked();
        assert_eq!(asked.len(), 3);
        for head in asked.iter() {
            assert!(head.starts_with("CONNECT kubernetes.example:6443 "), "{head}");
            assert!(head.contains("Proxy-Authorization: Basic dXNlcjpodW50ZXIy\r\n"), "{head}");
        }
    }
    let excepted = [("HTTPS_PROXY", url.as_str()), ("NO_PROXY", "kubernetes.example")];
    let error = fixture.reach(&fixture.kubeconfig, &excepted).await.unwrap_err();
    assert!(!error.contains("proxy"), "{error}");
    assert_eq!(
        fixture.proxy.asked().len(),
        3,
        "the server is unreachable without the proxy, which was not used"
    );
    fixture.stop.cancel();
}

#[tokio::test]
async fn a_proxy_that_is_down_or_unusable_is_named_without_its_password() {
    let fixture = Fixture::new().await;
    for (url, words) in [
        (
            "http://user:hunter2@127.0.0.1:1",
            "through the proxy http://127.0.0.1:1 of HTTPS_PROXY cannot be reached",
        ),
        ("socks5://user:hunter2@127.0.0.1:1", "HTTPS_PROXY: socks5 proxies are not supported"),
        ("http://user:hunter2 @127.0.0.1:1", "HTTPS_PROXY: is not the URL of a proxy"),
    ] {
        let error = fixture.reach(&fixture.kubeconfig, &[("HTTPS_PROXY", url)]).await.unwrap_err();
        assert!(error.contains(words) && !error.contains("hunter2"), "{error}");
    }
    fixture.stop.cancel();
}
