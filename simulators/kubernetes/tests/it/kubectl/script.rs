//! The file of commands, and the table of intended differences.

use std::collections::BTreeSet;

/// The part of a command's output that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// All of it.
    Whole,
    /// The last line: the lines before it show progress.
    End,
}

/// One command.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    pub command: String,
    pub input: String,
    pub comparison: Comparison,
}

impl Step {
    /// Whether it may be repeated.
    pub fn only_reads(&self) -> bool {
        ["kubectl get ", "kubectl describe ", "kubectl rollout history "]
            .iter()
            .any(|start| self.command.starts_with(start))
    }
}

/// Parses blocks: a line with `$ ` and a command (`% ` if only the last line is compared), and below it, indented by
/// four spaces, its standard input.
pub fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        let comparison = match line.get(..2) {
            Some("$ ") => Some(Comparison::Whole),
            Some("% ") => Some(Comparison::End),
            _ => None,
        };
        if let Some(comparison) = comparison {
            steps.push(Step { command: line[2..].to_owned(), input: String::new(), comparison });
        } else if let Some(input) = line.strip_prefix("    ") {
            let step = steps.last_mut().expect("input stands below its command");
            step.input.push_str(input);
            step.input.push('\n');
        } else {
            assert!(line.is_empty() || line.starts_with('#'), "neither command nor input: {line}");
        }
    }
    let mut seen = BTreeSet::new();
    for step in &steps {
        let said = step.comparison == Comparison::End || seen.insert(&step.command);
        assert!(said, "the table cannot tell one from the other, so say it in another way: {}", step.command);
    }
    steps
}

/// The commands that may differ with a kubectl of this version: rows of the section "What kubectl shows".
pub fn rows(page: &str, version: &str) -> BTreeSet<String> {
    let section = page.split("\n## ").find(|section| section.starts_with("What kubectl shows"));
    let lines = section.expect("the page has the section").lines().filter(|line| line.starts_with("| `"));
    lines
        .filter_map(|line| {
            let (command, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
            let (versions, reason) = rest.split_once(" | ")?;
            assert!(reason.len() > 10, "a row needs its reason: {line}");
            let meant = versions == "every" || versions.split(", ").any(|one| one == version);
            meant.then(|| command.replace("\\|", "|"))
        })
        .collect()
}

#[test]
fn blocks_are_read() {
    let text = "# words\n$ kubectl get pods\n\n% kubectl apply -f -\n    kind: A\n      b: c\n";
    let expected = [
        ("kubectl get pods", "", Comparison::Whole),
        ("kubectl apply -f -", "kind: A\n  b: c\n", Comparison::End),
    ];
    let read = steps(text);
    let read: Vec<_> =
        read.iter().map(|step| (step.command.as_str(), step.input.as_str(), step.comparison)).collect();
    assert_eq!(read, expected);
}

#[test]
fn rows_are_read() {
    let page = "# A\n\n## What kubectl shows\n\n| command | kubectl | why |\n|---|---|---|\n\
                | `a \\| b` | every | because it is so |\n| `c` | 1.20 | because it is old |\n\n## More\n\n| `d` | every | no row of it |\n";
    let set = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!((rows(page, "1.20"), rows(page, "1.32")), (set(&["a | b", "c"]), set(&["a | b"])));
}
