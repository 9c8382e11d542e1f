//! The measurements: as JSON, and as tables with a column for each program.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

use super::calls::Calls;
use super::critical_path::CriticalPath;
use super::machine::Machine;
use crate::bench::process::Manager;
use crate::bench::resident::{Memory, megabytes};
use crate::screen::Screen;

/// All figures of a run.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The command, without paths.
    pub command: String,
    /// The machine that it ran on.
    pub machine: Machine,
    /// The latency profile's name.
    pub latency: String,
    /// How many Services were applied at once.
    pub services: u32,
    /// How many Services were created and deleted one after the other.
    pub chain: u32,
    /// The initial number of nodes.
    pub nodes: u64,
    /// The programs, ours first.
    pub programs: Vec<Program>,
    /// The results of each program in each scenario.
    pub rows: Vec<Row>,
}

/// A program that was measured.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Program {
    /// Its name in rows.
    pub name: &'static str,
    /// The size of its file.
    pub binary_bytes: u64,
}

impl Program {
    /// Describes a manager.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub fn of(manager: &Manager) -> anyhow::Result<Self> {
        Ok(Self { name: manager.name, binary_bytes: std::fs::metadata(&manager.binary)?.len() })
    }
}

/// The results of one program in one scenario.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The scenario's name.
    pub scenario: &'static str,
    /// The program's name.
    pub program: &'static str,
    /// The times of events, since the scenario began.
    pub times: Vec<Time>,
    /// Its requests to Azure.
    pub calls: Calls,
    /// The number of writes that it should need, if known.
    pub goal_writes: Option<u64>,
    /// Processor time, in steps of 10 ms, up to the end of the idle time that follows.
    pub processor_seconds: f64,
    /// Its memory at the end of that idle time.
    pub memory: Memory,
    /// How long Azure alone would have taken, if Services waited for it.
    pub critical_path: Option<CriticalPath>,
    /// Seconds from each Service's creation to its address, ascending.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub served: Vec<f64>,
}

/// The time of an event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Time {
    /// The event.
    pub what: String,
    /// The time.
    pub seconds: f64,
}

impl Time {
    /// Something that happened after so long.
    pub fn new(what: &str, after: Duration) -> Self {
        Self { what: what.to_owned(), seconds: after.as_secs_f64() }
    }
}

impl Report {
    /// The tables.
    pub fn print(&self, screen: Screen) {
        screen.line(format_args!("  {}", self.command));
        screen.line(format_args!("  {}", self.machine.describe()));
        let mut scenarios: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !scenarios.contains(&row.scenario) {
                scenarios.push(row.scenario);
            }
        }
        for scenario in scenarios {
            let rows: Vec<&Row> = self.rows.iter().filter(|row| row.scenario == scenario).collect();
            screen.heading(self.title(scenario));
            let head = |at: usize| rows.get(at).map_or("", |row| row.program).to_uppercase();
            screen.table(["", &head(0), &head(1)], &self.lines(&rows));
            for row in &rows {
                if let Some(path) = &row.critical_path {
                    screen.line(format_args!("  {}: {}", row.program, reached(path, row)));
                }
            }
        }
    }

    fn title(&self, scenario: &str) -> String {
        match scenario {
            "start" => format!("Start, with {} nodes that wait", self.nodes),
            "services" => format!("{} Services at once, latencies: {}", self.services, self.latency),
            "chain" => {
                format!(
                    "{} Services created and deleted one after the other, without Azure's budgets",
                    self.chain
                )
            }
            "oneMore" => "One more Service".to_owned(),
            "nodeJoins" => "A node joins".to_owned(),
            "nodeDies" => "A node's machine is deleted".to_owned(),
            "restart" => "Restart, nothing changed".to_owned(),
            "takeover" => "Takeover of what upstream has built".to_owned(),
            other => other.to_owned(),
        }
    }

    /// The lines of one scenario's table.
    fn lines(&self, rows: &[&Row]) -> Vec<[String; 3]> {
        let mut lines = Vec::new();
        let mut line = |what: String, cell: &dyn Fn(&Row) -> String| {
            let at = |index: usize| rows.get(index).map(|row| cell(row)).unwrap_or_default();
            lines.push([what, at(0), at(1)]);
        };
        let mut whats: Vec<&str> = Vec::new();
        for time in rows.iter().flat_map(|row| &row.times) {
            if !whats.contains(&time.what.as_str()) {
                whats.push(&time.what);
            }
        }
        for what in whats {
            let seconds =
                |row: &Row| row.times.iter().find(|time| time.what == what).map(|time| time.seconds);
            line(what.to_owned(), &|row| seconds(row).map_or_else(|| "-".to_owned(), seconds_in_words));
        }
        line("calls to Azure".to_owned(), &|row| row.calls.all.to_string());
        line("reads and polls".to_owned(), &|row| (row.calls.reads + row.calls.polls).to_string());
        let goal = rows.first().and_then(|row| row.goal_writes);
        let goal = goal.map(|goal| format!(" (goal: {goal})")).unwrap_or_default();
        line(format!("writes{goal}"), &|row| row.calls.writes.to_string());
        let kinds: BTreeSet<&str> =
            rows.iter().flat_map(|row| row.calls.by_kind.keys()).map(String::as_str).collect();
        for kind in kinds {
            let count = |row: &Row| row.calls.by_kind.get(kind).copied().unwrap_or_default().to_string();
            line(format!("  {kind}"), &count);
        }
        line("processor time".to_owned(), &|row| format!("{:.2} s", row.processor_seconds));
        line("resident afterwards".to_owned(), &|row| megabytes(row.memory.resident));
        line("  private".to_owned(), &|row| megabytes(row.memory.private));
        line("  shared".to_owned(), &|row| megabytes(row.memory.shared));
        if rows.first().is_some_and(|row| row.scenario == "start") {
            let bytes = |row: &Row| {
                self.programs.iter().find(|one| one.name == row.program).map_or(0, |one| one.binary_bytes)
            };
            line("binary".to_owned(), &|row| megabytes(bytes(row)));
        }
        lines
    }
}

