//! All queries of the dashboards and of the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use serde_json::Value;

use super::expression;

/// The window of rates where Grafana would choose one.
const WINDOW: &str = "$__rate_interval";

/// The jobs of our programs.
pub const JOBS: [&str; 2] = ["azure-cloud-controller-manager", "capz-controller-manager"];

/// A query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Where it stands: dashboard and panel, or rule.
    pub place: String,
    /// The expression, with its variables.
    pub expression: String,
    /// Why it may return nothing.
    pub rare: Option<String>,
}

/// The descriptions in `deploy/monitoring`.
#[derive(Debug)]
pub struct Monitoring {
    /// The dashboards' description.
    pub dashboards: Vec<Value>,
    /// The rules' groups.
    pub groups: Vec<Value>,
    /// Series that exist only once something has happened, with the reason.
    pub rare: BTreeMap<String, String>,
}

/// A member that is a text.
pub fn text<'a>(value: &'a Value, member: &str) -> anyhow::Result<&'a str> {
    value[member].as_str().ok_or_else(|| anyhow!("{member} is missing in {value}"))
}

/// A member that is a list; empty if it is missing.
pub fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value[member].as_array().map(Vec::as_slice).unwrap_or_default()
}

impl Monitoring {
    /// Reads the descriptions below a folder.
    ///
    /// # Errors
    /// A file cannot be read or parsed.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let parse = |name: &str| -> anyhow::Result<Value> {
            let path = folder.join(name);
            let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            serde_saphyr::from_str(&text).with_context(|| path.display().to_string())
        };
        let dashboards = parse("parts/dashboards.yaml")?;
        let rare = dashboards["rare"].as_object().into_iter().flatten();
        let rare = rare.map(|(name, why)| (name.clone(), why.as_str().unwrap_or_default().to_owned()));
        Ok(Self {
            rare: rare.collect(),
            groups: list(&parse("rules.yaml")?, "groups").to_vec(),
            dashboards: list(&dashboards, "dashboards").to_vec(),
        })
    }

    /// The rules of all groups.
    pub fn rules(&self) -> impl Iterator<Item = &Value> {
        self.groups.iter().flat_map(|group| list(group, "rules"))
    }

    /// The series that rules record.
    pub fn recorded(&self) -> BTreeSet<String> {
        self.rules().filter_map(|rule| rule["record"].as_str()).map(str::to_owned).collect()
    }

    /// All queries: those of panels, the expressions of rules, and for each series in an alert the question whether it
    /// is there, since an alert's own expression returns nothing while all is well.
    ///
    /// # Errors
    /// A description lacks a member.
    pub fn queries(&self) -> anyhow::Result<Vec<Query>> {
        self.queries_for(|_job| true)
    }

    /// All queries that need no other targets than those of these jobs, by the selectors of `job`.
    ///
    /// # Errors
    /// A description lacks a member.
    pub fn queries_of(&self, jobs: &[&str]) -> anyhow::Result<Vec<Query>> {
        self.queries_for(|job| jobs.contains(&job))
    }

    fn queries_for(&self, is_scraped: impl Fn(&str) -> bool) -> anyhow::Result<Vec<Query>> {
        let mut queries = Vec::new();
        for dashboard in &self.dashboards {
            if !is_scraped(text(dashboard, "job")?) {
                continue;
            }
            for panel in list(dashboard, "rows").iter().flat_map(|row| list(row, "panels")) {
                for query in list(panel, "queries") {
                    let place = format!("{}: {}", text(dashboard, "title")?, text(panel, "title")?);
                    let expression = resolved(text(query, "expr")?, dashboard)?;
                    queries.push(self.query(place, expression));
                }
            }
        }
        for rule in self.rules() {
            let expression = text(rule, "expr")?;
            let jobs: Vec<&str> =
                JOBS.into_iter().filter(|job| expression.contains(&format!("job=\"{job}\""))).collect();
            if !jobs.is_empty() && !jobs.into_iter().any(&is_scraped) {
                continue;
            }
            if let Some(alert) = rule["alert"].as_str() {
                let well = Some("the alert does not fire".to_owned());
                queries.push(Query {
                    place: alert.to_owned(),
                    expression: expression.to_owned(),
                    rare: well,
                });
                for series in expression::named(expression).metrics {
                    let place = format!("{alert}: {series}");
                    queries.push(self.query(place, format!("count({series})")));
                }
            } else {
                queries.push(self.query(text(rule, "record")?.to_owned(), expression.to_owned()));
            }
        }
        Ok(queries)
    }

    /// What queries name that the page of metrics does not have.
    ///
    /// # Errors
    /// A description lacks a member.
    pub fn problems(&self, page: &str) -> anyhow::Result<Vec<String>> {
        let (table, recorded) = (expression::table(page), self.recorded());
        let of = |query: &Query| {
            let found = expression::problems(&query.expression, &table, &recorded).into_iter();
            found.map(|problem| format!("{}: {problem}", query.place)).collect::<Vec<_>>()
        };
        Ok(self.queries()?.iter().flat_map(of).collect())
    }

    fn query(&self, place: String, expression: String) -> Query {
        let metrics = expression::named(&expression).metrics;
        let rare = metrics.iter().find_map(|metric| self.rare.get(metric)).cloned();
        Query { place, expression, rare }
    }
}

/// An expression with the dashboard's job.
///
/// # Errors
/// The dashboard names no job.
pub fn resolved(expression: &str, dashboard: &Value) -> anyhow::Result<String> {
    Ok(expression.replace("$job", text(dashboard, "job")?))
}

/// An expression that Prometheus understands without Grafana.
pub fn without_variables(expression: &str, window: &str) -> String {
    expression.replace(WINDOW, window)
}
