//! What a manager sends to Azure, with bodies and headers, which the journal does not have.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::middleware::{Next, from_fn};
use parking_lot::Mutex;
use serde_json::Value;

use crate::world::World;

/// A request.
#[derive(Clone)]
pub struct Sent {
    pub method: String,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

pub type Record = Arc<Mutex<Vec<Sent>>>;

/// Records the requests of the managers that this world starts from now on.
pub fn record(world: &mut World) -> Record {
    let record = Record::default();
    let all = Arc::clone(&record);
    world.front = Some(Box::new(move |azure| {
        let all = Arc::clone(&all);
        azure.layer(from_fn(move |request: Request, next: Next| {
            let all = Arc::clone(&all);
            async move {
                let (parts, body) = request.into_parts();
                let body = to_bytes(body, usize::MAX).await.unwrap();
                all.lock().push(Sent {
                    method: parts.method.to_string(),
                    path: parts.uri.path().to_owned(),
                    headers: parts.headers.clone(),
                    body: serde_json::from_slice(&body).unwrap_or_default(),
                });
                next.run(Request::from_parts(parts, Body::from(body))).await
            }
        }))
    }));
    record
}

/// The writes among them of a resource whose path ends so.
pub fn writes(record: &Record, end: &str) -> Vec<Sent> {
    let all = record.lock();
    all.iter().filter(|sent| sent.method == "PUT" && sent.path.ends_with(end)).cloned().collect()
}
