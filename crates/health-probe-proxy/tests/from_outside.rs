//! Probes over sockets, with and without preambles, to a stand-in for kube-proxy.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;

use health_probe_proxy::{Forwarder, bind, serve};
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

const V1: &[u8] = b"PROXY TCP4 10.1.0.4 10.2.0.5 49153 10356\r\n";
/// The form of Azure's private link, with the ID of the link.
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x14\x0a\x01\0\x04\x0a\x02\0\x05\xc0\x01\x28\x74\xee\0\x05\x01\x07\0\0\x20";
const PROBE: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: 10.0.0.4:10356\r\nUser-Agent: Load Balancer Agent\r\nConnection: close\r\n\r\n";

/// Answers each request with a description of it, and with the status that its path names.
async fn kube_proxy(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| async move {
            let status = request.uri().path().trim_start_matches('/').parse().unwrap_or(200);
            let mut text = format!("{} {}\n", request.method(), request.uri());
            for (name, value) in request.headers() {
                text.push_str(&format!("{name}: {}\n", value.to_str().unwrap()));
            }
            let body = request.into_body().collect().await?.to_bytes();
            text.push_str(std::str::from_utf8(&body).unwrap());
            let answer =
                http::Response::builder().status(status).header("x-kube", "1").header("keep-alive", "9");
            Ok::<_, hyper::Error>(answer.body(Full::new(bytes::Bytes::from(text))).unwrap())
        });
        tokio::spawn(
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
        );
    }
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// A proxy in front of a stand-in for kube-proxy.
async fn start() -> (SocketAddr, CancellationToken) {
    let (target, target_address) = listener().await;
    tokio::spawn(kube_proxy(target));
    start_before(target_address.port()).await
}

async fn start_before(target_port: u16) -> (SocketAddr, CancellationToken) {
    let (listener, address) = listener().await;
    let stop = CancellationToken::new();
    tokio::spawn(serve(listener, Arc::new(Forwarder::new(target_port)), stop.clone()));
    (address, stop)
}

/// Sends these pieces, and reads until the other side closes.
async fn exchange(address: SocketAddr, pieces: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for piece in pieces {
        stream.write_all(piece).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut answer = Vec::new();
    // A connection that is cut off may be reset.
    let _reset = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

/// F2: a load balancer probes by the family of its frontend.
#[tokio::test]
async fn probes_of_both_families_are_answered() {
    let (target, target_address) = listener().await;
    tokio::spawn(kube_proxy(target));
    let listener = bind(0).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let stop = CancellationToken::new();
    tokio::spawn(serve(listener, Arc::new(Forwarder::new(target_address.port())), stop));
    let mut families = vec![(SocketAddr::from(([127, 0, 0, 1], port)), "127.0.0.1")];
    // A machine without IPv6 is probed only by IPv4.
    if TcpListener::bind("[::1]:0").await.is_ok() {
        families.push((SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, port)), "::1"));
    }
    for (address, client) in families {
        let answer = exchange(address, &[PROBE]).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{address}: {answer}");
        assert!(answer.contains(&format!("x-forwarded-for: {client}\n")), "{address}: {answer}");
    }
}

/// NODE-206
#[tokio::test]
async fn probes_are_answered_by_kube_proxy_with_and_without_a_preamble() {
    let (address, _stop) = start().await;
    let bytes: Vec<&[u8]> = V2.iter().chain(PROBE).map(std::slice::from_ref).collect();
    for (pieces, client) in [
        (&[PROBE][..], "127.0.0.1"),
        (&[V1, PROBE], "10.1.0.4"),
        (&[V2, PROBE], "10.1.0.4"),
        (&[&[V2, PROBE].concat()], "10.1.0.4"),
        (&bytes, "10.1.0.4"),
        (&[b"PROXY UNKNOWN\r\n", PROBE], "127.0.0.1"),
    ] {
        let answer = exchange(address, pieces).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("x-kube: 1") && !head.contains("keep-alive: 9"), "{head}");
        let expected = format!(
            "GET /healthz\nhost: 10.0.0.4:10356\nuser-agent: Load Balancer Agent\nx-forwarded-for: {client}\n"
        );
        assert_eq!(body, expected);
    }
}

/// NODE-208
#[tokio::test]
async fn requests_pass_whole_and_answers_come_back_as_they_are() {
    let (address, _stop) = start().await;
    let post =
        b"POST /503?a=b%20c HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1.2.3.4\r\nTE: trailers\r\nX-Own: 1\r\n\
                 Connection: close, x-own\r\nContent-Length: 5\r\n\r\nhello";
    let answer = exchange(address, &[V1, post]).await;
    assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!(
        body,
        "POST /503?a=b%20c\nhost: h\nx-forwarded-for: 1.2.3.4, 10.1.0.4\ncontent-length: 5\nhello"
    );
    // Several requests on one connection, of which only the first follows the preamble.
    let again = b"GET /1 HTTP/1.1\r\nHost: h\r\n\r\n";
    let answers = exchange(address, &[V1, again, b"GET /404 HTTP/1.1\r\nHost: h\r\n\r\n", PROBE]).await;
    let statuses: Vec<_> = answers.lines().filter(|line| line.starts_with("HTTP/")).collect();
    assert_eq!(statuses.len(), 3, "{answers}");
    // The oldest clients send no host.
    let old = exchange(address, &[b"GET / HTTP/1.0\r\n\r\n"]).await;
    assert!(old.contains(" 200 OK") && old.contains("\nhost: localhost:"), "{old}");
}

