//! Running automata: their sets of states are made as texts need them. Only
//! what comes after a place tells whether a match ends there, so that each
//! step takes the next character's colour and tells about the place before it.

use std::collections::HashMap;
use std::rc::Rc;

use super::nfa::{Color, Colors, Nfa, State, StateId};
use crate::call::Call;
use crate::error::Result;

/// A text to be matched: its characters' colours, and the characters where they are asked for.
#[derive(Debug, Default)]
pub(super) struct Subject {
    pub(super) colors: Vec<Color>,
    pub(super) characters: Vec<char>,
}

/// The number of a set of states that are reached together.
type Reached = u32;

/// Nothing leads on from here.
const DEAD: Reached = 0;
/// A step that has not been made.
const UNKNOWN: u32 = u32::MAX;
/// So many steps are kept; then they are made anew.
const STEPS_MAX: usize = 1 << 18;
/// So many states do the sets have that are kept.
const STATES_MAX: usize = 1 << 20;
/// After so many characters it is asked whether to go on.
const CHECK_EVERY: usize = 1 << 16;

/// The states that are reached, and the colour of the last character if that counts.
type Key = (Box<[StateId]>, Option<Color>);

/// An automaton and what is known of its steps.
#[derive(Debug)]
pub(super) struct Dfa {
    nfa: Rc<Nfa>,
    /// Steps per set of states: one a colour, one for the text's end.
    width: usize,
    known: HashMap<Key, Reached>,
    reached: Vec<Key>,
    /// Twice the set of states that a step leads to, and one if a match ends before it.
    steps: Vec<u32>,
    /// Whether nothing but the search's beginning is reached.
    idle: Vec<bool>,
    marks: Vec<bool>,
    /// How many states the sets have.
    held: usize,
    /// Of a pattern that looks behind: how far it has been run.
    behind: Option<(usize, Reached)>,
}

/// What one step gives.
struct Step {
    to: Reached,
    /// Whether a match ends before it.
    ends: bool,
}

impl Dfa {
    fn new(nfa: Nfa, colors: usize) -> Self {
        let marks = vec![false; nfa.states.len()];
        let mut dfa = Self {
            nfa: Rc::new(nfa),
            width: colors + 1,
            known: HashMap::new(),
            reached: Vec::new(),
            steps: Vec::new(),
            idle: Vec::new(),
            marks,
            held: 0,
            behind: None,
        };
        dfa.forget();
        dfa
    }

    fn forget(&mut self) {
        self.known.clear();
        self.reached.clear();
        self.steps.clear();
        self.idle.clear();
        self.held = 0;
        self.behind = None;
        self.add((Box::default(), None));
    }

    fn add(&mut self, key: Key) -> Reached {
        let number = Reached::try_from(self.reached.len()).unwrap_or(DEAD);
        self.idle.push(*key.0 == [self.nfa.start]);
        self.held += key.0.len();
        self.reached.push(key.clone());
        self.known.insert(key, number);
        self.steps.resize(self.steps.len() + self.width, UNKNOWN);
        number
    }

    fn reach(&mut self, states: Vec<StateId>, before: Option<Color>) -> Reached {
        if states.is_empty() {
            return DEAD;
        }
        let before = if self.nfa.looks_behind { before } else { None };
        let key = (states.into_boxed_slice(), before);
        if let Some(number) = self.known.get(&key) {
            return *number;
        }
        self.add(key)
    }

    fn start(&mut self, before: Option<Color>) -> Reached {
        let start = self.nfa.start;
        self.reach(vec![start], before)
    }

    #[inline]
    fn known_step(&self, from: Reached, column: usize) -> u32 {
        let row = usize::try_from(from).unwrap_or(0);
        self.steps[row * self.width + column]
    }
}

/// All automata of a pattern, by number.
#[derive(Debug, Default)]
pub(super) struct Machine {
    dfas: Vec<Dfa>,
    /// The automaton of each pattern that looks around, and whether it looks ahead and not.
    pub(super) looks: Vec<(usize, bool, bool)>,
}

/// The states that are to be looked at, and those that a step leads to.
struct Walk {
    stack: Vec<StateId>,
    next: Vec<StateId>,
    ends: bool,
    /// What it gave depends on more than colours.
    by_place: bool,
}

impl Machine {
    pub(super) fn add(&mut self, nfa: Nfa, colors: usize) -> usize {
        self.dfas.push(Dfa::new(nfa, colors));
        self.dfas.len() - 1
    }

