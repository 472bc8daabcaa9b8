//! The whole of `paper`, small: its output, and that it is the same on any number of threads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use muster_sim::paper::lab::{Lab, Sweep};
use muster_sim::paper::{fit, run, Options, Scale};
use muster_sim::population::{Name, Set};
use muster_sim::rounds::{Algorithm, Measure, Run, Targeting};

const TINY: Scale = Scale {
    quick: true,
    rounds: 20,
    long_rounds: 60,
    screen_rounds: 20,
    keep: 2,
    step: 50,
    seeds: 2,
    large_seeds: 2,
    sweep_seeds: 2,
    repeats: 1,
    blackout_seeds: 2,
    convergence_seeds: 2,
    convergence_rounds: 100,
    fit_seeds: 2,
};

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let list = |folder: &Path| fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
    let all = list(folder).into_iter().chain(list(&folder.join("figures"))).filter(|path| path.is_file());
    all.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn writes_page_pictures_and_tables_whatever_the_threads() {
    let with = |threads: usize| {
        let out = folder(&format!("paper-{threads}"));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(&Options { scale: TINY, seed: 7, out: out.clone() })).unwrap();
        files(&out)
    };
    let (one, mut three) = (with(1), with(3));
    let page = &one["simulator-paper.md"];
    // All but the times by the clock.
    let timeless = |page: &str| page.split("\n## Times").next().map(str::to_owned);
    let other = three.insert("simulator-paper.md".into(), page.clone());
    assert_eq!(timeless(page), other.and_then(|page| timeless(&page)));
    assert_eq!(one, three);

    let links: Vec<&str> = page.split("](figures/").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
    for link in &links {
        assert!(one.contains_key(*link), "{link} is shown but not drawn");
    }
    for (name, text) in &one {
        assert!(!text.contains("NaN") && !text.contains("inf "), "{name} holds no number");
        let extension = name.rsplit_once('.').map(|(_, extension)| extension);
        if extension == Some("svg") {
            assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
            assert!(links.contains(&name.as_str()), "{name} is drawn but not shown");
        }
        if extension == Some("csv") {
            let mut reader = csv::Reader::from_reader(text.as_bytes());
            let rows: Result<Vec<_>, _> = reader.records().collect();
            assert!(!rows.expect("rows of equal length").is_empty(), "{name} is empty");
        }
    }
    // Every experiment of section 5 has its place.
    for experiment in [
        "figure 3a",
        "figure 4",
        "table 2",
        "figure 5",
        "figures 6-8",
        "figure 9",
        "figure 10",
        "table 3",
        "figure 11",
        "table 4",
        "figure 12",
    ] {
        assert!(page.contains(experiment), "{experiment}");
    }
}

#[test]
fn the_search_for_populations_shows_both_sets() {
    let out = folder("populations");
    let options = Options { scale: TINY, seed: 7, out: out.clone() };
    fit::run(&options).unwrap();
    let files = files(&out);
    let page = &files["simulator-populations.md"];
    for name in Name::ALL {
        assert!(page.contains(&format!("## {}\n", name.text())));
        for set in [Set::FIRST, Set::FITTED] {
            assert!(page.contains(&set.of(name).describe()), "{}", name.text());
        }
    }
    let table = &files["paper-populations.csv"];
    assert!(csv::Reader::from_reader(table.as_bytes()).records().all(|row| row.is_ok()));
}

/// Screening must find the same target as trying every target for the whole time, except for noise that it may not see.
#[test]
fn screened_targets_are_as_good_as_all() {
    let sweep = |keep| Sweep { step: 5, screen: 300, keep };
    let mut lab = Lab::default();
    let base = |name| Run {
        population: Set::FITTED.of(name),
        workers: 100,
        min: 3,
        max: 7,
        algorithm: Algorithm::FirstFit,
        measure: Measure::Exact,
        targeting: Targeting::Static(0),
        alpha: 0,
        rounds: 600,
        blackout: None,
        population_seed: 1,
        run_seed: 0,
        keep_rounds: false,
        compare_measures: false,
    };
    let alphas = [0.5, 1.0, 0.0];
    for name in [Name::Uniform, Name::NormalHigh, Name::NormalLow] {
        for keep in [3, 21] {
            sweep(keep).play(&mut lab, "screening", &[base(name)], &alphas);
        }
        for alpha in alphas {
            let best = |keep| sweep(keep).range(&lab, &base(name), &alphas, alpha).1;
            let (few, all) = (best(3), best(21));
            assert!(few <= all && few > 0.99 * all, "{}: {few} of {all}", name.text());
        }
    }
}

fn command(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_muster-sim")).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn wrong_input_is_refused_with_a_reason() {
    let file = folder("in-the-way");
    fs::write(&file, "").unwrap();
    let path = file.to_str().unwrap();
    for (arguments, reason) in [
        (&["paper", "--seed", "x"][..], "invalid"),
        (&["paper", "--seed", "-1"], "unexpected"),
        (&["paper", "--seed", "99999999999999"], "not in"),
        (&["paper", "--threads", "many"], "invalid"),
        (&["paper", "--fast"], "unexpected argument"),
        (&["thesis"], "unrecognized subcommand"),
        (&["paper", "--quick", "--out", path], "can't create"),
    ] {
        let (success, text) = command(arguments);
        assert!(!success && text.contains(reason), "{arguments:?}: {text}");
    }
}

#[test]
fn help_explains_itself() {
    let (success, text) = command(&["--help"]);
    assert!(success && text.contains("paper"), "{text}");
    let (success, text) = command(&["paper", "--help"]);
    assert!(success, "{text}");
    for word in ["--quick", "--seed", "--threads", "--out", "SVG", "CSV", "simulator-paper.md"] {
        assert!(text.contains(word), "{word} is missing:\n{text}");
    }
}
