//! COPY: rows of the client or of a file into a table, rows of a table or query to the
//! client, in constant memory. A COPY FROM is one transaction: all rows or
//! none, whatever the number of batches they are stored in.

use std::sync::Arc;

use thermocline_engine::authority::Privileges;
use thermocline_engine::{Charge, ChargeKind, Table, TriggerEvent, Tuples, give_way};
use thermocline_values::binary_format;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::prepared::Prepared;
use super::run::{Answer, Run, counted};
use super::sending::send_rows;
use super::transaction::Block;
use super::triggers::Does;
use super::unread::Rest;
use super::{Client, Session};
use crate::bind::{self, BindContext};
use crate::copy::{CopyDecoder, CopyEncoder, CopyFile, CopyFormat, CopyOptions, Record};
use crate::ddl::find_relation;
use crate::error::{Result, SqlError};
use crate::exec::{self, Touched};
use crate::expr::{EvalContext, Expr};
use crate::messages;
use crate::output::RowWriter;
use crate::parse::copy::{Copy, CopySource};
use crate::parse::statement::{IsolationLevel, Modes};
use crate::parse::{Query, Statement};
use crate::plan::InsertTarget;
use crate::privilege::Actor;
use crate::styles::Styles;
use crate::temporary::{is_temporary, not_others};

/// Rows stored at a time.
const BATCH_ROWS_MAX: usize = 1000;
/// Bytes of input stored at a time.
const BATCH_BYTES_MAX: usize = 256 << 10;
/// The most characters of input that an error quotes.
const QUOTED_CHARACTERS_MAX: usize = 100;

/// A COPY FROM under way.
struct Incoming {
    table: Arc<Table>,
    target: InsertTarget,
    types: Vec<DataType>,
    binary: bool,
    filter: Option<Expr>,
    /// Where the filter finds its columns in a batch's rows.
    places: Vec<usize>,
    decoder: CopyDecoder,
    record: Record,
    batch: Vec<Vec<Value>>,
    lines: Vec<u64>,
    batch_bytes: usize,
    /// Of input that is no whole record yet, and of what is made of a record.
    charge: Charge,
    stored: u64,
    /// By which texts are read, and when.
    styles: Arc<Styles>,
    now_us: i64,
}

impl Session {
    pub(super) async fn copy(
        &mut self,
        copy: &Copy,
        run: &Run<'_>,
        client: &mut Client,
    ) -> Result<()> {
        let count = if copy.from {
            self.copy_from(copy, client).await?
        } else {
            self.copy_to(copy, run, client).await?
        };
        self.rows_processed = count;
        counted(client, b"COPY ", count);
        Ok(())
    }

    /// The table and the places of the columns that a COPY names, if it may be.
    fn copy_table(
        &self,
        name: &[String],
        columns: &[String],
        needs: Privileges,
    ) -> Result<(Arc<Table>, Vec<usize>)> {
        let catalog = self.transaction.catalog(&self.engine.db);
        let search_path = self.context.settings(|settings| settings.search_path());
        let missing = || SqlError::undefined_table(&name.join("."));
        let (schema, relation) = find_relation(&catalog, &search_path, name).ok_or_else(missing)?;
        not_others(&schema, &search_path)?;
        let table = catalog.table_by_name(&schema, &relation).cloned();
        let table = table.ok_or_else(|| match catalog.view_by_name(&schema, &relation) {
            Some(view) => of_view("view", &view.name, needs),
            None => missing(),
        })?;
        if table.is_materialized() {
            return Err(of_view(table.kind(), &table.name, needs));
        }
        let role = self.context.settings(|settings| settings.role());
        let actor = Actor::named(&role, &catalog)?;
        actor.need_some_column(&catalog, &table, needs)?;
        if columns.is_empty() {
            let computed = |place: &usize| table.columns[*place].generated;
            let all: Vec<usize> = table.live().into_iter().filter(|c| !computed(c)).collect();
            for column in &all {
                actor.need_column(&table, *column, needs)?;
            }
            return Ok((table, all));
        }
        let mut places = Vec::with_capacity(columns.len());
        for column in columns {
            let place = table.column_named(column).ok_or_else(|| {
                SqlError::new(
                    "42703",
                    format!(
                        "column \"{column}\" of relation \"{}\" does not exist",
                        table.name
                    ),
                )
            })?;
            if table.columns[place].generated {
                let message = format!("column \"{column}\" is a generated column");
                return Err(SqlError::new("42P10", message)
                    .with_detail("Generated columns cannot be used in COPY."));
            }
            if places.contains(&place) {
                return Err(SqlError::new(
                    "42701",
                    format!("column \"{column}\" specified more than once"),
                ));
            }
            actor.need_column(&table, place, needs)?;
            places.push(place);
        }
        Ok((table, places))
    }

