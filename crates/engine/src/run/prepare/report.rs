//! `explain()`: what a program will do, as JSON and as a graph.

use std::collections::HashSet;
use std::fmt::Write;

use crate::place::Traffic;
use crate::plan::{ArrayKind, Producer};
use crate::run::prepare::program::{Output, PreparedProgram};

pub(in crate::run) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            character if (character as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", character as u32);
            }
            character => out.push(character),
        }
    }
    out.push('"');
    out
}

pub(in crate::run) fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// How many, and their bytes.
fn count_json((count, bytes): (usize, u64)) -> String {
    format!("[{count},{bytes}]")
}

impl PreparedProgram {
    /// The forecast of this program as JSON, every figure exact, but for files whose lengths follow from their entries.
    pub fn to_json(&self) -> String {
        let totals = &self.placed.program.totals;
        let options = self.session.options();
        let passes = list((0..self.plan.producers.len()).map(|index| self.pass_json(index)));
        let candidates = self.candidates_json();
        let program_bytes = self.placed.tasks.bytes() + self.placed.program.bytes();
        format!(
            "{{\"memory_limit\":{},\"overhead_bytes\":{},\"budget_bytes\":{},\"fixed_bytes\":{},\"peak_bytes\":{},\
             \"bytes_read\":{},\"bytes_written\":{},\"bytes_spilled\":{},\"bytes_scratch\":{},\"bytes_temporary\":{},\"bytes_discarded\":{},\
             \"outputs\":{},\"tasks\":{},\"window\":{},\"policy\":{},\"order\":{},\"exact\":{},\"passes\":{},\"candidates\":{},\
             \"rewrites\":{},\"advice\":{},\"least_bytes\":{},\"plan_seconds\":{},\"program_bytes\":{},\"kept\":{},\"known\":{},\"remembered\":{}}}",
            options.memory_limit,
            self.session.overhead(),
            self.session.budget(),
            self.fixed_bytes,
            self.peak_bytes(),
            self.read_bytes(),
            self.written_bytes(),
            totals.spilled_bytes,
            totals.scratch_bytes,
            totals.temporary_bytes,
            totals.discarded_bytes,
            self.outputs_json(),
            self.placed.tasks.len(),
            self.placed.program.reach.tasks,
            quoted(options.policy.name()),
            quoted(&self.placed.name()),
            self.is_exact(),
            passes,
            candidates,
            list(self.plan.rewrites.iter().map(|text| quoted(text))),
            list(self.plan.sources().filter_map(|source| source.advice()).map(|text| quoted(&text))),
            self.least_bytes().map_or("null".into(), |least| least.to_string()),
            self.plan_seconds,
            program_bytes,
            count_json(self.starts_from()),
            count_json(self.knows()),
            count_json(self.remembers()),
        )
    }

    /// Files and folders that are written, with the grid and the bytes of their tiles.
    fn outputs_json(&self) -> String {
        let files = self.outputs.iter().filter_map(Output::file);
        list(files.map(|sink| {
            let (path, bytes) = (quoted(&sink.path().display().to_string()), sink.data_bytes());
            let tile = list(sink.tile().iter().map(u64::to_string));
            format!("{{\"path\":{path},\"tile\":{tile},\"bytes_written\":{bytes}}}")
        }))
    }

    /// The orders that were tried, with headers and metadata as the totals have them. The one that was chosen has its
    /// final figures, after samples and grouped reads; the others those by which they were compared.
    fn candidates_json(&self) -> String {
        let chosen = self.placed.name();
        let chosen = self.placed.compared.iter().position(|(name, ..)| *name == chosen);
        list(
            self.placed
                .compared
                .iter()
                .enumerate()
                .map(|(at, (name, read, written))| {
                    let is_chosen = chosen == Some(at);
                    let (read, written) = if is_chosen {
                        (self.read_bytes(), self.written_bytes())
                    } else {
                        (*read, written + self.metadata_bytes)
                    };
                    format!(
                        "{{\"order\":{},\"bytes_read\":{read},\"bytes_written\":{written},\"chosen\":{is_chosen}}}",
                        quoted(name)
                    )
                }),
        )
    }

    /// What a pass makes: the files it is stored to, else its name in the plan.
    pub(in crate::run) fn result_labels(&self, array: u32) -> Vec<String> {
        let info = &self.plan.arrays[array as usize];
        let files: Vec<String> = info
            .outputs
            .iter()
            .filter_map(|&output| self.outputs[output].file())
            .map(|sink| sink.path().display().to_string())
            .collect();
        if files.is_empty() {
            vec![info.label()]
        } else {
            files
        }
    }

    fn pass_json(&self, index: usize) -> String {
        let producer = &self.plan.producers[index];
        let Traffic { read, written } = self.placed.program.totals.per_pass[index];
        let (shape, tile, flops) = match producer {
            Producer::Pass(pass) => (&pass.domain.shape[..], &pass.domain.tile[..], pass.flops),
            Producer::Work(_) => (&[][..], &[][..], 0),
        };
        let domain = list(
            shape
                .iter()
                .zip(tile)
                .map(|(length, tile)| format!("[{length},{tile}]")),
        );
        format!(
            "{{\"index\":{index},\"label\":{},\"domain\":{domain},\"tasks\":{},\"inputs\":{},\"outputs\":{},\
             \"bytes_read\":{read},\"bytes_written\":{written},\"flops\":{}}}",
            quoted(producer.label()),
            producer.tasks(),
            list(self.input_names(index).iter().map(|name| quoted(name))),
            list(
                self.plan.producers[index]
                    .writes()
                    .into_iter()
                    .flat_map(|array| self.result_labels(array))
                    .map(|label| quoted(&label))
            ),
            flops,
        )
    }

    /// The arrays a pass reads by name, those of one name once: several parts of a file are that file.
    fn input_names(&self, index: usize) -> Vec<String> {
        let arrays = self.plan.producers[index].reads().into_iter();
        let mut seen = HashSet::new();
        let mut names: Vec<String> = arrays.map(|array| self.plan.arrays[array as usize].label()).collect();
        names.retain(|name| seen.insert(name.clone()));
        names
    }

    /// The passes and the arrays between them, in the DOT language: one node or edge per line.
    pub fn to_dot(&self) -> String {
        let mut out = String::from("digraph outcore {\n  rankdir=TB;\n");
        for (id, array) in self.plan.arrays.iter().enumerate() {
            let shape = array
                .node
                .shape
                .iter()
                .map(u64::to_string)
                .collect::<Vec<_>>()
                .join("×");
            let form = if matches!(array.kind, ArrayKind::Computed) {
                "ellipse"
            } else {
                "cylinder"
            };
            let label = format!("{}\\n{shape} {}", array.label().replace('"', "'"), array.node.dtype);
            let _ = writeln!(out, "  a{id} [shape={form}, label=\"{label}\"];");
        }
        for (index, producer) in self.plan.producers.iter().enumerate() {
            let Traffic { read, written } = self.placed.program.totals.per_pass[index];
            let label = format!(
                "pass {index}: {}\\n{} tasks, read {read}, written {written}",
                producer.label().replace('"', "'"),
                producer.tasks()
            );
            let _ = writeln!(out, "  p{index} [shape=box, label=\"{label}\"];");
            for array in self.plan.producers[index].reads() {
                let _ = writeln!(out, "  a{array} -> p{index};");
            }
            for array in self.plan.producers[index].writes() {
                let _ = writeln!(out, "  p{index} -> a{array};");
            }
        }
        out.push_str("}\n");
        out
    }
}
