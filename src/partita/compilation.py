"""How numba compiles the code of partita: what is left out to save time, and what the user is told.

Most compiled functions are called by other compiled functions only, and become a part of their callers. numba generates
machine code for each of them all the same. :func:`inlined_pipeline` leaves that out, and leaves the optimization to the
caller, which optimizes the whole.

Compilation makes many objects that refer to each other and stay: the cyclic garbage collector would go through all of
them again and again (a tenth of the time), so it waits until the end of a compilation.
"""

from __future__ import annotations

import functools
import gc
import logging
from typing import Any

from partita.progress import tell_compilation

logger = logging.getLogger("partita")


def processor() -> tuple[str, ...]:
    """Return platform, name and features of the processor that code is compiled for, as in the keys of cache files."""
    from numba.core.registry import cpu_target

    return tuple(cpu_target.target_context.codegen().magic_tuple())


@functools.cache
def inlined_pipeline() -> Any:
    """Return numba's compiler for functions that only compiled code calls.

    Such functions must be compiled without wrappers: nothing can call them by their address.
    """
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
    from numba.core.compiler_machinery import AnalysisPass, register_pass
    from numba.core.typed_passes import NopythonRewrites

    class WithoutEnvironment:
        """The code generator, for a function that has no machine code that could hold its environment."""

        def __init__(self, codegen: Any):
            self._codegen = codegen

        def __getattr__(self, name: str) -> Any:
            return getattr(self._codegen, name)

        def set_env(self, name: str, environment: Any) -> None:
            """Do nothing: code without Python objects does not use its environment."""

    class InlinedLibrary(JITCodeLibrary):
        """Code that is linked into that of its callers, and optimized and translated there."""

        @property
        def codegen(self) -> Any:
            return WithoutEnvironment(self._codegen)

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            return 0

    @register_pass(mutates_CFG=False, analysis_only=True)
    class ChooseLibrary(AnalysisPass):
        """Choose the library for the code of the function that is being compiled."""

        _name = "partita_choose_library"

        def __init__(self) -> None:
            super().__init__()

        def run_pass(self, state: Any) -> bool:
            assert state.flags.no_cpython_wrapper and state.flags.no_cfunc_wrapper
            state.library = InlinedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            return False

    class InlinedCompiler(Compiler):
        def define_pipelines(self) -> list[Any]:
            (manager,) = super().define_pipelines()
            manager.add_pass_after(ChooseLibrary, NopythonRewrites)
            manager.finalize()
            return [manager]

    return InlinedCompiler


@functools.cache
def watch_compilation() -> None:
    """Show in the progress bar that code is being compiled; without a bar, log it once per process.

    The garbage collector waits meanwhile.
    """
    from numba.core import event

    class Watch(event.Listener):
        told = False
        depth = 0  # functions are compiled within the compilation of their callers, under a lock
        collecting = False

        def on_start(self, started: Any) -> None:
            if self.depth == 0:
                self.collecting = gc.isenabled()
                gc.disable()
            self.depth += 1
            function = started.data["dispatcher"].py_func
            is_ours = (function.__module__ or "").startswith("partita.")
            if not tell_compilation(begins=True) and is_ours and not self.told:
                self.told = True
                logger.warning(
                    "partita: compiling code that was not needed on this machine before, which takes seconds (up to "
                    "30 for several kinds of columns); later runs load it from disk. `partita warm` compiles all of it."
                )

        def on_end(self, ended: Any) -> None:
            tell_compilation(begins=False)
            self.depth -= 1
            if self.depth == 0 and self.collecting:
                gc.enable()

    event.register("numba:compile", Watch())