    async fn copy_from(&mut self, copy: &Copy, client: &mut Client) -> Result<u64> {
        let CopySource::Table { name, columns } = &copy.source else {
            return Err(SqlError::syntax("COPY FROM takes a table"));
        };
        let mut file = match &copy.file {
            Some(path) => Some(self.open_for_copy(path)?),
            None => None,
        };
        let mut incoming = self.incoming(copy, name, columns)?;
        if !is_temporary(&incoming.target.table.schema) {
            self.check_writable("COPY FROM")?;
        }
        let own = self.transaction.block() == Block::None;
        if own {
            self.transaction.begin(Block::Implicit, &self.context);
            // Where no trigger reads the lowest level is as good.
            let lowest = !incoming.target.fires();
            self.transaction.set_modes(Modes {
                isolation: lowest.then_some(IsolationLevel::ReadCommitted),
                ..Modes::default()
            })?;
        }
        if file.is_none() {
            messages::copy_in_response(&mut client.out, incoming.binary, incoming.types.len());
            client.flush().await?;
        }
        let does = [Does::new(&incoming.target.table, TriggerEvent::Insert)];
        let mark = self.triggers.begin();
        self.before_statement(&does).await?;
        let limits = self.options();
        loop {
            let data = match &mut file {
                Some(file) => {
                    self.check_interrupted(&limits)?;
                    give_way().await;
                    file.next()?
                }
                None => client.link.copy_data().await?,
            };
            let last = data.is_none();
            match &data {
                Some(data) => {
                    incoming.charge_for(data.len())?;
                    incoming.decoder.push(data)?;
                }
                None => incoming.decoder.finish(),
            }
            self.take_records(&mut incoming).await?;
            if last {
                break;
            }
        }
        self.store(&mut incoming).await?;
        self.behind_statement(&does).await?;
        self.settle_references().await?;
        self.fire_after().await?;
        self.triggers.end(mark);
        self.tell_notices(client);
        if own {
            self.end_implicit().await?;
        }
        Ok(incoming.stored)
    }

    fn open_for_copy(&self, path: &str) -> Result<CopyFile> {
        let actor = self.context.actor()?;
        let hint =
            "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.";
        actor
            .need_superuser("COPY from a file")
            .map_err(|error| error.with_hint(hint))?;
        CopyFile::at(path)
    }

    fn incoming(&self, copy: &Copy, name: &[String], columns: &[String]) -> Result<Incoming> {
        let (table, places) = self.copy_table(name, columns, Privileges::INSERT)?;
        let names: Vec<String> = places
            .iter()
            .map(|place| table.columns[*place].name.clone())
            .collect();
        let options = resolved(copy, &names)?;
        let catalog = self.transaction.catalog(&self.engine.db);
        let search_path = self.context.settings(|settings| settings.search_path());
        let styles = self.context.styles();
        let context = BindContext::new(&catalog, &search_path).styled(&styles);
        let filter = match &copy.filter {
            Some(filter) => Some(bind::bind_filter(filter, &table, &context)?),
            None => None,
        };
        let actor = self.context.actor()?;
        let context = BindContext {
            actor: Some(&actor),
            ..context
        };
        let target = bind::insert_target(&table, &places, &context)?;
        let types = places
            .iter()
            .map(|place| table.columns[*place].data_type)
            .collect();
        Ok(Incoming {
            target,
            types,
            binary: options.format == CopyFormat::Binary,
            filter,
            places,
            decoder: CopyDecoder::new(options, names),
            record: Record::default(),
            batch: Vec::with_capacity(BATCH_ROWS_MAX),
            lines: Vec::with_capacity(BATCH_ROWS_MAX),
            batch_bytes: 0,
            charge: self.account.nothing(ChargeKind::Message),
            stored: 0,
            table,
            now_us: self.context.transaction_us(),
            styles: Arc::clone(&styles),
        })
    }

