//! The options of `cargo xtask test`.

use anyhow::{Context, Result, bail};

/// What is run, how often, and on how busy a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Options {
    /// Only what a change is likely to break.
    pub(crate) quick: bool,
    /// 100,000 scripts against the gate instead of 2,000.
    pub(crate) long: bool,
    /// Threads that keep the processors busy meanwhile.
    pub(crate) load: usize,
    /// How often the tests run.
    pub(crate) times: u32,
}

impl Options {
    /// Reads the words behind `test`.
    pub(crate) fn read(words: &[&str]) -> Result<Self> {
        let mut options = Self { quick: false, long: false, load: 0, times: 1 };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut number = |least: usize| {
                let value = words.next().with_context(|| format!("`{word}` needs a number"))?;
                let number: usize =
                    value.parse().with_context(|| format!("`{word} {value}`: not a number"))?;
                if number < least || number > 1_000 {
                    bail!("`{word} {value}`: must be between {least} and 1000");
                }
                Ok(number)
            };
            match *word {
                "--quick" => options.quick = true,
                "--long" => options.long = true,
                "--load" => options.load = number(1)?,
                "--times" => options.times = u32::try_from(number(1)?)?,
                other => bail!(
                    "unknown option `{other}` of `cargo xtask test`; known are --quick, --long, --load and --times"
                ),
            }
        }
        if options.quick && (options.long || options.load > 0 || options.times > 1) {
            bail!("`--quick` cannot be used with --long, --load or --times");
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_bad_ones_refused() {
        assert_eq!(Options::read(&[]).unwrap(), Options { quick: false, long: false, load: 0, times: 1 });
        let read = Options::read(&["--load", "8", "--long", "--times", "10"]).unwrap();
        assert_eq!(read, Options { quick: false, long: true, load: 8, times: 10 });
        assert!(Options::read(&["--quick"]).unwrap().quick);
        let bad =
            [&["--load"][..], &["--load", "many"], &["--times", "0"], &["--lod"], &["--quick", "--long"]];
        for bad in bad {
            assert!(Options::read(bad).is_err(), "{bad:?}");
        }
    }
}
