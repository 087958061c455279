//! Objects in stores behind a network: paths that begin with the URL of a store that was made known are theirs.

use std::collections::hash_map::DefaultHasher;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::io::Result;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

/// Facts of a store about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteFacts {
    pub bytes: u64,
    /// Hash of the entity tag, or of what stands for one: another one means other bytes.
    pub tag: u64,
}

/// Takes the key and the facts of each listed object.
pub type RemoteVisit<'a> = &'a mut dyn FnMut(&str, RemoteFacts) -> Result<()>;

/// The transport to a store: a bucket or a host. Requests block, with retries and timeouts of the transport.
///
/// Errors are `NotFound`, `PermissionDenied`, or others in words, without credentials.
pub trait RemoteStore: Send + Sync {
    /// A text that tells apart stores of one URL; nothing secret.
    fn endpoint(&self) -> &str;
    /// Whether keys can be listed.
    fn is_listed(&self) -> bool;
    /// The facts of an object now.
    ///
    /// # Errors
    /// No such object, or a request that failed.
    fn facts(&self, key: &str) -> Result<RemoteFacts>;
    /// Reads into the front of `buffer`, from `offset` on, less at the end of the object; and what the object was then.
    ///
    /// # Errors
    /// No such object, or a request that failed.
    fn read_at(&self, key: &str, buffer: &mut [u8], offset: u64) -> Result<(usize, RemoteFacts)>;
    /// All of an object of at most so many bytes, in one request.
    ///
    /// # Errors
    /// No such object, one that is larger, or a request that failed.
    fn content(&self, key: &str, most: u64) -> Result<(Vec<u8>, RemoteFacts)>;
    /// Calls `each` with all objects whose keys begin with a prefix.
    ///
    /// # Errors
    /// A request that failed; those of `each`.
    fn list(&self, prefix: &str, each: RemoteVisit<'_>) -> Result<()>;
    /// The parts of keys between a prefix and the next slash, each once.
    ///
    /// # Errors
    /// A request that failed.
    fn folders(&self, prefix: &str) -> Result<Vec<String>>;
    /// The facts of objects of many keys, several requests at once; nothing for keys that are not there.
    ///
    /// # Errors
    /// A request that failed.
    fn facts_of_many(&self, keys: &[String]) -> Result<Vec<Option<RemoteFacts>>>;
}

/// An object's store, and its key in that.
#[derive(Clone)]
pub struct RemotePlace {
    pub store: Arc<dyn RemoteStore>,
    pub key: String,
}

/// By URL: scheme and authority, without a slash at the end.
static STORES: RwLock<BTreeMap<String, Arc<dyn RemoteStore>>> = RwLock::new(BTreeMap::new());

/// Makes a store known by its URL. Arrays that were opened by that URL are read through this store from now on: fresh credentials
/// are for them too, and objects of another store have other tags.
pub fn mount(url: &str, store: Arc<dyn RemoteStore>) {
    let mut stores = STORES.write().unwrap_or_else(PoisonError::into_inner);
    stores.insert(url.to_string(), store);
}

/// Scheme and authority of a URL, and the rest behind the slash.
fn split(path: &Path) -> Option<(&str, &str)> {
    let bytes = path.as_os_str().as_bytes();
    let scheme = bytes.iter().take(6).position(|&byte| byte == b':')?;
    bytes[scheme..].starts_with(b"://").then_some(())?;
    let text = path.to_str()?;
    let authority = scheme + "://".len();
    let end = text[authority..].find('/').map_or(text.len(), |at| authority + at);
    Some((&text[..end], text[end..].trim_matches('/')))
}

/// The place of an object or of a prefix, where a path begins with the URL of a store.
pub(crate) fn place_of(path: &Path) -> Option<RemotePlace> {
    let (url, key) = split(path)?;
    let stores = STORES.read().unwrap_or_else(PoisonError::into_inner);
    Some(RemotePlace {
        store: stores.get(url)?.clone(),
        key: key.to_string(),
    })
}

/// Whether a path leads to a store.
pub(crate) fn is_remote(path: &Path) -> bool {
    place_of(path).is_some()
}

impl RemotePlace {
    /// A number for the store, in stamps.
    pub(crate) fn store_number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.store.endpoint().hash(&mut hasher);
        hasher.finish()
    }
}

/// The hash of an entity tag.
pub fn tag_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_cut_behind_their_authority() {
        let cut = |text: &'static str| split(Path::new(text));
        assert_eq!(cut("s3://b/x.zarr/c/0"), Some(("s3://b", "x.zarr/c/0")));
        assert_eq!(cut("https://h:81/x/"), Some(("https://h:81", "x")));
        assert_eq!(cut("gs://b"), Some(("gs://b", "")));
        for local in ["/tmp/s3://b/x", "s3:/b/x", "x", ""] {
            assert_eq!(cut(local), None, "{local}");
        }
    }
}
