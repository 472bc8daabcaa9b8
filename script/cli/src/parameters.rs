//! The parameters as users read them, from the one table of `muster_protocol::parameters`: the table of
//! `docs/parameters.md`, and the lists `abi/parameters.json` and `abi/parameters.ts`.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use muster_core::weight;
use muster_protocol::{
    admin::NOTICE,
    parameters::{Amount, Parameter, PARAMETERS},
};

use crate::markdown::row;

/// Between these the page is written from the table; around them by hand.
const BEGIN: &str = "<!-- Written by script/abi from contracts/protocol/src/admin/parameters.rs. -->\n";
const END: &str = "<!-- Until here. -->\n";

/// `docs/parameters.md` with the table as it must be.
///
/// # Errors
/// When the page cannot be read, or lacks the place for the table.
pub fn page(root: &Path) -> Result<String> {
    let text = fs::read_to_string(root.join("docs/parameters.md"))?;
    let (before, rest) = text.split_once(BEGIN).context("docs/parameters.md has no place for the table")?;
    let (_, after) = rest.split_once(END).context("docs/parameters.md does not say where its table ends")?;
    Ok(format!("{before}{BEGIN}\n{}\n{END}{after}", table()))
}

fn table() -> String {
    let mut table = String::from(
        "| number | name | what it is | unit | default | least | most |\n| ---: | --- | --- | --- | ---: | ---: | ---: |\n",
    );
    for (number, Parameter { name, doc, unit, setting, .. }) in PARAMETERS.iter().enumerate() {
        let mark = if PARAMETERS[number].delayed() { " *" } else { "" };
        table += &row(&[
            &number.to_string(),
            &format!("`{name}`{mark}"),
            doc,
            unit,
            &in_words(setting.default),
            &grouped(setting.least),
            &in_words(setting.most),
        ]);
    }
    table
}

/// An amount as a cell says it.
pub(crate) fn in_words(amount: Amount) -> String {
    match amount {
        Amount::Fixed(n) => grouped(n),
        Amount::StakeOver(1) => "the minimum stake at initialisation".into(),
        Amount::StakeOver(n) => format!("the minimum stake at initialisation / {}", grouped(n)),
        Amount::StakeLimit => format!("4^{} x the minimum stake at initialisation", weight::CLASSES - 1),
        Amount::BeforeUpgrades(n) => format!("{}, and {} less than the upgrade delay", grouped(n), grouped(NOTICE.into())),
    }
}

/// A number with its thousands set apart.
fn grouped(n: u64) -> String {
    if n == u64::MAX {
        return "2^64 - 1".into();
    }
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `abi/parameters.json`: the list, numbers of 64 bits as decimal strings.
pub fn json() -> String {
    list(|n| format!("\"{n}\"")) + "\n"
}

/// `abi/parameters.ts`: the same list, numbers of 64 bits as bigints.
pub fn typescript() -> String {
    let list = list(|n| format!("{n}n"));
    format!(
        "// Written by script/abi from contracts/protocol/src/admin/parameters.rs.\nexport const musterParameters = {list} as const;\n"
    )
}

/// The list in the syntax that JSON and TypeScript share, except for how they write numbers of 64 bits.
fn list(number: fn(u64) -> String) -> String {
    let amount = |amount| match amount {
        Amount::Fixed(n) => number(n),
        Amount::StakeOver(n) => format!("{{\"minimumStake\":{{\"times\":{},\"over\":{}}}}}", number(1), number(n)),
        Amount::StakeLimit => {
            format!("{{\"minimumStake\":{{\"times\":{},\"over\":{}}}}}", number(weight::stake_limit(1)), number(1))
        }
        Amount::BeforeUpgrades(n) => {
            format!("{{\"lesserOf\":[{},{{\"upgradeDelay\":{{\"less\":{}}}}}]}}", number(n), number(NOTICE.into()))
        }
    };
    let entries: Vec<_> = PARAMETERS
        .iter()
        .enumerate()
        .map(|(at, parameter)| {
            let Parameter { name, doc, unit, setting, .. } = parameter;
            format!(
                "  {{\"number\":{at},\"name\":{name:?},\"doc\":{doc:?},\"unit\":{unit:?},\"default\":{},\"least\":{},\"most\":{},\"delayed\":{}}}",
                amount(setting.default),
                number(setting.least),
                amount(setting.most),
                parameter.delayed(),
            )
        })
        .collect();
    format!("[\n{}\n]", entries.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (n, shown) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567"), (u64::MAX, "2^64 - 1")] {
            assert_eq!(grouped(n), shown);
        }
    }

    #[test]
    fn the_list_is_json_and_says_what_follows_from_initialisation() {
        let list: serde_json::Value = serde_json::from_str(&json()).unwrap();
        assert_eq!(list.as_array().unwrap().len(), PARAMETERS.len());
        let entry = |name: &str| list.as_array().unwrap().iter().find(|entry| entry["name"] == name).unwrap().clone();
        assert_eq!(entry("minPrice")["most"], u64::MAX.to_string());
        assert_eq!(entry("minStake")["most"]["minimumStake"]["times"], "262144");
        assert_eq!(entry("groupFee")["default"]["minimumStake"]["over"], "100");
        assert_eq!(entry("unbonding")["most"]["lesserOf"][1]["upgradeDelay"]["less"], "86400");
        assert_eq!((&entry("unbonding")["delayed"], &entry("tau")["delayed"]), (&true.into(), &false.into()));
        assert!(typescript().contains("\"default\":1800n"));
    }
}
