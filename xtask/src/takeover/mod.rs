//! A cluster is taken over: `cargo xtask takeover [--peer PATH]`.
//!
//! A build of the replaced program serves the corpus of Services, and ours takes over; then the other way round.
//! Neither may write anything to Azure or change a Service. Without `--peer` ours takes over from itself.

mod cases;
mod manager;
mod shapes;
mod trial;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context as _, bail};

use crate::print;
use crate::program::{given_or_built, runtime};
use cases::Case;
use manager::Manager;
use trial::{Outcome, Trial};

/// The maximum number of printed lines of each list; all of them are in the kept folder.
const MAX_LINES: usize = 12;

/// How to hand clusters over.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Binary of the program that Cerulean replaces; by default ours takes over from itself.
    #[arg(long, value_name = "PATH")]
    peer: Option<PathBuf>,
    /// Binary of our controller manager; by default a release build is made.
    #[arg(long, value_name = "PATH")]
    manager: Option<PathBuf>,
    /// Restrict the run to clusters whose description contains this, such as `flexible` or `addresses`.
    #[arg(long, default_value = "")]
    only: String,
    /// Restrict the run to entries of the corpus whose folder and name contain this, such as `changes/` or `real/kafka`.
    #[arg(long, default_value = "")]
    case: String,
    /// Use the whole corpus in every cluster, not only entries that depend on machines, pools and load balancers.
    #[arg(long)]
    whole: bool,
    /// Change Services as the corpus says before the takeover, and let the second program clean up: leftovers of the
    /// first one are reported, and are not a failure.
    #[arg(long)]
    changes: bool,
    /// Let the peer take over from itself, too: its writes then do not depend on the first program.
    #[arg(long, requires = "peer")]
    control: bool,
    /// Keep the folders with logs and Azure's documents before and after, and print their paths.
    #[arg(long)]
    keep: bool,
}

/// Hands every kind of cluster over.
///
/// # Errors
/// Something was written or changed, or a program failed.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let ours = given_or_built(arguments.manager.as_deref(), "azure-cloud-controller-manager")?;
    let ours = Manager { name: "ours", binary: ours, is_peer: false };
    let ways = match &arguments.peer {
        Some(peer) => {
            let peer = peer.canonicalize().with_context(|| format!("--peer {}", peer.display()))?;
            let peer = Manager { name: "upstream", binary: peer, is_peer: true };
            let mut ways = vec![(peer.clone(), ours.clone()), (ours, peer.clone())];
            if arguments.control {
                ways.push((peer.clone(), peer));
            }
            ways
        }
        None => vec![(ours.clone(), ours)],
    };
    let cases = cases::read(&arguments.case, arguments.changes)?;
    let mut kinds = shapes::all();
    kinds.retain(|kind| kind.to_string().contains(&arguments.only));
    kinds.iter_mut().for_each(|kind| kind.whole |= arguments.whole || !arguments.case.is_empty());
    if kinds.is_empty() || cases.is_empty() {
        bail!("--only or --case leaves nothing to do");
    }
    let directory = tempfile::Builder::new().prefix("cerulean-takeover-").tempdir()?;
    let runtime = runtime()?;
    let mut bad = 0;
    let mut left_out = BTreeSet::new();
    for kind in kinds {
        let mut cases: Vec<&Case> = cases.iter().filter(|case| case.stands_in(kind)).collect();
        if arguments.peer.is_some() {
            cases.retain(|case| {
                let why = case.left_out(kind);
                left_out.extend(why.map(|why| (case.name.clone(), why.to_owned())));
                why.is_none()
            });
        }
        for (first, second) in &ways {
            let name = format!("{kind}: {} to {}", first.name, second.name);
            let folder = directory.path().join(name.replace([' ', ':', ','], "-"));
            std::fs::create_dir_all(&folder)?;
            let done = runtime.block_on(async {
                let mut trial = Trial::prepare(kind, &cases, &folder).await?;
                trial.hand_over(first, second, print::progress).await
            });
            print::progress(String::new());
            bad += usize::from(!report(&name, &done, arguments.changes && first.is_peer));
        }
    }
    if !left_out.is_empty() {
        print::line("\nnot handed over, because upstream serves them in another way:");
        for (name, why) in &left_out {
            print::line(format_args!("  {name}: {why}"));
        }
    }
    if arguments.keep || bad > 0 {
        print::line(format_args!("logs and documents: {}", directory.keep().display()));
    }
    if bad > 0 {
        bail!("{bad} clusters did not change hands without a write");
    }
    Ok(())
}

/// Prints the result of a takeover; returns whether it is as required.
fn report(name: &str, done: &anyhow::Result<Outcome>, may_clean_up: bool) -> bool {
    let outcome = match done {
        Ok(outcome) => outcome,
        Err(problem) => {
            print::line(format_args!("  no  {name}: {problem:#}"));
            return false;
        }
    };
    let good = if may_clean_up { outcome.serves_on() } else { outcome.is_good() };
    let needless = match outcome.needless.len() {
        0 => String::new(),
        count => format!(" (and {count} that change nothing)"),
    };
    print::line(format_args!(
        "  {}  {name}: {} Services, {} writes{needless}, {} documents and {} Services changed ({} s, then {} s)",
        if good { "ok" } else { "no" },
        outcome.services,
        outcome.writes.len(),
        outcome.documents.iter().filter(|line| !line.starts_with(' ')).count(),
        outcome.statuses.len(),
        outcome.took[0].as_secs(),
        outcome.took[1].as_secs(),
    ));
    let lists = [
        ("not served", &outcome.not_served),
        ("written", &outcome.writes),
        ("changed in Azure", &outcome.documents),
        ("changed on Services", &outcome.statuses),
    ];
    for (what, lines) in lists {
        for line in lines.iter().take(MAX_LINES) {
            print::line(format_args!("      {what}: {line}"));
        }
        if lines.len() > MAX_LINES {
            print::line(format_args!("      {what}: and {} more", lines.len() - MAX_LINES));
        }
    }
    good
}
