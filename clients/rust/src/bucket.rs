//! A bucket of S3, or of what speaks like it.

use futures_util::StreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{HttpClient, HttpConnector};
use object_store::path::Path;
use object_store::{ClientOptions, Error as Failure, ObjectStoreExt, RetryConfig};
use reqwest::Client;
use url::Url;

use crate::store::Trouble;
use crate::Error;

pub(crate) struct Bucket {
    store: AmazonS3,
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

impl Bucket {
    /// `s3://bucket/path`; keys, region and endpoint are those of the environment.
    pub fn open(url: &Url, client: Client) -> Result<Self, Error> {
        let unusable = |error: &dyn std::fmt::Display| Error::Url(error.to_string());
        let name = url.host_str().ok_or_else(|| unusable(&"a bucket's URL is s3://bucket/path"))?;
        let retry = RetryConfig { max_retries: 2, ..RetryConfig::default() };
        let builder = AmazonS3Builder::from_env().with_bucket_name(name).with_http_connector(Ours(client)).with_retry(retry);
        let store = builder.build().map_err(|error| unusable(&error))?;
        let below = Path::from_url_path(url.path()).map_err(|error| unusable(&error))?;
        Ok(Self { store, below })
    }

    pub async fn get(&self, name: &str, most: usize) -> Result<Vec<u8>, Trouble> {
        let answer = self.store.get(&self.below.clone().join(name)).await.map_err(trouble)?;
        let (mut parts, mut bytes) = (answer.into_stream(), Vec::new());
        while let Some(part) = parts.next().await {
            let part = part.map_err(trouble)?;
            if bytes.len() + part.len() > most {
                return Err(Trouble::TooLong(most));
            }
            bytes.extend_from_slice(&part);
        }
        Ok(bytes)
    }

    pub async fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        match self.store.put(&self.below.clone().join(name), bytes.to_vec().into()).await {
            Ok(_) => Ok(()),
            Err(Failure::PermissionDenied { .. } | Failure::Unauthenticated { .. }) => {
                Err(Trouble::ReadOnly("it refuses these keys".into()))
            }
            Err(error) => Err(trouble(error)),
        }
    }
}

fn trouble(error: Failure) -> Trouble {
    match error {
        Failure::NotFound { .. } => Trouble::Missing,
        // The text of others has the whole URL in it, which holds no secret, but is long.
        Failure::PermissionDenied { .. } | Failure::Unauthenticated { .. } => {
            Trouble::Unreachable("it refuses these keys".into())
        }
        other => Trouble::Unreachable(other.to_string()),
    }
}
