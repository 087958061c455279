//! Outputs by the suffix of their names, checked before anything happens.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_dtype::DType;
use rustix::fs::{access, lstat, stat, statx, Access, AtFlags, FileType, Mode, Stat, StatxAttributes, StatxFlags, CWD};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::formats::{is_array_name, updatable, FORMATS};
use crate::array::annotations::Annotations;
use crate::array::format::ArrayUpdate;
use crate::array::region::{checked_elements, region_of};
use crate::array::sink::OutputPlan;
use crate::base::directory::parent_of;
use crate::base::interval::Interval;
use crate::durable::journal::JournalRecord;
use crate::durable::locked::LockedDir;
use crate::durable::partial::check_replaceable;
use crate::durable::target::{check_space, resolve, whole};
use crate::formats::factor::{FactorOutput, FactorPlan};
use crate::formats::hdf5::{FilePart, PartPlan};
use crate::formats::sparse::{SparseOutput, SparsePlan};
use crate::{Io, Region, Sink, StoreError};

/// The output of an array, by the suffix of its name.
struct ArrayOutput {
    path: PathBuf,
    bytes: u64,
    format: Arc<dyn OutputPlan>,
}

impl ArrayOutput {
    fn new(path: &Path, shape: &[u64], dtype: DType, tile: &[u64]) -> Result<ArrayOutput, StoreError> {
        let as_directory = [&b"/"[..], b"/."]
            .iter()
            .any(|end| path.as_os_str().as_bytes().ends_with(end));
        let path = whole(path)?;
        let bytes = checked_elements(shape).and_then(|elements| elements.checked_mul(dtype.size() as u64));
        let Some(bytes) = bytes.filter(|bytes| *bytes < i64::MAX as u64 / 2) else {
            return Err(StoreError::Invalid(format!("shape {shape:?} of {dtype} overflows")));
        };
        if tile.len() != shape.len() {
            return Err(StoreError::Invalid(format!(
                "tile {tile:?} and shape {shape:?} have different numbers of axes"
            )));
        }
        let tile = clipped(tile, shape);
        let Some(format) = FORMATS.iter().find(|format| format.takes(&path)) else {
            let reason = match path.extension() {
                Some(end) if end == "ocs" => "only sparse matrices are stored there; an array ends in .npy or .zarr",
                _ => "outputs end in .npy or .zarr, sparse matrices in .ocs",
            };
            return Err(StoreError::unsupported(&path, reason));
        };
        let format = format.plan_sink(shape, dtype, &tile)?;
        if as_directory && !format.is_folder() {
            let suffix = path.extension().unwrap_or_default().display();
            let reason = format!("ends in /, which names a directory, and a .{suffix} output is a file");
            return Err(StoreError::unsupported(&path, reason));
        }
        Ok(ArrayOutput { path, bytes, format })
    }
}

/// A tile of an array, which is no longer than that along any axis.
fn clipped(tile: &[u64], shape: &[u64]) -> Vec<u64> {
    let axes = tile.iter().zip(shape);
    axes.map(|(tile, extent)| (*tile).min(*extent).max(1)).collect()
}

/// An output that has been checked but not created: what it will cost, before anything happens.
#[derive(Clone, Debug)]
pub struct SinkPlan {
    /// As it was named.
    path: PathBuf,
    /// Where it will be: the directory without links, and the name that a link there leads to.
    target: PathBuf,
    overwrite: bool,
    format: Arc<dyn OutputPlan>,
    bytes: u64,
}

impl SinkPlan {
    /// Checks an output: `.npy` or `.zarr` by suffix, in a writable directory with enough free space, and not there yet
    /// unless `overwrite`. Links are followed: what they lead to is written. Creates nothing.
    ///
    /// # Errors
    /// Another suffix, a directory that cannot be written in, a name that is taken, too little space.
    pub fn new(
        path: &Path,
        shape: &[u64],
        dtype: DType,
        tile: &[u64],
        overwrite: bool,
    ) -> Result<SinkPlan, StoreError> {
        let ArrayOutput { path, bytes, format } = ArrayOutput::new(path, shape, dtype, tile)?;
        SinkPlan::checked(path, overwrite, format, bytes)
    }

    /// As `new`, of a sparse matrix, whose name is `.ocs` by custom.
    ///
    /// # Errors
    /// Those of `new`; the suffix of another format.
    pub fn sparse(path: &Path, output: &SparseOutput, overwrite: bool) -> Result<SinkPlan, StoreError> {
        let path = whole(path)?;
        if is_array_name(&path) {
            return Err(StoreError::unsupported(&path, "a sparse matrix is stored as .ocs"));
        }
        let format = SparsePlan::new(output);
        let bytes = format.bytes();
        SinkPlan::checked(path, overwrite, Arc::new(format), bytes)
    }

