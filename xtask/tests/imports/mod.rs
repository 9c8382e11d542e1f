//! What the files of a crate import: `use` declarations, paths in the code, re-exports. The reading is by text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A module that is a file, by its path from the root of the crate.
pub type Module = Vec<String>;

/// The files of a crate: which modules there are, and their code without comments. Tests inside a file are a module of
/// their own.
pub struct Files(BTreeMap<Module, String>);

impl Files {
    pub fn read(root: &Path) -> std::io::Result<Self> {
        let mut files = Self(BTreeMap::new());
        files.add(root, &mut Vec::new())?;
        Ok(files)
    }

    fn add(&mut self, directory: &Path, module: &mut Module) -> std::io::Result<()> {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                module.push(name);
                self.add(&path, module)?;
                module.pop();
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let mut own = module.clone();
                if name != "mod" && name != "lib" {
                    own.push(name);
                }
                self.insert(own, &std::fs::read_to_string(&path)?);
            }
        }
        Ok(())
    }

    fn insert(&mut self, module: Module, text: &str) {
        let (code, tests) = without_tests(text);
        if let Some(tests) = tests {
            self.0.insert([module.as_slice(), &["tests".to_owned()]].concat(), without_comments(tests));
        }
        self.0.insert(module, without_comments(&code));
    }

    /// The number of files and of test modules inside files.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The file that a path leads to, and what is left of the path.
    fn holder<'a>(&self, path: &'a [String]) -> (&'a [String], &'a [String]) {
        let length = (0..=path.len()).rev().find(|length| self.0.contains_key(&path[..*length]));
        path.split_at(length.unwrap_or_default())
    }

    /// A path as it stands in a file, from the root of the crate; `None` for one that leads out of it.
    fn rooted(&self, module: &[String], path: &str) -> Option<Module> {
        let mut steps: Vec<&str> = path.split("::").collect();
        if steps.last() == Some(&"self") && steps.len() > 1 {
            steps.pop();
        }
        let mut base = match steps.first().copied()? {
            "crate" => Vec::new(),
            "self" | "super" => module.to_vec(),
            child => {
                let below = [module, &[child.to_owned()]].concat();
                return self.0.contains_key(&below).then(|| join(module, &steps));
            }
        };
        while let Some(step) = steps.first().filter(|step| ["crate", "self", "super"].contains(step)) {
            if *step == "super" {
                base.pop();
            }
            steps.remove(0);
        }
        Some(join(&base, &steps))
    }

    /// Which file each file names.
    pub fn graph(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let uses: BTreeMap<&Module, Vec<String>> =
            self.0.iter().map(|(module, code)| (module, use_declarations(code))).collect();
        let mut exports: BTreeMap<Module, BTreeMap<String, Module>> = BTreeMap::new();
        for (module, declarations) in &uses {
            for leaf in declarations.iter().filter_map(|text| text.strip_prefix("pub ")).flat_map(leaves) {
                if let Some(path) = self.rooted(module, &leaf)
                    && let Some(name) = path.last().cloned()
                {
                    exports.entry((*module).clone()).or_default().insert(name, path);
                }
            }
        }
        let file = |path: &[String]| {
            let mut path = path.to_vec();
            // Through as many re-exports as there are; a handful at most.
            for _ in 0..8 {
                let (holder, rest) = self.holder(&path);
                let Some(exported) = rest.first().and_then(|name| exports.get(holder)?.get(name)) else {
                    break;
                };
                path = [exported.as_slice(), &rest[1..]].concat();
            }
            self.holder(&path).0.to_vec()
        };
        let mut graph = BTreeMap::new();
        for (module, code) in &self.0 {
            let mut named = BTreeSet::new();
            let mut modules: BTreeMap<String, Module> = BTreeMap::new();
            let declared: Vec<String> = uses[module]
                .iter()
                .map(|text| text.strip_prefix("pub ").unwrap_or(text))
                .flat_map(leaves)
                .collect();
            for path in declared.iter().filter_map(|leaf| self.rooted(module, leaf)) {
                if self.0.contains_key(&path) {
                    modules.insert(path.last().cloned().unwrap_or_default(), path);
                } else {
                    named.insert(file(&path));
                }
            }
            for path in paths(code) {
                let (first, rest) = path.split_once("::").unwrap_or((&path, ""));
                let path = match modules.get(first) {
                    Some(imported) => Some(join(imported, &rest.split("::").collect::<Vec<_>>())),
                    None => self.rooted(module, &path),
                };
                named.extend(path.map(|path| file(&path)));
            }
            named.remove(module);
            graph.insert(module, named);
        }
        graph
    }
}

fn join(base: &[String], steps: &[&str]) -> Module {
    base.iter().cloned().chain(steps.iter().map(|step| (*step).to_owned())).collect()
}

const TESTS: [&str; 3] =
    ["#[cfg(test)]\nmod ", "#[cfg(test)]\npub(super) mod ", "#[cfg(test)]\npub(crate) mod "];

/// A file's code, and the tests at its end. Declarations of test files are left out.
fn without_tests(text: &str) -> (String, Option<&str>) {
    let (mut code, mut rest) = (String::new(), text);
    while let Some((before, tests)) =
        TESTS.iter().filter_map(|start| rest.split_once(start)).min_by_key(|(before, _)| before.len())
    {
        code.push_str(before);
        let line = tests.lines().next().unwrap_or_default();
        if !line.ends_with(';') {
            return (code, Some(tests));
        }
        rest = &tests[line.len()..];
    }
    code.push_str(rest);
    (code, None)
}

fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The trees of all `use` declarations, with `pub ` before those that are re-exports.
fn use_declarations(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        let before = rest[..at].rsplit('\n').next().unwrap_or_default().trim();
        rest = &rest[at + 4..];
        let Some(end) = rest.find(';') else { break };
        if before.is_empty() || (before.starts_with("pub") && !before.contains(' ')) {
            let tree: String = rest[..end].split_whitespace().collect::<Vec<_>>().join(" ");
            found.push(if before.is_empty() { tree } else { format!("pub {tree}") });
        }
    }
    found
}

/// The single paths of a `use` tree, without new names.
fn leaves(tree: &str) -> Vec<String> {
    let Some((prefix, inner)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap_or_default().trim().to_owned()];
    };
    let inner = inner.rsplit_once('}').map_or(inner, |(inner, _)| inner);
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for letter in inner.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        match (letter, depth) {
            (',', 0) => parts.push(String::new()),
            (letter, _) => parts.last_mut().into_iter().for_each(|part| part.push(letter)),
        }
    }
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    parts.flat_map(|part| leaves(&format!("{}{part}", prefix.trim()))).collect()
}

/// Every path of more than one step outside `use` declarations.
fn paths(code: &str) -> BTreeSet<String> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let without_uses: String =
        code.lines().filter(|line| !line.trim_start().starts_with("use ")).collect::<Vec<_>>().join("\n");
    let words = without_uses.split(|letter| !is_word(letter)).map(|word| word.trim_matches(':'));
    words.filter(|word| word.contains("::")).map(str::to_owned).collect()
}

#[cfg(test)]
impl Files {
    /// The files of a crate in a test.
    pub fn of(list: &[(&str, &str)]) -> Self {
        let mut files = Self(BTreeMap::new());
        for (path, text) in list {
            let module = path.split("::").filter(|step| !step.is_empty()).map(str::to_owned).collect();
            files.insert(module, text);
        }
        files
    }
}
