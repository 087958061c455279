//! A file, and the way from a path to an object.

use std::cell::RefCell;
use std::rc::Rc;

use super::attribute::{read_attributes, Attribute};
use super::dataset::DatasetFacts;
use super::dimensions::dimension_names;
use super::group::{kind_at, read_members, GroupListing, GroupMember, MemberKind};
use super::header::ObjectHeader;
use super::metadata::Metadata;
use super::trail::GroupTrail;
use crate::base::{FileBytes, Hdf5Error};
use crate::messages::{kinds, Datatype};

/// Soft links on the way of one path.
const LINKS_MAX: usize = 32;
/// Groups whose members stay for the next path.
const GROUPS: usize = 8;

/// An HDF5 file whose metadata are read as they are asked for. Members of the last few groups stay in memory.
pub struct Hdf5File<'a> {
    metadata: Metadata<'a>,
    groups: RefCell<Vec<(u64, Rc<Vec<GroupMember>>)>>,
}

/// An object of a file.
#[derive(Clone, Debug)]
pub enum Hdf5Object {
    /// A group with its members.
    Group(GroupListing),
    /// An array.
    Dataset(Box<DatasetFacts>),
    /// A datatype with a name of its own.
    NamedType {
        /// The type.
        datatype: Datatype,
        /// The attributes beside it.
        attributes: Vec<Attribute>,
    },
}

/// An object's header, its name, and the groups on the way to it.
struct ResolvedPath {
    at: u64,
    name: String,
    trail: GroupTrail,
}

impl<'a> Hdf5File<'a> {
    /// Opens a file: looks for its superblock, behind a user block as well, and reads what belongs to the file as a
    /// whole.
    ///
    /// # Errors
    /// No superblock, a damaged one, a file that is shorter than it says, and one of several parts.
    pub fn open(file: &'a dyn FileBytes) -> Result<Hdf5File<'a>, Hdf5Error> {
        Ok(Hdf5File {
            metadata: Metadata::open(file)?,
            groups: RefCell::default(),
        })
    }

    /// The root group.
    ///
    /// # Errors
    /// Damaged metadata, and parts of the format that are not supported.
    pub fn root(&self) -> Result<GroupListing, Hdf5Error> {
        match self.object("/")? {
            Hdf5Object::Group(listing) => Ok(listing),
            _ => Err(Hdf5Error::damaged(self.metadata.root, "a root that is no group")),
        }
    }

    /// The object with a path of names between slashes, from the root. Soft links are followed within the file.
    ///
    /// # Errors
    /// [`Hdf5Error::NotFound`] where the path ends in nothing, [`Hdf5Error::Unsupported`] for links to other files and for data that
    /// are in other files, and damaged metadata.
    pub fn object(&self, path: &str) -> Result<Hdf5Object, Hdf5Error> {
        let ResolvedPath { at, name, trail } = self.resolve(path)?;
        let metadata = &self.metadata;
        let header = ObjectHeader::read(&metadata.view, at)?;
        match kind_at(&metadata.view, at)? {
            Some(MemberKind::Group) => {
                let members = self.members(at)?.unwrap_or_default();
                // Once more for the copy.
                let bytes = |member: &GroupMember| std::mem::size_of::<GroupMember>() + member.name.len();
                metadata.view.keep(members.iter().map(bytes).sum())?;
                let attributes = read_attributes(metadata, &header)?;
                Ok(Hdf5Object::Group(GroupListing {
                    members: members.to_vec(),
                    attributes,
                }))
            }
            Some(MemberKind::Dataset) => {
                let mut facts = DatasetFacts::read(metadata, &header)?;
                facts.dimensions = dimension_names(metadata, &trail, &name, &facts)?;
                Ok(Hdf5Object::Dataset(Box::new(facts)))
            }
            Some(MemberKind::NamedType) => {
                let body = metadata.body(header.required(kinds::DATATYPE, "a datatype")?)?;
                let datatype = metadata.datatype(&body)?;
                Ok(Hdf5Object::NamedType {
                    datatype,
                    attributes: read_attributes(metadata, &header)?,
                })
            }
            _ => Err(Hdf5Error::damaged(
                at,
                "an object that is no group, dataset or datatype",
            )),
        }
    }

    /// The members of the group at `at`; nothing where that is no group.
    fn members(&self, at: u64) -> Result<Option<Rc<Vec<GroupMember>>>, Hdf5Error> {
        let mut groups = self.groups.borrow_mut();
        let group = match groups.iter().position(|(own, _)| *own == at) {
            Some(place) => groups.remove(place),
            None => {
                if kind_at(&self.metadata.view, at)? != Some(MemberKind::Group) {
                    return Ok(None);
                }
                let header = ObjectHeader::read(&self.metadata.view, at)?;
                (at, Rc::new(read_members(&self.metadata, &header)?))
            }
        };
        let members = group.1.clone();
        if groups.len() == GROUPS {
            groups.remove(0);
        }
        groups.push(group);
        Ok(Some(members))
    }

    fn resolve(&self, path: &str) -> Result<ResolvedPath, Hdf5Error> {
        let not_found = || Hdf5Error::NotFound(path.to_string());
        let root = self.metadata.root;
        // The names to go through, the next one last.
        let mut names: Vec<String> = names_of(path).collect();
        // The groups that the way goes through; then the object.
        let mut trail = vec![];
        let mut object = (root, String::new());
        let mut links = 0;
        while let Some(name) = names.pop() {
            let members = self.members(object.0)?.ok_or_else(not_found)?;
            let place = members.binary_search_by(|member| member.name.as_str().cmp(&name));
            let member = &members[place.map_err(|_| not_found())?];
            match (&member.kind, member.address) {
                (MemberKind::SoftLink(target), _) => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(Hdf5Error::unsupported(format!(
                            "more than {LINKS_MAX} soft links in {path:?}"
                        )));
                    }
                    if target.starts_with('/') {
                        trail.clear();
                        object = (root, String::new());
                    }
                    self.metadata.view.keep(32 * target.len())?;
                    names.extend(names_of(target));
                }
                (MemberKind::ExternalLink { file, path }, _) => {
                    return Err(Hdf5Error::unsupported(format!(
                        "an external link to {path:?} in {file:?}"
                    )));
                }
                (_, Some(at)) => {
                    trail.push(members.clone());
                    object = (at, name);
                }
                (_, None) => return Err(not_found()),
            }
        }
        let (at, name) = object;
        Ok(ResolvedPath {
            at,
            name,
            trail: GroupTrail::new(trail),
        })
    }
}

/// The names of a path from the last to the first. `.` is the group itself.
fn names_of(path: &str) -> impl Iterator<Item = String> + '_ {
    path.rsplit('/')
        .filter(|name| !name.is_empty() && *name != ".")
        .map(String::from)
}
