//! The environment of a process as a value, so that the demo and tests can run the same program inside another process,
//! where environment variables cannot be set.

use std::fmt;
use std::sync::Arc;

use arm::{ProxySettings, Transport, TransportOptions};

/// Looks up an environment variable.
type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Environment variables and network settings.
#[derive(Clone)]
pub struct ProcessEnvironment {
    variable: Variables,
    /// PEM texts of certificate authorities to trust besides the system's.
    pub extra_roots: Vec<String>,
    /// Hosts whose requests are redirected, such as the instance metadata service, and their targets.
    pub redirects: Vec<(String, String)>,
}

impl ProcessEnvironment {
    /// The environment of this process.
    pub fn of_this_process() -> Self {
        Self::with_variables(|name| std::env::var(name).ok())
    }

    /// Only the given variables.
    pub fn with_variables(variable: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { variable: Arc::new(variable), extra_roots: Vec::new(), redirects: Vec::new() }
    }

    /// An environment variable; an empty one counts as not set.
    pub fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// The environment's proxy.
    ///
    /// # Errors
    /// `HTTPS_PROXY` is unusable; the text does not contain its password.
    pub fn proxy(&self) -> Result<ProxySettings, arm::Error> {
        ProxySettings::from_environment(|name| self.variable(name))
    }

    /// The transport to Azure.
    ///
    /// # Errors
    /// There are no certificate authorities, or the proxy is unusable.
    pub fn azure_transport(&self) -> Result<Transport, arm::Error> {
        Transport::connect(TransportOptions {
            extra_roots: self.extra_roots.clone(),
            redirects: self.redirects.clone(),
            proxy: self.proxy()?,
            ..TransportOptions::default()
        })
    }

    /// The name of the host, for identities and events.
    pub fn host_name(&self) -> String {
        self.variable("HOSTNAME")
            .or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok())
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "localhost".to_owned())
    }
}

impl fmt::Debug for ProcessEnvironment {
    /// Without values: some are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessEnvironment").finish_non_exhaustive()
    }
}
