//! `docs/azure-coverage.md` says what is simulated: types and actions from the tables of the providers, codes from
//! where they are declared. `UPDATE_COVERAGE=1 cargo test -p azure-simulator --test it coverage` writes it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use azure_engine::types::protocol::{LiesIn, Placement, Protocol};

const HEAD: &str = "# What of Azure is simulated

Printed from the tables of the providers and the declarations of their codes, and kept true by a test:

```console
$ UPDATE_COVERAGE=1 cargo test -p azure-simulator --test it coverage
```

How it differs from Azure is in [azure-differences.md](azure-differences.md).
";

const TYPES: &str = "
## Types

Statuses are those of the answers that create, change and delete; `…` marks a long-running operation. Children are documents
within their parent's; those with `*` can be written one by one. Lists, GET and HEAD are everywhere. Without
`--strict-api-versions` any well-formed api-version is taken.

Resource Manager itself answers for subscriptions, tenants, resource groups, tags of anything, regions, providers' records
and registrations, and lists of all resources.
";

const CODES: &str = "
## Codes of refusals

`Azure's` are shown by a recorded conversation, Azure's public documents or the source of one of Azure's clients. Where
they are `ours`, Azure refuses such a request, and no source shows how. Texts may differ in either case.
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// How a type is written.
fn requests(protocol: &Protocol) -> String {
    let later = |at_once: bool| if at_once { "" } else { "…" };
    let mut all = Vec::new();
    if protocol.creatable {
        let (create, update) = (protocol.create_status, protocol.update_status);
        all.push(format!("PUT {create}, {update}{}", later(protocol.synchronous)));
    }
    let tags = if protocol.only_tags { " (tags)" } else { "" };
    let at_once = protocol.synchronous || protocol.only_tags;
    all.push(format!("PATCH {}{}{tags}", protocol.patch_status, later(at_once)));
    all.push(format!("DELETE {}{}", protocol.delete_status, later(protocol.synchronous_delete)));
    all.join("; ")
}

fn place(protocol: &Protocol) -> &'static str {
    match (protocol.lies_in, protocol.placement, protocol.tracked) {
        (LiesIn::Subscription, ..) => "subscription",
        (LiesIn::Anything, ..) => "anything",
        (LiesIn::Group, _, false) => "its parent",
        (LiesIn::Group, Placement::Global, _) => "group, global",
        (LiesIn::Group, Placement::Regional, _) => "group",
    }
}

fn words<'a>(all: impl Iterator<Item = &'a str>) -> String {
    all.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" ")
}

fn types() -> String {
    let mut by_namespace: BTreeMap<&str, BTreeMap<&str, String>> = BTreeMap::new();
    for provider in azure_providers::all() {
        for protocol in provider.resource_types.iter().map(|one| one.protocol()) {
            let (namespace, name) = protocol.resource_type.split_once('/').unwrap();
            // Resource Manager answers these by itself.
            if namespace == "Microsoft.Resources" {
                continue;
            }
            let children: Vec<String> = protocol
                .child_collections
                .iter()
                .map(|child| format!("{}{}", child.name, if child.writable { "*" } else { "" }))
                .collect();
            let row = format!(
                "| `{name}` | {} | {} | {} | {} | {} |",
                place(protocol),
                requests(protocol),
                words(children.iter().map(String::as_str)),
                words(protocol.actions.iter().copied()),
                protocol.api_versions.join(", "),
            );
            assert!(by_namespace.entry(namespace).or_default().insert(name, row).is_none(), "{name} twice");
        }
    }
    let mut page = TYPES.to_owned();
    for (namespace, rows) in by_namespace {
        let head =
            "| type | lies in | written | children | actions | api-versions |\n|---|---|---|---|---|---|";
        writeln!(page, "\n### {namespace}\n\n{head}").unwrap();
        rows.values().for_each(|row| writeln!(page, "{row}").unwrap());
    }
    page
}

/// The source files below a folder, without those of tests.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code: String = text
                    .split("#[cfg(test)]\nmod tests")
                    .take(1)
                    .flat_map(str::lines)
                    .filter(|line| !line.trim_start().starts_with("//"))
                    .fold(String::new(), |all, line| all + line + "\n");
                found.push((path, code));
            }
        }
    }
    found.sort();
    found
}

