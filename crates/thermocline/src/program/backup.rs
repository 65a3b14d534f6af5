//! `thermocline backup`: asks a running server for a backup, or makes one of a
//! directory that no server has open; `--list` says what a backup holds.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use thermocline::{Embedded, Options as OpenOptions};
use thermocline_engine::backup::{BackupOptions, generations};
use thermocline_server::DEFAULT_PORT;
use tokio_postgres::{AsyncMessage, NoTls};

use super::check::for_reading;
use super::progress::Progress;
use super::restore::show_time;
use super::{fail, refuse, say, size};

/// What to back up, and where to.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The backup's directory, on the server's machine, below its
    /// backup_directory; a new generation is added to those that are there
    target: PathBuf,
    /// Back up this data directory, which no server has open
    #[arg(short = 'D', long, value_name = "DIRECTORY", conflicts_with_all = ["host", "port"])]
    data_dir: Option<PathBuf>,
    /// The server to ask
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// Its port
    #[arg(short = 'p', long, default_value_t = DEFAULT_PORT)]
    port: u16,
    /// Copy at most so much a second, e.g. 50MB
    #[arg(long, value_name = "SIZE")]
    max_rate: Option<String>,
    /// Make no backup; list the generations
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(options: &Options) -> ExitCode {
    let target = match std::path::absolute(&options.target) {
        Ok(target) => target,
        Err(error) => return refuse(&format!("{}: {error}", options.target.display())),
    };
    if options.list {
        return list(&target);
    }
    let rate = match options.max_rate.as_deref().map(size::parse).transpose() {
        Ok(rate) => rate,
        Err(why) => return refuse(&format!("--max-rate: {why}")),
    };
    match &options.data_dir {
        Some(directory) => of_directory(directory, &target, rate),
        None => of_server(options, &target, rate),
    }
}

fn list(target: &Path) -> ExitCode {
    if !target.is_dir() {
        return refuse(&format!("{}: not a directory", target.display()));
    }
    let listed =
        for_reading(target).and_then(|device| generations(&*device).map_err(|e| e.to_string()));
    let listed = match listed {
        Ok(listed) => listed,
        Err(why) => return fail(&why),
    };
    say("generation             lsn  time");
    for generation in listed {
        say(&format!(
            "{:>10}  {:>14}  {}",
            generation.generation,
            generation.lsn,
            show_time(generation.time_us)
        ));
    }
    ExitCode::SUCCESS
}

fn of_directory(directory: &Path, target: &Path, rate: Option<u64>) -> ExitCode {
    if !directory.join("manifest").is_file() {
        return refuse(&format!(
            "{}: the directory has no database",
            directory.display()
        ));
    }
    let embedded = match Embedded::open(directory, &OpenOptions::default()) {
        Ok(embedded) => embedded,
        Err(error) => return refuse(&error),
    };
    let options = BackupOptions {
        bytes_per_second: rate,
    };
    let mut progress = Progress::new("copied");
    let made = embedded
        .database()
        .backup_into(target, &options, &mut |done, total| {
            progress.tell(done, total);
        });
    drop(progress);
    let closed = embedded.close();
    match made.and_then(|made| closed.map(|()| made)) {
        Ok(made) => {
            say(&format!(
                "generation {} at LSN {}: {} of {} blocks are new, {} bytes copied",
                made.generation, made.lsn, made.blocks_copied, made.blocks, made.bytes_copied
            ));
            ExitCode::SUCCESS
        }
        Err(error) => fail(&with_hint(&error.to_string(), error.hint())),
    }
}

fn with_hint(message: &str, hint: Option<&str>) -> String {
    match hint {
        Some(hint) => format!("{message} (hint: {hint})"),
        None => message.to_owned(),
    }
}

fn of_server(options: &Options, target: &Path, rate: Option<u64>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("could not start a thread: {error}")),
    };
    let mut statement = format!(
        "BACKUP TO '{}'",
        target.display().to_string().replace('\'', "''")
    );
    if let Some(rate) = rate {
        statement.push_str(&format!(" WITH (max_rate = {})", (rate >> 10).max(1)));
    }
    match runtime.block_on(ask(options, &statement)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed::ToConnect(error)) => refuse(&format!(
            "cannot connect to {} port {}: {error}",
            options.host, options.port
        )),
        Err(Failed::Backup(why)) => fail(&why),
    }
}

enum Failed {
    ToConnect(tokio_postgres::Error),
    Backup(String),
}

async fn ask(options: &Options, statement: &str) -> Result<(), Failed> {
    let mut config = tokio_postgres::Config::new();
    config
        .host(&options.host)
        .port(options.port)
        .user("postgres")
        .dbname("postgres")
        .application_name("thermocline backup");
    let (client, mut connection) = config.connect(NoTls).await.map_err(Failed::ToConnect)?;
    // The notice says what was made.
    tokio::spawn(async move {
        while let Some(Ok(message)) =
            std::future::poll_fn(|context| connection.poll_message(context)).await
        {
            if let AsyncMessage::Notice(notice) = message {
                say(notice.message());
            }
        }
    });
    client.batch_execute(statement).await.map_err(|error| {
        Failed::Backup(match error.as_db_error() {
            Some(error) => {
                let message = format!("{} ({})", error.message(), error.code().code());
                with_hint(&message, error.hint())
            }
            None => error.to_string(),
        })
    })
}
