//! Frames of SPDY/3.1 ("SPDY Protocol, Draft 3.1", section 2.2), as far as port forwarding uses them.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Larger frames are refused: clients send blocks of some tens of kilobytes.
const MAX_PAYLOAD: usize = 1024 * 1024;
/// The flag of a sender's last frame.
pub(super) const FINISHED: u8 = 1;
const CONTROL: u32 = 1 << 31;
const VERSION: u32 = 3 << 16;
/// Maximum data in a frame that this side sends.
pub(super) const MAX_DATA: usize = 32 * 1024;

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// Opens a stream, with compressed headers.
    Open {
        stream: u32,
        flags: u8,
        headers: Vec<u8>,
    },
    /// Accepts a stream, with compressed headers.
    Reply {
        stream: u32,
        headers: Vec<u8>,
    },
    /// Ends a stream at once.
    Reset {
        stream: u32,
        status: u32,
    },
    /// A ping, which is sent back unchanged.
    Ping {
        id: u32,
    },
    /// The connection ends.
    GoAway,
    Data {
        stream: u32,
        flags: u8,
        data: Vec<u8>,
    },
    /// A frame without an effect here: settings, windows.
    Other,
}

const OPEN: u32 = 1;
const REPLY: u32 = 2;
const RESET: u32 = 3;
const PING: u32 = 6;
const GO_AWAY: u32 = 7;

impl Frame {
    /// Reads the next frame; `None` at the end of the connection.
    ///
    /// # Errors
    /// The connection breaks, or the data is not a frame.
    pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let first = match from.read_u32().await {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            first => first?,
        };
        let second = from.read_u32().await?;
        let [flags, ..] = second.to_be_bytes();
        let length = usize::try_from(second & 0x00ff_ffff).unwrap_or(usize::MAX);
        if length > MAX_PAYLOAD {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too large"));
        }
        let mut payload = vec![0; length];
        from.read_exact(&mut payload).await?;
        if first & CONTROL == 0 {
            return Ok(Some(Self::Data { stream: first, flags, data: payload }));
        }
        let short = || io::Error::new(io::ErrorKind::InvalidData, "a frame is too short");
        let number = |at: usize| {
            let bytes = payload.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u32::from_be_bytes).ok_or_else(short)
        };
        let rest = |at: usize| payload.get(at..).map(<[u8]>::to_vec).ok_or_else(short);
        Ok(Some(match first & 0xffff {
            // Between the stream's number and its headers: the associated stream, and its priority.
            OPEN => Self::Open { stream: number(0)?, flags, headers: rest(10)? },
            REPLY => Self::Reply { stream: number(0)?, headers: rest(4)? },
            RESET => Self::Reset { stream: number(0)?, status: number(4)? },
            PING => Self::Ping { id: number(0)? },
            GO_AWAY => Self::GoAway,
            _ => Self::Other,
        }))
    }

    /// The frame in wire format.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let (first, flags, payload) = match self {
            Self::Data { stream, flags, data } => (*stream, *flags, data.clone()),
            Self::Open { stream, flags, headers } => {
                let fields = [stream.to_be_bytes().as_slice(), &[0; 6], headers].concat();
                (CONTROL | VERSION | OPEN, *flags, fields)
            }
            Self::Reply { stream, headers } => {
                (CONTROL | VERSION | REPLY, 0, [stream.to_be_bytes().as_slice(), headers].concat())
            }
            Self::Reset { stream, status } => {
                (CONTROL | VERSION | RESET, 0, [stream.to_be_bytes(), status.to_be_bytes()].concat())
            }
            Self::Ping { id } => (CONTROL | VERSION | PING, 0, id.to_be_bytes().to_vec()),
            Self::GoAway => (CONTROL | VERSION | GO_AWAY, 0, vec![0; 8]),
            Self::Other => return Vec::new(),
        };
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX) & 0x00ff_ffff;
        let second = u32::from(flags) << 24 | length;
        [first.to_be_bytes().as_slice(), &second.to_be_bytes(), &payload].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_read_back_as_they_were_written() {
        let frames = [
            Frame::Open { stream: 1, flags: FINISHED, headers: vec![1, 2, 3] },
            Frame::Reply { stream: 1, headers: vec![4] },
            Frame::Reset { stream: 3, status: 5 },
            Frame::Ping { id: 7 },
            Frame::GoAway,
            Frame::Data { stream: 3, flags: 0, data: b"hello".to_vec() },
        ];
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::to_bytes).collect();
        let mut from = bytes.as_slice();
        for frame in frames {
            assert_eq!(Frame::read(&mut from).await.unwrap(), Some(frame));
        }
        assert_eq!(Frame::read(&mut from).await.unwrap(), None);
        let large = [0, 0, 0, 1, 0, 0xff, 0xff, 0xff];
        Frame::read(&mut large.as_slice()).await.unwrap_err();
        // A ping without a number.
        Frame::read(&mut [0x80, 3, 0, 6, 0, 0, 0, 0].as_slice()).await.unwrap_err();
    }
}
