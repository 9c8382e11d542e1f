//! Recorded conversations with the real Azure, replayed against the simulator.
//!
//! The recordings and the script that compares are next to the checkout (`../shared`), not in it; if they are missing,
//! this task says so and succeeds.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use crate::print;
use crate::program::{Program, given_or_built, root};

/// Conversations about the types that the simulator serves.
const CONVERSATIONS: [&str; 27] = [
    "account",
    "blobcontainer",
    "blobserviceproperties",
    "disk",
    "fileserviceproperties",
    "fileshare",
    "identity",
    "ipgroup",
    "loadbalancer",
    "managedcluster",
    "natgateway",
    "privatednszonegroup",
    "privateendpoint",
    "privatelinkservice",
    "privatezone",
    "publicipaddress",
    "registry",
    "resourcegroup",
    "secret",
    "securitygroup",
    "subnet",
    "vault",
    "virtualmachine",
    "virtualmachinescaleset",
    "virtualmachinescalesetvm",
    "virtualnetwork",
    "virtualnetworklink",
];
/// The share of compared headers and leaves of bodies that must be equal in each conversation, in percent. All status
/// codes must be equal.
const WANTED_OF_BODIES: u64 = 99;

/// Leaves that cannot be equal: the conversation, their number, and the reason.
const EXCEPTIONS: [(&str, u64, &str); 7] = [
    ("identity", 2, "the recording has the word 'tenantid' in the place of the tenant's GUID"),
    (
        "managedcluster",
        18,
        "12 names of hosts have random letters, and 6 times the word 'tenantid' stands in the place of the tenant's GUID",
    ),
    ("privatezone", 3, "a random number stands inside of a text in Base64"),
    ("registry", 6, "the recording has the word '{EMAIL}' in the place of a person's address"),
    (
        "secret",
        12,
        "6 times are counted in seconds since 1970, and 6 times '{EMAIL}' stands in the place of a person's address",
    ),
    ("vault", 10, "the recording has the word '{EMAIL}' in the place of a person's address"),
    (
        "virtualmachinescalesetvm",
        10,
        "items are paired by name, and names of OS disks end in a random number",
    ),
];

/// How to replay.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Binary of `cerulean`; by default a release build is made.
    #[arg(long)]
    cerulean: Option<PathBuf>,
}

/// The number of equal ones, and of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Score {
    equal: u64,
    all: u64,
}

impl Score {
    fn reaches(self, percent: u64) -> bool {
        self.equal * 100 >= self.all * percent
    }

    /// The score if this number of the unequal ones were equal.
    fn forgiven(self, count: u64) -> Self {
        Self { equal: self.all.min(self.equal + count), ..self }
    }

    fn add(&mut self, other: Self) {
        self.equal += other.equal;
        self.all += other.all;
    }
}

/// Replays them, each against an Azure of its own.
///
/// # Errors
/// The simulator does not start, or a score is too low.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let shared = root().join("../shared");
    let script = shared.join("tools/arm_replay.py");
    if !script.exists() {
        print::line("skipped: no recorded conversations beside this checkout (../shared)");
        return Ok(());
    }
    let cerulean = given_or_built(arguments.cerulean.as_deref(), "cerulean")?;
    let (mut status, mut body, mut failed) = (Score::default(), Score::default(), Vec::new());
    for name in CONVERSATIONS {
        let recording = shared.join(format!("recordings/{name}.jsonl"));
        let text = replay(&cerulean, &script, &recording)?;
        for line in text.lines().filter(|line| !line.starts_with("TOTAL")) {
            print::line(line);
        }
        let scores = scores(&text).with_context(|| format!("no scores of {name} in:\n{text}"))?;
        status.add(scores.0);
        body.add(scores.1);
        let exception = EXCEPTIONS.iter().find(|exception| exception.0 == name);
        if let Some((_, count, why)) = exception {
            print::line(format_args!("    {count} may differ: {why}"));
        }
        let judged = scores.1.forgiven(exception.map_or(0, |exception| exception.1));
        if !scores.0.reaches(100) || !judged.reaches(WANTED_OF_BODIES) {
            failed.push(name);
        }
    }
    print::line(format_args!(
        "status codes {} of {}, headers and leaves of bodies {} of {}",
        status.equal, status.all, body.equal, body.all
    ));
    if !failed.is_empty() {
        bail!(
            "the simulated Azure differs from the recorded one in {}: all status codes and {WANTED_OF_BODIES} % of the \
             bodies must be equal",
            failed.join(", ")
        );
    }
    Ok(())
}

