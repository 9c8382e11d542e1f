//! `cerulean journal`: a run's requests to Azure as a file, and the differences between two runs.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use azure_simulator::Journal;
use azure_simulator::journal::diff;
use clap::{Args, Subcommand};

use crate::http_client;
use crate::runtime::{TWO_THREADS, runtime};
use crate::screen::Screen;

/// What to do with journals.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write the journal of a running simulator as JSON Lines.
    Export(Export),
    /// Say how two runs differ. Ends with 0 when they are the same, whatever their times, 1 when they differ, 2 when a
    /// journal cannot be read.
    Diff(Diff),
}

/// Where the journal is, and where it goes.
#[derive(Debug, Args)]
pub struct Export {
    /// The simulator's plain HTTP, such as http://127.0.0.1:8080.
    #[arg(long)]
    from: String,
    /// The file to write; standard output unless given.
    #[arg(long)]
    to: Option<PathBuf>,
}

/// The two runs.
#[derive(Debug, Args)]
pub struct Diff {
    /// The journal of the first run: a file, `-` for standard input, or the URL of a running simulator.
    a: String,
    /// The journal of the second run.
    b: String,
    /// Print the differences as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command, and returns the exit code.
///
/// # Errors
/// A journal cannot be read.
pub fn run(screen: Screen, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Export(Export { from, to }) => {
            if !from.starts_with("http://") {
                bail!("--from {from}: give the simulator's plain HTTP, such as http://127.0.0.1:8080");
            }
            let lines = fetch(&from).with_context(|| format!("--from {from}"))?;
            match to {
                Some(path) => {
                    std::fs::write(&path, lines).with_context(|| format!("--to {}", path.display()))?;
                }
                None => screen.text(lines),
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Diff(arguments) => Ok(compare(screen, &arguments).unwrap_or_else(|problem| {
            screen.complain(cloud_controller_manager::in_one_line(&problem));
            ExitCode::from(2)
        })),
    }
}

fn compare(screen: Screen, Diff { a, b, json }: &Diff) -> anyhow::Result<ExitCode> {
    let named = |what: &'static str, source: &str| read(source).with_context(|| format!("{what} {source}"));
    let found = diff(&named("the first journal,", a)?, &named("the second journal,", b)?);
    if *json {
        screen.line(serde_json::to_string_pretty(&found)?);
    } else {
        screen.text(&found);
    }
    Ok(ExitCode::from(u8::from(!found.is_empty())))
}

/// Reads a journal from a file, from standard input or from a running simulator: JSON Lines, or the single document
/// that `GET /_cerulean/journal` returns.
fn read(source: &str) -> anyhow::Result<Journal> {
    let text = if source == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("standard input")?;
        text
    } else if source.starts_with("http://") {
        fetch(source)?
    } else {
        std::fs::read_to_string(Path::new(source)).with_context(|| source.to_owned())?
    };
    match serde_json::from_str::<Journal>(&text) {
        Ok(journal) => Ok(journal),
        Err(_) => Journal::from_lines(&text).with_context(|| source.to_owned()),
    }
}

fn fetch(simulator: &str) -> anyhow::Result<String> {
    let url = format!("{}/_cerulean/journal?format=lines", simulator.trim_end_matches('/'));
    let (status, body) =
        runtime(TWO_THREADS)?.block_on(http_client::get(&url)).with_context(|| url.clone())?;
    if status != 200 {
        bail!("{url} answers {status}: is this the plain HTTP of a simulated Azure?");
    }
    String::from_utf8(body.to_vec()).with_context(|| url)
}
