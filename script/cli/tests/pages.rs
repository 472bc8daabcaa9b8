//! The files, headings, and in `docs/research/sources.md` functions, tests and notes, that the documentation's pages name exist.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use syn::visit::{self, Visit};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// All pages that are written in Markdown.
fn pages() -> Vec<PathBuf> {
    let folders =
        ["", "docs", "docs/generated", "docs/research", "devnode"].map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let files = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "md")).collect()
}

/// A page's lines, without its code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// The files that a page's reference links stand for: `[label]: file`, a line each.
fn references(text: &str) -> BTreeMap<&str, &str> {
    prose(text).filter_map(|line| line.strip_prefix('[')?.split_once("]: ")).collect()
}

/// The targets of a page's links, with a link's text or by reference.
fn targets(text: &str) -> Vec<&str> {
    let inline = prose(text).flat_map(|line| line.split("](").skip(1)).filter_map(|rest| rest.split([')', ' ']).next());
    inline.chain(references(text).into_values()).collect()
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::<String, u32>::new();
    let headings = prose(text).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    headings
        .map(|heading| {
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect();
            let before = seen.entry(anchor.clone()).or_default();
            *before += 1;
            if *before == 1 {
                anchor
            } else {
                format!("{anchor}-{}", *before - 1)
            }
        })
        .collect()
}

