//! The machine that figures come from, as far as the system describes it.

use serde::Serialize;

/// A machine. Unknown values are empty or 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// The number of processors that this program may use.
    pub cores: usize,
    /// The processor's name.
    pub processor: String,
    /// Memory in bytes.
    pub memory: u64,
    /// The system's name, such as `Debian GNU/Linux 12 (bookworm)`.
    pub system: String,
    /// The architecture, such as `x86_64`.
    pub architecture: String,
    /// The load average of the previous minute: other programs influence the times.
    pub load: f64,
}

impl Machine {
    /// The machine that this program runs on.
    pub fn of_this_process() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let kilobytes = value_of(&read("/proc/meminfo"), "MemTotal", ':');
        let kilobytes: u64 =
            kilobytes.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or_default();
        Self {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            processor: value_of(&read("/proc/cpuinfo"), "model name", ':'),
            memory: kilobytes * 1024,
            system: value_of(&read("/etc/os-release"), "PRETTY_NAME", '=').trim_matches('"').to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            load: read("/proc/loadavg")
                .split_whitespace()
                .next()
                .and_then(|n| n.parse().ok())
                .unwrap_or_default(),
        }
    }

    /// A description in one line.
    pub fn describe(&self) -> String {
        let gibibytes = (self.memory as f64 / (1024.0 * 1024.0 * 1024.0)).round();
        let parts = [
            format!("{} cores", self.cores),
            self.processor.clone(),
            format!("{gibibytes} GiB"),
            self.system.clone(),
            self.architecture.clone(),
            format!("load {}", self.load),
        ];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(", ")
    }
}

/// The value of a name in a file with lines `name: value`.
fn value_of(text: &str, name: &str, separator: char) -> String {
    let value = |line: &str| {
        let (found, value) = line.split_once(separator)?;
        (found.trim() == name).then(|| value.trim().to_owned())
    };
    text.lines().find_map(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_names_and_values_are_read_and_what_is_missing_is_left_out() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC: 7763\n";
        assert_eq!(value_of(text, "model name", ':'), "AMD EPYC: 7763");
        assert_eq!(value_of(text, "flags", ':'), "");
        let machine = Machine { cores: 2, memory: 25_000_000_000, ..Machine::default() };
        assert_eq!(machine.describe(), "2 cores, 23 GiB, load 0");
    }
}
