//! The parameters of the populations that agree with those sentences of the text that constrain them.
//!
//! Candidates are judged by these sentences alone; the page of claims marks them as used.

use std::fmt::Write;

use super::lab::Lab;
use super::text::{percent, table};
use super::variant::{fixed, given, Chooser, Reading, Scale, TargetSearch, Variant, MAX, SMALL, STRIKE};
use super::Options;
use crate::numbers::{self, thousands};
use crate::population::{Name, Pareto, Population, Set};
use crate::rounds::{Algorithm, Measure, Outcome, Run};
use crate::statistics::Estimate;

/// A range the text gives, and how often a mean may miss it by its interval.
#[derive(Clone, Copy)]
pub struct Range(pub f64, pub f64);

impl Range {
    /// Whether the estimate's interval reaches into it.
    pub fn meets(self, estimate: Estimate) -> bool {
        estimate.high() >= self.0 && estimate.low() <= self.1
    }
}

/// "improve on the throughput of Fixed by 25-250 percent".
pub const GREEDY_GAIN: Range = Range(0.25, 2.5);
/// "the theoretical success rate of a Fixed strategy under the realistic Heavy-High distribution is 90 percent".
pub const FIXED_SUCCESS: Range = Range(0.89, 0.91);
/// "relatively small (0.002-0.09)".
pub const TIGHT_ERROR: Range = Range(0.002, 0.09);
/// "quite high (0.05-0.3)".
pub const RANDOM_ERROR: Range = Range(0.05, 0.3);
/// "80 percent versus 96 percent", give or take two and three of a hundred.
pub const BEFORE: Range = Range(0.94, 0.98);
pub const AFTER: Range = Range(0.77, 0.83);

/// The candidates for each name; uniform has nothing to choose.
fn candidates(name: Name) -> Vec<Population> {
    let normal = |means: &[u16]| {
        let deviations = [50, 100, 150, 200, 300];
        means.iter().flat_map(|mean| deviations.map(|deviation| Population::normal(*mean, deviation))).collect()
    };
    match name {
        Name::Uniform => vec![Population::Uniform],
        Name::NormalHigh => normal(&[700, 800, 850, 900, 950]),
        Name::NormalLow => normal(&[200, 300, 350, 400, 450, 500]),
        // The sentence about Fixed fixes the mean; the shape is free.
        Name::HeavyHigh => heavy_high(),
        Name::HeavyLow => [500, 1000, 1135, 1500, 2000, 2500, 3000].map(|scale| Population::pareto(scale, false)).to_vec(),
        Name::Bimodal => [(100, 900), (200, 800), (300, 700), (300, 900), (400, 900)]
            .into_iter()
            .flat_map(|(low, high)| [50, 100, 150].map(|deviation| Population::Bimodal { low, high, deviation }))
            .collect(),
    }
}

/// One minus Pareto variables of many shapes, all with the mean that makes Fixed succeed in 90 % of tasks.
pub fn heavy_high() -> Vec<Population> {
    const MEAN: f64 = 1.0 - 0.721;
    let mut all = Vec::new();
    for clipped in [false, true] {
        for inverse_shape in [16, 12, 8, 6, 4, 3, 2] {
            let form = Pareto { inverse_shape, above: 0, mirrored: true, clipped };
            all.push(Population::Pareto(form.with_mean(MEAN)));
        }
    }
    // The present parameters themselves.
    let kept = Set::FIRST.of(Name::HeavyHigh);
    all.retain(|p| match (p, kept) {
        (Population::Pareto(p), Population::Pareto(q)) => (p.inverse_shape, p.clipped) != (q.inverse_shape, q.clipped),
        _ => true,
    });
    all.push(kept);
    all
}

/// The runs of one candidate: Fixed, First-fit, Tight-fit, Random-fit on each seed.
pub struct Trial {
    fixed: Vec<Run>,
}

const ALGORITHMS: [Algorithm; 3] = [Algorithm::FirstFit, Algorithm::TIGHT_FIT, Algorithm::RandomFit];

impl Trial {
    pub fn new(population: Population, scale: &Scale, first: u64) -> Self {
        let seeds = first..first + scale.fit_seeds;
        Self { fixed: seeds.map(|seed| fixed(population, SMALL, MAX, scale.rounds, seed)).collect() }
    }

    pub fn fixed(&self) -> Vec<Run> {
        self.fixed.clone()
    }

