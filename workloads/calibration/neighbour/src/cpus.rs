//! Lists of CPUs as the kernel prints them.

/// CPUs, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List(pub(crate) Vec<usize>);

/// More CPUs than any machine has are a mistake.
const MOST: usize = 1024;

pub(crate) fn parse(list: &str) -> Result<List, String> {
    let number = |text: &str| text.parse::<usize>().ok().filter(|&cpu| cpu < MOST);
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => cpus.extend(first..=last),
            _ => return Err(format!("{part:?} is invalid: allowed are CPUs and ranges of CPUs such as 0-3")),
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(List(cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_match_the_kernels_format() {
        assert_eq!(parse("1"), Ok(List(vec![1])));
        assert_eq!(parse("0-2,7,1"), Ok(List(vec![0, 1, 2, 7])));
        for wrong in ["", "x", "2-1", "0,,1", "-1", "99999"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
