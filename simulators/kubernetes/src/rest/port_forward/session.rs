//! One connection: pairs of streams, an error stream and a data stream with the same request ID, each for a port of a
//! pod.

use std::collections::HashMap;
use std::io;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::rest::port_forward::frame::{FINISHED, Frame, MAX_DATA};
use crate::rest::port_forward::headers;
use crate::rest::port_forward::headers::Reader;
use crate::rest::port_forward::ports::PodConnection;

/// How many frames may be buffered on their way to a port, or to the client.
const WAITING_FRAMES: usize = 16;

/// Serves a connection until it ends.
///
/// # Errors
/// The connection breaks, or the data is not SPDY.
pub(super) async fn serve(
    connection: impl AsyncRead + AsyncWrite + Send + 'static,
    connect: impl Fn(u16) -> BoxFuture<'static, PodConnection>,
) -> io::Result<()> {
    let (mut from, mut to) = tokio::io::split(connection);
    let (send, mut sent) = mpsc::channel::<Frame>(WAITING_FRAMES);
    let writer = async move {
        while let Some(frame) = sent.recv().await {
            to.write_all(&frame.to_bytes()).await?;
            to.flush().await?;
        }
        to.shutdown().await
    };
    let reader = async move {
        let mut streams = Streams { send, known: HashMap::new(), errors: HashMap::new(), begun: false };
        let mut headers = Reader::new();
        while let Some(frame) = Frame::read(&mut from).await? {
            match frame {
                Frame::Open { stream, headers: block, .. } => {
                    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "headers cannot be read");
                    let said = headers.read(&block).ok_or_else(invalid)?;
                    let text = |name: &str| said.get(name).map(String::as_str).unwrap_or_default();
                    streams.open(stream, text("streamtype"), text("requestid"), text("port"), &connect).await;
                }
                Frame::Data { stream, flags, data } => streams.pass_on(stream, flags, data).await,
                Frame::Reset { stream, .. } => drop(streams.known.remove(&stream)),
                Frame::Ping { id } => streams.say(Frame::Ping { id }).await,
                Frame::GoAway => break,
                Frame::Reply { .. } | Frame::Other => {}
            }
        }
        Ok(())
    };
    // The connection ends when the reader ends; the writer ends when no frames are left.
    tokio::select! {
        done = writer => done,
        done = reader => done,
    }
}

struct Streams {
    send: mpsc::Sender<Frame>,
    /// The receivers of data streams.
    known: HashMap<u32, mpsc::Sender<Vec<u8>>>,
    /// Error streams, by request ID.
    errors: HashMap<String, u32>,
    /// Whether any headers were sent.
    begun: bool,
}

impl Streams {
    async fn say(&self, frame: Frame) {
        // A client that is gone receives nothing.
        let _ = self.send.send(frame).await;
    }

    async fn open(
        &mut self,
        stream: u32,
        kind: &str,
        request: &str,
        port: &str,
        connect: &impl Fn(u16) -> BoxFuture<'static, PodConnection>,
    ) {
        let headers = headers::none(!self.begun);
        self.begun = true;
        self.say(Frame::Reply { stream, headers }).await;
        if kind == "error" {
            self.errors.insert(request.to_owned(), stream);
            return;
        }
        let errors = self.errors.remove(request);
        let (into, incoming) = mpsc::channel(WAITING_FRAMES);
        self.known.insert(stream, into);
        let connecting = match port.parse() {
            Ok(port) => connect(port),
            Err(_) => {
                let why = format!("{port:?} is no port");
                Box::pin(async move { Err(why) })
            }
        };
        tokio::spawn(forward(connecting, stream, errors, self.send.clone(), incoming));
    }

    async fn pass_on(&mut self, stream: u32, flags: u8, data: Vec<u8>) {
        let Some(into) = self.known.get(&stream) else { return };
        if !data.is_empty() {
            // A port that has closed the connection receives nothing.
            let _ = into.send(data).await;
        }
        if flags & FINISHED != 0 {
            self.known.remove(&stream);
        }
    }
}

