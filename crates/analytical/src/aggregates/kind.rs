//! What an aggregate is: a state of one group, and what is done with it.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, PrimitiveArray};
use datafusion::arrow::datatypes::ArrowPrimitiveType;
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};

/// An aggregate over one group.
pub trait Kind: Send + Sync + 'static {
    /// What it keeps of a group.
    type State: Send;
    /// The arguments of many rows.
    type Input;
    /// Whether states hold bytes beyond their own size.
    const HOLDS: bool = false;

    /// Reads the arguments.
    ///
    /// # Errors
    /// XX000 for arrays of another form.
    fn input(&self, arrays: &[ArrayRef]) -> Result<Self::Input>;

    /// A state that nothing came to.
    ///
    /// # Errors
    /// As the aggregate's.
    fn start(&self) -> Result<Self::State>;

    /// Takes a row. Where the aggregate is strict, none of its arguments is NULL.
    ///
    /// # Errors
    /// As the aggregate's in PostgreSQL.
    fn update(&self, state: &mut Self::State, input: &Self::Input, row: usize) -> Result<()>;

    /// Appends the state's bytes, for [`Self::merge`].
    ///
    /// # Errors
    /// XX000 for values without bytes.
    fn save(&self, state: &Self::State, out: &mut Vec<u8>) -> Result<()>;

    /// Takes what another state has taken.
    ///
    /// # Errors
    /// As the aggregate's in PostgreSQL.
    fn merge(&self, state: &mut Self::State, saved: &[u8]) -> Result<()>;

    /// The value over all that came.
    ///
    /// # Errors
    /// As the aggregate's in PostgreSQL.
    fn value(&self, state: &Self::State) -> Result<Datum>;

    /// The bytes that a state holds beyond its own size.
    fn bytes(&self, state: &Self::State) -> usize {
        let _ = state;
        0
    }
}

#[cold]
fn other_form() -> QueryError {
    QueryError::internal("an argument of another form")
}

/// An argument of one width.
pub(super) fn primitive<T: ArrowPrimitiveType>(
    arrays: &[ArrayRef],
    place: usize,
) -> Result<PrimitiveArray<T>> {
    let array = arrays.get(place).and_then(|array| array.as_primitive_opt());
    array.cloned().ok_or_else(other_form)
}

/// An argument of bytes.
pub(super) fn bytes_of(arrays: &[ArrayRef], place: usize) -> Result<BinaryViewArray> {
    let array = arrays.get(place);
    let array = array.and_then(|array| array.as_any().downcast_ref::<BinaryViewArray>());
    array.cloned().ok_or_else(other_form)
}

/// Bytes of saved states, from the front.
pub(super) struct Saved<'a>(pub &'a [u8]);

impl Saved<'_> {
    pub(super) fn word<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((word, rest)) = self.0.split_first_chunk() else {
            return Err(QueryError::internal("bytes that are no state"));
        };
        self.0 = rest;
        Ok(*word)
    }
}
