//! Which function or operator a name and the types of its arguments mean
//! (PostgreSQL's parse_func.c and parse_oper.c).

use super::coerce::{can_coerce, common_of_types, is_polymorphic};
use crate::casts::Context;
use crate::error::{QueryError, Result};
use crate::functions::{self, Function};
use crate::operators::{self, Operator};
use crate::types::domain::base;
use crate::types::user::Class;
use crate::types::{self, format_type, ids, range};

/// A function that takes the arguments.
pub(super) struct Choice {
    pub(super) function: &'static Function,
    /// The types that the arguments are to have, one for each given or defaulted argument.
    pub(super) declared: Vec<u32>,
    /// So many of the last given arguments become the variadic array; 0 if it is given as one, or there is none.
    pub(super) gathered: usize,
    /// The given argument for each of the function's, `None` for a default.
    pub(super) places: Vec<Option<usize>>,
}

/// What was found for a call.
pub(super) enum Found {
    Function(Choice),
    /// The name is a type's: a cast.
    Cast(u32),
    /// The names match, none of the types do, or several.
    None {
        ambiguous: bool,
        exists: bool,
    },
}

struct Candidate {
    function: &'static Function,
    types: Vec<u32>,
    gathered: usize,
    places: Vec<Option<usize>>,
    defaults: usize,
}

/// Finds the function that a call means. `names` are of named arguments, which come last.
pub(super) fn function(
    name: &str,
    arguments: &[u32],
    names: &[&str],
    variadic: bool,
    is_literal: bool,
) -> Found {
    let candidates = candidates(name, arguments.len(), names, variadic);
    let given = arguments;
    let arguments: &[u32] = &given.iter().map(|oid| base(*oid)).collect::<Vec<_>>();
    // An exact match first.
    let exact = |candidate: &&Candidate| candidate.types == arguments;
    if let Some(candidate) = best_exact(candidates.iter().filter(exact)) {
        return Found::Function(choice(candidate));
    }
    // A function of one argument whose name is a type's is a cast, if it is one of the simple kind.
    if arguments.len() == 1
        && names.is_empty()
        && let Some(target) = types::oid_named(name)
    {
        let source = arguments[0];
        let simple = if source == ids::UNKNOWN {
            is_literal
        } else {
            matches!(
                super::coerce::path(source, target, Context::Explicit),
                Some(super::coerce::Path::Relabel | super::coerce::Path::Same)
            ) || matches!(
                super::coerce::path(source, target, Context::Explicit),
                Some(super::coerce::Path::Text)
            ) && types::category(target) == b'S'
                && source != ids::RECORD
        };
        if simple {
            return Found::Cast(target);
        }
    }
    let exists = !functions::named(name).is_empty();
    let fitting: Vec<&Candidate> = candidates
        .iter()
        .filter(|candidate| can_coerce(given, &candidate.types, Context::Implicit))
        .collect();
    match fitting.as_slice() {
        [] => Found::None {
            ambiguous: false,
            exists,
        },
        [one] => Found::Function(choice(one)),
        several => {
            let types: Vec<&[u32]> = several.iter().map(|one| one.types.as_slice()).collect();
            match select(arguments, &types) {
                Some(at) => Found::Function(choice(several[at])),
                None => {
                    // Of two that differ only by what they gather or default, the plainer one.
                    let plain: Vec<&&Candidate> = several
                        .iter()
                        .filter(|one| one.gathered == 0 && one.defaults == 0)
                        .collect();
                    match plain.as_slice() {
                        [one] => Found::Function(choice(one)),
                        _ => Found::None {
                            ambiguous: true,
                            exists,
                        },
                    }
                }
            }
        }
    }
}

fn best_exact<'c>(candidates: impl Iterator<Item = &'c Candidate>) -> Option<&'c Candidate> {
    candidates.min_by_key(|candidate| (candidate.gathered, candidate.defaults))
}

fn choice(candidate: &Candidate) -> Choice {
    Choice {
        function: candidate.function,
        declared: candidate.types.clone(),
        gathered: candidate.gathered,
        places: candidate.places.clone(),
    }
}