    pub fn others(&self, lab: &Lab, algorithms: &[Algorithm]) -> Vec<Run> {
        let pairs = self.fixed.iter().flat_map(|fixed| algorithms.iter().map(move |a| (fixed, *a)));
        pairs.map(|(fixed, algorithm)| given(lab, fixed, algorithm, Measure::Bound)).collect()
    }

    fn over(&self, of: impl Fn(&Run) -> f64) -> Estimate {
        Estimate::of(&self.fixed.iter().map(of).collect::<Vec<_>>())
    }

    pub fn success(&self, lab: &Lab) -> Estimate {
        self.over(|run| lab.outcome(run).success)
    }

    fn outcome<'l>(lab: &'l Lab, fixed: &Run, algorithm: Algorithm) -> &'l Outcome {
        lab.outcome(&given(lab, fixed, algorithm, Measure::Bound))
    }

    pub fn gain(&self, lab: &Lab, algorithm: Algorithm) -> Estimate {
        self.over(|run| Self::outcome(lab, run, algorithm).throughput / lab.outcome(run).throughput - 1.0)
    }

    pub fn error(&self, lab: &Lab, algorithm: Algorithm) -> Estimate {
        self.over(|run| Self::outcome(lab, run, algorithm).bound_error)
    }

    /// The difference to Fixed's success rate.
    pub fn shortfall(&self, lab: &Lab, algorithm: Algorithm) -> Estimate {
        self.over(|run| Self::outcome(lab, run, algorithm).success - lab.outcome(run).success)
    }
}

/// A row of the tables: a candidate, its figures in words, and how many of the sentences it meets.
struct Row {
    name: Name,
    population: Population,
    cells: Vec<String>,
    met: usize,
    of: usize,
}

fn row(lab: &Lab, name: Name, population: Population, trial: &Trial) -> Row {
    let mut sentences = vec![
        (trial.gain(lab, Algorithm::FirstFit), GREEDY_GAIN),
        (trial.gain(lab, Algorithm::TIGHT_FIT), GREEDY_GAIN),
        (trial.error(lab, Algorithm::TIGHT_FIT), TIGHT_ERROR),
        (trial.error(lab, Algorithm::RandomFit), RANDOM_ERROR),
    ];
    if name == Name::HeavyHigh {
        sentences.push((trial.success(lab), FIXED_SUCCESS));
    }
    let mark = |(estimate, range): &(Estimate, Range), text: String| {
        if range.meets(*estimate) {
            text
        } else {
            format!("**{text}**")
        }
    };
    let mut cells = vec![format!("{:.3}", trial.success(lab).mean)];
    for sentence in &sentences[..2] {
        cells.push(mark(sentence, percent(sentence.0)));
    }
    for sentence in &sentences[2..4] {
        cells.push(mark(sentence, format!("{:.4}", sentence.0.mean)));
    }
    if let Some(sentence) = sentences.get(4) {
        cells[0] = mark(sentence, cells[0].clone());
    }
    Row { name, population, cells, met: sentences.iter().filter(|(e, r)| r.meets(*e)).count(), of: sentences.len() }
}

/// Success rate before and long after the blackout of a pair of populations.
struct Blackout {
    high: Population,
    low: Population,
    before: Estimate,
    after: Estimate,
}

impl Blackout {
    fn met(&self) -> usize {
        usize::from(BEFORE.meets(self.before)) + usize::from(AFTER.meets(self.after))
    }
}

fn variant(scale: Scale, first: u64, high: Population, low: Population) -> Variant {
    Variant { set: Set::FITTED.with(Name::NormalHigh, high).with(Name::HeavyLow, low), reading: Reading::CHOSEN, scale, first }
}