    /// As `new`, of a factor, whose name is `.ocf` by custom.
    ///
    /// # Errors
    /// The errors of `new`; the suffix of another format.
    pub fn factor(path: &Path, output: &FactorOutput, overwrite: bool) -> Result<SinkPlan, StoreError> {
        let path = whole(path)?;
        if is_array_name(&path) || path.extension().is_some_and(|suffix| suffix == "ocs") {
            return Err(StoreError::unsupported(&path, "a factor is stored as .ocf"));
        }
        let format = FactorPlan::new(output, &path)?;
        let bytes = format.bytes();
        SinkPlan::checked(path, overwrite, Arc::new(format), bytes)
    }

    /// The same output with annotations, where its format has any.
    #[must_use]
    pub fn annotated(&self, annotations: &Annotations) -> SinkPlan {
        let format = self.format.annotated(annotations);
        SinkPlan {
            format: format.unwrap_or_else(|| self.format.clone()),
            ..self.clone()
        }
    }

    /// As `new`, with chunks that are encoded by codecs, which are a list in JSON as Zarr v3 has them.
    ///
    /// # Errors
    /// Those of `new`; a format without codecs; a codec that is not written.
    pub fn encoded(
        path: &Path,
        shape: &[u64],
        dtype: DType,
        tile: &[u64],
        overwrite: bool,
        codecs: &str,
    ) -> Result<SinkPlan, StoreError> {
        let ArrayOutput { path, bytes, format } = ArrayOutput::new(path, shape, dtype, tile)?;
        let format = format.encoded(codecs);
        let format = format.unwrap_or_else(|| Err("only Zarr outputs have codecs".into()));
        let format = format.map_err(|reason| StoreError::unsupported(&path, reason))?;
        SinkPlan::checked(path, overwrite, format, bytes)
    }

    /// A data set that lies in one piece in a file that is there; `path` is the name that errors say, which nothing has.
    ///
    /// # Errors
    /// Those of `new`.
    pub fn part(
        path: &Path,
        part: &FilePart,
        shape: &[u64],
        dtype: DType,
        tile: &[u64],
    ) -> Result<SinkPlan, StoreError> {
        let tile = clipped(tile, shape);
        SinkPlan::checked(
            whole(path)?,
            false,
            Arc::new(PartPlan::new(part, shape, dtype, &tile)),
            0,
        )
    }

    /// A part of the array that is at `path`: whole chunks of it, in an array of `shape`.
    ///
    /// # Errors
    /// The array is not one that is written in parts, or not the one that the update is for; a directory that cannot be written
    /// in; too little space.
    pub fn update(path: &Path, update: &ArrayUpdate, shape: &[u64], dtype: DType) -> Result<SinkPlan, StoreError> {
        let path = whole(path)?;
        let target = resolve(&path)?;
        let format = updatable(&target)?.0.plan_update(&target, update, shape, dtype)?;
        let bytes = shape.iter().product::<u64>() * dtype.size() as u64;
        SinkPlan::checked(path, true, format, bytes)
    }

    fn checked(
        path: PathBuf,
        overwrite: bool,
        format: Arc<dyn OutputPlan>,
        bytes: u64,
    ) -> Result<SinkPlan, StoreError> {
        // A bound is no reason to refuse a disk that may have room.
        let bytes = if format.is_exact() { bytes } else { 0 };
        let plan = SinkPlan {
            target: resolve(&path)?,
            path,
            overwrite,
            format,
            bytes,
        };
        plan.check_target()?;
        check_space(&[(plan.target.clone(), bytes)])?;
        Ok(plan)
    }

    fn check_target(&self) -> Result<(), StoreError> {
        let parent = parent_of(&self.target);
        let refused = |cause: Errno| StoreError::io(&parent, 0, "write in this directory", cause);
        let directory = match stat(&parent) {
            Ok(found) if FileType::from_raw_mode(found.st_mode).is_dir() => found,
            Ok(_) => return Err(refused(Errno::NOTDIR)),
            Err(Errno::NOENT) => {
                let cause = std::io::Error::new(ErrorKind::NotFound, "the output's directory does not exist");
                return Err(StoreError::io(&parent, 0, "write in this directory", cause));
            }
            Err(cause) => return Err(refused(cause)),
        };
        access(&parent, Access::WRITE_OK | Access::EXEC_OK).map_err(refused)?;
        match lstat(&self.target) {
            Err(Errno::NOENT) => Ok(()),
            Err(cause) => Err(StoreError::io(&self.target, 0, "look for", cause)),
            Ok(_) if !self.overwrite => Err(StoreError::Exists {
                path: self.path.clone(),
            }),
            Ok(there) => self.check_movable(&directory, &there),
        }
    }

