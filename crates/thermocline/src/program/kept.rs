//! What ALTER SYSTEM sets, kept in `thermocline.auto.toml` in the data directory.
//! The file is replaced whole, so that a crash leaves the old or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use thermocline_server::Reload;
use thermocline_sql::{SqlError, SystemSetting, SystemSettings};

use super::certificate;
use super::settings::{AUTO_FILE_NAME, Settings, memory_limit, read_kept};
use super::size;

/// See the head of this file.
pub(crate) struct KeptSettings {
    path: PathBuf,
    /// The limit, and the buffer of warm columns, without ALTER SYSTEM, in bytes.
    given: (u64, Option<u64>),
    /// For the certificate,
    settings: Settings,
    /// which is the server's to use.
    reload: Reload,
}

impl KeptSettings {
    pub(crate) fn new(settings: &Settings, reload: Reload) -> Self {
        Self {
            path: settings.data_dir.join(AUTO_FILE_NAME),
            given: (settings.memory_limit_given, settings.warm_buffer_given),
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

const HEAD: &str = "# Written by ALTER SYSTEM; a change by hand is lost with the next.\n";

impl KeptSettings {
    /// What is kept, as it stands there.
    fn table(&self) -> Result<toml::Table, SqlError> {
        let Some(text) = read_kept(&self.path).map_err(|why| self.wrong(&why.to_string()))? else {
            return Ok(toml::Table::new());
        };
        text.parse()
            .map_err(|error: toml::de::Error| self.wrong(error.message()))
    }

    fn wrong(&self, why: &str) -> SqlError {
        SqlError::new("F0000", format!("{}: {why}", self.path.display()))
    }
}

fn parsed(setting: SystemSetting, value: &str) -> Result<u64, String> {
    match setting {
        SystemSetting::MemoryLimit => memory_limit(value),
        SystemSetting::WarmBuffer => size::parse(value),
    }
}

impl SystemSettings for KeptSettings {
    fn read(&self, setting: SystemSetting, value: &str) -> Result<u64, SqlError> {
        parsed(setting, value).map_err(|why| {
            let message = format!("invalid value for parameter \"{}\": {why}", setting.name());
            SqlError::new("22023", message)
        })
    }

    fn keep(&self, setting: SystemSetting, value: Option<u64>) -> Result<(), SqlError> {
        // What cannot be read is written anew: whoever sets something wants to get on.
        let table = self.table().unwrap_or_default();
        let mut text = HEAD.to_owned();
        for one in SystemSetting::ALL {
            let there = table.get(one.name()).and_then(toml::Value::as_str);
            let said = match one == setting {
                true => value.map(|value| value.to_string()),
                false => there.map(str::to_owned),
            };
            if let Some(said) = said {
                text.push_str(&format!("{} = '{said}'\n", one.name()));
            }
        }
        self.replace(&text).map_err(|error| {
            let path = self.path.display();
            SqlError::new("58030", format!("could not write {path}: {error}"))
        })
    }

    fn kept(&self, setting: SystemSetting) -> Result<Option<u64>, SqlError> {
        let table = self.table()?;
        match table.get(setting.name()).and_then(toml::Value::as_str) {
            Some(value) => parsed(setting, value)
                .map(Some)
                .map_err(|why| self.wrong(&why)),
            None => Ok(match setting {
                SystemSetting::MemoryLimit => Some(self.given.0),
                SystemSetting::WarmBuffer => self.given.1,
            }),
        }
    }

    fn reload(&self) -> Result<(), SqlError> {
        let tls = certificate::load(&self.settings).map_err(|why| SqlError::new("F0000", why))?;
        if let Some(tls) = tls {
            self.reload.set_tls(tls);
        }
        Ok(())
    }
}
