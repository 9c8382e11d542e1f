//! Serves one simulated Azure over plain HTTP: `serve_http [PORT] [TENANT]` (default 8080).
//!
//! Tokens are not verified. For replaying recorded conversations and for inspection with curl.

use std::net::SocketAddr;

use azure_simulator::{Azure, Options};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).map_or(Ok(8080), |port| port.parse())?;
    let mut options = Options::default();
    if let Some(tenant) = std::env::args().nth(2) {
        options.tenant = tenant;
    }
    let azure = Azure::new(options);
    let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).await?;
    axum::serve(listener, azure.router()).await?;
    Ok(())
}
