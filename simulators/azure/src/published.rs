//! Holds what our programs send and are shown against the contract that Azure publishes, if the environment names one.
//! Violations are refused, so that the test in which they happen fails.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use azure_contract::{Contract, Side};
use serde_json::Value;

use azure_engine::answer::Answer;
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::request::body::Body;
use azure_engine::request::target::{Scope, Target};
use azure_engine::verbs::dispatch::Located;

/// The environment variable that names the folder of the contract. Cargo sets it for runs in this checkout.
const FOLDER: &str = "CERULEAN_AZURE_CONTRACT";

/// Prefixes of the user agents of our programs: their requests are checked. Others, such as hostile ones, may send
/// anything.
const PROGRAMS: [&str; 2] = ["kubernetes-cloudprovider/", "cluster-api-provider-azure/"];

const REQUEST: Code = Code::ours(400, "ContractViolated");
const ANSWER: Code = Code::ours(500, "ContractViolated");

/// Read once a process. A folder that is not there is no contract; the log says why one cannot be read.
static CONTRACT: LazyLock<Option<Contract>> = LazyLock::new(|| {
    let folder = std::env::var_os(FOLDER)?;
    let folder = Path::new(&folder);
    if !folder.is_dir() {
        return None;
    }
    Contract::read(folder).inspect_err(|error| tracing::error!("{error}")).ok()
});

/// The resources, in lower case, that other clients than our programs have written against the contract, or in a way about
/// which it says nothing: what they sent is shown again.
pub(crate) type DeviatingResources = BTreeSet<String>;

/// A request as far as the contract says something about it.
#[derive(Clone, Copy)]
pub(crate) struct ContractSubject<'a> {
    pub(crate) method: &'a str,
    pub(crate) version: &'a str,
    pub(crate) user_agent: Option<&'a str>,
    pub(crate) located: &'a Located,
}

impl ContractSubject<'_> {
    /// The type of the resources that it is about; nothing for operations, actions and parts of a resource.
    fn resource_type(&self) -> Option<&str> {
        let Located { target, resolved, resource_type, .. } = self.located;
        let group = matches!(target, Target::Within(_, Scope::Group(_)));
        let whole = resolved.as_ref().is_some_and(|resolved| resolved.below.is_empty());
        (self.method != "POST" && (group || whole)).then_some(&**resource_type)
    }

    /// Whether one of our programs sent it.
    fn is_ours(&self) -> bool {
        let ours = |agent: &str| PROGRAMS.iter().any(|program| agent.starts_with(program));
        self.user_agent.is_some_and(ours)
    }

    /// Holds what one of our programs sends against the contract: the type has to be in it, in the version that is asked
    /// for or in a later one, and so has every member of the document.
    ///
    /// # Errors
    ///
    /// The violations.
    pub(crate) fn check(&self, body: &Body) -> Result<()> {
        let (Some(contract), Some(resource_type)) = (&*CONTRACT, self.resource_type()) else { return Ok(()) };
        if !self.is_ours() {
            return Ok(());
        }
        // Users of raw resources choose older versions, which are judged by the next one at hand.
        if contract.versions(resource_type).last().is_none_or(|newest| self.version > *newest) {
            return Err(refusal(REQUEST, self, "request", &["is not in the contract".to_owned()]));
        }
        let side = match self.method {
            "PUT" => Side::Request,
            "PATCH" => Side::Patch,
            _ => return Ok(()),
        };
        let Some(document) = body.readable() else { return Ok(()) };
        self.judge(contract, resource_type, side, document)
            .map_err(|violations| refusal(REQUEST, self, "request", &violations))
    }

    /// Holds the answer to a client against the contract; resources that others have written against it, and versions
    /// that it lacks, only for our programs.
    ///
    /// # Errors
    ///
    /// The violations.
    pub(crate) fn check_answer(
        &self,
        body: &Body,
        answer: &Answer,
        deviating: &mut DeviatingResources,
    ) -> Result<()> {
        if self.method == "POST" && !self.is_ours() && body.readable().is_some() {
            // An action writes parts of its resource; the contract lacks the documents of actions.
            deviating.extend(self.located.resolved.as_ref().map(|one| one.id.to_lower()));
        }
        let (Some(contract), Some(resource_type)) = (&*CONTRACT, self.resource_type()) else { return Ok(()) };
        if !matches!(self.method, "GET" | "PUT" | "PATCH") {
            return Ok(());
        }
        let is_published = contract.versions(resource_type).contains(&self.version);
        // A version that the contract lacks says nothing about what was sent.
        if !self.is_ours() && (!is_published || self.violates(contract, resource_type, body)) {
            deviating.extend(self.written().map(|id| id.to_ascii_lowercase()));
        }
        if !self.is_ours() && !is_published {
            return Ok(());
        }
        // What was sent of a resource is shown by its parent, too, and by its own parts.
        let is_deviating = |document: &Value| {
            let id = document["id"].as_str().unwrap_or_default().to_ascii_lowercase();
            let is_child = |deviating: &String| {
                let below = deviating.strip_prefix(&id).and_then(|below| below.strip_prefix('/'));
                below.is_some_and(|below| below.split('/').count() == 2)
            };
            deviating.iter().any(|deviating| id.starts_with(deviating) || is_child(deviating))
        };
        let mut violations = Vec::new();
        let documents = answer.list.as_ref().map(azure_engine::answer::Listed::documents).unwrap_or_default();
        for document in answer.body.iter().chain(&documents) {
            if !self.is_ours() && is_deviating(document) {
                continue;
            }
            violations.extend(
                self.judge(contract, resource_type, Side::Answer, document).err().unwrap_or_default(),
            );
        }
        violations.sort();
        violations.dedup();
        if violations.is_empty() { Ok(()) } else { Err(refusal(ANSWER, self, "answer", &violations)) }
    }

    /// The resource whose document the request states; `None` for reads.
    fn written(&self) -> Option<String> {
        matches!(self.method, "PUT" | "PATCH").then(|| self.located.resource())?
    }

    /// Whether what is sent violates the contract, by its name or its document.
    fn violates(&self, contract: &Contract, resource_type: &str, body: &Body) -> bool {
        let side = match self.method {
            "PUT" => Side::Request,
            "PATCH" => Side::Patch,
            _ => return false,
        };
        let is_bad = |side, document: &Value| self.judge(contract, resource_type, side, document).is_err();
        let name = self.written().and_then(|id| Some(id.rsplit_once('/')?.1.to_owned()));
        name.is_some_and(|name| is_bad(Side::Answer, &serde_json::json!({ "name": name })))
            || body.readable().is_some_and(|document| is_bad(side, document))
    }

    fn judge(
        &self,
        contract: &Contract,
        resource_type: &str,
        side: Side,
        document: &Value,
    ) -> Result<(), Vec<String>> {
        let judgement = contract.judge(resource_type, self.version, side, document);
        let violations = judgement.map(|judgement| judgement.violations).unwrap_or_default();
        if violations.is_empty() { Ok(()) } else { Err(violations.iter().map(ToString::to_string).collect()) }
    }
}

/// The refusal, which the log has, too: not every program shows what it was answered.
fn refusal(code: Code, subject: &ContractSubject<'_>, side: &str, violations: &[String]) -> Refusal {
    let ContractSubject { method, version, located, .. } = subject;
    let text = format!(
        "Azure's published contract is violated by the {side} of {method} {} in version {version}: {}.",
        located.resource_type,
        violations.join("; ")
    );
    tracing::error!("{text}");
    code.says(text)
}
