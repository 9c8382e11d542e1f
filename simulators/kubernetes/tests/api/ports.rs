//! Ports of pods, forwarded over a SPDY connection like that of a Go client.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kubernetes_simulator::{Kubernetes, Options, PodConnection, PodPorts};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

/// Headers of an error stream and a data stream for port 2379, as Go's implementation writes them.
const OF_GO: [&[u8]; 2] = include!("../../src/rest/port_forward/of_go.txt");

/// Returns port and pod as a text.
struct Names;

impl PodPorts for Names {
    fn connect(&self, namespace: &str, pod: &str, port: u16) -> BoxFuture<'static, PodConnection> {
        let words = format!("{namespace}/{pod} at {port}");
        async move {
            let (mut ours, theirs) = tokio::io::duplex(256);
            ours.write_all(words.as_bytes()).await.map_err(|error| error.to_string())?;
            Ok(Box::pin(theirs) as _)
        }
        .boxed()
    }
}

/// Requests the ports of a pod. Returns the connection, and the head of the response.
async fn ask(kubernetes: &Kubernetes, pod: &str, upgrade: &str) -> (TlsStream<TcpStream>, String) {
    let address =
        kubernetes.serve_https("127.0.0.1:0".parse().unwrap(), CancellationToken::new()).await.unwrap();
    let tls = kubernetes.authority().unwrap().client_config().unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = "localhost".try_into().unwrap();
    let mut stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await.unwrap();
    let head = format!(
        "POST /api/v1/namespaces/default/pods/{pod}/portforward HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n{upgrade}\
         X-Stream-Protocol-Version: portforward.k8s.io\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    (stream, String::from_utf8(answer).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_is_forwarded_to_what_answers_there() {
    const SPDY: &str = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n";
    let kubernetes = Kubernetes::new(Options::default());
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": "etcd-0"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    kubernetes.create(pod).unwrap();
    let (_, head) = ask(&kubernetes, "etcd-0", SPDY).await;
    assert!(head.starts_with("HTTP/1.1 501 "), "nothing answers yet: {head}");
    kubernetes.answer_at_ports(Arc::new(Names));
    let (_, head) = ask(&kubernetes, "etcd-1", SPDY).await;
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
    // Go's clients request a tunnel over WebSockets first, and fall back to SPDY.
    let (_, head) = ask(&kubernetes, "etcd-0", "Connection: Upgrade\r\nUpgrade: websocket\r\n").await;
    assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
    let (mut stream, head) = ask(&kubernetes, "etcd-0", SPDY).await;
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("upgrade: SPDY/3.1\r\n"), "{head}");

    for (number, headers) in [1_u8, 3].into_iter().zip(OF_GO) {
        let length = u8::try_from(headers.len() + 10).unwrap();
        let begin = [0x80, 3, 0, 1, 0, 0, 0, length, 0, 0, 0, number, 0, 0, 0, 0, 0, 0];
        stream.write_all(&[begin.as_slice(), headers].concat()).await.unwrap();
    }
    let wanted = b"default/etcd-0 at 2379";
    let mut said = Vec::new();
    let heard = async {
        while !said.windows(wanted.len()).any(|window| window == wanted) {
            said.push(stream.read_u8().await.unwrap());
        }
    };
    tokio::time::timeout(Duration::from_secs(10), heard).await.expect("what the port says");
}
