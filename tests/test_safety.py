"""What the package must never do, wherever it is done: the sources themselves are looked at."""

import ast
from pathlib import Path

import pytest

import cagat

SOURCES = sorted(Path(cagat.__path__[0]).rglob("*.py"))

# Calls that execute what a file holds, or write where it says.
FORBIDDEN = {
    "eval", "exec", "os.system", "os.popen", "pickle.load", "pickle.loads", "pickle.Unpickler", "joblib.load",
    "marshal.load", "marshal.loads", "shelve.open", "dill.load", "dill.loads", "cloudpickle.load", "cloudpickle.loads",
    "yaml.unsafe_load", "yaml.full_load", "yaml.unsafe_load_all", "yaml.full_load_all", "pandas.read_pickle",
    "ssl._create_unverified_context", "shutil.unpack_archive", "torch.jit.load", "torch.hub.load",
    "runpy.run_path", "__import__", "subprocess.getoutput", "subprocess.getstatusoutput", "pty.spawn",
}  # fmt: skip
# And all whose names begin so.
FORBIDDEN_BEGINNINGS = ("os.exec", "os.spawn", "os.posix_spawn", "builtins.")
# torch's ways of sending objects to other processes: they unpickle what arrives.
FORBIDDEN_ENDINGS = (".extractall", ".extract", "gather_object", "_object_list")
# Modules that unpickle, of which nothing may be taken; one is imported for the name of an error.
FORBIDDEN_MODULES = ("pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve")
HARMLESS = {"pickle.UnpicklingError"}
# The one unpickler, whose `find_class` knows only what arrays are made of; see tests/data/test_planetoid.py.
RESTRICTED_UNPICKLER = ("planetoid.py", "pickle.Unpickler in line ")
# Functions that may only be called, where it can be seen with what: under another name they would not be found.
ONLY_CALLED = ("torch.load", "numpy.load", "yaml.load", "eval", "exec")
# Options that may be given only as the word False, so that no variable can hold anything else.
ONLY_FALSE = ("allow_pickle", "shell")
# What a TLS context must keep.
TLS = ("check_hostname", "verify_mode")


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def imported_names(tree: ast.AST) -> dict[str, str]:
    """What the names in a module stand for."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name.split(".")[0]: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def unsafe_calls(source: str) -> list[str]:
    tree = ast.parse(source)
    names = imported_names(tree)
    calls = [wrong for node in ast.walk(tree) if isinstance(node, ast.Call) and (wrong := reason(node, names))]
    assignments = [wrong for node in ast.walk(tree) if isinstance(node, ast.Assign) and (wrong := weakened(node))]
    return calls + assignments + unsafe_names(tree, names)


def full_name(node: ast.AST, names: dict[str, str]) -> str:
    first, _, rest = dotted(node).partition(".")
    return ".".join(filter(None, (names.get(first, first), rest)))


def unsafe_names(tree: ast.AST, names: dict[str, str]) -> list[str]:
    """What unpickles, and loaders that are not called at once, wherever they stand."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    within = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.Attribute) or id(node) in within:
            continue
        name = full_name(node, names)
        module = name.partition(".")[0]
        if module in FORBIDDEN_MODULES and name not in HARMLESS:
            found.append(f"{name} in line {node.lineno}")
        if name in ONLY_CALLED and id(node) not in called:
            found.append(f"{name} under another name in line {node.lineno}")
        if name.startswith("yaml.") and name.endswith("Loader") and name != "yaml.SafeLoader":
            found.append(f"{name} in line {node.lineno}")
    return found


def weakened(assignment: ast.Assign) -> str:
    targets = [target.attr for target in assignment.targets if isinstance(target, ast.Attribute)]
    found = [name for name in targets if name in TLS]
    return f"{found[0]} is set in line {assignment.lineno}" if found else ""


def reason(call: ast.Call, names: dict[str, str]) -> str:
    name = full_name(call.func, names)
    options = {option.arg: option.value for option in call.keywords}
    values = {key: getattr(value, "value", None) for key, value in options.items()}
    if name in FORBIDDEN or name.startswith(FORBIDDEN_BEGINNINGS) or name.endswith(FORBIDDEN_ENDINGS):
        return f"{name} in line {call.lineno}"
    if name in ("torch.load", "torch.serialization.load") and values.get("weights_only") is not True:
        return f"{name} without weights_only=True in line {call.lineno}"
    for option in ONLY_FALSE:
        if option in values and values[option] is not False:
            return f"{name} with {option} in line {call.lineno}"
    if name == "numpy.load" and (len(call.args) > 2 or None in options):
        return f"numpy.load with options that cannot be seen in line {call.lineno}"
    if name.startswith("subprocess.") and is_shell(call):
        return f"{name} of a shell in line {call.lineno}"
    if name.startswith("subprocess.") and None in options:
        return f"{name} with options that cannot be seen in line {call.lineno}"
    if name in ("yaml.load", "yaml.load_all") and not is_safe_loader(call):
        return f"{name} in line {call.lineno}"
    if any(values.get(option, True) is not True for option in ("verify", "check_hostname")) or (
        "context" in values and name.endswith("urlopen")
    ):
        return f"{name} without verified TLS in line {call.lineno}"
    return ""


