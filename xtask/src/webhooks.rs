//! Programs that serve webhooks.

use std::time::Duration;

use anyhow::ensure;
use simulated_cluster::{WebhookServer, free_port};
use tokio::time::Instant;

use crate::program::Program;

/// The time limit for a program to serve its webhooks.
pub const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until a program serves its webhooks.
///
/// # Errors
/// The program ends, or does not serve them in time.
pub async fn served(webhooks: &WebhookServer, program: &mut Program) -> anyhow::Result<()> {
    let deadline = Instant::now() + READY_TIMEOUT;
    while !webhooks.listens().await {
        program.must_run()?;
        ensure!(Instant::now() < deadline, "no webhooks are served:\n{}", program.last_words());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// The arguments of a manager for its webhooks, and for health checks and metrics at free ports.
///
/// # Errors
/// The system has no free port.
pub fn ports(webhooks: &WebhookServer) -> anyhow::Result<[String; 4]> {
    Ok([
        format!("--webhook-port={}", webhooks.port),
        format!("--webhook-cert-dir={}", webhooks.certificates.display()),
        format!("--health-addr=127.0.0.1:{}", free_port()?),
        format!("--diagnostics-address=127.0.0.1:{}", free_port()?),
    ])
}
