//! Webhooks of programs that run beside the API server and not in a cluster: reached by URL, with an authority made here.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubernetes_simulator::CertificateAuthority;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::program::Program;

/// How long a program may take until it serves its webhooks.
const READY: Duration = Duration::from_secs(60);

/// A program's webhook server: its port, and the folder with its certificate.
pub struct WebhookServer {
    /// Where it listens.
    pub port: u16,
    /// `tls.crt` and `tls.key`.
    pub certificates: PathBuf,
    authority: CertificateAuthority,
}

impl WebhookServer {
    /// A free port and a new certificate.
    ///
    /// # Errors
    /// There is no port, or no certificate can be made.
    pub fn new(certificates: PathBuf) -> anyhow::Result<Self> {
        let authority = CertificateAuthority::generate()?;
        let issued = authority.issue(&["localhost", "127.0.0.1"])?;
        std::fs::create_dir_all(&certificates)?;
        std::fs::write(certificates.join("tls.crt"), &issued.certificate_pem)?;
        std::fs::write(certificates.join("tls.key"), &issued.key_pem)?;
        Ok(Self { port: free_port()?, certificates, authority })
    }

    /// How the API server reaches this path.
    pub fn client_config(&self, path: &str) -> Value {
        json!({
            "url": format!("https://127.0.0.1:{}{path}", self.port),
            "caBundle": STANDARD.encode(self.authority.certificate_pem()),
        })
    }

    /// A registration of webhooks that leads here instead of to a Service.
    pub fn registration(&self, mut registration: Value) -> Value {
        for webhook in registration["webhooks"].as_array_mut().into_iter().flatten() {
            let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap_or_default().to_owned();
            webhook["clientConfig"] = self.client_config(&path);
        }
        registration
    }

    /// Waits until the program listens.
    ///
    /// # Errors
    /// It ends, or does not listen in time.
    pub async fn wait(&self, program: &mut Program) -> anyhow::Result<()> {
        let deadline = Instant::now() + READY;
        while TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
            program.must_run()?;
            ensure!(Instant::now() < deadline, "no webhooks are served:\n{}", program.last_words());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

/// A port that nobody listens on.
///
/// # Errors
/// There is none.
pub fn free_port() -> std::io::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