/// NODE-208
#[tokio::test]
async fn a_node_whose_kube_proxy_is_down_is_unhealthy_until_it_is_back() {
    let (target, target_address) = listener().await;
    drop(target);
    let (address, _stop) = start_before(target_address.port()).await;
    let answer = exchange(address, &[V2, PROBE]).await;
    assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{answer}");
    tokio::spawn(kube_proxy(TcpListener::bind(target_address).await.unwrap()));
    assert!(exchange(address, &[V2, PROBE]).await.starts_with("HTTP/1.1 200 OK\r\n"));
}

/// NODE-208
#[tokio::test(start_paused = true)]
async fn a_kube_proxy_that_never_answers_is_waited_for_ten_seconds() {
    let (target, target_address) = listener().await;
    let (address, _stop) = start_before(target_address.port()).await;
    let begun = tokio::time::Instant::now();
    let answer = exchange(address, &[PROBE]).await;
    assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{answer}");
    assert_eq!(begun.elapsed().as_secs(), 10);
    drop(target);
}

/// NODE-209
#[tokio::test]
async fn what_is_no_preamble_and_no_request_gets_no_answer() {
    let (address, _stop) = start().await;
    for bytes in
        [&b"PROXY TCP4 nonsense\r\n"[..], b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\0", b"PROXY TCP4 10.1.0.4"]
    {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let _reset = stream.read_to_end(&mut answer).await;
        assert!(answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
    }
    let long = [b"GET / HTTP/1.1\r\nX: ", "x".repeat(100_000).as_bytes()].concat();
    assert!(!exchange(address, &[V1, &long]).await.contains(" 200 "));
}

/// NODE-209
#[tokio::test(start_paused = true)]
async fn silent_clients_are_cut_off_and_keep_nobody_waiting_for_long() {
    let (address, _stop) = start().await;
    let begun = tokio::time::Instant::now();
    let mut silent = Vec::new();
    for number in 0..300 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        if number % 2 == 0 {
            stream.write_all(&V1[..10]).await.unwrap();
        }
        silent.push(stream);
    }
    let answer = exchange(address, &[V2, PROBE]).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(begun.elapsed().as_secs() <= 20, "{:?}", begun.elapsed());
    for mut stream in silent {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).await.unwrap_or(0), 0);
    }
}

fn program(arguments: &[String]) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_health-probe-proxy"));
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// NODE-207
#[tokio::test]
async fn the_program_serves_and_stops_when_told_to() {
    let (target, target_address) = listener().await;
    tokio::spawn(kube_proxy(target));
    let (free, address) = listener().await;
    drop(free);
    let ports = |port: u16| {
        [format!("-health-check-port={port}"), format!("--target-port={}", target_address.port())]
    };
    let mut child = program(&ports(address.port())).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next_line().await.unwrap().unwrap();
    assert!(first.contains(&format!("listening on port {}", address.port())), "{first}");
    assert!(exchange(address, &[V2, PROBE]).await.starts_with("HTTP/1.1 200 OK\r\n"));

    let second = program(&ports(address.port())).output().await.unwrap();
    let text = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(2), "{text}");
    assert!(text.contains("cannot listen on port") && text.contains("--health-check-port"), "{text}");

    let pid = child.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").arg(&pid).status().unwrap().success());
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
    let help = program(&["--help".to_owned()]).output().await.unwrap();
    assert_eq!(help.status.code(), Some(0));
    let unknown = program(&["--nonsense".to_owned()]).output().await.unwrap();
    assert_eq!(unknown.status.code(), Some(2));
}

#[tokio::test]
async fn a_stop_ends_what_is_open() {
    let (target, target_address) = listener().await;
    tokio::spawn(kube_proxy(target));
    let (listener, address) = listener().await;
    let stop = CancellationToken::new();
    let forwarder = Arc::new(Forwarder::new(target_address.port()));
    let serving = tokio::spawn(serve(listener, forwarder, stop.clone()));
    // One that has sent nothing, one that waits for its next request.
    let _silent = TcpStream::connect(address).await.unwrap();
    let mut waiting = TcpStream::connect(address).await.unwrap();
    waiting.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    let mut byte = [0; 8];
    waiting.read_exact(&mut byte).await.unwrap();
    stop.cancel();
    serving.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "the listener is closed");
}
