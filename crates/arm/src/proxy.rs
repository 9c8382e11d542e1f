//! HTTP proxies (CONNECT), as configured in the environment.
//!
//! Which requests use the proxy follows Go's rules, because clusters that run the Go programs today have their
//! variables set for these. Two differences: plain HTTP is never proxied (it serves the instance metadata service and
//! local simulators), and SOCKS proxies are refused.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use ipnet::IpNet;
use tokio::net::TcpStream;
use tower::Service;

use crate::Error;
use crate::resolver::Resolver;

/// The instance metadata service is link-local to the machine: a proxy could only reach another machine's.
const METADATA_SERVICE: &str = "169.254.169.254";

/// Which requests go through which proxy.
#[derive(Debug, Clone, Default)]
pub struct ProxySettings {
    proxy: Option<Proxy>,
    /// Hosts that are reached without it, besides this machine and hosts without TLS.
    exceptions: Vec<Exception>,
    /// Whether all hosts are reached through it.
    without_exception: bool,
}

/// One proxy. Neither `Debug` nor any error shows its password.
#[derive(Clone)]
struct Proxy {
    /// Without user and password.
    url: Uri,
    with_password: Uri,
    authorization: Option<HeaderValue>,
    /// The variable that names it.
    variable: &'static str,
}

#[derive(Debug, Clone)]
enum Exception {
    Everybody,
    Network(IpNet),
    Address(IpAddr, Option<u16>),
    Domain {
        /// In lower case, with a dot in front.
        suffix: String,
        /// Whether the domain itself is included, and not only its subdomains.
        itself: bool,
        port: Option<u16>,
    },
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.url.to_string().trim_end_matches('/'), self.variable)
    }
}

impl ProxySettings {
    /// Reads `HTTPS_PROXY` and `NO_PROXY`, in upper or lower case. A proxy without a scheme is an HTTP one.
    ///
    /// Errors: the proxy is not a URL, or not an HTTP or HTTPS proxy. The text names the variable and not its value,
    /// which may contain a password.
    pub fn from_environment(environment: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let either = |names: [&'static str; 2]| {
            names.into_iter().find_map(|name| {
                let value = environment(name)?.trim().to_owned();
                (!value.is_empty()).then_some((name, value))
            })
        };
        let proxy = match either(["HTTPS_PROXY", "https_proxy"]) {
            Some((name, url)) => Some(Proxy::read(&url, name)?),
            None => None,
        };
        let list = either(["NO_PROXY", "no_proxy"]).map(|(_, list)| list).unwrap_or_default();
        let exceptions = list.split(',').filter_map(|entry| Exception::read(entry.trim())).collect();
        Ok(Self { proxy, exceptions, without_exception: false })
    }

    /// Sends everything through this proxy; `named` names it in errors.
    ///
    /// # Errors
    /// It is not a URL, or not an HTTP or HTTPS proxy. The text does not contain it.
    pub fn only(url: &str, named: &'static str) -> Result<Self, Error> {
        Ok(Self { proxy: Some(Proxy::read(url, named)?), exceptions: Vec::new(), without_exception: true })
    }

    /// The proxy's URL for a destination, password included; `None` if it is reached directly.
    pub fn url_for(&self, destination: &Uri) -> Option<&Uri> {
        self.proxy_for(destination).map(|proxy| &proxy.with_password)
    }

    /// The proxy for a destination in errors: its URL without user and password, and its variable; `None` if the
    /// destination is reached directly.
    pub fn describe_for(&self, destination: &Uri) -> Option<String> {
        self.proxy_for(destination).map(ToString::to_string)
    }

    fn proxy_for(&self, destination: &Uri) -> Option<&Proxy> {
        let proxy = self.proxy.as_ref()?;
        if self.without_exception {
            return Some(proxy);
        }
        let host = destination.host()?.trim_start_matches('[').trim_end_matches(']');
        if destination.scheme_str() != Some("https") || host == METADATA_SERVICE {
            return None;
        }
        let port = destination.port_u16().unwrap_or(443);
        let address: Option<IpAddr> = host.parse().ok();
        let here = host.eq_ignore_ascii_case("localhost") || address.is_some_and(|ip| ip.is_loopback());
        let host = host.to_ascii_lowercase();
        let excepted = here || self.exceptions.iter().any(|exception| exception.covers(&host, address, port));
        (!excepted).then_some(proxy)
    }

    /// Whether the connection to the proxy itself needs TLS.
    pub(crate) fn needs_tls(&self) -> bool {
        self.proxy.as_ref().is_some_and(|proxy| proxy.url.scheme_str() == Some("https"))
    }
}

