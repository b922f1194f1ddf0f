"""Who really asks: what trusted proxies say of the requests that they pass on."""

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

from kernelcast.records.errors import InputError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_SCHEMES: Final = frozenset({"http", "https"})
# Whoever sends more asks us to read, not to answer.
_MOST_HOPS: Final = 32


def read_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Read addresses and networks.

    Examples
    --------
    >>> read_networks(["127.0.0.1", "10.0.0.0/8"])
    (IPv4Network('127.0.0.1/32'), IPv4Network('10.0.0.0/8'))
    """
    found = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text.strip()))
        except ValueError as error:
            msg = (
                f"trusted proxy {text!r}: give an address such as 127.0.0.1, or a network such as "
                f"10.0.0.0/8 ({error})"
            )
            raise InputError(msg) from error
    return tuple(found)


def read_address(text: str) -> Address | None:
    """Read an address as proxies write it, with or without a port; None if it is none.

    Examples
    --------
    >>> read_address("192.0.2.1:80"), read_address('"[2001:db8::1]:80"')
    (IPv4Address('192.0.2.1'), IPv6Address('2001:db8::1'))
    >>> read_address("::ffff:192.0.2.1"), read_address("unknown")
    (IPv4Address('192.0.2.1'), None)
    """
    host = text.strip().strip('"')
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


class TrustedProxies:
    """Tells the address and the scheme that a request began with.

    A proxy appends the address that it was asked from to ``X-Forwarded-For`` or ``Forwarded``, so
    the end of the list is true as far as trusted proxies have written it; what stands before that
    is anybody's word.
    """

    def __init__(self, networks: Sequence[Network]) -> None:
        self._networks = networks

    def resolve(self, scope: Scope, headers: Headers) -> None:
        """Put the caller's own address and scheme into the scope, where a trusted proxy tells them.

        Two headers that contradict each other are one of the proxy and one that a caller has sent
        through it: neither is believed then.
        """
        if not self._networks:
            return
        client = scope.get("client")
        peer = None if client is None else read_address(client[0])
        if peer is None or not self._trusts(peer):
            return
        # A list may be cut into several headers of one name; they make one list.
        plain = ",".join(headers.getlist("x-forwarded-for"))
        standard = ",".join(headers.getlist("forwarded"))
        told = [
            self._walk(peer, hops)
            for hops in (_split_plain(plain), _split_standard(standard))
            if hops
        ]
        if told and all(one == told[0] for one in told):
            scope["client"] = (str(told[0]), 0)
        scheme = headers.get("x-forwarded-proto", "").rpartition(",")[2].strip().lower()
        scheme = scheme or _find_pair(standard.rpartition(",")[2], "proto").lower()
        if scheme in _SCHEMES:
            scope["scheme"] = scheme

    def _walk(self, peer: Address, hops: Sequence[str]) -> Address:
        """Go back from hop to hop while the one that names the next is trusted."""
        found = peer
        for text in reversed(hops[-_MOST_HOPS:]):
            told = read_address(text)
            if told is None:
                return found
            found = told
            if not self._trusts(found):
                return found
        return found

    def _trusts(self, address: Address) -> bool:
        return any(address in one for one in self._networks)


def _split_plain(text: str) -> Sequence[str]:
    return text.split(",") if text else ()


def _split_standard(text: str) -> Sequence[str]:
    """Give the addresses of a header of RFC 7239: ``for=192.0.2.1;proto=https, for=...``."""
    return [_find_pair(one, "for") for one in text.split(",")] if text else ()


def _find_pair(element: str, wanted: str) -> str:
    for pair in element.split(";"):
        name, _, value = pair.partition("=")
        if name.strip().lower() == wanted:
            return value.strip().strip('"')
    return ""
