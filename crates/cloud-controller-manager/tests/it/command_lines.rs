//! `tests/corpus/command-lines`: command lines as users have them today, each with the expected outcome.
//!
//! A case is a file `NAME.txt`: its subject, its arguments (`argument: --v=2`), a line `---`, and the outcome. To add
//! one, write it without an outcome, run `UPDATE_CORPUS=1 cargo test -p cloud-controller-manager --test it command_lines`,
//! and check the outcome.
//!
//! A proxy and a certificate authority in the environment change none of that: `from_outside.rs` runs all of these
//! command lines with them and without.

use std::fmt::Write as _;
use std::path::Path;

use cloud_controller_manager::configuration::Sources;
use cloud_controller_manager::flags::{self, CONTROLLERS, EarlyExit};

fn or<'a>(text: &'a str, instead: &'a str) -> &'a str {
    if text.is_empty() { instead } else { text }
}

/// The outcome of a command line: how the program runs, and its warnings; or its refusals.
fn outcome(arguments: &[&str]) -> String {
    let all = std::iter::once("azure-cloud-controller-manager").chain(arguments.iter().copied());
    let line = match flags::parse(all.map(Into::into)) {
        Ok(line) => line,
        Err(EarlyExit::Refuse(text)) => return format!("refused: {text}\n"),
        Err(EarlyExit::Print(text)) => return text,
    };
    let mut text = String::new();
    let problems = line.problems();
    if problems.is_empty() {
        let flags = &line.flags;
        let ranges = line.ranges().unwrap();
        let runs = |name: &&str| match *name {
            "node-route-controller" => ranges.routes,
            "node-ipam" => ranges.ipam.is_some(),
            name => line.enabled(name),
        };
        let running = CONTROLLERS.iter().map(|(name, _)| *name).filter(runs);
        writeln!(text, "runs: {}", running.collect::<Vec<_>>().join(", ")).unwrap();
        if !ranges.cluster.is_empty() {
            let all: Vec<String> = ranges.cluster.iter().map(ToString::to_string).collect();
            let masks = ranges.ipam.and_then(|ipam| ipam.masks);
            let given = masks.map_or_else(String::new, |m| format!(", given out as /{} and /{}", m.v4, m.v6));
            writeln!(text, "pods: {}{given}", all.join(", ")).unwrap();
        }
        let Sources { file, secret } = Sources::of(flags);
        let secret = secret.map(|it| format!("Secret {}/{}, key {}", it.namespace, it.name, it.key));
        let documents: Vec<String> =
            Some(file).filter(|file| !file.is_empty()).into_iter().chain(secret).collect();
        let changes = if flags.enable_dynamic_reloading { ", which may change" } else { "" };
        let (name, documents) = (&flags.cluster_name, documents.join(" and "));
        writeln!(text, "cluster: {name}, described in {documents}{changes}").unwrap();
        let api = or(&flags.kubeconfig, "the pod's service account");
        let at = or(&flags.master, "there");
        writeln!(text, "Kubernetes API: {api}, at the address {at}").unwrap();
        match flags.secure_port {
            0 => writeln!(text, "health and metrics: not served").unwrap(),
            port => writeln!(text, "health and metrics: {} port {port}", flags.bind_address).unwrap(),
        }
        if flags.leader_elect {
            let election = line.election("x".to_owned());
            let (namespace, name) = (&election.namespace, &election.name);
            let (lease, renew, retry) =
                (election.lease_duration, election.renew_deadline, election.retry_period);
            writeln!(text, "election: {namespace}/{name}, {lease:?}, {renew:?}, {retry:?}").unwrap();
        } else {
            writeln!(text, "election: none").unwrap();
        }
        writeln!(text, "log: {}, verbosity {}", flags.log_format, flags.verbosity).unwrap();
    }
    for problem in problems {
        writeln!(text, "refused: {problem}").unwrap();
    }
    for (flags, reason) in &line.without_effect {
        writeln!(text, "warning: --{}: {reason}", flags.join(", --")).unwrap();
    }
    text
}

/// The problems that remain with the arguments that the refusals propose; `None` if there are none.
fn follow_remedies(arguments: &[&str]) -> Option<String> {
    let mut all: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let read = |all: &[String]| {
        flags::parse(std::iter::once("x").chain(all.iter().map(String::as_str)).map(Into::into)).ok()
    };
    let name = |argument: &str| argument.split('=').next().unwrap_or_default().to_owned();
    let problems = read(&all)?.problems();
    let wrong: Vec<String> = problems.iter().map(|problem| name(&problem.given)).collect();
    let mended: Vec<String> = problems.into_iter().flat_map(|problem| problem.arguments).collect();
    all.retain(|argument| {
        !mended.iter().any(|mended| name(mended) == name(argument)) && !wrong.contains(&name(argument))
    });
    all.extend(mended);
    let left = read(&all)?.problems();
    (!left.is_empty()).then(|| format!("{left:?}"))
}

#[test]
fn every_command_line_of_the_corpus_comes_out_as_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/command-lines");
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 15);
    let update = std::env::var_os("UPDATE_CORPUS").is_some();
    let mut wrong = String::new();
    for file in files {
        let expected = std::fs::read_to_string(&file).unwrap();
        let head = expected.split_once("---\n").map_or(expected.as_str(), |(head, _)| head);
        let arguments: Vec<&str> = head.lines().filter_map(|line| line.strip_prefix("argument: ")).collect();
        let outcome = outcome(&arguments);
        let now = format!("{head}---\n{outcome}");
        if now != expected {
            if update {
                std::fs::write(&file, &now).unwrap();
            } else {
                wrong += &format!("{}:\n{outcome}\n", file.display());
            }
        }
        if let Some(left) = follow_remedies(&arguments) {
            wrong += &format!("{}: after following the remedies: {left}\n", file.display());
        }
    }
    assert!(wrong.is_empty(), "these come out otherwise than they say:\n{wrong}");
}
