//! Which of a user's function's arguments each given one is.

use super::{Argument, SqlFunction};
use crate::types::domain::base;
use crate::types::{element_of, ids};

/// A function that takes what is given.
pub(super) struct Fitting<'f> {
    pub(super) function: &'f SqlFunction,
    /// The types of the arguments that are given.
    pub(super) types: Vec<u32>,
    /// Which of those each argument is; `None` for a default.
    pub(super) places: Vec<Option<usize>>,
    /// So many of the last are gathered in an array; 0 where it is given as one, or there is none.
    pub(super) gathered: usize,
}

/// The function, if it may take so many arguments, the last of which have these names. `is_array`: the last one
/// is said to be the array of a variadic function.
pub(super) fn fitting<'f>(
    function: &'f SqlFunction,
    count: usize,
    names: &[&str],
    is_array: bool,
) -> Option<Fitting<'f>> {
    let wanted = &function.arguments;
    if is_array && !function.variadic {
        return None;
    }
    if let (true, false, Some((last, before))) = (function.variadic, is_array, wanted.split_last())
    {
        let gathered = count.checked_sub(before.len())?;
        if gathered == 0 || !names.is_empty() {
            return None;
        }
        let element = match last.oid {
            ids::ANYARRAY => ids::ANYELEMENT,
            oid => element_of(base(oid))?,
        };
        let types = before.iter().map(|of| of.oid);
        return Some(Fitting {
            function,
            types: types
                .chain(std::iter::repeat_n(element, gathered))
                .collect(),
            places: (0..wanted.len()).map(Some).collect(),
            gathered,
        });
    }
    if count > wanted.len() {
        return None;
    }
    let positional = count - names.len();
    let mut places: Vec<Option<usize>> = (0..wanted.len())
        .map(|at| (at < positional).then_some(at))
        .collect();
    let mut types: Vec<u32> = wanted[..positional].iter().map(|of| of.oid).collect();
    for (at, name) in names.iter().enumerate() {
        let place = wanted
            .iter()
            .position(|of| of.name.as_deref() == Some(*name))?;
        if places[place].is_some() {
            return None;
        }
        places[place] = Some(positional + at);
        types.push(wanted[place].oid);
    }
    let has_value = |(argument, place): (&Argument, &Option<usize>)| {
        place.is_some() || argument.default.is_some()
    };
    let fits = wanted.iter().zip(&places).all(has_value);
    fits.then_some(Fitting {
        function,
        types,
        places,
        gathered: 0,
    })
}
