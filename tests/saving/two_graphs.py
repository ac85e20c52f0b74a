"""Prefill and decode: two graphs with one cache and the same weights."""
import torch

import expected
import marks
import model

PROMPT, TOKENS = 128, 100

torch.manual_seed(0)
with torch.no_grad():
    decoder = model.Cached(layers=4, width=1024, heads=16, kv_heads=4, hidden=2816, positions=512, words=8000)
    prompt = torch.randint(0, 8000, (PROMPT,), device="cuda")
    token = torch.zeros(1, dtype=torch.long, device="cuda")
    position = torch.zeros(1, dtype=torch.long, device="cuda")
    tokens = torch.zeros(512, dtype=torch.long, device="cuda")
    start = torch.arange(PROMPT, device="cuda")

    def read_prompt():
        token.copy_(decoder(prompt, start).argmax(-1))
        position.fill_(PROMPT)

    def step():
        token.copy_(decoder(token, position).argmax(-1))
        tokens.index_copy_(0, position, token)
        position.add_(1)

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            read_prompt()
            step()
    torch.cuda.synchronize()
    prefill = torch.cuda.CUDAGraph()
    with torch.cuda.graph(prefill):
        read_prompt()
        marks.input("prompt", prompt)
        marks.output("token", token)
    decode = torch.cuda.CUDAGraph()
    with torch.cuda.graph(decode, pool=prefill.pool()):
        step()
        marks.input("token", token)
        marks.output("tokens", tokens)
marks.dead()

framework = expected.Torch()


def chain(folder):
    """Another prompt, and the tokens that follow it: for two_graphs.cpp."""
    prompt.copy_(torch.randint_like(prompt, 0, 8000))
    prefill.replay()
    for _ in range(TOKENS):
        decode.replay()
    for name, tensor in (("prompt", prompt), ("tokens", tokens)):
        with open(f"{folder}/chained.{name}", "wb") as file:
            file.write(framework.to_bytes(tensor))


expected.write([
    expected.Graph("prefill", prefill.replay, {"prompt": prompt}, {"prompt": torch.randint_like(prompt, 0, 8000)},
                   {"token": token}),
    expected.Graph("decode", decode.replay, {"token": token}, {"token": torch.full_like(token, 1234)},
                   {"tokens": tokens}, [position, tokens], replays=TOKENS),
], framework, chain)
