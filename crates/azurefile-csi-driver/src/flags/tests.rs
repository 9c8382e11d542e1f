use command_line::EarlyExit;

use super::*;

fn read(words: &str) -> CommandLine {
    let words = std::iter::once("azurefileplugin").chain(words.split_whitespace());
    match parse(words.map(OsString::from)) {
        Ok(Start::Driver(line)) => *line,
        other => panic!("{other:?}"),
    }
}

/// FILE-140. Section 4.9: the arguments of the established charts, for controller and node.
#[test]
fn the_charts_arguments_are_read() {
    let controller = read(
        "-v=5 --endpoint=unix:///csi/csi.sock --metrics-address=0.0.0.0:29614 --kubeconfig= --drivername=file.csi.azure.com \
         --cloud-config-secret-name=azure-cloud-provider --cloud-config-secret-namespace=kube-system --custom-user-agent= \
         --user-agent-suffix=OSS-helm --allow-empty-cloud-config=false --enable-vhd=true",
    );
    assert_eq!(controller.problems(), []);
    assert!(!controller.is_node() && !controller.flags.allow_empty_cloud_config);
    assert!(
        controller.user_agent().starts_with("file.csi.azure.com/v")
            && controller.user_agent().ends_with(" OSS-helm")
    );

    let node = read(
        "-v=5 --endpoint=unix:///csi/csi.sock --nodeid=n1 --kubeconfig= --drivername=file.csi.azure.com --mount-permissions=0755 \
         --allow-inline-volume-key-access-with-identity=false --metrics-address=0.0.0.0:29615 --enable-kata-cc-mount=false \
         --enable-volume-mount-group=true --enable-get-volume-stats=true --enable-azurefile-proxy=true \
         --azurefile-proxy-endpoint=unix:///csi/azurefile-proxy.sock --use-aznfs-for-nfs-mounts=false \
         --inline-volume-secret-authz=enforce",
    );
    assert_eq!(node.problems(), []);
    let options = node.node();
    assert_eq!((options.node_id.as_str(), options.defaults.permissions), ("n1", 0o755));
    assert_eq!(options.inline_rights, InlineRights::Enforce);
}

/// FILE-140. Section 4.9: defaults of the binary.
#[test]
fn defaults_are_those_of_the_replaced_program() {
    let line = read("");
    assert_eq!(line.problems(), []);
    assert_eq!(line.node(), NodeOptions::default());
    let flags = &line.flags;
    assert_eq!(
        (flags.endpoint.as_str(), flags.azurefile_proxy_endpoint.as_str()),
        ("unix://tmp/csi.sock", "unix://tmp/azurefile-proxy.sock")
    );
    assert_eq!(
        (
            flags.skip_matching_tag_cache_expire_in_minutes,
            flags.sas_token_expiration_minutes,
            flags.wait_for_azcopy_timeout_minutes
        ),
        (30, 1440, 19)
    );
}

/// Flags of the established logger, and those for Windows, change nothing and are named with their reason.
#[test]
fn flags_without_effect_are_accepted() {
    let line = read(
        "--logtostderr=true --stderrthreshold=INFO --vmodule=a=1 --kube-api-qps=25 --kube-api-burst=50 --max-procs=2 --use-win-cim-api=true",
    );
    assert_eq!((line.problems().len(), line.without_effect.len()), (0, 5));
}

#[test]
fn permissions_are_read_as_go_reads_numbers() {
    for (text, mode) in [
        ("0777", Some(0o777)),
        ("511", Some(0o777)),
        ("0x1ff", Some(0o777)),
        ("0", Some(0)),
        ("0o755", Some(0o755)),
        ("0999", None),
        ("99999", None),
        ("", None),
    ] {
        assert_eq!(text.parse::<Permissions>().ok().map(|read| read.0), mode, "{text}");
    }
}

#[test]
fn a_wrong_command_line_is_refused_with_all_its_problems() {
    let problems = read(
        "--endpoint=ftp://x --metrics-address=here --fsgroup-change-policy=always --inline-volume-secret-authz=maybe --mount-permissions=0999 \
         --nodid=n --enable-azurefile-proxy --azurefile-proxy-endpoint=x",
    )
    .problems();
    let text: Vec<String> = problems.iter().map(ToString::to_string).collect();
    for part in [
        "--endpoint=ftp://x",
        "--metrics-address=here",
        "expected None, Always",
        "expected off, warn",
        "0777",
        "did you mean --nodeid?",
        "--azurefile-proxy-endpoint=x",
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
