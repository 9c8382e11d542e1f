use command_line::EarlyExit;

use super::*;

fn read(words: &str) -> CommandLine {
    let words = std::iter::once("azurediskplugin").chain(words.split_whitespace());
    match parse(words.map(OsString::from)) {
        Ok(Start::Driver(line)) => *line,
        other => panic!("{other:?}"),
    }
}

/// CSI-078. Section 3.20: the arguments of the established charts, for controller and node.
#[test]
fn the_charts_arguments_are_read() {
    let controller = read(
        "--v=5 --endpoint=unix:///csi/csi.sock --metrics-address=0.0.0.0:29604 --disable-avset-nodes=false --vm-type= \
         --drivername=disk.csi.azure.com --cloud-config-secret-name=azure-cloud-provider \
         --cloud-config-secret-namespace=kube-system --custom-user-agent= --user-agent-suffix=OSS-helm \
         --allow-empty-cloud-config=false --vmss-cache-ttl-seconds=-1 --enable-traffic-manager=false \
         --traffic-manager-port=7788 --enable-otel-tracing=false --check-disk-lun-collision=true",
    );
    assert_eq!(controller.problems(), []);
    assert!(!controller.is_node() && !controller.flags.allow_empty_cloud_config);
    assert_eq!(
        (controller.flags.verbosity, controller.metrics_address().unwrap().unwrap().port()),
        (5, 29604)
    );
    assert!(controller.user_agent().ends_with(" OSS-helm"), "{}", controller.user_agent());
    assert!(controller.user_agent().starts_with("disk.csi.azure.com/v"));

    let node = read(
        "--v=5 --endpoint=unix:///csi/csi.sock --nodeid=n1 --enable-perf-optimization=true --metrics-address=0.0.0.0:29605 \
         --volume-attach-limit=-1 --reserved-data-disk-slot-num=2 --get-node-info-from-labels=false --support-zone=true \
         --get-nodeid-from-imds=false --enable-otel-tracing=false --remove-not-ready-taint=true",
    );
    assert_eq!(node.problems(), []);
    assert!(node.is_node() && node.flags.enable_perf_optimization);
    assert_eq!((node.flags.volume_attach_limit, node.flags.reserved_data_disk_slot_num), (-1, 2));
}

/// Section 3.20: defaults of the binary. Without the flag for it, an attach waits for no time.
#[test]
fn defaults_are_those_of_the_replaced_program() {
    let line = read("");
    assert_eq!(line.problems(), []);
    assert_eq!(line.flags.endpoint, "unix://tmp/csi.sock");
    assert_eq!(line.flags.cloud_config_secret_name, "azure-cloud-provider");
    let options = line.controller();
    let of_type = ControllerOptions::default();
    assert_eq!(format!("{options:?}"), format!("{of_type:?}"));
    assert_eq!(
        read("--attach-detach-initial-delay-ms=500").controller().batch_window,
        Duration::from_millis(500)
    );
}

/// CSI-078. Go reads a flag with one dash, too, and a level in the next word.
#[test]
fn one_dash_is_as_good_as_two() {
    let line = read("-nodeid=n -support-zone=false -v=3 -drivername d");
    assert_eq!((line.problems(), line.flags.verbosity), (Vec::new(), 3));
    assert_eq!((line.flags.nodeid.as_str(), line.flags.drivername.as_str()), ("n", "d"));
    assert!(!line.flags.support_zone);
    assert_eq!(read("-v 4").flags.verbosity, 4);
}

#[test]
fn a_wrong_command_line_is_refused_with_all_its_problems() {
    let problems =
        read("--endpoint=ftp://x --metrics-address=here --enable-list-volumes=maybe --nodid=n").problems();
    let text: Vec<String> = problems.iter().map(ToString::to_string).collect();
    for part in [
        "--endpoint=ftp://x",
        "--metrics-address=here",
        "--enable-list-volumes=maybe",
        "did you mean --nodeid?",
    ] {
        assert!(text.iter().any(|line| line.contains(part)), "{part} is missing in {text:?}");
    }
}

#[test]
fn version_and_help_end_the_program() {
    let words = |words: &'static [&'static str]| words.iter().map(OsString::from);
    let version = parse(words(&["p", "-version", "--drivername=d"])).unwrap();
    assert_eq!(version, Start::PrintVersion { driver: "d".to_owned() });
    assert!(matches!(parse(words(&["p", "--help"])), Err(EarlyExit::Print(_))));
}