impl Proxy {
    fn read(url: &str, variable: &'static str) -> Result<Self, Error> {
        let bad = |why: &str| Error::Configuration { reason: format!("{variable}: {why}") };
        let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let scheme = url.split("://").next().unwrap_or_default();
        if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") {
            return Err(bad(&format!(
                "{scheme} proxies are not supported: give the URL of an http or https proxy"
            )));
        }
        let no_url = || {
            bad(
                "is not the URL of a proxy: give http://host:port, with signs in user and password escaped as %40",
            )
        };
        let matcher = Matcher::builder().https(url.as_str()).build();
        let interceptor = matcher.intercept(&Uri::from_static("https://azure")).ok_or_else(no_url)?;
        Ok(Self {
            url: interceptor.uri().clone(),
            with_password: url.parse().map_err(|_| no_url())?,
            authorization: interceptor.basic_auth().cloned(),
            variable,
        })
    }
}

impl Exception {
    /// One entry of `NO_PROXY`; `None` for an empty one.
    fn read(entry: &str) -> Option<Self> {
        let entry = entry.to_ascii_lowercase();
        if entry == "*" {
            return Some(Self::Everybody);
        }
        if let Ok(network) = entry.parse() {
            return Some(Self::Network(network));
        }
        if let Ok(address) = entry.trim_start_matches('[').trim_end_matches(']').parse() {
            return Some(Self::Address(address, None));
        }
        let (host, port) = match entry.rsplit_once(':').map(|(host, port)| (host, port.parse().ok())) {
            Some((host, Some(port))) => (host, Some(port)),
            _ => (entry.as_str(), None),
        };
        if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse() {
            return Some(Self::Address(address, port));
        }
        let below = host.strip_prefix("*.").or_else(|| host.strip_prefix('.'));
        let domain = below.unwrap_or(host);
        (!domain.is_empty()).then(|| Self::Domain {
            suffix: format!(".{domain}"),
            itself: below.is_none(),
            port,
        })
    }

    fn covers(&self, host: &str, address: Option<IpAddr>, port: u16) -> bool {
        match self {
            Self::Everybody => true,
            Self::Network(network) => address.is_some_and(|address| network.contains(&address)),
            Self::Address(known, at) => address == Some(*known) && at.is_none_or(|at| at == port),
            Self::Domain { suffix, itself, port: at } => {
                (host.ends_with(suffix.as_str()) || (*itself && suffix.strip_prefix('.') == Some(host)))
                    && at.is_none_or(|at| at == port)
            }
        }
    }
}

/// Connects to a destination, through a proxy if there is one for it. The result is the bare connection: TLS to the
/// destination is the caller's.
#[derive(Clone)]
pub struct ProxyConnector {
    settings: Arc<ProxySettings>,
    direct: HttpConnector<Resolver>,
    /// The connector for a proxy that uses TLS itself.
    secure: Option<HttpsConnector<HttpConnector<Resolver>>>,
}

