//! Watches over slim types.

use std::fmt::Debug;

use futures::StreamExt;
use kube::Api;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as start};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

/// Objects asked for at once: memory follows the page, not the number of objects
/// (`rust-stack.md` 2.9: 89 MB against 19 MB for 5,000 objects).
const PAGE_SIZE: u32 = 50;

/// Hands every event of a watch to `on`, until `stop`. Failures are logged and tried again with kube's
/// back-off (0.8 s to 30 s).
pub(crate) async fn watch<K>(
    api: Api<K>,
    selector: Option<&str>,
    what: &'static str,
    stop: CancellationToken,
    mut on: impl FnMut(Event<K>),
) where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut config = watcher::Config::default().page_size(PAGE_SIZE);
    config.label_selector = selector.map(str::to_owned);
    let mut events = std::pin::pin!(start(api, config).default_backoff());
    loop {
        let event = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            event = events.next() => event,
        };
        match event {
            Some(Ok(event)) => on(event),
            Some(Err(error)) => tracing::warn!(what, %error, "watch failed; trying again"),
            None => return,
        }
    }
}
