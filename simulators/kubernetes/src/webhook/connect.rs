//! One request over TLS on a connection of its own, with HTTP/1.1, which Kubernetes' own servers use for webhooks.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use http::{Request, Response};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::CertificateError;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::error::DialError;

/// Sends the request to the first address that accepts a connection.
pub(super) async fn exchange(
    addresses: &[SocketAddr],
    host: &str,
    tls: Arc<rustls::ClientConfig>,
    request: Request<Body>,
) -> Result<Response<Body>, DialError> {
    let stream = dial(addresses).await?;
    let broken = |error: hyper::Error| DialError::Broken(error.to_string());
    let name = ServerName::try_from(host.to_owned()).map_err(|error| DialError::Tls(error.to_string()))?;
    let stream =
        TlsConnector::from(tls).connect(name, stream).await.map_err(|error| tls_error(&error, host))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "the connection to a webhook ended");
        }
    });
    let answer = sender.send_request(request).await.map_err(broken)?;
    Ok(answer.map(Body::new))
}

async fn dial(addresses: &[SocketAddr]) -> Result<TcpStream, DialError> {
    let mut failed = DialError::Broken("no address is known".to_owned());
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Requests are small: waiting to fill a packet only adds latency.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => failed = DialError::Dial { address: address.to_string(), why: dial_error(&error) },
        }
    }
    Err(failed)
}

/// Go's message for the error.
fn dial_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::TimedOut => "i/o timeout".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        _ => error.to_string(),
    }
}

/// Go's message for the error.
fn tls_error(error: &io::Error, host: &str) -> DialError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let why = match inner {
        // An authority with the same name and another key is unknown, too.
        Some(rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => "x509: certificate signed by unknown authority".to_owned(),
        Some(rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => format!("x509: certificate is not valid for any names, but wanted to match {host}"),
        Some(rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => "x509: certificate has expired or is not yet valid".to_owned(),
        Some(error) => return DialError::Tls(format!("tls: {error}")),
        None if error.kind() == io::ErrorKind::UnexpectedEof => return DialError::Tls("EOF".to_owned()),
        None => return DialError::Tls(error.to_string()),
    };
    DialError::Tls(format!("tls: failed to verify certificate: {why}"))
}
