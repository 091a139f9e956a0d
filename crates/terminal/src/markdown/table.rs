//! How wide the columns of a table are.

/// The columns that each cell gets, when the table has `room` for all of them together. The widest shrink first.
pub(crate) fn column_widths(wanted: &[usize], room: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = wanted.to_vec();
    let least = 3;
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = widths.iter_mut().max() else { break };
        if *widest <= least {
            break;
        }
        *widest -= 1;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_column_shrinks_first() {
        assert_eq!(column_widths(&[3, 10, 4], 20), [3, 10, 4]);
        assert_eq!(column_widths(&[3, 10, 4], 12), [3, 5, 4]);
        assert_eq!(column_widths(&[9, 9], 2), [3, 3]);
    }
}
