//! The names of workload clusters: two namespaces may contain clusters of the same name.

use std::fmt;

/// The name of a Cluster of the management cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ClusterName {
    /// The cluster of this name in the default namespace.
    pub fn in_default(name: &str) -> Self {
        Self { namespace: "default".to_owned(), name: name.to_owned() }
    }

    fn joined(&self, with: char) -> String {
        match self.namespace.as_str() {
            "" | "default" => self.name.clone(),
            namespace => format!("{namespace}{with}{}", self.name),
        }
    }

    /// The base name of its files.
    pub fn file(&self) -> String {
        self.joined('-')
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.joined('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_said_where_it_is_not_the_usual_one() {
        let usual = ClusterName::in_default("quay");
        assert_eq!((usual.to_string(), usual.file()), ("quay".to_owned(), "quay".to_owned()));
        let other = ClusterName { namespace: "team".to_owned(), ..usual };
        assert_eq!((other.to_string(), other.file()), ("team/quay".to_owned(), "team-quay".to_owned()));
    }
}
