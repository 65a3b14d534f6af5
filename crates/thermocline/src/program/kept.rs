//! What ALTER SYSTEM sets, kept in `thermocline.auto.toml` in the data directory.
//! The file is replaced whole, so that a crash leaves the old or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use thermocline_server::Reload;
use thermocline_sql::{SqlError, SystemSettings};

use super::certificate;
use super::settings::{AUTO_FILE_NAME, Settings, memory_limit, read_kept};

/// See the head of this file.
pub(crate) struct KeptSettings {
    path: PathBuf,
    /// The limit without ALTER SYSTEM, in bytes.
    given: u64,
    /// For the certificate,
    settings: Settings,
    /// which is the server's to use.
    reload: Reload,
}

impl KeptSettings {
    pub(crate) fn new(settings: &Settings, reload: Reload) -> Self {
        Self {
            path: settings.data_dir.join(AUTO_FILE_NAME),
            given: settings.memory_limit_given,
            settings: settings.clone(),
            reload,
        }
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        let new = self.path.with_extension("toml.new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl SystemSettings for KeptSettings {
    fn alter_memory_limit(&self, value: Option<&str>) -> Result<u64, SqlError> {
        let head = "# Written by ALTER SYSTEM; a change by hand is lost with the next.\n";
        let (limit, text) = match value {
            Some(value) => {
                let limit = memory_limit(value).map_err(|why| {
                    let message = format!("invalid value for parameter \"memory_limit\": {why}");
                    SqlError::new("22023", message)
                })?;
                (limit, format!("{head}memory_limit = '{limit}'\n"))
            }
            None => (self.given, head.to_owned()),
        };
        self.replace(&text).map_err(|error| {
            let path = self.path.display();
            SqlError::new("58030", format!("could not write {path}: {error}"))
        })?;
        Ok(limit)
    }

    fn reload(&self) -> Result<(), SqlError> {
        let tls = certificate::load(&self.settings).map_err(|why| SqlError::new("F0000", why))?;
        if let Some(tls) = tls {
            self.reload.set_tls(tls);
        }
        Ok(())
    }

    fn kept_memory_limit(&self) -> Result<u64, SqlError> {
        let wrong = |why: String| SqlError::new("F0000", format!("{}: {why}", self.path.display()));
        let Some(text) = read_kept(&self.path).map_err(|why| wrong(why.to_string()))? else {
            return Ok(self.given);
        };
        let table: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| wrong(error.message().to_owned()))?;
        match table.get("memory_limit").and_then(toml::Value::as_str) {
            Some(value) => memory_limit(value).map_err(wrong),
            None => Ok(self.given),
        }
    }
}
