"""Compiled generic functions and kernels. Only this module, :mod:`partita.erasure` and :mod:`partita.compilation`
import numba.

A *generic* is a function with one implementation per NamedTuple type of its first argument. In the interpreter it is
a :func:`functools.singledispatch` function. In compiled code it is resolved at compile time, so it costs nothing at run
time and the result can be cached on disk. A *kernel* is a compiled function, usually a loop that calls generics.

Both are lazy: numba is imported at the first call, not when a module that defines them is imported. The same source
runs compiled and uncompiled: set ``NUMBA_DISABLE_JIT=1`` for a whole process, or use :func:`interpreted` for some
lines of code.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import pathlib
import threading
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from partita.compilation import inlined_pipeline, watch_compilation
from partita.kernel_files import KernelFiles, tell_of_no_cache, without_disk

# Kernels have no C callers; skipping the C wrapper saves about 5% of the compile time.
KERNEL_OPTIONS: Any = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
# Implementations are inlined: a call would cost more than the few additions inside.
JIT_OPTIONS: Any = {
    "error_model": "numpy",
    "forceinline": True,
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
}

_generics: list[Any] = []
_registering = threading.RLock()  # an overload may import a module that adds more
_waiting: list[Callable[[], None]] = []  # overloads to register with numba once it is loaded
_interpreting = False


def generic(stub: Callable | None = None, *, derived: bool = False) -> Any:
    """Make ``stub`` a function with one implementation per type of its first argument.

    Implementations are added with ``@name.register(Type)``, where ``Type`` is a NamedTuple class. Register a long
    body with ``inline=False``; otherwise every loop that calls it takes long to compile. With ``derived=True`` the
    body of the stub is the implementation for every type that has none of its own.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> @generic
    ... def area(shape): ...
    >>> class Square(NamedTuple):
    ...     side: float
    >>> @area.register(Square)
    ... def _(shape):
    ...     return shape.side**2
    >>> area(Square(3.0))
    9.0
    >>> area((3.0,))
    Traceback (most recent call last):
    ...
    TypeError: tuple has no implementation of area(); add one with @area.register(tuple)
    """
    if stub is None:
        return functools.partial(generic, derived=derived)

    def refuse(first, *_):
        name = type(first).__name__
        raise TypeError(
            f"{name} has no implementation of {stub.__name__}(); add one with @{stub.__name__}.register({name})"
        )

    function: Any = functools.singledispatch(stub if derived else functools.wraps(stub)(refuse))
    table: dict[type, Callable] = {}
    long: set[type] = set()
    interpreted_register = function.register

    def register(cls: type, *, inline: bool = True) -> Callable[[Callable], Callable]:
        def add(implementation: Callable) -> Callable:
            table[cls] = implementation
            (long.discard if inline else long.add)(cls)
            interpreted_register(cls, implementation)
            return implementation

        return add

    function.register, function.table, function.long = register, table, long
    function.derived, function.stub = derived, stub
    _generics.append(function)
    _waiting.append(functools.partial(_hand_to_numba, function, stub))
    return function


def lacks(cls: type, *generics: Any) -> list[str]:
    """Return the names of the generics that ``cls`` does not implement (derived ones count as implemented)."""
    return [g.__name__ for g in generics if cls not in g.table and not g.derived]


def add_overload(function: Callable, choose: Callable, options: Any) -> None:
    """Teach numba the implementations of a function, as :func:`numba.extending.overload` does.

    numba compiles an implementation again for callers with other options (inlined or not, with a C wrapper or not),
    although its code is the same. Here all callers share one compilation.
    """
    from numba import types
    from numba.core.compiler import Flags
    from numba.core.targetconfig import ConfigStack
    from numba.core.typing.templates import infer, infer_global, make_overload_template

    template = make_overload_template(function, choose, options, False, "never", False)
    common: Any = Flags()
    common.nrt = True  # arrays may be made inside

    class Shared(template):  # type: ignore[misc,valid-type]
        def _get_impl(self, args, kws):
            with ConfigStack().enter(common):
                return super()._get_impl(args, kws)

    infer(Shared)
    infer_global(function, types.Function(Shared))


def _hand_to_numba(function: Any, stub: Callable) -> None:
    def find(kind: Any, want_long: bool) -> Callable | None:
        cls = getattr(kind, "instance_class", None)
        if (cls in function.long) != want_long:
            return None
        return function.table.get(cls, stub if function.derived else None)

    names = list(inspect.signature(stub).parameters)
    for want_long in (False, True):
        options: Any = {**JIT_OPTIONS, "forceinline": not want_long, "pipeline_class": inlined_pipeline()}
        scope: dict[str, Any] = {"find": find}
        # numba requires the same argument names in the chooser and the implementation, hence the exec
        exec(f"def choose({', '.join(names)}):\n    return find({names[0]}, {want_long})", scope)
        add_overload(function, scope["choose"], options)


class Kernel:
    """A function that is compiled at its first call, cached on disk, and releases the global interpreter lock."""

    def __init__(self, function: Callable, **options: Any):
        functools.update_wrapper(self, function)
        self.py_func = function
        self._options = {**KERNEL_OPTIONS, **options}
        self._compiled: Any = None
        self._inner: Any = None

    @property
    def compiled(self) -> Any:
        """The numba dispatcher for calls from Python (the plain function if ``NUMBA_DISABLE_JIT=1`` is set)."""
        if self._compiled is None:
            from numba import njit

            watch_compilation()
            try:
                self._compiled = njit(cache=True, **self._options)(self.py_func)
            except (
                RuntimeError
            ) as error:  # no folder can be written to, or the function was typed at a prompt
                if (self.__module__ or "").startswith("partita."):
                    tell_of_no_cache(error)
                self._compiled = njit(**self._options)(self.py_func)
            cache: Any = getattr(self._compiled, "_cache", None)
            if hasattr(cache, "_cache_file"):
                cache._cache_file = self._files(cache)
                cache._guard_against_spurious_io_errors = without_disk
        _register_overloads()
        return self._compiled

    @property
    def _numba_type_(self) -> Any:
        """The type of the function in compiled code: numba asks for it when another kernel calls this one.

        Such a call needs neither a wrapper for Python nor a cache file, because its code becomes a part of the caller,
        and a constant among the arguments is no reason to compile another version.
        """
        if self._inner is None:
            from numba import njit
            from numba.core.types import unliteral

            watch_compilation()
            options = {**self._options, "nogil": False, "no_cpython_wrapper": True}
            self._inner = njit(pipeline_class=inlined_pipeline(), **options)(self.py_func)
            template = self._inner.get_call_template
            self._inner.get_call_template = lambda args, kws: template(tuple(map(unliteral, args)), kws)
        _register_overloads()
        return self._inner._numba_type_

    def _files(self, cache: Any) -> KernelFiles:
        # numba checks only the file of the kernel itself: after an edit in a family it would load stale code
        foreign = not self.__module__.startswith("partita.")
        own = cache._impl.locator.get_source_stamp() if foreign else ""
        stamp, source = f"{package_digest()} {own}", self.py_func.__code__.co_filename
        return KernelFiles(cache._cache_file, stamp, _added_from_outside, foreign, source)

    def __call__(self, *args: Any) -> Any:
        for check in _checks:
            check(args)
        return (self.py_func if _interpreting else self.compiled)(*args)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__


def kernel(function: Callable) -> Kernel:
    """Compile ``function`` at its first call. It may call generics and other kernels.

    Examples
    --------
    >>> @kernel
    ... def double(x):
    ...     return 2 * x
    >>> double.py_func(4)
    8
    """
    return Kernel(function)


def _register_overloads() -> None:
    with (
        _registering
    ):  # a thread that finds nothing waiting must not compile before the others are registered
        while _waiting:
            _waiting.pop()()


def before_calls(check: Callable[[tuple[Any, ...]], None]) -> None:
    """Call ``check(arguments)`` before each call of a kernel from Python, to debug what compiled code trusts."""
    _checks.append(check)


_checks: list[Callable[[tuple[Any, ...]], None]] = []


def when_compiling(register: Callable[[], None]) -> None:
    """Call ``register`` before the next compilation: it adds overloads to numba, which is not imported before."""
    _waiting.append(register)


def is_compiling() -> bool:
    """Whether kernels are compiled, now and in this process."""
    if _interpreting:
        return False
    import numba

    return not getattr(numba.config, "DISABLE_JIT", False)


@contextlib.contextmanager
def interpreted() -> Iterator[None]:
    """Run kernels uncompiled within this context, for debugging and for tests on tiny data.

    Examples
    --------
    >>> @kernel
    ... def double(x):
    ...     return 2 * x
    >>> with interpreted():
    ...     double(4)
    8
    """
    global _interpreting
    before, _interpreting = _interpreting, True
    try:
        yield
    finally:
        _interpreting = before


@functools.cache
def package_digest() -> str:
    """Return a digest of all sources with compiled code: those that import this module or its neighbor, or register
    implementations.
    """
    digest = hashlib.sha256()
    for path in sorted(pathlib.Path(__file__).parent.rglob("*.py")):
        source = path.read_bytes()
        if any(
            mark in source for mark in (b"partita.dispatch import", b"partita.erasure import", b".register(")
        ):
            digest.update(source)
    return digest.hexdigest()


def _added_from_outside() -> tuple[set[str], str]:
    """Return the names of implementations that other packages added to classes of partita, and a digest of all that
    other packages have registered.
    """
    patched, digest = set(), hashlib.sha256()
    for function in _generics:
        for cls, implementation in function.table.items():
            if not implementation.__module__.startswith("partita."):
                name = f"{function.__name__} {cls.__module__}.{cls.__qualname__}"
                digest.update(name.encode())
                _digest_code(digest, implementation.__code__)
                if cls.__module__.startswith("partita."):
                    patched.add(name)
    return patched, digest.hexdigest()


def _digest_code(digest: Any, code: CodeType) -> None:
    digest.update(code.co_code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _digest_code(digest, constant)
        else:
            digest.update(repr(constant).encode())
    digest.update(" ".join(code.co_names).encode())