/// Forwards data in both directions between a stream and a port.
async fn forward(
    connecting: BoxFuture<'static, PodConnection>,
    stream: u32,
    errors: Option<u32>,
    send: mpsc::Sender<Frame>,
    mut incoming: mpsc::Receiver<Vec<u8>>,
) {
    let finished = |stream: u32, data: Vec<u8>| Frame::Data { stream, flags: FINISHED, data };
    let connection = match connecting.await {
        Ok(connection) => connection,
        Err(why) => {
            if let Some(errors) = errors {
                let _ = send.send(finished(errors, why.into_bytes())).await;
            }
            let _ = send.send(finished(stream, Vec::new())).await;
            return;
        }
    };
    let (mut from, mut to) = tokio::io::split(connection);
    let there = async {
        while let Some(data) = incoming.recv().await {
            to.write_all(&data).await?;
        }
        to.shutdown().await
    };
    let back = async {
        let mut buffer = vec![0; MAX_DATA];
        loop {
            let count = from.read(&mut buffer).await?;
            let data = buffer.get(..count).unwrap_or_default().to_vec();
            let last = data.is_empty();
            let frame = if last { finished(stream, data) } else { Frame::Data { stream, flags: 0, data } };
            if send.send(frame).await.is_err() || last {
                return io::Result::Ok(());
            }
        }
    };
    if let Err(error) = tokio::try_join!(there, back) {
        tracing::debug!(%error, "a forwarded connection broke");
        let _ = send.send(finished(stream, Vec::new())).await;
    }
    if let Some(errors) = errors {
        let _ = send.send(finished(errors, Vec::new())).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::rest::port_forward::headers::tests::OF_GO;

    /// Port 2379 echoes data, and closes when the client does. No other port is open.
    fn connect(port: u16) -> BoxFuture<'static, PodConnection> {
        Box::pin(async move {
            if port != 2379 {
                return Err(format!("port {port} is closed"));
            }
            let (ours, theirs) = tokio::io::duplex(1024);
            tokio::spawn(async move {
                let (mut from, mut to) = tokio::io::split(ours);
                tokio::io::copy(&mut from, &mut to).await?;
                to.shutdown().await
            });
            Ok(Box::pin(theirs) as _)
        })
    }

    #[tokio::test]
    async fn what_a_client_of_go_sends_comes_back_from_its_port() {
        let (mut client, server) = tokio::io::duplex(4096);
        let served = tokio::spawn(serve(server, connect));
        let frames = [
            Frame::Open { stream: 1, flags: 0, headers: OF_GO[0].to_vec() },
            Frame::Data { stream: 1, flags: FINISHED, data: Vec::new() },
            Frame::Open { stream: 3, flags: 0, headers: OF_GO[1].to_vec() },
            Frame::Ping { id: 9 },
            Frame::Data { stream: 3, flags: 0, data: b"hello ".to_vec() },
            Frame::Data { stream: 3, flags: FINISHED, data: b"port".to_vec() },
        ];
        for frame in &frames {
            client.write_all(&frame.to_bytes()).await.unwrap();
        }
        let (mut replies, mut data, mut ends) = (vec![], vec![], vec![]);
        while ends.len() < 2 {
            let read =
                timeout(Duration::from_secs(5), Frame::read(&mut client)).await.expect("frames in time");
            match read.unwrap().expect("no end before both streams have ended") {
                Frame::Reply { stream, .. } => replies.push(stream),
                Frame::Data { stream, flags, data: more } => {
                    data.extend(more);
                    ends.extend((flags & FINISHED != 0).then_some(stream));
                }
                Frame::Ping { id } => assert_eq!(id, 9),
                other => panic!("{other:?}"),
            }
        }
        ends.sort_unstable();
        assert_eq!(
            (replies, String::from_utf8(data).unwrap().as_str(), ends),
            (vec![1, 3], "hello port", vec![1, 3])
        );
        client.write_all(&Frame::GoAway.to_bytes()).await.unwrap();
        timeout(Duration::from_secs(5), served).await.expect("an end").unwrap().unwrap();
    }
}
