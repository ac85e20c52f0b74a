#!/usr/bin/env python3
"""kernel_names.py BUILD_DIR KERNEL_NAMES: fails when a kernel has another name on the simulator than on a device.

On a device its name comes from the symbol that nvcc gave it, which kernels/resources.py noted beside the object; on
the simulator from the name of a type, which stands in the object's symbol table. Both go through the program
KERNEL_NAMES, as they go through cgrt::snapshot."""
import pathlib
import subprocess
import sys

TYPE_NAME = "_ZTS"  # of the symbol that holds a type's name
TAG = TYPE_NAME + "N4cgrt8internal9KernelTagI"
# Known to differ. nvcc hands the host another type for an extended lambda, in whose name its parameters are not.
EXTENDED_LAMBDA = ("__nv_dl_wrapper_t", "{lambda(")
WITHOUT_RTTI = "no_rtti_kernel.cu.o"


def names(program, symbols):
    done = subprocess.run([program], input="".join(s + "\n" for s in symbols), check=True, stdout=subprocess.PIPE, text=True)
    return dict(zip(symbols, done.stdout.splitlines()))


def main(build, program):
    notes = sorted(build.glob("kernels/CMakeFiles/**/*.cu.o.resources")) + sorted(build.glob("tests/CMakeFiles/**/*.cu.o.resources"))
    on_device, on_simulator = {}, {}  # symbol: object
    for note in notes:
        compiled = note.with_suffix("")
        if not compiled.exists():
            continue
        if compiled.name == WITHOUT_RTTI:
            continue
        for line in note.read_text().splitlines()[1:]:
            on_device[line.split(" ")[4]] = compiled.name
        table = subprocess.run(["nm", compiled], check=True, stdout=subprocess.PIPE, text=True).stdout
        for line in table.splitlines():
            symbol = line.split()[-1]
            if symbol.startswith(TAG):
                on_simulator[symbol[len(TYPE_NAME):]] = compiled.name
    device_names = names(program, sorted(on_device))
    simulator_names = names(program, sorted(on_simulator))
    errors = []
    for here, there, missing in ((simulator_names, device_names, "on a device"), (device_names, simulator_names, "on the simulator")):
        known = set(there.values())
        where = on_simulator if here is simulator_names else on_device
        errors += [f"{where[symbol]}: no kernel is called {name} {missing} ({symbol})"
                   for symbol, name in here.items() if name not in known and not any(part in name for part in EXTENDED_LAMBDA)]
    raw = [name for name in device_names.values() if name.startswith("_Z")]
    errors += [f"{name} was not demangled" for name in raw]
    print("\n".join(errors))
    print(f"{len(on_device)} symbols of devices, {len(on_simulator)} types, {len(errors)} errors")
    return 1 if errors or not on_device or not on_simulator else 0


sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2]))