fn candidates(name: &str, count: usize, names: &[&str], variadic: bool) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for function in functions::named(name) {
        let wanted = function.arguments.len();
        if !names.is_empty() {
            if let Some(candidate) = by_names(function, count, names) {
                candidates.push(candidate);
            }
            continue;
        }
        if count <= wanted && count + function.optional >= wanted {
            // As declared: the last argument of a variadic function is its array only when that is said,
            // or when it takes anything.
            let as_declared = function.variadic == 0 || variadic;
            if as_declared {
                candidates.push(Candidate {
                    function,
                    types: function.arguments[..count].to_vec(),
                    gathered: 0,
                    places: (0..wanted).map(|at| (at < count).then_some(at)).collect(),
                    defaults: wanted - count,
                });
            }
        }
        if function.variadic != 0 && !variadic && count >= wanted {
            let gathered = count - wanted + 1;
            let mut types = function.arguments[..wanted - 1].to_vec();
            types.extend(std::iter::repeat_n(function.variadic, gathered));
            candidates.push(Candidate {
                function,
                types,
                gathered,
                places: (0..count).map(Some).collect(),
                defaults: 0,
            });
        }
    }
    // The same types twice: the one that gathers less.
    let mut kept: Vec<Candidate> = Vec::new();
    for candidate in candidates {
        match kept.iter_mut().find(|one| one.types == candidate.types) {
            Some(one)
                if candidate.gathered < one.gathered
                    || candidate.gathered == one.gathered && candidate.defaults < one.defaults =>
            {
                *one = candidate
            }
            Some(_) => {}
            None => kept.push(candidate),
        }
    }
    kept
}

fn by_names(function: &'static Function, count: usize, names: &[&str]) -> Option<Candidate> {
    let wanted = function.arguments.len();
    let positional = count - names.len();
    if count > wanted || function.argument_names.is_empty() {
        return None;
    }
    let mut places: Vec<Option<usize>> = (0..wanted)
        .map(|at| (at < positional).then_some(at))
        .collect();
    let mut types: Vec<u32> = function.arguments[..positional].to_vec();
    for (at, name) in names.iter().enumerate() {
        let place = function.argument_names.iter().position(|one| one == name)?;
        if places.get(place)?.is_some() {
            return None;
        }
        places[place] = Some(positional + at);
        types.push(function.arguments[place]);
    }
    let defaults = wanted - count;
    let required = wanted - function.optional;
    if places[..required].iter().any(Option::is_none) {
        return None;
    }
    Some(Candidate {
        function,
        types,
        gathered: 0,
        places,
        defaults,
    })
}

/// The best of several lists of types for arguments of these types, `None` if it is not one
/// (PostgreSQL's func_select_candidate).
pub(super) fn select(arguments: &[u32], candidates: &[&[u32]]) -> Option<usize> {
    let known = arguments.iter().filter(|oid| **oid != ids::UNKNOWN).count();
    let mut left: Vec<usize> = (0..candidates.len()).collect();
    keep_best(&mut left, |at| {
        matches_of(arguments, candidates[at], |argument, declared| {
            argument == declared
        })
    });
    if left.len() == 1 {
        return Some(left[0]);
    }
    keep_best(&mut left, |at| {
        matches_of(arguments, candidates[at], |argument, declared| {
            argument == declared
                || types::is_preferred(declared)
                    && types::category(declared) == types::category(argument)
        })
    });
    if left.len() == 1 {
        return Some(left[0]);
    }
    if known == arguments.len() {
        return None;
    }
    // Literals of unknown type: by the category that the candidates agree on, texts first.
    let mut categories = vec![0_u8; arguments.len()];
    let mut preferred = vec![false; arguments.len()];
    let mut resolved = true;
    for (position, argument) in arguments.iter().enumerate() {
        if *argument != ids::UNKNOWN {
            continue;
        }
        let mut agreed = None;
        let mut conflict = false;
        for at in &left {
            let declared = candidates[*at][position];
            let category = types::category(declared);
            match agreed {
                None => {
                    agreed = Some(category);
                    preferred[position] = types::is_preferred(declared);
                }
                Some(before) if before == category => {
                    preferred[position] |= types::is_preferred(declared);
                }
                // Texts win over everything else.
                Some(_) if category == b'S' => {
                    agreed = Some(category);
                    preferred[position] = types::is_preferred(declared);
                    conflict = false;
                }
                Some(b'S') => {}
                Some(_) => conflict = true,
            }
        }
        if conflict {
            resolved = false;
            break;
        }
        categories[position] = agreed.unwrap_or(0);
    }
    if resolved {
        let fits = |at: &usize| {
            arguments.iter().enumerate().all(|(position, argument)| {
                if *argument != ids::UNKNOWN {
                    return true;
                }
                let declared = candidates[*at][position];
                types::category(declared) == categories[position]
                    && (!preferred[position] || types::is_preferred(declared))
            })
        };
        let kept: Vec<usize> = left.iter().copied().filter(|at| fits(at)).collect();
        if !kept.is_empty() {
            left = kept;
        }
        if left.len() == 1 {
            return Some(left[0]);
        }
    }
    // All known arguments of one type: the unknown ones are of it, too.
    if known > 0 {
        let mut types_known = arguments.iter().filter(|oid| **oid != ids::UNKNOWN);
        let first = *types_known.next()?;
        if types_known.all(|oid| *oid == first) {
            let all = vec![first; arguments.len()];
            let fitting: Vec<usize> = left
                .iter()
                .copied()
                .filter(|at| can_coerce(&all, candidates[*at], Context::Implicit))
                .collect();
            if let [one] = fitting.as_slice() {
                return Some(*one);
            }
        }
    }
    None
}

