//! A stand-in of node-driver-registrar: answers the kubelet's questions about a driver (kubelet plugin registration, version 1).
//!
//! The kubelet names the path of the socket as the authority of its requests, which the HTTP/2 of Rust's servers refuses as no
//! valid one. Two calls need so little of HTTP/2 (RFC 9113) and of gRPC that they are answered here without them.

use std::io;
use std::path::Path;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

/// The bytes with which an HTTP/2 client begins.
const PREFACE: usize = 24;
const HEAD: usize = 9;
/// Types of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
/// Flags of frames: acknowledgement of settings and pings; the end of a stream; the end of headers.
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200`, by its index in HPACK's static table (RFC 7541, appendix A).
const STATUS_OK: u8 = 0x88;

/// A running registrar, which ends with this value.
#[derive(Debug)]
pub struct Registrar(JoinHandle<()>);

impl Drop for Registrar {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Registrar {
    /// Listens in the folder that a kubelet watches, for the driver of this name at this socket.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn start(name: &str, folder: &Path, socket: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let listener = UnixListener::bind(folder.join(format!("{name}-reg.sock")))?;
        let info = [(1, "CSIPlugin"), (2, name), (3, &socket.display().to_string()), (4, "1.0.0")];
        let info: Vec<u8> = info.into_iter().flat_map(|(tag, text)| field(tag, text.as_bytes())).collect();
        Ok(Self(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let info = info.clone();
                // The kubelet closes the connection after each call, which ends this as an error.
                tokio::spawn(async move { answer(stream, &info).await });
            }
        })))
    }
}

/// A member of a protobuf message, shorter than 16 KiB.
fn field(tag: u8, content: &[u8]) -> Vec<u8> {
    let (low, high) = ((content.len() & 0x7f) as u8, (content.len() >> 7) as u8);
    let length = if high == 0 { vec![low] } else { vec![low | 0x80, high] };
    [&[tag << 3 | 2][..], &length, content].concat()
}

/// A header in HPACK, as a literal that enters no table.
fn header(name: &str, value: &str) -> Vec<u8> {
    [&[0, name.len() as u8][..], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
}

fn frame(kind: u8, flags: u8, stream: [u8; 4], content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream, content].concat()
}

/// A message of gRPC: it is not compressed, and has a length.
fn message(content: &[u8]) -> Vec<u8> {
    [&[0][..], &(content.len() as u32).to_be_bytes(), content].concat()
}

/// Answers the calls of a connection. The question about the plugin has an empty message; the message about the registration
/// is not empty, and is answered by an empty one.
async fn answer(mut connection: UnixStream, info: &[u8]) -> io::Result<()> {
    connection.read_exact(&mut [0; PREFACE]).await?;
    connection.write_all(&frame(SETTINGS, 0, [0; 4], &[])).await?;
    loop {
        let mut head = [0; HEAD];
        connection.read_exact(&mut head).await?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let mut content = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        connection.read_exact(&mut content).await?;
        let reply = match kind {
            SETTINGS if flags & ACK == 0 => frame(SETTINGS, ACK, [0; 4], &[]),
            PING if flags & ACK == 0 => frame(PING, ACK, [0; 4], &content),
            DATA if flags & END_STREAM != 0 => {
                let asks = content.len() <= message(&[]).len();
                let begin = [vec![STATUS_OK], header("content-type", "application/grpc")].concat();
                [
                    frame(HEADERS, END_HEADERS, stream, &begin),
                    frame(DATA, 0, stream, &message(if asks { info } else { &[] })),
                    frame(HEADERS, END_HEADERS | END_STREAM, stream, &header("grpc-status", "0")),
                ]
                .concat()
            }
            _ => continue,
        };
        connection.write_all(&reply).await?;
    }
}
