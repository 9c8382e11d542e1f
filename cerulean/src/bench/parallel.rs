//! Numbered work that several clients share.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;

/// Does the work of each number once, with several clients in parallel: `work` gets the number of the client, and the
/// number of the work.
///
/// # Errors
/// The first failure; its client does nothing more.
pub async fn in_parallel<W>(
    numbers: Range<usize>,
    clients: usize,
    work: impl Fn(usize, usize) -> W + Clone + Send + 'static,
) -> anyhow::Result<()>
where
    W: Future<Output = anyhow::Result<()>> + Send,
{
    let next = Arc::new(AtomicUsize::new(numbers.start));
    let clients = (0..clients.max(1)).map(|client| {
        let (next, work) = (next.clone(), work.clone());
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= numbers.end {
                    return anyhow::Ok(());
                }
                work(client, number).await?;
            }
        })
    });
    for client in join_all(clients).await {
        client??;
    }
    Ok(())
}
