//! Command line values in Go's formats, which manifests use.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

/// Parses a duration such as `10s`, `1h30m`, `1.5h`, `100ms` or `0`.
///
/// # Errors
/// A sentence that says what is missing or wrong.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no duration; write for example 10s, 5m or 1h30m");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut total = 0f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(digits);
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let unit = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, next) = tail.split_at(unit);
        let seconds = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(wrong()),
        };
        total += number * seconds;
        rest = next;
    }
    Duration::try_from_secs_f64(total).map_err(|_| wrong())
}

/// Parses a boolean as Go does: `true`, `T`, `1` and their opposites.
///
/// # Errors
/// A sentence that names the allowed values.
pub fn truth(text: &str) -> Result<bool, String> {
    k8s::parse_bool(text).ok_or_else(|| format!("`{text}` is neither true nor false"))
}

/// Parses an address to listen on: `:8443`, `localhost:8443`, `0.0.0.0:8443`. `None` for `0` and an empty text, which
/// disable the listener.
///
/// # Errors
/// A sentence that says what to write.
pub fn listen_address(text: &str) -> Result<Option<SocketAddr>, String> {
    if matches!(text, "" | "0") {
        return Ok(None);
    }
    let wrong = || format!("`{text}` is no address to listen on; write for example :8443 or 127.0.0.1:8443");
    if let Some(port) = text.strip_prefix(':') {
        let port = port.parse().map_err(|_| wrong())?;
        return Ok(Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))));
    }
    let mut addresses = text.to_socket_addrs().map_err(|_| wrong())?;
    addresses.next().map(Some).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        for (text, milliseconds) in [
            ("10s", 10_000),
            ("1h30m", 5_400_000),
            ("1.5h", 5_400_000),
            ("100ms", 100),
            ("0", 0),
            ("5m0s", 300_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "10", "s", "1 h", "-5s", "1x", "1.2.3s"] {
            assert!(duration(text).unwrap_err().contains("is no duration"), "{text}");
        }
    }

    #[test]
    fn addresses_are_read_as_go_reads_them() {
        let read = |text| listen_address(text).map(|found| found.map(|address| address.to_string()));
        for (text, address) in
            [(":8443", "0.0.0.0:8443"), ("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:80", "[::1]:80")]
        {
            assert_eq!(read(text), Ok(Some(address.to_owned())), "{text}");
        }
        assert_eq!((read(""), read("0")), (Ok(None), Ok(None)));
        assert!(
            listen_address("localhost:9").is_ok_and(|found| found.is_some_and(|it| it.ip().is_loopback()))
        );
        for text in ["8443", ":", ":99999", "here", "a b:1"] {
            assert!(read(text).unwrap_err().contains("is no address"), "{text}");
        }
    }

    #[test]
    fn truth_values_are_read_as_go_reads_them() {
        assert_eq!(truth("T"), Ok(true));
        assert_eq!(truth("0"), Ok(false));
        assert!(truth("yes").is_err());
    }
}
