//! A tree of a cluster's parts, as text.

use azure_simulator::view::{ClusterPart, Stand};

/// The tree as lines.
pub fn draw(lines: &[ClusterPart], paint: impl Fn(Stand, &str) -> String) -> Vec<String> {
    let width = lines.iter().map(|line| 3 * line.depth + line.name.chars().count()).max().unwrap_or_default();
    let drawn = lines.iter().enumerate().map(|(index, line)| {
        // Whether another part follows under the same parent, at this depth.
        let goes_on = |depth: usize| {
            let mut after = lines.iter().skip(index + 1).take_while(|later| later.depth >= depth);
            after.any(|later| later.depth == depth)
        };
        let mut stem = String::new();
        for depth in 1..line.depth {
            stem += if goes_on(depth) { "│  " } else { "   " };
        }
        if line.depth > 0 {
            stem += if goes_on(line.depth) { "├─ " } else { "└─ " };
        }
        let mark = match line.stand {
            Stand::Waits => "·",
            Stand::Works => "…",
            Stand::Done => "✓",
        };
        let name = format!("{stem}{}", line.name);
        let zone = line.zone.as_ref().map(|zone| format!("zone {zone}: ")).unwrap_or_default();
        format!("{name:width$}  {} {zone}{}", paint(line.stand, mark), line.words)
    });
    drawn.map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stems_lead_to_what_is_below() {
        let part = |depth, name: &str, stand, zone: Option<&str>| ClusterPart {
            depth,
            name: name.to_owned(),
            stand,
            words: "so".to_owned(),
            zone: zone.map(str::to_owned),
        };
        let tree = [
            part(0, "cluster", Stand::Works, None),
            part(1, "network", Stand::Done, None),
            part(2, "group", Stand::Done, None),
            part(2, "subnets", Stand::Works, None),
            part(1, "workers", Stand::Waits, None),
            part(2, "a", Stand::Waits, Some("1")),
        ];
        assert_eq!(
            draw(&tree, |_, mark| mark.to_owned()).join("\n"),
            "\
cluster        … so
├─ network     ✓ so
│  ├─ group    ✓ so
│  └─ subnets  … so
└─ workers     · so
   └─ a        · zone 1: so"
        );
    }
}
