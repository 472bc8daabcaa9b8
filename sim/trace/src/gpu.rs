//! The GPU that a name means, and its VRAM: current cards, and those in data centres.
//!
//! Names are read as people and tools write them: case, vendor and form factor do not matter, nor whether words are joined by
//! spaces, dashes, underscores or nothing. `NVIDIA A100-SXM4-80GB`, `a100_80g` and `A100 80 GB` are one card. Where a card is sold
//! with several sizes and the name says none, it is the first of [`sizes`].

use std::fmt;

/// GiB of VRAM that a card is sold with, the size first that is meant when none is named; none if it is not known.
fn sizes(card: &str) -> Option<&'static [u16]> {
    Some(match card {
        // GeForce RTX 50, desktop and laptop.
        "rtx5090" => &[32],
        "rtx5090d" => &[32, 24],
        "rtx5080" | "rtx5070ti" => &[16],
        "rtx5070" => &[12],
        "rtx5060ti" => &[16, 8],
        "rtx5060" | "rtx5050" => &[8],
        "rtx5090laptop" => &[24],
        "rtx5080laptop" => &[16],
        "rtx5070tilaptop" => &[12],
        "rtx5070laptop" | "rtx5060laptop" | "rtx5050laptop" => &[8],
        // GeForce RTX 40.
        "rtx4090" | "rtx4090d" => &[24],
        "rtx4080super" | "rtx4080" | "rtx4070tisuper" => &[16],
        "rtx4070ti" | "rtx4070super" | "rtx4070" => &[12],
        "rtx4060ti" => &[8, 16],
        "rtx4060" => &[8],
        "rtx4090laptop" => &[16],
        "rtx4080laptop" => &[12],
        "rtx4070laptop" | "rtx4060laptop" => &[8],
        "rtx4050" | "rtx4050laptop" => &[6],
        // GeForce RTX 30.
        "rtx3090ti" | "rtx3090" => &[24],
        "rtx3080ti" => &[12],
        "rtx3080" => &[10, 12],
        "rtx3070ti" | "rtx3070" | "rtx3060ti" => &[8],
        "rtx3060" => &[12, 8],
        "rtx3050" => &[8, 6],
        "rtx3080tilaptop" => &[16],
        "rtx3080laptop" => &[8, 16],
        "rtx3070tilaptop" | "rtx3070laptop" => &[8],
        "rtx3060laptop" => &[6],
        "rtx3050tilaptop" => &[4],
        "rtx3050laptop" => &[4, 6],
        // GeForce RTX 20, GTX 16 and GTX 10, Titan.
        "rtx2080ti" => &[11],
        "rtx2080super" | "rtx2080" | "rtx2070super" | "rtx2070" | "rtx2060super" => &[8],
        "rtx2060" => &[6, 12],
        "gtx1660ti" | "gtx1660super" | "gtx1660" => &[6],
        "gtx1650ti" | "gtx1650super" | "gtx1650" => &[4],
        "gtx1080ti" => &[11],
        "gtx1080" | "gtx1070ti" | "gtx1070" => &[8],
        "gtx1060" => &[6, 3],
        "titanrtx" => &[24],
        "titanv" | "titanxp" => &[12],
        // Workstations.
        "rtxa400" | "rtxt400" => &[4],
        "rtxa1000" => &[8],
        "rtxa2000" => &[6, 12],
        "rtxa4000" => &[16],
        "rtxa4500" => &[20],
        "rtxa5000" | "rtxa5500" => &[24],
        "rtxa6000" => &[48],
        "rtx1000ada" => &[6],
        "rtx2000ada" => &[16],
        "rtx4000ada" | "rtx4000sffada" => &[20],
        "rtx4500ada" => &[24],
        "rtx5000ada" => &[32],
        "rtx5880ada" | "rtx6000ada" => &[48],
        "rtxpro2000" | "rtxpro2000blackwell" => &[16],
        "rtxpro4000" | "rtxpro4000blackwell" => &[24],
        "rtxpro4500" | "rtxpro4500blackwell" => &[32],
        "rtxpro5000" | "rtxpro5000blackwell" => &[48, 72],
        "rtxpro6000" | "rtxpro6000blackwell" => &[96],
        // Quadro of the Turing years; "RTX 6000" without "Ada" is one of these.
        "rtx4000" => &[8],
        "rtx5000" => &[16],
        "rtx6000" => &[24],
        "rtx8000" => &[48],
        // Data centres.
        "k80" => &[12],
        "m40" => &[12, 24],
        "m60" | "p4" => &[8],
        "p40" => &[24],
        "v100" => &[16, 32],
        "v100m16" | "p100" => &[16],
        "v100m32" | "v100s" => &[32],
        "t4" | "t4g" | "a2" | "a16" => &[16],
        "a10" | "a10g" | "a10m" | "a30" | "a30x" | "l2" | "l4" | "l40g" => &[24],
        "a40" | "l20" | "l40" | "l40s" => &[48],
        "a100" => &[40, 80],
        "a100x" => &[80],
        "a800" => &[80, 40],
        "h100" | "h800" => &[80],
        "h100nvl" => &[94],
        "h20" => &[96, 141],
        "h200" | "h200nvl" => &[141],
        "gh200" => &[96, 144],
        "b100" | "b200" => &[192, 180],
        "gb200" => &[192, 186],
        "b300" | "gb300" => &[288],
        // AMD and Intel.
        "mi50" => &[16, 32],
        "mi60" | "mi100" => &[32],
        "mi210" => &[64],
        "mi250" | "mi250x" | "mi300a" => &[128],
        "mi300x" | "mi308x" => &[192],
        "mi325x" => &[256],
        "mi350x" | "mi355x" => &[288],
        "rx9070xt" | "rx9070" => &[16],
        "rx9060xt" => &[16, 8],
        "rx7900xtx" => &[24],
        "rx7900xt" => &[20],
        "rx7900gre" | "rx7800xt" | "rx7600xt" => &[16],
        "rx7700xt" => &[12],
        "rx7600" => &[8],
        "rx6900xt" | "rx6800xt" | "rx6800" => &[16],
        "prow7900" => &[48],
        "prow7800" | "prow6800" => &[32],
        "gaudi2" => &[96],
        "gaudi3" => &[128],
        // Undisclosed in Alibaba's list of machines, and taken so by the studies of it.
        "g2" => &[24],
        "g3" => &[48],
        _ => return None,
    })
}

