//! Forwarding one request to kube-proxy, and its answer.

use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{Either, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The timeout for connecting to kube-proxy, and for its answer: longer than a load balancer waits.
const TARGET_TIMEOUT: Duration = Duration::from_secs(10);
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Headers for the next hop only (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The body of an answer: kube-proxy's, or none.
pub type Body = Either<Incoming, Empty<Bytes>>;

/// Forwards requests to a port of this machine.
#[derive(Debug)]
pub struct Forwarder {
    port: u16,
    /// Whether the last request was answered, so that only changes are logged.
    is_answered: AtomicBool,
}

impl Forwarder {
    /// Forwards to kube-proxy on this port.
    pub fn new(port: u16) -> Self {
        Self { port, is_answered: AtomicBool::new(true) }
    }

    /// Forwards a request of this client; 502 if kube-proxy does not answer.
    pub async fn forward(&self, request: Request<Incoming>, client: IpAddr) -> Response<Body> {
        let answer = timeout(TARGET_TIMEOUT, self.request(request, client)).await;
        let overdue = |_| Err(format!("gives no answer within {} s", TARGET_TIMEOUT.as_secs()));
        let answer = answer.unwrap_or_else(overdue);
        self.log_change(answer.as_ref().err());
        let Ok(mut answer) = answer else {
            let mut bad_gateway = Response::new(Either::Right(Empty::new()));
            *bad_gateway.status_mut() = StatusCode::BAD_GATEWAY;
            return bad_gateway;
        };
        remove_hop_by_hop(answer.headers_mut());
        answer.map(Either::Left)
    }

    async fn request(
        &self,
        mut request: Request<Incoming>,
        client: IpAddr,
    ) -> Result<Response<Incoming>, String> {
        let connecting = self.connect().await;
        let stream = connecting.map_err(|error| format!("cannot be connected to: {error}"))?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| format!("cannot be asked: {error}"))?;
        tokio::spawn(connection);

        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = path.parse::<Uri>().map_err(|error| format!("cannot be asked: {error}"))?;
        *request.version_mut() = http::Version::HTTP_11;
        let headers = request.headers_mut();
        remove_hop_by_hop(headers);
        let mut hops: Vec<String> = headers
            .get_all(FORWARDED_FOR)
            .iter()
            .map(|hop| String::from_utf8_lossy(hop.as_bytes()).into_owned())
            .collect();
        hops.push(client.to_string());
        if let Ok(hops) = HeaderValue::from_str(&hops.join(", ")) {
            headers.insert(FORWARDED_FOR, hops);
        }
        if !headers.contains_key(HOST)
            && let Ok(host) = HeaderValue::from_str(&format!("localhost:{}", self.port))
        {
            headers.insert(HOST, host);
        }
        sender.send_request(request).await.map_err(|error| format!("gives no answer: {error}"))
    }

    /// kube-proxy listens in one family or in both.
    async fn connect(&self) -> io::Result<TcpStream> {
        let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        match TcpStream::connect(v4).await {
            Ok(stream) => Ok(stream),
            Err(refused) => {
                let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, self.port));
                TcpStream::connect(v6).await.map_err(|_| refused)
            }
        }
    }

    fn log_change(&self, failure: Option<&String>) {
        let is_answered = failure.is_none();
        if self.is_answered.swap(is_answered, Ordering::Relaxed) != is_answered {
            let port = self.port;
            let _closed_pipe = match failure {
                Some(why) => writeln!(
                    io::stderr(),
                    "health-probe-proxy: kube-proxy on port {port} {why}: probes are answered with 502"
                ),
                None => writeln!(io::stderr(), "health-probe-proxy: kube-proxy on port {port} answers again"),
            };
        }
    }
}

/// Removes the headers for this hop only, including those that `Connection` names.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}