fn matches_of(arguments: &[u32], declared: &[u32], hit: impl Fn(u32, u32) -> bool) -> usize {
    arguments
        .iter()
        .zip(declared)
        .filter(|(argument, declared)| **argument != ids::UNKNOWN && hit(**argument, **declared))
        .count()
}

fn keep_best(left: &mut Vec<usize>, score: impl Fn(usize) -> usize) {
    let best = left.iter().map(|at| score(*at)).max().unwrap_or(0);
    left.retain(|at| score(*at) == best);
}

/// What the polymorphic types of a signature stand for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Generic {
    element: u32,
    array: u32,
    range: u32,
    compatible: u32,
}

/// What `anyelement` and the like stand for, given the arguments' types; `None` if they don't agree.
pub(super) fn generic_types(declared: &[u32], arguments: &[u32]) -> Option<Generic> {
    let mut generic = Generic::default();
    let mut compatible = Vec::new();
    let mut compatible_mentioned = false;
    let mut non_array = false;
    for (declared, argument) in declared.iter().zip(arguments) {
        match *declared {
            ids::ANYELEMENT | ids::ANYNONARRAY | ids::ANYENUM => {
                non_array |= *declared == ids::ANYNONARRAY;
                if *argument == ids::UNKNOWN {
                    continue;
                }
                let is_enum = Class::of(base(*argument)) == Some(Class::Enum);
                if *declared == ids::ANYENUM && !is_enum
                    || generic.element != 0 && generic.element != *argument
                {
                    return None;
                }
                generic.element = *argument;
            }
            ids::ANYARRAY => {
                if *argument == ids::UNKNOWN {
                    continue;
                }
                let array = base(*argument);
                if generic.array != 0 && generic.array != array {
                    return None;
                }
                generic.array = array;
            }
            ids::ANYRANGE => {
                if *argument == ids::UNKNOWN {
                    continue;
                }
                let range = base(*argument);
                if generic.range != 0 && generic.range != range {
                    return None;
                }
                generic.range = range;
            }
            ids::ANYCOMPATIBLE | ids::ANYCOMPATIBLENONARRAY => {
                compatible_mentioned = true;
                non_array |= *declared == ids::ANYCOMPATIBLENONARRAY;
                if *argument != ids::UNKNOWN {
                    compatible.push(*argument);
                }
            }
            ids::ANYCOMPATIBLEARRAY => {
                compatible_mentioned = true;
                if *argument != ids::UNKNOWN {
                    compatible.push(element_type(*argument)?);
                }
            }
            _ => {}
        }
    }
    if generic.array != 0 {
        let element = element_type(generic.array)?;
        if generic.element != 0 && generic.element != element {
            return None;
        }
        generic.element = element;
    }
    if generic.range != 0 {
        let element = range::element_of(generic.range)?;
        if generic.element != 0 && generic.element != element {
            return None;
        }
        generic.element = element;
    }
    if generic.element != 0 && generic.array == 0 {
        generic.array = types::array_of(generic.element);
    }
    if compatible_mentioned {
        generic.compatible = match compatible.as_slice() {
            [] => ids::TEXT,
            some => common_of_types(some)?,
        };
    }
    if non_array && types::element_of(generic.element).is_some() {
        return None;
    }
    Some(generic)
}

/// The type of an array's elements, of vectors, too.
pub(super) fn element_type(array: u32) -> Option<u32> {
    let array = base(array);
    if let Some(element) = types::element_of(array) {
        return Some(element);
    }
    match array {
        ids::INT2VECTOR => Some(ids::INT2),
        ids::OIDVECTOR => Some(ids::OID),
        _ => None,
    }
}

