//! The command line, by the rules of Go's `flag`: one dash or two, and arguments after the first one that is not a flag
//! are ignored.

/// The ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags {
    /// `--health-check-port`: the port for probes.
    pub health_check_port: u16,
    /// `--target-port`: kube-proxy's port.
    pub target_port: u16,
}

impl Default for Flags {
    fn default() -> Self {
        Self { health_check_port: 10356, target_port: 10256 }
    }
}

/// Why the program ends without running.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EarlyExit {
    /// The help.
    #[error("{HELP}")]
    Help,
    /// The version.
    #[error("version v{}", version::Version)]
    Version,
    /// The flag does not exist.
    #[error("flag provided but not defined: -{0}\n{HELP}")]
    Unknown(String),
    /// A flag at the end, without its value.
    #[error("flag needs an argument: -{0}\n{HELP}")]
    WithoutValue(String),
    /// The value is not a port.
    #[error("invalid value {value:?} for flag -{flag}: give a port from 1 to 65535")]
    NoPort {
        /// The flag.
        flag: String,
        /// The value.
        value: String,
    },
    /// The same port for both: the program would forward to itself.
    #[error("-health-check-port and -target-port are both {0}: give them different ports")]
    SamePort(u16),
}

const HELP: &str = "\
Usage of health-probe-proxy:
  -health-check-port int
    \tthe port for health probes, with or without a PROXY preamble: \
the one that Azure's load balancer probes (default 10356)
  -target-port int
    \tthe port where kube-proxy answers health probes (default 10256)
  -version
    \tprint the version
";

impl Flags {
    /// Parses the arguments after the program's name.
    ///
    /// # Errors
    /// The program ends without running.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, EarlyExit> {
        let mut flags = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let Some(word) = argument.strip_prefix('-') else { break };
            let word = word.strip_prefix('-').unwrap_or(word);
            if word.is_empty() {
                break;
            }
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word, None),
            };
            let port = match name {
                "health-check-port" => &mut flags.health_check_port,
                "target-port" => &mut flags.target_port,
                "h" | "help" => return Err(EarlyExit::Help),
                "version" if value.as_deref() != Some("false") => return Err(EarlyExit::Version),
                "version" => continue,
                _ => return Err(EarlyExit::Unknown(name.to_owned())),
            };
            let value =
                value.or_else(|| arguments.next()).ok_or_else(|| EarlyExit::WithoutValue(name.to_owned()))?;
            let number = value.parse().ok().filter(|port| *port != 0);
            *port = number.ok_or_else(|| EarlyExit::NoPort { flag: name.to_owned(), value })?;
        }
        if flags.health_check_port == flags.target_port {
            return Err(EarlyExit::SamePort(flags.target_port));
        }
        Ok(flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Flags, EarlyExit> {
        Flags::parse(words.split_whitespace().map(str::to_owned))
    }

    /// NODE-207
    #[test]
    fn ports_are_read_with_one_dash_or_two() {
        assert_eq!(read(""), Ok(Flags { health_check_port: 10356, target_port: 10256 }));
        for words in [
            "--health-check-port=1 --target-port=2",
            "-health-check-port 1 -target-port 2",
            "--health-check-port 1 -target-port=2 rest --nonsense",
            "-health-check-port=3 -health-check-port=1 -target-port=2 -- --nonsense",
        ] {
            assert_eq!(read(words), Ok(Flags { health_check_port: 1, target_port: 2 }), "{words}");
        }
        assert_eq!(read("-h"), Err(EarlyExit::Help));
        assert_eq!(
            (read("--version"), read("-version=true")),
            (Err(EarlyExit::Version), Err(EarlyExit::Version))
        );
        assert!(EarlyExit::Version.to_string().starts_with("version v0"), "{}", EarlyExit::Version);
        assert_eq!(read("--nonsense=1"), Err(EarlyExit::Unknown("nonsense".into())));
        assert_eq!(read("--target-port"), Err(EarlyExit::WithoutValue("target-port".into())));
        assert_eq!(read("--target-port=10356"), Err(EarlyExit::SamePort(10356)));
        for value in ["x", "0", "65536", "-1", ""] {
            let error = read(&format!("--target-port={value}")).unwrap_err();
            assert!(error.to_string().contains("give a port from 1 to 65535"), "{error}");
        }
    }
}
