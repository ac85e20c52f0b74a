"""The baseline that torch.compile makes: one graph of the whole expression, with max-autotune's search of kernels.

Compiling takes seconds for a case, mostly of the host. So a family's cases are compiled ahead by a pool of processes,
which leave their kernels and what they chose in Inductor's cache, where the process that measures finds them. Only one
at a time tries kernels on the device: others beside it would make it choose badly.
"""
import contextlib
import fcntl
import importlib
import multiprocessing
import os
import tempfile
import time

import torch
import torch._dynamo
import torch._functorch.config
import torch._inductor.config

# Those of the mode max-autotune-no-cudagraphs, but for the coordinate descent, which compiles one kernel after the
# other for half a minute. The graph is captured by us.
OPTIONS = {"max_autotune": True, "coordinate_descent_tuning": False}
SECONDS, CRASH_SECONDS = 240.0, 40.0  # for all cases of a family together; for the others after a crash


def use_cache(folder):
    """Before anything is compiled. Families that were compiled into the folder once are not compiled again."""
    if folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.abspath(folder)  # for the pool, too
    configure()


def configure():
    torch._inductor.config.compile_threads = 1  # the pool has one process for each core already
    torch._functorch.config.enable_autograd_cache = False  # 2.11: does not tell shifted tensors from aligned ones


def compiled(run):
    """An error instead of a graph break, and instead of kernels for any size."""
    torch._dynamo.reset()
    return torch.compile(lambda *tensors: run(*tensors), fullgraph=True, dynamic=False, options=OPTIONS)


def in_short(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)}"[:300]


_device = None  # in a process of the pool: the file whose lock they have that work on the device


@contextlib.contextmanager
def _alone():
    fcntl.flock(_device, fcntl.LOCK_EX)  # unlocked as well when the process ends
    try:
        yield
    finally:
        fcntl.flock(_device, fcntl.LOCK_UN)


def _begin(path):
    global _device
    _device = open(path, "w")
    configure()
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner
    benchmark = CachingAutotuner.benchmark_all_configs

    def alone(self, *arguments, **more):
        with _alone():
            return benchmark(self, *arguments, **more)

    CachingAutotuner.benchmark_all_configs = alone


def _compile(family, case):
    """In a process of the pool. What went wrong, as a text: not all errors can be sent."""
    try:
        _compile_once(family, case)
        return ""
    except Exception as error:  # Triton's have no common base
        return in_short(error)


def _compile_once(family, case):
    make_set, run, *plain = importlib.import_module(f"families.{family}").baseline(case)
    with _alone():
        tensors = make_set()
        torch.cuda.synchronize()
    compiled(*plain or (run,))(*tensors)
    torch.cuda.synchronize()
    del tensors, make_set, run, plain
    torch.cuda.empty_cache()


class Compiler:
    """The pool. Its processes stay between families and are idle while one is measured."""

    def __init__(self):
        self.pool = None

    def compile(self, family, cases):
        """What went wrong, of each case that could not be compiled."""
        if not cases:
            return {}
        if self.pool is None:
            self.device = tempfile.NamedTemporaryFile()
            cores = len(os.sched_getaffinity(0))
            self.pool = multiprocessing.get_context("spawn").Pool(cores, _begin, [self.device.name])
            self.processes = {process.pid for process in multiprocessing.active_children()}
        jobs = [(case, self.pool.apply_async(_compile, (family, case))) for case in cases]
        end, errors = time.monotonic() + SECONDS, {}
        while time.monotonic() < end and not all(job.ready() for _, job in jobs):
            time.sleep(0.1)
            if not self.processes <= {process.pid for process in multiprocessing.active_children()}:
                end = min(end, time.monotonic() + CRASH_SECONDS)  # one has crashed: its job is never ready
        for case, job in jobs:
            error = job.get() if job.ready() else "not compiled in time, or its process crashed"
            if error:
                errors[str(case)] = error
        if not all(job.ready() for _, job in jobs):
            self.close()
        return errors

    def close(self):
        if self.pool is not None:
            self.pool.terminate()
            self.pool.join()
            self.pool = None
