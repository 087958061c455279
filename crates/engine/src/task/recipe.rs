//! How an operator is built of its inputs: for other processes and other machines, which have the same builders.

use std::any::Any;
use std::sync::Arc;

use crate::EngineError;

/// The builder of an operator, and its parameters beside the inputs.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// As the registry of builders calls it.
    pub builder: &'static str,
    pub parameters: Vec<Parameter>,
}

#[derive(Clone, Debug)]
pub enum Parameter {
    Word(u64),
    Float(f64),
    Text(String),
    Words(Vec<u64>),
    Floats(Vec<f64>),
    /// A node, which this room does not know. Nothing reads it as an array.
    Node(Option<Arc<dyn Any + Send + Sync>>),
}

impl Recipe {
    pub fn new(builder: &'static str) -> Recipe {
        Recipe {
            builder,
            parameters: vec![],
        }
    }

    fn with(mut self, parameter: Parameter) -> Recipe {
        self.parameters.push(parameter);
        self
    }

    pub fn word(self, word: u64) -> Recipe {
        self.with(Parameter::Word(word))
    }

    pub fn flag(self, flag: bool) -> Recipe {
        self.word(u64::from(flag))
    }

    pub fn float(self, float: f64) -> Recipe {
        self.with(Parameter::Float(float))
    }

    pub fn text(self, text: &str) -> Recipe {
        self.with(Parameter::Text(text.into()))
    }

    pub fn words(self, words: Vec<u64>) -> Recipe {
        self.with(Parameter::Words(words))
    }

    pub fn floats(self, floats: Vec<f64>) -> Recipe {
        self.with(Parameter::Floats(floats))
    }

    pub fn node(self, node: Option<Arc<dyn Any + Send + Sync>>) -> Recipe {
        self.with(Parameter::Node(node))
    }
}

/// Parameters as a builder takes them, one by one. They may come from anywhere.
pub struct Parameters<'a> {
    builder: &'a str,
    rest: std::slice::Iter<'a, Parameter>,
}

impl<'a> Parameters<'a> {
    pub fn new(builder: &'a str, parameters: &'a [Parameter]) -> Parameters<'a> {
        Parameters {
            builder,
            rest: parameters.iter(),
        }
    }

    /// The refusal of parameters that the builder does not take.
    pub fn refusal(&self, wanted: &str) -> EngineError {
        EngineError::Argument(format!("{}: a parameter is no {wanted}", self.builder))
    }

    /// # Errors
    /// The next parameter is no such.
    pub fn word(&mut self) -> Result<u64, EngineError> {
        match self.rest.next() {
            Some(Parameter::Word(word)) => Ok(*word),
            _ => Err(self.refusal("number")),
        }
    }

    /// # Errors
    /// The next parameter is no such.
    pub fn flag(&mut self) -> Result<bool, EngineError> {
        Ok(self.word()? != 0)
    }

    /// # Errors
    /// The next parameter is no such.
    pub fn float(&mut self) -> Result<f64, EngineError> {
        match self.rest.next() {
            Some(Parameter::Float(float)) => Ok(*float),
            _ => Err(self.refusal("real number")),
        }
    }

    /// # Errors
    /// The next parameter is no such.
    pub fn text(&mut self) -> Result<&'a str, EngineError> {
        match self.rest.next() {
            Some(Parameter::Text(text)) => Ok(text),
            _ => Err(self.refusal("text")),
        }
    }

    /// The variant that a text names.
    ///
    /// # Errors
    /// The next parameter is no such text.
    pub fn named<T>(&mut self, named: impl Fn(&str) -> Option<T>) -> Result<T, EngineError> {
        let name = self.text()?;
        named(name).ok_or_else(|| self.refusal(&format!("known name: {name}")))
    }

    /// # Errors
    /// The next parameter is no such.
    pub fn words(&mut self) -> Result<&'a [u64], EngineError> {
        match self.rest.next() {
            Some(Parameter::Words(words)) => Ok(words),
            _ => Err(self.refusal("row of numbers")),
        }
    }

    /// # Errors
    /// The next parameter is no such.
    pub fn floats(&mut self) -> Result<&'a [f64], EngineError> {
        match self.rest.next() {
            Some(Parameter::Floats(floats)) => Ok(floats),
            // Numbers of none have no type.
            Some(Parameter::Words(words)) if words.is_empty() => Ok(&[]),
            _ => Err(self.refusal("row of real numbers")),
        }
    }

    /// # Errors
    /// The next parameter is no such.
    pub fn node<T: Any + Send + Sync>(&mut self) -> Result<Option<Arc<T>>, EngineError> {
        match self.rest.next() {
            Some(Parameter::Node(None)) => Ok(None),
            Some(Parameter::Node(Some(node))) => match node.clone().downcast() {
                Ok(node) => Ok(Some(node)),
                Err(_) => Err(self.refusal("node")),
            },
            _ => Err(self.refusal("node")),
        }
    }
}