def is_shell(call: ast.Call) -> bool:
    command = call.args[0] if call.args else None
    first = command.elts[0] if isinstance(command, ast.List | ast.Tuple) and command.elts else None
    return isinstance(first, ast.Constant) and str(first.value).rpartition("/")[2] in ("sh", "bash", "zsh", "cmd")


def is_safe_loader(call: ast.Call) -> bool:
    """The one loader of ours is a `yaml.SafeLoader`; see the next test."""
    loader = call.args[1] if len(call.args) > 1 else None
    return isinstance(loader, ast.Name) and loader.id == "_PlainLoader"


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(cagat.__path__[0])))
def test_nothing_is_loaded_or_called_that_could_execute_a_file(source):
    file, allowed = RESTRICTED_UNPICKLER
    found = unsafe_calls(source.read_text())
    assert [wrong for wrong in found if not (source.name == file and wrong.startswith(allowed))] == []


def test_the_yaml_loader_is_a_safe_one():
    import yaml

    from cagat.training.config_file import _PlainLoader

    assert issubclass(_PlainLoader, yaml.SafeLoader)


@pytest.mark.parametrize(
    "source",
    [
        "eval('1')",
        "import torch\ntorch.load(path)",
        "import torch\ntorch.load(path, weights_only=False)",
        "from torch import load\nload(path)",
        "import numpy as np\nnp.load(path, allow_pickle=True)",
        "import pickle\npickle.load(stream)",
        "from pickle import loads as read\nread(b'')",
        "import yaml\nyaml.load(text, yaml.Loader)",
        "import subprocess\nsubprocess.run('ls', shell=True)",
        "import urllib.request\nurllib.request.urlopen(url, context=c)",
        "archive.extractall(path)",
        "import ssl\nssl._create_unverified_context()",
        "import numpy as np\nnp.load(path, allow_pickle=trusted)",
        "import numpy as np\nnp.load(path, allow_pickle=not trusted)",
        "import numpy as np\nnp.load(path, None, True)",
        "import numpy as np\nnp.load(path, **options)",
        "import subprocess\nsubprocess.run('ls', shell=wanted)",
        "import subprocess\nsubprocess.run('ls', **options)",
        "import subprocess\nsubprocess.getoutput('ls')",
        "from subprocess import getstatusoutput as ask\nask('ls')",
        "import yaml\nyaml.load_all(text, yaml.Loader)",
        "import yaml\nyaml.load_all(text)",
        "import os\nos.system('ls')",
        "from os import popen\npopen('ls')",
        "import os\nos.execvp('ls', [])",
        "from os import spawnl\nspawnl(0, 'ls')",
        "connect(host, check_hostname=False)",
        "connect(host, check_hostname=wanted)",
        "context.check_hostname = False",
        "context.verify_mode = ssl.CERT_NONE",
        "import pickle\nclass Reader(pickle.Unpickler): ...",
        "import _pickle\n_pickle.loads(b'')",
        "from dill import Unpickler\nUnpickler(stream)",
        "import torch\nread = torch.load\nread(path)",
        "import yaml\nyaml.Loader(text).get_data()",
        "import builtins\nbuiltins.eval('1')",
        "import subprocess\nsubprocess.run(['sh', '-c', text])",
        "import torch.distributed as dist\ndist.broadcast_object_list(box)",
        "import torch.distributed as dist\ndist.all_gather_object(values, value)",
    ],
)
def test_the_look_notices(source):
    assert unsafe_calls(source)


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nnp.load(path, allow_pickle=False)",
        "import subprocess\nsubprocess.run(['ls'], shell=False, check=True)",
        "import os\nos.replace(a, b)",
        "connect(host, check_hostname=True)",
    ],
)
def test_the_look_lets_pass(source):
    assert unsafe_calls(source) == []


def test_addresses_are_https():
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not node.value.startswith(("http://", "ftp://")), f"{source}: {node.value}"
