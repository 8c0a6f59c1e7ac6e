"""Circuits in simulators: a model of many instances runs in one process, and is compared with NumPy."""

from __future__ import annotations

import shutil
import subprocess
from collections import deque
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import nsc
from nsc.compiler.emit import compile_emitted
from nsc.compiler.request import Request

# Name to network, n and what is selected.
NETWORKS = {
    "sort8": ("best", 8, None),
    "sort12": ("best", 12, None),
    "median9": ("best", 9, nsc.median()),
    "median25": ("best", 25, nsc.median()),
    "top4": ("best", 16, nsc.top_k(4)),
    "one": ("best", 1, None),
}
# Packages of Debian have the names of these programs.
PROGRAMS = ("verilator", "ghdl", "yosys")
# Cycles that stall, or have no input, of a hundred.
STALLS, GAPS = 15, 15


@dataclass(frozen=True)
class Instance:
    """A circuit with the values of its parameters; a key and its tag are 8, 16 or 32 bits."""

    network: str
    key: int
    tag: int
    is_signed: bool
    layers: int

    @property
    def n(self):
        return NETWORKS[self.network][1]

    @property
    def ranks(self):
        select = NETWORKS[self.network][2]
        return [*range(self.n)] if select is None else [*select.outputs(self.n).values()]

    @property
    def wires(self):
        select = NETWORKS[self.network][2]
        return [*range(self.n)] if select is None else [*select.outputs(self.n)]

    @property
    def item(self):
        return np.dtype(f"<u{(self.key + self.tag) // 8}")

    @property
    def latency(self):
        depth = emitted("verilog", self.network).network.depth
        return -(-depth // self.layers) if self.layers else 0

    def keys(self, items):
        """Return the keys of items as numbers."""
        keys = items.astype(np.int64) >> self.tag
        return keys - ((keys >> (self.key - 1)) << self.key) if self.is_signed else keys


@cache
def emitted(language, name):
    network, n, select = NETWORKS[name]
    return compile_emitted(Request(network, n, select=select, language=language, name=name))


def text(language, name):
    return emitted(language, name).text


def run(program, *arguments, **options):
    """Run a program; fail if it does, or says anything on its standard error."""
    if program in PROGRAMS and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: apt-get install {program}")
    command = [program, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, timeout=600, **options)
    said = result.stderr.decode() + (result.stdout.decode() if result.returncode else "")
    assert not said, f"{' '.join(command)}: {said[:4000]}"
    assert result.returncode == 0, command
    return result.stdout


def control(cycles):
    """Return for each cycle whether there are a reset, an enable and an input; the first one resets."""
    draw = np.random.randint(0, 100, (cycles, 2))
    reset = np.zeros(cycles, bool)
    reset[[0, 1, cycles // 2]] = True
    return np.stack([reset, draw[:, 0] >= STALLS, draw[:, 1] >= GAPS], axis=1)


def samples(instance, taken):
    """Return the items of every cycle. An input that is not taken is shown again, or is none at all.

    All 0-1 inputs up to 12 wires come first, then words, many of them extreme or equal.
    """
    n, top = instance.n, (1 << instance.key) - 1
    zeros_and_ones = np.arange(1 << min(n, 12))[:, None] >> np.arange(n) & 1
    if n > 12:
        zeros_and_ones = np.random.randint(0, 2, (500, n))
    words = np.random.randint(0, top + 1, (taken.sum(), n))
    hostile = np.random.choice([0, 1, top, top >> 1, (top >> 1) + 1], words.shape)
    words = np.where(np.random.random(words.shape) < 0.4, hostile, words)
    keys = np.concatenate([zeros_and_ones, words])[np.cumsum(taken) - taken]
    tags = np.random.randint(0, 1 << instance.tag, keys.shape)
    return (keys << instance.tag | tags).astype(instance.item)


def sources(steps, latency):
    """Return for each cycle whether it has results, and the cycle whose items they are of."""
    pipeline, found = deque([(False, 0)] * latency), []
    for cycle, (reset, enable, has_input) in enumerate(steps.tolist()):
        pipeline.append((has_input, cycle))
        found.append(pipeline[0])
        pipeline.popleft() if enable or not latency else pipeline.pop()
        if reset:
            pipeline = deque((False, place) for _, place in pipeline)
    valid, source = np.array(found).T
    return valid.astype(bool), source


def check(instance, steps, given, valid, items):
    """Compare every cycle's results with NumPy's sort of what went in `latency` enabled cycles before.

    The items are those that comparators leave which exchange unequal keys alone.
    """
    expected_valid, source = sources(steps, instance.latency)
    np.testing.assert_array_equal(valid, expected_valid)
    assert valid.sum() > len(steps) / 2
    given, items = given[source[valid]], items[valid]
    keys = np.sort(instance.keys(given), axis=1)[:, instance.ranks]
    np.testing.assert_array_equal(instance.keys(items), keys)
    for lo, hi in emitted("verilog", instance.network).network.comparators:
        pair = given[:, [lo, hi]]
        exchanged = instance.keys(pair[:, 0]) > instance.keys(pair[:, 1])
        given[:, [lo, hi]] = np.where(exchanged[:, None], pair[:, ::-1], pair)
    np.testing.assert_array_equal(items, given[:, instance.wires])


_TOP = """
module bench(
    input wire clk, reset, enable, in_valid,
{ports}
    output wire [31:0] out_valid
);
{instances}
endmodule
"""
_MAIN = """
#include <cstdio>
#include <cstdlib>
{includes}
double sc_time_stamp() {{ return 0; }}
template <class Port> void get(Port &port, size_t size) {{
    if (fread(&port, 1, size, stdin) != size) exit(0);
}}
template <class Port> void put(const Port &port, size_t size) {{ fwrite(&port, 1, size, stdout); }}
int main() {{
    Vbench top;
    for (;;) {{
        get(top.reset, 1), get(top.enable, 1), get(top.in_valid, 1);
        {gets}
        top.clk = 0, top.eval();
        put(top.out_valid, 4);
        {puts}
        top.clk = 1, top.eval();
    }}
}}
"""


def verilator(instances, steps, given, folder):
    """Return which cycles have results, and the results, of each instance.

    One Verilated model has them all. Its files and the simulator's are one text, which takes g++ a third of
    the time.
    """
    ports, lines, gets, puts = [], [], [], []
    for place, each in enumerate(instances):
        (folder / f"{each.network}.v").write_text(text("verilog", each.network))
        bits, results = 8 * each.item.itemsize, len(each.ranks)
        ports += [f"    input wire [{each.n * bits - 1}:0] in_{place},"]
        ports += [f"    output wire [{results * bits - 1}:0] out_{place},"]
        parameters = f"{each.key}, {each.tag}, {int(each.is_signed)}, {each.layers}"
        signals = f"clk, reset, enable, in_valid, in_{place}, out_valid[{place}], out_{place}"
        lines.append(f"    {each.network} #({parameters}) instance_{place} ({signals});")
        gets.append(f"get(top.in_{place}, {each.n * each.item.itemsize});")
        puts.append(f"put(top.out_{place}, {results * each.item.itemsize});")
    lines += [f"    assign out_valid[{place}] = 1'b0;" for place in range(len(instances), 32)]
    (folder / "bench.v").write_text(_TOP.format(ports="\n".join(ports), instances="\n".join(lines)))
    language = ("-Wall", "--default-language", "1364-2005")
    run("verilator", *language, "--cc", "--exe", "--Mdir", "built", "bench.v", "main.cpp", cwd=folder)
    headers = Path(run("verilator", "--getenv", "VERILATOR_ROOT").decode().strip()) / "include"
    parts = [path for path in (folder / "built").glob("*.cpp") if not path.name.endswith("__ALL.cpp")]
    includes = [*parts, headers / "verilated.cpp", headers / "verilated_threads.cpp"]
    words = {"gets": " ".join(gets), "puts": " ".join(puts)}
    words["includes"] = "\n".join(f'#include "{path}"' for path in includes)
    (folder / "main.cpp").write_text(_MAIN.format(**words))
    folders = [f"-I{path}" for path in (folder / "built", headers, headers / "vltstd")]
    run("g++", "-std=c++17", "-O0", "-pthread", *folders, "main.cpp", "-o", "bench", cwd=folder)
    cycles = zip(steps.astype(np.uint8), *given, strict=True)
    stream = b"".join(part.tobytes() for cycle in cycles for part in cycle)
    out = run(folder / "bench", input=stream)
    sizes = [each.item.itemsize * len(each.ranks) for each in instances]
    rows = np.frombuffer(out, np.uint8).reshape(len(steps), 4 + sum(sizes))
    valid = np.unpackbits(rows[:, :4], axis=1, bitorder="little").astype(bool)
    columns = np.split(rows[:, 4:], np.cumsum(sizes)[:-1], axis=1)
    return [
        (valid[:, place], np.ascontiguousarray(column).view(each.item))
        for place, (each, column) in enumerate(zip(instances, columns, strict=True))
    ]


_BENCH = """
library ieee;
use ieee.std_logic_1164.all;
use std.textio.all;

entity bench is
    generic (KEY : positive; TAG : natural; IS_SIGNED : boolean; LAYERS : natural);
end entity;

architecture test of bench is
    signal clk, reset, enable, in_valid, out_valid : std_logic := '0';
    signal in_items : std_logic_vector({n} * (KEY + TAG) - 1 downto 0);
    signal out_items : std_logic_vector({outputs} * (KEY + TAG) - 1 downto 0);
begin
    circuit : entity work.{name} generic map (KEY, TAG, IS_SIGNED, LAYERS)
        port map (clk, reset, enable, in_valid, in_items, out_valid, out_items);

    process
        file given : text open read_mode is "given.txt";
        file found : text open write_mode is "found.txt";
        variable row : line;
        variable steps : std_logic_vector(3 downto 0);
        variable items : std_logic_vector(in_items'range);
    begin
        while not endfile(given) loop
            readline(given, row);
            hread(row, steps);
            hread(row, items);
            in_items <= items;
            (reset, enable, in_valid) <= steps(2 downto 0);
            clk <= '0';
            wait for 1 ns;
            write(row, out_valid);
            write(row, ' ');
            hwrite(row, out_items);
            writeline(found, row);
            clk <= '1';
            wait for 1 ns;
        end loop;
        wait;
    end process;
end architecture;
"""


def ghdl(instance, steps, given, folder):
    """Return which cycles have results, and the results."""
    bench = _BENCH.format(name=instance.network, n=instance.n, outputs=len(instance.ranks))
    for name, source in ((instance.network, text("vhdl", instance.network)), ("bench", bench)):
        (folder / f"{name}.vhd").write_text(source)
        run("ghdl", "-a", "--std=08", f"{name}.vhd", cwd=folder)
    numbers = steps @ [4, 2, 1]
    # The first item has the lowest bits.
    items = [row.tobytes()[::-1].hex() for row in given]
    lines = [f"{number:x} {row}\n" for number, row in zip(numbers, items, strict=True)]
    (folder / "given.txt").write_text("".join(lines))
    generics = {"KEY": instance.key, "TAG": instance.tag, "LAYERS": instance.layers}
    generics["IS_SIGNED"] = str(instance.is_signed).lower()
    options = [f"-g{name}={value}" for name, value in generics.items()]
    run("ghdl", "-r", "--std=08", "bench", *options, cwd=folder)
    rows = [line.split() for line in (folder / "found.txt").read_text().splitlines()]
    unknown = str.maketrans("UXZW-", "00000")  # of a pipeline that is not yet full
    found = b"".join(bytes.fromhex(row.translate(unknown))[::-1] for _, row in rows)
    valid = np.array([bit == "1" for bit, _ in rows])
    assert not any(set(row) & set("UXZW-") for bit, row in rows if bit == "1")
    return valid, np.frombuffer(found, instance.item).reshape(len(rows), -1)