#[test]
fn no_page_has_an_element_outside_of_code() {
    // The book's compiler would take it for one of its own, and end where it is not closed.
    let element = |text: &str| {
        let after = text.split('<').skip(1).filter_map(|rest| rest.chars().next());
        after.into_iter().any(|c| c.is_ascii_alphabetic() || c == '/')
    };
    assert!(element("of <impl Field for u128>::read") && !element("1 < 2"));
    let (mut wrong, mut read_of) = (Vec::new(), 0);
    for page in pages() {
        for line in prose(&read(&page)) {
            read_of += 1;
            if line.split('`').step_by(2).any(element) {
                wrong.push(format!("{}: {line}", page.display()));
            }
        }
    }
    assert!(read_of > 1000 && wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_link_leads_to_a_file_and_to_a_heading() {
    let (mut wrong, mut followed) = (Vec::new(), 0);
    for page in pages() {
        let text = read(&page);
        for target in targets(&text).into_iter().filter(|target| !target.contains(':')) {
            followed += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let markdown = file.extension().is_some_and(|extension| extension == "md");
            if !file.exists() || !anchor.is_empty() && markdown && !anchors(&read(&file)).contains(anchor) {
                wrong.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(followed > 200, "only {followed} links were found");
}

/// The flags of a file's `struct Options`, each with its default, if it has one.
fn flags(file: &str) -> BTreeMap<String, Option<String>> {
    let parsed = syn::parse_file(&read(&root().join(file))).unwrap();
    let options = parsed.items.iter().find_map(|item| match item {
        syn::Item::Struct(item) if item.ident == "Options" => Some(item),
        _ => None,
    });
    let flag = |field: &syn::Field| {
        let mut default = None;
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("arg")) {
            let written = attribute.meta.require_list().unwrap().tokens.to_string();
            default = written.split_once("default_value_t = ").map(|(_, rest)| rest.split(',').next().unwrap().trim().into());
        }
        (format!("--{}", field.ident.as_ref().unwrap()).replace('_', "-"), default)
    };
    options.unwrap_or_else(|| panic!("{file} has no Options")).fields.iter().map(flag).collect()
}

/// It is a text of its own, so that nothing must be built before it is read.
#[test]
fn the_help_of_the_demonstration_names_every_flag_and_its_default() {
    let shown = std::process::Command::new(root().join("script/demo")).arg("--help").output().unwrap();
    assert!(shown.status.success() && shown.stderr.is_empty(), "{shown:?}");
    let help = String::from_utf8(shown.stdout).unwrap();
    let mut told = BTreeMap::new();
    for part in help.split("\n  --").skip(1) {
        let (name, text) = part.split_once(' ').unwrap();
        let text = text.split("\n\n").next().unwrap();
        let default = text.split_once("[default: ").map(|(_, rest)| rest.split([']', ',']).next().unwrap().to_owned());
        assert!(told.insert(format!("--{name}"), default).is_none(), "{name} stands there twice");
    }
    let mut is = flags("script/cli/src/demo/state.rs");
    is.extend(flags("test/fleet/src/main.rs"));
    assert_eq!(told.keys().collect::<Vec<_>>(), is.keys().collect::<Vec<_>>());
    for (name, default) in is.into_iter().filter_map(|(name, default)| Some((name, default?))) {
        let default = default.trim_end_matches(".0");
        // `--agents` has no default: its user says how many.
        if name != "--agents" {
            assert_eq!(told[&name].as_deref(), Some(default), "{name}");
        }
    }
}

/// The functions and constants of a source file, and those that are tests.
#[derive(Default)]
struct Names {
    all: BTreeSet<String>,
    tests: BTreeSet<String>,
}

impl Names {
    fn of(file: &Path) -> Self {
        let mut names = Self::default();
        names.visit_file(&syn::parse_file(&read(file)).unwrap_or_else(|error| panic!("{}: {error}", file.display())));
        names
    }
}

impl<'a> Visit<'a> for Names {
    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        let name = function.sig.ident.to_string();
        if function.attrs.iter().any(|a| a.path().segments.last().is_some_and(|last| last.ident == "test")) {
            self.tests.insert(name.clone());
        }
        self.all.insert(name);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.all.insert(function.sig.ident.to_string());
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_item_const(&mut self, constant: &'a syn::ItemConst) {
        self.all.insert(constant.ident.to_string());
    }
}

/// The names in a text of the form "[file] `name`, `name`; ... [file] `name`", each with its file's label; code elsewhere is no such name.
fn named<'a>(text: &'a str, files: &BTreeMap<&str, &str>) -> Vec<(&'a str, &'a str)> {
    let mut found = Vec::new();
    for part in text.split('[').skip(1) {
        let Some((label, rest)) = part.split_once("] ").filter(|(label, _)| files.contains_key(label)) else { continue };
        let mut rest = rest;
        while let Some((name, after)) = rest.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
            found.push((label, name));
            rest = after.strip_prefix(", ").unwrap_or_default();
        }
    }
    found
}

/// The rows that a cell refers to: "as Q9, D31".
fn others(cell: &str) -> impl Iterator<Item = &str> {
    cell.split([' ', ',', ';']).filter(|word| is_number(word))
}

fn is_number(word: &str) -> bool {
    word.strip_prefix(|c: char| c.is_ascii_uppercase()).is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
}

/// The numbered rows of the page of sources: three cells behind the number.
fn numbered(text: &str) -> Vec<(&str, [&str; 3])> {
    let row = |line| {
        let mut cells = cells(line)?;
        let number = cells.next().filter(|number| is_number(number.trim_end_matches('*')))?;
        let three = [(); 3].map(|()| cells.next().unwrap_or_else(|| panic!("{number} lacks a cell")));
        assert_eq!(cells.next(), None, "{number} has a cell too many");
        Some((number, three))
    };
    prose(text).filter_map(row).collect()
}

fn cells(line: &str) -> Option<impl Iterator<Item = &str>> {
    Some(line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | "))
}

/// The rows of figures of a page's first table under a heading, a row's cells each.
fn rows<'a>(text: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let under = prose(text).skip_while(|line| line.trim_start_matches('#').trim() != heading).skip(1);
    let table = under.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    table.skip(2).map(|line| cells(line).unwrap_or_else(|| panic!("{line}")).collect()).collect()
}

/// The page on the security of validation repeats figures of the search for attacks, and has them as the search's page does.
#[test]
fn the_page_of_security_has_the_figures_of_the_search() {
    let (search, page) = (read(&root().join("docs/generated/attacks.md")), read(&root().join("docs/security-validation.md")));
    let some = |columns: &[usize], row: &[&str]| columns.iter().map(|column| row[*column].to_owned()).collect::<Vec<_>>();
    let of = |text, heading, columns: &[usize]| {
        let rows: Vec<_> = rows(text, heading).iter().map(|row| some(columns, row)).collect();
        assert!(rows.len() > 4, "{heading}: only {rows:?}");
        rows
    };
    assert_eq!(of(&page, "A lone sender", &[0, 1, 2, 3]), of(&search, "The lone sender", &[0, 1, 3, 4]));
    assert_eq!(
        of(&page, "A majority of a group", &[0, 1, 2, 3, 4, 5]),
        of(&search, "What a share of the nodes gets", &[0, 1, 2, 4, 6, 7])
    );
    // The page has a network's first row of each kind.
    let tens = of(&search, "Fifty tens", &[0, 1, 2, 3, 4, 6]);
    let price = |key: [&str; 4]| {
        let row = tens.iter().find(|row| row[..4] == key).unwrap_or_else(|| panic!("no row {key:?}"));
        row[4..].to_vec()
    };
    let theirs = "only the adversary's can have";
    let kinds = [
        ["20", "1", "2", "none"],
        ["100", "1", "2", "none"],
        ["20", "1", "1", "none"],
        ["20", "4", "2", theirs],
        ["100", "20", "2", theirs],
    ];
    assert_eq!(of(&page, "Fifty tens", &[2, 3]), kinds.map(price));
    let figure = |text: &str, pattern: &str| {
        let (before, after) = pattern.rsplit_once('*').expect("a place for the figure");
        let rest = text.split(before).nth(1).unwrap_or_else(|| panic!("no {before:?}"));
        rest.split(after).next().map(str::to_owned)
    };
    for (asked, told) in [
        ("Such tasks burn * tokens", "nobody deviated: *** tokens burnt"),
        ("chose when to validate, * % of the nodes", "hardly: * % of the nodes"),
        ("on average, and * % of all", "were its own, * % of all"),
    ] {
        assert_eq!(figure(&search, asked), figure(&page, told), "{told}");
    }
    let others = read(&root().join("docs/security.md"));
    assert_eq!(figure(&search, "played out * calls"), figure(&others, "Of * calls that the search"));
}

/// The first letter of the numbers of the paper's evaluation claims: behind them are a figure and a verdict.
const EVALUATION: char = 'E';

/// Each claim of the paper's evaluation stands on the page of sources as the simulator's page has it, with its figure and verdict.
#[test]
fn the_page_of_sources_has_what_became_of_every_claim() {
    let (simulated, sources) =
        (read(&root().join("docs/research/simulator-paper.md")), read(&root().join("docs/research/sources.md")));
    let claim = |line| {
        let [place, claim, _, ours, .., verdict] = cells(line)?.collect::<Vec<_>>()[..] else { return None };
        place.starts_with("5.").then(|| [format!("{place}: {claim}"), ours.to_owned(), verdict.to_owned()])
    };
    let table = prose(&simulated).skip_while(|line| *line != "## Claim by claim").skip(1);
    let claims: Vec<[String; 3]> = table.take_while(|line| !line.starts_with('#')).filter_map(claim).collect();
    assert!(claims.len() > 40, "only {} claims were found", claims.len());
    let rows = numbered(&sources).into_iter().filter(|(number, _)| number.starts_with(EVALUATION));
    let told: Vec<[String; 3]> = rows.map(|(_, cells)| cells.map(str::to_owned)).collect();
    assert_eq!(told, claims);
}

#[test]
fn the_page_of_sources_names_what_is_there() {
    let page = root().join("docs/research/sources.md");
    let text = read(&page);
    let files = references(&text);
    let sources: BTreeMap<_, _> =
        files.iter().map(|(label, file)| (*label, Names::of(&page.parent().unwrap().join(file)))).collect();
    let rows = numbered(&text);
    for document in ['Q', 'D', 'B', 'C', 'P'] {
        assert!(rows.iter().filter(|(number, _)| number.starts_with(document)).count() > 5, "rows of {document}");
    }

    // Numbers are counted up for each document; a star has a note, and a note a star.
    let mut last = BTreeMap::new();
    for (number, _) in &rows {
        let (document, number) = number.trim_end_matches('*').split_at(1);
        let before = last.entry(document).or_insert(0);
        *before += 1;
        assert_eq!(number, before.to_string(), "of {document}");
    }
    let notes = prose(&text).filter_map(|line| line.strip_prefix("- **")?.split_once("**: ")).map(|(number, _)| number);
    let starred = rows.iter().filter_map(|(number, _)| number.strip_suffix('*'));
    assert_eq!(notes.collect::<Vec<_>>(), starred.collect::<Vec<_>>(), "notes and stars");

    let known: BTreeSet<&str> = rows.iter().map(|(number, _)| number.trim_end_matches('*')).collect();
    for (number, [_, place, tests]) in rows.iter().filter(|(number, _)| !number.starts_with(EVALUATION)) {
        for (cell, in_tests) in [(place, false), (tests, true)] {
            let found = named(cell, &files);
            for (label, name) in &found {
                let names = &sources[label];
                assert!(if in_tests { &names.tests } else { &names.all }.contains(*name), "{number}: {label} has no {name}");
            }
            assert_eq!(cell.matches('`').count(), 2 * found.len(), "{number}: a name without its file: {cell}");
            assert!(others(cell).all(|other| known.contains(other)), "{number}: {cell}");
            let said = !found.is_empty() || others(cell).next().is_some() || cell.starts_with("no ") || *cell == "not yet";
            assert!(said, "{number} says neither where nor that there is none: {cell}");
        }
    }
    // The notes name tests only.
    let notes = prose(&text).filter(|line| !line.starts_with('|')).map(str::trim).collect::<Vec<_>>().join(" ");
    let in_notes = named(&notes, &files);
    for (label, name) in &in_notes {
        assert!(sources[label].tests.contains(*name), "{label} has no test {name}");
    }
    let in_rows = rows.iter().flat_map(|(_, cells)| cells).flat_map(|cell| named(cell, &files));
    let used: BTreeSet<&str> = in_rows.chain(in_notes).map(|(label, _)| label).collect();
    assert!(files.keys().all(|label| used.contains(label)), "{files:?} but {used:?}");
}
