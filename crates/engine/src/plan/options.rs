//! Which rewrites and orders a plan may make use of.

/// Which rewrites are on. All off is the plan of one operator per pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// Re-associate matrix chains.
    pub reassociate: bool,
    /// Fuse products with a small operand into passes.
    pub fuse_products: bool,
    /// Merge passes over the same array into one scan.
    pub merge_scans: bool,
    /// Try tasks of a consuming pass as soon as their inputs exist.
    pub pipeline: bool,
    /// Try passes in alternating direction, and along columns.
    pub alternate: bool,
    /// Try the order in which cells that share tiles run together.
    pub share_tiles: bool,
    /// Search for orders of all tasks.
    pub search: bool,
}

impl PlanOptions {
    pub const ALL: PlanOptions = PlanOptions {
        reassociate: true,
        fuse_products: true,
        merge_scans: true,
        pipeline: true,
        alternate: true,
        share_tiles: true,
        search: true,
    };
    pub const NONE: PlanOptions = PlanOptions {
        reassociate: false,
        fuse_products: false,
        merge_scans: false,
        pipeline: false,
        alternate: false,
        share_tiles: false,
        search: false,
    };

    pub const NAMES: [&'static str; 7] = [
        "reassociate",
        "fuse-products",
        "merge-scans",
        "pipeline",
        "alternate",
        "share-tiles",
        "search",
    ];

    /// Switches one rewrite by its name. False when there is none of that name.
    pub fn switch(&mut self, name: &str, on: bool) -> bool {
        match name {
            "all" => *self = if on { PlanOptions::ALL } else { PlanOptions::NONE },
            "reassociate" => self.reassociate = on,
            "fuse-products" => self.fuse_products = on,
            "merge-scans" => self.merge_scans = on,
            "pipeline" => self.pipeline = on,
            "alternate" => self.alternate = on,
            "share-tiles" => self.share_tiles = on,
            "search" => self.search = on,
            _ => return false,
        }
        true
    }
}

impl Default for PlanOptions {
    fn default() -> Self {
        PlanOptions::ALL
    }
}
