//! The way to the Kubernetes API, and who may read our metrics.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use arm::ProxySettings;
use async_trait::async_trait;
use k8s::Node;
use k8s::api::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s::api::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{ListParams, PostParams};
use kube::config::Kubeconfig;
use kube::{Api, Client, Config};
use telemetry::server::Authorizer;

use crate::flags::Flags;
use crate::kubeconfig;

/// How long the API may take to answer at start.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The address that `--master` names. Without a scheme it is HTTPS if anything is said of certificates and HTTP
/// otherwise, as Kubernetes' own programs read it.
fn master_url(text: &str, has_tls: bool) -> String {
    match (text.contains("://"), has_tls) {
        (true, _) => text.to_owned(),
        (false, true) => format!("https://{text}"),
        (false, false) => format!("http://{text}"),
    }
}

/// A client as the flags and the environment's proxy settings say, which the API has answered.
///
/// # Errors
/// The kubeconfig is unreadable or incomplete, there is none and we run in no pod, or the API does not
/// answer within ten seconds.
pub async fn connect(flags: &Flags, proxy: &ProxySettings) -> anyhow::Result<Client> {
    let mut config = if flags.kubeconfig.is_empty() {
        Config::incluster().context(
            "--kubeconfig is not given and this is no pod with a service account: name a kubeconfig",
        )?
    } else {
        let path = &flags.kubeconfig;
        let file =
            Kubeconfig::read_from(path).with_context(|| format!("--kubeconfig: cannot read {path}"))?;
        kubeconfig::config_of(file).with_context(|| format!("--kubeconfig: {path} is incomplete"))?
    };
    if !flags.master.is_empty() {
        let has_tls = config.root_cert.is_some() || config.accept_invalid_certs;
        let url = master_url(&flags.master, has_tls);
        config.cluster_url = url.parse().with_context(|| {
            format!("--master={} is no URL (pass one such as https://10.0.0.1:443)", flags.master)
        })?;
    }
    let route = kubeconfig::apply_proxy(&mut config, proxy)?;
    // Retries belong to the controllers' queues: a write that is repeated late, behind the elector's back,
    // is worse than an error.
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    let client = Client::try_from(config).context("the Kubernetes client cannot be set up")?;
    match tokio::time::timeout(CONNECT_TIMEOUT, client.apiserver_version()).await {
        Ok(Ok(version)) => {
            let (address, proxy) = (&route.address, route.proxy.as_deref().unwrap_or_default());
            tracing::info!(address, proxy, version = version.git_version, "Reached the Kubernetes API");
            Ok(client)
        }
        Ok(Err(kube::Error::Api(status))) => {
            Err(anyhow!("the Kubernetes API at {route} refuses us: {} {}", status.code, status.message))
        }
        Ok(Err(error)) => Err(anyhow::Error::new(error).context(route.failed("cannot be reached"))),
        Err(_) => {
            Err(anyhow!(route.failed(&format!("did not answer within {} s", CONNECT_TIMEOUT.as_secs()))))
        }
    }
}

/// Has the API judge `--node-filter-requirements`, because it is the one that reads it.
///
/// # Errors
/// The API cannot read it. Other answers are left to the watches, which try again.
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

/// Asks the Kubernetes API who a token belongs to and what that user may read
/// (delegated authentication and authorization).
pub struct DelegatedAuthorizer {
    tokens: Api<TokenReview>,
    access: Api<SubjectAccessReview>,
}

impl DelegatedAuthorizer {
    /// An authorizer that asks through `client`.
    pub fn new(client: &Client) -> Self {
        Self { tokens: Api::all(client.clone()), access: Api::all(client.clone()) }
    }

    async fn ask(&self, token: &str, path: &str) -> kube::Result<bool> {
        let review = TokenReview {
            spec: TokenReviewSpec { token: Some(token.to_owned()), ..Default::default() },
            ..Default::default()
        };
        let status = self.tokens.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
        let (Some(true), Some(user)) = (status.authenticated, status.user) else { return Ok(false) };
        let attributes = NonResourceAttributes { path: Some(path.to_owned()), verb: Some("get".to_owned()) };
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                non_resource_attributes: Some(attributes),
                user: user.username,
                uid: user.uid,
                groups: user.groups,
                ..Default::default()
            },
            ..Default::default()
        };
        let answer = self.access.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}

#[async_trait]
impl Authorizer for DelegatedAuthorizer {
    async fn may_get(&self, token: &str, path: &str) -> bool {
        // The charts in use grant no reviews: then nobody may read, as with the program replaced.
        self.ask(token, path).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "cannot find out who may read metrics");
            false
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::flags;

    /// A proxy that refuses, and tells what it was asked for.
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

    #[test]
    fn a_master_without_a_scheme_is_read_as_kubernetes_own_programs_read_it() {
        for (text, has_tls, url) in [
            ("https://api:6443", false, "https://api:6443"),
            ("http://api", true, "http://api"),
            ("api:6443", true, "https://api:6443"),
            ("10.0.0.1:8080", false, "http://10.0.0.1:8080"),
        ] {
            assert_eq!(master_url(text, has_tls), url, "{text}");
        }
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
        let arguments = ["x".to_owned(), format!("--kubeconfig={}", path.display())];
        let line = flags::parse(arguments.map(Into::into)).unwrap();
        let error = crate::in_one_line(&connect(&line.flags, &proxy).await.err().unwrap());
        let through = format!(
            "https://kube.example:6443/ through the proxy http://{address} of HTTPS_PROXY cannot be reached"
        );
        assert!(error.contains(&through) && !error.contains("hunter2"), "{error}");
        let asked = asked.await.unwrap().to_ascii_lowercase();
        assert!(asked.starts_with("connect kube.example:6443 http/1.1\r\n"), "{asked}");
        assert!(asked.contains("proxy-authorization: basic "), "{asked}");
    }
}
