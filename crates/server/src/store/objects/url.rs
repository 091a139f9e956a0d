//! The address of an object store, as operators write it. Credentials are not part of it: they come from the environment.

use std::path::PathBuf;

use url::Url;

/// An address that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ObjectStoreUrlError(String);

/// Which kind of store an address names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Folder(PathBuf),
    S3,
    Google,
    Azure,
}

/// The address of an object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectStoreUrl {
    pub(super) kind: Kind,
    pub(super) url: Url,
}

impl ObjectStoreUrl {
    /// Reads `file:///folder`, `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`.
    ///
    /// # Errors
    /// When it is another address, or has credentials or a query.
    pub fn parse(text: &str) -> Result<Self, ObjectStoreUrlError> {
        let wrong = |problem: String| Err(ObjectStoreUrlError(problem));
        let Ok(url) = Url::parse(text) else {
            return wrong(
                "is not an address; give one such as `s3://bucket/prefix` or `file:///folder`".to_owned(),
            );
        };
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            let problem = "must not contain credentials or a query; set the variables of the store, such as AWS_ACCESS_KEY_ID";
            return wrong(problem.to_owned());
        }
        let kind = match url.scheme() {
            "file" => match url.to_file_path() {
                Ok(path) if url.host_str().is_none() && path.parent().is_some() => Kind::Folder(path),
                Ok(_) | Err(()) => {
                    return wrong("must name a folder, such as `file:///srv/objects`".to_owned());
                }
            },
            "s3" => Kind::S3,
            "gs" => Kind::Google,
            "az" => Kind::Azure,
            other => {
                return wrong(format!("begins with `{other}:`; accepted are file, s3, gs and az"));
            }
        };
        if !matches!(kind, Kind::Folder(_)) && url.host_str().is_none_or(str::is_empty) {
            return wrong(format!("names no bucket; give one such as `{}://bucket/prefix`", url.scheme()));
        }
        Ok(Self { kind, url })
    }

    /// The address, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        self.url.as_str().trim_end_matches('/').to_owned()
    }

    /// What the names of all objects begin with.
    pub(super) fn prefix(&self) -> String {
        match self.kind {
            Kind::Folder(_) => String::new(),
            Kind::S3 | Kind::Google | Kind::Azure => self.url.path().trim_matches('/').to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_a_folder_or_a_bucket_and_no_secret() {
        let parse = |text: &str| ObjectStoreUrl::parse(text).unwrap();
        assert_eq!(parse("file:///srv/a%20b").kind, Kind::Folder("/srv/a b".into()));
        let bucket = parse("s3://bucket/one/two/");
        assert_eq!(
            (bucket.prefix().as_str(), bucket.describe().as_str()),
            ("one/two", "s3://bucket/one/two")
        );
        assert_eq!((parse("gs://b").kind, parse("az://c/p").kind), (Kind::Google, Kind::Azure));
        for (wrong, part) in [
            ("bucket", "is not an address"),
            ("file://host/x", "must name a folder"),
            ("file:///", "must name a folder"),
            ("s3://", "names no bucket"),
            ("https://bucket.s3.amazonaws.com", "begins with `https:`"),
            ("s3://key:secret@bucket/x", "must not contain credentials"),
            ("az://c/p?sig=secret", "must not contain credentials"),
        ] {
            let error = ObjectStoreUrl::parse(wrong).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("secret"), "{wrong}: {error}");
        }
    }
}
