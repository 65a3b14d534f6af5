//! Automata of patterns' pieces, over colours: all characters that no set of
//! a pattern tells apart have the same one.

use std::collections::{BTreeSet, HashMap};

use super::lex::{Fault, TOO_BIG};
use super::parse::{Id, Parsed, Piece, Side, UNBOUNDED};
use super::set::{CHAR_MAX, Set};

/// A colour.
pub(super) type Color = u16;

/// The colours of all characters, and of what colours sets are.
#[derive(Debug)]
pub(super) struct Colors {
    ascii: [Color; 128],
    /// Where each run of one colour begins.
    starts: Vec<(u32, Color)>,
    /// How many there are.
    pub(super) count: usize,
    /// The colours of each set, in order.
    members: Vec<Vec<Color>>,
}

impl Colors {
    pub(super) fn new(sets: &[Set]) -> Result<Self, Fault> {
        let mut events = Vec::new();
        for (number, set) in sets.iter().enumerate() {
            for (first, last) in &set.0 {
                events.push((*first, number, true));
                events.push((last.saturating_add(1), number, false));
            }
        }
        events.sort_unstable();
        let mut colors: HashMap<Vec<usize>, Color> = HashMap::new();
        let mut active = BTreeSet::new();
        let mut starts = Vec::new();
        let mut at = 0;
        let mut next = events.iter().peekable();
        loop {
            while let Some((place, number, begins)) = next.next_if(|event| event.0 <= at) {
                debug_assert!(*place <= at, "events come in order");
                if *begins {
                    active.insert(*number);
                } else {
                    active.remove(number);
                }
            }
            let key: Vec<usize> = active.iter().copied().collect();
            let color = Color::try_from(colors.len()).map_err(|_| TOO_BIG)?;
            let color = *colors.entry(key).or_insert(color);
            starts.push((at, color));
            match next.peek() {
                Some((place, ..)) if *place <= CHAR_MAX => at = *place,
                _ => break,
            }
        }
        let mut members = vec![Vec::new(); sets.len()];
        for (key, color) in &colors {
            for set in key {
                members[*set].push(*color);
            }
        }
        for colors in &mut members {
            colors.sort_unstable();
        }
        let mut colors = Self {
            ascii: [0; 128],
            starts,
            count: colors.len(),
            members,
        };
        for c in 0..128_u8 {
            colors.ascii[usize::from(c)] = colors.search(u32::from(c));
        }
        Ok(colors)
    }

    fn search(&self, c: u32) -> Color {
        let after = self.starts.partition_point(|(start, _)| *start <= c);
        let run = self.starts.get(after.saturating_sub(1));
        run.map_or(0, |(_, color)| *color)
    }

    #[inline]
    pub(super) fn of(&self, c: char) -> Color {
        let number = u32::from(c);
        match usize::try_from(number) {
            Ok(at) if at < 128 => self.ascii[at],
            _ => self.search(number),
        }
    }

    #[inline]
    pub(super) fn contains(&self, set: usize, color: Color) -> bool {
        self.members[set].binary_search(&color).is_ok()
    }

    /// Whether a side of a place is so; `None` is the text's end.
    pub(super) fn is_side(&self, side: Side, color: Option<Color>) -> bool {
        color.map_or(side.end, |color| self.contains(side.set, color))
    }
}

/// A state's number.
pub(super) type StateId = u32;

/// A state of an automaton.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// Takes a character of the set.
    Set(usize, StateId),
    /// Takes any character.
    Any(StateId),
    /// Goes on in both ways.
    Split(StateId, StateId),
    /// Goes on if this is before and that after here.
    Assert(Option<Side>, Option<Side>, StateId),
    /// Goes on if a pattern of its own says so.
    Look(usize, StateId),
    /// The end.
    Accept,
    /// Leads nowhere.
    Fail,
}

/// An automaton.
#[derive(Clone, Debug)]
pub(super) struct Nfa {
    pub(super) states: Vec<State>,
    pub(super) start: StateId,
    /// Whether it asks for what is before a place.
    pub(super) looks_behind: bool,
}

