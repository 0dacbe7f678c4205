"""What the package must never do: run what a file holds, write where a file says, call a shell, weaken TLS.

The sources themselves are looked at, so that it holds for every path through them.
"""

import ast
import re
from pathlib import Path

import pytest

import cagat

SOURCES = sorted(Path(cagat.__path__[0]).rglob("*.py"))

FORBIDDEN = re.compile(
    r"eval|exec|__import__|builtins\..*|runpy\..*|pty\.spawn|os\.(system|popen|exec\w*|spawn\w*|posix_spawn\w*)"
    r"|subprocess\.(getoutput|getstatusoutput)|(_?pickle|cPickle|dill|cloudpickle|joblib|marshal|shelve)\.(?!UnpicklingError).*"
    r"|pandas\.read_pickle|torch\.(jit|hub)\.load|yaml\.((unsafe|full)_load(_all)?|(?!Safe)\w*Loader)"
    # torch's ways of sending objects to other processes unpickle what arrives.
    r"|.*(gather_object|_object_list)"
    r"|shutil\.unpack_archive|.*\.extract(all)?|ssl\._create_unverified_context"
)
# These may only be called, with arguments that can be seen.
LOADERS = ("torch.load", "torch.serialization.load", "numpy.load", "yaml.load", "yaml.load_all")
# Options that may be given only as this word: a variable could hold anything.
ONLY = {"weights_only": True, "allow_pickle": False, "shell": False, "verify": True, "check_hostname": True}
# The one unpickler, whose `find_class` knows only what arrays are made of; see tests/data/test_planetoid.py.
RESTRICTED_UNPICKLER = ("planetoid.py", "pickle.Unpickler in line ")
SHELLS = ("sh", "bash", "zsh", "cmd")


def unsafe(source: str) -> list[str]:
    """What a module does that it must not do."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    names = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}

    def full_name(node: ast.AST) -> str:
        if isinstance(node, ast.Attribute):
            return f"{full_name(node.value)}.{node.attr}"
        return names.get(node.id, node.id) if isinstance(node, ast.Name) else ""

    calls = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    safe_loaders = {
        node.name
        for node in nodes
        if isinstance(node, ast.ClassDef) and "yaml.SafeLoader" in map(full_name, node.bases)
    }
    found = []
    for node in nodes:
        if isinstance(node, ast.Assign):
            targets = {getattr(target, "attr", "") for target in node.targets}
            found += [f"{name} is set in line {node.lineno}" for name in targets & {"check_hostname", "verify_mode"}]
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
            name, call = full_name(node), calls.get(id(node))
            if FORBIDDEN.fullmatch(name) or (
                name in LOADERS if call is None else has_unsafe_arguments(name, call, safe_loaders)
            ):
                found.append(f"{name} in line {node.lineno}")
    return found


def has_unsafe_arguments(name: str, call: ast.Call, safe_loaders: set[str]) -> bool:
    options = {option.arg: getattr(option.value, "value", None) for option in call.keywords}
    if any(options.get(option, value) is not value for option, value in ONLY.items()):
        return True
    if (name in LOADERS or name.startswith("subprocess.")) and None in options:
        return True  # **options could hold anything.
    if name.startswith("torch."):
        return name in LOADERS and "weights_only" not in options
    if name == "numpy.load":
        return len(call.args) > 2
    if name.startswith("yaml.load"):
        return len(call.args) < 2 or getattr(call.args[1], "id", "") not in safe_loaders
    if name.startswith("subprocess.") and call.args:
        program = getattr(call.args[0], "elts", [None])[0]
        return isinstance(program, ast.Constant) and str(program.value).rpartition("/")[2] in SHELLS
    return name.endswith("urlopen") and "context" in options


def test_no_source_does_what_is_unsafe():
    file, allowed = RESTRICTED_UNPICKLER
    found = [
        (str(source), wrong)
        for source in SOURCES
        for wrong in unsafe(source.read_text())
        if not (source.name == file and wrong.startswith(allowed))
    ]
    assert found == []


# The page of `cagat label` is on this machine's own 127.0.0.1, for which nobody can have a certificate. Only the bare
# scheme may stand there, before a host that the server names: an address from elsewhere still fails.
LOOPBACK = ("server.py", "http://")


def test_addresses_are_https():
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if (source.name, node.value) == LOOPBACK and source.parent.name == "labelling":
                    continue
                assert not node.value.startswith(("http://", "ftp://")), f"{source}: {node.value}"


@pytest.mark.parametrize(
    "source",
    [
        "eval('1')",
        "import builtins\nbuiltins.eval('1')",
        "import os\nos.execvp('ls', [])",
        "from os import popen\npopen('ls')",
        "import pickle\npickle.load(stream)",
        "from pickle import loads as read\nread(b'')",
        "import pickle\nclass Reader(pickle.Unpickler): ...",
        "from dill import Unpickler\nUnpickler(stream)",
        "import torch\ntorch.load(path)",
        "import torch\ntorch.load(path, weights_only=False)",
        "from torch import load\nload(path)",
        "import torch\nread = torch.load\nread(path)",
        "import torch.distributed as dist\ndist.broadcast_object_list(box)",
        "import torch.distributed as dist\ndist.all_gather_object(values, value)",
        "import numpy as np\nnp.load(path, allow_pickle=True)",
        "import numpy as np\nnp.load(path, allow_pickle=trusted)",
        "import numpy as np\nnp.load(path, None, True)",
        "import numpy as np\nnp.load(path, **options)",
        "import yaml\nyaml.load(text, yaml.Loader)",
        "import yaml\nyaml.load_all(text)",
        "import yaml\nclass Own(yaml.Loader): ...\nyaml.load(text, Own)",
        "import subprocess\nsubprocess.run('ls', shell=wanted)",
        "import subprocess\nsubprocess.run('ls', **options)",
        "import subprocess\nsubprocess.run(['/bin/sh', '-c', text])",
        "from subprocess import getstatusoutput as ask\nask('ls')",
        "archive.extractall(path)",
        "import ssl\nssl._create_unverified_context()",
        "import urllib.request\nurllib.request.urlopen(url, context=c)",
        "connect(host, check_hostname=wanted)",
        "context.verify_mode = ssl.CERT_NONE",
    ],
)
def test_what_is_unsafe_is_noticed(source):
    assert unsafe(source)


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nnp.load(path, allow_pickle=False)",
        "import torch\ntorch.load(path, weights_only=True)",
        "import subprocess\nsubprocess.run(['ls'], shell=False, check=True)",
        "import yaml\nclass Own(yaml.SafeLoader): ...\nyaml.load(text, Own)",
        "model.eval()",
        "connect(host, check_hostname=True)",
    ],
)
def test_what_is_safe_passes(source):
    assert unsafe(source) == []
