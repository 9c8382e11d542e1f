//! Pools of one cluster with the same scale set: names of sets with Windows are short, and those of two pools may be
//! equal. The tag that proves a set to be the cluster's does not name the pool.

use super::scope::scale_set_name;

/// The claim of a pool. Of two pools that claim the same set, it belongs to the one that has created it, otherwise to
/// the older one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The name of the AzureMachinePool.
    pub name: &'a str,
    /// The operating system of its machines.
    pub os_type: Option<&'a str>,
    /// Whether it records its set by a provider ID.
    pub made: bool,
    /// Its creation time: seconds since 1970.
    pub created: i64,
}

/// The other pool of the cluster that owns this one's scale set; `None` if the pool owns it itself.
pub fn rival<'a>(own: Claim<'_>, others: impl IntoIterator<Item = Claim<'a>>) -> Option<&'a str> {
    let name = scale_set_name(own.name, own.os_type);
    let rank = |claim: &Claim<'_>| (!claim.made, claim.created, claim.name.to_owned());
    others
        .into_iter()
        .filter(|other| other.name != own.name)
        .filter(|other| scale_set_name(other.name, other.os_type).eq_ignore_ascii_case(&name))
        .filter(|other| rank(other) < rank(&own))
        .min_by_key(rank)
        .map(|other| other.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS: Option<&str> = Some("Windows");
    const LINUX: Option<&str> = Some("Linux");

    fn claim<'a>(name: &'a str, os_type: Option<&'static str>, made: bool, created: i64) -> Claim<'a> {
        Claim { name, os_type, made, created }
    }

    #[test]
    fn a_set_belongs_to_one_pool() {
        let own = claim("gpu-win-pool", WINDOWS, false, 2);
        for (other, expected) in [
            (claim("windows-pool", WINDOWS, false, 1), Some("windows-pool")),
            (claim("windows-pool", WINDOWS, false, 3), None),
            (claim("windows-pool", WINDOWS, true, 3), Some("windows-pool")),
            (claim("windows-pool", WINDOWS, false, 2), None),
            (claim("a-windows-pool", WINDOWS, false, 2), Some("a-windows-pool")),
            (claim("windows-pools", WINDOWS, false, 1), None),
            (claim("windows-pool", LINUX, false, 1), None),
            (claim("win--pool", LINUX, false, 1), Some("win--pool")),
            (claim("gpu-win-pool", WINDOWS, true, 1), None),
        ] {
            assert_eq!(rival(own, [other]), expected, "{other:?}");
        }
    }

    /// Of any two pools with one set exactly one owns it.
    #[test]
    fn just_one_pool_has_a_set() {
        let pools: Vec<Claim<'_>> = ["windows-pool", "gpu-win-pool", "win--pool"]
            .into_iter()
            .flat_map(|name| {
                [(false, 1), (false, 2), (true, 1), (true, 2)]
                    .map(|(made, at)| claim(name, WINDOWS, made, at))
            })
            .collect();
        for one in &pools {
            for other in pools.iter().filter(|other| other.name != one.name) {
                assert_ne!(
                    rival(*one, [*other]).is_some(),
                    rival(*other, [*one]).is_some(),
                    "{one:?} {other:?}"
                );
            }
        }
    }
}