    /// Takes the whole records that have come, storing full batches.
    async fn take_records(&mut self, incoming: &mut Incoming) -> Result<()> {
        let rows_max = incoming.target.rows_at_once(BATCH_ROWS_MAX);
        loop {
            let whole = incoming.decoder.next(&mut incoming.record);
            let whole = whole.map_err(|error| {
                let line = incoming.decoder.line();
                error.with_context(format!("COPY {}, line {line}", incoming.table.name))
            })?;
            if !whole {
                return Ok(());
            }
            let row = incoming.values()?;
            if !self.passes(incoming, &row)? {
                continue;
            }
            incoming.batch_bytes += incoming.record.bytes.len();
            incoming.lines.push(incoming.record.line);
            incoming.batch.push(row);
            if incoming.batch.len() >= rows_max || incoming.batch_bytes >= BATCH_BYTES_MAX {
                self.store(incoming).await?;
                give_way().await;
            }
        }
    }

    /// Whether the WHERE of the COPY is true for the row.
    fn passes(&self, incoming: &Incoming, row: &[Value]) -> Result<bool> {
        let Some(filter) = &incoming.filter else {
            return Ok(true);
        };
        let mut whole = vec![Value::Null; incoming.table.columns.len()];
        for (place, value) in incoming.places.iter().zip(row) {
            whole[*place] = value.clone();
        }
        let context = EvalContext::without_parameters(
            self.context.transaction_us(),
            &*self.context,
            &incoming.styles,
        );
        filter.accepts(&whole, &context)
    }

