//! Where a driver listens, as `--endpoint` gives it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a driver listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix socket at this absolute path: `unix:///csi/csi.sock`, or `unix://csi/csi.sock` for the same.
    Unix(PathBuf),
    /// A host and a port: `tcp://127.0.0.1:10000`. Without a host, all addresses.
    Tcp(String),
}

/// The text describes no endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The scheme is one of the two.
    #[error("endpoint {0:?} is invalid: expected unix://PATH or tcp://HOST:PORT")]
    Scheme(String),
    /// A path follows `unix://`.
    #[error("endpoint {0:?} is invalid: expected a path after unix://, such as unix:///csi/csi.sock")]
    Path(String),
    /// A host and a port follow `tcp://`.
    #[error(
        "endpoint {0:?} is invalid: expected a host and a port after tcp://, such as tcp://127.0.0.1:10000"
    )]
    Port(String),
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(EndpointError::Scheme(text.to_owned()));
        };
        if scheme.eq_ignore_ascii_case("unix") {
            // The established drivers put a slash before any path: relative ones do not exist.
            let path = rest.trim_start_matches('/');
            if path.is_empty() || path.ends_with('/') {
                return Err(EndpointError::Path(text.to_owned()));
            }
            Ok(Self::Unix(PathBuf::from(format!("/{path}"))))
        } else if scheme.eq_ignore_ascii_case("tcp") {
            let port = rest.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
            match port {
                Some(_) => Ok(Self::Tcp(rest.to_owned())),
                None => Err(EndpointError::Port(text.to_owned())),
            }
        } else {
            Err(EndpointError::Scheme(text.to_owned()))
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CSI-063. Section 2.1 of the specification of the drivers.
    #[test]
    fn endpoints_are_read_as_the_established_drivers_read_them() {
        for (text, written) in [
            ("unix://tmp/csi.sock", Ok("unix:///tmp/csi.sock")),
            ("unix:///csi/csi.sock", Ok("unix:///csi/csi.sock")),
            ("UNIX:///csi/csi.sock", Ok("unix:///csi/csi.sock")),
            ("unix:////csi/csi.sock", Ok("unix:///csi/csi.sock")),
            ("tcp://127.0.0.1:10000", Ok("tcp://127.0.0.1:10000")),
            ("Tcp://[::1]:10000", Ok("tcp://[::1]:10000")),
            ("tcp://:10000", Ok("tcp://:10000")),
            ("tcp://localhost:10000", Ok("tcp://localhost:10000")),
            ("", Err("expected unix://PATH or tcp://HOST:PORT")),
            ("/csi/csi.sock", Err("expected unix://PATH or tcp://HOST:PORT")),
            ("http://127.0.0.1:80", Err("expected unix://PATH or tcp://HOST:PORT")),
            ("unix:/csi/csi.sock", Err("expected unix://PATH or tcp://HOST:PORT")),
            ("unix://", Err("expected a path after unix://")),
            ("unix:///csi/", Err("expected a path after unix://")),
            ("tcp://", Err("expected a host and a port after tcp://")),
            ("tcp://127.0.0.1", Err("expected a host and a port after tcp://")),
            ("tcp://127.0.0.1:65536", Err("expected a host and a port after tcp://")),
        ] {
            match (text.parse::<Endpoint>(), written) {
                (Ok(endpoint), Ok(written)) => assert_eq!(endpoint.to_string(), written, "{text}"),
                (Err(error), Err(why)) => assert!(error.to_string().contains(why), "{text}: {error}"),
                (read, _) => panic!("{text} was read as {read:?}"),
            }
        }
    }
}