/// Runs everything and writes the page and the table.
pub fn run(options: &Options) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (scale, first) = (options.scale, options.seed << 20);
    let folder = super::figures_folder(options)?;
    let mut lab = Lab::default();
    let all: Vec<(Name, Population, Trial)> = Name::ALL
        .into_iter()
        .flat_map(|name| candidates(name).into_iter().map(move |p| (name, p)))
        .map(|(name, p)| (name, p, Trial::new(p, &scale, first)))
        .collect();
    lab.play("Candidates, Fixed", all.iter().flat_map(|(.., trial)| trial.fixed()));
    let runs: Vec<Run> = all.iter().flat_map(|(.., trial)| trial.others(&lab, &ALGORITHMS)).collect();
    lab.play("Candidates", runs);
    let rows: Vec<Row> = all.iter().map(|(name, population, trial)| row(&lab, *name, *population, trial)).collect();

    // Of those that meet most sentences by themselves, which pairs meet those about the blackout?
    let best = |name: Name| -> Vec<Population> {
        let of: Vec<&Row> = rows.iter().filter(|row| row.name == name).collect();
        let most = of.iter().map(|row| row.met).max().unwrap_or(0);
        let mut best: Vec<Population> = of.iter().filter(|row| row.met == most).map(|row| row.population).collect();
        for set in [Set::FIRST, Set::FITTED] {
            if !best.contains(&set.of(name)) {
                best.push(set.of(name));
            }
        }
        best
    };
    let (highs, lows) = (best(Name::NormalHigh), best(Name::HeavyLow));
    let pairs: Vec<(Population, Population)> = highs.iter().flat_map(|high| lows.iter().map(move |low| (*high, *low))).collect();
    let chooser = Chooser::TargetSearch(TargetSearch::CHOSEN, 0.5);
    let runs: Vec<Vec<Run>> =
        pairs.iter().map(|(high, low)| variant(scale, first, *high, *low).blackout(&lab, chooser, Measure::Bound)).collect();
    lab.play("Blackouts", runs.iter().flatten().copied());
    let blackouts: Vec<Blackout> = pairs
        .iter()
        .zip(&runs)
        .map(|((high, low), runs)| {
            let rate = |from: usize, to: usize| {
                let of = |run| super::series::success(&lab.outcome(run).per_round[from..to]);
                Estimate::of(&runs.iter().map(of).collect::<Vec<_>>())
            };
            let strike = STRIKE as usize;
            Blackout { high: *high, low: *low, before: rate(strike - 100, strike), after: rate(700, 1000) }
        })
        .collect();
    super::write(&folder.join("paper-populations.csv"), &csv(&rows, &blackouts)?)?;
    let path = options.out.join("simulator-populations.md");
    super::write(&path, &page(&rows, &blackouts, options))?;
    println!("{}", path.display());
    Ok(())
}

fn role(name: Name, population: Population) -> &'static str {
    match (Set::FIRST.of(name) == population, Set::FITTED.of(name) == population) {
        (true, true) => "first, fitted",
        (true, false) => "first",
        (false, true) => "fitted",
        (false, false) => "",
    }
}

