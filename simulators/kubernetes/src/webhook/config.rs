//! `clientConfig`: the address of a webhook in its registration.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::Uri;
use rustls::crypto::ring;
use rustls::{ClientConfig as TlsConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::Value;

use super::error::CallError;
use super::trust::Bundle;

/// The default port of a `clientConfig`.
const DEFAULT_PORT: u16 = 443;

/// A parsed `clientConfig`, of a webhook configuration or of a CustomResourceDefinition's conversion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientConfig {
    host: String,
    /// The port in the URL; `None` if it has none.
    port: Option<u16>,
    path: String,
    service: Option<ServiceName>,
    ca_bundle: Vec<u8>,
}

/// The Service that a webhook is reached through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServiceName {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl ClientConfig {
    /// Parses a `clientConfig`.
    ///
    /// # Errors
    /// It has neither a Service nor a URL, or the URL or the certificates are invalid.
    pub(crate) fn parse(config: &Value) -> Result<Self, CallError> {
        let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let ca_bundle = BASE64_STANDARD.decode(text("/caBundle").trim()).map_err(|_| CallError::Bundle)?;
        let named = |host, port, path: &str, service| {
            let slash = if path.starts_with('/') { "" } else { "/" };
            Self { host, port, path: format!("{slash}{path}"), service, ca_bundle: ca_bundle.clone() }
        };
        if config.get("service").is_some_and(Value::is_object) {
            let (namespace, name) = (text("/service/namespace"), text("/service/name"));
            let port = config.pointer("/service/port").and_then(Value::as_u64);
            let port = port.and_then(|port| u16::try_from(port).ok()).unwrap_or(DEFAULT_PORT);
            let service = ServiceName { namespace: namespace.to_owned(), name: name.to_owned() };
            return Ok(named(
                format!("{name}.{namespace}.svc"),
                Some(port),
                text("/service/path"),
                Some(service),
            ));
        }
        let url = text("/url");
        if url.is_empty() {
            return Err(CallError::NoAddress);
        }
        let uri: Uri = url.parse().map_err(|error| CallError::Url(format!("{error}")))?;
        let host = uri.host().ok_or_else(|| CallError::Url(format!("{url:?} names no host")))?;
        // An IPv6 address has brackets in URLs, and nowhere else.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(named(host, uri.port_u16(), uri.path(), None))
    }

    /// The name that the certificate must be valid for, and by which hosts are overridden.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn service(&self) -> Option<&ServiceName> {
        self.service.as_ref()
    }

    pub(super) fn port(&self) -> u16 {
        self.port.unwrap_or(DEFAULT_PORT)
    }

    /// Host and port as in the URL.
    pub(super) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match self.port {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    }

    /// The path of the request; it contains the timeout.
    pub(super) fn path_and_query(&self, timeout: Duration) -> String {
        format!("{}?timeout={}s", self.path, timeout.as_secs())
    }

    /// The URL of the request, for messages.
    pub(super) fn url(&self, timeout: Duration) -> String {
        format!("https://{}{}", self.authority(), self.path_and_query(timeout))
    }

    /// A TLS configuration that trusts the bundle's certificates alone, or those of the system if there is no bundle.
    pub(super) fn tls(&self) -> Result<Arc<TlsConfig>, CallError> {
        let provider = Arc::new(ring::default_provider());
        let builder = TlsConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|_| CallError::Bundle)?;
        let builder = if self.ca_bundle.is_empty() {
            let mut roots = RootCertStore::empty();
            // If the system has no certificates, none is trusted and the handshake fails.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            builder.with_root_certificates(roots)
        } else {
            let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.ca_bundle).collect();
            let certificates = certificates.map_err(|_| CallError::Bundle)?;
            let bundle = Bundle::new(certificates, &provider).ok_or(CallError::Bundle)?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(bundle))
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn services_and_urls_are_named_as_the_server_names_them() {
        let ten = Duration::from_secs(10);
        for (config, url) in [
            (
                json!({ "service": { "name": "a", "namespace": "b", "path": "/mutate" } }),
                "https://a.b.svc:443/mutate?timeout=10s",
            ),
            (
                json!({ "service": { "name": "a", "namespace": "b", "port": 9443 } }),
                "https://a.b.svc:9443/?timeout=10s",
            ),
            (json!({ "url": "https://example.com/x/y" }), "https://example.com/x/y?timeout=10s"),
            (json!({ "url": "https://[::1]:8443" }), "https://[::1]:8443/?timeout=10s"),
        ] {
            assert_eq!(ClientConfig::parse(&config).unwrap().url(ten), url);
        }
        assert!(matches!(ClientConfig::parse(&json!({})), Err(CallError::NoAddress)));
        let bundle = json!({ "url": "https://example.com", "caBundle": "bm9uZQ==" });
        assert!(matches!(ClientConfig::parse(&bundle).unwrap().tls(), Err(CallError::Bundle)));
    }
}
