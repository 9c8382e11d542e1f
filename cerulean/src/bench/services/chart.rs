//! An SVG chart of the number of Services with an address over time.
//!
//! Its colours are of medium brightness and its background is transparent, so that it is readable on white and on
//! black. Browsers and GitHub display it without scripts or fonts of its own.

use std::fmt::Write as _;

use super::report::{Report, Row, seconds_in_words};

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 416.0;
/// The plot's edges.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 796.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 318.0;
/// Words and axes.
const GREY: &str = "#7d8590";
/// One per program, in their order.
const COLOURS: [&str; 2] = ["#2f81f7", "#d9822b"];
/// The approximate number of labels on an axis.
const TICKS: f64 = 8.0;

/// Draws the chart of a report.
pub fn draw(report: &Report) -> String {
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.scenario == "services").collect();
    let last = rows.iter().filter_map(|row| row.served.last()).copied().fold(0.0, f64::max);
    let path = rows.first().and_then(|row| row.critical_path.as_ref()).map_or(0.0, |path| path.seconds);
    let seconds = Axis { most: last.max(path).max(0.001) * 1.04, from: LEFT, to: RIGHT };
    let services = Axis { most: f64::from(report.services.max(1)), from: BOTTOM, to: TOP };

    let title = format!(
        "{} Services at once: how many have an address (Azure’s latencies: {})",
        report.services, report.latency
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         role=\"img\" font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\" font-size=\"13\" \
         fill=\"{GREY}\">\n<title>{}</title>\n",
        escaped(&title)
    );
    text(&mut svg, LEFT, 24.0, "start", "font-size=\"16\" font-weight=\"600\"", &title);
    for tick in services.ticks(true) {
        let y = services.place(tick);
        line(&mut svg, (LEFT, y), (RIGHT, y), "stroke-opacity=\"0.25\"");
        text(&mut svg, LEFT - 8.0, y + 4.5, "end", "", &number(tick));
    }
    for tick in seconds.ticks(false) {
        let x = seconds.place(tick);
        line(&mut svg, (x, BOTTOM), (x, BOTTOM + 5.0), "");
        text(&mut svg, x, BOTTOM + 20.0, "middle", "", &number(tick));
    }
    line(&mut svg, (LEFT, BOTTOM), (RIGHT, BOTTOM), "");
    text(
        &mut svg,
        f64::midpoint(LEFT, RIGHT),
        BOTTOM + 40.0,
        "middle",
        "",
        "seconds since they were created",
    );
    let middle = f64::midpoint(TOP, BOTTOM);
    let turned = format!("transform=\"rotate(-90 20 {middle:.1})\"");
    text(&mut svg, 20.0, middle, "middle", &turned, "Services with an address");

    if path > 0.0 {
        let x = seconds.place(path);
        line(&mut svg, (x, TOP), (x, BOTTOM), "stroke-dasharray=\"5 4\"");
        let (at, anchor) = if x > f64::midpoint(LEFT, RIGHT) { (x - 6.0, "end") } else { (x + 6.0, "start") };
        let words = format!("critical path of Azure: {}", seconds_in_words(path));
        text(&mut svg, at, BOTTOM - 8.0, anchor, "", &words);
    }
    for (index, row) in rows.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let _ = writeln!(
            svg,
            "<path d=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\" stroke-linejoin=\"round\"/>",
            steps(&row.served, &seconds, &services)
        );
        let x = LEFT + 360.0 * index as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"42\" width=\"22\" height=\"4\" rx=\"2\" fill=\"{colour}\"/>"
        );
        text(&mut svg, x + 30.0, 49.0, "start", "", &legend(row));
    }
    for (y, words) in [(HEIGHT - 26.0, &report.command), (HEIGHT - 10.0, &report.machine.describe())] {
        text(&mut svg, LEFT, y, "start", "font-size=\"11\"", words);
    }
    svg.push_str("</svg>\n");
    svg
}

fn legend(row: &Row) -> String {
    let last = row.served.last().copied().unwrap_or_default();
    format!(
        "{}: all after {}, {} calls, {} writes",
        row.program,
        seconds_in_words(last),
        row.calls.all,
        row.calls.writes
    )
}

/// An axis from 0 to the maximum, along the picture.
struct Axis {
    most: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn place(&self, value: f64) -> f64 {
        self.from + (self.to - self.from) * (value / self.most)
    }

    /// Round numbers along it: steps of 1, 2 or 5 times a power of ten.
    fn ticks(&self, whole: bool) -> Vec<f64> {
        let rough = self.most / TICKS;
        let power = 10.0_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|step| *step >= rough);
        let step = step.unwrap_or(rough).max(if whole { 1.0 } else { 0.0 });
        let count = (self.most / step + 1e-9).floor() as u32;
        (0..=count).map(|at| f64::from(at) * step).collect()
    }
}

/// A step curve: each Service is a step up at its time.
fn steps(served: &[f64], seconds: &Axis, services: &Axis) -> String {
    let mut path = format!("M{:.1} {:.1}", seconds.place(0.0), services.place(0.0));
    for (index, time) in served.iter().enumerate() {
        let _ = write!(path, "H{:.1}V{:.1}", seconds.place(*time), services.place((index + 1) as f64));
    }
    let _ = write!(path, "H{:.1}", seconds.to);
    path
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), more: &str) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{GREY}\" {more}/>"
    );
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, more: &str, words: &str) {
    let words = escaped(words);
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {more}>{words}</text>");
}

/// A number of an axis, without trailing zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Escapes text for XML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            // XML cannot represent control characters.
            control if control.is_control() => {}
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::example;
    use super::*;

    #[test]
    fn names_are_escaped_and_every_program_has_its_stair() {
        let chart = draw(&example());
        assert!(chart.contains("2 cores, A &amp; &lt;B&gt;") && !chart.contains("<B>"), "{chart}");
        assert_eq!(chart.matches("<path ").count(), 2);
        assert!(chart.contains("ours: all after 1.500 s, 3 calls, 2 writes"), "{chart}");
        assert!(chart.contains("critical path of Azure: 1.000 s"));
        assert_eq!(escaped("\"it's\" \u{7}"), "&quot;it&apos;s&quot; ");
    }

    #[test]
    fn a_stair_goes_up_by_one_at_each_time() {
        let seconds = Axis { most: 10.0, from: 0.0, to: 100.0 };
        let services = Axis { most: 2.0, from: 20.0, to: 0.0 };
        let drawn = steps(&[4.0, 9.0], &seconds, &services);
        assert_eq!(drawn, "M0.0 20.0H40.0V10.0H90.0V0.0H100.0");
    }

    #[test]
    fn axes_have_round_numbers() {
        let ticks = |most, whole| Axis { most, from: 0.0, to: 1.0 }.ticks(whole);
        assert_eq!(ticks(20.0, true), [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(ticks(1.0, true), [0.0, 1.0]);
        assert_eq!(ticks(0.062, false).iter().map(|tick| number(*tick)).next_back().unwrap(), "0.06");
        assert_eq!(number(1_000.0), "1000");
    }
}
