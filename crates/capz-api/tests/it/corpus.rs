//! The answers to every case of the corpus (`tests/corpus/cluster-api`), as they are recorded: refusals in their own words,
//! accepted objects by a fingerprint.
//!
//! `UPDATE_CORPUS=1 cargo test -p capz-api --test it corpus` records them anew; check what it changed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use admission_corpus::Case;
use capz_api::admission::{Denied, needs, review};
use capz_api::crd::fill_defaults;
use capz_api::webhooks::{Task, WEBHOOKS, Webhook};
use capz_api::{Context, Gates, Lookup, SystemPools};
use serde_json::Value;

use super::Fixed;

/// Pools of the corpus, with the Kubernetes version of their MachinePool.
const POOLS: [(&str, &str); 3] = [("c1", "v1.31.1"), ("old", "v1.25.9"), ("just", "v1.26.0")];

fn context(webhook: &Webhook, object: &Value, old: Option<&Value>, gates: bool) -> Context {
    let needs = needs(webhook.kind, object, old);
    let pool = POOLS.iter().find(|(name, _)| object["metadata"]["name"] == *name);
    let version =
        || pool.map(|(_, version)| (*version).to_owned()).ok_or("no MachinePool refers to it".to_owned());
    Context {
        gates: Gates { edge_zone: gates, api_server_ilb: gates, ..Gates::default() },
        subscription: if needs.subscription { Lookup::Found("s".to_owned()) } else { Lookup::NotNeeded },
        pool_version: match needs.pool_version {
            true => version().map_or_else(Lookup::Failed, Lookup::Found),
            false => Lookup::NotNeeded,
        },
        cluster_network: match needs.cluster_network {
            true => admission_corpus::cluster_network(object),
            false => Lookup::NotNeeded,
        },
        system_pools: match needs.system_pools {
            true => Lookup::Found(SystemPools { cluster_goes: false, others: 0 }),
            false => Lookup::NotNeeded,
        },
        ..Context::default()
    }
}

/// The object as it is stored, and the warnings, in the order of an API server: defaults of the schema, then webhooks.
fn admitted(
    kind: &str,
    mut object: Value,
    old: Option<&Value>,
    gates: bool,
) -> Result<(Value, Vec<String>), Denied> {
    fill_defaults(kind, &mut object);
    let mut warnings = Vec::new();
    for task in [Task::Default, Task::Validate] {
        for webhook in WEBHOOKS.iter().filter(|webhook| webhook.kind == kind && webhook.task == task) {
            let context = context(webhook, &object, old, gates);
            let answer = review(webhook, object, old, &context, &mut Fixed)?;
            object = answer.object;
            warnings.extend(answer.warnings);
        }
    }
    Ok((object, warnings))
}

fn answer(case: &Case) -> Result<String, String> {
    let said = |denied: Denied| match denied.errors() {
        [] => format!("{} {denied}", denied.status(&case.kind, "c1")["code"]),
        errors => errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
    };
    let old = match case.old.clone() {
        Some(old) => Some(admitted(&case.kind, old, None, case.gates).map_err(|_| "no before".to_owned())?.0),
        None => None,
    };
    let (object, warnings) =
        admitted(&case.kind, case.new.clone(), old.as_ref(), case.gates).map_err(said)?;
    // FNV-1a.
    let hash = |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let fingerprint = object.to_string().bytes().chain(warnings.join("\n").bytes()).fold(0x811c_9dc5, hash);
    Ok(format!("{:04x}", fingerprint >> 16))
}

/// One line for each refusal, and one for the fingerprints of accepted cases between two refusals.
fn lines(cases: &[&Case]) -> String {
    let mut text = String::new();
    let mut accepted = String::new();
    for case in cases {
        match answer(case) {
            Ok(fingerprint) => accepted += &format!(" {fingerprint}"),
            Err(words) => {
                if !accepted.is_empty() {
                    writeln!(text, "accepted:{}", std::mem::take(&mut accepted)).unwrap();
                }
                let name = case.name.strip_prefix(&case.kind).unwrap_or(&case.name);
                writeln!(text, "{} → {}", name.trim(), words.replace('\n', " ")).unwrap();
            }
        }
    }
    if !accepted.is_empty() {
        writeln!(text, "accepted:{accepted}").unwrap();
    }
    text
}

fn file(kind: &str) -> PathBuf {
    admission_corpus::folder().join("admission").join(format!("{kind}.txt"))
}

#[test]
fn every_case_of_the_corpus_is_answered_as_recorded() {
    let cases = admission_corpus::read().unwrap();
    assert!(cases.len() > 5000, "hardly any cases were read: correct this test");
    let mut by_kind: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in cases.iter().filter(|case| WEBHOOKS.iter().any(|webhook| webhook.kind == case.kind)) {
        by_kind.entry(&case.kind).or_default().push(case);
    }
    let mut wrong = String::new();
    for (kind, cases) in by_kind {
        let now = lines(&cases);
        if std::env::var_os("UPDATE_CORPUS").is_some() {
            std::fs::create_dir_all(file(kind).parent().unwrap()).unwrap();
            std::fs::write(file(kind), &now).unwrap();
        }
        let recorded = std::fs::read_to_string(file(kind)).unwrap_or_default();
        let pairs = now.lines().zip(recorded.lines().chain(std::iter::repeat("")));
        if let Some((now, then)) = pairs.clone().find(|(now, then)| now != then) {
            writeln!(wrong, "{kind}:\n  now:      {now}\n  recorded: {then}").unwrap();
        } else if now != recorded {
            writeln!(wrong, "{kind}: there are fewer answers than recorded").unwrap();
        }
    }
    assert!(wrong.is_empty(), "the first differences (UPDATE_CORPUS=1 records the answers):\n{wrong}");
}