    /// Whether a pattern that looks around says yes.
    fn look(
        &mut self,
        call: &Call<'_>,
        colors: &Colors,
        subject: &Subject,
        look: usize,
        at: usize,
    ) -> Result<bool> {
        let (dfa, ahead, negative) = self.looks[look];
        let end = subject.colors.len();
        let found = if ahead {
            self.shortest(call, colors, subject, dfa, at, at, end)?
                .is_some()
        } else {
            self.ends_at(call, colors, subject, dfa, at)?
        };
        Ok(found != negative)
    }

    /// Whether a search's match ends at a place. Places that only grow cost little.
    fn ends_at(
        &mut self,
        call: &Call<'_>,
        colors: &Colors,
        subject: &Subject,
        dfa: usize,
        place: usize,
    ) -> Result<bool> {
        let (mut at, mut state) = match self.dfas[dfa].behind {
            Some((at, state)) if at <= place => (at, state),
            _ => (0, self.dfas[dfa].start(None)),
        };
        while at < place && state != DEAD {
            state = self.step(call, colors, subject, dfa, state, at)?.to;
            at += 1;
        }
        if state == DEAD {
            return Ok(false);
        }
        // Making this step may forget all others, and with them the state.
        let kept = self.dfas[dfa].reached.len();
        let step = self.step(call, colors, subject, dfa, state, place)?;
        let same = self.dfas[dfa].reached.len() >= kept;
        self.dfas[dfa].behind = same.then_some((place, state));
        Ok(step.ends)
    }

    /// The step over the character at a place, or over the text's end.
    #[inline]
    fn step(
        &mut self,
        call: &Call<'_>,
        colors: &Colors,
        subject: &Subject,
        dfa: usize,
        from: Reached,
        at: usize,
    ) -> Result<Step> {
        let color = subject.colors.get(at).copied();
        let column = color.map_or(colors.count, usize::from);
        let known = self.dfas[dfa].known_step(from, column);
        if known != UNKNOWN {
            return Ok(Step {
                to: known >> 1,
                ends: known & 1 == 1,
            });
        }
        self.make_step(call, colors, subject, dfa, from, at)
    }

    #[cold]
    fn make_step(
        &mut self,
        call: &Call<'_>,
        colors: &Colors,
        subject: &Subject,
        dfa: usize,
        from: Reached,
        at: usize,
    ) -> Result<Step> {
        let after = subject.colors.get(at).copied();
        let nfa = Rc::clone(&self.dfas[dfa].nfa);
        let (states, before) = self.dfas[dfa].reached[usize::try_from(from).unwrap_or(0)].clone();
        let mut walk = Walk {
            stack: states.to_vec(),
            next: Vec::new(),
            ends: false,
            by_place: false,
        };
        let mut marks = std::mem::take(&mut self.dfas[dfa].marks);
        let mut marked = Vec::new();
        while let Some(id) = walk.stack.pop() {
            let index = usize::try_from(id).unwrap_or(0);
            if std::mem::replace(&mut marks[index], true) {
                continue;
            }
            marked.push(index);
            match nfa.states[index] {
                State::Set(set, to) => {
                    if after.is_some_and(|color| colors.contains(set, color)) {
                        walk.next.push(to);
                    }
                }
                State::Any(to) => {
                    if after.is_some() {
                        walk.next.push(to);
                    }
                }
                State::Split(one, other) => walk.stack.extend([other, one]),
                State::Assert(left, right, to) => {
                    let holds = left.is_none_or(|side| colors.is_side(side, before))
                        && right.is_none_or(|side| colors.is_side(side, after));
                    if holds {
                        walk.stack.push(to);
                    }
                }
                State::Look(look, to) => {
                    walk.by_place = true;
                    match self.look(call, colors, subject, look, at) {
                        Ok(true) => walk.stack.push(to),
                        Ok(false) => {}
                        Err(error) => {
                            self.dfas[dfa].marks = vec![false; nfa.states.len()];
                            return Err(error);
                        }
                    }
                }
                State::Accept => walk.ends = true,
                State::Fail => {}
            }
        }
        for index in marked {
            marks[index] = false;
        }
        let dfa = &mut self.dfas[dfa];
        dfa.marks = marks;
        walk.next.sort_unstable();
        walk.next.dedup();
        if dfa.steps.len() > STEPS_MAX || dfa.held > STATES_MAX {
            dfa.forget();
            let to = dfa.reach(walk.next, after);
            return Ok(Step {
                to,
                ends: walk.ends,
            });
        }
        let to = dfa.reach(walk.next, after);
        if !walk.by_place {
            let column = after.map_or(colors.count, usize::from);
            let row = usize::try_from(from).unwrap_or(0);
            dfa.steps[row * dfa.width + column] = to << 1 | u32::from(walk.ends);
        }
        Ok(Step {
            to,
            ends: walk.ends,
        })
    }

