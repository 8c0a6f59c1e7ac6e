"""Catches program text that is read as another network, or several networks that are read as one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import networks

from nsc.compiler.formats import parse_network, read_network, read_networks
from nsc.compiler.network import Network
from nsc.errors import NetworkError

FOUR = Network.from_layers(4, [[(0, 2), (1, 3)], [(0, 1), (2, 3)], [(1, 2)]])
BODY = "S(0,2);S(1,3);S(0,1);S(2,3);S(1,2);"


def lines(pattern, between="\n"):
    return lambda network: between.join(pattern.format(lo, hi) for lo, hi in network.comparators.tolist())


def layered(pair, between, layer, layers):
    def write(network):
        each = (layer.format(between.join(pair.format(*ends) for ends in part.tolist())) for part in network)
        return layers.join(each)

    return write


def inside(before, write, after):
    return lambda network: before + write(network) + after


EXCHANGE = "if (GreaterThan(ref p{0}, ref p{1})) {{ t = p{0}; p{0} = p{1}; p{1} = t; }}"
FLAT = {
    "C": inside("int m(int *p)\n{\n  int t;\n", lines("  SORT(p[{}], p[{}]);"), "\n  return p[0];\n}\n"),
    "C++": inside(
        "#ifndef N\n#define N\n#define S(a, b) if (a > b) \\\n swap(a, b)\ntemplate <class T>\n"
        "void s(std::vector<T> &d) {\n",
        lines("// next\n  S(d[{}], d[{}]);"),
        "\n}\n#endif\n",
    ),
    "a macro's calls": inside(
        "template<int n> void s(const T v[9], int o[9]){\n", lines("S({},{});", ""), "};\n"
    ),
    "C#": inside(
        "static void Sort<T>(ref T p0)\n where T : IComparable<T>\n{\n"
        " ref T p1 = ref Unsafe.Add(ref p0, 1);\n T t;\n",
        lines(EXCHANGE),
        "\n}\n",
    ),
    "Fortran": inside(
        "pure subroutine s(x)\n  integer(IK), intent(inout) :: x(9)\n",
        lines("  call cas(x({}),x({}))"),
        "\nend subroutine s\n",
    ),
    "Rust": inside(
        "fn s<T, F>(v: &mut [T], f: &mut F)\nwhere\n  F: FnMut(&T, &T) -> bool,\n{\n  if v.len() < 9 {\n"
        "    abort();\n  }\n  let base = v.as_mut_ptr();\n  unsafe {\n",
        lines("    cas(base, {}, {}, f);"),
        "\n  }\n}\n",
    ),
    "Python": inside("def s(v):\n", lines("    cas(v, {}, {})"), "\n    return v\n"),
    "CUDA in a string": inside(
        'k[9] = """\n#define S(a,b) {{ T((a),(b)); }}\n__device__ X s(X *p)\n{\n',
        lines("S(p[{}],p[{}]);", " "),
        '\n}\n"""\n',
    ),
    "an array of wires": inside("static const int s[] = {", lines("{},{}", ", "), "};\n"),
    "wires in a type": inside(
        "struct net<9> {\n using s = std::integer_sequence<uint32_t,\n", lines("{}, {}", ",\n"), "\n>;\n};\n"
    ),
    "C#, a list": inside("N[9] = [", lines("{}, {}", ", "), "];\nSizes[9] = [1];\n"),
    "Go": inside(
        'var s = Network{Kind: "a (1, 2)", Size: 9, Ops: []Swap{\n', lines("{{{}, {}}},", " "), "\n}}\n"
    ),
    "Perl": inside(
        "my %h = (\n s => {\n  inputs => 9,\n  title => '9-input',\n  comparators =>\n  [",
        lines("[{},{}]", ", "),
        "]},\n);\n",
    ),
    "a list in JSON": inside('{"s": [', lines("[{}, {}]", ", "), "]}"),
    "a line each": lines("{}\t{}"),
}
LAYERED = {
    "a list of lists": inside("[", layered("[{}, {}]", ", ", "[{}]", ",\n"), "]\n"),
    "a list a line": layered("[{},{}]", ",", "[{}]", "\n"),
    "Scala": inside("val s = List(", layered("({}, {})", ", ", "List({})", ", "), ")\n"),
    "numbered lines": lambda network: "".join(
        f"Depth: {k}, Index: {[tuple(pair) for pair in part.tolist()]}\n"
        for k, part in enumerate(network, start=1)
    ),
    "Zig": inside(
        "pub fn s(x: []T) void {\n 9 => Net([_]Layer{\n",
        layered("{}, {}", ", ", "&[_]usize{{ {} }},", "\n"),
        "\n}).sort(T, x),\n}\n",
    ),
}


def long_enough(network):
    """Whether a list without brackets around comparators is told from numbers that are all different.

    And from a table, which begins with its number of wires and its number of comparators and counts from 1.
    """
    if Network.from_comparators(network.n, network.comparators).depth < 2:
        return False
    (n, size), *others = network.comparators.tolist()
    return size != len(others) or not all(1 <= wire <= n for pair in others for wire in pair)


