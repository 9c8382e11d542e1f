//! What properties over worlds have in common: a seed decides a trial, a failure is shrunk and printed as text, and what
//! failed once is kept and tried again before all else.

use std::fmt;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::quietly;

/// A trial of a property: what happens in a world, and what is judged then.
pub trait Trial: Clone + fmt::Debug + Serialize + DeserializeOwned {
    /// The property's name, for `cargo xtask explore NAME` and the folder `tests/corpus/NAME`.
    const NAME: &'static str;

    /// Defects that are not mended yet.
    const KNOWN: &'static [Known];

    /// The trial of a seed.
    fn of(seed: u64) -> Self;

    /// Its seed.
    fn seed(&self) -> u64;

    /// Carries it out; tells what is wrong.
    fn run(&self) -> impl Future<Output = Vec<String>>;

    /// The least of it that still `fails`.
    #[must_use]
    fn shrink(&self, fails: &dyn Fn(&Self) -> bool) -> Self;
}

/// A defect that is not mended yet, and how it is recognised.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// The name of the defect. A trial that shows it is kept under `# known: ID`.
    pub id: &'static str,
    /// Texts that a complaint holds which speaks of it, all of them.
    pub says: &'static [&'static str],
}

impl Known {
    fn explains(&self, complaint: &str) -> bool {
        self.says.iter().all(|text| complaint.contains(text))
    }
}

/// Everything that is wrong with a trial, known defects included.
pub fn all_complaints<T: Trial>(trial: &T) -> Vec<String> {
    quietly(async || trial.run().await).unwrap_or_else(|panic| vec![panic])
}

/// What is wrong with a trial and no known defect. A known defect leads to others: where there is one, nothing else counts.
pub fn complaints<T: Trial>(trial: &T) -> Vec<String> {
    let all = all_complaints(trial);
    let is_known = |complaint: &String| T::KNOWN.iter().any(|known| known.explains(complaint));
    if all.iter().any(is_known) { Vec::new() } else { all }
}

/// A trial that fails, ready to be shown.
#[derive(Debug)]
pub struct Failure<T> {
    /// The trial, shrunk.
    pub trial: T,
    /// What is wrong with it.
    pub complaints: Vec<String>,
}

impl<T: Trial> fmt::Display for Failure<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", serde_json::to_string(&self.trial).map_err(|_| fmt::Error)?)?;
        for complaint in &self.complaints {
            writeln!(f, "=> {complaint}")?;
        }
        let (name, seed) = (T::NAME, self.trial.seed());
        writeln!(f, "to see it again: cargo xtask explore {name} --rounds 1 --seed {seed}")?;
        write!(f, "to keep it: put the first line into {}/CASE.txt", folder::<T>())
    }
}

/// Carries out the trial of a seed. `CERULEAN_SHRINK=no` shows a failure as it is.
///
/// # Errors
/// What is wrong with it, shrunk.
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

/// Where trials are kept that failed once, below the workspace's root.
fn folder<T: Trial>() -> String {
    format!("tests/corpus/{}", T::NAME)
}

/// A trial that failed once.
#[derive(Debug, Clone)]
pub struct Kept<T> {
    /// The name of its file, without its ending.
    pub name: String,
    /// The trial.
    pub trial: T,
    /// The defect for which it still fails: what follows `# known:` in the file.
    pub known: Option<String>,
}

impl<T: Trial> Kept<T> {
    /// Carries it out.
    ///
    /// # Errors
    /// What is wrong with it; or that a defect is mended and its mark has to go.
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

/// All that are kept, by name. A file has lines that begin with `#`, and the trial as JSON.
///
/// # Errors
/// A file cannot be read, or a known defect has no file that shows it.
pub fn kept<T: Trial>() -> Result<Vec<Kept<T>>, String> {
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
        let json: String = text.lines().filter(|line| !line.starts_with('#')).collect();
        let trial = serde_json::from_str(&json).map_err(|error| failed(&format!("{path:?}: {error}")))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        all.push(Kept { name, trial, known: known.map(|id| id.trim().to_owned()) });
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    for known in T::KNOWN {
        let shows = |one: &Kept<T>| one.known.as_deref().is_some_and(|id| id.starts_with(known.id));
        if !all.iter().any(shows) {
            return Err(failed(&format!("no file shows the known defect {}", known.id)));
        }
    }
    Ok(all)
}
