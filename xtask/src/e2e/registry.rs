//! A client that pushes images to the simulated registries, by the registries' HTTP API.

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, LOCATION};
use http::{HeaderMap, Method};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use real_kubernetes::{Image, digest};
use serde_json::Value;

/// A client that pushes to one registry.
pub struct Pusher<'a> {
    /// The URL of the simulated Azure's listener without TLS: the host header selects the registry.
    pub azure: &'a str,
    /// The registry's host.
    pub host: &'a str,
    /// An application that may push.
    pub client_id: &'a str,
    /// The secret of the application.
    pub secret: &'a str,
}

impl Pusher<'_> {
    /// Pushes an image.
    ///
    /// # Errors
    /// The registry's error.
    pub async fn push(&self, repository: &str, tag: &str, image: &Image) -> anyhow::Result<()> {
        let http = Client::builder(TokioExecutor::new()).build_http();
        let basic = format!("Basic {}", STANDARD.encode(format!("{}:{}", self.client_id, self.secret)));
        let url = format!("/oauth2/token?service={}&scope=repository:{repository}:pull,push", self.host);
        let (_, token) = self.ask(&http, Method::GET, &url, &basic, "", Bytes::new()).await?;
        let token: Value = serde_json::from_slice(&token)?;
        let bearer = format!("Bearer {}", token["access_token"].as_str().context("no access token")?);
        for blob in &image.blobs {
            let url = format!("/v2/{repository}/blobs/uploads/");
            let (headers, _) = self.ask(&http, Method::POST, &url, &bearer, "", Bytes::new()).await?;
            let place = headers.get(LOCATION).context("an upload has no place")?.to_str()?;
            let url = format!("{place}?digest={}", digest(blob));
            let content = Bytes::from(blob.clone());
            self.ask(&http, Method::PUT, &url, &bearer, "application/octet-stream", content).await?;
        }
        let url = format!("/v2/{repository}/manifests/{tag}");
        let manifest = Bytes::from(image.manifest.to_string());
        self.ask(&http, Method::PUT, &url, &bearer, Image::MANIFEST_TYPE, manifest).await?;
        Ok(())
    }

    async fn ask(
        &self,
        http: &Client<HttpConnector, Full<Bytes>>,
        method: Method,
        path: &str,
        authorization: &str,
        media_type: &str,
        body: Bytes,
    ) -> anyhow::Result<(HeaderMap, Bytes)> {
        let what = format!("{method} https://{}{path}", self.host);
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.azure))
            .header(HOST, self.host)
            .header(AUTHORIZATION, authorization)
            .header(CONTENT_TYPE, media_type)
            .body(Full::new(body))?;
        let response = http.request(request).await.with_context(|| what.clone())?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        ensure!(parts.status.is_success(), "{what}: {}: {}", parts.status, String::from_utf8_lossy(&body));
        Ok((parts.headers, body))
    }
}
