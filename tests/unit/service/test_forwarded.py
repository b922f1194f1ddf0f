"""Where requests began, as far as trusted proxies say it."""

import pytest
from starlette.datastructures import Headers
from starlette.types import Scope

from kernelcast.records.errors import InputError
from kernelcast.service import ServiceSettings
from kernelcast.service.forwarded import TrustedProxies, read_networks
from kernelcast.service.settings import load_settings

PROXY = "127.0.0.1"
TRUSTED = (PROXY, "10.0.0.0/8", "fd00::/8")


def _resolve(
    peer: str, *pairs: tuple[str, str], trusted: tuple[str, ...] = TRUSTED
) -> tuple[str, str]:
    scope: Scope = {
        "type": "http",
        "client": (peer, 1234),
        "scheme": "http",
        "headers": [(name.encode(), value.encode()) for name, value in pairs],
    }
    TrustedProxies(read_networks(trusted)).resolve(scope, Headers(scope=scope))
    return scope["client"][0], scope["scheme"]


@pytest.mark.parametrize(
    ("told", "address"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("203.0.113.9:4711", "203.0.113.9"),
        ("2001:db8::7", "2001:db8::7"),
        ("[2001:db8::7]:443", "2001:db8::7"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        # What a caller has written itself stands left of what a trusted proxy has written.
        ("198.51.100.1, 203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9, 10.1.2.3, fd00::1", "203.0.113.9"),
        ("10.1.2.3, 10.1.2.4", "10.1.2.3"),
        ("198.51.100.1, nonsense, 10.1.2.3", "10.1.2.3"),
        ("nonsense", PROXY),
        ("", PROXY),
        (",".join(["198.51.100.1"] * 500), "198.51.100.1"),
    ],
)
def test_the_nearest_stranger_is_the_caller(told: str, address: str) -> None:
    """The list is read from its end, as far as trusted proxies have written it."""
    assert _resolve(PROXY, ("x-forwarded-for", told))[0] == address


@pytest.mark.parametrize(
    ("told", "address", "scheme"),
    [
        ("for=203.0.113.9;proto=https", "203.0.113.9", "https"),
        ('For="[2001:db8::7]:4711";Proto=HTTPS', "2001:db8::7", "https"),
        ("for=198.51.100.1, for=203.0.113.9;proto=https", "203.0.113.9", "https"),
        ("for=_hidden;proto=gopher", PROXY, "http"),
    ],
)
def test_the_standard_header_is_read(told: str, address: str, scheme: str) -> None:
    """RFC 7239 has names, quotes and brackets."""
    assert _resolve(PROXY, ("forwarded", told)) == (address, scheme)


def test_nobody_else_is_believed() -> None:
    """Without a trusted proxy, or past it, the headers are anybody's word."""
    told = (("x-forwarded-for", "203.0.113.9"), ("x-forwarded-proto", "https"))
    assert _resolve("192.0.2.1", *told) == ("192.0.2.1", "http")
    assert _resolve(PROXY, *told, trusted=()) == (PROXY, "http")


def test_headers_that_contradict_each_other_are_not_believed() -> None:
    """A proxy that writes one of them passes on what a stranger says in the other."""
    plain, standard = ("x-forwarded-for", "203.0.113.9"), ("forwarded", "for=198.51.100.1")
    assert _resolve(PROXY, plain, standard)[0] == PROXY
    assert _resolve(PROXY, plain, ("forwarded", "for=203.0.113.9"))[0] == "203.0.113.9"


def test_several_headers_of_one_name_are_one_list() -> None:
    """The last of them is the nearest."""
    told = [("x-forwarded-for", "198.51.100.1"), ("x-forwarded-for", "203.0.113.9")]
    assert _resolve(PROXY, *told)[0] == "203.0.113.9"


def test_the_scheme_is_the_nearest_proxys() -> None:
    """What a caller has written before it does not count."""
    assert _resolve(PROXY, ("x-forwarded-proto", "https"))[1] == "https"
    assert _resolve(PROXY, ("x-forwarded-proto", "https, http"))[1] == "http"


def test_behind_a_proxy_everybody_needs_a_token() -> None:
    """On loopback too: whoever comes through a proxy may come from anywhere."""
    settings = ServiceSettings(trusted_proxies=(PROXY,))
    assert settings.needs_tokens
    assert load_settings(settings.dump()) == settings


@pytest.mark.parametrize("network", ["proxy.example", "10.0.0.1/8", "", "*"])
def test_what_is_no_network_is_refused(network: str) -> None:
    """Before anything listens."""
    with pytest.raises(InputError, match="trusted proxy"):
        ServiceSettings(trusted_proxies=(network,))