/// The card that a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// One spelling for all: equal for names of one card.
    pub key: String,
    /// GiB.
    pub vram: u16,
    /// Other sizes it could have had, when neither name nor list says which.
    pub others: &'static [u16],
}

/// Words that say nothing about which card it is.
const VENDORS: [&str; 10] = ["nvidia", "amd", "intel", "corporation", "geforce", "tesla", "quadro", "radeon", "instinct", "ati"];
const FORMS: [&str; 23] = [
    "gpu",
    "graphics",
    "card",
    "workstation",
    "server",
    "desktop",
    "edition",
    "pcie",
    "pci",
    "sxm",
    "sxm2",
    "sxm3",
    "sxm4",
    "sxm5",
    "sxm6",
    "oam",
    "hbm2",
    "hbm2e",
    "hbm3",
    "hbm3e",
    "gddr6",
    "gddr6x",
    "generation",
];

/// The reason why the size of a card is unknown, in words that continue its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The card is not in the list, and its name says no size.
    Unknown,
    /// The name says a size (GiB) that the card is not sold with; the sizes that it is.
    Size(u16, &'static [u16]),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Unread::Unknown => write!(f, "is no card whose VRAM is known"),
            Unread::Size(said, known) => {
                let known = known.iter().map(u16::to_string).collect::<Vec<_>>().join(" or ");
                write!(f, "says {said} GiB, but that card comes with {known}")
            }
        }
    }
}

/// The most GiB of a card.
pub const VRAM_MOST: u16 = 960;

