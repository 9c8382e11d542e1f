//! Output without values that differ in every run.

/// The letters and digits of random names.
const RANDOM: &str = "bcdfghjklmnpqrstvwxz2456789";

/// Replaces ages, times, UIDs, versions, addresses, ports and random parts of names by words, and runs of spaces by
/// two.
pub fn normal(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        // The names of files that kubectl diff compares, and their dates.
        if ["--- /", "+++ /", "diff -"].iter().any(|start| line.starts_with(start)) {
            continue;
        }
        if let Some((head, _)) = line.split_once("resourceVersion: ") {
            lines.push(format!("{head}resourceVersion: <version>"));
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let mut result = line[..indent].to_owned();
        let mut spaces = 0;
        for part in line[indent..].trim_end().split(' ') {
            if part.is_empty() {
                spaces += 1;
                continue;
            }
            match (result.len() > indent, spaces) {
                (false, _) => {}
                (true, 0) => result.push(' '),
                (true, _) => result.push_str("  "),
            }
            spaces = 0;
            result.push_str(&word(part));
        }
        lines.push(result);
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// One word, and the text between its punctuation.
fn word(text: &str) -> String {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "-.:<>".contains(character);
    let mut result = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        if end == 0 {
            let mark = rest.chars().next().map_or(1, char::len_utf8);
            result.push_str(&rest[..mark]);
            rest = &rest[mark..];
            continue;
        }
        let (part, more) = rest.split_at(end);
        // Punctuation at the end of sentences, and after keys of YAML, is kept.
        let bare = part.trim_end_matches([':', '.']);
        result.push_str(&term(bare));
        result.push_str(&part[bare.len()..]);
        rest = more;
    }
    result
}

fn term(text: &str) -> String {
    if let Some(replaced) = replaced(text) {
        return replaced.to_owned();
    }
    // An address with a port, and a port with a node port.
    if let Some((head, tail)) = text.split_once(':') {
        return format!("{}:{}", term(head), term(tail));
    }
    // Random parts at the end of names: of pods, after the hash of their template.
    match text.rsplit_once('-') {
        Some((head, tail)) if tail.len() == 5 && tail.chars().all(|one| RANDOM.contains(one)) => {
            format!("{}-<random>", term(head))
        }
        Some((head, tail)) if is_hash(tail) => format!("{head}-<hash>"),
        _ => text.to_owned(),
    }
}

fn replaced(text: &str) -> Option<&'static str> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_age(text) {
        return Some("<age>");
    }
    if text.split('.').count() == 4 && text.split('.').all(|part| digits(part) && part.len() <= 3) {
        return Some("<address>");
    }
    if is_hash(text) && text.bytes().any(|byte| byte.is_ascii_digit()) && !digits(text) {
        return Some("<hash>");
    }
    if digits(text) && text.len() == 5 && ("30000"..="32767").contains(&text) {
        return Some("<port>");
    }
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    if lengths == [8, 4, 4, 4, 12] {
        return Some("<uid>");
    }
    let dated = text.get(..10).is_some_and(|date| date.split('-').map(str::len).eq([4, 2, 2]));
    (dated && text.contains('T') && text.ends_with('Z')).then_some("<time>")
}

fn is_age(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|one: char| !one.is_ascii_digit()).unwrap_or(rest.len());
        let unit = rest.get(end..end + 1);
        if end == 0 || !unit.is_some_and(|unit| "smhd".contains(unit)) {
            return false;
        }
        rest = &rest[end + 1..];
    }
    !text.is_empty()
}

fn is_hash(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[test]
fn what_no_two_runs_share_is_replaced() {
    for (text, expected) in [
        (
            "web-1a2b3c4d-x4z7k   1/1     Running   0          12s",
            "web-<hash>-<random>  1/1  Running  0  <age>",
        ),
        ("  uid: 0b8f8a4e-6f43-4a0e-9d53-1f3f5a0e9c11", "  uid: <uid>"),
        ("creationTimestamp: \"2026-01-01T00:00:00Z\"", "creationTimestamp: \"<time>\""),
        (
            "web  ClusterIP  10.0.3.4  <none>  80:31234/TCP  3m2s",
            "web  ClusterIP  <address>  <none>  80:<port>/TCP  <age>",
        ),
        ("replicas: 3", "replicas: 3"),
        ("message: it is so.", "message: it is so."),
        ("pod-template-hash=0a1b2c3d", "pod-template-hash=<hash>"),
        ("Endpoints:  10.128.0.7:8080,10.128.0.9:8080", "Endpoints:  <address>:8080,<address>:8080"),
    ] {
        assert_eq!(normal(text), format!("{expected}\n"));
    }
}
