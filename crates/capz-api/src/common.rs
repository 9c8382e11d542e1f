//! Types that several kinds share: references, conditions, endpoints, running operations.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::object::object;
use crate::text::keep;

/// Tags of Azure resources by key.
pub type Tags = BTreeMap<String, String>;

object! {
    /// An address at which an API server answers.
    ApiEndpoint {
        /// The host name or address.
        #[schemars(length(max = 512))]
        host: String,
        /// The port.
        port: i32,
    }

    /// A reference to another object.
    ObjectReference {
        /// The API version of the object.
        api_version: String,
        /// A member inside the object.
        field_path: String,
        /// The kind of the object.
        kind: String,
        /// The name of the object.
        name: String,
        /// The namespace of the object.
        namespace: String,
        /// The resource version of the object.
        resource_version: String,
        /// The UID of the object.
        uid: String,
    }

    /// A reference to a Secret.
    SecretReference {
        /// The name of the Secret.
        name: String,
        /// The namespace of the Secret.
        namespace: String,
    }

    /// A condition of an object.
    Condition {
        /// The time at which the status last changed.
        #[schemars(required, extend("format" = "date-time"))]
        last_transition_time: String,
        /// A human-readable message about the last change.
        #[schemars(length(min = 1, max = 10240))]
        message: String,
        /// Why the status last changed, in one word.
        #[schemars(length(min = 1, max = 256))]
        reason: String,
        /// The severity if the status is False: Error, Warning or Info.
        #[schemars(length(max = 32))]
        severity: String,
        /// True, False or Unknown.
        #[schemars(required)]
        status: String,
        /// The type of the condition.
        #[serde(rename = "type")]
        #[schemars(required, length(min = 1, max = 256))]
        condition: String,
    }

    /// What Cluster API's contract v1beta2 asks of every object, beside what v1beta1 asks.
    Initialization {
        /// Whether the API server of a control plane has answered. It never becomes false again.
        control_plane_initialized: bool,
        /// Whether the infrastructure has been provisioned. It never becomes false again.
        provisioned: bool,
    }

    /// The part of a status that has the form of Cluster API's contract v1beta2.
    V1Beta2Status {
        /// Conditions: Ready and Paused.
        #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
        conditions: Vec<MetaCondition>,
    }

    /// A condition in the form of Kubernetes' own.
    MetaCondition {
        /// The time at which the status last changed.
        #[schemars(required, extend("format" = "date-time"))]
        last_transition_time: String,
        /// A human-readable message about the last change.
        #[schemars(required, length(max = 32768))]
        message: String,
        /// The generation of the object that the condition is about.
        #[schemars(range(min = 0))]
        observed_generation: i64,
        /// Why the status last changed, in one word.
        #[schemars(required, length(min = 1, max = 1024))]
        reason: String,
        /// True, False or Unknown.
        #[schemars(required)]
        status: String,
        /// The type of the condition.
        #[serde(rename = "type")]
        #[schemars(required, length(min = 1, max = 316))]
        condition: String,
    }

    /// A long-running operation of Azure that had not ended at the last reconcile. The next reconcile resumes it.
    Future {
        /// The data for polling the operation, in URL-safe base64.
        #[schemars(required)]
        data: String,
        /// The name of the resource.
        #[schemars(required)]
        name: String,
        /// The resource group of the resource.
        resource_group: String,
        /// The kind of resource.
        #[schemars(required)]
        service_name: String,
        /// PUT, PATCH or DELETE.
        #[serde(rename = "type")]
        #[schemars(required)]
        operation: String,
    }

    /// A failure domain: an availability zone of the region.
    FailureDomain {
        /// Further facts about the failure domain.
        attributes: BTreeMap<String, String>,
        /// Whether control plane machines may be placed in it.
        control_plane: bool,
    }

    /// A zone at the edge of the network that belongs to a region.
    ExtendedLocation {
        /// The name of the zone.
        #[schemars(required)]
        name: String,
        /// The type of the zone.
        #[serde(rename = "type")]
        #[schemars(required, extend("enum" = ["EdgeZone"]))]
        kind: String,
    }

    /// A query over labels. All of its parts must hold.
    LabelSelector {
        /// Requirements on labels.
        #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
        match_expressions: Vec<LabelRequirement>,
        /// Labels that must have exactly these values.
        match_labels: BTreeMap<String, String>,
    }