@pytest.mark.parametrize("shape", FLAT)
@settings(max_examples=25)
@given(network=networks(wires=(3, 9)).filter(long_enough))
def test_a_printed_network_is_read_back(shape, network):
    text = FLAT[shape](network)
    flat = Network.from_comparators(network.n, network.comparators)
    assert parse_network(text, network.n, index_base=0) == flat


@pytest.mark.parametrize("shape", LAYERED)
@settings(max_examples=25)
@given(network=networks(wires=(3, 9)).filter(long_enough))
def test_a_printed_network_is_read_back_with_its_layers(shape, network):
    read = parse_network(LAYERED[shape](network), network.n, index_base=0)
    pairs_alone = shape == "Zig" and all(len(layer) == 1 for layer in network)
    assert read == (Network.from_comparators(network.n, network.comparators) if pairs_alone else network)


@pytest.mark.parametrize(
    "text",
    [
        "void s(int *d) {{ S(0,2);S(1,3); if (f) S(0,1);S(2,3);S(1,2); }}",
        "void s(int *d) {{ for (i = 0; i < 2; i++) {{ {body} }} }}",
        "void s(int *d) {{ for (i = 0; i < 2; i++) {body} }}",
        "void s(int *d) {{ do {{ {body} }} while (--k); }}",
        "if (n == 4) {{ {body} }}",
        "void s(int *d) {{ for (i = 0; i < 4; i++) T(i); {body} }}",
        "void s(int *d) {{ sort2(d); {body} }}",
        "void s(int *d) {{ {body} tail(d); }}",
        "void s(int *d) {{ {body} t = d[0]; d[0] = d[1]; d[1] = t; }}",
        "void s(int *d) {{ d++; {body} }}",
        "void s(int *d) {{ d += 1; {body} }}",
        "void s(int *d) {{ {body} T(0,1); }}",
        "void s(int *d) {{ {body} return S(0,1); }}",
        "void s(int *d) {{ {body} && S(0,1); }}",
        "void s(int *d) {{ a: {body} goto a; }}",
        "void s(int *d) {{ {body}\n#if A\nS(0,1);\n#endif\n}}",
        "void s(int *d) {{ x = S(0,1); {body} }}",
        "switch (n) {{ case 4: {body} break; case 2: S(0,1); }}",
        "func s() {{\n if x {{\n  S(0,1)\n }} else {{\n  S(1,2)\n }}\n}}",
        "S(0,2);S(1,3);\n! S(0,1);\nS(2,3);S(1,2);",
        "S(0,2);S(1,3);\n-- S(0,1);\nS(2,3);S(1,2);",
        "S(d[0],d[2]);S(e[1],e[3]);S(d[0],d[1]);",
        "S(d[0],e[2]);S(d[1],e[3]);",
        "S(d[i+0],d[i+1]);S(d[i+1],d[i+2]);",
        "S(0,2,up);S(1,3,down);S(0,1,up);",
        "S(v,0,2);S(w,1,3);S(v,0,1);",
        "S(0,1,2);S(1,2,3);",
        "def s(v):\n  for i in range(2):\n    S(v[0],v[1])\n    S(v[1],v[2])\n",
        "def s(v):\n  S(0,1)\n  S(1,2)\n  v.reverse()\n",
        "def s(v):\n  S(0,1)\n  S(1,2)\n  return v[::-1]\n",
        "subroutine s(x)\n do i=1,3\n call S(x(0),x(1))\n call S(x(1),x(2))\n end do\nend subroutine\n",
        "if (LessThan(p0,p1)) {{t=p0;p0=p1;p1=t;}} if (LessThan(p1,p2)) {{t=p1;p1=p2;p2=t;}}",
        "if (Greater(p0,p1)) {{t=p0;p0=p1;p1=t;}} if (Greater(p1,p2)) {{t=p1;p1=p2;p2=p1;}}",
        "int a[] = {{1,2,3,0}};",
        "int a[] = {{0,1,1,2,x,0,1}};",
        "x = [(0,1),(1,2)] + [(0,1)]",
        "x = [(0,1),(1,2)] * 2",
        "x = [(0,1),(1,2),*y,(0,1)]",
        "x = [(0,1),(1,2),(0,1)][::-1]",
        "x = [(0,1),(1,2),(0,1)].map(f)",
        "x = reversed([(0,1),(1,2),(0,1)])",
        "x = [(0,1),(1,2) if y else (0,2),(0,1)]",
        "x = [(0,1),(1,2),(0,-1)]",
        "[(0,1),(1,2),,(0,1)]",
        "[(0,1),(2,3)]\nfoo\n[(1,2)]",
        "[(0,1),(1,2),(0,1)]]",
        "{{(0,1),(1,2),(0,1)]",
        "Depth: 1, Index: [(0, 3), (1, 2)]\nDepth: 2, Index: [(0, 1), (1, 3)]\nDepth: 3, Index: [(1, 2)]",
    ],
)
def test_what_may_exchange_other_values_is_refused(text):
    text = text.format(body=BODY)
    for n in (None, 3, 4):
        with pytest.raises(NetworkError):
            parse_network(text, n)
    with pytest.raises(NetworkError):  # nor is it passed over beside a network that is read
        parse_network(
            f"{text}\nvoid other(int *d) {{ S(0,1);S(0,2);S(1,2); }}\nint o[] = {{0,1, 0,2, 1,2}};\n"
        )