/// So many states may one automaton have.
const STATES_MAX: usize = 100_000;

struct Builder<'a> {
    parsed: &'a Parsed,
    states: Vec<State>,
    looks_behind: bool,
}

/// The automaton of a piece; a search finds it anywhere.
pub(super) fn build(parsed: &Parsed, piece: Id, search: bool) -> Result<Nfa, Fault> {
    let mut builder = Builder {
        parsed,
        states: vec![State::Accept],
        looks_behind: false,
    };
    let mut start = builder.piece(piece, 0, true, 0)?;
    if search {
        let split = builder.push(State::Fail)?;
        let any = builder.push(State::Any(split))?;
        builder.put(split, State::Split(start, any));
        start = split;
    }
    Ok(Nfa {
        states: builder.states,
        start,
        looks_behind: builder.looks_behind,
    })
}

impl Builder<'_> {
    fn push(&mut self, state: State) -> Result<StateId, Fault> {
        if self.states.len() >= STATES_MAX {
            return Err(TOO_BIG);
        }
        let id = StateId::try_from(self.states.len()).map_err(|_| TOO_BIG)?;
        self.states.push(state);
        Ok(id)
    }

    fn put(&mut self, id: StateId, state: State) {
        if let Some(place) = usize::try_from(id)
            .ok()
            .and_then(|at| self.states.get_mut(at))
        {
            *place = state;
        }
    }

    /// The state where a piece begins that goes on at `next`. Constraints
    /// count only if `strict`.
    fn piece(
        &mut self,
        id: Id,
        next: StateId,
        strict: bool,
        depth: usize,
    ) -> Result<StateId, Fault> {
        if depth > 1500 {
            return Err(TOO_BIG);
        }
        let parsed = self.parsed;
        match &parsed.pieces[id] {
            Piece::Empty => Ok(next),
            Piece::Set(set) => self.push(State::Set(*set, next)),
            Piece::Assert(..) | Piece::Look(_) if !strict => Ok(next),
            Piece::Assert(before, after) => {
                self.looks_behind |= before.is_some();
                self.push(State::Assert(*before, *after, next))
            }
            Piece::Look(look) => self.push(State::Look(*look, next)),
            Piece::Sequence(pieces) => pieces.iter().rev().try_fold(next, |next, piece| {
                self.piece(*piece, next, strict, depth + 1)
            }),
            Piece::Choice(pieces) => {
                let mut start = None;
                for piece in pieces.iter().rev() {
                    let branch = self.piece(*piece, next, strict, depth + 1)?;
                    start = Some(match start {
                        None => branch,
                        Some(others) => self.push(State::Split(branch, others))?,
                    });
                }
                Ok(start.unwrap_or(next))
            }
            Piece::Repeat(piece, least, most) => {
                self.repeat(*piece, *least, *most, next, strict, depth + 1)
            }
            Piece::Reference(group) => {
                let group = usize::try_from(*group).ok();
                match group.and_then(|group| parsed.groups.get(group).copied().flatten()) {
                    Some(piece) => self.piece(piece, next, false, depth + 1),
                    None => self.push(State::Fail),
                }
            }
        }
    }

    fn repeat(
        &mut self,
        piece: Id,
        least: u32,
        most: u32,
        next: StateId,
        strict: bool,
        depth: usize,
    ) -> Result<StateId, Fault> {
        let mut start = next;
        let mut needed = least;
        if most == UNBOUNDED {
            let split = self.push(State::Fail)?;
            let body = self.piece(piece, split, strict, depth)?;
            self.put(split, State::Split(body, next));
            if least == 0 {
                return Ok(split);
            }
            start = body;
            needed = least - 1;
        } else {
            for _ in least..most {
                let body = self.piece(piece, start, strict, depth)?;
                start = self.push(State::Split(body, next))?;
            }
        }
        for _ in 0..needed {
            start = self.piece(piece, start, strict, depth)?;
        }
        Ok(start)
    }
}