    /// A requirement on one label.
    LabelRequirement {
        /// The key of the label.
        #[schemars(required)]
        key: String,
        /// In, NotIn, Exists or DoesNotExist.
        #[schemars(required)]
        operator: String,
        /// The values for In and NotIn.
        #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
        values: Vec<String>,
    }

    /// Labels and annotations of what is made from a template.
    TemplateMetadata {
        /// Annotations.
        annotations: BTreeMap<String, String>,
        /// Labels.
        labels: BTreeMap<String, String>,
    }
}

impl ApiEndpoint {
    /// Keeps the known values of members without one.
    pub(crate) fn keep(&mut self, known: &Self) {
        keep(&mut self.host, &known.host);
        if self.port.unwrap_or_default() == 0 {
            self.port = known.port;
        }
    }
}

/// A quantity as Kubernetes writes it: a number, or a text such as `500m` or `8Gi`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quantity(pub Value);

/// The suffixes of quantities, with their factors.
const SUFFIXES: [(&str, f64); 15] = [
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
];

impl Quantity {
    /// The value as a number: `40m` is 0.04, `1Ki` is 1024.
    pub fn as_f64(&self) -> Option<f64> {
        let text = match &self.0 {
            Value::Number(number) => return number.as_f64(),
            Value::String(text) => text.as_str(),
            _ => return None,
        };
        if !text.ends_with(|end: char| end.is_ascii_alphabetic()) {
            return text.parse().ok();
        }
        let scaled = |(suffix, scale): &(&str, f64)| {
            let number = text.strip_suffix(suffix)?;
            let is_plain = number.ends_with(|end: char| end.is_ascii_digit() || end == '.');
            Some(number.parse::<f64>().ok().filter(|_| is_plain)? * scale)
        };
        SUFFIXES.iter().find_map(scaled)
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
            "x-kubernetes-int-or-string": true
        })
    }
}

/// A number, or a text with a percentage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrPercent {
    /// A number.
    Number(i32),
    /// A percentage such as `20%`.
    Share(String),
}

impl IntOrPercent {
    /// The number for this `whole`, rounded up or down; `None` if the text is not a percentage.
    pub fn of(&self, whole: u32, round_up: bool) -> Option<u32> {
        match self {
            Self::Number(number) => u32::try_from(*number).ok(),
            Self::Share(text) => {
                let share: u64 = text.strip_suffix('%')?.parse().ok()?;
                let product = share.checked_mul(u64::from(whole))?;
                u32::try_from(if round_up { product.div_ceil(100) } else { product / 100 }).ok()
            }
        }
    }
}

impl JsonSchema for IntOrPercent {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IntOrPercent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "x-kubernetes-int-or-string": true
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{IntOrPercent, Quantity};

    #[test]
    fn quantities_are_numbers_with_or_without_a_suffix() {
        for (written, number) in [
            (json!(-1), Some(-1.0)),
            (json!(0.04), Some(0.04)),
            (json!("0.04"), Some(0.04)),
            (json!("40m"), Some(0.04)),
            (json!("40000u"), Some(0.04)),
            (json!("40000000n"), Some(0.04)),
            (json!("1.5k"), Some(1500.0)),
            (json!("1e3"), Some(1000.0)),
            (json!("2E"), Some(2e18)),
            (json!("1Ki"), Some(1024.0)),
            (json!("1Ei"), Some(1024_f64.powi(6))),
            (json!("m"), None),
            (json!("1 k"), None),
            (json!("1kk"), None),
            (json!("nan"), None),
            (json!("inf"), None),
            (json!(""), None),
            (json!(true), None),
        ] {
            let read = Quantity(written.clone()).as_f64();
            let agrees = match (read, number) {
                (Some(read), Some(number)) => (read - number).abs() <= number.abs() * 1e-12,
                (read, number) => read == number,
            };
            assert!(agrees, "{written}: {read:?} instead of {number:?}");
        }
    }

    /// CAPZ-136: percentages of replicas.
    #[test]
    fn shares_are_rounded_as_asked() {
        let share = |text: &str| IntOrPercent::Share(text.into());
        for (value, whole, round_up, expected) in [
            (IntOrPercent::Number(2), 20, true, Some(2)),
            (share("20%"), 20, true, Some(4)),
            (share("20%"), 21, true, Some(5)),
            (share("20%"), 21, false, Some(4)),
            (share("0%"), 21, true, Some(0)),
            (share("a fifth"), 21, true, None),
            (IntOrPercent::Number(-1), 21, true, None),
        ] {
            assert_eq!(value.of(whole, round_up), expected, "{value:?} of {whole}");
        }
    }
}
