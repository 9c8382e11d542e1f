//! The table.

use std::time::Duration;

use azure_simulator::{Journal, RequestKind};
use tokio::time::sleep;

use super::driver::Started;
use super::side_cars::Outcome;
use crate::bench::resident::{Memory, megabytes};
use crate::bench::services::calls::Calls;
use crate::bench::statistics::median;
use crate::screen::Screen;

/// After this time without work a driver is idle. The role of a node has looked for its taint by then.
const REST: Duration = Duration::from_secs(5);

/// One line.
#[derive(Debug, Clone, Default)]
pub struct Row {
    what: String,
    /// Volumes, and machines in each of the two scale sets.
    size: Option<(u32, u32)>,
    /// Until the last was done; or from the start until the socket answered.
    last: Option<Duration>,
    median: Option<Duration>,
    calls: Option<CallCounts>,
    failures: String,
    resident: u64,
    private: u64,
}

/// Requests to Azure.
#[derive(Debug, Clone, Copy)]
struct CallCounts {
    all: u64,
    writes: u64,
    /// Writes of machines among them.
    of_machines: usize,
}

impl Row {
    /// A driver that has started and has nothing to do.
    ///
    /// # Errors
    /// It has ended.
    pub async fn of_idle(what: &str, size: Option<(u32, u32)>, started: &Started) -> anyhow::Result<Self> {
        sleep(REST).await;
        let row = Self { what: what.to_owned(), size, last: Some(started.after), ..Self::default() };
        Ok(row.with(started.memory()?))
    }

    /// Calls that came at once.
    ///
    /// # Errors
    /// The driver has ended.
    pub fn of_work(
        what: &str,
        size: (u32, u32),
        outcome: &Outcome,
        journal: &Journal,
        started: &Started,
    ) -> anyhow::Result<Self> {
        let of_machine = |path: &str| path.to_ascii_lowercase().contains("/virtualmachines/");
        let writes = journal.entries.iter().filter(|entry| entry.kind == RequestKind::Write);
        let calls = Calls::of(journal);
        let failures = outcome.failures.iter().map(|(code, count)| format!("{count} {code}"));
        let row = Self {
            what: what.to_owned(),
            size: Some(size),
            last: outcome.took.last().copied(),
            median: (outcome.took.len() > 1).then(|| median(&outcome.took)),
            calls: Some(CallCounts {
                all: calls.all,
                writes: calls.writes,
                of_machines: writes.filter(|entry| of_machine(&entry.path)).count(),
            }),
            failures: failures.collect::<Vec<_>>().join(", "),
            ..Self::default()
        };
        Ok(row.with(started.memory()?))
    }

    /// The most memory that a driver has had.
    ///
    /// # Errors
    /// It has ended.
    pub fn of_most(what: &str, size: (u32, u32), started: &Started) -> anyhow::Result<Self> {
        let (resident, private) = (started.memory()?.peak, started.most_private());
        Ok(Self { what: what.to_owned(), size: Some(size), resident, private, ..Self::default() })
    }

    fn with(self, memory: Memory) -> Self {
        Self { resident: memory.resident, private: memory.private, ..self }
    }

    fn cells(&self, driver: &str) -> [String; 10] {
        let time = |time: Option<Duration>| time.map(|time| format!("{:.2} s", time.as_secs_f64()));
        let (volumes, machines) = self.size.unzip();
        let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
        let writes = self.calls.map(|calls| match calls.of_machines {
            0 => calls.writes.to_string(),
            of_machines => format!("{} ({of_machines})", calls.writes),
        });
        [
            self.what.clone(),
            driver.to_owned(),
            number(volumes.map(u64::from)),
            number(machines.map(u64::from)),
            time(self.last).unwrap_or_default(),
            time(self.median).unwrap_or_default(),
            number(self.calls.map(|calls| calls.all)),
            writes.unwrap_or_default(),
            self.failures.clone(),
            format!("{} ({})", megabytes(self.resident), megabytes(self.private)),
        ]
    }
}

/// The lines of all drivers, each of which has the same ones.
#[derive(Debug, Default)]
pub struct Table(Vec<(&'static str, Vec<Row>)>);

impl Table {
    /// Adds a driver.
    pub fn add(&mut self, driver: &'static str, rows: Vec<Row>) {
        self.0.push((driver, rows));
    }

    /// Prints the lines of the drivers beside one another.
    pub fn print(&self, screen: Screen) {
        let count = self.0.iter().map(|(_, rows)| rows.len()).max().unwrap_or_default();
        let at = |at: usize| self.0.iter().filter_map(move |(name, rows)| Some(rows.get(at)?.cells(name)));
        let rows: Vec<_> = (0..count).flat_map(at).collect();
        let heads = [
            "WHAT",
            "DRIVER",
            "VOLUMES",
            "MACHINES",
            "LAST",
            "MEDIAN",
            "CALLS",
            "WRITES (OF MACHINES)",
            "ERRORS",
            "RESIDENT (PRIVATE)",
        ];
        screen.table(heads, &rows);
        screen.line("  idle: LAST is the time from the start until the socket answered");
    }
}
