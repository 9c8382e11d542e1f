//! Compares two admissions: `cargo xtask admission [--peer PATH --definitions FOLDER …]`.
//!
//! The corpus (`tests/corpus/cluster-api`) is sent, as dry runs, to the simulated Kubernetes with our definitions and
//! our admission. The answers must be those of the established provider, which are recorded in `answers.txt`; intended
//! differences are listed with their reasons in `docs/cluster-api-admission.md`. With `--peer` a build of the
//! established provider is asked again through a second simulated Kubernetes, and with `--record` the table is written
//! anew.

mod answer;
mod place;
mod table;

use std::path::PathBuf;

use admission_corpus::Case;
use anyhow::{Context as _, bail};

use crate::print;
use answer::Answer;
use place::Place;

/// What to compare.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The manager of the established provider, or a program with its webhooks.
    #[arg(long, value_name = "PATH", requires = "definitions")]
    peer: Option<PathBuf>,
    /// A folder with custom resource definitions for the peer: its own, and those of Cluster API's core.
    #[arg(long, value_name = "FOLDER")]
    definitions: Vec<PathBuf>,
    /// Write down what the peer says.
    #[arg(long, requires = "peer")]
    record: bool,
    /// Only cases whose name contains this.
    #[arg(long, default_value = "")]
    case: String,
    /// Print differences on purpose, too.
    #[arg(long)]
    all: bool,
}

/// Compares the answers.
///
/// # Errors
/// Something cannot be started or read, or there is an unknown difference.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(compare(arguments))
}

async fn compare(arguments: &Arguments) -> anyhow::Result<()> {
    let mut cases = admission_corpus::read()?;
    cases.retain(|case| case.name.contains(&arguments.case));
    // Cases with all gates open come last.
    cases.sort_by_key(|case| case.gates);
    let split = cases.iter().take_while(|case| !case.gates).count();
    let (closed, open) = cases.split_at(split);
    let mut ours = answers(Place::ours(false)?, closed).await?;
    ours.extend(answers(Place::ours(true)?, open).await?);
    let theirs = match &arguments.peer {
        None => None,
        Some(peer) => {
            let peer = peer.canonicalize().with_context(|| format!("--peer {}", peer.display()))?;
            let mut theirs = Vec::new();
            for (cases, gates) in [(closed, false), (open, true)] {
                let directory = tempfile::Builder::new().prefix("cerulean-admission-").tempdir()?;
                let definitions = &arguments.definitions;
                let place = Place::theirs(&peer, definitions, gates, directory.path()).await?;
                theirs.extend(answers(place, cases).await?);
            }
            Some(theirs)
        }
    };
    let recorded = match &theirs {
        Some(theirs) => {
            let said = table::of(&cases, theirs);
            if arguments.record {
                table::write(&said)?;
            }
            said
        }
        None => table::read()?,
    };
    let known = table::on_purpose()?;
    let verdict = table::compare(&cases, &ours, &recorded, &known);
    for (index, line) in &verdict.differences {
        print::line(line);
        if let Some(theirs) = &theirs {
            explain(&ours[*index], &theirs[*index]);
        }
    }
    if arguments.all {
        verdict.on_purpose.iter().for_each(print::line);
    }
    let unused = if arguments.case.is_empty() { verdict.unused } else { Vec::new() };
    for row in &unused {
        print::line(format_args!("no difference any more, though the docs say so: {row}"));
    }
    print::line(format_args!(
        "{} cases ({} taken), {} refused by both in other words, {} differ on purpose, {} differ",
        cases.len(),
        ours.iter().filter(|answer| answer.is_taken()).count(),
        verdict.in_other_words,
        verdict.on_purpose.len(),
        verdict.differences.len(),
    ));
    if verdict.differences.is_empty() && unused.is_empty() {
        return Ok(());
    }
    bail!("what both say differs");
}

async fn answers(mut place: Place, cases: &[Case]) -> anyhow::Result<Vec<Answer>> {
    let mut answers = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        print::progress(format!("{number} of {}", cases.len()));
        answers.push(place.judge(case).await.with_context(|| case.name.clone())?);
    }
    print::progress(String::new());
    Ok(answers)
}

/// Prints both answers in full, if both servers were asked.
fn explain(ours: &Answer, theirs: &Answer) {
    match (ours, theirs) {
        (Answer::Taken(ours), Answer::Taken(theirs)) => {
            for line in table::members(ours, theirs) {
                print::line(format_args!("      {line}"));
            }
        }
        (ours, theirs) => {
            for (whose, answer) in [("theirs", theirs), ("ours", ours)] {
                if let Answer::Refused { message, .. } = answer {
                    print::line(format_args!("      {whose}: {message}"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Arguments, compare};

    /// The corpus is judged as the established provider judged it, except for the differences in the docs.
    #[tokio::test(start_paused = true)]
    async fn the_corpus_is_judged_as_it_was() {
        let arguments =
            Arguments { peer: None, definitions: Vec::new(), record: false, case: String::new(), all: false };
        compare(&arguments).await.unwrap();
    }
}