/// No tunnel through a proxy.
#[derive(Debug, thiserror::Error)]
#[error("the proxy {proxy} {} {destination}", if *.refuses { "refuses to connect to" } else { "does not lead to" })]
struct ProxyError {
    proxy: Proxy,
    destination: String,
    /// It answered, but not with a tunnel. Its status is lost below; its own log has it.
    refuses: bool,
    source: BoxError,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl ProxyConnector {
    /// A connector with the system's resolver; `tls` is for proxies that use TLS themselves.
    pub fn with_system_resolver(settings: ProxySettings, tls: &rustls::ClientConfig) -> Self {
        let tls = settings.needs_tls().then(|| tls.clone());
        Self::new(settings, Resolver::new(Vec::new()), tls)
    }

    /// A connector; `tls` is for proxies that use TLS themselves.
    pub(crate) fn new(
        settings: ProxySettings,
        resolver: Resolver,
        tls: Option<rustls::ClientConfig>,
    ) -> Self {
        let mut direct = HttpConnector::new_with_resolver(resolver);
        direct.enforce_http(false);
        direct.set_nodelay(true);
        direct.set_connect_timeout(Some(Duration::from_secs(30)));
        direct.set_keepalive(Some(Duration::from_secs(30)));
        let secure = tls.map(|tls| {
            HttpsConnectorBuilder::new()
                .with_tls_config(tls)
                .https_or_http()
                .enable_http1()
                .wrap_connector(direct.clone())
        });
        Self { settings: Arc::new(settings), direct, secure }
    }
}

impl Service<Uri> for ProxyConnector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.direct.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, destination: Uri) -> Self::Future {
        let Some(proxy) = self.settings.proxy_for(&destination).cloned() else {
            let connecting = self.direct.call(destination);
            return Box::pin(async move { Ok(connecting.await?.into()) });
        };
        let authority = destination.authority().map(ToString::to_string).unwrap_or_default();
        let failed = move |proxy, source: BoxError| -> BoxError {
            let refuses = source.source().is_none();
            Box::new(ProxyError { proxy, destination: authority, refuses, source })
        };
        fn authorized<C>(tunnel: Tunnel<C>, proxy: &Proxy) -> Tunnel<C> {
            match &proxy.authorization {
                Some(authorization) => tunnel.with_auth(authorization.clone()),
                None => tunnel,
            }
        }
        match &self.secure {
            Some(secure) => {
                let mut tunnel = authorized(Tunnel::new(proxy.url.clone(), secure.clone()), &proxy);
                let connecting = tunnel.call(destination);
                Box::pin(async move { connecting.await.map_err(|error| failed(proxy, error.into())) })
            }
            None => {
                let mut tunnel = authorized(Tunnel::new(proxy.url.clone(), self.direct.clone()), &proxy);
                let connecting = tunnel.call(destination);
                Box::pin(async move {
                    connecting.await.map(Into::into).map_err(|error| failed(proxy, error.into()))
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<ProxySettings, Error> {
        ProxySettings::from_environment(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn both_cases_of_the_variables_are_read_and_no_password_is_shown() {
        for variables in [
            [("HTTPS_PROXY", "http://user:hunter2@proxy.example:3128"), ("NO_PROXY", "internal.example")],
            [("https_proxy", "http://user:hunter2@proxy.example:3128"), ("no_proxy", "internal.example")],
            [("https_proxy", "user:hunter2@proxy.example:3128"), ("NO_PROXY", " internal.example , ")],
        ] {
            let settings = settings(&variables).unwrap();
            let proxy = settings.proxy_for(&Uri::from_static("https://management.azure.com/")).unwrap();
            let source = variables[0].0;
            assert_eq!(proxy.to_string(), format!("http://proxy.example:3128 of {source}"));
            assert_eq!(proxy.authorization.as_ref().unwrap(), "Basic dXNlcjpodW50ZXIy");
            let url = settings.url_for(&Uri::from_static("https://management.azure.com/")).unwrap();
            assert_eq!(url, "http://user:hunter2@proxy.example:3128/");
            assert!(settings.proxy_for(&Uri::from_static("https://vault.internal.example/")).is_none());
            assert!(!format!("{settings:?} {proxy} {proxy:?}").contains("hunter2"));
        }
        let first =
            settings(&[("HTTPS_PROXY", "http://upper:1"), ("https_proxy", "http://lower:1")]).unwrap();
        assert_eq!(first.proxy.unwrap().url, "http://upper:1/");
        let none =
            settings(&[("HTTPS_PROXY", " "), ("HTTP_PROXY", "http://p:1"), ("ALL_PROXY", "http://p:1")]);
        assert!(none.unwrap().proxy.is_none());
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_refused_by_its_variable() {
        for (value, words) in [
            ("socks5://user:hunter2@proxy:1080", "HTTPS_PROXY: socks5 proxies are not supported"),
            ("http://user:hunter2 @proxy:1080", "HTTPS_PROXY: is not the URL of a proxy"),
            ("http://", "HTTPS_PROXY: is not the URL of a proxy"),
        ] {
            let error = settings(&[("HTTPS_PROXY", value)]).unwrap_err();
            assert!(error.to_string().starts_with(words), "{error}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        }
        let secure = settings(&[("HTTPS_PROXY", "HTTPS://proxy:3129")]).unwrap();
        assert!(secure.needs_tls());
        assert!(!settings(&[("HTTPS_PROXY", "proxy:3128")]).unwrap().needs_tls());
    }

    /// The behaviour of the Go standard library for `NO_PROXY`.
    #[test]
    fn who_is_reached_without_the_proxy() {
        let list = "10.0.0.0/8,192.168.7.7,192.168.8.8:8443,[fd00::1]:443,fd01::1,exact.example,.below.example,\
                    *.star.example,port.example:8443,UPPER.example,,fd02::/16";
        let settings = settings(&[("HTTPS_PROXY", "http://proxy:3128"), ("NO_PROXY", list)]).unwrap();
        for (uri, proxied) in [
            ("https://management.azure.com/", true),
            ("https://10.1.2.3/", false),
            ("https://11.1.2.3/", true),
            ("https://192.168.7.7:6443/", false),
            ("https://192.168.7.8/", true),
            ("https://192.168.8.8/", true),
            ("https://192.168.8.8:8443/", false),
            ("https://[fd00::1]/", false),
            ("https://[fd00::1]:444/", true),
            ("https://[fd01::1]:6443/", false),
            ("https://[fd02::9]/", false),
            ("https://exact.example/", false),
            ("https://EXACT.example/", false),
            ("https://a.exact.example/", false),
            ("https://inexact.example/", true),
            ("https://below.example/", true),
            ("https://a.below.example/", false),
            ("https://star.example/", true),
            ("https://a.star.example/", false),
            ("https://port.example/", true),
            ("https://port.example:8443/", false),
            ("https://upper.example/", false),
            ("https://localhost:6443/", false),
            ("https://127.0.0.1:6443/", false),
            ("https://[::1]:6443/", false),
            ("http://management.azure.com/", false),
            ("http://169.254.169.254/metadata", false),
            ("https://169.254.169.254/metadata", false),
        ] {
            assert_eq!(settings.proxy_for(&uri.parse().unwrap()).is_some(), proxied, "{uri}");
        }
        let nobody =
            super::tests::settings(&[("HTTPS_PROXY", "http://proxy:3128"), ("NO_PROXY", "*")]).unwrap();
        assert!(nobody.proxy_for(&Uri::from_static("https://management.azure.com/")).is_none());
    }
}
