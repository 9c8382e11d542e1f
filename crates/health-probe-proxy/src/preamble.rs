//! The PROXY protocol, versions 1 and 2: the preamble that a private link service puts before the bytes of a
//! connection.
//!
//! <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The start of version 1.
const TEXT: &[u8] = b"PROXY ";
/// The longest line of version 1, including its end.
const MAX_TEXT_BYTES: usize = 107;
/// The start of version 2.
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// The fixed part of version 2: the signature, version and command, family, length.
const FIXED_BYTES: usize = 16;
/// The limit of a preamble. Azure adds the ID of the link, some ten bytes; it sends no larger ones.
pub const MAX_BYTES: usize = 4096;

/// The meaning of the first bytes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The start of a preamble: incomplete.
    Incomplete,
    /// No preamble: all bytes belong to the connection.
    Absent,
    /// A preamble.
    Present {
        /// Its length in bytes.
        length: usize,
        /// The real client; `None` if the preamble does not name it.
        source: Option<SocketAddr>,
    },
}

/// Bytes that begin like a preamble and are invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed PROXY preamble: {0}")]
pub struct Malformed(pub &'static str);

/// Parses the bytes received so far.
///
/// # Errors
/// They begin like a preamble, and cannot become one.
pub fn parse(bytes: &[u8]) -> Result<Start, Malformed> {
    let begins = |start: &[u8]| bytes.iter().zip(start).all(|(byte, expected)| byte == expected);
    if bytes.is_empty() {
        Ok(Start::Incomplete)
    } else if begins(TEXT) {
        if bytes.len() < TEXT.len() { Ok(Start::Incomplete) } else { parse_text(bytes) }
    } else if begins(SIGNATURE) {
        parse_binary(bytes)
    } else {
        Ok(Start::Absent)
    }
}

fn parse_text(bytes: &[u8]) -> Result<Start, Malformed> {
    let line = &bytes[..bytes.len().min(MAX_TEXT_BYTES)];
    let Some(end) = line.windows(2).position(|pair| pair == b"\r\n") else {
        let is_whole = bytes.len() >= MAX_TEXT_BYTES;
        return if is_whole { Err(Malformed("a line without end")) } else { Ok(Start::Incomplete) };
    };
    let line = std::str::from_utf8(&line[TEXT.len()..end]).map_err(|_| Malformed("no text"))?;
    let source = match line.split(' ').collect::<Vec<_>>()[..] {
        ["UNKNOWN", ..] => None,
        [family @ ("TCP4" | "TCP6"), source, destination, source_port, destination_port] => {
            let address = |text: &str| {
                let address: IpAddr = text.parse().ok()?;
                (address.is_ipv4() == (family == "TCP4")).then_some(address)
            };
            let port = |text: &str| text.parse::<u16>().ok();
            // All four must be valid, although only one of them is used.
            let whole = (address(source), address(destination), port(source_port), port(destination_port));
            let (Some(source), Some(_), Some(port), Some(_)) = whole else {
                return Err(Malformed("invalid addresses or ports"));
            };
            Some(SocketAddr::new(source, port))
        }
        _ => return Err(Malformed("an unknown family, or another number of words")),
    };
    Ok(Start::Present { length: end + 2, source })
}

fn parse_binary(bytes: &[u8]) -> Result<Start, Malformed> {
    let Some(fixed) = bytes.get(..FIXED_BYTES) else { return Ok(Start::Incomplete) };
    let length = FIXED_BYTES + usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    let is_proxied = match fixed[12] {
        // A health check of the proxy itself, without addresses.
        0x20 => false,
        0x21 => true,
        _ => return Err(Malformed("an unknown version or command")),
    };
    if length > MAX_BYTES {
        return Err(Malformed("too long"));
    }
    let Some(addresses) = bytes.get(FIXED_BYTES..length) else { return Ok(Start::Incomplete) };
    if !is_proxied {
        return Ok(Start::Present { length, source: None });
    }
    // Source, destination, source port, destination port.
    let source = match fixed[13] >> 4 {
        1 => addresses
            .first_chunk::<12>()
            .map(|all| (IpAddr::from(Ipv4Addr::new(all[0], all[1], all[2], all[3])), [all[8], all[9]])),
        2 => addresses.first_chunk::<36>().and_then(|all| {
            Some((IpAddr::from(Ipv6Addr::from(*all.first_chunk::<16>()?)), [all[32], all[33]]))
        }),
        // Unix sockets, or unspecified.
        _ => return Ok(Start::Present { length, source: None }),
    };
    let (address, port) = source.ok_or(Malformed("addresses that are too short"))?;
    let source = SocketAddr::new(address, u16::from_be_bytes(port));
    Ok(Start::Present { length, source: Some(source) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn source(text: &str) -> Option<SocketAddr> {
        Some(text.parse().unwrap())
    }

    /// A preamble of version 2 with these addresses, followed by extensions.
    fn binary(command: u8, family: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [SIGNATURE, &[command, family], &length, content].concat()
    }

    /// The form of Azure's private link: IPv4, TCP, and the ID of the link in an extension of type 0xEE.
    fn azure() -> Vec<u8> {
        let addresses = [10, 1, 0, 4, 10, 2, 0, 5, 0xc0, 0x01, 0x28, 0x74];
        binary(0x21, 0x11, &[&addresses[..], &[0xee, 0, 5, 1, 7, 0, 0, 0x20]].concat())
    }

    /// NODE-206
    #[test]
    fn both_versions_are_read() {
        let v6 = [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[7], &[0; 16], &[0, 80, 0, 81]].concat();
        for (bytes, expected) in [
            (b"PROXY TCP4 10.1.0.4 10.2.0.5 49153 10356\r\n".to_vec(), source("10.1.0.4:49153")),
            (b"PROXY TCP6 2001:db8::7 ::1 80 81\r\n".to_vec(), source("[2001:db8::7]:80")),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
            (b"PROXY UNKNOWN whatever stands here\r\n".to_vec(), None),
            (azure(), source("10.1.0.4:49153")),
            (binary(0x21, 0x21, &v6), source("[2001:db8::7]:80")),
            (binary(0x20, 0x00, &[]), None),
            (binary(0x21, 0x00, &[1, 2, 3]), None),
            (binary(0x21, 0x31, &[0; 216]), None),
        ] {
            let length = bytes.len();
            let expected = Start::Present { length, source: expected };
            assert_eq!(parse(&bytes), Ok(expected));
            assert_eq!(parse(&[&bytes[..], b"GET / HTTP/1.1\r\n"].concat()), Ok(expected));
            for part in 0..length {
                assert_eq!(parse(&bytes[..part]), Ok(Start::Incomplete), "{part} of {length}");
            }
        }
    }

    #[test]
    fn other_bytes_belong_to_the_connection_and_half_preambles_are_refused() {
        for request in
            ["GET /healthz HTTP/1.1\r\n", "POST / HTTP/1.1\r\n", "PROXYING", "\r\nGET", "proxy TCP4"]
        {
            assert_eq!(parse(request.as_bytes()), Ok(Start::Absent), "{request}");
        }
        let long = format!("PROXY UNKNOWN {}", "x".repeat(MAX_TEXT_BYTES));
        for bytes in [
            &b"PROXY TCP4 10.1.0.4 10.2.0.5 49153\r\n"[..],
            b"PROXY TCP4 ::1 ::1 1 2\r\n",
            b"PROXY TCP6 10.1.0.4 10.2.0.5 1 2\r\n",
            b"PROXY TCP4 10.1.0.4 10.2.0.5 1 65536\r\n",
            b"PROXY UDP4 10.1.0.4 10.2.0.5 1 2\r\n",
            b"PROXY \xff\r\n",
            long.as_bytes(),
            &binary(0x11, 0x11, &[0; 12]),
            &binary(0x22, 0x11, &[0; 12]),
            &binary(0x21, 0x11, &[0; 11]),
            &binary(0x21, 0x21, &[0; 35]),
            &binary(0x21, 0x11, &[0; MAX_BYTES]),
        ] {
            assert!(parse(bytes).is_err(), "{}", String::from_utf8_lossy(bytes));
        }
    }

    proptest! {
        /// For any bytes in any pieces: once the meaning of the first bytes is known, more of them do not change it.
        #[test]
        fn what_is_known_stays_so(
            start in prop_oneof![Just(Vec::new()), Just(TEXT.to_vec()), Just(SIGNATURE.to_vec()), Just(azure())],
            rest in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let bytes = [start, rest].concat();
            let mut known = None;
            for part in 0..=bytes.len() {
                let now = parse(&bytes[..part]);
                if let Some(before) = known {
                    prop_assert_eq!(now, before);
                } else if now != Ok(Start::Incomplete) {
                    known = Some(now);
                }
                if let Ok(Start::Present { length, .. }) = now {
                    prop_assert!(length <= part);
                }
            }
        }
    }
}
