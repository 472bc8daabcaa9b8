//! The whole of `paper`, small: what it writes, and that it writes the same on any number of threads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use muster_sim::paper::{run, Options, Scale};

const TINY: Scale = Scale {
    quick: true,
    rounds: 20,
    long_rounds: 60,
    seeds: 2,
    large_seeds: 2,
    sweep_seeds: 2,
    repeats: 1,
    step: 50,
    blackout_seeds: 2,
};

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let list = |folder: &Path| {
        fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect::<Vec<_>>()
    };
    let all = list(folder)
        .into_iter()
        .chain(list(&folder.join("figures")))
        .filter(|path| path.is_file());
    all.map(|path| {
        (
            path.file_name().unwrap().to_str().unwrap().to_owned(),
            fs::read_to_string(path).unwrap(),
        )
    })
    .collect()
}

#[test]
fn writes_page_pictures_and_tables_whatever_the_threads() {
    let with = |threads: usize| {
        let out = folder(&format!("paper-{threads}"));
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            run(&Options {
                scale: TINY,
                seed: 7,
                out: out.clone(),
            })
        })
        .unwrap();
        files(&out)
    };
    let (one, three) = (with(1), with(3));
    assert_eq!(one, three);

    let page = &one["simulator-paper.md"];
    let links: Vec<&str> = page
        .split("](figures/")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap())
        .collect();
    for link in &links {
        assert!(one.contains_key(*link), "{link} is shown but not drawn");
    }
    for (name, text) in &one {
        assert!(
            !text.contains("NaN") && !text.contains("inf "),
            "{name} holds no number"
        );
        if name.ends_with(".svg") {
            assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
            assert!(
                links.contains(&name.as_str()),
                "{name} is drawn but not shown"
            );
        }
        if name.ends_with(".csv") {
            let mut reader = csv::Reader::from_reader(text.as_bytes());
            let rows: Result<Vec<_>, _> = reader.records().collect();
            assert!(
                !rows.expect("rows of equal length").is_empty(),
                "{name} is empty"
            );
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
    ] {
        assert!(page.contains(experiment), "{experiment}");
    }
}

fn command(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_muster-sim"))
        .args(arguments)
        .output()
        .unwrap();
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
    for word in [
        "--quick",
        "--seed",
        "--threads",
        "--out",
        "SVG",
        "CSV",
        "simulator-paper.md",
    ] {
        assert!(text.contains(word), "{word} is missing:\n{text}");
    }
}
