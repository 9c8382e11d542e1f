//! Feature gates.

/// The state of the feature gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gates {
    /// `MachinePool`: the controllers of machine pools.
    pub machine_pool: bool,
    /// `AKSResourceHealth`: a condition of managed clusters that reports Azure Resource Health.
    pub aks_resource_health: bool,
    /// `EdgeZone`: clusters in zones at the edge of the network.
    pub edge_zone: bool,
    /// `ASOAPI`: the kinds that embed documents of Azure Service Operator.
    pub aso_api: bool,
    /// `APIServerILB`: an internal load balancer beside the public one of the API server.
    pub api_server_ilb: bool,
    /// `SkipMachinePoolModelReconciliation`: instances of a pool with an outdated model stay until the pool is scaled.
    pub skip_machine_pool_model_reconciliation: bool,
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            machine_pool: true,
            aks_resource_health: false,
            edge_zone: false,
            aso_api: true,
            api_server_ilb: false,
            skip_machine_pool_model_reconciliation: false,
        }
    }
}

/// A feature gate.
#[derive(Clone, Copy)]
pub struct Gate {
    /// Its name, as `--feature-gates` has it.
    pub name: &'static str,
    /// Its stage.
    pub stage: Stage,
    /// Its field; `None` if no code depends on it.
    place: Option<fn(&mut Gates) -> &mut bool>,
}

/// The stage of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Off by default.
    Alpha,
    /// On by default.
    Beta,
    /// On by default, and stable.
    Ga,
    /// Stable, and cannot be turned off.
    Locked,
}

/// The gates of this program.
const OWN: [Gate; 7] = [
    gate("MachinePool", Stage::Beta, |gates| &mut gates.machine_pool),
    Gate { name: "AKS", stage: Stage::Locked, place: None },
    gate("AKSResourceHealth", Stage::Alpha, |gates| &mut gates.aks_resource_health),
    gate("EdgeZone", Stage::Alpha, |gates| &mut gates.edge_zone),
    gate("ASOAPI", Stage::Ga, |gates| &mut gates.aso_api),
    gate("APIServerILB", Stage::Alpha, |gates| &mut gates.api_server_ilb),
    gate("SkipMachinePoolModelReconciliation", Stage::Alpha, |gates| {
        &mut gates.skip_machine_pool_model_reconciliation
    }),
];

const fn gate(name: &'static str, stage: Stage, place: fn(&mut Gates) -> &mut bool) -> Gate {
    Gate { name, stage, place: Some(place) }
}

/// Gates of Cluster API's own programs. Manifests that pass one list to all managers name them, too.
const OF_CLUSTER_API: [&str; 9] = [
    "ClusterTopology",
    "InPlaceUpdates",
    "KubeadmBootstrapFormatIgnition",
    "MachineSetPreflightChecks",
    "MachineTaintPropagation",
    "MachineWaitForVolumeDetachConsiderVolumeAttachments",
    "PriorityQueue",
    "ReconcilerRateLimiting",
    "RuntimeSDK",
];

/// Why `--feature-gates` is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// The gate does not exist.
    #[error("there is no feature gate {0:?}")]
    Unknown(String),
    /// The value is neither true nor false.
    #[error("the feature gate {gate} is {}", no_truth(gate, value))]
    NoTruth {
        /// The gate.
        gate: String,
        /// Its value; empty where there was no `=`.
        value: String,
    },
    /// The gate cannot be turned off.
    #[error("the feature gate {0} cannot be turned off any more")]
    Locked(&'static str),
}

fn no_truth(gate: &str, value: &str) -> String {
    match value {
        "" => format!("neither true nor false: write {gate}=true or {gate}=false"),
        _ => format!("{value:?}, which is neither true nor false"),
    }
}

impl Gates {
    /// All gates with a known name.
    pub fn known() -> impl Iterator<Item = Gate> {
        let of_cluster_api = OF_CLUSTER_API.map(|name| Gate { name, stage: Stage::Alpha, place: None });
        OWN.into_iter().chain(of_cluster_api)
    }

    /// The defaults, with the changes of a list such as `A=true,B=false`. `AllAlpha` and `AllBeta` change whole stages;
    /// a gate that is named itself takes precedence. `truth` parses a value.
    ///
    /// # Errors
    /// A gate is unknown, its value cannot be parsed, or it is locked and set to false.
    pub fn parse(text: &str, truth: impl Fn(&str) -> Option<bool>) -> Result<Self, GateError> {
        let mut wanted = Vec::new();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (name, value) = entry.split_once('=').unwrap_or((entry, ""));
            let (name, value) = (name.trim(), value.trim());
            let value = truth(value)
                .ok_or_else(|| GateError::NoTruth { gate: name.to_owned(), value: value.to_owned() })?;
            wanted.push((name, value));
        }
        let mut gates = Self::default();
        for (stage, all) in [(Stage::Alpha, "AllAlpha"), (Stage::Beta, "AllBeta")] {
            let Some((_, value)) = wanted.iter().rfind(|(name, _)| *name == all) else { continue };
            for place in OWN.iter().filter(|gate| gate.stage == stage).filter_map(|gate| gate.place) {
                *place(&mut gates) = *value;
            }
        }
        for (name, value) in wanted.into_iter().filter(|(name, _)| !matches!(*name, "AllAlpha" | "AllBeta")) {
            let gate = Self::known().find(|gate| gate.name == name);
            let gate = gate.ok_or_else(|| GateError::Unknown(name.to_owned()))?;
            if gate.stage == Stage::Locked && !value {
                return Err(GateError::Locked(gate.name));
            }
            if let Some(place) = gate.place {
                *place(&mut gates) = value;
            }
        }
        Ok(gates)
    }

    /// The gates that decide which members of objects may be used.
    pub fn of_admission(self) -> capz_api::Gates {
        capz_api::Gates {
            edge_zone: self.edge_zone,
            api_server_ilb: self.api_server_ilb,
            aso_api: self.aso_api,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Gates, GateError> {
        Gates::parse(text, |value| value.parse().ok())
    }

    #[test]
    fn gates_are_by_default_as_they_were() {
        let gates = parse("").unwrap();
        assert_eq!(gates, Gates::default());
        assert!(gates.machine_pool && gates.aso_api);
        assert_eq!(gates.of_admission(), capz_api::Gates::default());
    }

    #[test]
    fn each_gate_turns_what_it_names_and_nothing_else() {
        for gate in OWN.iter().filter(|gate| gate.stage != Stage::Locked) {
            let place = gate.place.unwrap();
            for value in [true, false] {
                let mut expected = Gates::default();
                *place(&mut expected) = value;
                assert_eq!(parse(&format!("{}={value}", gate.name)).unwrap(), expected, "{}", gate.name);
            }
        }
        let all = parse(" AllAlpha=true, EdgeZone=false,,AKS=true,ClusterTopology=true ").unwrap();
        assert!(all.api_server_ilb && all.aks_resource_health && !all.edge_zone && all.machine_pool);
        assert!(!parse("AllBeta=false").unwrap().machine_pool);
        assert!(parse("EdgeZone=true").unwrap().of_admission().edge_zone);
        assert!(!parse("ASOAPI=false").unwrap().of_admission().aso_api);
    }

    #[test]
    fn what_cannot_be_is_told_with_the_gate() {
        for (text, words) in [
            ("AKS=false", "AKS cannot be turned off"),
            ("EdgeZones=true", "no feature gate \"EdgeZones\""),
            ("EdgeZone", "write EdgeZone=true"),
            ("EdgeZone=on", "\"on\", which is neither"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
