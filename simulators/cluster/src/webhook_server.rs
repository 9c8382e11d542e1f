//! Webhooks of a program that runs beside an API server and not in a cluster: reached by address, with a certificate
//! authority created here.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certificate_authority::CertificateAuthority;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::files::{HostError, Reader, certificates, write};

/// Where a program has to serve its webhooks, and how an API server calls them.
#[derive(Debug)]
pub struct WebhookServer {
    /// The port on this machine to listen on.
    pub port: u16,
    /// The folder with its `tls.crt` and `tls.key`.
    pub certificates: PathBuf,
    authority: CertificateAuthority,
}

impl WebhookServer {
    /// Finds a free port, and creates this folder with a new certificate.
    ///
    /// # Errors
    /// No port is free, no certificate can be created, or the folder cannot be written.
    pub fn new(folder: PathBuf) -> Result<Self, HostError> {
        Self::at(folder, 0)
    }

    /// The same on this port; 0 for a free one.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn at(folder: PathBuf, port: u16) -> Result<Self, HostError> {
        Self::named(folder, port, &[])
    }

    /// The same with a free port and a certificate that is also valid for a Service.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn behind(folder: PathBuf, namespace: &str, name: &str) -> Result<Self, HostError> {
        Self::named(folder, 0, &[&format!("{name}.{namespace}.svc")])
    }

    fn named(folder: PathBuf, port: u16, more: &[&str]) -> Result<Self, HostError> {
        let authority = CertificateAuthority::generate().map_err(certificates)?;
        let names = [&["localhost", "127.0.0.1"], more].concat();
        let issued = authority.issue(&names).map_err(certificates)?;
        std::fs::create_dir_all(&folder)
            .map_err(|source| HostError::File { path: folder.clone(), source })?;
        write(&folder.join("tls.crt"), &issued.certificate_pem, Reader::Everyone)?;
        write(&folder.join("tls.key"), &issued.key_pem, Reader::Owner)?;
        let port = if port == 0 { free_port()? } else { port };
        Ok(Self { port, certificates: folder, authority })
    }

    /// The `clientConfig` for this path by URL.
    pub fn client_config(&self, path: &str) -> Value {
        json!({
            "url": format!("https://127.0.0.1:{}{path}", self.port),
            "caBundle": STANDARD.encode(self.authority.certificate_pem()),
        })
    }

    /// The `clientConfig` for this path by Service.
    pub fn service_config(&self, namespace: &str, name: &str, path: &str) -> Value {
        json!({
            "service": { "namespace": namespace, "name": name, "path": path, "port": 443 },
            "caBundle": STANDARD.encode(self.authority.certificate_pem()),
        })
    }

    /// A registration of webhooks whose Service is replaced by this server.
    pub fn registration(&self, mut registration: Value) -> Value {
        for webhook in registration["webhooks"].as_array_mut().into_iter().flatten() {
            let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap_or_default().to_owned();
            webhook["clientConfig"] = self.client_config(&path);
        }
        registration
    }

    /// Whether the program listens.
    pub async fn listens(&self) -> bool {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.is_ok()
    }
}

/// A port of this machine that is currently free.
///
/// # Errors
/// No port is free.
pub fn free_port() -> Result<u16, HostError> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let port = TcpListener::bind(any).and_then(|listener| listener.local_addr());
    port.map(|address| address.port()).map_err(|error| HostError::Listen(format!("no port is free: {error}")))
}
