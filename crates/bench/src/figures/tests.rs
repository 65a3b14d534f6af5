//! Figures as a whole: their names, their axes, and what claims say of made-up data.

use super::data::Data;
use super::figure::{Agreement, Figure, Form};
use super::scale::Scale;
use super::*;

/// All claims of a figure hold.
pub(super) fn passes(figure: &Figure, data: &Data) {
    for (claim, verdict) in figure.claims.iter().zip(figure.verdicts(data)) {
        let verdict = verdict.unwrap_or_else(|| panic!("\"{}\" was not checked", claim.says));
        assert!(verdict.holds, "\"{}\": {}", claim.says, verdict.ours);
    }
    assert_eq!(Agreement::of(&figure.verdicts(data)), Agreement::Agrees);
}

/// This claim of a figure does not hold.
pub(super) fn fails(figure: &Figure, claim: usize, data: &Data) {
    let says = figure.claims[claim].says;
    let verdict = figure.verdicts(data).swap_remove(claim);
    let verdict = verdict.unwrap_or_else(|| panic!("\"{says}\" was not checked"));
    assert!(!verdict.holds, "\"{says}\" holds: {}", verdict.ours);
}

#[test]
fn every_figure_of_the_two_papers_is_there_once() {
    let names: Vec<&str> = figures().iter().map(|figure| figure.name).collect();
    assert_eq!(
        names,
        [
            "000.1", "000.2", "000.3", "000.4", "000.5", "000.6", "000.T1", "004.6", "004.7",
            "004.8", "004.9a", "004.9b", "004.10", "004.11a", "004.11b", "004.12"
        ]
    );
}

#[test]
fn every_axis_has_three_points_and_every_setting_a_policy() {
    for scale in [Scale::quick(), Scale::full()] {
        for figure in figures() {
            assert!(!(figure.ours)(&scale).is_empty());
            for panel in (figure.panels)(&scale) {
                for series in &panel.series {
                    let points = series.points.len();
                    let least = if panel.form == Form::Seconds { 1 } else { 3 };
                    let name = figure.name;
                    assert!(points >= least, "{name} {} {}", panel.title, series.name);
                }
            }
            for what in figure.whats(&scale) {
                if let setting::What::Database(on) = what {
                    on.choices.policy().expect("a policy");
                    assert!(on.memory_bytes >= thermocline_engine::MEMORY_LIMIT_MIN);
                }
            }
        }
    }
}

#[test]
fn without_data_nothing_is_claimed() {
    for figure in figures() {
        let verdicts = figure.verdicts(&Data::default());
        let none = verdicts.iter().all(|verdict| verdict.is_none());
        assert!(none, "{}", figure.name);
        assert_eq!(Agreement::of(&verdicts), Agreement::NotMeasured);
    }
}

#[test]
fn what_there_is_not_is_refused_with_what_there_is() {
    let refused = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        chosen(&names).err().map(|error| error.to_string())
    };
    assert!(refused(&["000.9"]).is_some_and(|words| words.contains("004.11a")));
    assert!(refused(&[]).is_some_and(|words| words.contains("--list")));
    assert_eq!(refused(&["all"]), None);
    assert_eq!(refused(&["000.1", "004.12"]), None);
}

#[test]
fn zero_trials_are_refused() {
    let options = Options {
        names: vec!["all".into()],
        quick: true,
        out: "out".into(),
        dir: None,
        trials: Some(0),
        list: false,
        redraw: false,
    };
    assert!(scale_of(&options).is_err());
}