    /// Refuses to replace what the run could not move out of the way when it has ended.
    fn check_movable(&self, directory: &Stat, there: &Stat) -> Result<(), StoreError> {
        check_replaceable(&self.target, self.format.is_folder())?;
        let refused = |cause: Errno| StoreError::io(&self.target, 0, "replace", cause);
        if is_mount_point(&self.target) {
            return Err(refused(Errno::BUSY));
        }
        let user = geteuid().as_raw();
        let sticky = Mode::from_raw_mode(directory.st_mode).contains(Mode::SVTX);
        if sticky && user != 0 && user != there.st_uid && user != directory.st_uid {
            return Err(refused(Errno::PERM));
        }
        if FileType::from_raw_mode(there.st_mode).is_dir() {
            access(&self.target, Access::WRITE_OK | Access::EXEC_OK).map_err(refused)?;
        }
        Ok(())
    }

    /// The size of the output, without headers and metadata.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the output will be: the same for all spellings of a path.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The directory that the output appears in.
    pub fn directory(&self) -> PathBuf {
        parent_of(&self.target)
    }

    /// The grid that writes come in.
    pub fn tile(&self) -> &[u64] {
        self.format.tile()
    }

    /// The bytes that `write` transfers.
    pub fn write_bytes(&self, region: &Region) -> u64 {
        self.format.write_bytes(region)
    }

    /// The bytes that writing all tiles transfers.
    pub fn data_bytes(&self) -> u64 {
        let regions = (0..).map_while(|index| region_of(self.shape(), self.tile(), index));
        regions.map(|region| self.write_bytes(&region)).sum()
    }

    /// The bytes of headers and metadata that creating and finishing transfer.
    pub fn overhead_bytes(&self) -> u64 {
        self.format.overhead_bytes()
    }

    /// Memory that one `write` uses while it runs.
    pub fn workspace_bytes(&self, region: &Region) -> usize {
        self.format.workspace_bytes(region)
    }

    /// Whether what was written can be read back before the output is complete.
    pub fn is_read_back(&self) -> bool {
        self.format.is_read_back()
    }

    /// Whether the bytes are those that will be written; else they are bounds.
    pub fn is_exact(&self) -> bool {
        self.format.is_exact()
    }

    /// Creates the output beside its name.
    ///
    /// # Errors
    /// Those of `new`, met meanwhile; a file that cannot be made.
    pub fn create(&self, io: &Io) -> Result<Arc<dyn Sink>, StoreError> {
        self.check_target()?;
        self.format.create(None, &self.target, self.overwrite, io)
    }

    /// Creates it in a folder that stays until it is published.
    pub(crate) fn create_in(&self, folder: LockedDir, io: &Io) -> Result<Arc<dyn Sink>, StoreError> {
        self.format.create(Some(folder), &self.target, self.overwrite, io)
    }

    /// Goes on with what is in such a folder, of which the tiles `done` are durable.
    pub(crate) fn reopen_in(
        &self,
        folder: LockedDir,
        done: &[JournalRecord],
        io: &Io,
    ) -> Result<Arc<dyn Sink>, StoreError> {
        self.format.reopen(folder, &self.target, self.overwrite, done, io)
    }

    /// Whether what is at `path` says of itself what an output of this plan says.
    pub(crate) fn is_begun_at(&self, path: &Path, io: &Io) -> Result<bool, StoreError> {
        self.format.is_begun_at(path, io)
    }

    /// Of the costs beside tiles those of finishing.
    pub(crate) fn verified(&self, region: &Region, tile: &[u8]) {
        self.format.verified(region, tile);
    }

    pub(crate) fn finish_bytes(&self) -> u64 {
        self.format.finish_bytes()
    }

    /// Bytes of a tile, without what fills its last page.
    pub(crate) fn tile_bytes(&self, region: &Region) -> u64 {
        self.format.tile_bytes(region)
    }

    /// Whether the file cannot be opened before it is complete, and says where tiles are.
    pub(crate) fn is_placed(&self) -> bool {
        self.format.is_placed()
    }

    /// Where a tile of such a file is.
    pub(crate) fn place(&self, region: &Region) -> Option<Interval> {
        self.format.place(region)
    }

    /// What a file begins with; nothing of a folder.
    pub(crate) fn head(&self) -> Vec<u8> {
        self.format.head()
    }

    pub fn dtype(&self) -> DType {
        self.format.dtype()
    }

    pub fn shape(&self) -> &[u64] {
        self.format.shape()
    }
}

fn is_mount_point(path: &Path) -> bool {
    let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Checks an output without creating anything; see `SinkPlan::new`.
///
/// # Errors
/// Those of `SinkPlan::new`.
pub fn plan_sink(
    path: &Path,
    shape: &[u64],
    dtype: DType,
    tile: &[u64],
    overwrite: bool,
) -> Result<SinkPlan, StoreError> {
    SinkPlan::new(path, shape, dtype, tile, overwrite)
}

/// Checks and creates an output.
///
/// # Errors
/// Those of `SinkPlan::new` and `SinkPlan::create`.
pub fn create(
    path: &Path,
    shape: &[u64],
    dtype: DType,
    tile: &[u64],
    overwrite: bool,
    io: &Io,
) -> Result<Arc<dyn Sink>, StoreError> {
    SinkPlan::new(path, shape, dtype, tile, overwrite)?.create(io)
}
