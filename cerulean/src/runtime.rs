//! Runtimes of the commands.

/// Threads of a simulator and its clients: a busy simulator does not delay its clients.
pub const TWO_THREADS: usize = 2;

/// A runtime with this number of threads; with one, everything runs on the calling thread.
///
/// # Errors
/// The system cannot create threads.
pub fn runtime(threads: usize) -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = match threads {
        0 | 1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    Ok(builder.worker_threads(threads.max(1)).enable_all().build()?)
}
