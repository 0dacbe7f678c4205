"""Giving up the system administrator's right to write where nobody may."""

import ctypes
import os

_VERSION = 0x20080522
_OVERRIDE, _READ_SEARCH = 1, 2


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def obey_permissions() -> None:
    """Let the permissions of files count in this process from now on, also if it is the administrator's."""
    if os.geteuid() != 0:
        return
    libc, header, sets = ctypes.CDLL(None, use_errno=True), _Header(_VERSION, 0), (_Sets * 2)()
    libc.capget(ctypes.byref(header), sets)
    kept = ~(1 << _OVERRIDE | 1 << _READ_SEARCH) & 0xFFFFFFFF
    sets[0].effective &= kept
    sets[0].permitted &= kept
    if libc.capset(ctypes.byref(header), sets) != 0:
        raise OSError(ctypes.get_errno(), "cannot give up rights")
