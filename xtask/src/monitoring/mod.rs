//! Dashboards, alert rules and their queries in `deploy/monitoring`.

mod dashboard;
mod expression;
mod prometheus;
mod queries;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::print;
use crate::program::{root, runtime};
use prometheus::Targets;
use queries::{Monitoring, text};

/// What to do with the dashboards and rules.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, clap::Subcommand)]
enum Task {
    /// Print the dashboards and the operator's rules from parts/dashboards.yaml and rules.yaml.
    Print {
        /// Write nothing, and fail if a file differs from what would be printed.
        #[arg(long)]
        check: bool,
    },
    /// Hold all queries against docs/metrics.md, and let promtool check and test the rules; skipped without promtool (Debian's package prometheus), except in CI.
    Check {
        /// Folder of promtool, if it is not in PATH.
        #[arg(long)]
        programs: Option<PathBuf>,
    },
    /// List all queries of dashboards and rules as JSON: place, expression, and why it may return nothing.
    Queries,
    /// Let a real Prometheus scrape programs, and ask it all queries.
    Ask(Targets),
}

/// Does what the arguments say.
///
/// # Errors
/// A description is wrong, or what was asked for fails.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = root().join("deploy/monitoring");
    let monitoring = Monitoring::read(&folder)?;
    match &arguments.task {
        Task::Print { check } => printed(&folder, &monitoring, *check),
        Task::Check { programs } => {
            let page = root().join("docs/metrics.md");
            let page = std::fs::read_to_string(&page).with_context(|| page.display().to_string())?;
            let problems = monitoring.problems(&page)?;
            ensure!(problems.is_empty(), "{}", problems.join("\n"));
            checked(&folder, programs.as_deref())
        }
        Task::Queries => {
            for query in monitoring.queries()? {
                let rare = query.rare;
                let shown =
                    serde_json::json!({ "place": query.place, "expr": query.expression, "rare": rare });
                print::line(shown);
            }
            Ok(())
        }
        Task::Ask(targets) => {
            // The dashboard of a program that is not scraped has no answers.
            let jobs = targets.jobs();
            let queries = monitoring.queries_of(&jobs)?;
            runtime()?.block_on(prometheus::ask(targets, &folder.join("rules.yaml"), &queries))
        }
    }
}

/// Writes the dashboards, and the rules for Prometheus' operator.
fn printed(folder: &Path, monitoring: &Monitoring, check: bool) -> anyhow::Result<()> {
    let mut files = Vec::new();
    for description in &monitoring.dashboards {
        let path = folder.join(format!("dashboards/{}.json", text(description, "file")?));
        files.push((path, dashboard::dashboard(description)?));
    }
    files.push((folder.join("operator/rules.json"), dashboard::operator_rules(&monitoring.groups)));
    for (path, value) in files {
        let text = format!("{}\n", serde_json::to_string_pretty(&value)?);
        if std::fs::read_to_string(&path).is_ok_and(|found| found == text) {
            continue;
        }
        ensure!(
            !check,
            "{} is not what it is printed from: run cargo xtask monitoring print",
            path.display()
        );
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        print::line(format_args!("wrote {}", path.display()));
    }
    Ok(())
}

fn checked(folder: &Path, programs: Option<&Path>) -> anyhow::Result<()> {
    let promtool = prometheus::program(programs, "promtool");
    if !prometheus::exists(&promtool) {
        ensure!(
            std::env::var_os("CI").is_none(),
            "there is no promtool: install Debian's package prometheus"
        );
        print::line("skipped: there is no promtool (Debian's package prometheus has it)");
        return Ok(());
    }
    let scrape = tempfile::NamedTempFile::new()?;
    std::fs::write(scrape.path(), serde_json::to_vec(&without_discovery(folder)?)?)?;
    let scrape = scrape.path().to_str().context("the temporary folder's name is not UTF-8")?;
    for arguments in
        [["check", "rules", "rules.yaml"], ["test", "rules", "rules.test.yaml"], ["check", "config", scrape]]
    {
        let status = Command::new(&promtool).args(arguments).current_dir(folder).status()?;
        if !status.success() {
            bail!("promtool {} fails", arguments.join(" "));
        }
    }
    Ok(())
}

/// The configuration of scrapes without Kubernetes' discovery of targets, which Debian's Prometheus does not have.
fn without_discovery(folder: &Path) -> anyhow::Result<Value> {
    let text = std::fs::read_to_string(folder.join("scrape.yaml"))?;
    let mut config: Value = serde_saphyr::from_str(&text)?;
    config["rule_files"] = serde_json::json!([folder.join("rules.yaml")]);
    for job in config["scrape_configs"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut)
    {
        job.remove("kubernetes_sd_configs").context("a job of scrape.yaml has no kubernetes_sd_configs")?;
        // It only exists in a pod.
        job.remove("authorization");
    }
    Ok(config)
}
