//! What the replica does that leads.

use capz::Settings;
use kube::Client;
use tokio_util::sync::CancellationToken;

/// Runs the controllers until `stop`. They are written in `capz`, and are called here once they are there; until then
/// this replica answers webhooks like every other.
///
/// # Errors
/// None so far.
pub(crate) async fn lead(_client: Client, settings: Settings, stop: CancellationToken) -> anyhow::Result<()> {
    tracing::debug!(?settings, "Leading");
    tracing::warn!(
        "This release has no controllers: objects are completed and judged, and nothing is made of them"
    );
    stop.cancelled().await;
    Ok(())
}
