//! The collector's address, and the connection to it.

use std::path::PathBuf;

use opentelemetry_otlp::tonic_types::transport::{Certificate, ClientTlsConfig};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithTonicConfig as _};

use crate::error::Error;

/// A variable for traces takes precedence over the one for all signals.
const ENDPOINT: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const AUTHORITY: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"];

/// Whether a variable names the collector.
pub fn is_named(variable: impl Fn(&str) -> Option<String>) -> bool {
    ENDPOINT.iter().any(|name| variable(name).is_some_and(|value| !value.is_empty()))
}

/// Builds the exporter. Returns it with the collector's address for the log.
pub fn exporter(
    default: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(SpanExporter, String), Error> {
    let endpoint = ENDPOINT.iter().find_map(|name| variable(name));
    let endpoint = endpoint.unwrap_or_else(|| default.to_owned());
    let mut builder = SpanExporter::builder().with_tonic().with_endpoint(&endpoint);
    // Certificate authorities are read and kept only for connections that need them.
    if !endpoint.starts_with("http://") {
        builder = builder.with_tls_config(tls(variable)?);
    }
    let collector = without_user(&endpoint);
    match builder.build() {
        Ok(exporter) => Ok((exporter, collector)),
        Err(source) => Err(Error::Collector { collector, source }),
    }
}

/// Trusts the system's authorities or those of `SSL_CERT_FILE`, and the collector's own.
fn tls(variable: impl Fn(&str) -> Option<String>) -> Result<ClientTlsConfig, Error> {
    let tls = ClientTlsConfig::new().with_native_roots();
    let Some((variable, path)) = AUTHORITY.iter().find_map(|name| Some((*name, variable(name)?))) else {
        return Ok(tls);
    };
    match std::fs::read(&path) {
        Ok(pem) => Ok(tls.ca_certificate(Certificate::from_pem(pem))),
        Err(source) => Err(Error::Authority { variable, path: PathBuf::from(path), source }),
    }
}

/// Removes user name and password from a URL.
fn without_user(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    match scheme {
        "" => host.to_owned(),
        scheme => format!("{scheme}://{host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_asks_for_traces_and_another_one_turns_them_off() {
        let asked = |set: &[(&str, &str)]| {
            crate::are_requested(|name| {
                set.iter().find(|(given, _)| *given == name).map(|(_, value)| (*value).to_owned())
            })
        };
        const NAMED: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317");
        assert!(asked(&[NAMED]));
        assert!(asked(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://collector:4317")]));
        assert!(!asked(&[]));
        assert!(!asked(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]));
        assert!(!asked(&[NAMED, ("OTEL_SDK_DISABLED", "TRUE")]));
        assert!(!asked(&[NAMED, ("OTEL_TRACES_EXPORTER", "none")]));
    }

    #[test]
    fn a_collector_is_named_without_what_proves_who_asks() {
        for (url, expected) in [
            ("http://opentelemetry-collector:4317", "http://opentelemetry-collector:4317"),
            ("https://me:secret@collector.example:443/v1?token=secret", "https://collector.example:443"),
            ("me:secret@collector.example:4317", "collector.example:4317"),
            ("collector.example", "collector.example"),
        ] {
            assert_eq!(without_user(url), expected);
        }
    }
}
