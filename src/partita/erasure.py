"""Blocks of any type behind one type: kernels over mixed tables are compiled once for all tables.

A kernel that takes a tuple of blocks is compiled again for every combination of families and data types. An *erased*
tuple has the same type for all of them: it holds the addresses of records (the fields of each block, as compiled code
lays them out in memory) and the addresses of the functions that can be called on each block. Each of these functions,
a *port*, is compiled once for each type of block, with a C signature that does not depend on the block.

The functions are written for one block, without any of this. Compiled kernels take erased tuples only; in the
interpreter the same kernels take the blocks themselves.

Compiled code trusts these addresses. With the environment variable ``PARTITA_CHECK_RECORDS=1``, for fuzzers and after a
crash, :func:`check_records` checks every record before each call of a kernel.
"""

from __future__ import annotations

import functools
import inspect
import os
import struct
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NamedTuple, cast

import numpy as np

from partita import dispatch
from partita.compilation import inlined_pipeline
from partita.dispatch import JIT_OPTIONS, Kernel

SCALARS = {"int": "int64", "float": "float64"}  # arguments of ports: kind -> type in compiled code
ARRAYS = ("floats", "scores")  # one-dimensional arrays of doubles, and of the type of the block's scores


class ErasedBlocks(NamedTuple):
    """A tuple of blocks, erased. Its records keep the arrays of the blocks alive."""

    calls: np.ndarray  # [port, block] address of the function
    at: np.ndarray  # [block] address of the record
    tails: np.ndarray  # [block] address of those fields of the record that are the same for all families
    like: np.ndarray  # empty, of the type of the scores
    records: np.ndarray


class _Records(bytearray):
    """Bytes that refer to arrays of the blocks in ``owner``."""

    owner: tuple[Any, ...] = ()


