//! The six transactions over the wire. Each begins by looking its customers up.

use tokio_postgres::{Client, Statement};

use super::draw::Operation;
use super::{CHECK, DEPOSIT, OVERDRAWN, PENALTY, SENT, TOO_LITTLE, WITHDRAWAL};
use crate::Result;
use crate::workload::Ended;

/// What a connection has prepared.
pub struct Statements {
    look_up: Statement,
    savings: Statement,
    checking: Statement,
    set_savings: Statement,
    set_checking: Statement,
    add_savings: Statement,
    add_checking: Statement,
}

impl Statements {
    /// Prepares all.
    pub(super) async fn prepare(connection: &Client) -> Result<Self> {
        let prepare = async |sql: &str| connection.prepare(sql).await;
        Ok(Statements {
            look_up: prepare("SELECT name FROM accounts WHERE custid = $1").await?,
            savings: prepare("SELECT bal FROM savings WHERE custid = $1").await?,
            checking: prepare("SELECT bal FROM checking WHERE custid = $1").await?,
            set_savings: prepare("UPDATE savings SET bal = $2 WHERE custid = $1").await?,
            set_checking: prepare("UPDATE checking SET bal = $2 WHERE custid = $1").await?,
            add_savings: prepare("UPDATE savings SET bal = bal + $2 WHERE custid = $1").await?,
            add_checking: prepare("UPDATE checking SET bal = bal + $2 WHERE custid = $1").await?,
        })
    }

    /// Carries out an operation.
    pub(super) async fn execute(
        &self,
        connection: &Client,
        operation: &Operation,
    ) -> Result<Ended> {
        connection.batch_execute("BEGIN").await?;
        let on = On(connection);
        let (commit, ended) = match *operation {
            Operation::Amalgamate { from, to } => {
                on.look_up(self, &[from, to]).await?;
                let savings = on.balance(&self.savings, from).await?;
                let checking = on.balance(&self.checking, from).await?;
                on.change(&self.set_savings, from, 0).await?;
                on.change(&self.set_checking, from, 0).await?;
                on.change(&self.add_checking, to, savings + checking)
                    .await?;
                (true, Ended::Done)
            }
            Operation::Balance { customer } => {
                on.look_up(self, &[customer]).await?;
                on.balance(&self.savings, customer).await?;
                on.balance(&self.checking, customer).await?;
                (true, Ended::Done)
            }
            Operation::DepositChecking { customer } => {
                on.look_up(self, &[customer]).await?;
                on.change(&self.add_checking, customer, DEPOSIT).await?;
                (true, Ended::Done)
            }
            Operation::SendPayment { from, to } => {
                on.look_up(self, &[from, to]).await?;
                if on.balance(&self.checking, from).await? < SENT {
                    (false, Ended::Expected(TOO_LITTLE))
                } else {
                    on.change(&self.add_checking, from, -SENT).await?;
                    on.change(&self.add_checking, to, SENT).await?;
                    (true, Ended::Done)
                }
            }
            Operation::TransactSavings { customer } => {
                on.look_up(self, &[customer]).await?;
                if on.balance(&self.savings, customer).await? < WITHDRAWAL {
                    (false, Ended::Expected(TOO_LITTLE))
                } else {
                    on.change(&self.add_savings, customer, -WITHDRAWAL).await?;
                    (true, Ended::Done)
                }
            }
            Operation::WriteCheck { customer } => {
                on.look_up(self, &[customer]).await?;
                let savings = on.balance(&self.savings, customer).await?;
                let checking = on.balance(&self.checking, customer).await?;
                let (penalty, ended) = match savings + checking < CHECK {
                    true => (PENALTY, Ended::Expected(OVERDRAWN)),
                    false => (0, Ended::Done),
                };
                on.change(&self.add_checking, customer, -CHECK - penalty)
                    .await?;
                (true, ended)
            }
        };
        let end = if commit { "COMMIT" } else { "ROLLBACK" };
        connection.batch_execute(end).await?;
        Ok(ended)
    }
}

/// The connection.
struct On<'a>(&'a Client);

impl On<'_> {
    async fn look_up(&self, statements: &Statements, customers: &[i64]) -> Result<()> {
        for customer in customers {
            let found = self.0.query_opt(&statements.look_up, &[customer]).await?;
            found.ok_or_else(|| format!("customer {customer} is not there"))?;
        }
        Ok(())
    }

    async fn balance(&self, statement: &Statement, customer: i64) -> Result<i64> {
        let row = self.0.query_one(statement, &[&customer]).await?;
        Ok(row.try_get(0)?)
    }

    async fn change(&self, statement: &Statement, customer: i64, number: i64) -> Result<()> {
        match self.0.execute(statement, &[&customer, &number]).await? {
            1 => Ok(()),
            rows => Err(format!("customer {customer} has {rows} balances").into()),
        }
    }
}
