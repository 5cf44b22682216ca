"""The payload store that `PERDURE_PAYLOADS` names."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from perdure.errors import DeclarationError
from perdure.payloads.base import PayloadStore
from perdure.payloads.files import FileStore

VARIABLE = "PERDURE_PAYLOADS"
KNOWN = "file:///an/absolute/path or s3://bucket/prefix"


def payload_store(value: str) -> PayloadStore:
    """The store of an address. Nothing is opened yet. Raises `DeclarationError`, naming the value."""
    try:
        address = urlsplit(value)
    except ValueError as error:
        raise DeclarationError(f"{VARIABLE}={value!r} is no address ({error}): use {KNOWN}") from None
    if address.query or address.fragment:
        raise DeclarationError(f"{VARIABLE}={value!r} has more than a path; ? and # are written as %3F and %23")
    match address.scheme:
        case "file":
            return FileStore(_folder(value, address.netloc, unquote(address.path)))
        case "s3":
            return _s3_store(value, address.netloc, unquote(address.path))
        case _:
            raise DeclarationError(f"{VARIABLE}={value!r} isn't known: use {KNOWN}")


def file_address(folder: Path) -> str:
    """The address of a folder, for `PERDURE_PAYLOADS`."""
    return folder.absolute().as_uri()


def _folder(value: str, host: str, path: str) -> Path:
    if host not in ("", "localhost") or not path.startswith("/"):
        raise DeclarationError(f"{VARIABLE}={value!r} isn't an absolute path with three slashes: {KNOWN}")
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise DeclarationError(f"{VARIABLE}={value!r} is not a folder")
    return folder


def _s3_store(value: str, bucket: str, prefix: str) -> PayloadStore:
    if not bucket:
        raise DeclarationError(f"{VARIABLE}={value!r} names no bucket: use s3://bucket/prefix")
    try:
        from perdure.payloads.s3 import S3Store
    except ImportError as error:
        raise DeclarationError(
            f"{VARIABLE}={value!r} needs the extra s3: pip install 'perdure[s3]' ({error})"
        ) from error
    return S3Store(bucket, prefix)
