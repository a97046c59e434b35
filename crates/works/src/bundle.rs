//! The payload of a spec event: the manifests and how to apply them.

use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
};

use orrery_api::work::{
    DeleteOption, MAX_MANIFEST_BYTES, Manifest, ManifestConfigOption, ManifestWorkExecutor, ManifestWorkSpec,
    ManifestsTemplate,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The manifests of one work and how to apply them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bundle {
    /// Whole Kubernetes objects.
    pub manifests: Vec<Manifest>,
    /// What happens to the objects when the work goes away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_option: Option<DeleteOption>,
    /// Per-manifest settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub manifest_configs: Vec<ManifestConfigOption>,
    /// Whose rights the manifests are applied with. The wire spells it with an `e`.
    #[serde(rename = "executer", skip_serializing_if = "Option::is_none")]
    pub executor: Option<ManifestWorkExecutor>,
}

/// Why a bundle cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// There is nothing in it.
    #[error("the work has no manifests")]
    Empty,
    /// There is too much in it.
    #[error("the manifests have {bytes} bytes, more than the limit of {MAX_MANIFEST_BYTES}")]
    TooLarge {
        /// The bytes of all manifests.
        bytes: usize,
    },
    /// A manifest names no object.
    #[error("manifest {ordinal} has no metadata.name")]
    Nameless {
        /// Its index.
        ordinal: usize,
    },
    /// A manifest wants a generated name, which would make a new object with every apply.
    #[error("manifest {ordinal} has metadata.generateName")]
    GeneratedName {
        /// Its index.
        ordinal: usize,
    },
}

/// What decides whether a work changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContentHash(pub [u8; 32]);

impl Bundle {
    /// Checks what both ends of the conversation check.
    pub fn validate(&self) -> Result<(), BundleError> {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow)]
            metadata: Option<Names<'a>>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Names<'a> {
            #[serde(borrow)]
            name: Option<std::borrow::Cow<'a, str>>,
            #[serde(borrow)]
            generate_name: Option<std::borrow::Cow<'a, str>>,
        }
        if self.manifests.is_empty() {
            return Err(BundleError::Empty);
        }
        let bytes = self.manifest_bytes();
        if bytes > MAX_MANIFEST_BYTES {
            return Err(BundleError::TooLarge { bytes });
        }
        for (ordinal, manifest) in self.manifests.iter().enumerate() {
            let names = serde_json::from_str::<Head<'_>>(manifest.as_json()).ok().and_then(|head| head.metadata);
            let names = names.ok_or(BundleError::Nameless { ordinal })?;
            if names.generate_name.is_some_and(|name| !name.is_empty()) {
                return Err(BundleError::GeneratedName { ordinal });
            }
            if names.name.is_none_or(|name| name.is_empty()) {
                return Err(BundleError::Nameless { ordinal });
            }
        }
        Ok(())
    }

    /// The bytes of all manifests.
    pub fn manifest_bytes(&self) -> usize {
        self.manifests.iter().map(|manifest| manifest.as_json().len()).sum()
    }

    /// Hashes the whole bundle.
    pub fn content_hash(&self) -> ContentHash {
        let mut sink = HashSink(Sha256::new());
        serde_json::to_writer(&mut sink, self).expect("a bundle has only text keys and JSON that was parsed before");
        ContentHash(sink.0.finalize().into())
    }
}

/// A bundle that is hashed and checked once, however many works carry it.
#[derive(Clone, Debug)]
pub struct Sealed(Arc<Seal>);

#[derive(Debug)]
struct Seal {
    bundle: Arc<Bundle>,
    hash: ContentHash,
    checked: OnceLock<Result<(), BundleError>>,
}

impl Sealed {
    /// What is carried.
    pub fn bundle(&self) -> &Arc<Bundle> {
        &self.0.bundle
    }

    /// The hash of the whole bundle.
    pub fn content_hash(&self) -> ContentHash {
        self.0.hash
    }

    /// Checks what both ends of the conversation check.
    pub fn validate(&self) -> Result<(), BundleError> {
        self.0.checked.get_or_init(|| self.0.bundle.validate()).clone()
    }
}

impl From<Arc<Bundle>> for Sealed {
    fn from(bundle: Arc<Bundle>) -> Self {
        let hash = bundle.content_hash();
        Self(Arc::new(Seal { bundle, hash, checked: OnceLock::new() }))
    }
}

impl From<Bundle> for Sealed {
    fn from(bundle: Bundle) -> Self {
        Arc::new(bundle).into()
    }
}

impl Deref for Sealed {
    type Target = Bundle;

    fn deref(&self) -> &Bundle {
        &self.0.bundle
    }
}

impl PartialEq for Sealed {
    fn eq(&self, other: &Self) -> bool {
        self.0.hash == other.0.hash
    }
}

/// Hashes what is written to it, so that nothing need be copied to be hashed.
struct HashSink(Sha256);

impl std::io::Write for HashSink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl From<ManifestWorkSpec> for Bundle {
    fn from(spec: ManifestWorkSpec) -> Self {
        Self {
            manifests: spec.workload.manifests,
            delete_option: spec.delete_option,
            manifest_configs: spec.manifest_configs,
            executor: spec.executor,
        }
    }
}

impl From<Bundle> for ManifestWorkSpec {
    fn from(bundle: Bundle) -> Self {
        Self {
            workload: ManifestsTemplate { manifests: bundle.manifests },
            delete_option: bundle.delete_option,
            manifest_configs: bundle.manifest_configs,
            executor: bundle.executor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(manifests: &str, want: Result<(), BundleError>) {
        let bundle = Bundle { manifests: serde_json::from_str(manifests).unwrap(), ..Bundle::default() };
        assert_eq!(bundle.validate(), want, "{manifests:.80}");
    }

    #[test]
    fn what_cannot_be_applied_is_not_sent() {
        check(r#"[{"metadata":{"name":"a"}}]"#, Ok(()));
        check("[]", Err(BundleError::Empty));
        check(r#"[{"metadata":{"name":"a"}},{"metadata":{}}]"#, Err(BundleError::Nameless { ordinal: 1 }));
        check("[7]", Err(BundleError::Nameless { ordinal: 0 }));
        check(r#"[{"metadata":{"generateName":"a-"}}]"#, Err(BundleError::GeneratedName { ordinal: 0 }));
        let large = format!(r#"[{{"metadata":{{"name":"a"}},"data":"{}"}}]"#, "x".repeat(MAX_MANIFEST_BYTES));
        let bytes = large.len() - 2;
        check(&large, Err(BundleError::TooLarge { bytes }));
    }
}
