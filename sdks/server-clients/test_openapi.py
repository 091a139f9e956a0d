"""The OpenAPI document of `qodercli serve`: valid for an independent validator, with every route that the clients use."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from typing import Any

from openapi_spec_validator import OpenAPIV31SpecValidator, validate

from conftest import Replies, Served


def test_the_document_is_valid(serve: Callable[[Replies], Served]) -> None:
    served = serve([])
    with urllib.request.urlopen(f"{served.url}/openapi.json") as answer:
        document: Any = json.load(answer)
    validate(document, cls=OpenAPIV31SpecValidator)
    paths = document["paths"]
    for path in ["/agents", "/sessions/{id}/events", "/webhook/endpoints", "/vaults/{id}/credentials/{credential}"]:
        assert {"get", "post"} & set(paths[path]), path
    schema = paths["/sessions"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert schema == {"$ref": "#/components/schemas/Session"}
