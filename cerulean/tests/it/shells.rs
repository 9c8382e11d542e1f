//! `cerulean completion` in real shells: each sources the script and answers what its tab key would offer. A shell that
//! is not installed is left out, except bash.

use std::path::Path;
use std::process::{Command, Output};

fn cerulean(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cerulean")).args(arguments).output().unwrap()
}

/// What a shell answers to a program that is given the script as its first argument; `None` if it is not installed.
fn answer(shell: &str, program: &str) -> Option<String> {
    let script = cerulean(&["completion", shell]);
    assert!(script.status.success(), "{script:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("completions");
    std::fs::write(&file, &script.stdout).unwrap();
    let mut command = Command::new(shell);
    command.args(start_of(shell)).args(["-c", program]).args(name_of(shell)).arg(&file);
    let output = match asked_in(&mut command, folder.path()) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        other => other.unwrap(),
    };
    assert!(output.status.success() && output.stderr.is_empty(), "{shell}: {output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

fn asked_in(command: &mut Command, home: &Path) -> std::io::Result<Output> {
    command.env("HOME", home).env("ZDOTDIR", home).env("XDG_CONFIG_HOME", home).output()
}

/// Flags with which a shell reads no files of the system or the user.
fn start_of(shell: &str) -> &'static [&'static str] {
    match shell {
        "bash" => &["--norc", "--noprofile"],
        "zsh" => &["-f"],
        _ => &["--no-config"],
    }
}

/// The name of the program in `$0`, which fish does not take.
fn name_of(shell: &str) -> &'static [&'static str] {
    if shell == "fish" { &[] } else { &["it"] }
}

/// U12
#[test]
fn bash_completes_commands_flags_and_values() {
    let program = r#"source "$1"
        offer() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _cerulean cerulean "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"; echo "${COMPREPLY[*]}"; }
        offer cerulean pl; offer cerulean simulate az; offer cerulean plan --cloud; offer cerulean plan --output ''"#;
    let answered = answer("bash", program).expect("bash is installed");
    assert_eq!(answered.lines().collect::<Vec<_>>(), ["plan", "azure", "--cloud-config", "text json"]);
}

/// U12
#[test]
fn zsh_takes_the_completions() {
    let program = r#"autoload -U compinit && compinit -D -u && source "$1" && print -- $_comps[cerulean] && whence -w _cerulean"#;
    if let Some(answered) = answer("zsh", program) {
        assert_eq!(answered, "_cerulean\n_cerulean: function\n");
    }
}

/// U12
#[test]
fn fish_completes_commands_flags_and_values() {
    let program = r#"source $argv[1]
        for line in "cerulean pl" "cerulean simulate az" "cerulean plan --cloud" "cerulean plan --output "
            complete -C $line | cut -f 1 | string join " "
        end"#;
    if let Some(answered) = answer("fish", program) {
        assert_eq!(answered.lines().collect::<Vec<_>>(), ["plan", "azure", "--cloud-config", "json text"]);
    }
}

/// U12
#[test]
fn the_version_is_a_command_and_a_flag() {
    let (command, flag) = (cerulean(&["version"]), cerulean(&["--version"]));
    assert!(command.status.success() && command.stdout.starts_with(b"cerulean 0."), "{command:?}");
    assert_eq!(command.stdout, flag.stdout);
}

/// U11
#[test]
fn help_has_colours_where_they_are_wanted() {
    let help = |variable: &str| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_cerulean")).arg("--help").env(variable, "1").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(help("CLICOLOR_FORCE").contains("\u{1b}["));
    assert!(!help("NO_COLOR").contains('\u{1b}'));
}
