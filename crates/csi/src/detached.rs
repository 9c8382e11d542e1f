//! Calls that are completed even if their caller goes: a disk must not be formatted, nor a share mounted, by two programs at a
//! time, and a caller that repeats its call would start the second one.

use tonic::{Response, Status};
use tracing::Instrument as _;

/// Does the work of a call in a task of its own. What the work holds, such as a lock, is held until it ends.
///
/// # Errors
/// Those of the work; Internal if it ends abnormally.
pub async fn detached<T: Send + 'static>(
    work: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<Response<T>, Status> {
    match tokio::spawn(work.in_current_span()).await {
        Ok(result) => result.map(Response::new),
        Err(_) => {
            Err(Status::internal("the operation ended abnormally; retry, and report it if this repeats"))
        }
    }
}
