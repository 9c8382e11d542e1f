//! The connection to the Kubernetes API.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use arm::ProxySettings;
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::{Client, Config};

use crate::kubeconfig;

mod credential;
mod renewed_file;
mod tls;
mod transport;

pub use transport::RequestObserver;

/// First pause before an unreachable API is tried again; doubles each time up to the maximum. A starting control
/// plane takes about a minute.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(15);
/// How long the API may take to answer at start.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The address in `--master`. Without a scheme it is HTTPS if certificates are configured and HTTP otherwise, as in
/// Kubernetes' own programs.
fn master_url(text: &str, has_tls: bool) -> String {
    match (text.contains("://"), has_tls) {
        (true, _) => text.to_owned(),
        (false, true) => format!("https://{text}"),
        (false, false) => format!("http://{text}"),
    }
}

/// The API's address, from the command line.
#[derive(Clone, Copy)]
pub struct Address<'a> {
    /// `--kubeconfig`; empty inside a pod.
    pub kubeconfig: &'a str,
    /// `--master`, which overrides the kubeconfig; empty if not given.
    pub master: &'a str,
    /// The user agent, which identifies the program in the API's logs.
    pub agent: &'static str,
    /// Whether to wait for an API that cannot be reached yet.
    pub waits: bool,
    /// Counts requests.
    pub observer: Option<&'a Arc<dyn RequestObserver>>,
}

/// A client configured by the command line and the environment's proxy settings, after the API's first response.
///
/// # Errors
/// The kubeconfig is unreadable or incomplete, it is missing outside a pod, or the API refuses this client. An API that
/// cannot be reached, or answers 429 or 5xx, is an error only if `waits` is not set.
pub async fn connect(address: &Address<'_>, proxy: &ProxySettings) -> anyhow::Result<Client> {
    let mut config = if address.kubeconfig.is_empty() {
        Config::incluster().context(
            "--kubeconfig is not given and not running in a pod with a service account: name a kubeconfig",
        )?
    } else {
        let path = address.kubeconfig;
        let file = kubeconfig::read(path).with_context(|| format!("--kubeconfig: cannot read {path}"))?;
        kubeconfig::config_of(file).with_context(|| format!("--kubeconfig: {path} is incomplete"))?
    };
    if !address.master.is_empty() {
        let has_tls = config.root_cert.is_some() || config.accept_invalid_certs;
        let url = master_url(address.master, has_tls);
        config.cluster_url = url.parse().with_context(|| {
            format!("--master={} is not a URL (pass one such as https://10.0.0.1:443)", address.master)
        })?;
    }
    config.headers.push((USER_AGENT, HeaderValue::from_static(address.agent)));
    let own = config.proxy_url.clone();
    let route = kubeconfig::apply_proxy(&mut config, proxy)?;
    let settings = match own {
        Some(url) => ProxySettings::only(&url.to_string(), "proxy-url")?,
        None => proxy.clone(),
    };
    // It does not retry: retries belong to the controllers' queues, and a late retry of a write after leadership was
    // lost is worse than an error.
    let client = transport::client(&config, settings, CONNECT_TIMEOUT, address.observer.cloned()).await;
    let client = client.context("the Kubernetes client cannot be set up")?;
    let mut pause = MIN_PAUSE;
    loop {
        let failure = match probe(&client, &route).await {
            Ok(version) => {
                let (address, proxy) = (&route.address, route.proxy.as_deref().unwrap_or_default());
                tracing::info!(address, proxy, version, "Reached the Kubernetes API");
                return Ok(client);
            }
            Err(failure) => failure,
        };
        if !failure.is_temporary || !address.waits {
            return Err(failure.error);
        }
        tracing::warn!("{:#}; trying again in {} s", failure.error, pause.as_secs());
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// A client of the API that a kubeconfig leads to, which was read elsewhere. It is not asked whether the API answers. The
/// kubeconfig may name no files and no command: it is another machine's.
///
/// # Errors
/// The kubeconfig is unreadable, incomplete, or names a file or a command.
pub async fn client_of(text: &[u8], agent: &'static str, proxy: &ProxySettings) -> anyhow::Result<Client> {
    let mut config = kubeconfig::config_of(kubeconfig::read_foreign(text)?)?;
    config.headers.push((USER_AGENT, HeaderValue::from_static(agent)));
    let own = config.proxy_url.clone();
    kubeconfig::apply_proxy(&mut config, proxy)?;
    let settings = match own {
        Some(url) => ProxySettings::only(&url.to_string(), "proxy-url")?,
        None => proxy.clone(),
    };
    transport::client(&config, settings, CONNECT_TIMEOUT, None).await
}

/// Why the API cannot be used.
struct Failure {
    error: anyhow::Error,
    /// Whether waiting may help.
    is_temporary: bool,
}

/// Requests the API's version.
async fn probe(client: &Client, route: &kubeconfig::Route) -> Result<String, Failure> {
    match tokio::time::timeout(CONNECT_TIMEOUT, client.apiserver_version()).await {
        Ok(Ok(version)) => Ok(version.git_version),
        Ok(Err(kube::Error::Api(status))) => Err(Failure {
            is_temporary: status.code == 429 || status.code >= 500,
            error: match status.code {
                429 | 500.. => {
                    let what = format!("does not serve: {} {}", status.code, status.message);
                    anyhow!(route.failed(&what))
                }
                _ => anyhow!("the Kubernetes API at {route} refuses us: {} {}", status.code, status.message),
            },
        }),
        Ok(Err(error)) => Err(Failure {
            is_temporary: !is_distrusted(&error),
            error: anyhow::Error::new(error).context(route.failed("cannot be reached")),
        }),
        Err(_) => Err(Failure {
            is_temporary: true,
            error: anyhow!(route.failed(&format!("did not answer within {} s", CONNECT_TIMEOUT.as_secs()))),
        }),
    }
}

/// Whether the two ends do not agree on certificates or on TLS. Waiting does not help.
fn is_distrusted(error: &kube::Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if error.is::<rustls::Error>() || inner.is_some_and(|inner| inner.is::<rustls::Error>()) {
            return true;
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