fn csv(rows: &[Row], blackouts: &[Blackout]) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "name",
        "population",
        "set",
        "met",
        "of",
        "fixed_success_or_before",
        "first_fit_gain_or_after",
        "tight_fit_gain",
        "tight_fit_error",
        "random_fit_error",
    ])?;
    for row in rows {
        let mut record = vec![
            row.name.text().to_owned(),
            row.population.describe(),
            role(row.name, row.population).to_owned(),
            row.met.to_string(),
            row.of.to_string(),
        ];
        record.extend(row.cells.iter().map(|cell| cell.replace("**", "")));
        writer.write_record(record)?;
    }
    for pair in blackouts {
        writer.write_record([
            "blackout".to_owned(),
            format!("{}; {}", pair.high.describe(), pair.low.describe()),
            String::new(),
            pair.met().to_string(),
            "2".to_owned(),
            format!("{:.4}", pair.before.mean),
            format!("{:.4}", pair.after.mean),
            String::new(),
            String::new(),
            String::new(),
        ])?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn page(rows: &[Row], blackouts: &[Blackout], options: &Options) -> String {
    let scale = options.scale;
    let mut page = String::new();
    let _ = write!(
        page,
        "# The paper's populations\n\n[All pages](../README.md)\n\n\
         <!-- Generated by `script/sim populations`; changes belong into sim/src/paper/fit.rs. -->\n\n\
         ## What to take from it\n\n\
         - **The paper's text does not give the parameters of its populations.** Four sentences constrain them. Nothing else was \
         used to choose ours.\n\
         - **Several candidates meet as many sentences.** Each section below lists all that were tried, and how many sentences each meets.\n\
         - **The simulator uses the *fitted* set**, which has round numbers: those of an independent reproduction.\n\
         - **These sentences confirm nothing.** The [page of claims](simulator-paper.md) marks them as used.\n\n\
         ## The sentences\n\n\
         | sentence | constrains |\n| --- | --- |\n\
         | 5.2.2: \"For Rmax = 7, the theoretical success rate of a Fixed strategy under the realistic Heavy-High distribution \
         is 90 percent\" | the mean of heavy-high: 0.721. Nothing about its shape |\n\
         | 5.2.2: \"First-fit and Tight-fit improve on the throughput of Fixed by 25-250 percent, depending on the worker \
         reliability distribution\" | all: the lower the mean, the larger the gain, so the unreliable ones cannot be too \
         unreliable; the narrower a reliable one, the smaller |\n\
         | 5.5: the bound's error is \"quite high (0.05-0.3)\" for Random-fit and \"(0.002-0.09)\" for Tight-fit | all: \
         the deviation from below, because the bound is exact for equal ratings |\n\
         | 5.3.3: \"80 percent versus 96 percent\" after and before 30 % change from normal-high to heavy-low | both together |\n\n\
         Made by `script/sim populations{}{}`: {} seeds of {} rounds for each candidate, 100 workers, Rmin 3, Rmax 7, Tight-fit \
         with large groups as fallback. The blackout has {} seeds, adaptive Tight-fit and alpha 0.5. A sentence is met if the 95 % interval \
         (Student's t) of our mean reaches into its range. For the blackout that is 0.96 give or take 0.02, and 0.80 give or take 0.03. \
         Figures that miss their range are bold. The first set was chosen by the first sentence and round numbers.\n\n",
        if scale.quick { " --quick" } else { "" },
        options.seed_argument(),
        scale.fit_seeds,
        thousands(scale.rounds.into()),
        scale.blackout_seeds,
    );
    let headings = [
        "parameters",
        "set",
        "Fixed's success rate",
        "First-fit's gain",
        "Tight-fit's gain",
        "bound's error, Tight-fit",
        "Random-fit",
        "sentences met",
    ];
    for name in Name::ALL {
        let of: Vec<&Row> = rows.iter().filter(|row| row.name == name).collect();
        let most = of.iter().map(|row| row.met).max().unwrap_or(0);
        let chosen = of.iter().find(|row| row.population == Set::FITTED.of(name)).map_or(0, |row| row.met);
        let _ = write!(page, "## {}\n\n", name.text());
        let lines: Vec<Vec<String>> = of
            .iter()
            .map(|row| {
                let mut line = vec![row.population.describe(), role(name, row.population).to_owned()];
                line.extend(row.cells.iter().cloned());
                line.push(format!("{} of {}", row.met, row.of));
                line
            })
            .collect();
        table(&mut page, &headings, &lines);
        let equals = of.iter().filter(|row| row.met == most).count();
        if of.len() == 1 {
            page.push_str("Nothing to choose.\n\n");
            continue;
        }
        let _ = writeln!(
            page,
            "{equals} of {} candidates meet {most} sentences, and none meets more. The fitted set's meets {chosen}.\n",
            of.len(),
        );
    }
    let most = blackouts.iter().map(Blackout::met).max().unwrap_or(0);
    let best = blackouts.iter().filter(|pair| pair.met() == most).count();
    let _ = write!(
        page,
        "## The blackout\n\nThe {} pairs are made of the candidates that meet most sentences by themselves, and of both sets. {best} of them \
         meet {most} of the two figures, and none meets more. The table has these, and the sets':\n\n",
        blackouts.len()
    );
    let of_set = |pair: &Blackout, set: &Set| set.of(Name::NormalHigh) == pair.high && set.of(Name::HeavyLow) == pair.low;
    let sets = [Set::FIRST, Set::FITTED];
    let shown = blackouts.iter().filter(|pair| pair.met() == most || sets.iter().any(|set| of_set(pair, set)));
    let lines: Vec<Vec<String>> = shown
        .map(|pair| {
            let set = sets.iter().filter(|set| of_set(pair, set)).map(|set| set.name.to_owned());
            let mark = |estimate: Estimate, range: Range| {
                let text = numbers::estimate(estimate, 3);
                if range.meets(estimate) {
                    text
                } else {
                    format!("**{text}**")
                }
            };
            vec![
                pair.high.describe(),
                pair.low.describe(),
                set.collect::<Vec<_>>().join(", "),
                mark(pair.before, BEFORE),
                mark(pair.after, AFTER),
            ]
        })
        .collect();
    table(&mut page, &["normal-high", "heavy-low", "set", "success rate before", "after round 700"], &lines);
    let fitted = blackouts.iter().find(|pair| of_set(pair, &Set::FITTED));
    let _ = writeln!(page, "The fitted pair meets {}.", fitted.map_or(0, Blackout::met));
    page
}