    fn begin(&mut self, subject: &Subject, dfa: usize, at: usize) -> Reached {
        let before = at.checked_sub(1).and_then(|at| subject.colors.get(at));
        self.dfas[dfa].start(before.copied())
    }

    /// The end of the longest match from `start` that ends at `stop` at most.
    pub(super) fn longest(
        &mut self,
        call: &Call<'_>,
        colors: &Colors,
        subject: &Subject,
        dfa: usize,
        start: usize,
        stop: usize,
    ) -> Result<Option<usize>> {
        let mut state = self.begin(subject, dfa, start);
        let (mut at, mut found) = (start, None);
        loop {
            let step = self.step(call, colors, subject, dfa, state, at)?;
            if step.ends {
                found = Some(at);
            }
            if step.to == DEAD || at >= stop {
                return Ok(found);
            }
            state = step.to;
            at += 1;
            if at.is_multiple_of(CHECK_EVERY) {
                call.environment.check_interrupted()?;
            }
        }
    }

    /// The end of the shortest match from `start` that ends from `least` to `most`.
    #[expect(clippy::too_many_arguments, reason = "a text and three places in it")]
    pub(super) fn shortest(
        &mut self,
        call: &Call<'_>,
        colors: &Colors,
        subject: &Subject,
        dfa: usize,
        start: usize,
        least: usize,
        most: usize,
    ) -> Result<Option<usize>> {
        let mut state = self.begin(subject, dfa, start);
        let mut at = start;
        loop {
            let step = self.step(call, colors, subject, dfa, state, at)?;
            if step.ends && at >= least {
                return Ok(Some(at));
            }
            if step.to == DEAD || at >= most {
                return Ok(None);
            }
            state = step.to;
            at += 1;
            if at.is_multiple_of(CHECK_EVERY) {
                call.environment.check_interrupted()?;
            }
        }
    }

    /// Where the first match that a search from `start` finds ends, and from where it may begin.
    pub(super) fn search(
        &mut self,
        call: &Call<'_>,
        colors: &Colors,
        subject: &Subject,
        dfa: usize,
        start: usize,
    ) -> Result<Option<(usize, usize)>> {
        let mut state = self.begin(subject, dfa, start);
        let (mut at, mut idle) = (start, start);
        loop {
            if self.dfas[dfa].idle[usize::try_from(state).unwrap_or(0)] {
                idle = at;
            }
            let step = self.step(call, colors, subject, dfa, state, at)?;
            if step.ends {
                return Ok(Some((idle, at)));
            }
            if step.to == DEAD || at >= subject.colors.len() {
                return Ok(None);
            }
            state = step.to;
            at += 1;
            if at.is_multiple_of(CHECK_EVERY) {
                call.environment.check_interrupted()?;
            }
        }
    }

    /// Whether a search finds anything in a text, which is read as it goes.
    /// Not for patterns that look around.
    pub(super) fn finds(
        &mut self,
        call: &Call<'_>,
        colors: &Colors,
        dfa: usize,
        text: &str,
    ) -> Result<bool> {
        let mut state = self.dfas[dfa].start(None);
        let mut one = Subject {
            colors: vec![0],
            characters: Vec::new(),
        };
        for (count, c) in text.chars().enumerate() {
            let color = colors.of(c);
            let known = self.dfas[dfa].known_step(state, usize::from(color));
            let step = if known == UNKNOWN {
                one.colors[0] = color;
                self.make_step(call, colors, &one, dfa, state, 0)?
            } else {
                Step {
                    to: known >> 1,
                    ends: known & 1 == 1,
                }
            };
            if step.ends {
                return Ok(true);
            }
            if step.to == DEAD {
                return Ok(false);
            }
            state = step.to;
            if count % CHECK_EVERY == CHECK_EVERY - 1 {
                call.environment.check_interrupted()?;
            }
        }
        Ok(self.step(call, colors, &one, dfa, state, 1)?.ends)
    }

    /// Forgets how far a text was looked through: another one comes.
    pub(super) fn next_text(&mut self) {
        for (dfa, ..) in &self.looks {
            self.dfas[*dfa].behind = None;
        }
    }
}