impl Generic {
    /// What a declared type stands for; `argument` is what was given there.
    ///
    /// # Errors
    /// 42804 where nothing but literals says it.
    pub(super) fn actual(&self, declared: u32, argument: u32) -> Result<u32> {
        Ok(match declared {
            ids::ANYELEMENT | ids::ANYNONARRAY | ids::ANYENUM if self.element != 0 => self.element,
            ids::ANYARRAY if self.array != 0 => self.array,
            ids::ANYRANGE if self.range != 0 => self.range,
            ids::ANYCOMPATIBLE | ids::ANYCOMPATIBLENONARRAY => self.compatible,
            ids::ANYARRAY if self.element != 0 => return Err(without_array(self.element)),
            ids::ANYCOMPATIBLEARRAY => match types::array_of(self.compatible) {
                0 => return Err(without_array(self.compatible)),
                array => array,
            },
            _ if is_polymorphic(declared) && argument == ids::UNKNOWN => return Err(undetermined()),
            _ if is_polymorphic(declared) => argument,
            _ => declared,
        })
    }

    /// What the declared result stands for.
    pub(super) fn result(&self, declared: u32) -> Result<u32> {
        let actual = match declared {
            ids::ANYELEMENT | ids::ANYNONARRAY | ids::ANYENUM => self.element,
            ids::ANYARRAY => self.array,
            ids::ANYRANGE => self.range,
            ids::ANYCOMPATIBLE | ids::ANYCOMPATIBLENONARRAY => self.compatible,
            ids::ANYCOMPATIBLEARRAY => types::array_of(self.compatible),
            other => other,
        };
        match (actual, declared) {
            (0, ids::ANYARRAY) if self.element != 0 => Err(without_array(self.element)),
            (0, ids::ANYCOMPATIBLEARRAY) => Err(without_array(self.compatible)),
            (0, _) => Err(undetermined()),
            (actual, _) => Ok(actual),
        }
    }
}

#[cold]
fn without_array(element: u32) -> QueryError {
    let shown = types::format_type(element, -1);
    QueryError::new(
        "42704",
        format!("could not find array type for data type {shown}"),
    )
}

#[cold]
fn undetermined() -> QueryError {
    QueryError::new(
        "42804",
        "could not determine polymorphic type because input has type unknown",
    )
}

/// What was found for an operator.
pub(super) enum FoundOperator {
    One(&'static Operator),
    None,
    Ambiguous,
}

/// The operator that a sign means between these types (0: no left operand).
pub(super) fn operator(name: &str, left: u32, right: u32) -> FoundOperator {
    let (left, right) = (base(left), base(right));
    let rows = operators::named(name);
    let prefix = left == 0;
    let rows: Vec<&'static Operator> = rows
        .iter()
        .copied()
        .filter(|row| (row.left == 0) == prefix)
        .collect();
    // A literal beside a known type is of that type, if there is such an operator.
    let (mut exact_left, mut exact_right) = (left, right);
    if !prefix {
        if left == ids::UNKNOWN && right != ids::UNKNOWN {
            exact_left = right;
        } else if right == ids::UNKNOWN && left != ids::UNKNOWN {
            exact_right = left;
        }
    }
    if let Some(row) = rows
        .iter()
        .find(|row| row.left == exact_left && row.right == exact_right)
    {
        return FoundOperator::One(row);
    }
    let arguments: Vec<u32> = match prefix {
        true => vec![right],
        false => vec![left, right],
    };
    let types_of = |row: &Operator| match prefix {
        true => vec![row.right],
        false => vec![row.left, row.right],
    };
    let fitting: Vec<(&'static Operator, Vec<u32>)> = rows
        .into_iter()
        .map(|row| (row, types_of(row)))
        .filter(|(_, declared)| can_coerce(&arguments, declared, Context::Implicit))
        .collect();
    match fitting.as_slice() {
        [] => FoundOperator::None,
        [one] => FoundOperator::One(one.0),
        several => {
            let types: Vec<&[u32]> = several.iter().map(|one| one.1.as_slice()).collect();
            match select(&arguments, &types) {
                Some(at) => FoundOperator::One(several[at].0),
                None => FoundOperator::Ambiguous,
            }
        }
    }
}

/// A call as errors show it: `f(integer, unknown)`.
pub(super) fn shown_call(name: &str, arguments: &[u32], names: &[&str]) -> String {
    let positional = arguments.len() - names.len();
    let shown: Vec<String> = arguments
        .iter()
        .enumerate()
        .map(|(at, oid)| match at.checked_sub(positional) {
            Some(named) => format!("{} => {}", names[named], format_type(*oid, -1)),
            None => format_type(*oid, -1),
        })
        .collect();
    format!("{name}({})", shown.join(", "))
}
