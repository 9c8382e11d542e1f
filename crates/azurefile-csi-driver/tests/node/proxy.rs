//! The proxy's protocol, on a Unix socket.

use std::convert::Infallible;

use azurefile_csi_driver::node::proxy::GrpcProxy;
use azurefile_csi_driver::node::{Proxy as _, ProxyMount};
use csi::endpoint::Endpoint;
use tokio::net::UnixListener;

/// FILE-132. Section 4.7: the established proxy's method and message.
#[tokio::test]
async fn the_proxy_is_called_as_the_established_driver_calls_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("proxy.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (heard, mut asked) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let answer = move |request: hyper::Request<hyper::body::Incoming>| {
            let heard = heard.clone();
            async move {
                let path = request.uri().path().to_owned();
                let body = http_body_util::BodyExt::collect(request.into_body()).await.unwrap().to_bytes();
                heard.send((path, body)).await.unwrap();
                let response = hyper::Response::builder()
                    .header("content-type", "application/grpc")
                    .header("grpc-status", "2")
                    .header("grpc-message", "azurefile mount failed");
                Ok::<_, Infallible>(
                    response.body(http_body_util::Empty::<hyper::body::Bytes>::new()).unwrap(),
                )
            }
        };
        let service = hyper::service::service_fn(answer);
        let executor = hyper_util::rt::TokioExecutor::new();
        let served = hyper::server::conn::http2::Builder::new(executor);
        let _ended = served.serve_connection(hyper_util::rt::TokioIo::new(stream), service).await;
    });
    let proxy = GrpcProxy::new(Endpoint::Unix(path));
    let mount = ProxyMount {
        source: "h:/a/s".to_owned(),
        target: "/t".into(),
        kind: "aznfs".to_owned(),
        options: vec!["vers=4".to_owned(), "notls".to_owned()],
    };
    assert_eq!(proxy.mount(&mount).await.unwrap_err(), "azurefile mount failed");
    let (path, body) = asked.recv().await.unwrap();
    assert_eq!(path, "/MountService/MountAzureFile");
    // Fields 1 to 4 of the message, behind the five bytes of the frame.
    assert_eq!(&body[5..], b"\x0a\x06h:/a/s\x12\x02/t\x1a\x05aznfs\x22\x06vers=4\x22\x05notls");
}
