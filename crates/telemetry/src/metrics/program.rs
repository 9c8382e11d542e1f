//! The program itself: its build, and what its process uses, read from `/proc` at each scrape.

use std::collections::HashMap;
use std::fs;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::computed::ComputedFamily;
use super::registry::Metrics;

/// Clock ticks per second in `/proc`: a constant of Linux for programs, on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// From which sources a program was built.
#[derive(Debug, Clone, Copy)]
pub struct Build {
    /// The program's name.
    pub program: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Its commit; empty if unknown.
    pub commit: &'static str,
}

/// The labels of `cerulean_build_info`.
type BuildLabels = [(&'static str, &'static str); 3];

impl Metrics {
    /// The metrics of a program: its build, and its process.
    pub fn of_program(build: Build) -> Self {
        let metrics = Self::default();
        let info: Family<BuildLabels, Gauge> =
            metrics.registry.add("cerulean_build_info", "The build of this program; always 1");
        let labels = [("program", build.program), ("version", build.version), ("commit", build.commit)];
        info.get_or_create(&labels).set(1);
        metrics.registry.compute(process);
        metrics
    }
}

fn process() -> Vec<ComputedFamily> {
    let read = |name: &str| fs::read_to_string(name).ok();
    let descriptors = fs::read_dir("/proc/self/fd").ok().map(Iterator::count);
    let usage = Usage::parse(
        read("/proc/self/stat").as_deref().unwrap_or_default(),
        read("/proc/self/status").as_deref().unwrap_or_default(),
        read("/proc/self/limits").as_deref().unwrap_or_default(),
        read("/proc/stat").as_deref().unwrap_or_default(),
    );
    // The folder's own descriptor is one of them.
    let open = descriptors.map(|count| count.saturating_sub(1) as f64);
    let series = |value: Option<f64>| value.map(|value| (Vec::new(), value)).into_iter().collect();
    vec![
        ComputedFamily::counter(
            "process_cpu_seconds",
            "Processor time in user and system mode",
            series(usage.processor),
        ),
        ComputedFamily::gauge(
            "process_start_time_seconds",
            "Start of the process, in seconds since 1970",
            series(usage.started),
        ),
        ComputedFamily::gauge("process_resident_memory_bytes", "Resident memory", series(usage.resident)),
        ComputedFamily::gauge("process_virtual_memory_bytes", "Virtual memory", series(usage.virtual_memory)),
        ComputedFamily::gauge("process_open_fds", "Open file descriptors", series(open)),
        ComputedFamily::gauge(
            "process_max_fds",
            "Limit of open file descriptors",
            series(usage.descriptor_limit),
        ),
    ]
}

/// What the system says about the process; `None` for what it does not say.
#[derive(Debug, Default, PartialEq)]
struct Usage {
    processor: Option<f64>,
    started: Option<f64>,
    resident: Option<f64>,
    virtual_memory: Option<f64>,
    descriptor_limit: Option<f64>,
}

impl Usage {
    /// Parses proc(5)'s files: `stat`, `status` and `limits` of the process, and `stat` of the system.
    fn parse(stat: &str, status: &str, limits: &str, system: &str) -> Self {
        // The program's name may contain anything; the fields after it are numbered from 3.
        let fields: Vec<&str> =
            stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
        let ticks = |number: usize| Some(fields.get(number - 3)?.parse::<f64>().ok()? / TICKS_PER_SECOND);
        let sizes: HashMap<&str, f64> = status
            .lines()
            .filter_map(|line| {
                let (name, value) = line.split_once(':')?;
                Some((name, value.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok()? * 1024.0))
            })
            .collect();
        let booted = system.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<f64>().ok());
        let limit = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        Self {
            processor: ticks(14).zip(ticks(15)).map(|(user, system)| user + system),
            started: booted.zip(ticks(22)).map(|(booted, after)| booted + after),
            resident: sizes.get("VmRSS").copied(),
            virtual_memory: sizes.get("VmSize").copied(),
            descriptor_limit: limit.and_then(|rest| rest.split_whitespace().next()?.parse().ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_name_may_look_like_fields() {
        let stat = "42 (a) b (1 2) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 1 0 12345 999 77 1";
        let status = "Name:\tx\nVmSize:\t   2048 kB\nVmRSS:\t    1024 kB\n";
        let limits =
            "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024   524288   files\n";
        let usage = Usage::parse(stat, status, limits, "cpu 1 2\nbtime 1800000000\n");
        let expected = Usage {
            processor: Some(2.0),
            started: Some(1_800_000_123.45),
            resident: Some(1_048_576.0),
            virtual_memory: Some(2_097_152.0),
            descriptor_limit: Some(1024.0),
        };
        assert_eq!(usage, expected);
        assert_eq!(Usage::parse("", "", "", ""), Usage::default());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_scrape_shows_build_and_process() {
        let build = Build { program: "p", version: "1.2.3", commit: "abc" };
        let text = Metrics::of_program(build).encode();
        assert!(
            text.contains("cerulean_build_info{program=\"p\",version=\"1.2.3\",commit=\"abc\"} 1"),
            "{text}"
        );
        let value = |name: &str| -> f64 {
            let line = text.lines().find(|line| line.split([' ', '{']).next() == Some(name));
            line.unwrap_or_else(|| panic!("{name} is missing in\n{text}"))
                .rsplit(' ')
                .next()
                .unwrap()
                .parse()
                .unwrap()
        };
        assert!(value("process_cpu_seconds_total") >= 0.0);
        assert!(value("process_resident_memory_bytes") > 100_000.0);
        assert!(value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes"));
        assert!(value("process_open_fds") >= 3.0 && value("process_max_fds") >= value("process_open_fds"));
        assert!(value("process_start_time_seconds") > 1_600_000_000.0);
    }
}
