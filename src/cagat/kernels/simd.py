"""Vector registers for compiled loops.

numba turns loops into vector instructions only if LLVM finds them, which for rows of 64 numbers in short inner loops
it does badly: checks for overlapping arrays, remainder loops, and sums kept in memory. Here a row, or a panel of it, is
one value of LLVM's own vector type, as many lanes wide as the caller says; LLVM cuts it into the registers that the
machine has.

Memory is an address and an offset in elements. An address keeps nothing alive: where a loop makes an array and uses
only its address after that, :func:`keep_alive` comes last.

Arithmetic is strict: LLVM neither reorders sums nor fuses what is not a :func:`multiply_add`. A step is compiled into
every pass that calls it, and all of these copies must give the same bits, since a process runs whichever came first.
"""

import inspect
import math
import operator
import platform
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils, errors

F = TypeVar("F", bound=Callable[..., Any])

# Only compiled code calls what is compiled here, which so needs no entrances for Python and C; making them takes time.
_NO_ENTRANCES: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

_INT32, _INT64 = ir.IntType(32), ir.IntType(64)
_NOT_PREFETCHED = 32

NEAR, FAR = 8, 32
"""Prefetch distances in entries: for rows that come from a cache, and from main memory (docs/explanation/speed.md)."""


def intrinsic(function: Callable[..., Any]) -> Any:
    """Make compiled code call what a function generates, which is told the types and the constants of its arguments."""
    return extending.intrinsic(prefer_literal=True)(function)


def compiled_as(operation: Callable[..., Any], typed: Callable[..., Any]) -> None:
    """Say what compiled code does where it finds an operation, given the types and the constants of its arguments."""
    # Rows must not leave their registers at the border of a function, so there is none in the machine code.
    options: Any = {"forceinline": True} | _NO_ENTRANCES
    extending.overload(operation, jit_options=options, prefer_literal=True, strict=False)(typed)


def inlined(function: F) -> F:
    """Make a function known to compiled code, which keeps the constants among its arguments constant within it."""
    compiled_as(function, lambda *arguments: function)
    return function


def step(function: F) -> F:
    """As :func:`inlined`, but compiled once for each set of constants, and called; arguments may be given by name."""

    def typed(*arguments: Any, **named: Any) -> Any:
        return function

    typed.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    extending.overload(function, jit_options=_NO_ENTRANCES, prefer_literal=True, strict=False)(typed)
    return function


class Lanes(types.Type):
    """The numba type of ``count`` numbers side by side."""

    def __init__(self, dtype: Any, count: int) -> None:
        self.dtype = dtype
        self.count = count
        super().__init__(name=f"Lanes({dtype}, {count})")