/// The critical path compared with the time that was reached.
fn reached(path: &CriticalPath, row: &Row) -> String {
    let last = row.served.last().copied().unwrap_or_default();
    let steps = path.to_string();
    match path.excess(last) {
        Some(excess) => format!(
            "critical path {:.1} s ({steps}), reached {last:.1} s, {:+.0} %",
            path.seconds,
            excess * 100.0
        ),
        None => format!("Azure answers at once, so the critical path is 0 s; reached {last:.3} s"),
    }
}

/// Formats seconds, with milliseconds where they matter.
pub fn seconds_in_words(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.3} s") } else { format!("{seconds:.1} s") }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::super::critical_path::Step;
    use super::*;

    /// An example report with both programs and two Services.
    pub fn example() -> Report {
        let row = |program, served: &[f64]| Row {
            scenario: "services",
            program,
            times: vec![Time::new("time to an address, last", Duration::from_millis(1_500))],
            calls: Calls {
                all: 3,
                writes: 2,
                reads: 1,
                by_kind: [("PUT x".to_owned(), 2)].into(),
                ..Calls::default()
            },
            goal_writes: None,
            processor_seconds: 0.25,
            memory: Memory { resident: 3_000_000, private: 1_000_000, shared: 2_000_000, peak: 4_000_000 },
            critical_path: Some(CriticalPath {
                seconds: 1.0,
                steps: vec![Step { writes: vec![("address".to_owned(), 1.0)] }],
            }),
            served: served.to_vec(),
        };
        Report {
            command: "cerulean bench services".to_owned(),
            machine: Machine { cores: 2, processor: "A & <B>".to_owned(), ..Machine::default() },
            latency: "typical".to_owned(),
            services: 2,
            chain: 1,
            nodes: 3,
            programs: vec![Program { name: "ours", binary_bytes: 7 }],
            rows: vec![row("ours", &[1.25, 1.5]), row("upstream", &[4.0, 9.0])],
        }
    }

    #[test]
    fn json_has_a_row_for_each_scenario_and_program() {
        let mut json = serde_json::to_value(example()).unwrap();
        assert_eq!(json["machine"]["cores"], 2);
        let rows = json["rows"].as_array_mut().unwrap();
        assert_eq!(rows.len(), 2);
        let row = json!({
            "scenario": "services", "program": "ours",
            "times": [{"what": "time to an address, last", "seconds": 1.5}],
            "calls": {"all": 3, "reads": 1, "polls": 0, "writes": 2, "refused": 0, "byKind": {"PUT x": 2}},
            "goalWrites": null, "processorSeconds": 0.25,
            "memory": {"resident": 3_000_000, "private": 1_000_000, "shared": 2_000_000, "peak": 4_000_000},
            "criticalPath": {"seconds": 1.0, "steps": [{"writes": [["address", 1.0]]}]},
            "served": [1.25, 1.5],
        });
        assert_eq!(rows[0], row);
    }

    #[test]
    fn the_critical_path_stands_next_to_what_was_reached() {
        let report = example();
        let words: Vec<String> =
            report.rows.iter().map(|row| reached(row.critical_path.as_ref().unwrap(), row)).collect();
        assert_eq!(
            words,
            [
                "critical path 1.0 s (address 1.0 s), reached 1.5 s, +50 %",
                "critical path 1.0 s (address 1.0 s), reached 9.0 s, +800 %",
            ]
        );
    }

    #[test]
    fn each_program_has_its_column() {
        let report = example();
        let lines = report.lines(&report.rows.iter().collect::<Vec<_>>());
        assert_eq!(lines[0], ["time to an address, last", "1.500 s", "1.500 s"]);
        assert!(lines.contains(&["  PUT x".to_owned(), "2".to_owned(), "2".to_owned()]));
        let alone = report.lines(&[&report.rows[0]]);
        assert!(alone.iter().all(|line| line[2].is_empty()));
    }
}