class Ports:
    """The functions of one class of blocks that kernels call through addresses.

    ``erased`` is the class of the erased tuples, a subclass of :class:`ErasedBlocks` of its own, so that compiled code
    cannot take the blocks of other ports for its own. ``scores`` names the field of a block whose type is that of its
    scores. ``tail`` is a NamedTuple class with the last fields of a block: functions that need no others are compiled
    once for all families. All ports must be defined in one module: their order is compiled into kernels.
    """

    def __init__(self, erased: type[ErasedBlocks], scores: str, tail: type | None = None):
        self.erased, self.scores, self._tail = erased, scores, tail
        self._n_tail = len(tail._fields) if tail else 0  # type: ignore[attr-defined]
        self._ports: list[_Port] = []
        _PORTS[erased] = self
        self._addresses: dict[Any, list[int]] = {}  # of ports, by the layout of a block and their names

    def each(self, takes: str, *, tail: bool = False) -> Callable[[Callable], Callable]:
        """Turn ``function(block, ...)`` into a function of a tuple of blocks, which calls it on each block in turn.

        ``takes`` gives the kinds of the arguments after the block: "int", "float", "floats" (an array of doubles) and
        "scores" (an array of the type of the scores). The function writes into arrays and returns nothing. A function
        that reads only the fields in the tail of a block says so.
        """

        def decorate(function: Callable) -> Callable:
            port = _Port(function, takes.split(), len(self._ports), tail)
            self._ports.append(port)

            @functools.wraps(function)
            def apply(blocks, *args):
                for block in blocks:
                    function(block, *args)

            dispatch.when_compiling(functools.partial(_overload, apply, port, self.erased))
            return apply

        return decorate

    def erase(self, blocks: Sequence[Any], only: tuple[str, ...] = ()) -> Any:
        """Return the erased form of some blocks; the tuple itself where kernels run uncompiled.

        With ``only``, kernels may call just these ports, and only they are compiled.
        """
        if not dispatch.is_compiling():
            return tuple(blocks)
        packed, calls = [], []
        for block in blocks:
            head, tail = self._divided(block)
            packed += [_pack(head), _pack(tail)]
            key = (_layout(block), only)
            calls.append(self._addresses.get(key) or self._compile(key, block))
        buffer = _Records(b"".join(packed))
        buffer.owner = tuple(blocks)
        records: np.ndarray = np.frombuffer(buffer, np.int64)
        starts = records.ctypes.data + np.cumsum([0, *map(len, packed[:-1])])
        scores = np.empty(0, getattr(blocks[0], self.scores).dtype)
        return self.erased(np.array(calls).T.copy(), starts[::2].copy(), starts[1::2].copy(), scores, records)

    def _divided(self, block: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The fields of a block, and those of its tail."""
        stop = len(block) - self._n_tail
        return block[:stop], block[stop:]

    def _compile(self, key: Any, block: Any) -> list[int]:
        """Compile ports for blocks of this layout, or load them from disk; returns their addresses."""
        kind = _numba_type(block)
        scores = _numba_type(getattr(block, self.scores)).dtype
        # generics of a family that holds another family cannot be told apart by name
        family = None if any(isinstance(part, tuple) for part in block.family) else type(block.family)
        tail = _numba_type(self._tail(*self._divided(block)[1])) if self._tail else None
        self._addresses[key] = [
            port.address(tail if port.tail else kind, scores, family)
            if not key[1] or port.name in key[1]
            else 0
            for port in self._ports
        ]
        return self._addresses[key]


class _Port:
    """A function of one block, and its form with a C signature."""

    def __init__(self, function: Callable, takes: list[str], index: int, tail: bool):
        self.name, self.takes, self.index, self.tail = function.__name__, takes, index, tail
        self.names = list(inspect.signature(function).parameters)[1:]
        self._function = function
        self._entries: dict[type | None, Kernel] = {}

    def entry(self, family: type | None) -> Kernel:
        """Function of the address of a record and plain numbers; an array is an address and a length."""
        if family not in self._entries:
            from numba import carray, njit

            arrays = [kind in ARRAYS for kind in self.takes]
            given, passed = [], []
            for name, is_array in zip(self.names, arrays, strict=True):
                given.append(f"{name}_at, {name}_size" if is_array else name)
                passed.append(f"carray({name}_at, {name}_size)" if is_array else name)
            scope = {
                "one": njit(inline="always")(specialized(self._function, family)),
                "load": _load(),
                "carray": carray,
                "__name__": self._function.__module__,
            }
            name = f"{self.name}_entry"
            code = f"def {name}(at, {', '.join(given)}):\n    one(load(at), {', '.join(passed)})\n"
            # compiled under the name of the file of its source, beside which numba keeps its cache
            exec(compile(code, self._function.__code__.co_filename, "exec"), scope)
            function = cast(FunctionType, scope[name])
            line = self._function.__code__.co_firstlineno
            function.__code__ = function.__code__.replace(co_firstlineno=line)
            self._entries[family] = Kernel(function, no_cfunc_wrapper=False, no_cpython_wrapper=True)
        return self._entries[family]

    def address(self, kind: Any, scores: Any, family: type | None) -> int:
        """The address of the function compiled for this type of block."""
        from numba import types

        given: list[Any] = [types.CPointer(kind)]
        for take in self.takes:
            if take in SCALARS:
                given.append(getattr(types, SCALARS[take]))
            else:
                given += [types.CPointer(scores if take == "scores" else types.float64), types.int64]
        dispatcher = self.entry(None if self.tail else family).compiled
        dispatcher.compile(tuple(given))
        result = dispatcher.overloads[tuple(given)]
        return result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)


def specialized(function: Callable, family: type | None) -> Callable:
    """The function with the generics it calls replaced by the implementations for one family, to be inlined.

    numba inlines them before it infers types, which takes much less time than to compile each of them by itself. Long
    implementations (registered with ``inline=False``) remain calls, and are compiled once for all functions.
    """
    from numba import njit

    if family is None:
        return function
    scope = dict(function.__globals__)
    for name in function.__code__.co_names:
        called: Any = scope.get(name)
        if hasattr(called, "table") and family not in called.long:
            implementation = called.table.get(family) or (called.stub if called.derived else None)
            if implementation is not None:
                scope[name] = njit(inline="always")(specialized(implementation, family))
    return FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
    )


# ---- the layout of blocks in memory --------------------------------------------------------------------------


def check_records(blocks: ErasedBlocks) -> None:
    """Refuse an erased tuple whose records no longer describe its blocks, or lie outside of its own memory.

    A record holds addresses, shapes and strides: it is wrong as soon as an array has been replaced, resized or freed.
    """
    owner = getattr(getattr(blocks.records.base, "obj", blocks.records.base), "owner", None)
    ports = _PORTS.get(type(blocks))
    if owner is None or ports is None:
        raise RuntimeError("erased blocks do not own their records")
    packed = [_pack(part) for block in owner for part in ports._divided(block)]
    starts = blocks.records.ctypes.data + np.cumsum([0, *map(len, packed[:-1])])
    if not (np.array_equal(blocks.at, starts[::2]) and np.array_equal(blocks.tails, starts[1::2])):
        raise RuntimeError("the addresses of erased blocks are not those of their records")
    if b"".join(packed) != blocks.records.tobytes():
        raise RuntimeError("the records of erased blocks are not those of their arrays")
    known = {address for addresses in ports._addresses.values() for address in addresses}
    if (
        blocks.calls.shape != (len(ports._ports), len(owner))
        or not set(blocks.calls.ravel().tolist()) <= known
    ):
        raise RuntimeError("erased blocks call functions that were not compiled for them")


def _check_arguments(arguments: tuple[Any, ...]) -> None:
    for argument in arguments:
        if isinstance(argument, ErasedBlocks):
            check_records(argument)


_PORTS: dict[type, Ports] = {}  # by the class of their erased tuples
if os.environ.get("PARTITA_CHECK_RECORDS") == "1":
    dispatch.before_calls(_check_arguments)


def _order(array: np.ndarray) -> Any:
    return "C" if array.flags.c_contiguous else "F" if array.flags.f_contiguous else "A"


def _layout(value: Any) -> Any:
    """What tells the types of two blocks apart in compiled code (an array that is read-only is like any other)."""
    if isinstance(value, np.ndarray):
        return value.dtype.char, value.ndim, _order(value)
    if isinstance(value, tuple):
        return (type(value), *map(_layout, value))
    return type(value)


def _numba_type(value: Any) -> Any:
    """The type of a block in compiled code."""
    import numba
    from numba import types
    from numba.np.numpy_support import from_dtype

    if isinstance(value, np.ndarray):
        kind: Any = from_dtype(value.dtype)
        return types.Array(kind, value.ndim, _order(value))
    if isinstance(value, tuple):
        return types.BaseTuple.from_types([_numba_type(part) for part in value], type(value))
    return numba.typeof(value)


def _pack(values: tuple[Any, ...]) -> bytes:
    """Fields of a record, up to a whole number of words."""
    form, numbers = _fields(values)
    return struct.pack(f"@{form}", *numbers)


def _fields(value: Any) -> tuple[str, list[Any]]:
    """The fields of a value as compiled code has them in memory: format of ``struct`` and numbers.

    An array is: two references for counting (none here), size, bytes per item, address, shape, strides.
    """
    if isinstance(value, np.ndarray):
        words = [0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides]
        return f"2Q2qQ{2 * value.ndim}q", words
    if isinstance(value, tuple):
        parts = [_fields(part) for part in value]
        form = "".join(part[0] for part in parts)
        return f"{form}0q", [number for part in parts for number in part[1]]
    if isinstance(value, bool | np.bool_):
        return "?", [value]
    if isinstance(value, float | np.floating):
        return "f" if isinstance(value, np.float32) else "d", [value]
    return np.asarray(value).dtype.char, [value]


# ---- compiled code -------------------------------------------------------------------------------------------


@functools.cache
def _load() -> Any:
    """``load(at)``: the block whose record is at this address."""
    from numba import types
    from numba.extending import intrinsic

    def without_references(builder: Any, kind: Any, value: Any) -> Any:
        """The value with no references for counting in its arrays: they belong to the caller."""
        if isinstance(kind, types.Array):
            for field in (0, 1):
                value = builder.insert_value(value, value.type.elements[field](None), field)
        elif isinstance(kind, types.BaseTuple):
            for field, part in enumerate(kind.types):  # type: ignore[attr-defined]
                inner = without_references(builder, part, builder.extract_value(value, field))
                value = builder.insert_value(value, inner, field)
        return value

    @intrinsic
    def load(typing_context, at):
        if not isinstance(at, types.CPointer):
            return None

        def generate(context, builder, signature, args):
            value = context.data_model_manager[at.dtype].load_from_data_pointer(builder, args[0])
            return without_references(builder, at.dtype, value)

        return at.dtype(at), generate

    return load


def _caller(port: _Port) -> Any:
    """``call(address, at, ...)``: call the port at this address on the block whose record is at ``at``."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    wanted = [getattr(types, SCALARS[kind]) if kind in SCALARS else None for kind in port.takes]

    def generate(context, builder, signature, args):
        numbers = [args[1]]
        for have, want, value in zip(signature.args[2:], wanted, args[2:], strict=True):
            if want is not None:
                numbers.append(context.cast(builder, value, have, want))
                continue
            array = cgutils.create_struct_proxy(have)(context, builder, value)
            numbers += [builder.ptrtoint(array.data, args[1].type), builder.extract_value(array.shape, 0)]
        form = ir.FunctionType(ir.VoidType(), [number.type for number in numbers])
        builder.call(builder.inttoptr(args[0], form.as_pointer()), numbers)
        return context.get_dummy_value()

    scope: dict[str, Any] = {"types": types, "generate": generate}
    names = ", ".join(port.names)
    exec(
        f"def call(typing_context, address, at, {names}):\n"
        f"    return types.void(address, at, {names}), generate\n",
        scope,
    )
    return intrinsic(scope["call"])


def _overload(apply: Callable, port: _Port, erased: type) -> None:
    """Teach numba to call a port on each block of an erased tuple."""
    call, rest, where = _caller(port), ", ".join(port.names), "tails" if port.tail else "at"
    scope: dict[str, Any] = {"call": call}
    exec(
        f"def loop(blocks, {rest}):\n"
        f"    for block_ in range(blocks.at.shape[0]):\n"
        f"        call(blocks.calls[{port.index}, block_], blocks.{where}[block_], {rest})\n",
        scope,
    )

    def make(blocks: Any) -> Callable | None:
        return scope["loop"] if getattr(blocks, "instance_class", None) is erased else None

    scope["make"] = make
    # numba requires the same argument names in the chooser and the implementation, hence the exec
    exec(f"def choose(blocks, {rest}):\n    return make(blocks)", scope)
    options = {**JIT_OPTIONS, "pipeline_class": inlined_pipeline()}
    dispatch.add_overload(apply, scope["choose"], options)
