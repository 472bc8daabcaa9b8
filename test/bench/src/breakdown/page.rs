//! The page about the calls that were taken apart.

use super::{Breakdown, Call, Replayed, NODES};
use anyhow::Result;
use muster_sim::numbers::thousands;
use std::fmt::Write;

/// Files of the demonstration that are public, by the beginning of their SHA-256.
const KNOWN: [(&str, &str); 4] = [
    ("d67fa5302a0cf8ef", "6,000 consecutive requests of GenTD26 (Alibaba's cluster data, Lin et al., SoCC '25)"),
    ("2beca64b4d3dfa34", "the GPU nodes of openb (Alibaba's cluster data, Weng et al., USENIX ATC '23)"),
    ("f1e52c892516e230", "the requests that come with the demonstration"),
    ("88341a02865b5c37", "the nodes that come with the demonstration"),
];

/// The text about the bytes of transactions.
const SIZES: &str = "*Signed* are the bytes of such a transaction, *compressed* those that are left when brotli (level 1) compresses it by itself, as ArbOS does to price its data on L1: medians.\n\n";

/// A part of a call that has no words of its own: its name, gas, and how often.
fn plain(call: &Call) -> [(&'static str, u64, Option<u64>); 8] {
    let p = &call.parts;
    [
        ("base", p.base, None),
        ("calldata", p.calldata, None),
        ("router", p.router, None),
        ("starts of programs", p.starts, Some(p.started)),
        ("events", p.events, Some(p.logged)),
        ("precompiles", p.precompiles, None),
        ("hashes and other host calls", p.others, None),
        ("arithmetic", p.arithmetic, None),
    ]
}

impl Breakdown {
    /// Writes the page and the flame graphs.
    pub fn write(&self) -> Result<()> {
        std::fs::write("docs/generated/gas-breakdown.md", self.page())?;
        for (name, svg) in self.pictures()? {
            std::fs::write(format!("docs/generated/figures/{name}.svg"), svg)?;
        }
        println!("written: docs/generated/gas-breakdown.md and its flame graphs, docs/generated/figures/gas-flame-*.svg");
        Ok(())
    }

    /// `docs/generated/gas-breakdown.md`.
    pub fn page(&self) -> String {
        let mut out = String::from(
            "# Where the gas goes\n\n[All pages](../README.md)\n\n\
             Made by `script/bench breakdown`, which sends real transactions to the compiled programs on the embedded devnode and takes the median of each kind apart; do not edit. \
             The same figures as JSON are in [gas-breakdown.json](gas-breakdown.json); what calls cost in networks of all sizes is [gas.md](gas.md)'s subject, and \
             `muster-devnode gas TX --words` takes any transaction apart.\n\n",
        );
        let _ = writeln!(out, "Programs compiled by {}.\n", self.compiler);
        out.push_str(
            "| part | what is in it |\n| --- | --- |\n\
             | base, calldata | what a transaction costs before anything runs |\n\
             | router | finding the program and calling it |\n\
             | starts of programs | of those behind the router, which nobody has cached |\n\
             | reads, writes | words of storage, as [storage.md](storage.md) names them: a first read costs 2,100, a write 2,900 beyond it, or 20,000 where the word was zero |\n\
             | events | logs |\n\
             | precompiles | numbers and hashes of blocks |\n\
             | hashes and other host calls | keccak256 for the places of words, arguments, results, calls between programs |\n\
             | arithmetic | the programs' own instructions |\n\n",
        );
        let _ = writeln!(
            out,
            "## The headline task\n\nOne model that everybody holds, {NODES} nodes that have all worked before; where the table says so, {} tasks of ascending values are queued. \
             The last row is the median with cached programs.\n",
            thousands(super::QUEUED.into())
        );
        show(&mut out, &self.headline, "", "Gas of the headline task's calls", "gas-flame-headline");
        let _ = writeln!(out, "\n## The demonstration on a trace\n\n{}\n", replayed(&self.replayed));
        show(&mut out, &self.trace, SIZES, "Gas of the demonstration's median calls", "gas-flame-trace");
        if let Some((from, calls)) = &self.single {
            let _ = writeln!(out, "\n## The same, tasks for single nodes alone\n\n{}\n", replayed(from));
            show(
                &mut out,
                calls,
                "",
                "Gas of the demonstration's median calls, tasks for single nodes alone",
                "gas-flame-single",
            );
        }
        out
    }

    /// The flame graphs, by name.
    pub fn pictures(&self) -> Result<Vec<(&'static str, Vec<u8>)>> {
        let of = |calls: &[Call], title: &str| flame(calls, &format!("Gas of the {title}, programs not cached"));
        let mut all = vec![
            ("gas-flame-headline", of(&self.headline, "headline task's calls")?),
            ("gas-flame-trace", of(&self.trace, "demonstration's median calls")?),
        ];
        if let Some((_, calls)) = &self.single {
            all.push(("gas-flame-single", of(calls, "demonstration's median calls, tasks for single nodes alone")?));
        }
        Ok(all)
    }
}

/// The source of the demonstration's figures.
fn replayed(r: &Replayed) -> String {
    let known = |digest: &str| KNOWN.iter().find(|(start, _)| digest.starts_with(start)).map(|(_, what)| *what);
    let file = |(name, digest): &(String, String)| {
        let what = known(digest).map_or(String::new(), |what| format!("{what}, "));
        format!("`{name}` ({what}SHA-256 `{}…`)", digest.get(..16).unwrap_or(digest))
    };
    let files: Vec<String> = r.files.iter().map(file).collect();
    let flags = if r.flags.is_empty() { String::new() } else { format!(" {}", r.flags.join(" ")) };
    format!(
        "`script/bench breakdown{flags}` replayed {} tasks on {} nodes. Inputs: {}. Programs are not cached. Each figure is the median of all successful calls of a function, whatever they did.",
        thousands(r.tasks),
        thousands(r.nodes),
        files.join(" and ")
    )
}

/// Calls as a table, a picture (after the text about the table) and their words.
fn show(out: &mut String, calls: &[Call], said: &str, caption: &str, picture: &str) {
    let _ = writeln!(out, "{}\n{said}![{caption}](figures/{picture}.svg)", summary(calls));
    calls.iter().for_each(|call| out.push_str(&words(call)));
}

/// The heading of a call.
fn title(call: &Call) -> String {
    match call.queued {
        Some(0) => call.name.clone(),
        Some(queued) => format!("{}, {} queued", call.name, thousands(queued.into())),
        None => format!("`{}`", call.name),
    }
}

/// Parts by calls.
fn summary(calls: &[Call]) -> String {
    let mut out = String::from("| part |");
    calls.iter().for_each(|call| out.push_str(&format!(" {} |", title(call))));
    out.push_str("\n| --- |");
    out.push_str(&" ---: |".repeat(calls.len()));
    let mut row = |name: &str, value: &dyn Fn(&Call) -> String| {
        let _ = write!(out, "\n| {name} |");
        calls.iter().for_each(|call| out.push_str(&format!(" {} |", value(call))));
    };
    row("calls, of which this is the median", &|call| thousands(call.calls));
    for at in 0..4 {
        let name = calls.first().map_or("", |call| plain(call)[at].0);
        row(name, &|call| thousands(plain(call)[at].1));
    }
    row("reads", &|call| thousands(call.parts.reads()));
    row("writes", &|call| thousands(call.parts.writes()));
    for at in 4..8 {
        let name = calls.first().map_or("", |call| plain(call)[at].0);
        row(name, &|call| thousands(plain(call)[at].1));
    }
    if calls.iter().any(|call| call.parts.refund > 0) {
        row("refund", &|call| if call.parts.refund > 0 { format!("-{}", thousands(call.parts.refund)) } else { "0".into() });
    }
    row("**in all**", &|call| format!("**{}**", thousands(call.parts.gas)));
    if calls.iter().any(|call| call.cached.is_some()) {
        row("programs cached", &|call| call.cached.map_or(String::new(), thousands));
    }
    if calls.iter().any(|call| call.bytes.is_some()) {
        row("bytes signed", &|call| call.bytes.map_or(String::new(), |(signed, _)| thousands(signed)));
        row("compressed", &|call| call.bytes.map_or(String::new(), |(_, compressed)| thousands(compressed)));
    }
    out.push('\n');
    out
}

/// A call's words.
fn words(call: &Call) -> String {
    let mut out = format!(
        "\n### {}\n\n| words | how many | reads | gas | written | gas | share of the call |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        title(call)
    );
    for word in &call.parts.words {
        let share = (word.read_gas + word.write_gas) as f64 * 100.0 / call.parts.gas as f64;
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {share:.1} % |",
            word.name,
            word.words,
            word.reads,
            thousands(word.read_gas),
            word.written,
            thousands(word.write_gas),
        );
    }
    out
}