fn replay(cerulean: &Path, script: &Path, recording: &Path) -> anyhow::Result<String> {
    let directory = tempfile::tempdir()?;
    let address = directory.path().join("address");
    let text = std::fs::read_to_string(recording)?;
    let actors = directory.path().join("actors.json");
    std::fs::write(&actors, policies(&text)?.to_string())?;
    let mut simulator = Program::start(
        "simulate-azure",
        directory.path(),
        Command::new(cerulean)
            .args(["simulate", "azure", "--without-tokens", "--directory"])
            .arg(directory.path().join("azure"))
            .arg("--actors")
            .arg(&actors)
            .arg("--address-file")
            .arg(&address),
    )?;
    let url = wait_for(&address, &mut simulator)?;
    let script = |recording: &Path| {
        Command::new("python3")
            .arg(script)
            .args(["--verbose", "--base", url.trim()])
            .arg(recording)
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run python3")
    };
    let found = found_before(&text)?;
    if !found.is_empty() {
        let path = directory.path().join("before.jsonl");
        std::fs::write(&path, found)?;
        script(&path)?;
    }
    let output = script(recording)?;
    simulator.must_run()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The effect of the recorded subscription's policies on new groups: tags with a time that no client set.
fn policies(recording: &str) -> anyhow::Result<Value> {
    let mut tags = serde_json::Map::new();
    for line in recording.lines() {
        let exchange: Value = serde_json::from_str(line)?;
        let path = exchange["url"].as_str().unwrap_or_default().split('?').next().unwrap_or_default();
        let is_group = path.split('/').count() == 5;
        for (tag, value) in exchange["response"]["tags"].as_object().into_iter().flatten() {
            let is_time = value.as_str().is_some_and(|text| text.ends_with('Z') && text.contains('T'));
            if exchange["method"] == "PUT"
                && is_group
                && is_time
                && exchange["body"]["tags"].get(tag).is_none()
            {
                tags.insert(tag.clone(), "{now}".into());
            }
        }
    }
    let on = json!({ "resourceType": "Microsoft.Resources/resourceGroups" });
    let policy = json!({ "name": "policy", "on": on, "action": { "do": "tag", "tags": tags } });
    Ok(if tags.is_empty() { json!([]) } else { json!([policy]) })
}

/// The initial resources of a conversation: those that its first PUT updated instead of creating. Returned as a
/// conversation that creates them. Resources that cannot be created like this, such as the instance of a scale set that
/// comes only later, are refused, which changes nothing.
fn found_before(recording: &str) -> anyhow::Result<String> {
    let mut seen = std::collections::BTreeSet::new();
    let mut found = String::new();
    for line in recording.lines() {
        let exchange: Value = serde_json::from_str(line)?;
        let url = exchange["url"].as_str().unwrap_or_default();
        let path = url.split('?').next().unwrap_or_default().to_ascii_lowercase();
        if exchange["method"] != "PUT" || !seen.insert(path) || exchange["status"] != 200 {
            continue;
        }
        let created = json!({
            "method": "PUT", "url": url, "body": exchange["body"], "status": 201, "headers": {},
        });
        found.push_str(&format!("{created}\n"));
    }
    Ok(found)
}

/// The scores in the script's line for a conversation: `NAME status 3/3  body 60/61 (98.4%)`.
fn scores(text: &str) -> Option<(Score, Score)> {
    let line = text.lines().find(|line| line.contains(" status ") && !line.starts_with("TOTAL"))?;
    let mut words = line.split_whitespace();
    let mut after = |word: &str| {
        words.by_ref().find(|other| *other == word)?;
        let (equal, all) = words.next()?.split_once('/')?;
        Some(Score { equal: equal.parse().ok()?, all: all.parse().ok()? })
    };
    Some((after("status")?, after("body")?))
}

/// Waits until the simulator has written its address.
///
/// # Errors
/// It ends, or takes too long.
pub fn wait_for(address: &Path, simulator: &mut Program) -> anyhow::Result<String> {
    for _ in 0..200 {
        if let Ok(text) = std::fs::read_to_string(address)
            && text.ends_with('\n')
        {
            return Ok(text);
        }
        simulator.must_run()?;
        pause(Duration::from_millis(50));
    }
    bail!("the simulated Azure did not start:\n{}", simulator.last_words())
}

#[allow(clippy::disallowed_methods, reason = "a chore without a runtime that waits for another process")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::{Score, found_before, policies, scores};

    #[test]
    fn what_is_updated_first_was_there_before() {
        let put = |path: &str, status: u16| {
            format!(
                r#"{{"method":"PUT","url":"{path}?api-version=1","body":{{}},"status":{status},"headers":{{}}}}"#
            )
        };
        let recording = [put("/old", 200), put("/new", 201), put("/New", 200), put("/old", 200)].join("\n");
        let found = found_before(&recording).unwrap();
        assert_eq!(found.lines().count(), 1, "{found}");
        assert!(found.contains("/old?api-version=1") && found.contains("201"));
    }

    #[test]
    fn tags_that_nobody_asked_for_are_a_policys() {
        let put = |path: &str, asked: &str| {
            format!(
                r#"{{"method":"PUT","url":"/subscriptions/s{path}?api-version=1","body":{{"tags":{{{asked}}}}},"response":{{"tags":{{"at":"2001-02-03T04:05:06Z","by":"me"}}}}}}"#
            )
        };
        let tags = |line: &str| policies(line).unwrap()[0]["action"]["tags"].clone();
        assert_eq!(tags(&put("/resourceGroups/g", "")), serde_json::json!({ "at": "{now}" }));
        assert_eq!(policies(&put("/resourceGroups/g", r#""at":"x""#)).unwrap(), serde_json::json!([]));
        assert_eq!(policies(&put("/resourceGroups/g/providers/N/t/n", "")).unwrap(), serde_json::json!([]));
    }

    #[test]
    fn scores_are_read_from_the_scripts_line() {
        let line = "disk                               status 19/20  body 199/200 (99.5%)\n    1: PUT /x: status\nTOTAL status 95.0%";
        let (status, body) = scores(line).unwrap();
        assert_eq!((status, body), (Score { equal: 19, all: 20 }, Score { equal: 199, all: 200 }));
        assert!(!status.reaches(100) && body.reaches(99));
        assert!(!body.reaches(100) && body.forgiven(7).reaches(100));
        assert_eq!(scores("disk broke off: refused"), None);
    }
}
