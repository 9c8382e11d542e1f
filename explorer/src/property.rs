//! Common parts of properties over worlds: a trial is determined by a seed, a failure is shrunk and printed as text,
//! and past failures are stored and tested before all others.

use std::fmt;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::quietly;

/// The form of a trial in the files of past failures, which may have lines that begin with `#`.
pub trait CaseText: Sized {
    /// Its text.
    fn write(&self) -> String;

    /// Reads the text.
    ///
    /// # Errors
    /// What is wrong with it.
    fn read(text: &str) -> Result<Self, String>;
}

impl<T: Serialize + DeserializeOwned> CaseText for T {
    fn write(&self) -> String {
        // Trials consist of texts and numbers, so serialization cannot fail.
        format!("{}\n", serde_json::to_string(self).unwrap_or_default())
    }

    fn read(text: &str) -> Result<Self, String> {
        let json: String = text.lines().filter(|line| !line.starts_with('#')).collect();
        serde_json::from_str(&json).map_err(|error| error.to_string())
    }
}

/// A trial of a property: the acts in a world, and the judgement.
pub trait Trial: Clone + fmt::Debug + CaseText {
    /// The property's name, for `cargo xtask explore NAME`.
    const NAME: &'static str;

    /// The folder of its past failures in `tests/corpus`.
    const FOLDER: &'static str = Self::NAME;

    /// KnownDefect defects that are not fixed yet.
    const KNOWN: &'static [KnownDefect];

    /// The trial of a seed.
    fn of(seed: u64) -> Self;

    /// Its seed.
    fn seed(&self) -> u64;

    /// Runs it; returns its problems.
    fn run(&self) -> impl Future<Output = Vec<String>>;

    /// The smallest variant that still `fails`.
    #[must_use]
    fn shrink(&self, fails: &dyn Fn(&Self) -> bool) -> Self;
}

/// A defect that is not fixed yet, and how it is recognised.
#[derive(Debug, Clone, Copy)]
pub struct KnownDefect {
    /// The name of the defect. A trial that shows it is stored with `# known: ID`.
    pub id: &'static str,
    /// Texts that a complaint about it contains, all of them.
    pub says: &'static [&'static str],
}

impl KnownDefect {
    fn explains(&self, complaint: &str) -> bool {
        self.says.iter().all(|text| complaint.contains(text))
    }
}

/// All problems of a trial, including known defects.
pub fn all_complaints<T: Trial>(trial: &T) -> Vec<String> {
    quietly(async || trial.run().await).unwrap_or_else(|panic| vec![panic])
}

/// The problems of a trial that are not known defects. A known defect causes others: if there is one, nothing else
/// counts.
pub fn complaints<T: Trial>(trial: &T) -> Vec<String> {
    let all = all_complaints(trial);
    let is_known = |complaint: &String| T::KNOWN.iter().any(|known| known.explains(complaint));
    if all.iter().any(is_known) { Vec::new() } else { all }
}

/// A failing trial, ready to be printed.
#[derive(Debug)]
pub struct Failure<T> {
    /// The trial, shrunk.
    pub trial: T,
    /// Its problems.
    pub complaints: Vec<String>,
}

impl<T: Trial> fmt::Display for Failure<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.trial.write())?;
        for complaint in &self.complaints {
            writeln!(f, "=> {complaint}")?;
        }
        let (name, seed) = (T::NAME, self.trial.seed());
        writeln!(f, "to see it again: cargo xtask explore {name} --rounds 1 --seed {seed}")?;
        write!(f, "to keep it: put the lines above the first `=>` into {}/CASE.txt", folder::<T>())
    }
}

/// Runs the trial of a seed. With `CERULEAN_SHRINK=no` a failure is printed without shrinking.
///
/// # Errors
/// Its problems, shrunk.
pub fn explore<T: Trial>(seed: u64) -> Result<(), Box<Failure<T>>> {
    let trial = T::of(seed);
    let complaints_at_first = complaints(&trial);
    if complaints_at_first.is_empty() {
        return Ok(());
    }
    if std::env::var("CERULEAN_SHRINK").is_ok_and(|word| word == "no") {
        return Err(Box::new(Failure { trial, complaints: complaints_at_first }));
    }
    let trial = trial.shrink(&|trial| !complaints(trial).is_empty());
    let complaints = complaints(&trial);
    Err(Box::new(Failure { trial, complaints }))
}

/// The folder of past failures, below the workspace's root.
fn folder<T: Trial>() -> String {
    format!("tests/corpus/{}", T::FOLDER)
}

/// A trial that failed before.
#[derive(Debug, Clone)]
pub struct PastFailure<T> {
    /// The name of its file, without its extension.
    pub name: String,
    /// The trial.
    pub trial: T,
    /// The defect because of which it still fails: what follows `# known:` in the file.
    pub known: Option<String>,
}

impl<T: Trial> PastFailure<T> {
    /// Runs it.
    ///
    /// # Errors
    /// Its problems; or that a defect is fixed and its mark has to be removed.
    pub fn explore(&self) -> Result<(), String> {
        let complaints = all_complaints(&self.trial);
        let file = format!("{}/{}.txt", folder::<T>(), self.name);
        match (&self.known, complaints.is_empty()) {
            (None, true) | (Some(_), false) => Ok(()),
            (Some(id), true) => {
                Err(format!("{file} passes: take `# known: {id}` out of it, and {id} out of KNOWN"))
            }
            (None, false) => {
                let failure = Failure { trial: self.trial.clone(), complaints };
                Err(format!("{file} fails again:\n{failure}"))
            }
        }
    }
}

/// All trials that failed before, by name. A line `# known: DEFECT` of a file names the defect because of which it still
/// fails.
///
/// # Errors
/// A file cannot be read, or a known defect has no file that shows it.
pub fn past_failures<T: Trial>() -> Result<Vec<PastFailure<T>>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder::<T>());
    let failed = |problem: &dyn fmt::Display| format!("{}: {problem}", folder.display());
    let mut all = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(|error| failed(&error))? {
        let path = entry.map_err(|error| failed(&error))?.path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
        let known = text.lines().find_map(|line| line.strip_prefix("# known:"));
        let trial = T::read(&text).map_err(|error| failed(&format!("{}: {error}", path.display())))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        all.push(PastFailure { name, trial, known: known.map(|id| id.trim().to_owned()) });
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    for known in T::KNOWN {
        let shows = |one: &PastFailure<T>| one.known.as_deref().is_some_and(|id| id.starts_with(known.id));
        if !all.iter().any(shows) {
            return Err(failed(&format!("no file shows the known defect {}", known.id)));
        }
    }
    Ok(all)
}