/// A flame graph of calls: call, part, words.
fn flame(calls: &[Call], title_of_all: &str) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    for call in calls {
        let title = title(call).replace('`', "");
        for (name, gas, _) in plain(call) {
            lines.push(format!("{title};{name} {gas}"));
        }
        for word in &call.parts.words {
            lines.push(format!("{title};reads;{} {}", word.name, word.read_gas));
            lines.push(format!("{title};writes;{} {}", word.name, word.write_gas));
        }
    }
    lines.retain(|line| !line.ends_with(" 0"));
    let mut options = inferno::flamegraph::Options::default();
    options.title = title_of_all.into();
    options.count_name = "gas".into();
    options.name_type = "Part:".into();
    options.text_truncate_direction = inferno::flamegraph::TextTruncateDirection::Right;
    // Colours by names, so that the same figures give the same bytes.
    options.deterministic = true;
    let mut svg = Vec::new();
    inferno::flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)?;
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The committed files belong together, and to this code.
    #[test]
    fn the_page_and_its_pictures_are_those_of_the_figures() {
        let read = |name: &str| std::fs::read_to_string(format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let breakdown: Breakdown = serde_json::from_str(&read(super::super::FIGURES)).unwrap();
        assert!(
            breakdown.page() == read("docs/generated/gas-breakdown.md"),
            "docs/generated/gas-breakdown.md: run script/bench breakdown --repaint"
        );
        for (name, svg) in breakdown.pictures().unwrap() {
            assert!(
                svg == read(&format!("docs/generated/figures/{name}.svg")).into_bytes(),
                "{name}: run script/bench breakdown --repaint"
            );
        }
    }
}
