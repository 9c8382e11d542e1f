//! Whether an object owns a resource, and the proof.

use std::fmt;

use serde::Serialize;

use crate::evidence::Evidence;
use crate::owner::Owner;

/// Proof that a resource, or one part of it, belongs to an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proof {
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<String>,
    owner: Owner,
    evidence: Vec<Evidence>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shared_with: Vec<String>,
}

impl Proof {
    /// A proof by one fact.
    pub fn new(owner: Owner, evidence: Evidence) -> Self {
        Self { part: None, owner, evidence: vec![evidence], shared_with: Vec::new() }
    }

    /// The same proof with one more fact.
    #[must_use]
    pub fn and(mut self, evidence: Evidence) -> Self {
        self.evidence.push(evidence);
        self
    }

    /// The same proof for a resource with other users; it is not deleted while it has any.
    #[must_use]
    pub fn shared_with(mut self, others: impl IntoIterator<Item = String>) -> Self {
        self.shared_with.extend(others);
        self
    }

    /// The same proof for one part of a shared resource, such as `frontend web`.
    #[must_use]
    pub fn of_part(mut self, part: impl Into<String>) -> Self {
        self.part = Some(part.into());
        self
    }

    /// The part of the resource; `None` for the whole resource.
    pub fn part(&self) -> Option<&str> {
        self.part.as_deref()
    }

    /// The owner.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The facts, at least one; all of them hold.
    pub fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }

    /// Other users of the resource, as Azure's tags or references name them.
    pub fn other_users(&self) -> &[String] {
        &self.shared_with
    }
}

impl fmt::Display for Proof {
    /// `Service shop/web of cluster demo (tag k8s-azure-service=shop/web; name … is made of …)`; of a part with the part
    /// and a colon before.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts: Vec<String> = self.evidence.iter().map(ToString::to_string).collect();
        if let Some(part) = &self.part {
            write!(f, "{part}: ")?;
        }
        write!(f, "{} ({})", self.owner, facts.join("; "))?;
        if !self.shared_with.is_empty() {
            write!(f, ", shared with {}", self.shared_with.join(", "))?;
        }
        Ok(())
    }
}

/// Another owner of a resource that an object claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rival {
    /// The other owner, such as `AzureCluster team-a/prod`, `cluster blue`.
    pub owner: String,
    /// The fact that shows it.
    pub evidence: Evidence,
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.owner, self.evidence)
    }
}

/// Whether an object owns a resource that exists in Azure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// It owns the resource, which may be written over, emptied and deleted on its behalf.
    Proven(Proof),
    /// Another owner's claim is proven, or takes precedence. The resource is left alone, and the object is refused.
    Disputed(Rival),
    /// There is no fact that shows it; the text names the missing one. The resource is left as it is.
    Unproven(String),
    /// The resource could not be read. Nothing happens until it can.
    Unknown,
}

impl Ownership {
    /// The proof, if there is one.
    pub fn proof(&self) -> Option<&Proof> {
        match self {
            Self::Proven(proof) => Some(proof),
            Self::Disputed(_) | Self::Unproven(_) | Self::Unknown => None,
        }
    }

    /// Whether it is proven.
    pub fn is_proven(&self) -> bool {
        self.proof().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web() -> Owner {
        Owner { kind: "Service", namespace: "shop".into(), name: "web".into(), cluster: "demo".into() }
    }

    #[test]
    fn a_proof_reads_as_a_sentence_with_its_facts() {
        let tag = Evidence::Tag { key: "k8s-azure-service".into(), value: "shop/web".into() };
        let name = Evidence::Name { name: "demo-a1".into(), rule: "the UID of the Service" };
        let proof = Proof::new(web(), tag).and(name).shared_with(["shop/api".to_owned()]);
        assert_eq!(
            proof.to_string(),
            "Service shop/web of cluster demo (tag k8s-azure-service=shop/web; name demo-a1 is made of the UID of the \
             Service), shared with shop/api"
        );
        assert_eq!(proof.evidence().len(), 2);
        let part = Proof::new(web(), Evidence::Within { resource: "/pool".into() }).of_part("rule a1");
        assert_eq!(part.to_string(), "rule a1: Service shop/web of cluster demo (lies in /pool)");
        assert_eq!(proof.other_users(), ["shop/api"]);
    }

    #[test]
    fn only_a_proof_is_proven() {
        let evidence = Evidence::Tag { key: "k8s-azure-cluster-name".into(), value: "blue".into() };
        let rival = Rival { owner: "cluster blue".into(), evidence: evidence.clone() };
        assert_eq!(rival.to_string(), "cluster blue (tag k8s-azure-cluster-name=blue)");
        for (ownership, expected) in [
            (Ownership::Proven(Proof::new(web(), evidence)), true),
            (Ownership::Disputed(rival), false),
            (Ownership::Unproven("it has no tag".into()), false),
            (Ownership::Unknown, false),
        ] {
            assert_eq!(ownership.is_proven(), expected, "{ownership:?}");
        }
    }
}