@extending.register_model(Lanes)
class _LanesModel(extending.models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        element = ir.FloatType() if lanes.dtype == types.float32 else ir.DoubleType()
        super().__init__(manager, lanes, ir.VectorType(element, lanes.count))  # type: ignore[no-untyped-call]


def _constant(count: Any) -> int:
    """A number that is known while numba compiles; it also tries types that leave it open, and is told to go on."""
    if not isinstance(count, types.IntegerLiteral):
        raise errors.TypingError("the number of lanes must be a constant")
    number: int = count.literal_value
    return number


def _pointer(builder: Any, arguments: Any, element: Any, size: int) -> Any:
    """What the first two arguments, an address and an offset, point at."""
    byte = builder.add(arguments[0], builder.mul(arguments[1], ir.Constant(_INT64, size)))
    return builder.inttoptr(byte, element.as_pointer())


def _shuffle(builder: Any, lanes: Any, indices: list[int]) -> Any:
    return builder.shuffle_vector(lanes, lanes, ir.Constant(ir.VectorType(_INT32, len(indices)), indices))


@intrinsic
def load(context: Any, address: Any, offset: Any, dtype: Any, count: Any) -> Any:
    """The ``count`` numbers from an offset on."""
    lanes = Lanes(dtype.dtype, _constant(count))

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size = lanes.dtype.bitwidth // 8
        return builder.load(_pointer(builder, arguments, target.get_value_type(lanes), size), align=size)

    return lanes(types.int64, types.int64, dtype, count), generate


@intrinsic
def store(context: Any, address: Any, offset: Any, lanes: Any) -> Any:
    """Write the numbers from an offset on."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size = lanes.dtype.bitwidth // 8
        pointer = _pointer(builder, arguments, target.get_value_type(lanes), size)
        builder.store(arguments[2], pointer, align=size)
        return target.get_dummy_value()

    return types.void(types.int64, types.int64, lanes), generate


@intrinsic
def load_heads(context: Any, address: Any, offset: Any, stride: Any, dtype: Any, count: Any, heads: Any) -> Any:
    """A row of ``count`` numbers, channel by channel, of so many heads, whose channels begin ``stride`` apart."""
    lanes, pieces = Lanes(dtype.dtype, _constant(count)), _constant(heads)
    channels = lanes.count // pieces

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size, kind = lanes.dtype.bitwidth // 8, target.get_value_type(Lanes(lanes.dtype, channels))
        vectors = []
        for head in range(pieces):
            offset = builder.add(arguments[1], builder.mul(arguments[2], ir.Constant(_INT64, head)))
            vectors.append(builder.load(_pointer(builder, (arguments[0], offset), kind, size), align=size))
        while len(vectors) > 1:  # The number of heads is a power of two.
            width = 2 * vectors[0].type.count
            mask = ir.Constant(ir.VectorType(_INT32, width), list(range(width)))
            vectors = [builder.shuffle_vector(*pair, mask) for pair in zip(vectors[::2], vectors[1::2], strict=True)]
        return _shuffle(builder, vectors[0], [head * channels + c for c in range(channels) for head in range(pieces)])

    return lanes(types.int64, types.int64, types.int64, dtype, count, heads), generate


@intrinsic
def store_heads(context: Any, address: Any, offset: Any, stride: Any, lanes: Any, heads: Any) -> Any:
    """The reverse of :func:`load_heads`."""
    pieces = _constant(heads)
    channels = lanes.count // pieces

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size, kind = lanes.dtype.bitwidth // 8, target.get_value_type(Lanes(lanes.dtype, channels))
        for head in range(pieces):
            offset = builder.add(arguments[1], builder.mul(arguments[2], ir.Constant(_INT64, head)))
            piece = _shuffle(builder, arguments[3], [c * pieces + head for c in range(channels)])
            builder.store(piece, _pointer(builder, (arguments[0], offset), kind, size), align=size)
        return target.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, lanes, heads), generate


@intrinsic
def zeros(context: Any, dtype: Any, count: Any) -> Any:
    """As many zeros."""
    lanes = Lanes(dtype.dtype, _constant(count))

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(target.get_value_type(lanes), [0.0] * lanes.count)

    return lanes(dtype, count), generate


@intrinsic
def tile(context: Any, lanes: Any, count: Any) -> Any:
    """The same lanes again and again, ``count`` in all; where they fill whole registers this costs nothing."""
    tiled = Lanes(lanes.dtype, _constant(count))

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _shuffle(builder, arguments[0], [index % lanes.count for index in range(tiled.count)])

    return tiled(lanes, count), generate


@intrinsic
def fold(context: Any, lanes: Any, count: Any) -> Any:
    """The transpose of :func:`tile`: the sum of all blocks of ``count`` lanes; both counts are powers of two."""
    folded = Lanes(lanes.dtype, _constant(count))

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, width = arguments[0], lanes.count
        while width > folded.count:
            width //= 2
            low = _shuffle(builder, value, list(range(width)))
            high = _shuffle(builder, value, list(range(width, 2 * width)))
            value = builder.fadd(low, high)
        return value

    return folded(lanes, count), generate


def _elementwise(name: str) -> Any:
    @intrinsic
    def apply(context: Any, a: Any, b: Any) -> Any:
        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return getattr(builder, name)(*arguments)

        return a(a, b), generate

    return apply


_add, _subtract, _multiply, _divide = (_elementwise(name) for name in ("fadd", "fsub", "fmul", "fdiv"))


compiled_as(operator.add, lambda a, b: (lambda a, b: _add(a, b)) if isinstance(a, Lanes) and a == b else None)
compiled_as(operator.iadd, lambda a, b: (lambda a, b: _add(a, b)) if isinstance(a, Lanes) and a == b else None)
compiled_as(operator.mul, lambda a, b: (lambda a, b: _multiply(a, b)) if isinstance(a, Lanes) and a == b else None)
compiled_as(operator.sub, lambda a, b: (lambda a, b: _subtract(a, b)) if isinstance(a, Lanes) and a == b else None)
compiled_as(operator.truediv, lambda a, b: (lambda a, b: _divide(a, b)) if isinstance(a, Lanes) and a == b else None)


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    kind, (bits, count) = a.type, (32 if isinstance(a.type.element, ir.FloatType) else 64, a.type.count)
    signature, name = ir.FunctionType(kind, [kind] * 3), f"llvm.fmuladd.v{count}f{bits}"
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), [a, b, c])  # type: ignore[no-untyped-call]


@intrinsic
def multiply_add(context: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, rounded once where the machine can."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _multiply_add(builder, *arguments)

    return a(a, b, c), generate


@intrinsic
def select(context: Any, condition: Any, a: Any, b: Any, yes: Any, no: Any) -> Any:
    """Lane by lane ``yes`` where a < b or where a <= b, as the condition says, else ``no``; NaN is neither."""
    predicate = {0: "<", 1: "<="}[_constant(condition)]

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, left, right, one, other = arguments
        return builder.select(builder.fcmp_ordered(predicate, left, right), one, other)

    return yes(condition, a, b, yes, no), generate


# exp(r) = 1 + r + r^2 (1/2! + r/3! + ...) for |r| <= ln(2)/2, as far as the last place of the dtype needs it.
_TERMS = {types.float32: 8, types.float64: 14}
_LOWEST = {types.float32: -87.0, types.float64: -708.0}
_MANTISSA_BITS = {types.float32: 23, types.float64: 52}
# The part of ln(2) whose multiples are exact, and the rest.
_LN2 = {types.float32: (0.693359375, -2.12194440e-4), types.float64: (0.6931471803691238, 1.9082149292705877e-10)}


@intrinsic
def exp(context: Any, lanes: Any) -> Any:
    """The exponential of numbers that are not positive. LLVM would call the C library for each lane."""
    dtype = lanes.dtype

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector, bits = target.get_value_type(lanes), dtype.bitwidth
        integers = ir.VectorType(ir.IntType(bits), lanes.count)

        def constant(number: float) -> Any:
            return ir.Constant(vector, [number] * lanes.count)

        def call(name: str, result: Any, value: Any) -> Any:
            function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, [vector]), name)  # type: ignore[no-untyped-call]
            return builder.call(function, [value])

        kind = f"v{lanes.count}f{bits}"
        x, low = arguments[0], constant(_LOWEST[dtype])
        x = builder.select(builder.fcmp_ordered("<", x, low), low, x)
        # x = n ln(2) + r, so that exp(x) = 2^n exp(r), and 2^n is made of n by its bits.
        n = call(f"llvm.rint.{kind}", vector, builder.fmul(x, constant(1 / math.log(2))))
        high, rest = (constant(-part) for part in _LN2[dtype])
        r = _multiply_add(builder, n, rest, _multiply_add(builder, n, high, x))
        total = constant(1 / math.factorial(_TERMS[dtype] - 1))
        for term in reversed(range(_TERMS[dtype] - 1)):
            total = _multiply_add(builder, total, r, constant(1 / math.factorial(term)))
        mantissa, bias = _MANTISSA_BITS[dtype], 2 ** (bits - _MANTISSA_BITS[dtype] - 2) - 1
        exponent = call(f"llvm.fptosi.sat.v{lanes.count}i{bits}.{kind}", integers, n)
        exponent = builder.add(exponent, ir.Constant(integers, [bias] * lanes.count))
        power = builder.shl(exponent, ir.Constant(integers, [mantissa] * lanes.count))
        return builder.fmul(total, builder.bitcast(power, vector))

    return lanes(lanes), generate


@intrinsic
def index(context: Any, address: Any, offset: Any) -> Any:
    """One of the 32-bit indices of a pattern."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.sext(builder.load(_pointer(builder, arguments, _INT32, 4)), _INT64)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def prefetch(context: Any, address: Any, offset: Any, dtype: Any, count: Any, ahead: Any) -> Any:
    """Ask for ``count`` numbers that will be loaded ``ahead`` entries later.

    What is near comes into the first cache, and is not asked for if it is so little that asking costs more than
    waiting: rows of 32 bytes or less leave all nodes of a graph like PubMed in the second cache. What is far would be
    thrown out of the first cache again, and comes into the second.
    """
    size, is_near = dtype.dtype.bitwidth // 8, _constant(ahead) <= NEAR
    bytes_asked = 0 if is_near and _constant(count) * size <= _NOT_PREFETCHED else _constant(count) * size

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        signature = ir.FunctionType(ir.VoidType(), [byte, _INT32, _INT32, _INT32])
        function = cgutils.get_or_insert_function(builder.module, signature, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        flags = [ir.Constant(_INT32, flag) for flag in (0, 3 if is_near else 2, 1)]  # To read, how long, data.
        start = _pointer(builder, arguments, ir.IntType(8), size)
        for line in range(0, bytes_asked, 64):
            builder.call(function, [builder.gep(start, [ir.Constant(_INT64, line)]), *flags])
        return target.get_dummy_value()

    return types.void(types.int64, types.int64, dtype, count, ahead), generate


@intrinsic
def unpack(context: Any, address: Any, first: Any, kind: Any) -> Any:
    """A named tuple of 64-bit integers, which stand in memory from the ``first`` place on."""
    fields, named = kind.instance_class._fields, kind.instance_class
    result = types.NamedUniTuple(types.int64, len(fields), named)  # type: ignore[no-untyped-call]

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.bitcast(arguments[0], _INT64.as_pointer())
        indices = (ir.Constant(_INT64, _constant(first) + number) for number in range(result.count))
        return target.make_tuple(builder, result, [builder.load(builder.gep(pointer, [index])) for index in indices])

    return result(types.voidptr, first, kind), generate


@intrinsic
def keep_alive(context: Any, array: Any) -> Any:
    """Do nothing. numba frees an array after the last place that names it, and this is one."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return target.get_dummy_value()

    return types.void(array), generate


@intrinsic
def fetch_add(context: Any, address: Any, offset: Any, amount: Any) -> Any:
    """Add to a 64-bit counter that threads share; what it was before."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(builder, arguments, _INT64, 8)
        return builder.atomic_rmw("add", pointer, arguments[2], "seq_cst")

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def read(context: Any, address: Any, offset: Any) -> Any:
    """A 64-bit counter that threads share; what they wrote before they changed it can be seen from then on."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_pointer(builder, arguments, _INT64, 8), "acquire", 8)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def call(context: Any, function: Any, what: Any, address: Any) -> Any:
    """Call a function of C, given by its address, with two numbers."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_INT64, _INT64])
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])
        return target.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def yield_core(context: Any) -> Any:
    """Let other threads have this core; where the system has no such call, do nothing."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if sys.platform != "win32":
            kind = ir.FunctionType(_INT32, [])
            function = cgutils.get_or_insert_function(builder.module, kind, "sched_yield")  # type: ignore[no-untyped-call]
            builder.call(function, [])
        return target.get_dummy_value()

    return types.void(), generate


@intrinsic
def pause(context: Any) -> Any:
    """Spend a moment without taking instructions from another thread of the same core, where the machine can."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if platform.machine() in ("x86_64", "AMD64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause")  # type: ignore[no-untyped-call]
            builder.call(function, [])
        return target.get_dummy_value()

    return types.void(), generate