    /// Stores the batch. An error names the line it is about, found by storing
    /// the rows one by one: the transaction is given up in any case.
    async fn store(&mut self, incoming: &mut Incoming) -> Result<()> {
        if incoming.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut incoming.batch);
        if incoming.target.fires() {
            let (target, types) = (&incoming.target, &incoming.types);
            let stored = self.copy_with_triggers(target, types, &batch, &incoming.styles);
            let stored = stored.await.map_err(|(error, at)| {
                let (table, line) = (&incoming.table.name, incoming.lines.get(at));
                let line = line.copied().unwrap_or_default();
                let here = format!("COPY {table}, line {line}");
                let here = match &error.context {
                    Some(inner) => format!("{inner}\n{here}"),
                    None => here,
                };
                error.with_context(here)
            })?;
            incoming.stored += stored;
            incoming.batch = batch;
            incoming.empty_batch();
            return Ok(());
        }
        if let Err(error) = self.store_rows(incoming, &batch).await {
            if !error.sqlstate.starts_with("22") && !error.sqlstate.starts_with("23") {
                return Err(error);
            }
            for (row, line) in batch.iter().zip(&incoming.lines) {
                if let Err(error) = self.store_rows(incoming, std::slice::from_ref(row)).await {
                    let table = &incoming.table.name;
                    return Err(error.with_context(format!("COPY {table}, line {line}")));
                }
            }
            return Err(error);
        }
        incoming.stored += batch.len() as u64;
        incoming.batch = batch;
        incoming.empty_batch();
        Ok(())
    }

    async fn store_rows(&mut self, incoming: &Incoming, batch: &[Vec<Value>]) -> Result<u64> {
        let options = self.options();
        self.context.begin_waits();
        loop {
            let mut exec = self.execution(&options, &incoming.styles, false);
            let (target, given) = (&incoming.target, (&incoming.types[..], batch));
            let mut nothing = RowWriter::values();
            let mut touched = Touched::default();
            let stores =
                exec::insert_rows(target, given, &mut touched, &mut exec, &[], &mut nothing);
            match stores.await {
                Ok(stored) => return Ok(stored),
                Err(error) => self.wait_of(&error, &options).await?,
            }
        }
    }

    async fn copy_to(&mut self, copy: &Copy, run: &Run<'_>, client: &mut Client) -> Result<u64> {
        match &copy.source {
            CopySource::Table { name, columns } => {
                let (table, places) = self.copy_table(name, columns, Privileges::SELECT)?;
                if table.partitioned.is_some() {
                    let message = format!("cannot copy from partitioned table \"{}\"", table.name);
                    return Err(SqlError::new("42809", message)
                        .with_hint("Try the COPY (SELECT ...) TO variant."));
                }
                self.copy_table_to(copy, &table, &places, client).await
            }
            CopySource::Query(query) => {
                let prepared = Prepared::new(
                    Arc::clone(&run.prepared.text),
                    Some(Statement::Query(query.clone())),
                    Vec::new(),
                );
                let prepared = Arc::new(prepared.of_depth(run.prepared.depth));
                self.copy_query_to(copy, &prepared, query, client).await
            }
        }
    }

    /// The rows of a table, straight from its tuples.
    async fn copy_table_to(
        &mut self,
        copy: &Copy,
        table: &Arc<Table>,
        places: &[usize],
        client: &mut Client,
    ) -> Result<u64> {
        let names: Vec<String> = places
            .iter()
            .map(|place| table.columns[*place].name.clone())
            .collect();
        let options = resolved(copy, &names)?;
        let db = Arc::clone(&self.engine.db);
        let limits = self.options();
        let read = std::slice::from_ref(table);
        db.all_there(&limits).await?;
        let snapshot = match self.transaction.of_block(&db) {
            Some(transaction) => {
                transaction.enter(&limits, read).await?;
                transaction.note_table_read(table)?;
                transaction.snapshot()?
            }
            None => db.snapshot_of(db.enter(&limits, read).await?),
        };
        let charge = self.account.nothing(ChargeKind::Result);
        let mut rows =
            begin_copy_out(&options, &names, self.context.styles(), client).charged(charge);
        for partition in 0..db.partitions() {
            let mut scan = snapshot.scan(table, partition);
            loop {
                self.check_interrupted(&limits)?;
                let more = scan
                    .next_rows(&mut Tuples::to(|_, tuple| {
                        rows.begin_row(places.len());
                        for place in places {
                            let data_type = &table.columns[*place].data_type;
                            rows.value(table.value(tuple, *place), data_type);
                        }
                        rows.end_row();
                    }))
                    .await?;
                rows.check()?;
                send_rows(&db, &mut rows, client).await?;
                if !more {
                    break;
                }
            }
        }
        Ok(end_copy_out(&options, &rows, client))
    }

    async fn copy_query_to(
        &mut self,
        copy: &Copy,
        prepared: &Arc<Prepared>,
        query: &Query,
        client: &mut Client,
    ) -> Result<u64> {
        let planned = self.plan(prepared, query).await?;
        self.check_read_only(&planned)?;
        let names: Vec<String> = planned
            .columns
            .iter()
            .flat_map(|columns| columns.iter())
            .map(|column| column.name.clone())
            .collect();
        let options = resolved(copy, &names)?;
        let charge = self.account.nothing(ChargeKind::Result);
        let mut rows =
            begin_copy_out(&options, &names, self.context.styles(), client).charged(charge);
        let answer = self.answer(query, &planned, &[], &mut rows).await?;
        let rest = match answer {
            Answer::Whole(_) => None,
            Answer::Stream(stream) => Some(Rest::stream(stream, &self.account)),
            Answer::Kept(kept) => {
                let columns = planned.columns.clone().unwrap_or_default();
                Some(Rest::kept(kept, columns))
            }
        };
        if let Some(rest) = rest {
            let unread = self.unread(rest);
            let sent = self.send_unread(&unread, &mut rows, usize::MAX, client);
            sent.await?;
        }
        send_rows(&self.engine.db, &mut rows, client).await?;
        Ok(end_copy_out(&options, &rows, client))
    }
}

