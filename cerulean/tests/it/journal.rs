//! The exit code of `cerulean journal diff` says whether two runs are the same.

use std::process::Command;

const LINE: &str =
    r#"{"sequence":1,"time":"2026-01-01T00:00:00Z","method":"PUT","path":"/x","status":200,"kind":"write"}"#;

#[test]
fn the_exit_status_is_the_verdict() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let one = file("one.jsonl", format!("{LINE}\n{LINE}\n"));
    let same = file("same.jsonl", format!("{LINE}\n\n{LINE}"));
    let later = file("later.jsonl", format!("{LINE}\n{}\n", LINE.replace("00:00:00Z", "00:00:09Z")));
    let other = file("other.jsonl", format!("{}\n", LINE.replace("200", "412")));
    let broken = file("broken.jsonl", "{\n".to_owned());
    let absent = directory.path().join("absent.jsonl");
    for (b, status, word) in [
        (&same, 0, "the same: 2"),
        (&later, 0, "at other times"),
        (&other, 1, "PUT 412"),
        (&broken, 2, "line 1"),
        (&absent, 2, "the second journal, "),
    ] {
        let ended = Command::new(env!("CARGO_BIN_EXE_cerulean"))
            .args(["journal", "diff"])
            .args([&one, b])
            .output()
            .unwrap();
        let said = [ended.stdout, ended.stderr].concat();
        assert_eq!(ended.status.code(), Some(status), "{}", b.display());
        assert!(String::from_utf8_lossy(&said).contains(word), "{}", String::from_utf8_lossy(&said));
    }
}

#[test]
fn an_export_that_cannot_be_is_said_with_its_option() {
    for (from, word) in [
        ("nofile", "--from nofile: give the simulator's plain HTTP"),
        ("http://127.0.0.1:1", "--from http://127.0.0.1:1: http://127.0.0.1:1/_cerulean/journal"),
    ] {
        let ended = Command::new(env!("CARGO_BIN_EXE_cerulean"))
            .args(["journal", "export", "--from", from])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!ended.status.success() && said.contains(word), "{said}");
    }
}
