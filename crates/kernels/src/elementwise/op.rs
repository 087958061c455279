//! The operations' names and the types they compute in and return, as NumPy has them.

use outcore_dtype::{DType, Kind};

macro_rules! operations {
    ($(#[$doc:meta])* $Name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Name {
            $($variant),*
        }

        impl $Name {
            /// Every operation, in the order of the enum.
            pub const ALL: &'static [$Name] = &[$($Name::$variant),*];

            /// The name NumPy gives the function.
            pub fn name(self) -> &'static str {
                match self {
                    $($Name::$variant => $text),*
                }
            }

            /// The operation of that name, if there is one.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|operation| operation.name() == name)
            }
        }
    };
}

operations!(
    /// Functions of one element. `Round` takes halves to the even neighbour; `Sign` of a complex `z` is `z / |z|`.
    Unary {
        Negative = "negative", Positive = "positive", Absolute = "absolute", Sign = "sign", Sqrt = "sqrt",
        Cbrt = "cbrt", Square = "square", Reciprocal = "reciprocal", Exp = "exp", Exp2 = "exp2", Expm1 = "expm1",
        Log = "log", Log1p = "log1p", Log2 = "log2", Log10 = "log10", Sin = "sin", Cos = "cos", Tan = "tan",
        Asin = "asin", Acos = "acos", Atan = "atan", Sinh = "sinh", Cosh = "cosh", Tanh = "tanh", Asinh = "asinh",
        Acosh = "acosh", Atanh = "atanh", Floor = "floor", Ceil = "ceil", Trunc = "trunc", Round = "round",
        IsNan = "isnan", IsInf = "isinf", IsFinite = "isfinite", SignBit = "signbit", LogicalNot = "logical_not",
        BitwiseInvert = "bitwise_invert", Conj = "conj", Real = "real", Imag = "imag",
    }
);

operations!(
    /// Functions of two elements of one type. `Minimum` and `Maximum` propagate NaN.
    Binary {
        Add = "add", Subtract = "subtract", Multiply = "multiply", Divide = "divide", FloorDivide = "floor_divide",
        Remainder = "remainder", Pow = "pow", Atan2 = "atan2", Hypot = "hypot", LogAddExp = "logaddexp",
        CopySign = "copysign", NextAfter = "nextafter", Minimum = "minimum", Maximum = "maximum", Equal = "equal",
        NotEqual = "not_equal", Less = "less", LessEqual = "less_equal", Greater = "greater",
        GreaterEqual = "greater_equal", LogicalAnd = "logical_and", LogicalOr = "logical_or",
        LogicalXor = "logical_xor", BitwiseAnd = "bitwise_and", BitwiseOr = "bitwise_or",
        BitwiseXor = "bitwise_xor", ShiftLeft = "bitwise_left_shift", ShiftRight = "bitwise_right_shift",
    }
);

/// NumPy has no boolean loop for some integer functions; they run in the first type that has one.
fn integer_for_bool(input: DType) -> DType {
    match input {
        DType::Bool => DType::I8,
        other => other,
    }
}

impl Unary {
    /// The type the input is cast to first; `None` where NumPy has no such function.
    pub fn compute_dtype(self, input: DType) -> Option<DType> {
        use Unary::*;
        let kind = input.kind();
        let supported = match self {
            Negative | Positive | Sign => kind != Kind::Bool,
            Cbrt | Floor | Ceil | Trunc | SignBit => kind != Kind::Complex,
            BitwiseInvert => !input.is_inexact(),
            _ => true,
        };
        let compute = match self {
            Sqrt | Cbrt | Exp | Exp2 | Expm1 | Log | Log1p | Log2 | Log10 | Sin | Cos | Tan | Asin | Acos | Atan
            | Sinh | Cosh | Tanh | Asinh | Acosh | Atanh => input.to_inexact(),
            Square | Reciprocal | Conj => integer_for_bool(input),
            Round if kind == Kind::Bool => DType::F16,
            _ => input,
        };
        supported.then_some(compute)
    }

    /// The type of the result, given the compute type.
    pub fn output_dtype(self, compute: DType) -> DType {
        use Unary::*;
        match self {
            IsNan | IsInf | IsFinite | SignBit | LogicalNot => DType::Bool,
            Absolute | Real | Imag => compute.real(),
            _ => compute,
        }
    }
}

impl Binary {
    /// The type operands of two types are cast to. Floating functions of integers take the smallest floating type that
    /// holds either of them, which their promoted integer type may not: `int8` and `uint8` meet in `float16`.
    pub fn compute_dtype_of(self, x: DType, y: DType) -> Option<DType> {
        use Binary::*;
        match self {
            Atan2 | Hypot | LogAddExp | CopySign | NextAfter if !x.is_inexact() && !y.is_inexact() => {
                Some(DType::promote(x.to_inexact(), y.to_inexact()))
            }
            _ => self.compute_dtype(DType::promote(x, y)),
        }
    }

    /// The type both operands are cast to, given their promoted type; `None` where NumPy has no such function.
    pub fn compute_dtype(self, common: DType) -> Option<DType> {
        use Binary::*;
        let kind = common.kind();
        let supported = match self {
            Subtract => kind != Kind::Bool,
            FloorDivide | Remainder | Atan2 | Hypot | LogAddExp | CopySign | NextAfter | Less | LessEqual | Greater
            | GreaterEqual => kind != Kind::Complex,
            BitwiseAnd | BitwiseOr | BitwiseXor | ShiftLeft | ShiftRight => !common.is_inexact(),
            _ => true,
        };
        let compute = match self {
            Divide if !common.is_inexact() => DType::F64,
            FloorDivide | Remainder | Pow | ShiftLeft | ShiftRight => integer_for_bool(common),
            Atan2 | Hypot | LogAddExp | CopySign | NextAfter => common.to_inexact(),
            _ => common,
        };
        supported.then_some(compute)
    }

    /// The type of the result, given the compute type.
    pub fn output_dtype(self, compute: DType) -> DType {
        use Binary::*;
        match self {
            Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual | LogicalAnd | LogicalOr | LogicalXor => {
                DType::Bool
            }
            _ => compute,
        }
    }
}