/// Reads a name. With `vram` from elsewhere any name will do; without, the card must be known or the name must include its
/// size.
///
/// # Errors
/// An unknown card, or a size that it is not sold with.
pub fn read(name: &str, vram: Option<u16>) -> Result<Card, Unread> {
    let words: Vec<String> = name
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let mut key = String::new();
    let mut size = None;
    let mut at = 0;
    while at < words.len() {
        let word = words[at].as_str();
        let unit = |word: &str| matches!(word, "g" | "gb" | "gib");
        let digits = word.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let gib = |digits: &str| digits.parse::<u16>().ok().filter(|gib| (1..=VRAM_MOST).contains(gib));
        if let (Some(gib), true) = (gib(digits), unit(&word[digits.len()..])) {
            size = Some(gib);
        } else if let (Some(gib), Some(true)) = (gib(word), words.get(at + 1).map(|next| unit(next))) {
            size = Some(gib);
            at += 1;
        } else if matches!(word, "mobile" | "notebook" | "laptop") {
            key.push_str("laptop");
        } else if word == "max" && words.get(at + 1).is_some_and(|next| next == "q") {
            key.push_str("laptop");
            at += 1;
        } else if !VENDORS.contains(&word) && !FORMS.contains(&word) {
            key.push_str(word);
        }
        at += 1;
    }
    while let Some(rest) = VENDORS.iter().find_map(|vendor| key.strip_prefix(vendor)) {
        key = rest.to_string();
    }
    // "4090" and "A6000" leave the family out.
    let known = [key.clone(), format!("rtx{key}"), format!("gtx{key}")].into_iter().find_map(|key| Some((sizes(&key)?, key)));
    let (key, known) = known.map_or((key, None), |(known, key)| (key, Some(known)));
    let (vram, others) = match (vram, size, known) {
        (Some(vram), ..) => (vram, &[][..]),
        (None, Some(size), Some(known)) if !known.contains(&size) => return Err(Unread::Size(size, known)),
        (None, Some(size), _) => (size, &[][..]),
        (None, None, Some(known)) => (known[0], &known[1..]),
        (None, None, None) => return Err(Unread::Unknown),
    };
    Ok(Card { key, vram, others })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vram(name: &str) -> u16 {
        read(name, None).unwrap_or_else(|error| panic!("{name} {error}")).vram
    }

    #[test]
    fn no_card_has_0_gib() {
        assert!(matches!(read("Card 0GB", None), Err(Unread::Unknown)));
        assert!(matches!(read("Card 961 GB", None), Err(Unread::Unknown)));
        assert_eq!(vram("Card 960 GB"), 960);
    }

    #[test]
    fn spellings_of_a_card_are_one() {
        for (spellings, size) in [
            (
                &["NVIDIA GeForce RTX 4090", "rtx4090", "RTX-4090", "rtx_4090", "4090", "NVIDIAGeForceRTX4090", "RTX 4090 24GB"]
                    [..],
                24,
            ),
            (&["NVIDIA GeForce RTX 3070 Ti Laptop GPU", "RTX 3070 Ti Mobile", "3070Ti laptop", "RTX 3070 Ti Max-Q"], 8),
            (&["NVIDIA A100-SXM4-80GB", "a100_80g", "A100 80 GB", "A100-PCIE-80GB", "Tesla A100 (80GiB)"], 80),
            (&["Tesla V100-SXM2-32GB", "V100 32G"], 32),
            (&["NVIDIA RTX A6000", "A6000", "RTXA6000"], 48),
            (&["NVIDIA RTX 6000 Ada Generation", "RTX6000 Ada", "rtx 6000ada"], 48),
            (&["AMD Instinct MI300X", "MI300X OAM", "mi300x"], 192),
            (&["NVIDIA H100 80GB HBM3", "H100 SXM5", "H100-PCIe"], 80),
        ] {
            let first = read(spellings[0], None).unwrap();
            assert_eq!(first.vram, size, "{}", spellings[0]);
            for spelling in spellings {
                let card = read(spelling, None).unwrap_or_else(|error| panic!("{spelling} {error}"));
                assert_eq!((card.key, card.vram), (first.key.clone(), size), "{spelling}");
            }
        }
    }

    #[test]
    fn what_sells_today_is_known() {
        for (name, size) in [
            ("RTX 5090", 32),
            ("RTX 5080", 16),
            ("RTX 5070 Ti", 16),
            ("RTX 5070", 12),
            ("RTX 5060", 8),
            ("RTX 5090 Laptop GPU", 24),
            ("RTX 4090 D", 24),
            ("RTX 4080 SUPER", 16),
            ("RTX 4070 Ti SUPER", 16),
            ("RTX 4070 Ti", 12),
            ("RTX 4060", 8),
            ("RTX 4090 Laptop GPU", 16),
            ("RTX 3090 Ti", 24),
            ("RTX 3080 Ti", 12),
            ("RTX 3060 Ti", 8),
            ("RTX 2080 Ti", 11),
            ("A10", 24),
            ("A10G", 24),
            ("A16", 16),
            ("A30", 24),
            ("A40", 48),
            ("A100 40GB", 40),
            ("A800", 80),
            ("H200", 141),
            ("H800", 80),
            ("H20", 96),
            ("B100", 192),
            ("B200", 192),
            ("GB200", 192),
            ("L4", 24),
            ("L20", 48),
            ("L40", 48),
            ("L40S", 48),
            ("Tesla T4", 16),
            ("V100 16GB", 16),
            ("Tesla P100-PCIE-16GB", 16),
            ("P40", 24),
            ("MI210", 64),
            ("MI250", 128),
            ("MI250X", 128),
            ("MI325X", 256),
            ("RTX A2000", 6),
            ("RTX A2000 12GB", 12),
            ("RTX A4000", 16),
            ("RTX A4500", 20),
            ("RTX A5000", 24),
            ("Quadro RTX 8000", 48),
            ("RTX PRO 6000 Blackwell", 96),
            ("G2", 24),
            ("G3", 48),
            ("V100M16", 16),
            ("V100M32", 32),
            ("H100 NVL", 94),
            ("RX 7900 XTX", 24),
        ] {
            assert_eq!(vram(name), size, "{name}");
        }
    }

    #[test]
    fn a_size_that_nobody_names_is_the_first_and_says_so() {
        for (name, size, others) in [("A100", 40, &[80][..]), ("V100", 16, &[32]), ("RTX 3060", 12, &[8]), ("T4", 16, &[])] {
            let card = read(name, None).unwrap();
            assert_eq!((card.vram, card.others), (size, others), "{name}");
        }
        assert_eq!(read("A100", Some(80)).unwrap(), Card { key: "a100".into(), vram: 80, others: &[] });
        assert_eq!(read("A100 MIG 1g.10gb", None).unwrap().vram, 10, "a slice has what its name says");
    }

    #[test]
    fn what_is_not_known_needs_a_size() {
        assert_eq!(read("T5", None), Err(Unread::Unknown));
        assert_eq!(read("", None), Err(Unread::Unknown));
        let odd = read("A100 800GB", None).unwrap_err();
        assert_eq!(odd.to_string(), "says 800 GiB, but that card comes with 40 or 80");
        assert_eq!(read("T5", Some(20)).unwrap().vram, 20);
        assert_eq!(vram("T5 20GB"), 20);
    }
}
