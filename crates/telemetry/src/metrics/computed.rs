//! Families whose values are computed on each scrape, because they change while nothing happens.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;

/// The labels of a series, and its value.
pub(super) type Series = (Vec<(&'static str, String)>, f64);

/// A family at the time of a scrape. It is left out if it has no series.
pub(super) struct ComputedFamily {
    /// The name; that of a counter without `_total`.
    pub name: &'static str,
    /// What it counts, without a period.
    pub help: &'static str,
    /// Whether it only grows.
    pub is_counter: bool,
    /// Its series.
    pub series: Vec<Series>,
}

impl ComputedFamily {
    /// A gauge.
    pub(super) fn gauge(name: &'static str, help: &'static str, series: Vec<Series>) -> Self {
        Self { name, help, is_counter: false, series }
    }

    /// A counter.
    pub(super) fn counter(name: &'static str, help: &'static str, series: Vec<Series>) -> Self {
        Self { name, help, is_counter: true, series }
    }

    fn encode_value(&self, encoder: &mut MetricEncoder<'_>, value: f64) -> fmt::Result {
        match self.is_counter {
            true => encoder.encode_counter(&value, None::<&Exemplar<NoLabelSet, f64>>),
            false => encoder.encode_gauge(&value),
        }
    }
}

/// Computes families.
pub(super) struct Computed(pub Box<dyn Fn() -> Vec<ComputedFamily> + Send + Sync>);

impl fmt::Debug for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Computed")
    }
}

impl Collector for Computed {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in (self.0)() {
            if family.series.is_empty() {
                continue;
            }
            let kind = if family.is_counter { MetricType::Counter } else { MetricType::Gauge };
            // A registered metric's text gets its period from the registry.
            let help = format!("{}.", family.help);
            let mut metric = encoder.encode_descriptor(family.name, &help, None, kind)?;
            for (labels, value) in &family.series {
                match labels.as_slice() {
                    [] => family.encode_value(&mut metric, *value)?,
                    labels => family.encode_value(&mut metric.encode_family(&labels)?, *value)?,
                }
            }
        }
        Ok(())
    }
}
