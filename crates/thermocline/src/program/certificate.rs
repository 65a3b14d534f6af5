//! `thermocline certificate`: a certificate signed by itself, so that TLS can be had without
//! an authority; and the reading of certificates by `serve`.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use thermocline_server::Tls;

use super::settings::Settings;
use super::{fail, refuse, say};

/// The file names when none are said, PostgreSQL's.
const CERTIFICATE: &str = "server.crt";
const KEY: &str = "server.key";

/// What to make.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where server.crt and server.key are written; they must not be there
    #[arg(
        short = 'D',
        long,
        value_name = "DIRECTORY",
        default_value = "thermocline-data"
    )]
    data_dir: PathBuf,
    /// The names and addresses by which clients call this machine
    #[arg(long = "name", value_name = "NAME", default_values_t = ["localhost".to_owned(), "127.0.0.1".to_owned()])]
    names: Vec<String>,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let made = match rcgen::generate_simple_self_signed(options.names.clone()) {
        Ok(made) => made,
        Err(error) => return refuse(&format!("certificate: {error}")),
    };
    let write = |name: &str, mode: u32, text: &str| -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(options.data_dir.join(name))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    let written = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&options.data_dir)
        .and_then(|()| write(KEY, 0o600, &made.signing_key.serialize_pem()))
        .and_then(|()| write(CERTIFICATE, 0o644, &made.cert.pem()));
    if let Err(error) = written {
        return fail(&format!("{}: {error}", options.data_dir.display()));
    }
    let shown = options.data_dir.join(CERTIFICATE);
    say(&format!(
        "{} for {}",
        shown.display(),
        options.names.join(", ")
    ));
    say("serve with --ssl on; clients: sslmode=verify-full sslrootcert=<that file>");
    ExitCode::SUCCESS
}

/// What TLS is spoken with, by the settings.
pub(crate) fn load(settings: &Settings) -> Result<Option<Tls>, String> {
    if !settings.ssl {
        return Ok(None);
    }
    let file = |said: &Option<PathBuf>, name: &str| match said {
        Some(path) => path.clone(),
        None => settings.data_dir.join(name),
    };
    let certificate = file(&settings.ssl_cert_file, CERTIFICATE);
    let key = file(&settings.ssl_key_file, KEY);
    let read = |path: &Path| fs::read(path).map_err(|why| format!("{}: {why}", path.display()));
    Tls::from_pem(&read(&certificate)?, &read_key(&key)?)
        .map(Some)
        .map_err(|why| format!("{}: {why}", certificate.display()))
}

/// A key that others may read is refused.
fn read_key(path: &Path) -> Result<Vec<u8>, String> {
    use std::os::unix::fs::PermissionsExt;
    let shown = path.display();
    let mode = fs::metadata(path)
        .map_err(|why| format!("{shown}: {why}"))?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        return Err(format!(
            "{shown}: the key may be read by others (mode {:o}); make it 600",
            mode & 0o777
        ));
    }
    fs::read(path).map_err(|why| format!("{shown}: {why}"))
}
