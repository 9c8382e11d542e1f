//! Clouds by name, by their metadata and by an environment file.

use std::time::Duration;

use crate::scripted_azure::{azure, reply};
use arm::{Cloud, Transport};
use cloud_config::CloudConfig;
use serde_json::{Value, json};
use tokio::time::Instant;

fn two_clouds() -> Value {
    json!([
        {"name": "A", "portal": "x", "resourceManager": "https://arm.a.example/",
         "authentication": {"audiences": ["https://aud.a/", "other"], "loginEndpoint": "https://login.a/"},
         "suffixes": {"acrLoginServer": "cr.a", "storage": "st.a"}},
        {"name": "B", "authentication": {"audiences": ["https://aud.b/"]}},
    ])
}

fn config(cloud: &str) -> CloudConfig {
    CloudConfig::parse(&format!("cloud: '{cloud}'\nresourceManagerEndpoint: https://my.example:8443/\n"))
        .unwrap()
}

async fn resolve(cloud: &str, transport: &Transport) -> (Cloud, Vec<String>) {
    Cloud::resolve(&config(cloud), transport).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn built_in_clouds_ask_nobody() {
    let (transport, journal) = azure(|_, _| reply(500, Value::Null));
    for (name, manager, scope, authority) in [
        (
            "",
            "https://management.azure.com/",
            "https://management.core.windows.net//.default",
            "https://login.microsoftonline.com/",
        ),
        (
            "AzureChinaCloud",
            "https://management.chinacloudapi.cn/",
            "https://management.core.chinacloudapi.cn//.default",
            "https://login.chinacloudapi.cn/",
        ),
        (
            "azureusgovernment",
            "https://management.usgovcloudapi.net/",
            "https://management.core.usgovcloudapi.net//.default",
            "https://login.microsoftonline.us/",
        ),
    ] {
        let config = CloudConfig::parse(&format!("cloud: '{name}'")).unwrap();
        let (cloud, warnings) = Cloud::resolve(&config, &transport).await.unwrap();
        assert_eq!(cloud.resource_manager.as_str(), manager);
        assert_eq!(cloud.scope(), scope);
        assert_eq!(cloud.authority.as_str(), authority);
        assert!(warnings.is_empty());
    }
    assert_eq!(journal.lock().len(), 0);
}

/// NODE-154.
#[tokio::test(start_paused = true)]
async fn node_154_the_description_overrides_the_built_in_cloud() {
    let (transport, journal) = azure(|_, _| reply(200, two_clouds()));
    let (b, warnings) = resolve("b", &transport).await;
    assert_eq!(b.resource_manager.as_str(), "https://my.example:8443/", "the configured endpoint is kept");
    assert_eq!(b.audience, "https://aud.b/");
    assert_eq!(b.authority.as_str(), "https://login.microsoftonline.com/");
    assert_eq!(b.container_registry_suffix, "azurecr.io");
    assert!(warnings.is_empty());

    let (first, _) = resolve("", &transport).await;
    assert_eq!(first.resource_manager.as_str(), "https://arm.a.example/");
    assert_eq!((first.audience.as_str(), first.authority.as_str()), ("https://aud.a/", "https://login.a/"));
    assert_eq!((first.container_registry_suffix.as_str(), first.storage_suffix.as_str()), ("cr.a", "st.a"));

    let (china, warnings) = resolve("AzureChinaCloud", &transport).await;
    assert_eq!(china.resource_manager.as_str(), "https://management.chinacloudapi.cn/");
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("describes A, B and not cloud=AzureChinaCloud"), "{warnings:?}");

    // F6: unlike the case, an unknown cloud without metadata is refused: its secret would be sent to the public
    // authority.
    let error = Cloud::resolve(&config("C"), &transport).await.unwrap_err().to_string();
    assert!(error.contains("describes A, B and not cloud=C") && error.contains("Set cloud to"), "{error}");
    let undescribed = Cloud::resolve(&CloudConfig::parse("cloud: Somewhere").unwrap(), &transport).await;
    let error = undescribed.unwrap_err().to_string();
    assert!(
        error.contains("cloud=Somewhere is not a known cloud") && error.contains("AzureChinaCloud"),
        "{error}"
    );

    {
        let journal = journal.lock();
        assert_eq!(journal[0].uri, "https://my.example:8443/metadata/endpoints?api-version=2019-05-01");
        assert!(!journal[0].headers.contains_key("authorization"), "the description needs no token");
    }

    // F6: Azure's metadata has another one of the cloud's names.
    let (transport, _) = azure(|_, _| {
        reply(200, json!([{"name": "AzureUSGovernment", "resourceManager": "https://arm.us.example/"}]))
    });
    for name in ["AzureUSGovernmentCloud", "azureusgovernment"] {
        let (government, warnings) = resolve(name, &transport).await;
        assert_eq!((government.resource_manager.as_str(), warnings.len()), ("https://arm.us.example/", 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_description_that_is_none_ends_the_start_with_one_line() {
    for (status, body, words) in [
        (503, json!("busy"), "cannot read the cloud's metadata: status 503"),
        (200, json!("<html>"), "is not the cloud's metadata"),
        (200, json!({"error": {}}), "is not the cloud's metadata"),
        (0, Value::Null, "cannot read the cloud's metadata: "),
        (200, json!([{"name": "A", "resourceManager": "arm.a"}]), "is not a URL"),
    ] {
        let (transport, _) = azure(move |_, _| reply(status, body.clone()));
        let error = Cloud::resolve(&config("A"), &transport).await.unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains('\n'), "{error}");
    }
    let router = axum::Router::new().fallback(|| async {
        std::future::pending::<()>().await;
    });
    let started = Instant::now();
    let error = Cloud::resolve(&config("A"), &Transport::in_process(router)).await.unwrap_err().to_string();
    assert!(error.contains("did not come within 30 s"), "{error}");
    assert_eq!(started.elapsed(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn an_environment_file_describes_an_azure_stack() {
    let path = std::env::temp_dir().join(format!("azure-stack-{}.json", std::process::id()));
    let resolve = |cloud: &'static str| {
        let path = path.display().to_string();
        async move {
            let config = CloudConfig::from_file(&format!("cloud: {cloud}"), &move |name| {
                (name == "AZURE_ENVIRONMENT_FILEPATH").then(|| path.clone())
            })
            .unwrap();
            let (transport, _) = azure(|_, _| reply(500, Value::Null));
            Cloud::resolve(&config, &transport).await.map(|(cloud, _)| cloud)
        }
    };
    let file = json!({"resourceManagerEndpoint": "https://arm.stack.example/", "tokenAudience": "https://aud.stack",
        "activeDirectoryEndpoint": "https://login.stack/", "containerRegistryDNSSuffix": "cr.stack",
        "storageEndpointSuffix": "st.stack", "resourceManagerVMDNSSuffix": "vm.stack"});
    std::fs::write(&path, format!("\u{feff}{file}")).unwrap();
    let stack = resolve("AzureStackCloud").await.unwrap();
    assert_eq!(stack.resource_manager.as_str(), "https://arm.stack.example/");
    assert_eq!(stack.scope(), "https://aud.stack/.default");
    assert_eq!(stack.authority.as_str(), "https://login.stack/");
    assert_eq!(stack.public_ip_suffix, "vm.stack");
    let public = resolve("AzureCloud").await.unwrap();
    assert_eq!(
        public.resource_manager.as_str(),
        "https://management.azure.com/",
        "only Azure Stack reads it"
    );

    std::fs::write(&path, r#"{"resourceManagerEndpoint": "https://arm.stack.example/"}"#).unwrap();
    let half = resolve("AzureStackCloud").await.unwrap();
    assert_eq!(
        half.resource_manager.as_str(),
        "https://management.azure.com/",
        "endpoint and audience or neither"
    );

    std::fs::write(&path, "no json").unwrap();
    let error = resolve("AzureStackCloud").await.unwrap_err().to_string();
    assert!(error.contains("is not an environment file"), "{error}");
    std::fs::remove_file(&path).unwrap();
    let error = resolve("AzureStackCloud").await.unwrap_err().to_string();
    assert!(error.starts_with("AZURE_ENVIRONMENT_FILEPATH=") && error.contains("cannot be read"), "{error}");
}