impl Incoming {
    /// So much more input comes: its memory, and that of the record's fields, values and tuple.
    ///
    /// # Errors
    /// 53200 where the session has no room for them.
    fn charge_for(&mut self, more: usize) -> Result<()> {
        let bytes = self.decoder.bytes_with(more) as u64;
        let record = self.decoder.pending_bytes() + more;
        let needed = bytes + 3 * record as u64;
        if needed > self.charge.bytes() {
            self.charge.resize(needed)?;
        }
        Ok(())
    }

    /// The batch is stored.
    fn empty_batch(&mut self) {
        self.batch.clear();
        self.lines.clear();
        self.batch_bytes = 0;
    }

    /// The values of the record.
    fn values(&self) -> Result<Vec<Value>> {
        (0..self.types.len())
            .map(|at| {
                let Some(bytes) = self.record.field(at) else {
                    return Ok(Value::Null);
                };
                self.value(at, bytes)
                    .map_err(|error| self.located(error, at, bytes))
            })
            .collect()
    }

    fn value(&self, at: usize, bytes: &[u8]) -> Result<Value> {
        let data_type = &self.types[at];
        if self.binary {
            return Ok(binary_format::parse_binary(data_type, bytes)?);
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let byte = bytes.get(error.valid_up_to()).copied().unwrap_or(0);
            SqlError::new(
                "22021",
                format!("invalid byte sequence for encoding \"UTF8\": 0x{byte:02x}"),
            )
        })?;
        if text.contains('\0') {
            return Err(SqlError::new(
                "22021",
                "invalid byte sequence for encoding \"UTF8\": 0x00",
            ));
        }
        self.styles.read(data_type, text, Some(self.now_us))
    }

    /// With the line, the column and the value, as PostgreSQL names them.
    fn located(&self, error: SqlError, at: usize, bytes: &[u8]) -> SqlError {
        let column = self
            .places
            .get(at)
            .map_or("", |place| self.table.columns[*place].name.as_str());
        let place = format!(
            "COPY {}, line {}, column {column}",
            self.table.name, self.record.line
        );
        if self.binary {
            return error.with_context(place);
        }
        let text = String::from_utf8_lossy(bytes);
        let mut quoted: String = text.chars().take(QUOTED_CHARACTERS_MAX).collect();
        if quoted.len() < text.len() {
            quoted.push_str("...");
        }
        error.with_context(format!("{place}: \"{quoted}\""))
    }
}

/// The options with the columns that they name.
fn resolved(copy: &Copy, names: &[String]) -> Result<CopyOptions> {
    let mut options = copy.options.clone();
    options.force_quote = copy.forced.quote.resolve(names)?;
    options.force_not_null = copy.forced.not_null.resolve(names)?;
    options.force_null = copy.forced.null.resolve(names)?;
    Ok(options)
}

/// CopyOutResponse and the header line.
fn begin_copy_out(
    options: &CopyOptions,
    names: &[String],
    styles: Arc<Styles>,
    client: &mut Client,
) -> RowWriter {
    let binary = options.format == CopyFormat::Binary;
    messages::copy_out_response(&mut client.out, binary, names.len());
    let mut encoder = CopyEncoder::new(options.clone());
    if let Some(line) = encoder.header(names) {
        messages::copy_data(&mut client.out, &line);
    }
    RowWriter::copy(Vec::new(), encoder).styled(styles)
}

/// The trailer and CopyDone; returns the number of rows.
fn end_copy_out(options: &CopyOptions, rows: &RowWriter, client: &mut Client) -> u64 {
    if let Some(trailer) = CopyEncoder::trailer(options, rows.rows()) {
        messages::copy_data(&mut client.out, &trailer);
    }
    messages::copy_done(&mut client.out);
    rows.rows()
}

/// 42809: a view is no table to copy.
#[cold]
fn of_view(kind: &str, name: &str, needs: Privileges) -> SqlError {
    let refused =
        |way: &str| SqlError::new("42809", format!("cannot copy {way} {kind} \"{name}\""));
    match (needs, kind) {
        (Privileges::INSERT, "view") => refused("to")
            .with_hint("To enable copying to a view, provide an INSTEAD OF INSERT trigger."),
        (Privileges::INSERT, _) => refused("to"),
        _ => refused("from").with_hint("Try the COPY (SELECT ...) TO variant."),
    }
}