/// Status, code, whose it is.
type Declared = (String, u16, &'static str);

/// The codes that a file declares: `Code::azures(409, "InUse")`, and in Entra with a number behind.
fn declared(file: &Path, text: &str) -> Vec<Declared> {
    let all = [("Code::azures(", "Azure's"), ("Code::ours(", "ours")];
    let parsed = |rest: &str, whose: &'static str| {
        let arguments = rest.split_once(')')?.0;
        let mut parts = arguments.split(',').map(str::trim).filter(|part| !part.is_empty());
        let status = parts.next()?.parse().ok()?;
        let code = parts.next()?.strip_prefix('"')?.strip_suffix('"')?;
        let number = parts.next().map(|number| format!("AADSTS{number} ")).unwrap_or_default();
        Some((format!("{number}{code}"), status, whose))
    };
    all.into_iter()
        .flat_map(|(word, whose)| text.split(word).skip(1).map(move |rest| (rest, whose)))
        .map(|(rest, whose)| {
            let words: String = rest.chars().take(60).collect();
            parsed(rest, whose).unwrap_or_else(|| panic!("no status and code in {}: {words}", file.display()))
        })
        .collect()
}

/// What a chapter of codes is about, and where they are declared.
fn chapters() -> Vec<(String, PathBuf)> {
    let simulators = root().join("simulators");
    let mut all =
        vec![("Resource Manager, about whatever resource".to_owned(), simulators.join("azure-engine/src"))];
    let providers = std::fs::read_dir(simulators.join("azure-providers/src")).unwrap();
    let mut folders: Vec<PathBuf> = providers.map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    for folder in folders {
        all.push((folder.file_name().unwrap().to_string_lossy().replace('_', " "), folder));
    }
    all.push(("Doors: HTTP, tokens, hosts".to_owned(), simulators.join("azure/src")));
    all.push(("Entra".to_owned(), simulators.join("azure-entra/src")));
    all
}

fn codes() -> String {
    let mut page = CODES.to_owned();
    for (title, folder) in chapters() {
        let mut rows: BTreeMap<Declared, BTreeSet<String>> = BTreeMap::new();
        let mut undeclared = 0;
        for (path, text) in sources(&folder) {
            let name = path.strip_prefix(&folder).unwrap().with_extension("");
            let name = name.to_string_lossy().trim_end_matches("/mod").to_owned();
            for one in declared(&path, &text) {
                rows.entry(one).or_default().insert(name.clone());
            }
            undeclared += text.matches("Refusal::new(").count() + text.matches("Refusal::network(").count();
        }
        if rows.is_empty() {
            continue;
        }
        writeln!(page, "\n### {title}\n\n| code | status | whose | declared in |\n|---|---|---|---|")
            .unwrap();
        for ((code, status, whose), files) in rows {
            let files = words(files.iter().map(String::as_str));
            writeln!(page, "| `{code}` | {status} | {whose} | {files} |").unwrap();
        }
        if undeclared > 0 && folder.to_string_lossy().contains("providers") {
            writeln!(page, "\n{undeclared} refusals do not say yet whose their codes are.").unwrap();
        }
    }
    page
}

#[test]
fn the_page_says_what_the_tables_say() {
    let path = root().join("docs/azure-coverage.md");
    let page = format!("{HEAD}{}{}", types(), codes());
    if std::env::var_os("UPDATE_COVERAGE").is_some() {
        std::fs::write(&path, page).unwrap();
        return;
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    let other = page.lines().zip(there.lines()).find(|(new, old)| new != old);
    assert!(
        page == there,
        "docs/azure-coverage.md is not what the tables say, first in {other:?}: \
         UPDATE_COVERAGE=1 cargo test -p azure-simulator --test it coverage"
    );
}

#[test]
fn types_that_act_say_which_actions_there_are() {
    for (path, text) in sources(&root().join("simulators/azure-providers/src")) {
        let acts = text.contains("fn act(\n        &self,");
        assert!(!acts || text.contains("actions:"), "{}: no `actions` in its Protocol", path.display());
    }
}
