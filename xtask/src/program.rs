//! Programs that a task starts: found, watched, and always stopped.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::Instant;

use crate::print;

/// The workspace's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The time limit for a program to stop.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(20);
/// The interval at which programs and their effects are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A runtime of two threads.
///
/// # Errors
/// The system cannot create threads.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// Cargo at the workspace's root, as if it was started by hand. Cargo sets variables about this package: some build scripts watch
/// them, and would compile half of the workspace again.
pub fn own_cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let of_cargo = std::env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    });
    of_cargo.for_each(|name| {
        cargo.env_remove(name);
    });
    cargo.current_dir(root());
    cargo
}

/// The standard output of a command that succeeds.
///
/// # Errors
/// It does not start, fails, or prints something that is no text.
pub fn output(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        bail!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{name} printed something that is no text"))
}

/// The exit code of scripts of programs that cannot be had on a machine.
const CANNOT_BE_HAD: i32 = 3;

/// The program whose path a script prints, and which the script builds if it is missing. `None` with a message where it
/// cannot be had.
///
/// # Errors
/// The script fails, or the program cannot be had in CI.
pub fn of_script(name: &str) -> anyhow::Result<Option<PathBuf>> {
    let script = root().join("scripts").join(name);
    let output = Command::new(&script).output().with_context(|| script.display().to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match output.status.code() {
        Some(0) => Ok(Some(String::from_utf8(output.stdout)?.trim().into())),
        Some(CANNOT_BE_HAD) if std::env::var_os("CI").is_none() => {
            print::line(format_args!("skipped: {said}"));
            Ok(None)
        }
        _ => bail!("{}: {said}", script.display()),
    }
}

/// Builds the release binaries of all programs that users run, and returns their folder.
///
/// # Errors
/// The build fails.
fn build_release() -> anyhow::Result<PathBuf> {
    let mut build = own_cargo();
    let status =
        build.args(["build", "--release", "--locked", "--quiet"]).status().context("cannot start cargo")?;
    if !status.success() {
        bail!("the release build failed");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join("release"))
}

/// A given binary, or else the one with this name of a release build.
///
/// # Errors
/// The build fails.
pub fn given_or_built(path: Option<&Path>, name: &str) -> anyhow::Result<PathBuf> {
    if let Some(path) = path {
        return Ok(path.to_owned());
    }
    print::line("building the release binaries");
    Ok(build_release()?.join(name))
}

/// Does something in a temporary folder, which is kept, with a message, if that is wanted or if it fails.
///
/// # Errors
/// The folder cannot be created, or the work fails.
pub fn in_folder<T>(
    prefix: &str,
    keep: bool,
    work: impl FnOnce(&Path) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let directory = tempfile::Builder::new().prefix(prefix).tempdir()?;
    let done = work(directory.path());
    if keep || done.is_err() {
        print::line(format_args!("files and logs: {}", directory.keep().display()));
    }
    done
}

/// Paths of built programs.
#[derive(Debug, Default, clap::Args)]
pub struct ProgramArguments {
    /// Folder with built programs; by default release builds are made.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
    /// Binary of `cerulean`, which simulates Azure and Kubernetes; by default a release build is made.
    #[arg(long, value_name = "PATH")]
    cerulean: Option<PathBuf>,
}

impl ProgramArguments {
    /// The given folder of programs.
    pub fn given(&self) -> Option<&Path> {
        self.programs.as_deref()
    }

    /// The given programs, and a release build for the rest.
    ///
    /// # Errors
    /// The build fails.
    pub fn or_built(&self) -> anyhow::Result<Built> {
        let programs = given_or_built(self.programs.as_deref(), "")?;
        let cerulean = match (&self.cerulean, &self.programs) {
            (None, None) => programs.join("cerulean"),
            (path, _) => given_or_built(path.as_deref(), "cerulean")?,
        };
        Ok(Built { programs, cerulean })
    }
}

/// Built programs.
#[derive(Debug, Clone)]
pub struct Built {
    /// The folder of the programs under test.
    pub programs: PathBuf,
    /// The program that simulates Azure and Kubernetes.
    pub cerulean: PathBuf,
}

/// A started program, whose output goes to a file. It is killed on drop.
pub struct Program {
    name: String,
    child: Child,
    output: PathBuf,
}

impl Program {
    /// Starts `command`, with its output in `directory`.
    ///
    /// # Errors
    /// The program cannot be started, or its log file cannot be created.
    pub fn start(name: &str, directory: &Path, command: &mut Command) -> anyhow::Result<Self> {
        let output = directory.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&output)?;
        let child =
            command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn().with_context(
                || format!("cannot start {name} ({})", command.get_program().to_string_lossy()),
            )?;
        Ok(Self { name: name.to_owned(), child, output })
    }

    /// The program's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The ID of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The program's output so far.
    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// Fails if the program has ended by itself.
    ///
    /// # Errors
    /// The program has ended; the text contains the end of its output.
    pub fn must_run(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended by itself with {status}:\n{}", self.name, self.last_words()),
        }
    }

    /// How the program has ended; `None` while it runs.
    ///
    /// # Errors
    /// The system does not say.
    pub fn ended(&mut self) -> std::io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// The end of the program's output.
    pub fn last_words(&self) -> String {
        let output = self.output();
        let lines: Vec<&str> = output.lines().collect();
        lines[lines.len().saturating_sub(25)..].join("\n")
    }

    /// Asks the program to stop (SIGTERM) and returns how it ended.
    ///
    /// # Errors
    /// It does not end within `patience`.
    pub async fn terminate(&mut self, patience: Duration) -> anyhow::Result<ExitStatus> {
        // The standard library can only kill; `kill` is on every machine that runs Kubernetes.
        Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status()
            .context("cannot run kill")?;
        let status = self.ends_within(patience).await?;
        status.with_context(|| {
            let seconds = patience.as_secs();
            format!("{} did not end within {seconds} s of SIGTERM:\n{}", self.name, self.last_words())
        })
    }

    /// Waits for the program's end, and returns how it ended; `None` if it still runs after `patience`.
    ///
    /// # Errors
    /// The system does not say.
    pub async fn ends_within(&mut self, patience: Duration) -> std::io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + patience;
        loop {
            let status = self.ended()?;
            if status.is_some() || Instant::now() > deadline {
                return Ok(status);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// Waits until `condition` returns a value; its errors are retried, and the last one is reported on a timeout.
/// `must_run` says whether the programs of `stage` run.
///
/// # Errors
/// A program has ended, or it takes longer than `patience`.
pub async fn until<S, T>(
    stage: &mut S,
    must_run: impl Fn(&mut S) -> anyhow::Result<()>,
    what: &str,
    patience: Duration,
    condition: impl AsyncFn(&S) -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + patience;
    loop {
        must_run(stage)?;
        let last = match condition(stage).await {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => None,
            Err(error) => Some(error),
        };
        if Instant::now() > deadline {
            let last = last.map(|error| format!(" (last error: {error:#})")).unwrap_or_default();
            bail!("timed out after {} s waiting until {what}{last}", patience.as_secs());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Adds the end of the programs' logs to a problem.
pub fn with_logs(problem: anyhow::Error, programs: &[&Program]) -> anyhow::Error {
    let words: Vec<String> = programs.iter().map(|program| program.last_words()).collect();
    problem.context(format!("last words of the programs:\n{}\n", words.join("\n---\n")))
}
