//! The seven transactions over the wire, by the specification's own statements. Those of one
//! statement are transactions by themselves.

use tokio_postgres::{Client, Statement};

use super::draw::{NO_ACCESS, NO_DESTINATION, NO_FACILITY, NO_FORWARDING, Operation};
use crate::Result;
use crate::workload::Ended;

/// What a connection has prepared.
pub struct Statements {
    get_subscriber: Statement,
    get_destination: Statement,
    get_access: Statement,
    update_bit: Statement,
    update_facility: Statement,
    update_location: Statement,
    subscriber_of: Statement,
    facilities: Statement,
    insert: Statement,
    delete: Statement,
}

impl Statements {
    /// Prepares all.
    pub(super) async fn prepare(connection: &Client) -> Result<Self> {
        let prepare = async |sql: &str| connection.prepare(sql).await;
        Ok(Statements {
            get_subscriber: prepare("SELECT * FROM subscriber WHERE s_id = $1").await?,
            get_destination: prepare(
                "SELECT cf.numberx FROM special_facility AS sf, call_forwarding AS cf \
                 WHERE sf.s_id = $1 AND sf.sf_type = $2 AND sf.is_active = 1 \
                 AND cf.s_id = sf.s_id AND cf.sf_type = sf.sf_type \
                 AND cf.start_time <= $3 AND $4 < cf.end_time",
            )
            .await?,
            get_access: prepare(
                "SELECT data1, data2, data3, data4 FROM access_info \
                 WHERE s_id = $1 AND ai_type = $2",
            )
            .await?,
            update_bit: prepare("UPDATE subscriber SET bit_1 = $2 WHERE s_id = $1").await?,
            update_facility: prepare(
                "UPDATE special_facility SET data_a = $3 WHERE s_id = $1 AND sf_type = $2",
            )
            .await?,
            update_location: prepare("UPDATE subscriber SET vlr_location = $2 WHERE sub_nbr = $1")
                .await?,
            subscriber_of: prepare("SELECT s_id FROM subscriber WHERE sub_nbr = $1").await?,
            facilities: prepare("SELECT sf_type FROM special_facility WHERE s_id = $1").await?,
            insert: prepare("INSERT INTO call_forwarding VALUES ($1, $2, $3, $4, $5)").await?,
            delete: prepare(
                "DELETE FROM call_forwarding WHERE s_id = $1 AND sf_type = $2 \
                 AND start_time = $3",
            )
            .await?,
        })
    }

    /// Carries out an operation.
    pub(super) async fn execute(
        &self,
        connection: &Client,
        operation: &Operation,
    ) -> Result<Ended> {
        let ended = |done: bool, failure| match done {
            true => Ended::Done,
            false => Ended::Expected(failure),
        };
        match operation {
            Operation::GetSubscriberData { subscriber } => {
                let statement = &self.get_subscriber;
                connection.query_one(statement, &[subscriber]).await?;
                Ok(Ended::Done)
            }
            Operation::GetNewDestination {
                subscriber,
                facility,
                start,
                end,
            } => {
                let statement = &self.get_destination;
                let rows = connection
                    .query(statement, &[subscriber, facility, start, end])
                    .await?;
                Ok(ended(!rows.is_empty(), NO_DESTINATION))
            }
            Operation::GetAccessData { subscriber, access } => {
                let statement = &self.get_access;
                let row = connection
                    .query_opt(statement, &[subscriber, access])
                    .await?;
                Ok(ended(row.is_some(), NO_ACCESS))
            }
            Operation::UpdateSubscriberData {
                subscriber,
                facility,
                bit,
                data,
            } => {
                connection.batch_execute("BEGIN").await?;
                let bits = connection
                    .execute(&self.update_bit, &[subscriber, bit])
                    .await?;
                if bits != 1 {
                    return Err(format!("subscriber {subscriber} is there {bits} times").into());
                }
                let facilities = connection
                    .execute(&self.update_facility, &[subscriber, facility, data])
                    .await?;
                end(connection, facilities == 1, NO_FACILITY).await
            }
            Operation::UpdateLocation { number, location } => {
                let statement = &self.update_location;
                match connection.execute(statement, &[number, location]).await? {
                    1 => Ok(Ended::Done),
                    rows => Err(format!("{rows} subscribers have the number {number}").into()),
                }
            }
            Operation::InsertCallForwarding {
                number,
                facility,
                start,
                end: until,
                to,
            } => {
                connection.batch_execute("BEGIN").await?;
                let row = connection.query_one(&self.subscriber_of, &[number]).await?;
                let subscriber: i32 = row.try_get(0)?;
                let rows = connection.query(&self.facilities, &[&subscriber]).await?;
                let is_it = |row: &tokio_postgres::Row| row.try_get::<_, i16>(0);
                if !rows.iter().any(|row| is_it(row).ok() == Some(*facility)) {
                    return end(connection, false, NO_FACILITY).await;
                }
                connection
                    .execute(&self.insert, &[&subscriber, facility, start, until, to])
                    .await?;
                end(connection, true, NO_FACILITY).await
            }
            Operation::DeleteCallForwarding {
                number,
                facility,
                start,
            } => {
                connection.batch_execute("BEGIN").await?;
                let row = connection.query_one(&self.subscriber_of, &[number]).await?;
                let subscriber: i32 = row.try_get(0)?;
                let rows = connection
                    .execute(&self.delete, &[&subscriber, facility, start])
                    .await?;
                end(connection, rows == 1, NO_FORWARDING).await
            }
        }
    }
}

/// Commits, or rolls back what has failed as expected.
async fn end(connection: &Client, commit: bool, failure: &'static str) -> Result<Ended> {
    let statement = if commit { "COMMIT" } else { "ROLLBACK" };
    connection.batch_execute(statement).await?;
    Ok(match commit {
        true => Ended::Done,
        false => Ended::Expected(failure),
    })
}