SEVERAL = f"""
#include <stdlib.h>
#define S(a, b) compare(d, a, b)
static void sort2(int *d) {{ S(0,1); }}
static void sort4(int *d) {{ {BODY} }}
static void other4(int *d) {{ {BODY} S(0,3); }}
static void broken(int *d) {{ {BODY} if (x) S(0,3); }}
int main(void) {{ init(0, 1); return run(2, 3); }}
"""


def test_one_of_several_networks_is_chosen(tmp_path):
    path = tmp_path / "sorters.c"
    path.write_text(SEVERAL, encoding="utf-8")
    shown = r"5 networks in one file, sort2 \(2 wires, 1 comparator, 1 layer\), sort4 .*line 7 \(cannot"
    for n in (None, 4, 9):
        with pytest.raises(NetworkError, match=shown):
            read_network(path, n)
    assert read_network(path, name="sort4") == FOUR
    assert read_network(path, 2).size == 1
    with pytest.raises(NetworkError, match='no network "sort9": 5 networks'):
        read_network(path, name="sort9")
    found = read_networks(path)
    assert [getattr(network, "size", None) for network in found.values()] == [1, 5, 6, None, None]
    assert 'line 7: found "if (x)' in str([*found.values()][-1])


def test_names_are_those_of_lists_or_of_what_is_around_them():
    text = "h = { a => { n => 4, c => [[0,1],[1,2],[0,1]] }, b => { n => 2, c => [[0,1]] } }"
    assert parse_network(text, name="a").size == 3
    table = "T[2] = [0, 1];\nSizes[2] = [1, 1];\nT[3] = [0, 1, 0, 2, 1, 2];\nSizes[3] = [3, 2, 1, 2];\n"
    assert parse_network(table, name="T[3]").size == parse_network(table, 3).size == 3
    with pytest.raises(NetworkError, match="2 networks in one file, T"):
        parse_network(table)
    twice = "f(){S(0,1);S(1,2);S(0,1);}\nf(){S(0,1);S(0,2);S(1,2);}\n"
    assert parse_network(twice, name="f, line 2").comparators.tolist() == [[0, 1], [0, 2], [1, 2]]


def test_lists_that_are_no_networks_are_refused():
    with pytest.raises(NetworkError, match="joins a wire to itself"):
        parse_network("T[2] = [0, 0];\nT[3] = [0, 0, 1, 1];")


def test_a_file_in_latin_1_is_read(tmp_path):
    path = tmp_path / "net.pm"
    path.write_bytes("# Juillé\nmy $net = [[0,2],[1,3],[0,1],[2,3],[1,2]];\n".encode("latin-1"))
    assert read_network(path) == FOUR


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<svg width='9'><line x1='1'/></svg>", "looks like XML, such as SVG"),
        ("--------\n-- n\n--------\nentity n is\nend;\narchitecture rtl of n is\nend;", "looks like VHDL"),
        ("entity n is\nend;\narchitecture rtl of n is\nbegin\nend;", "looks like VHDL"),
        ("module n(input [7:0] a, b);\n cas c0(a[0], a[1]);\nendmodule", "looks like Verilog"),
        ("{2,1,2,1,2,2,9}([2,3]0,1,1)(2)", "netlist of Cartesian genetic programming"),
        ("int main() {\n return 0;\n}", "line 1: found .*, it looks like program text"),
        ("some networks\n\n(0,1),(1,2)", "line 1: found .some networks.: expected nothing but comparators"),
    ],
)
def test_refusals_say_what_a_text_looks_like(text, message):
    with pytest.raises(NetworkError, match=message):
        parse_network(text)


DRAWN = """
[0] o--^-----^-----o
       |     |
[1] o--|--^--v--^--o
       |  |     |
[2] o--v--|--^--v--o
          |  |
[3] o-----v--v-----o
"""


def test_a_diagram_of_knuths_style_is_read():
    assert parse_network(DRAWN) == FOUR
    for old, new, message in (
        ("^-----^", "^-----x", "has 'x'"),
        ("o-----v--v", "o--^--v--v", "no other end"),
        ("[3]", "3:3", "no wire"),
    ):
        with pytest.raises(NetworkError, match=message):
            parse_network(DRAWN.replace(old, new, 1), format="ascii")


@given(st.integers(2, 40))
@settings(max_examples=10)
def test_wires_that_count_from_one_need_the_base(n):
    body = "".join(f" call cas(x({k}),x({k + 1}))\n" for k in range(1, n))
    text = f"subroutine s(x)\n{body}end subroutine\n"
    with pytest.raises(NetworkError, match="no comparator touches wire 0"):
        parse_network(text)
    assert parse_network(text, index_base=1).n == n
