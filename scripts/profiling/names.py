"""Names of functions as people read them."""
import re
import shutil
import subprocess

LONG = 24  # characters of arguments that are not shown
# What says nothing: where nobody can name a thing from outside, and the namespaces that all of ours have.
NOISE = re.compile(r"\(anonymous namespace\)::|\barenite::codelets::|\barenite::|\[abi:[^\]]*\]|\b__cxx11::")
CLONE = re.compile(r"(\.(isra|part|constprop|cold|lto_priv|localalias)(\.\d+)*|\.\d+| \[clone [^\]]*\]|@@?[\w.]+)+$")
# A kernel's function, in the one that hands it its state.
ON_STATE = re.compile(r"^arenite::runtime::on_state<&(?:\((?:void )?(.*?)\(arenite::runtime::KernelCall const&.*|([^,]*), .*)>$")
OPERATOR = re.compile(r"operator *(<=>|<<=|>>=|->\*|<<|>>|<=|>=|->|<|>|\(\))")
ASIDE = 0xE000  # where signs that are no brackets wait


def without_long(text, opening, closing):
    """The outermost bracketed parts only where they are short. As it was where brackets do not match."""
    pieces, depth, begin = [], 0, 0
    for i, character in enumerate(text):
        if character == opening:
            if depth == 0:
                pieces.append(text[begin:i + 1])
                begin = i + 1
            depth += 1
        elif character == closing:
            depth -= 1
            if depth < 0:
                return text
            if depth == 0:
                pieces.append(text[begin:i] if i - begin <= LONG else "…")
                begin = i
    return "".join(pieces) + text[begin:] if depth == 0 else text


def shorten(symbol):
    """Of a C++ name. One of another kind comes back as it is."""
    name = ON_STATE.sub(lambda found: found[1] or found[2], CLONE.sub("", symbol))
    name = NOISE.sub("", name)
    name = OPERATOR.sub(lambda found: "operator" + "".join(chr(ASIDE + ord(sign)) for sign in found[1]), name)
    name = without_long(without_long(name, "<", ">"), "(", ")")
    return "".join(chr(ord(sign) - ASIDE) if ASIDE <= ord(sign) < ASIDE + 128 else sign for sign in name) or symbol


def demangle(symbols):
    """{mangled: name} of the C++ names that perf left as they were, where c++filt is there to tell."""
    mangled = sorted({symbol for symbol in symbols if symbol.startswith("_Z")})
    tool = shutil.which("c++filt")
    if not mangled or not tool:
        return {}
    done = subprocess.run([tool, "--no-params"], input="\n".join(mangled) + "\n", capture_output=True, text=True, errors="replace")
    names = done.stdout.splitlines()
    return dict(zip(mangled, names)) if len(names) == len(mangled) else {}
