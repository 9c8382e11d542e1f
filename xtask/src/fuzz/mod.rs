//! Hostile requests by the thousand against the simulated Azure, in this process.
//!
//! Valid requests are mutated: bytes, JSON members, path segments, queries, headers, methods. The result must always be
//! an answer, never a panic, a 5xx or a request without end. This runs on the same toolchain as everything else
//! (coverage-guided fuzzers need a nightly one). A run is determined by its seed, so that failures are reproducible. It
//! also works on debug builds, where integer overflow panics.

mod corpus;
mod mutate;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::bail;
use axum::Router;
use axum::body::Body;
use azure_simulator::{Azure, Options};
use bytes::Bytes;
use futures::FutureExt as _;
use http::Request;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use tower::ServiceExt as _;

use self::corpus::FuzzRequest;
use crate::print;

/// How to fuzz.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Duration in seconds.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Seed of the first round; each round takes the next one.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of rounds, instead of a duration.
    #[arg(long)]
    rounds: Option<u64>,
}

/// Requests of one round, all to one Azure.
const REQUESTS: usize = 1_000;
/// A request that takes longer hangs.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Fuzzes.
///
/// # Errors
/// A panic, an answer of 500 or more, or a request that hangs: with the seed that reproduces it.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (progress, sent) = (Arc::new(Mutex::new(String::new())), Arc::new(AtomicU64::new(0)));
    let panicked = Arc::new(Mutex::new(String::new()));
    let words = panicked.clone();
    std::panic::set_hook(Box::new(move |panic| *words.lock() = panic.to_string()));
    let (done, ended) = mpsc::channel();
    let worker = {
        let (progress, sent, arguments) =
            (progress.clone(), sent.clone(), (arguments.seed, arguments.seconds, arguments.rounds));
        move || {
            let _nobody_waits = done.send(rounds(arguments, &progress, &sent, &panicked));
        }
    };
    // Deep nesting is tested as well, with a stack like that of a server's thread.
    std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(worker)?;
    let mut before = 0;
    let rounds = loop {
        match ended.recv_timeout(REQUEST_TIMEOUT) {
            Ok(outcome) => break outcome?,
            Err(RecvTimeoutError::Timeout) if sent.load(Ordering::Relaxed) != before => {
                before = sent.load(Ordering::Relaxed);
            }
            Err(_) => bail!("a request hangs: {}", progress.lock()),
        }
    };
    let _default = std::panic::take_hook();
    print::line(format_args!(
        "{} hostile requests in {rounds} rounds from seed {} on: no panic, no answer of 500 or more",
        sent.load(Ordering::Relaxed),
        arguments.seed
    ));
    Ok(())
}

fn rounds(
    (first, seconds, rounds): (u64, u64, Option<u64>),
    progress: &Mutex<String>,
    sent: &AtomicU64,
    panicked: &Mutex<String>,
) -> anyhow::Result<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    #[allow(
        clippy::disallowed_types,
        clippy::disallowed_methods,
        reason = "a fuzzer ends after so much real time"
    )]
    let begun = std::time::Instant::now();
    let mut round = 0;
    while rounds.map_or_else(|| begun.elapsed().as_secs() < seconds, |rounds| round < rounds) {
        let seed = first + round;
        runtime.block_on(one_round(seed, progress, sent, panicked))?;
        round += 1;
    }
    Ok(round)
}

async fn one_round(
    seed: u64,
    progress: &Mutex<String>,
    sent: &AtomicU64,
    panicked: &Mutex<String>,
) -> anyhow::Result<()> {
    let mut random = SmallRng::seed_from_u64(seed);
    let options =
        Options { seed, budgets: None, strict_api_versions: seed.is_multiple_of(4), ..Options::default() };
    let azure = Azure::new(options);
    let router = azure.router();
    let corpus = corpus::requests()?;
    let mut pending: Vec<FuzzRequest> = corpus.clone();
    pending.reverse();
    for number in 0..REQUESTS {
        // First the valid requests, so that there is something to disturb; some of them are already mutated.
        let base = match pending.pop() {
            Some(fuzzed) => fuzzed,
            None => corpus.get(random.random_range(0..corpus.len())).cloned().unwrap_or_default(),
        };
        let bends = if number < corpus.len() { usize::from(random.random_bool(0.1)) } else { 1 };
        let fuzzed = (0..bends).fold(base, |fuzzed, _| mutate::bend(fuzzed, &corpus, &mut random));
        let shown = shown(&fuzzed);
        progress.lock().clone_from(&shown);
        let again = || {
            format!("show it again by `cargo xtask fuzz --rounds 1 --seed {seed}`; request {number}: {shown}")
        };
        match AssertUnwindSafe(send(&router, &fuzzed)).catch_unwind().await {
            Ok(Some((status, body))) if status >= 500 && status != 501 => {
                bail!("an answer of {status}; {}; {}", again(), cut(&String::from_utf8_lossy(&body)))
            }
            Ok(_) => {}
            Err(_panic) => bail!("a panic: {}; {}", panicked.lock(), again()),
        }
        // A declared fault can be an answer of 500.
        azure.clear_faults();
        sent.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// The status and the body; `None` for requests that no HTTP client could send, or if the connection broke.
async fn send(router: &Router, fuzzed: &FuzzRequest) -> Option<(u16, Bytes)> {
    let mut request = Request::builder().method(fuzzed.method.as_str()).uri(fuzzed.path.as_str());
    for (name, value) in &fuzzed.headers {
        request = request.header(name.as_str(), value.as_str());
    }
    let request = request.header("host", "azure.test").body(Body::from(fuzzed.body.clone())).ok()?;
    let answer = router.clone().oneshot(request).await.ok()?;
    let status = answer.status().as_u16();
    Some((status, answer.into_body().collect().await.ok()?.to_bytes()))
}

/// A text, truncated if it is long.
fn cut(text: &str) -> String {
    match text.char_indices().nth(1_500) {
        Some((at, _)) => format!("{}… ({} bytes)", text.get(..at).unwrap_or_default(), text.len()),
        None => text.to_owned(),
    }
}

/// A request in one line.
fn shown(fuzzed: &FuzzRequest) -> String {
    let body = cut(&String::from_utf8_lossy(&fuzzed.body));
    format!("{} {} {:?} {body}", fuzzed.method, cut(&fuzzed.path), fuzzed.headers)
}
