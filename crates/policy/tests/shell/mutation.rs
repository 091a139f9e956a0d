//! Random mutations of tricky lines with fixed seeds: the same entry points as the fuzz targets, in the ordinary suite.

use qoder_policy::shell::read;

/// Tricky lines to start from.
const CORPUS: &str = include_str!("corpus.txt");
/// How many mutations are read.
const ROUNDS: usize = 3000;

/// A small generator with a fixed seed.
pub struct Random(pub u64);

impl Random {
    /// The next number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }
}

#[test]
fn mutated_lines_never_break_the_reader() {
    let lines: Vec<&str> = CORPUS.lines().collect();
    let mut random = Random(0x5eed_1234_abcd_0001);
    let mut proven = 0;
    for _ in 0..ROUNDS {
        let mut characters: Vec<char> = lines[random.below(lines.len())].chars().collect();
        for _ in 0..=random.below(6) {
            let at = random.below(characters.len());
            match random.below(4) {
                0 if characters.len() > 1 => drop(characters.remove(at)),
                1 => characters.insert(at, b"$(){}[]`'\"\\;&|<>#~*!=\n ab"[random.below(25)].into()),
                2 => {
                    let other: Vec<char> = lines[random.below(lines.len())].chars().collect();
                    let from = random.below(other.len());
                    characters.splice(at..at, other.into_iter().skip(from).take(12));
                }
                _ => {
                    let with = random.below(characters.len());
                    characters.swap(at, with);
                }
            }
        }
        let text: String = characters.into_iter().collect();
        let reading = read(&text);
        proven += usize::from(reading.is_proven());
        assert_eq!(reading, read(&text), "{text:?} reads differently the second time");
    }
    assert!(proven > 0 && proven < ROUNDS, "{proven} of {ROUNDS} proven");
}
