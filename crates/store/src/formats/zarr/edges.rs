//! Rectilinear chunk grids: chunks whose lengths differ along an axis, as runs of equal ones.

use serde_json::Value;

use super::json::Extension;

/// Chunks of one length behind each other along an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EdgeRun {
    /// The length of each chunk.
    pub edge: u64,
    /// The number of the first chunk along the axis.
    pub first: u64,
    /// The element that the first chunk begins with.
    pub start: u64,
    /// Where the last chunk ends, or the array.
    pub end: u64,
}

/// The runs of each axis, as far as the array goes, by the configuration of the grid; neighbours differ in length.
///
/// # Errors
/// One line: lengths that are none, or that do not cover the array.
pub(super) fn edge_runs(grid: &Extension, shape: &[u64]) -> Result<Vec<Vec<EdgeRun>>, String> {
    if grid.setting("kind").and_then(Value::as_str) != Some("inline") {
        return Err("the rectilinear chunk grid is not of kind \"inline\"".into());
    }
    let axes = grid.setting("chunk_shapes").and_then(Value::as_array);
    let axes = axes.filter(|axes| axes.len() == shape.len());
    let axes = axes.ok_or_else(|| format!("the rectilinear chunk grid has no chunk_shapes of {} axes", shape.len()))?;
    let numbered = axes.iter().zip(shape).enumerate();
    let runs = numbered.map(|(axis, (edges, &length))| {
        axis_runs(edges, length).map_err(|reason| format!("chunk_shapes of axis {axis}: {reason}"))
    });
    runs.collect()
}

fn axis_runs(edges: &Value, length: u64) -> Result<Vec<EdgeRun>, String> {
    let mut runs: Vec<EdgeRun> = vec![];
    let (mut first, mut start) = (0u64, 0u64);
    let mut add = |edge: u64, count: u64| {
        // Chunks behind the array's end are none.
        let count = count.min((length - start).div_ceil(edge));
        if count == 0 {
            return;
        }
        let end = start.saturating_add(edge.saturating_mul(count)).min(length);
        match runs.last_mut() {
            Some(run) if run.edge == edge => run.end = end,
            _ => runs.push(EdgeRun {
                edge,
                first,
                start,
                end,
            }),
        }
        (first, start) = (first + count, end);
    };
    match edges {
        Value::Array(entries) if entries.is_empty() => return Err("there are no lengths".into()),
        Value::Array(entries) => {
            for entry in entries {
                let (edge, count) = match entry.as_array().map(Vec::as_slice) {
                    None => (positive(entry)?, 1),
                    Some([edge, count]) => (positive(edge)?, positive(count)?),
                    Some(_) => return Err("an entry is neither a length nor a length and a count".into()),
                };
                add(edge, count);
            }
        }
        edge => add(positive(edge)?, u64::MAX),
    }
    match start == length {
        true => Ok(runs),
        false => Err(format!("lengths up to {start} do not cover the array's {length}")),
    }
}

fn positive(number: &Value) -> Result<u64, String> {
    let number = number.as_u64().filter(|&number| number > 0);
    number.ok_or_else(|| "a length or a count is no positive whole number".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn runs(edges: Value, length: u64) -> Result<Vec<[u64; 4]>, String> {
        let runs = axis_runs(&edges, length)?;
        Ok(runs
            .iter()
            .map(|run| [run.edge, run.first, run.start, run.end])
            .collect())
    }

    #[test]
    fn equal_lengths_are_one_run_up_to_the_end_of_the_array() {
        assert_eq!(runs(json!([2, [2, 2], 3, 9]), 8), Ok(vec![[2, 0, 0, 6], [3, 3, 6, 8]]));
        assert_eq!(runs(json!([[1, u64::MAX]]), 5), Ok(vec![[1, 0, 0, 5]]));
        assert_eq!(runs(json!([u64::MAX, 1]), 5), Ok(vec![[u64::MAX, 0, 0, 5]]));
        assert_eq!(runs(json!(4), 10), Ok(vec![[4, 0, 0, 10]]));
        assert_eq!(runs(json!([3]), 0), Ok(vec![]));
    }

    #[test]
    fn damaged_lengths_are_refused() {
        for edges in [
            json!([]),
            json!([0]),
            json!([-1]),
            json!([1.5]),
            json!([[2]]),
            json!([[2, 0]]),
            json!("4"),
        ] {
            assert!(runs(edges.clone(), 4).is_err(), "{edges}");
        }
        assert_eq!(
            runs(json!([[2, 2], 1]), 6),
            Err("lengths up to 5 do not cover the array's 6".into())
        );
    }
}
