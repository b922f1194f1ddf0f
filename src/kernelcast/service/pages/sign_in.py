"""The page that asks for a token, and keeps it in a cookie that scripts cannot read."""

from http import HTTPStatus
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from kernelcast.service.dependencies import OurService
from kernelcast.service.errors import ApiError
from kernelcast.service.pages.dependencies import (
    SentForm,
    forget_token,
    keep_token,
    refuse_foreign_form,
)
from kernelcast.service.pages.rendering import FIRST_PAGE, PageRoute, render

SIGN_IN_PATH: Final = "/sign-in"
"""Takes the form of somebody who is not known yet."""
FORM_BYTES: Final = 4096
"""Of that form: a token and where to go."""
router = APIRouter(route_class=PageRoute)


@router.get(SIGN_IN_PATH)
async def show_sign_in(request: Request, service: OurService) -> Response:
    """Ask for a token, where one is needed."""
    wanted = _choose_next(request.query_params.get("next", ""))
    if not service.settings.needs_tokens:
        return RedirectResponse(wanted, HTTPStatus.SEE_OTHER)
    return render(request, "sign_in.html", {"next": wanted, "error": ""})


@router.post(SIGN_IN_PATH)
async def sign_in(request: Request, form: SentForm, service: OurService) -> Response:
    """Take a token; a wrong one counts as everywhere."""
    refuse_foreign_form(request)
    token, wanted = form.first("token"), _choose_next(form.first("next"))
    try:
        caller = await service.authenticator.identify(f"Bearer {token}")
    except ApiError as error:
        values = {"next": wanted, "error": error.message}
        return render(request, "sign_in.html", values, status=error.status)
    request.state.caller = caller.name
    answer = RedirectResponse(wanted, HTTPStatus.SEE_OTHER)
    keep_token(answer, request, token)
    return answer


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """Forget the token of this browser."""
    refuse_foreign_form(request)
    answer = RedirectResponse(SIGN_IN_PATH, HTTPStatus.SEE_OTHER)
    forget_token(answer, request)
    return answer


def _choose_next(text: str) -> str:
    """Give the page that somebody wanted; never another site's."""
    is_ours = text.startswith("/") and not text.startswith("//") and "\\" not in text
    return text if is_ours and text.isprintable() else FIRST_PAGE
