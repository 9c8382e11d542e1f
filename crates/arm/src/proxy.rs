//! The way through an HTTPS proxy (CONNECT), as the environment asks for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

/// The proxy for HTTPS requests, and the hosts that are reached without it.
///
/// Plain HTTP is never proxied: it serves the instance metadata service and local simulators. Loopback
/// hosts are never proxied either, as Go's rule is.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxySettings {
    /// `HTTPS_PROXY`: the proxy's URL, possibly with user and password; empty for none.
    pub https: String,
    /// `NO_PROXY`: hosts, domains and networks, separated by commas.
    pub no_proxy: String,
}

impl std::fmt::Debug for ProxySettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The URL may hold a password.
        write!(f, "ProxySettings(https set: {}, no_proxy: {})", !self.https.is_empty(), self.no_proxy)
    }
}

impl ProxySettings {
    /// Reads `HTTPS_PROXY` and `NO_PROXY`, in upper or lower case.
    pub fn from_environment(environment: impl Fn(&str) -> Option<String>) -> Self {
        let either = |upper: &str, lower: &str| {
            let set = |name| environment(name).filter(|value| !value.is_empty());
            set(upper).or_else(|| set(lower)).unwrap_or_default()
        };
        Self { https: either("HTTPS_PROXY", "https_proxy"), no_proxy: either("NO_PROXY", "no_proxy") }
    }

    /// The proxy's URL for a destination, password included; none where it is reached directly.
    ///
    /// # Errors
    /// `HTTPS_PROXY` is no URL. Its value is not shown: it may hold a password.
    pub fn url_for(&self, destination: &Uri) -> Result<Option<Uri>, crate::Error> {
        let reached_directly = is_loopback(destination)
            || self.matcher().is_none_or(|matcher| matcher.intercept(destination).is_none());
        if reached_directly {
            return Ok(None);
        }
        let url =
            if self.https.contains("://") { self.https.clone() } else { format!("http://{}", self.https) };
        let url = url.trim().parse().map_err(|_| crate::Error::Configuration {
            reason: "HTTPS_PROXY is no URL: write it as http://proxy.example:3128".to_owned(),
        })?;
        Ok(Some(url))
    }

    pub(crate) fn matcher(&self) -> Option<Arc<Matcher>> {
        (!self.https.is_empty()).then(|| {
            Arc::new(Matcher::builder().https(self.https.as_str()).no(self.no_proxy.as_str()).build())
        })
    }
}

/// Connects to the destination, through the proxy where there is one for it.
#[derive(Clone)]
pub(crate) struct ProxyConnector {
    pub(crate) direct: HttpConnector,
    pub(crate) matcher: Option<Arc<Matcher>>,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Uri> for ProxyConnector {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.direct.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, destination: Uri) -> Self::Future {
        let proxy = match &self.matcher {
            Some(matcher) if !is_loopback(&destination) => matcher.intercept(&destination),
            _ => None,
        };
        match proxy {
            None => {
                let connecting = self.direct.call(destination);
                Box::pin(async move { connecting.await.map_err(Into::into) })
            }
            Some(proxy) => {
                let mut tunnel = Tunnel::new(proxy.uri().clone(), self.direct.clone());
                if let Some(authorization) = proxy.basic_auth() {
                    tunnel = tunnel.with_auth(authorization.clone());
                }
                let connecting = tunnel.call(destination);
                Box::pin(async move { connecting.await.map_err(Into::into) })
            }
        }
    }
}

fn is_loopback(destination: &Uri) -> bool {
    let Some(host) = destination.host() else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_decides_and_loopback_bypasses() {
        let settings = ProxySettings::from_environment(|name| match name {
            "https_proxy" => Some("http://user:hunter2@proxy.example:3128".into()),
            "NO_PROXY" => Some("internal.example,10.0.0.0/8".into()),
            _ => None,
        });
        assert!(!format!("{settings:?}").contains("hunter2"));
        let matcher = settings.matcher().unwrap();
        let goes = |uri: &'static str| matcher.intercept(&Uri::from_static(uri)).is_some();
        assert!(goes("https://management.azure.com/"));
        assert!(!goes("https://vault.internal.example/"));
        assert!(!goes("https://10.1.2.3/"));
        assert!(!goes("http://169.254.169.254/metadata"));
        assert!(is_loopback(&Uri::from_static("https://127.0.0.1:8443/")));
        assert!(is_loopback(&Uri::from_static("https://[::1]:8443/")));
        assert!(is_loopback(&Uri::from_static("https://localhost/")));
        assert!(!is_loopback(&Uri::from_static("https://management.azure.com/")));
    }
}
