//! A bucket on S3, Google Cloud, Azure, or a server with one of their interfaces.

use alloy::primitives::bytes::Bytes;
use futures_util::StreamExt;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::{HttpClient, HttpConnector};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path;
use object_store::{ClientOptions, Error as Failure, ObjectStore, ObjectStoreExt, RetryConfig};
use reqwest::Client;
use url::Url;

use crate::trouble::{Pieces, Trouble};
use crate::Error;

pub(crate) struct Bucket {
    store: Box<dyn ObjectStore>,
    below: Path,
}

/// Requests go through the same client as all others.
#[derive(Debug)]
struct Ours(Client);

impl HttpConnector for Ours {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}

/// The builder of a bucket's kind: settings of the environment first, then those of the URL, which override them.
macro_rules! bucket {
    ($builder:ty, $key:ty, $name:ident, $url:expr, $client:expr) => {{
        let retry = RetryConfig { max_retries: 2, ..RetryConfig::default() };
        let host = $url.host_str().unwrap_or_default();
        let mut builder = <$builder>::from_env().$name(host).with_http_connector(Ours($client)).with_retry(retry);
        for (key, value) in $url.query_pairs() {
            builder = builder.with_config(key.parse::<$key>().map_err(|error| unusable(&error))?, value);
        }
        Box::new(builder.build().map_err(|error| unusable(&error))?) as Box<dyn ObjectStore>
    }};
}

fn unusable(error: &dyn std::fmt::Display) -> Error {
    Error::Url(error.to_string())
}

impl Bucket {
    /// `s3://bucket/path?endpoint=...`, and `gs` or `az` in the place of `s3`.
    pub fn open(url: &Url, client: Client) -> Result<Self, Error> {
        if url.host_str().is_none_or(str::is_empty) {
            return Err(unusable(&"a bucket's URL is s3://bucket/path"));
        }
        let store = match url.scheme() {
            "gs" => bucket!(GoogleCloudStorageBuilder, GoogleConfigKey, with_bucket_name, url, client),
            "az" => bucket!(MicrosoftAzureBuilder, AzureConfigKey, with_container_name, url, client),
            _ => bucket!(AmazonS3Builder, AmazonS3ConfigKey, with_bucket_name, url, client),
        };
        Ok(Self { store, below: Path::from_url_path(url.path()).map_err(|error| unusable(&error))? })
    }

    pub async fn get(&self, name: &str) -> Result<Pieces, Trouble> {
        let answer = self.store.get(&self.below.clone().join(name)).await.map_err(trouble)?;
        Ok(Box::pin(answer.into_stream().map(|piece| piece.map_err(trouble))))
    }

    pub async fn put(&self, name: &str, bytes: Bytes) -> Result<(), Trouble> {
        self.store.put(&self.below.clone().join(name), bytes.into()).await.map(drop).map_err(refused)
    }

    pub async fn remove(&self, name: &str) -> Result<(), Trouble> {
        self.store.delete(&self.below.clone().join(name)).await.map_err(refused)
    }
}

fn refused(error: Failure) -> Trouble {
    match error {
        Failure::PermissionDenied { .. } | Failure::Unauthenticated { .. } => Trouble::ReadOnly("it refuses these keys".into()),
        error => trouble(error),
    }
}

fn trouble(error: Failure) -> Trouble {
    match error {
        Failure::NotFound { .. } => Trouble::Missing,
        // The library's error text includes the whole URL: no secret, but long.
        Failure::PermissionDenied { .. } | Failure::Unauthenticated { .. } => {
            Trouble::Unreachable("it refuses these keys".into())
        }
        other => Trouble::Unreachable(other.to_string()),
    }
}
